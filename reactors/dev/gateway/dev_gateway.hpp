#pragma once

#include "core/clock.hpp"
#include "core/http/server.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/watchdog.hpp"
#include "k8s/cache/informer.hpp"
#include "k8s/objects/names.hpp"

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

/// A Service's port, as a VirtualService's destination names it.
struct service_port {
  std::string name;
  std::string ns;
  std::uint16_t port = 0;

  friend bool operator==(const service_port&, const service_port&) = default;
};

/// Where a Service is reached now; none: it has no backend. Asked for each request, on the
/// gateway's executor. A Service with several backends should give them in turn: where one does not
/// accept connections, or answers 503, the gateway asks again, and tries another one if it gets it,
/// as Istio's retries do by default (retryOn: connect-failure, refused-stream, 503).
using service_resolver =
    std::function<std::optional<boost::asio::ip::tcp::endpoint>(const service_port& service)>;

struct options {
  boost::asio::ip::tcp::endpoint address = {boost::asio::ip::address_v4::loopback(), 0};
  k8s::object_key secret = {"istio-system", "klm-istio-gateway"};  ///< tls.crt, tls.key, ca.crt
  http::server_limits limits = {};
  std::size_t request_bytes = 2u << 20;  ///< of one body; larger ones are answered with 413
  std::size_t answer_bytes = 2u << 20;   ///< of one body; larger ones are answered with 502
  std::size_t connections = 32;          ///< at once to each backend
  std::size_t backends = 64;             ///< whose connections are kept
  std::chrono::milliseconds connect = std::chrono::seconds(2);
  std::chrono::milliseconds exchange = std::chrono::seconds(15);  ///< then 504
};

/// What the gateway reads of the control plane, kept by informers that others may share and
/// somebody else runs. All of it must outlive the gateway.
struct sources {
  k8s::informer& virtual_services;  ///< networking.istio.io/v1beta1
  k8s::informer& secrets;           ///< Secrets with data; may hold others
};

/// All of it must outlive the gateway.
struct environment {
  service_resolver services;
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
};

/// Does for a control plane without Istio what its ingress gateway does there: terminates TLS 1.3,
/// requires client certificates, routes by VirtualServices, and tells who the client is.
///
/// Certificate, key and client CAs are the Secret's. When it changes, new handshakes use the new
/// ones, and connections that are there go on. Until the Secret has been usable once the gateway
/// does not accept connections: they wait in the system's queue. One that is unusable later, or
/// gone, is logged, and the material of before stays in use.
///
/// A request goes where the longest `match.uri.prefix` of its path says, among the VirtualServices
/// one of whose `hosts` is the request's ("*" and "*.domain" too; without hosts: every one's). It
/// goes as it came, over HTTP/1.1 and to one backend, except for hop-by-hop fields (RFC 9110,
/// section 7.6.1), and:
/// - X-Forwarded-Client-Cert is what Envoy writes with SANITIZE_SET, subject, cert, uri and dns;
///   what the client sent under that name is gone (xfcc.hpp);
/// - X-Forwarded-For and X-Forwarded-Proto are set, and Host is the backend's, which stands in
///   X-Forwarded-Host as the client sent it.
/// The answer comes back as it is, but for hop-by-hop fields.
///
/// Its own answers: 404 without a route, 503 without a backend or where it accepts no connection,
/// 502 where it breaks off or answers no HTTP, 504 where it does not answer in time, 413.
///
/// Metrics: `rw_dev_gateway_requests_total{code}` (the status it answered with),
/// `rw_dev_gateway_handshakes_total`, `rw_dev_gateway_failed_handshakes_total{reason}`: `client_ca`
/// (the client's certificate does not chain to ca.crt, or is expired), `no_certificate` (the client
/// showed none), `server_refused` (the client refused the gateway's certificate), `protocol`,
/// `closed` (the client went away in the middle), `unfinished` (it took too long, or the gateway
/// ended); `rw_dev_gateway_routes`, `rw_dev_gateway_certificate_changes_total` (of the material in
/// use), `rw_dev_gateway_certificate_failures_total`; and those of http::server
/// (`server="dev-gateway"`).
///
/// Everything happens on one executor (thread or strand), which is also the informers'.
class gateway {
 public:
  /// Binds and listens. Throws `std::runtime_error` that names the address if that can't be done.
  gateway(boost::asio::any_io_executor executor, options with, sources from, environment in);
  ~gateway();
  gateway(const gateway&) = delete;
  gateway& operator=(const gateway&) = delete;

  /// Where it listens, with the port that was picked.
  boost::asio::ip::tcp::endpoint address() const;

  /// Serves until drained or cancelled; every connection is closed when it returns. Where an
  /// informer ends before, it goes on with what it knows.
  boost::asio::awaitable<void> run();

  /// Begins an orderly end: what has begun is answered. Thread-safe.
  void drain();

  /// SHA-256 fingerprint of the certificate in use; empty before there is one.
  std::string certificate() const;

 private:
  class implementation;
  std::shared_ptr<implementation> impl_;
};

}  // namespace rw::dev_gateway
