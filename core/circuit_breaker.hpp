#pragma once

#include "rw/core/backoff.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rw::core {

/// A circuit breaker. After `threshold` failures in a row it admits only one probe at a time, each
/// after a backoff, until a probe succeeds.
///
/// An attempt that began before the latest counted failure adds no information when it fails too: a
/// connection that breaks under many requests is one failure. Each attempt therefore holds a
/// number. Not thread-safe.
class circuit_breaker {
 public:
  using attempt = std::uint64_t;

  /// `probes` spaces the probes.
  circuit_breaker(unsigned threshold, backoff probes)
      : threshold_(threshold), probes_(std::move(probes)) {}

  bool passable(time_point now) const noexcept { return now >= not_before_ && !probing(); }

  attempt enter() noexcept {
    probing_ = open();
    return epoch_;
  }

  /// Ends an attempt that succeeded. Returns true if that closed an open breaker.
  bool succeed() noexcept {
    const bool was_open = open();
    failures_ = 0;
    probing_ = false;
    not_before_ = time_point::min();
    probes_.reset();
    return was_open;
  }

  /// Returns the number of an attempt that begins without admission; its failure still counts.
  attempt stray() const noexcept { return epoch_; }

  /// Ends an attempt that failed. `at_least` is the delay that the other side requested; it holds
  /// at once. Returns false if an earlier failure already counts for this attempt.
  bool fail(attempt began, time_point now, duration at_least = {}) {
    if (began != epoch_) return false;
    probing_ = false;
    ++epoch_;
    ++failures_;
    const auto pause = std::max(open() ? probes_.next() : duration::zero(), at_least);
    if (pause > duration::zero()) not_before_ = std::max(not_before_, now + pause);
    return true;
  }

  /// Ends an attempt that neither succeeded nor failed.
  void abandon(attempt began) noexcept {
    if (began == epoch_) probing_ = false;
  }

  bool open() const noexcept { return failures_ >= threshold_; }

  /// Returns true from a failure until a success.
  bool failing() const noexcept { return failures_ > 0; }

  /// Failures in a row.
  unsigned failures() const noexcept { return failures_; }

  /// Returns when the next attempt may begin; `time_point::max()` while a probe is under way.
  time_point next() const noexcept { return probing() ? time_point::max() : not_before_; }

 private:
  bool probing() const noexcept { return probing_ && open(); }

  const unsigned threshold_;
  backoff probes_;
  unsigned failures_ = 0;
  attempt epoch_ = 0;
  time_point not_before_ = time_point::min();
  bool probing_ = false;
};

}  // namespace rw::core
