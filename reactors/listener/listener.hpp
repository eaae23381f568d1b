#pragma once

#include "core/channel.hpp"
#include "core/http/server.hpp"
#include "reactors/listener/identity.hpp"
#include "reactors/shared/event_json.hpp"
#include "reactors/shared/events.hpp"
#include "tls/material.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace rw::listener {

/// An event, and who sent it.
struct received_event {
  rw::contract contract = rw::contract::v2;
  std::string runtime_id;  ///< common name of the sender's certificate
  watch_event event;       ///< its manager is the listener's component
};

/// May refuse an event (answered with 403, and not delivered): false refuses; one that throws
/// counts as an error of the listener's (500), and the sender tries again. Called on the
/// connection's executor, with a request whose body was read and a certificate that was verified as
/// far as the listener is configured to. Must not block.
using verify_function =
    std::function<bool(const http::request&, const watch_event&, const sender&)>;

struct listener_options {
  boost::asio::ip::tcp::endpoint address;  ///< port 0 picks a free one
  std::string component;                   ///< name in the path: that of the Watcher's manager
  verify_function verify;                  ///< none: every identified sender may send
  /// False while another process takes the events: 503 with Retry-After. None: this one always
  /// does.
  std::function<bool()> takes_events = {};
  std::size_t channel_capacity = 4096;
  /// How long a sender waits for room in the channel before it is told to come again (503).
  std::chrono::milliseconds wait = std::chrono::seconds(1);

  /// With them the listener terminates mutual TLS itself: their certificate is the server's, and
  /// clients must show one that chains to their CA. Without: plain HTTP behind a gateway.
  std::shared_ptr<tls::credentials> tls;
  /// Plain HTTP: whose X-Forwarded-Client-Cert is believed.
  std::string trusted_proxies = "127.0.0.0/8,::1";
  /// Plain HTTP: forwarded certificates must chain to this CA, if given.
  std::shared_ptr<tls::credentials> client_ca;

  http::server_limits limits = default_limits();

  static http::server_limits default_limits();
};

/// What a listener needs from its surroundings; all of it must outlive the listener.
struct listener_environment {
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
};

/// Receives events in KCP, for one component: `POST /v1/<component>/event` and
/// `/v2/<component>/event` with one event, `/events` with an array (our own form, offered to
/// senders by a header).
///
/// 200: the event is in the channel. 400: the body is no event, or the sender has no name. 401: the
/// sender could not be identified. 403: `verify` refused. 404: another path or component. 405:
/// another method. 413: more than 16 KiB for one event, 1 MiB for a batch. 500: `verify` threw. 503
/// with Retry-After: the channel is full, or another process takes the events. Of a batch each
/// element is judged alone; where not all were taken the answer is 207 with
/// `[{"index":3,"status":403}, ...]` for those that were not. Whatever is not answered with 200
/// counts as an error and is logged, at most so often, with the peer and the path.
///
/// Where it terminates mutual TLS, a certificate is checked against the CA of the moment, not just
/// that of its connection's beginning. Where that can't be done, since the certificate came with
/// intermediates, all connections are dropped, once, to be made anew.
///
/// Metrics: `watcher_listener_requests_total`, `watcher_listener_request_errors_total`,
/// `watcher_listener_inflight_requests`, `watcher_listener_request_duration`,
/// `watcher_listener_exceeding_size_limit_requests_total` (all with server_name="listener"), and
/// `watcher_listener_failed_verification_requests_total{server_name,request_uri_label}`.
class listener {
 public:
  /// Binds. Throws `std::runtime_error` that says which option can't be used.
  listener(boost::asio::any_io_executor executor, listener_options options,
           std::shared_ptr<core::channel<received_event>> events, listener_environment environment);
  ~listener();
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;

  boost::asio::ip::tcp::endpoint address() const;

  /// Serves until drained or cancelled, then closes the channel, so that its reader finds the end.
  boost::asio::awaitable<void> run();

  /// Begins an orderly end. Thread-safe.
  void drain();

 private:
  class endpoint;
  void drop_outdated();

  const boost::asio::any_io_executor executor_;
  std::shared_ptr<identifier> identifier_;
  std::unique_ptr<endpoint> endpoint_;
  std::unique_ptr<core::transport> transport_;
  std::unique_ptr<http::server> server_;
  std::shared_ptr<core::channel<received_event>> events_;
};

/// What `register_component` makes: the operator runs the one and reads the other.
struct registration {
  std::unique_ptr<listener> runnable;
  std::shared_ptr<core::channel<received_event>> events;
};

/// Registers an operator's component: gives a runnable listener, and the channel from which the
/// operator takes events to requeue what they name.
registration register_component(boost::asio::any_io_executor executor, listener_options options,
                                listener_environment environment);

}  // namespace rw::listener
