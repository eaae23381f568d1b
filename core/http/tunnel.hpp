#pragma once

#include "rw/core/http/client.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace rw::http {

/// What came of asking a proxy for a tunnel.
struct tunnel_result {
  bool open = false;
  std::string cause = {};  ///< why not, for the log
};

/// Reads a proxy's answer to CONNECT as it comes, of which only the status counts: leniently, as
/// other clients do.
class tunnel_reader {
 public:
  /// `limit`: bytes of the answer.
  explicit tunnel_reader(std::size_t limit) noexcept : limit_(limit) {}

  /// Returns true once there is nothing more to read, whatever the answer was.
  bool take(std::string_view bytes, tunnel_result& into);

 private:
  const std::size_t limit_;
  std::size_t seen_ = 0;
  std::size_t looked_at_ = 0;  ///< of these, without an end
  std::string kept_;
};

/// Asks the proxy at the other end of `socket` to connect to the upstream that `options` name (RFC
/// 9110, section 9.3.6); with the outcome `open` the next byte is the upstream's. Whoever wants to
/// end it cancels the socket and sets `late`. Both must live until it ends.
boost::asio::awaitable<tunnel_result> open_tunnel(boost::asio::ip::tcp::socket* socket,
                                                  const client_options* options, const bool* late);

}  // namespace rw::http
