#pragma once

#include <boost/system/error_code.hpp>

namespace rw::http {

/// Why an exchange with an upstream failed. The cause from below (the socket's or TLS's error) is
/// in the log.
enum class client_error {
  resolve = 1,    ///< the host name has no address
  connect,        ///< no address of the host accepts connections
  handshake,      ///< TLS was refused, by us or by the peer
  timed_out,      ///< no whole answer came in time
  closed,         ///< the peer closed the connection before it answered
  not_processed,  ///< the peer said, or it is plain, that it did not look at the request
  protocol,       ///< what came is not HTTP
  response_too_large,
  shut_down,      ///< the client itself is being closed
  abandoned,      ///< the sink had enough of the answer
  proxy,          ///< the proxy refused to connect to the upstream
  not_permitted,  ///< held back, at least its end, since the client's permit was gone
};

const boost::system::error_category& client_category() noexcept;

inline boost::system::error_code make_error_code(client_error e) noexcept {
  return {static_cast<int>(e), client_category()};
}

}  // namespace rw::http

template <>
struct boost::system::is_error_code_enum<rw::http::client_error> : std::true_type {};
