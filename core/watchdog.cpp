#include "rw/core/watchdog.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>

namespace rw::core {

namespace asio = boost::asio;

namespace {
constexpr auto longest_rest = std::chrono::seconds(1);
}

watchdog::watchdog(clock& time, asio::any_io_executor executor, duration tick)
    : clock_(time),
      executor_(std::move(executor)),
      tick_(tick),
      timer_(time.make_timer(executor_)),
      now_(time.now().time_since_epoch().count()),
      times_(std::make_shared<std::deque<deadline::time>>()) {}

deadline watchdog::watch(asio::any_io_executor executor, std::function<void()> on_expiry) {
  const std::lock_guard lock(guard_);
  if (unused_.empty()) {
    unused_.push_back(times_->size());
    times_->emplace_back(deadline::never);
    watched_.emplace_back();
  }
  const auto index = unused_.back();
  unused_.pop_back();
  auto watched =
      std::make_shared<deadline::state>(std::move(executor), std::move(on_expiry),
                                        std::shared_ptr<deadline::time>(times_, &(*times_)[index]));
  watched_[index] = watched;
  return deadline(std::move(watched));
}

void watchdog::look() {
  const auto now = clock_.now();
  const auto count = now.time_since_epoch().count();
  now_.store(count, std::memory_order_relaxed);
  const std::lock_guard lock(guard_);
  std::size_t index = 0;
  for (auto& time : *times_) {
    const auto at = time.load(std::memory_order_relaxed);
    if (at == deadline::gone) {
      time.store(deadline::never, std::memory_order_relaxed);
      watched_[index].reset();
      unused_.push_back(index);
    } else if (at <= count) {
      expire(index, at);
    }
    ++index;
  }
}

void watchdog::expire(std::size_t index, duration::rep at) {
  const auto watched = watched_[index].lock();
  if (!watched || !watched->at->compare_exchange_strong(at, deadline::expired)) return;
  asio::post(watched->executor, [watched] {
    auto passed = deadline::expired;
    if (!watched->at->compare_exchange_strong(passed, deadline::never)) return;
    if (watched->on_expiry) watched->on_expiry();
  });
}

time_point watchdog::nearest() {
  const std::lock_guard lock(guard_);
  auto next = deadline::never;
  for (const auto& time : *times_) {
    const auto at = time.load(std::memory_order_relaxed);
    if (at != deadline::gone) next = std::min(next, at);
  }
  return time_point(duration(next));
}

/// The first call of `now` since a tick. Either `run` observes `in_use_` before it rests, or this
/// observes that it rests: both are sequentially consistent.
void watchdog::resume() const {
  in_use_.store(true);
  if (!resting_.exchange(false)) return;
  now_.store(clock_.now().time_since_epoch().count(), std::memory_order_relaxed);
  asio::post(executor_, [timer = timer_] { timer->cancel(); });
}

asio::awaitable<void> watchdog::run() {
  // Time begins with `run`, not with the constructor: a start may take long.
  now_.store(clock_.now().time_since_epoch().count(), std::memory_order_relaxed);
  auto next = clock_.now() + tick_;
  for (;;) {
    timer_->expires_at(next);
    const bool due = co_await timer_->wait();
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) co_return;
    if (due) look();
    const auto now = clock_.now();
    next = now + tick_;
    resting_ = due;
    if (in_use_.exchange(false)) resting_ = false;
    if (resting_) next = std::max(next, std::min(nearest(), now + longest_rest));
  }
}

asio::awaitable<void> own_watchdog::run() {
  if (made_) co_await made_->run();
}

}  // namespace rw::core
