#pragma once

#include "core/backoff.hpp"

#include <cstdint>

namespace rw::core {

/// A circuit breaker: after `threshold` failures in a row nothing passes but one probe at a time,
/// after a backoff each, until one succeeds.
///
/// What began before the latest failure was counted says nothing new when it fails too: a
/// connection that breaks under many requests is one failure. Each attempt therefore takes a
/// ticket. Not thread-safe.
class gate {
 public:
  using ticket = std::uint64_t;

  /// `probes` spaces the probes.
  gate(unsigned threshold, backoff probes) : threshold_(threshold), probes_(std::move(probes)) {}

  /// True if an attempt may begin at `now`.
  bool passable(time_point now) const noexcept {
    return !open() || (!probing_ && now >= not_before_);
  }

  /// Begins an attempt.
  ticket enter() noexcept {
    probing_ = open();
    return epoch_;
  }

  /// Ends an attempt well; true if that closed an open gate.
  bool succeed() noexcept;

  /// Ends an attempt badly; `at_least` is how long the other side asked to be left alone.
  void fail(ticket began, time_point now, duration at_least = {});

  /// Ends an attempt that came to nothing, neither good nor bad.
  void abandon(ticket began) noexcept {
    if (began == epoch_) probing_ = false;
  }

  bool open() const noexcept { return failures_ >= threshold_; }

  /// When the next attempt may begin; `time_point::max()` while a probe is under way.
  time_point next() const noexcept {
    if (!open()) return time_point::min();
    return probing_ ? time_point::max() : not_before_;
  }

 private:
  const unsigned threshold_;
  backoff probes_;
  unsigned failures_ = 0;
  ticket epoch_ = 0;
  time_point not_before_{};
  bool probing_ = false;
};

}  // namespace rw::core
