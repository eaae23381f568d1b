#pragma once

#include "rw/core/http/client.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <string>

namespace rw::http {

/// What came of asking a proxy for a tunnel.
struct tunnel_result {
  bool open = false;
  std::string cause = {};  ///< why not, for the log
};

/// Asks the proxy at the other end of `socket` to connect to the upstream that `options` name (RFC
/// 9110, section 9.3.6); with the outcome `open` the next byte is the upstream's. Whoever wants to
/// end it cancels the socket and sets `late`. Both must live until it ends.
boost::asio::awaitable<tunnel_result> open_tunnel(boost::asio::ip::tcp::socket* socket,
                                                  const client_options* options, const bool* late);

}  // namespace rw::http
