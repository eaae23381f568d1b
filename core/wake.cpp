#include "rw/core/wake.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/this_coro.hpp>

#include <atomic>
#include <cassert>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace rw::core {

namespace asio = boost::asio;

/// Owns the suspended coroutines of one execution context. Without it only the `wake` would own
/// them. A coroutine's frame often owns the `wake`, so neither would ever be destroyed.
class wake::registry final : public asio::execution_context::service {
 public:
  using key_type = registry;
  static inline asio::execution_context::id id;

  explicit registry(asio::execution_context& context) : service(context) {}

  static registry& of(const asio::any_io_executor& executor) {
    return asio::use_service<registry>(asio::query(executor, asio::execution::context));
  }

  void add(wake& waiting) {
    const std::lock_guard lock(guard_);
    waiting_.push_back(waiting);
  }

  std::shared_ptr<const std::atomic<bool>> ended() const noexcept { return ended_; }

  void remove(wake& waiting) {
    const std::lock_guard lock(guard_);
    waiting_.erase(waiting_.iterator_to(waiting));
  }

 private:
  void shutdown() override {
    // Moves all out before it destroys the first: its frame may own the others.
    std::vector<handler> waiters;
    {
      const std::lock_guard lock(guard_);
      *ended_ = true;
      for (; !waiting_.empty(); waiting_.pop_front()) {
        waiters.push_back(std::move(*waiting_.front().waiter_));
        waiting_.front().waiter_.reset();
      }
    }
  }

  std::mutex guard_;
  boost::intrusive::list<wake, boost::intrusive::member_hook<wake, link, &wake::registered_>>
      waiting_;
  const std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(false);
};

wake::wake(asio::any_io_executor executor)
    : executor_(std::move(executor)), registry_(registry::of(executor_)) {}

wake::~wake() {
  end();
}

std::shared_ptr<const std::atomic<bool>> wake::context_ended() const noexcept {
  return registry_.ended();
}

void wake::begin(handler waiter) {
  assert(!waiter_ && "one wait at a time");
  waiter_.emplace(std::move(waiter));
  registry_.add(*this);
}

std::optional<wake::handler> wake::end() {
  if (!waiter_) return std::nullopt;
  registry_.remove(*this);
  return std::exchange(waiter_, std::nullopt);
}

void wake::set() {
  if (waiter_) {
    complete({});
  } else {
    set_ = true;
  }
}

void wake::complete(boost::system::error_code error) {
  auto waiter = std::move(*end());
  asio::get_associated_cancellation_slot(waiter).clear();
  // The result is a value: use_awaitable would throw the first argument, so that is always empty.
  asio::post(executor_, [waiter = std::move(waiter), error]() mutable {
    std::move(waiter)(boost::system::error_code(), error);
  });
}

/// No coroutine of its own: its frame would be one more for each wait.
asio::awaitable<boost::system::error_code> wake::wait() {
  const auto start = [this](auto waiter) {
    const auto slot = asio::get_associated_cancellation_slot(waiter);
    begin(std::move(waiter));
    if (std::exchange(set_, false)) return complete({});
    if (!slot.is_connected()) return;
    auto connected = slot;
    connected.assign([this](asio::cancellation_type) {
      if (waiter_) complete(asio::error::operation_aborted);
    });
  };
  return asio::async_initiate<const asio::use_awaitable_t<>&,
                              void(boost::system::error_code, boost::system::error_code)>(
      start, asio::use_awaitable);
}

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
  waiter waiter{{}, wake(executor_)};
  waiters_.push_back(waiter);
  const auto error = co_await waiter.woken.wait();
  const auto state = co_await asio::this_coro::cancellation_state;
  const bool cancelled = error || state.cancelled() != asio::cancellation_type::none;
  if (!cancelled) co_return true;
  // Cancelled after it was woken: the reason to wake still holds. The list is alive, since its
  // owner ends its waits before it is destroyed.
  if (!waiter.is_linked() && !error) wake_one();
  co_return false;
}

}  // namespace rw::core
