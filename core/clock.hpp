#pragma once

#include "rw/core/requirements.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>

namespace rw::core {

using time_point = std::chrono::steady_clock::time_point;
using duration = std::chrono::steady_clock::duration;

/// Converts to seconds, the unit of metrics.
constexpr double seconds(duration of) noexcept {
  return std::chrono::duration<double>(of).count();
}

/// A timer for one waiter. Used on the executor that it was made for.
class timer {
 public:
  virtual ~timer() = default;

  /// Sets the deadline. A wait under way ends as if cancelled.
  virtual void expires_at(time_point deadline) = 0;

  /// Waits for the deadline. Returns true at the deadline, false if `cancel` or the coroutine's own
  /// cancellation ended the wait.
  virtual boost::asio::awaitable<bool> wait() = 0;

  virtual void cancel() = 0;
};

/// Source of time. Injected everywhere, so that tests of backoff, leases and rotation do not sleep.
/// Thread-safe.
class clock {
 public:
  virtual ~clock() = default;

  /// Monotonic time, for intervals and deadlines.
  virtual time_point now() const noexcept = 0;

  /// Calendar time, for certificates and logs.
  virtual std::chrono::system_clock::time_point wall() const noexcept = 0;

  virtual std::unique_ptr<timer> make_timer(boost::asio::any_io_executor executor) = 0;
};

/// The system's clocks.
class real_clock final : public clock {
 public:
  time_point now() const noexcept override { return std::chrono::steady_clock::now(); }
  std::chrono::system_clock::time_point wall() const noexcept override {
    return std::chrono::system_clock::now();
  }
  std::unique_ptr<timer> make_timer(boost::asio::any_io_executor executor) override;
};

}  // namespace rw::core
