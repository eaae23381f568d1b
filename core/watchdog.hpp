#pragma once

#include "core/clock.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace rw::core {

/// The deadline of one connection's current phase. Setting it is a store, so that it can be moved
/// at each request; a watchdog looks at it from time to time. Made by `watchdog::watch`; its action
/// is forgotten with it, so it must be destroyed on its executor.
class deadline {
 public:
  deadline() = default;
  deadline(deadline&&) noexcept = default;
  deadline& operator=(deadline&& other) noexcept {
    release();
    state_ = std::move(other.state_);
    return *this;
  }
  ~deadline() { release(); }

  void arm(time_point when) noexcept {
    state_->at.store(when.time_since_epoch().count(), std::memory_order_relaxed);
  }
  void disarm() noexcept { arm(time_point::max()); }

 private:
  friend class watchdog;

  static constexpr auto never = time_point::max().time_since_epoch().count();
  /// The deadline has passed, and `on_expiry` is on its way: `arm` and `disarm` still prevent it.
  static constexpr auto expired = never - 1;

  struct state {
    state(boost::asio::any_io_executor ex, std::function<void()> action)
        : executor(std::move(ex)), on_expiry(std::move(action)) {}

    const boost::asio::any_io_executor executor;
    std::function<void()> on_expiry;  ///< on `executor`
    std::atomic<duration::rep> at{never};
  };

  explicit deadline(std::shared_ptr<state> shared) : state_(std::move(shared)) {}
  void release() noexcept {
    if (state_) state_->on_expiry = nullptr;
  }

  std::shared_ptr<state> state_;
};

/// Watches many deadlines with one timer. Deadlines are kept to the length of a tick, which network
/// timeouts of seconds do not mind; in exchange they cost nothing per request, and the time that
/// they are reckoned from is read once a tick. While nobody asks for the time, and so sets no
/// deadline, there is one tick a second; a deadline that is then set from another clock is kept to
/// that.
///
/// `watch` and `now` are thread-safe.
class watchdog {
 public:
  watchdog(clock& time, boost::asio::any_io_executor executor,
           duration tick = std::chrono::milliseconds(100));

  /// Watches on behalf of the caller as long as it keeps the result. When the deadline passes it is
  /// disarmed, and `on_expiry` runs on `executor`, unless it was armed again or disarmed there
  /// before.
  [[nodiscard]] deadline watch(boost::asio::any_io_executor executor,
                               std::function<void()> on_expiry);

  /// What it measures time with; for what a tick is too coarse for.
  const clock& time_source() const noexcept { return clock_; }

  /// The time at the last tick.
  time_point now() const {
    if (!in_use_.load(std::memory_order_relaxed)) resume();
    return time_point(duration(now_.load(std::memory_order_relaxed)));
  }

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

 private:
  void look();
  time_point nearest();
  void resume() const;

  clock& clock_;
  const boost::asio::any_io_executor executor_;
  const duration tick_;
  const std::shared_ptr<timer> timer_;
  mutable std::atomic<duration::rep> now_;
  mutable std::atomic<bool> in_use_{false};   ///< asked for the time since the last tick
  mutable std::atomic<bool> resting_{false};  ///< no tick for a while
  std::mutex guard_;
  std::vector<std::weak_ptr<deadline::state>> watched_;
};

}  // namespace rw::core
