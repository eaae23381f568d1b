#pragma once

#include "core/clock.hpp"
#include "k8s/names.hpp"

#include <chrono>
#include <unordered_map>

namespace rw::bootstrapper {

/// Delays repairs of drift: the first is made at once, each further one in a row waits twice as
/// long as the one before, so that an actor which undoes repairs does not load a runtime without
/// bound. Not thread-safe; one entry for each runtime that had drifted.
class drift_backoff {
 public:
  using time_point = core::time_point;

  /// The second repair waits `base`, none longer than `limit`. A row ends when a runtime stays as
  /// it is for `quiet` and for twice as long as its last repair had to wait.
  struct settings {
    core::duration base = {};
    core::duration limit = {};
    core::duration quiet = std::chrono::seconds(10);
  };

  explicit drift_backoff(settings with) : with_(with) {}

  /// How long the next repair has to wait; zero: not at all.
  core::duration wait(const k8s::object_key& key, time_point now) const;
  /// Notes a repair. Returns the number of repairs in a row.
  unsigned repaired(const k8s::object_key& key, time_point now);
  void forget(const k8s::object_key& key) { entries_.erase(key); }

 private:
  struct entry {
    unsigned repairs = 0;
    time_point last = {};
  };

  core::duration wait_of(unsigned repairs) const;
  bool is_over(const entry& row, time_point now) const;

  const settings with_;
  std::unordered_map<k8s::object_key, entry, k8s::object_key_hash> entries_;
};

}  // namespace rw::bootstrapper
