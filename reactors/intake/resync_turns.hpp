#pragma once

#include "rw/core/clock.hpp"
#include "rw/reactors/shared/resync.hpp"

#include <chrono>
#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <string>

namespace rw::listener {

/// Resyncs of many runtimes that are accepted and wait for the host. A tenant may send any number,
/// and each costs its host a look at everything of the runtime: so of each runtime one is handed
/// over in an `interval` at most. The first is due at once, later ones together at the interval's
/// end, with the gravest of their reasons. None is dropped.
///
/// A runtime's interval begins when its resync is taken, so the host may be as slow as it likes.
///
/// **Memory.** A runtime with a resync pending, or taken less than an `interval` ago, takes 0.25
/// KiB, or 0.5 KiB with the longest id; others nothing. So there are at most as many as runtimes
/// with certificates. 5,000 of them: 1.2 MiB.
///
/// `add` costs O(log n) comparisons of ids; `take` and `next` O(1), and O(log n) for each interval
/// that has ended. Pure: the caller has the clock, which does not go back. Not thread-safe.
class resync_turns {
 public:
  struct resync {
    std::string runtime_id;
    resync_reason reason;
  };

  explicit resync_turns(core::duration interval = std::chrono::minutes(1)) : interval_(interval) {}
  resync_turns(const resync_turns&) = delete;
  resync_turns& operator=(const resync_turns&) = delete;

  /// Accepts a resync. Returns false if one of the runtime is pending already, and stands for both.
  bool add(const std::string& runtime_id, resync_reason reason, core::time_point now);

  /// Takes the resync that is due for the longest time; nothing if none is due.
  std::optional<resync> take(core::time_point now);

  /// Makes all that is pending due at once, at the host's end.
  void end_intervals();

  /// When the next interval ends; `time_point::max()` if none is under way.
  core::time_point next() const noexcept {
    return resting_.empty() ? core::time_point::max() : resting_.front()->second.taken + interval_;
  }

  /// Number of resyncs that are not taken.
  std::size_t pending() const noexcept { return pending_; }
  /// Number of runtimes that are remembered.
  std::size_t runtimes() const noexcept { return runtimes_.size(); }

 private:
  struct entry {
    std::optional<resync_reason> pending = {};
    core::time_point taken = {};  ///< if it is one of `resting_`
  };
  using entry_map = std::map<std::string, entry>;

  void end_until(core::time_point now);

  const core::duration interval_;
  entry_map runtimes_;
  std::list<entry_map::iterator> due_;      ///< with a resync to take, oldest first
  std::list<entry_map::iterator> resting_;  ///< others: the interval is under way, oldest first
  std::size_t pending_ = 0;
};

}  // namespace rw::listener
