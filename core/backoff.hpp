#pragma once

#include "rw/core/clock.hpp"

#include <cstdint>
#include <functional>
#include <limits>

namespace rw::core {

/// Returns a number drawn uniformly from all 64-bit values. Injected, so that tests choose.
using random_source = std::function<std::uint64_t()>;

/// Returns a source seeded by the operating system. Not thread-safe: each user makes its own.
random_source make_random_source();

/// `base` doubled so many times, at most `limit`.
duration doubled(duration base, duration limit, unsigned times) noexcept;

/// `length` shortened by a random part of up to `jitter` (0 to 1) of it; `random` is 64 bits.
duration shortened(duration length, double jitter, std::uint64_t random) noexcept;

/// Exponential backoff with full jitter: the n-th delay is uniform between 0 and min(limit, base *
/// 2^n), so that many clients that failed together do not retry together. Source of the scheme: M.
/// Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015. Not thread-safe.
class backoff {
 public:
  backoff(duration base, duration limit, random_source random)
      : base_(base), limit_(limit), random_(std::move(random)) {}

  /// Returns the delay before the next try. Each call counts as one more failure.
  duration next();

  /// Counts `failures` more failures without drawing their delays.
  void skip(unsigned failures) noexcept {
    constexpr auto most = std::numeric_limits<unsigned>::max();
    failures_ = failures > most - failures_ ? most : failures_ + failures;
  }

  /// Resets the count of failures. The caller calls it on success.
  void reset() noexcept { failures_ = 0; }

  unsigned failures() const noexcept { return failures_; }

 private:
  duration base_;
  duration limit_;
  random_source random_;
  unsigned failures_ = 0;
};

}  // namespace rw::core
