#pragma once

#include "rw/core/clock.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace rw::core {

/// A clock that stands still until told to go on.
class manual_clock final : public clock {
 public:
  /// Certificates that are made meanwhile are of today.
  manual_clock() : manual_clock(std::chrono::system_clock::now()) {}
  explicit manual_clock(std::chrono::system_clock::time_point wall)
      : state_(std::make_shared<state>()) {
    // In whole seconds, so that it rounds the same in each run.
    state_->wall = std::chrono::floor<std::chrono::seconds>(wall);
  }

  time_point now() const noexcept override {
    const std::lock_guard lock(state_->guard);
    return state_->now;
  }
  std::chrono::system_clock::time_point wall() const noexcept override {
    const std::lock_guard lock(state_->guard);
    return state_->wall;
  }
  std::unique_ptr<timer> make_timer(boost::asio::any_io_executor executor) override {
    return std::make_unique<manual_timer>(std::move(executor), state_);
  }

  /// Moves both clocks on, and posts the end of each wait whose time has come.
  void advance(duration by) {
    const std::lock_guard lock(state_->guard);
    state_->now += by;
    state_->wall += std::chrono::duration_cast<std::chrono::system_clock::duration>(by);
    for (auto* timer : state_->timers) {
      if (timer->due() <= state_->now) timer->ring();
    }
  }

  /// Sets the calendar alone.
  void step_wall(std::chrono::system_clock::duration by) {
    const std::lock_guard lock(state_->guard);
    state_->wall += by;
  }

  /// When the next alarm is due; `time_point::max()` if none is set.
  time_point next_alarm() const {
    const std::lock_guard lock(state_->guard);
    auto next = time_point::max();
    for (const auto* timer : state_->timers) next = std::min(next, timer->due());
    return next;
  }

 private:
  class manual_timer;
  struct state {
    mutable std::mutex guard;
    time_point now{std::chrono::hours(1)};
    std::chrono::system_clock::time_point wall;
    std::vector<manual_timer*> timers;
  };

  /// Waits on an alarm of Asio's that never comes, which `advance` cancels when its time has come.
  class manual_timer final : public timer {
   public:
    manual_timer(boost::asio::any_io_executor executor, std::shared_ptr<state> shared)
        : shared_(std::move(shared)), alarm_(std::make_shared<alarm>(std::move(executor))) {
      const std::lock_guard lock(shared_->guard);
      shared_->timers.push_back(this);
    }

    ~manual_timer() override {
      const std::lock_guard lock(shared_->guard);
      std::erase(shared_->timers, this);
    }

    void expires_at(time_point when) override {
      cancel();
      const std::lock_guard lock(shared_->guard);
      when_ = when;
    }

    boost::asio::awaitable<bool> wait() override {
      bool due = false;
      {
        const std::lock_guard lock(shared_->guard);
        due = when_ <= shared_->now;
        waiting_ = !due;
        ++alarm_->waits;
      }
      if (due) co_return true;
      alarm_->never.expires_at(time_point::max());
      boost::system::error_code error;
      co_await alarm_->never.async_wait(
          boost::asio::redirect_error(boost::asio::use_awaitable, error));
      const std::lock_guard lock(shared_->guard);
      waiting_ = false;
      co_return when_ <= shared_->now;
    }

    void cancel() override { alarm_->never.cancel(); }

    /// To be called under the clock's lock.
    time_point due() const { return waiting_ ? when_ : time_point::max(); }

    /// Ends the wait that is under way now, once, and none that begins later.
    void ring() {
      waiting_ = false;
      boost::asio::post(alarm_->never.get_executor(), [alarm = alarm_, which = alarm_->waits] {
        if (alarm->waits == which) alarm->never.cancel();
      });
    }

   private:
    struct alarm {
      explicit alarm(const boost::asio::any_io_executor& executor) : never(executor) {}
      boost::asio::steady_timer never;
      std::uint64_t waits = 0;  ///< changed on the executor, under the clock's lock
    };

    const std::shared_ptr<state> shared_;
    const std::shared_ptr<alarm> alarm_;
    time_point when_ = time_point::max();
    bool waiting_ = false;
  };

  const std::shared_ptr<state> state_;
};

}  // namespace rw::core
