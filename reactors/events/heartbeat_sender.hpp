#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/http/client.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/steady_calendar.hpp"
#include "rw/core/token_bucket.hpp"
#include "rw/core/wake.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/reactors/shared/probe.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace rw::heartbeats {

/// The state of a watcher at one time, of which a heartbeat is made.
struct watcher_report {
  heartbeat content = {};          ///< the sender sets what is of itself: boot id, sequence, times
  core::duration delivery_time{};  ///< from acceptance to delivery, sum over all delivered events
  bool upstream_open = false;      ///< a circuit breaker holds back events to KCP
};

struct sender_options {
  core::duration interval = std::chrono::minutes(1);
  core::duration change_interval = std::chrono::seconds(5);     ///< at least, after a change
  std::chrono::milliseconds timeout = std::chrono::seconds(5);  ///< of a connection, of a response
  /// After a response that there is no receiver: at first, and at most.
  core::duration retry_base = std::chrono::minutes(1);
  core::duration retry_limit = std::chrono::minutes(10);
};

/// All of it must outlive the sender.
struct sender_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
  http::client& upstream;  ///< to KCP's gateway; shared with the events
  std::function<watcher_report()> report;
};

/// Sends heartbeats to KCP: `POST /v2/<heartbeat_component>/event` with a body of
/// `render_heartbeat`.
///
/// The first is sent within a second, the next ones every `interval`, shortened by up to 10 %, and
/// after `change_interval` if there is something to report: a watch, the source, the managers'
/// file, the CA bundle or the certificate has changed, something was dropped, delivery to KCP has
/// stopped or resumed, a probe came. After `reloaded` one is sent at once, four in a row and then
/// one a second at most, since KCP waits for it (watcher_installer/trust.hpp).
///
/// A heartbeat that fails is not repeated: the next one replaces it. Where there is no receiver
/// (404) heartbeats are sent after pauses that double.
///
/// Metric: `rw_heartbeats_total{outcome}` (delivered, failed, unsupported).
///
/// On one executor, the one of the client.
class sender {
 public:
  sender(boost::asio::any_io_executor executor, sender_options options,
         sender_environment environment);
  sender(const sender&) = delete;
  sender& operator=(const sender&) = delete;

  /// Runs until cancelled, which must be before the client closes.
  boost::asio::awaitable<void> run();

  /// Sends one more heartbeat, after `run` was cancelled and events are no longer delivered: it
  /// says how many were abandoned. `over`: connections that are still open, unlike those of events.
  boost::asio::awaitable<void> finish(http::client& over);

  /// What the watcher has loaded (`heartbeat::managers_digest` and the next two) may have changed.
  void reloaded() { reloaded_.set(); }

  /// The watcher was probed: one of the next heartbeats, within `change_interval` where KCP takes
  /// it, names the nonce. Returns what it knows of the way to KCP.
  probe_report probed(std::string_view nonce);

 private:
  enum class outcome : std::uint8_t { delivered, failed, unsupported, ended };

  boost::asio::awaitable<bool> send(http::client& over);
  boost::asio::awaitable<outcome> post(http::client& over, std::string body);
  void prepare(watcher_report next);
  void note(outcome sent);

  const sender_options options_;
  const sender_environment environment_;
  core::random_source random_;
  core::counter& delivered_;
  core::counter& failed_;
  core::counter& unsupported_;
  core::log_limit failure_log_;
  const std::string boot_id_;
  const core::time_point started_;
  const core::steady_calendar calendar_;
  watcher_report latest_;  ///< of the latest heartbeat
  // Of the latest heartbeat that KCP has.
  std::uint64_t reported_events_ = 0;
  core::duration reported_time_{};
  unsigned refusals_ = 0;                                  ///< in a row: there is no receiver
  core::time_point not_before_ = core::time_point::min();  ///< of the next heartbeat, therefore
  std::string error_;               ///< of the latest heartbeat; empty: it was delivered
  std::deque<std::string> probes_;  ///< nonces, the latest at the end
  core::wake reloaded_;
  core::token_bucket reloads_{1, 4};
  bool new_probe_ = false;  ///< that no heartbeat names
};

}  // namespace rw::heartbeats
