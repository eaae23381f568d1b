#pragma once

#include "rw/core/clock.hpp"
#include "rw/reactors/shared/heartbeat.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rw::heartbeats {

/// Operators that a watcher dropped something of, and tells to resync.
struct reported_losses {
  std::vector<std::string> managers = {};  ///< sorted; the empty name: operators not named
  std::uint64_t count = 0;

  explicit operator bool() const noexcept { return !managers.empty(); }
  /// Returns a sentence of at most 512 bytes.
  std::string message() const;
};

/// Reads from the heartbeats of one runtime what its watcher has lost since the one before: by how
/// much the count of each operator has grown since the same process' latest heartbeat. Of a process
/// that was not heard before, all of it is new if the process began after KCP's leader began to
/// listen. Otherwise the counts are where it begins: they may have been reported by an earlier
/// leader, and each loss is followed by a resync anyway.
///
/// Of the times in a heartbeat only their difference counts, the age of the process: the clocks of
/// two nodes may differ.
///
/// Remembers the 8 processes heard last, and of each the first 16 operators, the others as one: in
/// less than 3 KiB, whatever they report. A growth counts as 1000 at most. A value.
class loss_counter {
 public:
  /// Takes the next heartbeat, at its arrival. `listening`: since when heartbeats are heard.
  reported_losses receive(const heartbeat& now, core::time_point arrival,
                          core::time_point listening);

  static constexpr std::size_t max_processes = 8;
  static constexpr std::size_t max_operators = 16;
  static constexpr std::uint64_t max_growth = 1000;

 private:
  struct process {
    std::uint64_t boot = 0;  ///< hash of its id
    /// By hash of the operator's name.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> counts = {};
  };

  std::vector<process> processes_;  ///< the latest first
};

}  // namespace rw::heartbeats
