#pragma once

#include "rw/core/clock.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace rw::core {

/// The deadline of one connection's current phase. Setting it is a store, cheap enough for each
/// request; a watchdog checks it periodically. Made by `watchdog::watch`. Its destruction cancels
/// its action, so it must be destroyed on its executor.
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

  /// A time that has passed expires at the next tick.
  void arm(time_point deadline) noexcept {
    state_->at->store(std::max(deadline.time_since_epoch().count(), gone + 1),
                      std::memory_order_relaxed);
  }
  void disarm() noexcept { arm(time_point::max()); }

 private:
  friend class watchdog;

  static constexpr auto never = time_point::max().time_since_epoch().count();
  /// The deadline has passed, and `on_expiry` is posted: `arm` and `disarm` still prevent it.
  static constexpr auto expired = never - 1;
  /// There is no deadline any more.
  static constexpr auto gone = time_point::min().time_since_epoch().count();

  using time = std::atomic<duration::rep>;
  struct state {
    state(boost::asio::any_io_executor ex, std::function<void()> action, std::shared_ptr<time> of)
        : executor(std::move(ex)), on_expiry(std::move(action)), at(std::move(of)) {}
    ~state() { at->store(gone, std::memory_order_relaxed); }

    const boost::asio::any_io_executor executor;
    std::function<void()> on_expiry;  ///< on `executor`
    const std::shared_ptr<time> at;   ///< beside those of all others
  };

  explicit deadline(std::shared_ptr<state> shared) : state_(std::move(shared)) {}
  void release() noexcept {
    if (state_) state_->on_expiry = nullptr;
  }

  std::shared_ptr<state> state_;
};

/// Watches many deadlines with one timer. A deadline is precise to a tick, enough for network
/// timeouts of seconds; in exchange it costs nothing per request, and the time is read once a tick.
/// While no caller reads the time, and so sets no deadline, there is one tick a second. A deadline
/// that is then set from another clock is precise to that.
///
/// A tick costs eight bytes of memory for each deadline, which lie side by side: the memory of
/// thousands of quiet connections is not touched.
///
/// `watch` and `now` are thread-safe.
class watchdog {
 public:
  watchdog(clock& time, boost::asio::any_io_executor executor,
           duration tick = std::chrono::milliseconds(100));

  /// Watches a deadline as long as the caller keeps the result. When the deadline passes it is
  /// disarmed, and `on_expiry` runs on `executor`, unless it was armed again or disarmed there
  /// before.
  [[nodiscard]] deadline watch(boost::asio::any_io_executor executor,
                               std::function<void()> on_expiry);

  /// The time at the last tick.
  time_point now() const {
    if (!in_use_.load(std::memory_order_relaxed)) resume();
    return time_point(duration(now_.load(std::memory_order_relaxed)));
  }

  /// The clock of the deadlines.
  clock& time() const noexcept { return clock_; }

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

 private:
  void look();
  void expire(std::size_t index, duration::rep at);
  time_point nearest();
  void resume() const;

  clock& clock_;
  const boost::asio::any_io_executor executor_;
  const duration tick_;
  const std::shared_ptr<timer> timer_;
  mutable std::atomic<duration::rep> now_;
  mutable std::atomic<bool> in_use_{false};   ///< time read since the last tick
  mutable std::atomic<bool> resting_{false};  ///< ticks once a second
  std::mutex guard_;
  const std::shared_ptr<std::deque<deadline::time>> times_;
  std::vector<std::weak_ptr<deadline::state>> watched_;  ///< by index in `times_`
  std::vector<std::size_t> unused_;                      ///< indices
};

/// A host's watchdog, which the host runs; or none: then its user makes and runs one of its own.
class optional_watchdog {
 public:
  optional_watchdog() = default;
  optional_watchdog(watchdog& host) : host_(&host) {}

  explicit operator bool() const noexcept { return host_ != nullptr; }
  operator watchdog&() const noexcept { return *host_; }
  watchdog* operator->() const noexcept { return host_; }

 private:
  watchdog* host_ = nullptr;
};

/// For a class that arms deadlines: makes a watchdog and sets `of` to it, if that is empty.
class own_watchdog {
 public:
  own_watchdog(optional_watchdog& of, clock& time, boost::asio::any_io_executor executor) {
    if (!of) of = made_.emplace(time, std::move(executor));
  }

  /// Runs it until cancelled. Returns at once if the host brought one.
  boost::asio::awaitable<void> run();

  /// False if the host brought one.
  bool is_own() const noexcept { return made_.has_value(); }

 private:
  std::optional<watchdog> made_;
};

}  // namespace rw::core
