#pragma once

#include "rw/core/stream.hpp"
#include "rw/tls/error.hpp"
#include "rw/tls/material.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rw::tls {

struct server_options {
  /// Protocols for ALPN (RFC 7301), the preferred first. A client without ALPN gets none; a client
  /// that offers only other protocols is rejected.
  std::vector<std::string> alpn = {"h2", "http/1.1"};

  /// Request a certificate of clients. A client whose certificate does not chain to the material's
  /// CA bundle is rejected.
  bool request_client_certificate = false;

  /// Also reject clients without a certificate.
  bool require_client_certificate = false;

  /// Session tickets sent after a full handshake, 0 to 2. Each costs the server about 10 us once.
  unsigned tickets = 1;
};

enum class version : std::uint8_t { tls_1_2, tls_1_3 };

struct client_options {
  /// Host name or IP address that the server's certificate must carry; a name is sent as SNI too.
  std::string server_name = {};

  std::vector<std::string> alpn = {"h2", "http/1.1"};

  /// The oldest version accepted. With TLS 1.2 only suites with forward secrecy and authenticated
  /// encryption are offered, and renegotiation is off (RFC 9325, RFC 9113, section 9.2).
  version least = version::tls_1_3;

  /// Without a CA bundle in the material, trust the authorities that the system's OpenSSL is
  /// configured with (also by SSL_CERT_FILE and SSL_CERT_DIR). A process reads them once.
  bool trust_system = false;

  /// Accept any server certificate. It does not become the peer_certificate().
  bool insecure_skip_verify = false;

  /// Send the material's own certificate, if there is one, to a server that requests it.
  bool present_certificate = true;

  /// Keep the tickets of this transport's connections, and resume with them.
  bool resume_sessions = true;
};

/// Makes the TLS 1.3 server side. Each connection uses and keeps the credentials' material of the
/// moment it begins. Tickets do not outlive their material: after a replacement the handshake is a
/// full one. The streams are tls::stream (tls/stream.hpp). Failures: missing_material,
/// unusable_material.
result<std::unique_ptr<core::transport>> make_server_transport(std::shared_ptr<credentials> own,
                                                               server_options options = {});

/// Makes the TLS client side, to one server. The material needs a CA bundle, unless the options
/// allow to do without. Sessions are resumed with the newest ticket, each used once, and dropped
/// with their material.
result<std::unique_ptr<core::transport>> make_client_transport(std::shared_ptr<credentials> own,
                                                               client_options options);

}  // namespace rw::tls
