#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/http/client.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/reactors/events/dispatch_metrics.hpp"
#include "rw/reactors/events/schedule.hpp"
#include "rw/reactors/shared/event_json.hpp"
#include "rw/reactors/shared/events.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace rw::dispatch {

struct dispatch_options {
  /// Over HTTP/1.1 every request under way takes a connection. One manager may have half of them,
  /// so that those that hang leave some for the others.
  dispatch_options() { upstream.limits.connections = 8; }

  http::client_options upstream;  ///< where KCP's gateway is
  dispatch::schedule_options schedule;
  std::size_t requests = 64;       ///< at once, as far as the connection lets them
  std::size_t batch_events = 512;  ///< in one request, even if the receiver would take more
};

/// What a dispatcher needs from its surroundings; all of it must outlive the dispatcher.
struct dispatch_environment {
  core::clock& clock;
  core::watchdog& watchdog;
  core::transport& transport;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
  delivery& objects;  ///< what is to be told
};

/// What a dispatcher has done so far, and what it has not done yet.
struct dispatch_statistics {
  dispatch_counts counts = {};
  core::duration oldest{};  ///< time since the latest change of the oldest undelivered event
  core::duration
      oldest_other{};  ///< likewise, of managers that refuse none while they accept others
  std::string oldest_manager = {};  ///< that `oldest_other` is of; empty: none
  std::optional<rejected_event> refused =
      {};                      ///< of the manager with the oldest event of those that do
  bool upstream_open = false;  ///< the way to KCP is broken: only probes are sent
};

/// Takes events by `offer`, changes of observed objects and resyncs, and sends them to KCP
/// (contracts: `POST /v2/<manager>/event`). A resync is an empty batch with the header
/// `watch-resync: <reason>` (shared/resync.hpp).
///
/// Events are coalesced: as long as one waits or is in flight, further ones for the same object
/// become one, which is sent after it. Where the receiver offers it (header `watch-event-batch:
/// <events>` in its answers) what has gathered is sent as one request; nothing ever waits for a
/// batch to fill. What is sent when, and what is lost when there is too much, is the schedule's
/// decision (schedule.hpp); what operators have to be told is that of `delivery`. An event that is
/// lost raises a resync there. A request says in a header how old its oldest event is
/// (`event_age_header`).
///
/// Metrics: `rw_dispatch_events_total{outcome}` (delivered, coalesced, retried, rejected,
/// overflow, abandoned), `rw_resyncs_total{outcome}` (taken, failed, unclear: of what may be no
/// listener), `rw_resyncs_owed` (operators), `rw_dispatch_undelivered_events{state}` (known,
/// delayed), `rw_dispatch_oldest_event_seconds`, `rw_dispatch_open_circuits`,
/// `rw_dispatch_batch_events`, `rw_dispatch_delivery_seconds`, by manager
/// `rw_dispatch_manager_events`, `rw_dispatch_manager_oldest_event_seconds` and
/// `rw_dispatch_manager_failures_total`, and the existing `watcher_kcp_requests_total` and
/// `watcher_failed_kcp_total{error_reason="failed-request"}`. Gauges and histograms are a second
/// old at most.
///
/// On one executor (thread or strand).
class dispatcher {
 public:
  dispatcher(boost::asio::any_io_executor executor, dispatch_options options,
             dispatch_environment environment);
  ~dispatcher();
  dispatcher(const dispatcher&) = delete;
  dispatcher& operator=(const dispatcher&) = delete;

  /// Runs until `close` was called and all that was accepted is delivered (or given up), or until
  /// cancelled: then what is left is counted and logged as abandoned.
  boost::asio::awaitable<void> run();

  /// Takes an event; `pump` sends it.
  void offer(watch_event event);
  /// Sends what there is to send. To be called after `offer`, and when observed objects have
  /// changed.
  void pump();
  /// Nothing more is offered. Changes that a list would bring again are not sent from now on.
  void close();

  /// Uses new connections from now on, because the certificates changed.
  void renew_connections() { client_.retire(); }

  /// Events that are known and not delivered; after `run`, those that it left so.
  std::size_t pending() const noexcept { return schedule_.size() + abandoned_; }
  dispatch_statistics statistics() const;

  /// The connections to KCP, for requests of others; closed when `run` ends, before which those
  /// must have ended.
  http::client& upstream() noexcept { return client_; }

 private:
  struct worker;

  std::size_t concurrency(bool multiplexed) const;
  boost::asio::awaitable<void> keep_time();
  boost::asio::awaitable<void> work(worker* self);
  void start(std::unique_ptr<schedule::batch> load);
  bool send_at_once(worker& self);
  void ended(worker& self, boost::system::error_code error);
  core::time_point publish(core::time_point time);
  void abandon();
  void write_request(worker& self) const;
  void read_response(worker& self) const;
  void note_sender(const worker& self);
  void finish(worker& self);
  void fail(worker& self, delivery_failure cause, boost::system::error_code error);

  const boost::asio::any_io_executor executor_;
  const dispatch_options options_;
  core::clock& clock_;
  core::logger& log_;
  core::log_limit page_log_;
  delivery& objects_;
  dispatch_metrics metrics_;
  schedule schedule_;
  http::client client_;
  std::list<worker> workers_;
  std::vector<worker*> idle_;
  const std::unique_ptr<core::timer> timer_;
  core::time_point due_ = core::time_point::max();        ///< what `timer_` is set to
  core::time_point published_ = core::time_point::min();  ///< when the gauges were set
  bool running_ = false;
  bool input_ended_ = false;
  std::set<std::string> page_managers_;  ///< whose last 2xx was a web page; some of them
  std::size_t abandoned_ = 0;            ///< number of events that were lost at the end
  std::exception_ptr failure_;           ///< what ends `run`
  core::task_group tasks_;
};

}  // namespace rw::dispatch
