#include "reactors/kyma_router/pacer.hpp"

#include <boost/asio/this_coro.hpp>

#include <utility>

namespace rw::kyma_router {

namespace asio = boost::asio;

pacer::pacer(core::clock& clock, pace how, destination to)
    : clock_(clock), how_(how), to_(std::move(to)) {}

bool pacer::pass(const k8s::object_key& key) {
  if (held_.contains(key)) return false;
  const std::chrono::duration<double> interval = how_.interval;
  const auto now = clock_.now();
  const auto wait = buckets_.use(key, 1 / interval.count(), how_.burst).take(now);
  if (wait <= core::duration::zero()) {
    to_(key);
    return true;
  }
  held_.insert(key);
  const auto at = due_.emplace(now + wait, key);
  if (alarm_ && at == due_.begin()) alarm_->expires_at(at->first);
  return false;
}

void pacer::release(core::time_point until) {
  while (!due_.empty() && due_.begin()->first <= until) {
    const auto key = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    held_.erase(key);
    to_(key);
  }
}

asio::awaitable<void> pacer::run() {
  constexpr std::chrono::hours long_time(1);
  const auto executor = co_await asio::this_coro::executor;
  alarm_ = clock_.make_timer(executor);
  for (;;) {
    release(clock_.now());
    alarm_->expires_at(due_.empty() ? clock_.now() + long_time : due_.begin()->first);
    co_await alarm_->wait();  // ends early when something is due earlier
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) break;
  }
  alarm_.reset();
  release(core::time_point::max());
}

}  // namespace rw::kyma_router
