#include "rw/core/early_pause.hpp"

#include <utility>

namespace rw::core {

boost::asio::awaitable<std::optional<duration>> early_pause::wait(
    boost::asio::any_io_executor executor, duration length, bool may_end_early) {
  const auto alarm = clock_.make_timer(std::move(executor));
  const auto began = clock_.now();
  alarm->expires_at(began + length);
  early_ = false;
  if (may_end_early) under_way_ = alarm.get();
  const bool due = co_await alarm->wait();
  under_way_ = nullptr;
  if (!due && !early_) co_return std::nullopt;
  co_return clock_.now() - began;
}

void early_pause::end_early() {
  const auto now = clock_.now();
  if (under_way_ == nullptr || early_ || (ended_ && now - *ended_ < apart)) return;
  early_ = true;
  ended_ = now;
  under_way_->cancel();
}

}  // namespace rw::core
