#pragma once

#include "core/stream.hpp"
#include "tls/error.hpp"
#include "tls/material.hpp"

#include <memory>
#include <string>
#include <vector>

namespace rw::tls {

struct server_options {
  /// Protocols for ALPN (RFC 7301), the preferred first. A client that offers none gets none; one
  /// that offers only others is refused.
  std::vector<std::string> alpn = {"h2", "http/1.1"};

  /// Refuse clients without a certificate that chains to the material's CA bundle. Off, no
  /// certificate is asked for.
  bool require_client_certificate = false;

  /// Session tickets sent after a full handshake, 0 to 2. Each costs the server about 10 us once.
  unsigned tickets = 1;
};

struct client_options {
  /// Host name or IP address that the server's certificate must carry; a name is sent as SNI too.
  std::string server_name = {};

  std::vector<std::string> alpn = {"h2", "http/1.1"};

  /// Show the material's own certificate, where there is one, to a server that asks.
  bool present_certificate = true;

  /// Keep the tickets of this transport's connections and resume with them.
  bool resume_sessions = true;
};

/// TLS 1.3 server side. Each connection uses the credentials' material of its moment, and keeps it.
/// Tickets do not outlive their material: with new material the handshake is a full one again.
/// The streams are tls::stream (tls/stream.hpp). Failures: missing_material, unusable_material.
result<std::unique_ptr<core::transport>> make_server_transport(std::shared_ptr<credentials> own,
                                                               server_options options = {});

/// TLS 1.3 client side, to one server. The material needs a CA bundle; there is no default one.
/// Sessions are resumed with the newest ticket, each used once, and forgotten with their material.
result<std::unique_ptr<core::transport>> make_client_transport(std::shared_ptr<credentials> own,
                                                               client_options options);

}  // namespace rw::tls
