#pragma once

#include "rw/core/clock.hpp"

#include <chrono>

namespace rw::core {

/// The calendar of its construction, which goes on with monotonic time and is never set.
class steady_calendar {
 public:
  using time = std::chrono::system_clock::time_point;

  explicit steady_calendar(const clock& from) : time_(from.wall()), since_(from.now()) {}

  time at(time_point moment) const {
    return time_ + std::chrono::duration_cast<time::duration>(moment - since_);
  }

 private:
  const time time_;
  const time_point since_;
};

}  // namespace rw::core
