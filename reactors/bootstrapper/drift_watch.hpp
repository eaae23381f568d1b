#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "core/metrics.hpp"
#include "core/task_group.hpp"
#include "k8s/client.hpp"
#include "k8s/names.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace rw::bootstrapper {

/// All of it must outlive the watch.
struct drift_environment {
  core::clock& clock;
  core::metrics& metrics;
  core::random_source random;
};

/// Identifies an object on a runtime in whichever version: "deployments.apps kyma-system/name".
std::string drift_key(const k8s::resource_type& type, const k8s::object_key& key);

/// An object set as a pass left it on a runtime.
struct watched_set {
  std::vector<k8s::resource_type> types = {};
  /// resourceVersion by drift_key.
  std::map<std::string, std::string> versions = {};
};

/// Detects changes of applied objects on runtimes: one metadata-only watch per kind and runtime,
/// by label, all on the connection of the runtime's client. No object is kept: an event counts as
/// drift if its resourceVersion is not the one that the last pass left, so what changed between
/// that pass and the watch's begin is detected, too. The callback comes `delay` after the first
/// change.
///
/// Holds the client that it was given last; a pool therefore needs capacity for all runtimes.
///
/// Metrics: `rw_bootstrapper_watched_runtimes`, `rw_bootstrapper_heard_total{from}` (own, others).
///
/// Single executor.
class drift_watch {
 public:
  drift_watch(boost::asio::any_io_executor executor, core::duration delay,
              std::function<void(const k8s::object_key&)> on_drift, drift_environment in);
  ~drift_watch();
  drift_watch(const drift_watch&) = delete;
  drift_watch& operator=(const drift_watch&) = delete;

  /// Watches a runtime, or updates what is expected there. Watches are only begun again where the
  /// client or the kinds are others. No effect unless `run` is under way.
  void watch(const k8s::object_key& key, std::shared_ptr<k8s::client> api, watched_set set);
  void unwatch(const k8s::object_key& key);

  /// Runs until cancelled; then all clients are released.
  boost::asio::awaitable<void> run();

  std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct entry;
  using entry_ptr = std::shared_ptr<entry>;

  boost::asio::awaitable<void> watch_runtime(entry_ptr runtime);
  boost::asio::awaitable<void> watch_kind(entry* runtime, k8s::resource_type type);
  boost::asio::awaitable<void> notify(entry* runtime);

  const boost::asio::any_io_executor executor_;
  const core::duration delay_;
  const std::function<void(const k8s::object_key&)> on_drift_;
  const drift_environment in_;
  core::gauge& watched_;
  core::counter& own_;
  core::counter& foreign_;
  std::unordered_map<k8s::object_key, entry_ptr, k8s::object_key_hash> entries_;
  std::unique_ptr<core::task_group> tasks_;  ///< while it runs
};

}  // namespace rw::bootstrapper
