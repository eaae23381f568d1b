#include "core/clock.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <cstdint>

namespace rw::core {
namespace {

namespace asio = boost::asio;

class real_timer final : public timer {
 public:
  explicit real_timer(const asio::any_io_executor& executor) : timer_(executor) {}

  void expires_at(time_point when) override { timer_.expires_at(when); }

  asio::awaitable<bool> wait() override {
    boost::system::error_code error;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, error));
    co_return !error;
  }

  void cancel() override { timer_.cancel(); }

 private:
  asio::steady_timer timer_;
};

}  // namespace

std::unique_ptr<timer> real_clock::make_timer(asio::any_io_executor executor) {
  return std::make_unique<real_timer>(std::move(executor));
}

struct manual_clock::state {
  mutable std::mutex guard;
  time_point now{std::chrono::hours(1)};
  std::chrono::system_clock::time_point wall = std::chrono::system_clock::now();
  std::vector<manual_timer*> timers;
};

/// Waits on an alarm of Asio's that never comes, which `advance` cancels when its time has come.
class manual_clock::manual_timer final : public timer {
 public:
  manual_timer(asio::any_io_executor executor, std::shared_ptr<state> shared)
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

  asio::awaitable<bool> wait() override {
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
    co_await alarm_->never.async_wait(asio::redirect_error(asio::use_awaitable, error));
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
    asio::post(alarm_->never.get_executor(), [alarm = alarm_, which = alarm_->waits] {
      if (alarm->waits == which) alarm->never.cancel();
    });
  }

 private:
  struct alarm {
    explicit alarm(const asio::any_io_executor& executor) : never(executor) {}
    asio::steady_timer never;
    std::uint64_t waits = 0;  ///< changed on the executor, under the clock's lock
  };

  const std::shared_ptr<state> shared_;
  const std::shared_ptr<alarm> alarm_;
  time_point when_ = time_point::max();
  bool waiting_ = false;
};

manual_clock::manual_clock() : state_(std::make_shared<state>()) {}
manual_clock::~manual_clock() = default;

time_point manual_clock::now() const noexcept {
  const std::lock_guard lock(state_->guard);
  return state_->now;
}

std::chrono::system_clock::time_point manual_clock::wall() const noexcept {
  const std::lock_guard lock(state_->guard);
  return state_->wall;
}

std::unique_ptr<timer> manual_clock::make_timer(asio::any_io_executor executor) {
  return std::make_unique<manual_timer>(std::move(executor), state_);
}

void manual_clock::advance(duration by) {
  const std::lock_guard lock(state_->guard);
  state_->now += by;
  state_->wall += std::chrono::duration_cast<std::chrono::system_clock::duration>(by);
  for (auto* timer : state_->timers) {
    if (timer->due() <= state_->now) timer->ring();
  }
}

time_point manual_clock::next_alarm() const {
  const std::lock_guard lock(state_->guard);
  auto next = time_point::max();
  for (const auto* timer : state_->timers) next = std::min(next, timer->due());
  return next;
}

}  // namespace rw::core
