#pragma once

#include "core/clock.hpp"
#include "k8s/names.hpp"

#include <chrono>
#include <cstddef>
#include <unordered_map>

namespace rw::bootstrapper {

/// How fast drift is repaired. The first time at once; but where somebody else changes again and
/// again what was put right, each repair in a row waits twice as long as the one before, so that
/// two who disagree do not load a runtime without end.
///
/// Not thread-safe; as many entries as there are runtimes that had drifted.
class drift_pace {
 public:
  using time_point = core::time_point;

  /// The second repair waits `base`; none longer than `limit`. A runtime that stays as it is for
  /// `quiet`, and for twice as long as its last repair was made to wait, begins anew.
  struct settings {
    core::duration base = {};
    core::duration limit = {};
    core::duration quiet = std::chrono::seconds(10);
  };

  explicit drift_pace(settings with) : with_(with) {}

  /// How long what was heard of has to wait; zero: not at all.
  core::duration wait(const k8s::object_key& key, time_point now) const;
  /// Notes a repair; how many that makes in a row.
  unsigned repaired(const k8s::object_key& key, time_point now);
  void forget(const k8s::object_key& key) { entries_.erase(key); }
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct entry {
    unsigned repairs = 0;
    time_point last = {};
  };

  core::duration wait_of(unsigned repairs) const;
  bool is_over(const entry& one, time_point now) const;

  const settings with_;
  std::unordered_map<k8s::object_key, entry, k8s::object_key_hash> entries_;
};

}  // namespace rw::bootstrapper
