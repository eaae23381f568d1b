#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/objects/names.hpp"

#include <chrono>
#include <unordered_map>

namespace rw {

/// Delays reconciles that changes on a cluster cause: the first comes at once, each further one in
/// a row waits twice as long as the one before, so that an actor which undoes repairs, or changes
/// objects for no reason, does not cost a cluster's share without bound. Not thread-safe; one entry
/// for each cluster with such a row.
class drift_backoff {
 public:
  using time_point = core::time_point;

  struct options {
    core::duration base = std::chrono::milliseconds(500);  ///< before the second one
    core::duration limit = std::chrono::minutes(10);       ///< where repairs are undone
    /// If nothing had to be repaired; shorter, so that the next repair is not late.
    core::duration idle_limit = std::chrono::seconds(16);
    /// A row ends when nothing changes for so long, and for twice as long as it waited last.
    core::duration quiet = std::chrono::seconds(10);
  };

  explicit drift_backoff(options with) : options_(with) {}

  /// Returns the delay of the next reconcile; zero: none.
  core::duration wait(const k8s::object_key& key, time_point now) const;
  /// Records a reconcile that a change has caused. Returns the number of repairs in a row.
  unsigned noted(const k8s::object_key& key, bool repaired, time_point now);
  void forget(const k8s::object_key& key) { rows_.erase(key); }

 private:
  struct row {
    unsigned repairs = 0;
    unsigned idle = 0;  ///< since the last repair
    time_point last = {};
  };

  core::duration wait_of(const row& of) const;
  bool is_over(const row& of, time_point now) const;

  const options options_;
  std::unordered_map<k8s::object_key, row, k8s::object_key_hash> rows_;
};

}  // namespace rw
