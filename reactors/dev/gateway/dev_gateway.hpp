#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/http/server.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace rw::dev_gateway {

/// The port of a Service, the destination in a VirtualService.
struct service_port {
  std::string name;
  std::string ns;
  std::uint16_t port = 0;

  friend bool operator==(const service_port&, const service_port&) = default;
};

/// Returns an endpoint of a Service; nothing: it has no backend. Called for each request, on the
/// gateway's executor. For a Service with several backends it should return them in turn: if one
/// does not accept connections, or responds 503, the gateway calls again, and tries a different
/// one, as Istio's retries do by default (retryOn: connect-failure, refused-stream, 503).
using service_resolver =
    std::function<std::optional<boost::asio::ip::tcp::endpoint>(const service_port& service)>;

struct gateway_options {
  boost::asio::ip::tcp::endpoint address = {boost::asio::ip::address_v4::loopback(), 0};
  k8s::object_key secret = {"istio-system", "klm-istio-gateway"};  ///< tls.crt, tls.key, ca.crt
  http::server_limits limits = {};
  std::size_t request_bytes = 2u << 20;  ///< of one body; larger ones get 413
  std::size_t answer_bytes = 2u << 20;   ///< of one body; larger ones become 502
  std::size_t connections = 32;          ///< concurrent, to each backend
  std::size_t backends = 64;             ///< whose connections are kept
  std::chrono::milliseconds connect = std::chrono::seconds(2);
  std::chrono::milliseconds exchange = std::chrono::seconds(15);  ///< then 504
};

/// The gateway's sources in the control plane. The caller runs these informers, and may share them.
/// All of it must outlive the gateway.
struct gateway_sources {
  k8s::informer& virtual_services;  ///< networking.istio.io/v1beta1
  k8s::informer& secrets;           ///< Secrets with data; may include others
};

/// All of it must outlive the gateway.
struct gateway_environment {
  service_resolver services;
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
};

/// Replaces Istio's ingress gateway in a control plane without Istio: terminates TLS 1.3, requires
/// client certificates, routes by VirtualServices, and passes the client's identity on.
///
/// Certificate, key and client CAs are the Secret's. When it changes, new handshakes use the new
/// material, and open connections stay. Until the first usable Secret the gateway does not accept
/// connections: they wait in the system's queue. A later Secret that is unusable or deleted is
/// logged, and the previous material stays in use.
///
/// The longest `match.uri.prefix` of a request's path selects the backend, among the
/// VirtualServices one of whose `hosts` is the request's ("*" and "*.domain" too; without hosts:
/// any). The request is forwarded unchanged, over HTTP/1.1 and to one backend, except for
/// hop-by-hop fields (RFC 9110, section 7.6.1), and:
/// - X-Forwarded-Client-Cert is what Envoy writes with SANITIZE_SET, subject, cert, uri and dns;
///   the client's own field of that name is removed (xfcc.hpp);
/// - X-Forwarded-For and X-Forwarded-Proto are set, and Host is the backend's; X-Forwarded-Host is
///   the client's Host. The response is forwarded unchanged, except for hop-by-hop fields.
///
/// Its own responses: 404 without a route, 503 without a backend or if it accepts no connection,
/// 502 if it disconnects or violates HTTP, 504 if it does not respond in time, 413.
///
/// Metrics: `rw_dev_gateway_requests_total{code}` (the status of the response),
/// `rw_dev_gateway_handshakes_total`, `rw_dev_gateway_failed_handshakes_total{reason}`: `client_ca`
/// (the client's certificate does not chain to ca.crt, or is expired), `no_certificate` (the client
/// sent none), `server_refused` (the client rejected the gateway's certificate), `protocol`,
/// `closed` (the client closed the connection during the handshake), `unfinished` (it took too
/// long, or the gateway ended); `rw_dev_gateway_routes`, `rw_dev_gateway_certificate_changes_total`
/// (of the material in use), `rw_dev_gateway_certificate_failures_total`; and those of http::server
/// (`server="dev-gateway"`).
///
/// Everything happens on one executor (thread or strand), which is also the informers'.
class gateway {
 public:
  /// Binds and listens. Throws `std::runtime_error` that names the address on failure.
  gateway(boost::asio::any_io_executor executor, gateway_options with, gateway_sources from,
          gateway_environment in);
  ~gateway();
  gateway(const gateway&) = delete;
  gateway& operator=(const gateway&) = delete;

  /// Returns the listening address, with the port that was picked.
  boost::asio::ip::tcp::endpoint address() const;

  /// Serves until drained or cancelled; every connection is closed when it returns. If an informer
  /// ends earlier, it continues with the last known state.
  boost::asio::awaitable<void> run();

  /// Begins a graceful end: requests under way still get responses. Thread-safe.
  void drain();

  /// SHA-256 fingerprint of the certificate in use; empty before there is one.
  std::string certificate() const;

 private:
  class implementation;
  std::shared_ptr<implementation> impl_;
};

}  // namespace rw::dev_gateway
