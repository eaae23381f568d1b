#pragma once

#include <boost/system/error_code.hpp>

namespace rw::http {

/// Why an exchange with an upstream failed. The cause from below (the socket's or TLS's error) is
/// in the log.
///
/// Which of them allow to send a request again: `not_processed` any request; the others only one
/// that may be carried out twice (RFC 9110, section 9.2.2), since the upstream may have done so.
enum class client_error {
  resolve = 1,    ///< the host name has no address
  connect,        ///< no address of the host accepts connections
  handshake,      ///< TLS was refused, by us or by the peer
  timed_out,      ///< no complete answer came in time
  closed,         ///< the peer closed the connection before it answered
  not_processed,  ///< no byte of the request was written, or the peer refused its stream, or said
                  ///< goodbye to it (RFC 9113, sections 6.8 and 8.7)
  protocol,       ///< what came is not HTTP
  response_too_large,
  shut_down,      ///< the client itself is being closed
  abandoned,      ///< the sink had enough of the answer
  proxy,          ///< the proxy refused to connect to the upstream
  not_permitted,  ///< held back, at least its end, since the client's permit was gone

  /// As `closed`, of a connection that had served before and brought no byte of this answer: most
  /// likely the peer closed it for being idle while the request was on its way. That says nothing
  /// about the peer's health.
  reused_connection_closed,

  field_of_connection,  ///< the request has a field that the client sets itself; nothing was sent
  address_refused,      ///< the host has addresses of this machine or its link only, and these are
                        ///< refused
};

const boost::system::error_category& client_category() noexcept;

inline boost::system::error_code make_error_code(client_error e) noexcept {
  return {static_cast<int>(e), client_category()};
}

}  // namespace rw::http

template <>
struct boost::system::is_error_code_enum<rw::http::client_error> : std::true_type {};
