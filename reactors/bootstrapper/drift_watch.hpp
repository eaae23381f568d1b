#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/task_group.hpp"
#include "k8s/client.hpp"
#include "k8s/informer.hpp"
#include "k8s/names.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace rw::bootstrapper {

/// All of it must outlive the watch.
struct drift_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
};

/// Hears of changes to what was applied to runtimes, by whoever: on each runtime it watches the
/// metadata of the labelled ConfigMaps, Secrets and Deployments of one namespace, and of the
/// labelled ClusterTrustBundles where they are served. That costs a runtime four streams on the
/// connection that its client has anyway.
///
/// Changes are told a little later, together, and not at all where all of them turned out to be own
/// writes (`expect`).
///
/// A runtime is watched through the client that it was given last, which is held as long; a pool of
/// clients therefore needs room for all runtimes.
///
/// Metrics: `rw_bootstrapper_watched_runtimes`, `rw_bootstrapper_heard_total{from}` (own, others).
///
/// Everything happens on one executor.
class drift_watch {
 public:
  /// `heard` is called, not from within a call of this class, so long after a change.
  drift_watch(boost::asio::any_io_executor executor, core::duration delay,
              std::function<void(const k8s::object_key&)> heard, drift_environment in);
  ~drift_watch();
  drift_watch(const drift_watch&) = delete;
  drift_watch& operator=(const drift_watch&) = delete;

  /// Watches a runtime, if it does not do so through this client and in this namespace already.
  /// Before `run`, and after its end, it does nothing.
  void follow(const k8s::object_key& key, std::shared_ptr<k8s::client> api, const std::string& ns);
  void leave(const k8s::object_key& key);
  /// These resourceVersions are of own writes.
  void expect(const k8s::object_key& key, const std::vector<std::string>& versions);

  /// Runs until cancelled; then all clients are given back.
  boost::asio::awaitable<void> run();

  std::size_t size() const noexcept { return followed_.size(); }

 private:
  struct followed;

  boost::asio::awaitable<void> watch(std::shared_ptr<followed> one);
  boost::asio::awaitable<void> take_changes(k8s::informer* from, followed* into);
  boost::asio::awaitable<void> tell_changes(followed* of);

  const boost::asio::any_io_executor executor_;
  const core::duration delay_;
  const std::function<void(const k8s::object_key&)> heard_;
  const drift_environment in_;
  core::gauge& watched_;
  core::counter& own_;
  core::counter& others_;
  std::unordered_map<k8s::object_key, std::shared_ptr<followed>, k8s::object_key_hash> followed_;
  std::unique_ptr<core::task_group> tasks_;  ///< while it runs
};

}  // namespace rw::bootstrapper
