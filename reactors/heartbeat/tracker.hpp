#pragma once

#include "rw/core/channel.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/controller/event_sink.hpp"
#include "rw/reactors/heartbeat/health.hpp"
#include "rw/reactors/shared/heartbeat.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <functional>
#include <string_view>
#include <vector>

namespace rw::heartbeats {

struct tracker_options {
  health_options health = {};
  /// Until silence is noticed, at most; whether a runtime has to report is looked up each fifth
  /// time.
  core::duration tick = std::chrono::seconds(1);
};

/// All of it must outlive the tracker.
struct tracker_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  k8s::event_sink& events;  ///< on the Kymas
  k8s::informer& kymas;
  /// The Kymas with a runtime id; usually one.
  std::function<std::vector<k8s::object>(std::string_view runtime_id)> kymas_of;
  /// Whether the watcher on a Kyma's runtime is to send heartbeats.
  std::function<bool(const k8s::object_key& kyma)> reports;
  /// A pod of the runtime says that it has loaded other files than before.
  std::function<void(const k8s::object_key& kyma)> on_reloaded;
  /// The runtime has become silent: its installation is to be checked.
  std::function<void(const k8s::object_key& kyma)> on_silent;
  /// Heartbeats of the runtime are expected from now on.
  std::function<void(const k8s::object_key& kyma)> on_expected;
};

/// Notices in KCP where the way of events is broken: reads heartbeats from a channel, and expects
/// them from each runtime whose watcher is to send them (health.hpp). A change of a runtime's
/// state is an event of its Kyma: WatcherLive, WatcherDegraded, WatcherSilent. EventsMissed names
/// the operators of which the watcher dropped something (losses.hpp); it tells them to resync
/// itself.
///
/// Metrics: `rw_runtimes{state}` (unknown, live, degraded, silent),
/// `rw_heartbeats_received_total{outcome}` (accepted; limited: dropped, as the runtime sends more
/// than four a second, and one more of a pod that has loaded other files; unknown: no Kyma has the
/// runtime id), `rw_runtime_losses_total`, `rw_probe_seconds` (from a probe to the heartbeat that
/// names it).
///
/// Everything happens on one executor, which is also the informer's.
class tracker {
 public:
  tracker(core::channel<received_heartbeat>& from, tracker_options options,
          tracker_environment environment);
  tracker(const tracker&) = delete;
  tracker& operator=(const tracker&) = delete;

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

  /// Takes the result of a probe.
  void probed(const k8s::object_key& kyma, probe_result result);

  const fleet_health& health() const noexcept { return health_; }

 private:
  boost::asio::awaitable<void> read();
  boost::asio::awaitable<void> keep_time();
  void receive(received_heartbeat received);
  void report(const fleet_health::change& change);
  void publish();
  void expect(moment at);
  bool is_expected(const k8s::object_key& kyma) const;
  moment now() const { return {environment_.clock.now(), environment_.clock.wall()}; }

  core::channel<received_heartbeat>& heartbeats_;
  const tracker_options options_;
  const tracker_environment environment_;
  std::array<core::gauge*, liveness_count> runtimes_;
  core::counter& accepted_;
  core::counter& limited_;
  core::counter& unknown_;
  core::counter& losses_;
  core::histogram& probe_seconds_;
  core::log_limit unknown_log_;
  core::log_limit loss_log_;
  fleet_health health_;
};

}  // namespace rw::heartbeats
