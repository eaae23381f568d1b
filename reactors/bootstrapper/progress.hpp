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

/// How far a change has come: of how many runtimes is it known that what they have is what is
/// wanted now, and since when is that not so of the one that waits longest.
///
/// Metrics: `rw_bootstrapper_managed_runtimes`, `rw_bootstrapper_current_runtimes`,
/// `rw_bootstrapper_outdated_since_seconds` (Unix time; 0: all are current) and
/// `rw_bootstrapper_differing_runtimes` (mode shadow: something would be written).
///
/// Not thread-safe; as many entries as there are RuntimeBootstrappers.
class progress {
 public:
  using time_point = std::chrono::system_clock::time_point;

  explicit progress(core::metrics& registry);

  /// A runtime that is written to; nothing is known of it yet, unless it is known already.
  void expect(const k8s::object_key& key, time_point now);
  /// What is wanted has changed; no news if it is outdated already.
  void outdated(const k8s::object_key& key, time_point now);
  /// What is wanted is in place.
  void current(const k8s::object_key& key);
  /// It is not written to any more.
  void leave(const k8s::object_key& key);
  /// In mode shadow: whether something would be written.
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
