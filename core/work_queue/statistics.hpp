#pragma once

#include "core/metrics.hpp"
#include "core/work_queue/node.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace rw::core::work_queue_detail {

/// Durations by powers of ten from 10 ns to 1,000 s, as client-go has them, kept as plain integers
/// until they are published. Where the clock is read seldom many durations in a row are the same;
/// so they are sorted in only when another one comes.
class tally {
 public:
  /// Not negative.
  void add(duration::rep nanoseconds) noexcept {
    const auto value = static_cast<std::uint64_t>(nanoseconds);
    if (value != latest_) [[unlikely]]
      change(value);
    ++times_;
  }

  /// Publishes, and empties, it. Returns how many durations there were.
  std::uint64_t publish(histogram& into);

 private:
  static constexpr std::size_t buckets = 13;

  /// Sorts the latest in, and begins with another.
  void change(std::uint64_t value) noexcept;

  std::uint64_t latest_ = 0;
  std::uint64_t times_ = 0;
  std::uint64_t sum_ = 0;
  std::array<std::uint64_t, buckets> counts_{};
};

/// What happened since the last publication.
struct counts {
  std::uint64_t retried = 0;
  std::uint64_t refused_full = 0;
  std::uint64_t refused_shut_down = 0;
  tally queued;
  tally worked;
};

/// The queue's time series (names and meanings: k8s.io/client-go/util/workqueue and
/// controller-runtime's pkg/metrics).
struct series {
  series(metrics& registry, const std::string& name);

  /// Publishes, and empties, `what`. Returns how many keys were taken.
  std::uint64_t publish(counts& what);

  std::array<gauge*, levels> depth;
  counter& added;
  gauge& unfinished;
  gauge& longest;

 private:
  counter& retried_;
  counter& refused_full_;
  counter& refused_shut_down_;
  histogram& queued_;
  histogram& worked_;
};

}  // namespace rw::core::work_queue_detail
