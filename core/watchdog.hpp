#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/clock.hpp"

namespace rw::core {

/// The deadline of one connection's current phase. Setting it is a store, so that it can be moved at
/// each request; a watchdog looks at it from time to time. Made by `watchdog::watch`.
class deadline : public std::enable_shared_from_this<deadline> {
 public:
  deadline(boost::asio::any_io_executor executor, std::function<void()> on_expiry)
      : executor_(std::move(executor)), on_expiry_(std::move(on_expiry)) {}

  void arm(time_point when) noexcept {
    at_.store(when.time_since_epoch().count(), std::memory_order_relaxed);
  }
  void disarm() noexcept { arm(time_point::max()); }

  /// Drops the action; to be called on the executor, before what the action refers to goes.
  void release() noexcept { on_expiry_ = nullptr; }

 private:
  friend class watchdog;

  const boost::asio::any_io_executor executor_;
  std::function<void()> on_expiry_;
  std::atomic<duration::rep> at_{time_point::max().time_since_epoch().count()};
};

/// Watches many deadlines with one timer. Deadlines are kept to the length of a tick, which network
/// timeouts of seconds do not mind; in exchange they cost nothing per request, and the time of day
/// that they are reckoned from is read once a tick.
///
/// `watch` and `now` are thread-safe.
class watchdog {
 public:
  watchdog(clock& time, boost::asio::any_io_executor executor,
           duration tick = std::chrono::milliseconds(100));

  /// Watches on behalf of the caller as long as it keeps the result. When the deadline passes it is
  /// disarmed, and `on_expiry` runs on `executor`.
  std::shared_ptr<deadline> watch(boost::asio::any_io_executor executor,
                                  std::function<void()> on_expiry);

  /// The time at the last tick.
  time_point now() const noexcept {
    return time_point(duration(now_.load(std::memory_order_relaxed)));
  }

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

 private:
  void look();

  clock& clock_;
  const boost::asio::any_io_executor executor_;
  const duration tick_;
  std::atomic<duration::rep> now_;
  std::mutex guard_;
  std::vector<std::weak_ptr<deadline>> watched_;
};

}  // namespace rw::core
