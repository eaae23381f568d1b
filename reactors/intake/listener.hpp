#pragma once

#include "rw/core/channel.hpp"
#include "rw/core/http/server.hpp"
#include "rw/core/thread_owner.hpp"
#include "rw/core/wake.hpp"
#include "rw/reactors/intake/fair_queue.hpp"
#include "rw/reactors/intake/identity.hpp"
#include "rw/reactors/intake/resync_turns.hpp"
#include "rw/reactors/shared/event_json.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/tls/material.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw::listener {

/// Returns false to reject an event (403, not delivered). An exception counts as an error of the
/// listener (500), and the sender retries. Called on the connection's executor, with a request
/// whose body is complete, and with a certificate verified as far as the listener's options demand.
/// Must not block. For a heartbeat or a resync, the event has a manager and nothing else.
using verify_function =
    std::function<bool(const http::request&, const watch_event&, const event_sender&)>;

struct listener_options {
  boost::asio::ip::tcp::endpoint address = {};  ///< port 0 picks a free one
  std::string component = {};                   ///< name in the path: that of the Watcher's manager
  verify_function verify = {};                  ///< null: every identified sender may send
  /// False while another process takes the events: 503 with Retry-After, and the end of the
  /// connection, so that the next one may lead to that process. Null: always true.
  std::function<bool()> takes_events = {};
  /// Bounds of the queue in front of the channel (fair_queue.hpp): pending events of one runtime,
  /// and of all.
  std::size_t runtime_events = 1024;
  std::size_t events = 18'000;
  /// After `drain`, requests under way may take so long; then their connections are closed.
  std::chrono::milliseconds drain_requests = std::chrono::seconds(10);

  /// Accepts resyncs, and offers so: the host looks at everything of a runtime when it gets one
  /// (`received_event::resync`). Otherwise the senders learn that it does not.
  bool resyncs = false;

  /// Where heartbeats go; null: they are rejected. A heartbeat without room in it gets 503: the
  /// next one replaces it.
  std::shared_ptr<core::channel<received_heartbeat>> heartbeats = {};
  /// Heartbeats are accepted at the path of this component alone.
  std::string heartbeat_component = std::string(rw::heartbeat_component);

  /// With them the listener terminates mutual TLS itself: their certificate is the server's, and
  /// client certificates must chain to their CA. Without: plain HTTP behind a gateway.
  std::shared_ptr<tls::credentials> tls = {};
  /// Plain HTTP: the peers whose X-Forwarded-Client-Cert is trusted.
  std::string trusted_proxies = "127.0.0.0/8,::1";
  /// Plain HTTP: forwarded certificates must chain to this CA, if given.
  std::shared_ptr<tls::credentials> client_ca = {};

  http::server_limits limits = default_limits();

  static http::server_limits default_limits();
};

/// Dependencies of a listener; all of it must outlive the listener.
struct listener_environment {
  core::clock& clock;
  core::optional_watchdog watchdog = {};
  core::logger& log;
  core::metrics& metrics;
};

/// Receives events in KCP, for one component: `POST /v2/<component>/event` with one event,
/// `/events` with an array (an extension of this project, offered to senders by a header). Accepts
/// heartbeats of the senders, if it is told where they go: `POST /v2/<heartbeat_component>/event`
/// with the content type of `shared/heartbeat.hpp`.
///
/// Accepts resyncs, if the host opts in: `POST /v2/<component>/events` with an empty array and the
/// header of `shared/resync.hpp`. A runtime may send any number; one a minute reaches the channel,
/// with the gravest reason of those that it stands for (resync_turns.hpp), and none is dropped,
/// also where the queue is full. Resyncs and events take turns.
///
/// Events reach the channel through a `fair_queue`, so that a runtime that floods delays and fills
/// its own part alone. The channel holds few events (`channel_capacity`), as what is in it can't be
/// overtaken; a host that needs more at hand moves them on.
///
/// 200: the event is in the queue or the channel, in the memory of this process; or an equal one of
/// the same runtime is in the queue. An event that the host has not taken when the process ends is
/// lost, so a host reconciles everything when it starts. The same holds for a resync.
/// 400: the body is not an event, the sender has no name, or a resync's reason is malformed.
/// 401: the sender could not be identified. 403: `verify` rejects it. 404: another path or
/// component, or a resync that the host did not opt in to. 405: another method. 413: more than 16
/// KiB for one event, 1 MiB for a batch. 415: an event at the path of heartbeats. 500: `verify`
/// threw. 503 with Retry-After: the queue has no room for this runtime, or another process takes
/// the events. Each element of a batch is handled alone; if not all are accepted the response is
/// 207 with `[{"index":3,"status":403}, ...]` for the others. A response other than 200 counts as
/// an error and is logged, rate-limited, with the peer and the path; not so a 404 to a heartbeat or
/// a resync.
///
/// If it terminates mutual TLS, it verifies a certificate with the current CA, not just with that
/// of the connection's beginning. If it can't, since the certificate came with intermediates, it
/// drops all connections, once, so that the clients reconnect.
///
/// Its executor is one thread or a strand; two threads in it at once end the process
/// (core/thread_owner.hpp).
///
/// Metrics: `watcher_listener_requests_total`, `watcher_listener_request_errors_total`,
/// `watcher_listener_inflight_requests`, `watcher_listener_request_duration` (of the latest),
/// `watcher_listener_exceeding_size_limit_requests_total` (all with server_name="listener"), and
/// `watcher_listener_failed_verification_requests_total{server_name,request_uri_label}`;
/// `rw_listener_request_seconds`; `rw_event_delivery_seconds`, the age of the oldest event of each
/// request, as its sender states it; `rw_listener_pending_events`, `rw_listener_channel_events`,
/// `rw_listener_pending_seconds`, `rw_listener_coalesced_events_total`,
/// `rw_listener_abandoned_events_total`, and `rw_listener_rejected_events_total{reason}` with
/// `share` (the runtime has its maximum pending), `full` (the queue is full for a runtime with so
/// many pending) and `closed` (the channel is); `rw_listener_resyncs_total{outcome}`: handed_over,
/// merged (with a pending one of the runtime).
class listener final : private http::handler {
 public:
  /// Events that the channel holds at most.
  static constexpr std::size_t channel_capacity = 16;

  /// Binds. Throws `std::runtime_error` that names the invalid option.
  listener(boost::asio::any_io_executor executor, listener_options options,
           listener_environment environment);
  ~listener() override;
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;

  boost::asio::ip::tcp::endpoint address() const { return server_->address(); }

  /// The host reads it, in any threads. A host that closes it ends what the listener accepts.
  const std::shared_ptr<core::channel<received_event>>& events() const { return events_; }

  /// Serves until drained or cancelled, then closes the channel, so that its reader reaches the
  /// end. If drained, it first waits until the channel has taken all pending events, and resyncs
  /// before their minute has ended; a host whose reader may hang cancels it at a deadline. What is
  /// then pending is counted and logged.
  boost::asio::awaitable<void> run();

  /// Begins a graceful end. Thread-safe.
  void drain();

  /// Number of accepted events and resyncs that the channel has not taken. On the listener's
  /// executor, or when `run` has ended.
  std::size_t pending() const {
    const core::thread_owner::scope here(owner_);
    return pending_events() + resyncs_.pending();
  }

 private:
  struct counters;
  struct exchange;
  struct element;

  std::size_t body_limit(const http::request& head) const override;
  boost::asio::awaitable<void> handle(http::request& from, http::response& into) override;
  void refused(unsigned status) noexcept override;

  void receive(exchange& current);
  void accept(exchange& current, element& of);
  bool identify(exchange& current);
  bool read(exchange& current);
  void judge(exchange& current, element& of);
  void receive_heartbeat(exchange& current);
  void receive_resync(exchange& current);
  bool is_verified(exchange& current);
  void log_event(const exchange& current, const watch_event& event);
  std::size_t pending_events() const noexcept { return queue_.size() + (next_ ? 1 : 0); }
  void fill_channel();
  bool take_resync(core::time_point now);
  bool take_event(core::time_point now);
  void send(received_event&& event);
  boost::asio::awaitable<void> serve();
  boost::asio::awaitable<void> hand_over();
  void respond(exchange& current);
  void finish(exchange& current);
  void refuse(exchange& current, unsigned status, std::string_view reason);
  void log_refusal(const exchange& current, std::string_view reason, std::size_t events);
  void drop_outdated();

  const core::thread_owner owner_{"a listener"};
  const boost::asio::any_io_executor executor_;
  const std::string component_;
  const verify_function verify_;
  const std::function<bool()> takes_events_;
  const std::chrono::milliseconds drain_requests_;
  std::vector<wire_result> memory_;  ///< of the events of the request before
  fair_queue queue_;
  const bool takes_resyncs_;
  resync_turns resyncs_;
  bool turn_of_events_ = false;         ///< a resync was the latest to leave
  std::optional<received_event> next_;  ///< waits for room in the channel
  core::wake next_set_;                 ///< set with `next_`, and at the end
  bool served_ = false;                 ///< no further event will be accepted
  const std::shared_ptr<core::channel<received_event>> events_;
  const std::shared_ptr<core::channel<received_heartbeat>> heartbeats_;
  const std::string heartbeat_component_;
  listener_environment environment_;
  core::own_watchdog own_watchdog_;
  const std::shared_ptr<identifier> identifier_;
  const std::unique_ptr<counters> counters_;
  core::log_limit refusal_log_;
  core::log_limit failure_log_;
  core::deadline requests_end_;
  core::deadline interval_end_;  ///< the next one's of `resyncs_`
  std::unique_ptr<core::transport> transport_;
  std::unique_ptr<http::server> server_;
};

/// Result of `register_component`: the operator runs one and reads the other.
struct registration {
  std::unique_ptr<listener> runnable;
  std::shared_ptr<core::channel<received_event>> events;
};

/// Registers an operator's component: returns a runnable listener, and the channel from which the
/// operator receives the events whose objects it requeues.
registration register_component(boost::asio::any_io_executor executor, listener_options options,
                                listener_environment environment);

}  // namespace rw::listener
