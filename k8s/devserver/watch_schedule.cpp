#include "rw/k8s/devserver/watch_schedule.hpp"

namespace rw::k8s::devserver {

namespace asio = boost::asio;

watch_schedule::watch_schedule(core::clock& clock, asio::any_io_executor executor)
    : clock_(clock), timer_(clock.make_timer(std::move(executor))) {}

void watch_schedule::set(sleeper& sleeper, place& present, core::time_point wake_time) {
  sleepers_.erase(present);
  present = {wake_time, ++last_};
  const auto added = sleepers_.emplace(present, &sleeper).first;
  if (added == sleepers_.begin()) timer_->expires_at(wake_time);
}

asio::awaitable<void> watch_schedule::run() {
  for (;;) {
    timer_->expires_at(sleepers_.empty() ? core::time_point::max() : sleepers_.begin()->first.at);
    co_await timer_->wait();
    const auto now = clock_.now();
    while (!sleepers_.empty() && sleepers_.begin()->first.at <= now) {
      auto* sleeper = sleepers_.begin()->second;
      sleepers_.erase(sleepers_.begin());
      sleeper->due();
    }
  }
}

}  // namespace rw::k8s::devserver
