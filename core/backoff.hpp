#pragma once

#include "core/clock.hpp"

#include <cstdint>
#include <functional>
#include <limits>

namespace rw::core {

/// Draws numbers uniformly from the whole range of 64 bits; injected so that tests can choose.
using random_source = std::function<std::uint64_t()>;

/// A source seeded by the operating system. Not thread-safe: one for each user.
random_source make_random_source();

/// `base` doubled so many times, at most `limit`.
duration doubled(duration base, duration limit, unsigned times) noexcept;

/// `length` shortened by a random part of up to `jitter` (0 to 1) of it; `random` is 64 bits.
duration shortened(duration length, double jitter, std::uint64_t random) noexcept;

/// Exponential backoff with full jitter: the n-th delay is uniform between 0 and
/// min(limit, base * 2^n), so that many clients that failed together do not come back together.
/// Source of the scheme: M. Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015.
/// Not thread-safe.
class backoff {
 public:
  backoff(duration base, duration limit, random_source random)
      : base_(base), limit_(limit), random_(std::move(random)) {}

  /// The delay before the next try; each call counts as one more failure.
  duration next();

  /// Goes on as if `failures` delays had been drawn.
  void skip(unsigned failures) noexcept {
    constexpr auto most = std::numeric_limits<unsigned>::max();
    failures_ = failures > most - failures_ ? most : failures_ + failures;
  }

  /// To be called on success.
  void reset() noexcept { failures_ = 0; }

  unsigned failures() const noexcept { return failures_; }

 private:
  duration base_;
  duration limit_;
  random_source random_;
  unsigned failures_ = 0;
};

}  // namespace rw::core
