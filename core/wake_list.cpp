#include "core/wake_list.hpp"

#include <boost/asio/this_coro.hpp>

#include <utility>

namespace rw::core {

namespace asio = boost::asio;

/// Lies in the frame of the coroutine that waits. The list may go before it, and it before the
/// list, when their execution context is destroyed.
struct wake_list::waiter {
  waiter(const asio::any_io_executor& executor, wake_list& in) : woken(executor), list(&in) {
    in.append(*this);
  }
  ~waiter() {
    if (list != nullptr) list->remove(*this);
  }
  waiter(const waiter&) = delete;
  waiter& operator=(const waiter&) = delete;

  wake woken;
  wake_list* list;  ///< null once woken
  waiter* previous = nullptr;
  waiter* next = nullptr;
};

wake_list::wake_list(asio::any_io_executor executor) : executor_(std::move(executor)) {}

wake_list::~wake_list() {
  while (first_ != nullptr) remove(*first_);
}

void wake_list::append(waiter& one) noexcept {
  one.previous = last_;
  (last_ == nullptr ? first_ : last_->next) = &one;
  last_ = &one;
}

void wake_list::remove(waiter& one) noexcept {
  (one.previous == nullptr ? first_ : one.previous->next) = one.next;
  (one.next == nullptr ? last_ : one.next->previous) = one.previous;
  one.list = nullptr;
}

void wake_list::wake_one() {
  if (first_ == nullptr) return;
  auto& oldest = *first_;
  remove(oldest);
  oldest.woken.set();
}

void wake_list::wake_all() {
  while (first_ != nullptr) wake_one();
}

asio::awaitable<bool> wake_list::wait() {
  waiter mine(executor_, *this);
  const auto error = co_await mine.woken.wait();
  const auto state = co_await asio::this_coro::cancellation_state;
  const bool cancelled = error || state.cancelled() != asio::cancellation_type::none;
  if (!cancelled) co_return true;
  // Cancelled after it was woken: the reason to wake is still there, and the list, since its owner
  // ends its waits before it goes.
  if (mine.list == nullptr && !error) wake_one();
  co_return false;
}

}  // namespace rw::core
