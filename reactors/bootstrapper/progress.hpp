#pragma once

#include "core/clock.hpp"
#include "core/metrics.hpp"
#include "k8s/names.hpp"
#include "reactors/bootstrapper/sync.hpp"

#include <array>
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
/// `rw_bootstrapper_outdated_since_seconds` (Unix time; 0: all are current),
/// `rw_bootstrapper_differing_runtimes` (mode shadow: something would be written) and
/// `rw_bootstrapper_unmanaged_runtimes{reason}` (mode direct: nothing is written).
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
  /// Removes a runtime that is not managed.
  void leave(const k8s::object_key& key);
  /// Sets whether something would be written in mode shadow.
  void differs(const k8s::object_key& key, bool does);
  /// Sets why nothing is written in mode direct; empty: it is. True if it is another reason.
  bool unmanaged(const k8s::object_key& key, const std::string& reason);

  std::size_t managed() const noexcept { return entries_.size(); }
  std::size_t currents() const noexcept { return entries_.size() - waiting_.size(); }
  std::optional<time_point> outdated_since() const;

 private:
  void publish();

  core::metrics& registry_;
  core::gauge& managed_;
  core::gauge& current_;
  core::gauge& since_;
  core::gauge& differing_;
  std::unordered_map<k8s::object_key, std::optional<time_point>, k8s::object_key_hash> entries_;
  std::multiset<time_point> waiting_;  ///< the times of `entries_`
  std::unordered_set<k8s::object_key, k8s::object_key_hash> differing_keys_;
  std::unordered_map<k8s::object_key, std::string, k8s::object_key_hash> unmanaged_;
};

/// Revisions that runtimes have rejected. One is tried again after 10 minutes; one of an unknown
/// kind after 2 s, doubled each time in a row, since its definition may be on the way.
///
/// Kept in memory: a restart tries again at once. Not thread-safe.
class rejections {
 public:
  using time_point = core::time_point;

  /// The revisions that are not due.
  std::array<rejected_revision, all_units.size()> current(const k8s::object_key& key,
                                                          time_point now) const;

  /// Notes a unit's result: `desired` is the digest of its first revision.
  void update(const k8s::object_key& key, unit of, const std::string& desired,
              const unit_report& report, time_point now);

  /// When the first of them is due; none: there is none.
  std::optional<time_point> due(const k8s::object_key& key) const;

  void forget(const k8s::object_key& key) { entries_.erase(key); }

 private:
  struct entry {
    rejected_revision revision = {};
    time_point due = {};
    unsigned times = 0;
  };
  std::unordered_map<k8s::object_key, std::array<entry, all_units.size()>, k8s::object_key_hash>
      entries_;
};

}  // namespace rw::bootstrapper
