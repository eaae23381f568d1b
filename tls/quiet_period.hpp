#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace rw::tls {

/// Debounces a burst of changes: due once nothing has changed for `quiet`, or `limit` after the
/// first change, whichever comes first, so that continuous changes cannot postpone it indefinitely.
class quiet_period {
 public:
  using time = std::chrono::steady_clock::time_point;
  using duration = std::chrono::steady_clock::duration;

  quiet_period(duration quiet, duration limit) : quiet_(quiet), limit_(limit) {}

  void changed(time now) {
    if (!first_) first_ = now;
    due_ = std::min(now + quiet_, *first_ + limit_);
  }

  /// Returns nothing if nothing has changed since reset().
  std::optional<time> due() const { return first_ ? std::optional(due_) : std::nullopt; }

  void reset() { first_.reset(); }

 private:
  const duration quiet_;
  const duration limit_;
  std::optional<time> first_;
  time due_;
};

}  // namespace rw::tls
