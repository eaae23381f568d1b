#pragma once

#include "core/metrics.hpp"
#include "k8s/names.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace rw::bootstrapper {

/// How many managed runtimes are current, and since when the longest waiting one is not.
///
/// Metrics: `rw_bootstrapper_managed_runtimes`, `rw_bootstrapper_current_runtimes`,
/// `rw_bootstrapper_outdated_since_seconds` (Unix time; 0: all are current) and
/// `rw_bootstrapper_differing_runtimes` (mode shadow: something would be written).
///
/// Not thread-safe.
class progress {
 public:
  using time_point = std::chrono::system_clock::time_point;

  explicit progress(core::metrics& registry);

  /// Adds a managed runtime, as outdated; no effect if it is known.
  void expect(const k8s::object_key& key, time_point now);
  /// Marks a runtime as outdated since `now`, unless it is already.
  void outdated(const k8s::object_key& key, time_point now);
  void current(const k8s::object_key& key);
  /// Removes a runtime that is no longer managed.
  void leave(const k8s::object_key& key);
  /// Sets whether something would be written in mode shadow.
  void differs(const k8s::object_key& key, bool does);

  std::size_t managed() const noexcept { return entries_.size(); }
  std::size_t currents() const noexcept { return entries_.size() - waiting_.size(); }
  std::optional<time_point> outdated_since() const;

 private:
  void publish();

  core::gauge& managed_;
  core::gauge& current_;
  core::gauge& since_;
  core::gauge& differing_;
  std::unordered_map<k8s::object_key, std::optional<time_point>, k8s::object_key_hash> entries_;
  std::multiset<time_point> waiting_;  ///< the times of `entries_`
  std::unordered_set<k8s::object_key, k8s::object_key_hash> differing_keys_;
};

}  // namespace rw::bootstrapper
