#pragma once

#include "rw/core/clock.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

namespace rw::core {

/// Limits a rate: `rate` tokens are added each second, up to `burst`. A caller without a token
/// takes a future one and receives the delay until it is valid, so that callers are served in the
/// order in which they came. Not thread-safe.
class token_bucket {
 public:
  /// `rate` 0 or less: no limit.
  token_bucket(double rate, unsigned burst) noexcept
      : rate_(rate), burst_(std::max(1.0, static_cast<double>(burst))), tokens_(burst_) {}

  /// Takes a token. Returns the delay before it may be used.
  duration take(time_point now) noexcept {
    if (!limits()) return duration::zero();
    refill(now);
    tokens_ -= 1;
    return tokens_ >= 0 ? duration::zero() : time_for(-tokens_);
  }

  /// Takes a token with a delay of at most `most`. Otherwise takes none and returns nothing.
  std::optional<duration> take(time_point now, duration most) noexcept {
    if (!limits()) return duration::zero();
    refill(now);
    const auto wait = tokens_ >= 1 ? duration::zero() : time_for(1 - tokens_);
    if (wait > most) return std::nullopt;
    tokens_ -= 1;
    return wait;
  }

  /// Returns an unused token. Shortens the delay of the next caller only.
  void give_back() noexcept { tokens_ = std::min(burst_, tokens_ + 1); }

  /// Takes a token if there is one. Returns false otherwise.
  bool try_take(time_point now) noexcept {
    if (!limits()) return true;
    refill(now);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  bool limits() const noexcept { return rate_ > 0; }

  duration time_for(double tokens) const noexcept {
    // Longer than a year makes no difference, and the conversion could overflow.
    const auto seconds = std::min(tokens / rate_, 31'536'000.0);
    return std::chrono::ceil<duration>(std::chrono::duration<double>(seconds));
  }

  void refill(time_point now) noexcept {
    if (now <= last_) return;
    if (last_ != time_point::min()) {
      const std::chrono::duration<double> passed = now - last_;
      tokens_ = std::min(burst_, tokens_ + passed.count() * rate_);
    }
    last_ = now;
  }

  double rate_;
  double burst_;
  double tokens_;  ///< negative: future tokens taken
  time_point last_ = time_point::min();
};

}  // namespace rw::core
