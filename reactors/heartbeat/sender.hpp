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
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::heartbeats {

/// The state of a watcher at one time, of which a heartbeat is made.
struct watcher_report {
  heartbeat content = {};          ///< the sender sets what is of itself: boot id, sequence, times
  core::duration delivery_time{};  ///< from acceptance to delivery, sum over all delivered events
  bool upstream_open = false;      ///< a circuit breaker holds back events to KCP
};

struct sender_options {
  core::duration interval = std::chrono::seconds(20);
  core::duration change_interval = std::chrono::seconds(5);     ///< at least, after a change
  std::chrono::milliseconds timeout = std::chrono::seconds(5);  ///< of a connection, of a response
  /// After a response that there is no receiver: at first, and at most.
  core::duration retry_base = std::chrono::minutes(1);
  core::duration retry_limit = std::chrono::minutes(10);
  std::size_t managers = 32;  ///< that get heartbeats, besides the manager's own component
};

/// All of it must outlive the sender.
struct sender_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
  http::client& upstream;  ///< to KCP's gateway; shared with the events
  std::function<watcher_report()> report;
  /// Managers whose listeners offer to take heartbeats.
  std::function<std::vector<std::string>()> managers;
  /// The manager has learned of its gaps up to that count, from a heartbeat that was answered 2xx:
  ///
  /// - a manager that takes heartbeats, from one to itself;
  /// - `heartbeat_component`, and the empty name (all managers), from one to KCP.
  ///
  /// Not called for managers that take no heartbeats: KCP reports their gaps to people, but does
  /// not pass them on, so they must be sent all events of their Watchers. The empty name concerns
  /// them, too; those that take heartbeats get its count with their own. Each further heartbeat has
  /// the counts again, for a receiver that drops one after its response. May be empty.
  std::function<void(const std::string& manager, std::uint64_t count)> on_gap_told = {};
  /// KCP has answered a heartbeat 2xx. May be empty.
  std::function<void()> on_reported = {};
};

/// Sends heartbeats to KCP: `POST /v2/<component>/event` with a body of `render_heartbeat`. The
/// component is `heartbeat_component`; other managers get one after it, one manager after another,
/// with their own watches and gaps only.
///
/// The first is sent within a second, the next ones every `interval`, shortened by up to 10 %, and
/// after `change_interval` if there is something to report: a watch, the source, the ledger, the
/// managers' file, the CA bundle or the certificate has changed, there is a new gap, delivery to
/// KCP has stopped or resumed, a probe came. After `reloaded` one is sent at once, four in a row
/// and then one a second at most, since KCP waits for it (watcher_installer/trust.hpp).
///
/// A heartbeat that fails is not repeated: the next one replaces it. Where there is no receiver
/// (404) heartbeats are sent after pauses that double; so for a manager that does not respond in
/// time, as others wait for it.
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

  /// Sends KCP one more heartbeat, after `run` was cancelled: it says until when this pod was live,
  /// by which the start of the pod that replaces it is judged (gap_detector.hpp).
  boost::asio::awaitable<void> finish();

  /// What the watcher has loaded (`heartbeat::managers_digest` and the next two) may have changed.
  void reloaded() { reloaded_.set(); }

  /// The watcher was probed: one of the next heartbeats, within `change_interval` where KCP takes
  /// it, names the nonce. Returns what it knows of the way to KCP.
  probe_report probed(std::string_view nonce);

 private:
  enum class outcome : std::uint8_t { delivered, failed, timed_out, unsupported, ended };

  /// A component that gets heartbeats.
  struct receiver {
    unsigned refusals = 0;  ///< in a row
    core::time_point not_before = core::time_point::min();
  };

  boost::asio::awaitable<void> send_to_kcp();
  boost::asio::awaitable<void> send_to_managers();
  boost::asio::awaitable<outcome> post(std::string component, std::string body);
  void prepare(watcher_report next);
  void note(std::string_view component, receiver& of, outcome sent);
  std::vector<std::string> due_managers();
  boost::asio::awaitable<bool> post_to_kcp();
  heartbeat content_for(std::string_view manager) const;
  void note_told(std::string_view manager, const heartbeat& sent) const;

  const boost::asio::any_io_executor executor_;
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
  receiver kcp_;
  std::string kcp_error_;           ///< of the latest heartbeat to KCP; empty: it was delivered
  std::deque<std::string> probes_;  ///< nonces, the latest at the end
  core::wake reloaded_;
  core::token_bucket reloads_{1, 4};
  bool new_probe_ = false;  ///< that no heartbeat names
  std::map<std::string, receiver> managers_;
  core::wake managers_turn_;
};

}  // namespace rw::heartbeats
