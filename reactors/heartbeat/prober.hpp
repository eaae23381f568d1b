#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/lru_map.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client_pool.hpp"
#include "rw/k8s/controller/controller.hpp"
#include "rw/reactors/heartbeat/health.hpp"
#include "rw/reactors/shared/most_runtimes.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::heartbeats {

struct prober_options {
  core::duration interval = std::chrono::minutes(10);         ///< of a runtime, less up to a tenth
  core::duration retry = std::chrono::seconds(30);            ///< after a failed probe, likewise
  core::duration retry_limit = std::chrono::minutes(2);       ///< doubled up to it
  std::chrono::milliseconds limit = std::chrono::seconds(8);  ///< of one probe; its webhook has 3 s
  std::size_t concurrent = 8;
  /// Probes in a second of all runtimes whose probes fail: thousands that are silent are probed
  /// less often each, up to `interval`. A heartbeat shows by itself that one is back.
  double failing_rate = 8;
};

/// Returns the pause after a failed probe, without jitter. `failures`: of the runtime in a row,
/// before this one; `failing`: runtimes whose last probe failed.
core::duration retry_pause(const prober_options& options, unsigned failures, std::size_t failing);

/// All of it must outlive the prober.
struct prober_environment {
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
  k8s::informer& kymas;
  k8s::client_pool& runtimes;
  /// The kubeconfig of a Kyma's runtime.
  std::function<k8s::result<std::string>(const k8s::object_key& kyma)> kubeconfig;
  /// Whether the watcher is installed on a Kyma's runtime: others are not probed for the moment.
  std::function<bool(const k8s::object_key& kyma)> installed;
  /// Gets the result of each probe.
  std::function<void(const k8s::object_key& kyma, probe_result)> on_result;
};

/// Returns what the response to a probe says: of the API server's error, or else of its warnings.
probe_result assess_probe(const std::optional<k8s::failure>& error,
                          const std::vector<std::string>& warnings, std::string_view nonce);

/// Probes a runtime once, within `limit`. `result.nonce` and `result.begun` are not set.
boost::asio::awaitable<probe_result> send_probe(k8s::client& runtime, std::string nonce,
                                                std::chrono::milliseconds limit);

/// Proves, runtime by runtime, that its API server calls the watcher, and that the watcher reaches
/// KCP (shared/probe.hpp): once it is installed, at `probe`, and every `interval`. A probe writes
/// nothing.
///
/// Metrics: those of k8s::controller with `controller="probe"`.
///
/// Everything happens on one executor, which is also the informer's.
class prober : private k8s::reconciler {
 public:
  prober(boost::asio::any_io_executor executor, prober_options options,
         prober_environment environment);
  prober(const prober&) = delete;
  prober& operator=(const prober&) = delete;

  /// Runs until cancelled.
  boost::asio::awaitable<void> run() { return controller_.run(); }

  /// Probes the Kyma's runtime soon.
  void probe(const k8s::object_key& kyma) { controller_.add(kyma); }
  /// The same within a minute, since many begin at once.
  void probe_later(const k8s::object_key& kyma);

 private:
  boost::asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key kyma) override;
  boost::asio::awaitable<probe_result> send(k8s::object_key kyma);

  const prober_options options_;
  const prober_environment environment_;
  /// In a row.
  core::lru_map<k8s::object_key, unsigned, k8s::object_key_hash> failures_{most_runtimes};
  k8s::controller controller_;
};

}  // namespace rw::heartbeats
