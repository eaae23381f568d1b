#include "core/watchdog.hpp"

#include <boost/asio/post.hpp>

namespace rw::core {

namespace asio = boost::asio;

watchdog::watchdog(clock& time, asio::any_io_executor executor, duration tick)
    : clock_(time),
      executor_(std::move(executor)),
      tick_(tick),
      now_(time.now().time_since_epoch().count()) {}

deadline watchdog::watch(asio::any_io_executor executor, std::function<void()> on_expiry) {
  auto watched = std::make_shared<deadline::state>(std::move(executor), std::move(on_expiry));
  const std::lock_guard lock(guard_);
  watched_.push_back(watched);
  return deadline(std::move(watched));
}

void watchdog::look() {
  const auto now = clock_.now();
  now_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  const std::lock_guard lock(guard_);
  std::erase_if(watched_, [&](const std::weak_ptr<deadline::state>& weak) {
    const auto watched = weak.lock();
    if (!watched) return true;
    auto at = watched->at.load(std::memory_order_relaxed);
    if (at <= now.time_since_epoch().count() &&
        watched->at.compare_exchange_strong(at, deadline::expired)) {
      asio::post(watched->executor, [watched] {
        auto passed = deadline::expired;
        if (!watched->at.compare_exchange_strong(passed, deadline::never)) return;
        if (watched->on_expiry) watched->on_expiry();
      });
    }
    return false;
  });
}

asio::awaitable<void> watchdog::run() {
  // What begins now is not to be reckoned from when this was made: a start may take its time.
  now_.store(clock_.now().time_since_epoch().count(), std::memory_order_relaxed);
  const auto timer = clock_.make_timer(executor_);
  for (;;) {
    timer->expires_at(clock_.now() + tick_);
    const bool due = co_await timer->wait();
    if (!due) co_return;
    look();
  }
}

}  // namespace rw::core
