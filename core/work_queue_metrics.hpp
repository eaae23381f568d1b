#pragma once

#include "core/clock.hpp"
#include "core/metrics.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace rw::core::work_queue_detail {

/// Durations by powers of ten from 10 ns to 1,000 s, as client-go has them, until published.
struct tally {
  void add(duration each) noexcept {
    std::size_t bucket = 0;
    for (duration bound(10); each > bound && bucket < 12; bound *= 10) ++bucket;
    ++counts[bucket];
    sum += each;
  }
  void publish();

  histogram& into;
  std::vector<double> counts = std::vector<double>(13);
  duration sum{0};
};

/// What a queue holds at one moment.
struct figures {
  std::array<std::size_t, 3> depth;  ///< by priority
  duration unfinished{0};            ///< age of all keys that are being processed, added up
  duration longest{0};               ///< age of the oldest of them
};

/// The metrics of one work_queue, counted on its executor and published from time to time.
struct series {
  series(metrics& registry, const labels& own);
  void publish(const figures& now);

  counter &retries, &refused_full, &refused_shut_down, &adds;
  gauge &unfinished, &longest;
  tally waited, worked;
  std::array<gauge*, 3> depth;
  std::uint64_t added = 0;  ///< since the last publication, as the tallies
};

}  // namespace rw::core::work_queue_detail
