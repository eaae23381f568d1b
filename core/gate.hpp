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
  bool passable(time_point now) const noexcept { return now >= not_before_ && !probing(); }

  /// Begins an attempt.
  ticket enter() noexcept {
    probing_ = open();
    return epoch_;
  }

  /// Ends an attempt well; true if that closed an open gate.
  bool succeed() noexcept;

  /// The ticket of an attempt that is none of the gate's, since it may begin although nothing
  /// passes.
  ticket stray() const noexcept { return epoch_; }

  /// Ends an attempt badly; `at_least` is how long the other side asked to be left alone, which is
  /// heeded at once. False if an earlier failure has said as much already.
  bool fail(ticket began, time_point now, duration at_least = {});

  /// Ends an attempt that came to nothing, neither good nor bad.
  void abandon(ticket began) noexcept {
    if (began == epoch_) probing_ = false;
  }

  bool open() const noexcept { return failures_ >= threshold_; }

  /// True since a failure, until a success.
  bool failing() const noexcept { return failures_ > 0; }

  /// In a row.
  unsigned failures() const noexcept { return failures_; }

  /// When the next attempt may begin; `time_point::max()` while a probe is under way.
  time_point next() const noexcept { return probing() ? time_point::max() : not_before_; }

 private:
  bool probing() const noexcept { return probing_ && open(); }

  const unsigned threshold_;
  backoff probes_;
  unsigned failures_ = 0;
  ticket epoch_ = 0;
  time_point not_before_ = time_point::min();
  bool probing_ = false;
};

}  // namespace rw::core
