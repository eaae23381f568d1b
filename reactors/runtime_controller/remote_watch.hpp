#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/task_group.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/runtime_controller/drift_backoff.hpp"
#include "rw/reactors/runtime_controller/watched_set.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace rw {

struct remote_watch_options {
  std::string metrics = {};                               ///< their prefix: "rw_bootstrapper"
  core::duration delay = std::chrono::milliseconds(500);  ///< from a first change to the callback
  drift_backoff::options backoff = {};
};

/// All of it must outlive the watch.
struct remote_watch_environment {
  core::clock& clock;
  core::metrics& metrics;
  core::random_source random;
};

/// Detects foreign changes of objects that a reactor keeps on many clusters: metadata-only watches,
/// all on the connection of the cluster's client. It stores no objects: an event counts if its
/// resourceVersion differs from the one that the last reconcile left, so it also detects changes
/// between that and the watch's begin. An idle watch holds no coroutine and no decoder (with
/// HTTP/2).
///
/// While a cluster does not respond one of its watches tries to begin again, the others wait for
/// it. After some attempts the cluster is no longer watched, and the callback enqueues it: the
/// reconcile finds out whether it responds, and watches it then. Where only the watches fail, the
/// next reconciles wait, longer each time.
///
/// Holds the client that it received last; a pool therefore needs capacity for all clusters.
///
/// Where watches end without having brought anything (`k8s::watch_health`) the cluster does not
/// count as unchanged, and the callback enqueues it, more and more rarely.
///
/// Metrics: `<prefix>_watched_runtimes`, `<prefix>_suspect_watches`,
/// `<prefix>_observed_changes_total{from}` (own, others) and
/// `<prefix>_held_back_total`, the callbacks that were delayed.
///
/// Single executor.
class remote_watch {
 public:
  /// `wait`: the backoff's delay for the reconcile.
  using callback = std::function<void(const k8s::object_key&, core::duration wait)>;

  remote_watch(boost::asio::any_io_executor executor, remote_watch_options options,
               callback on_change, remote_watch_environment in);
  ~remote_watch();
  remote_watch(const remote_watch&) = delete;
  remote_watch& operator=(const remote_watch&) = delete;

  /// Watches a cluster, or updates its expected versions, after a reconcile. Restarts watches only
  /// if the client or the selections differ. No effect unless `run` is under way.
  void watch(const k8s::object_key& key, std::shared_ptr<k8s::client> api, watched_set set);
  /// The objects as the last reconcile has left them; empty if the cluster is not watched.
  watched_set expected(const k8s::object_key& key) const;
  /// Ends the watches of a cluster; its backoff stays.
  void unwatch(const k8s::object_key& key);
  void forget(const k8s::object_key& key);

  /// Returns true if the cluster is as the last reconcile has left it: all of its watches run, from
  /// a complete list on, and have shown no change.
  bool is_unchanged(const k8s::object_key& key) const;

  /// Returns true if a change was detected that no reconcile has followed yet.
  bool changed(const k8s::object_key& key) const { return changed_.contains(key); }

  /// Records the result of a reconcile of any cause: whether it repaired drift, and whether it
  /// wrote anything. Returns the number of repairs in a row.
  unsigned reconciled(const k8s::object_key& key, bool repaired, bool wrote);

  /// Runs until cancelled; then releases all clients.
  boost::asio::awaitable<void> run();

 private:
  struct kind;
  class stream;
  struct entry;
  using entry_ptr = std::shared_ptr<entry>;

  boost::asio::awaitable<void> watch_cluster(entry_ptr cluster);
  boost::asio::awaitable<void> begin(stream* stream);
  const kind& kind_of(const watched_set::watch& watch);
  boost::asio::awaitable<void> notify();
  void note(entry& cluster, watched_set::version seen);
  void lose(entry& cluster);
  void check(entry& cluster);
  void publish() { watched_.Set(static_cast<double>(entries_.size())); }

  const boost::asio::any_io_executor executor_;
  const remote_watch_options options_;
  const callback on_change_;
  const remote_watch_environment environment_;
  core::gauge& watched_;
  core::gauge& suspect_;
  core::counter& own_;
  core::counter& foreign_;
  core::counter& held_back_;
  drift_backoff backoff_;
  drift_backoff losses_;    ///< of the watches of a cluster
  std::deque<kind> kinds_;  ///< all that were ever watched
  std::unordered_map<k8s::object_key, entry_ptr, k8s::object_key_hash> entries_;
  /// Clusters with a change that no reconcile has followed yet.
  std::unordered_set<k8s::object_key, k8s::object_key_hash> changed_;
  /// Clusters with pending changes, each with the time at which they are compared.
  std::deque<std::pair<core::time_point, std::weak_ptr<entry>>> due_;
  core::timer* alarm_ = nullptr;             ///< of `notify`
  std::unique_ptr<core::task_group> tasks_;  ///< while it runs
};

}  // namespace rw
