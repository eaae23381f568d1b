#include "core/wake_list.hpp"

#include <boost/asio/this_coro.hpp>

#include <utility>

namespace rw::core {

namespace asio = boost::asio;

wake_list::wake_list(asio::any_io_executor executor) : executor_(std::move(executor)) {}

void wake_list::wake_one() {
  if (waiters_.empty()) return;
  auto& oldest = waiters_.front();
  waiters_.pop_front();
  oldest.woken.set();
}

void wake_list::wake_all() {
  while (!waiters_.empty()) wake_one();
}

asio::awaitable<bool> wake_list::wait() {
  waiter mine{{}, wake(executor_)};
  waiters_.push_back(mine);
  const auto error = co_await mine.woken.wait();
  const auto state = co_await asio::this_coro::cancellation_state;
  const bool cancelled = error || state.cancelled() != asio::cancellation_type::none;
  if (!cancelled) co_return true;
  // Cancelled after it was woken: the reason to wake still holds. The list is alive, since its
  // owner ends its waits before it is destroyed.
  if (!mine.is_linked() && !error) wake_one();
  co_return false;
}

}  // namespace rw::core
