#include "rw/tls/handshake_failure.hpp"

#include "rw/tls/error.hpp"

#include <boost/asio/error.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace rw::tls {
namespace {

/// Alerts by which a peer rejects a certificate (RFC 8446, section 6.2).
bool is_about_certificates(int reason) {
  switch (reason) {
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return true;
    default:
      return false;
  }
}

}  // namespace

handshake_failure classify_handshake(boost::system::error_code error) noexcept {
  using enum handshake_failure;
  if (error.category() == verify_category()) return peer_untrusted;
  if (error.category() == openssl_category()) {
    const int reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) return peer_anonymous;
    return is_about_certificates(reason) ? refused_by_peer : protocol;
  }
  const bool of_the_socket = error.category() == boost::system::system_category();
  const bool closed_early =
      error == make_error_code(error::stream_truncated) || error == boost::asio::error::eof;
  return of_the_socket || closed_early ? closed : protocol;
}

}  // namespace rw::tls
