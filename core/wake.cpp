#include "core/wake.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>

#include <cassert>
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

  bool ended() {
    const std::lock_guard lock(guard_);
    return ended_;
  }

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
      ended_ = true;
      for (; !waiting_.empty(); waiting_.pop_front()) {
        waiters.push_back(std::move(*waiting_.front().waiter_));
        waiting_.front().waiter_.reset();
      }
    }
  }

  std::mutex guard_;
  boost::intrusive::list<wake, boost::intrusive::member_hook<wake, link, &wake::registered_>>
      waiting_;
  bool ended_ = false;
};

wake::wake(asio::any_io_executor executor)
    : executor_(std::move(executor)), registry_(registry::of(executor_)) {}

wake::~wake() {
  end();
}

bool wake::abandoned() const noexcept {
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

asio::awaitable<boost::system::error_code> wake::wait() {
  if (set_) {
    set_ = false;
    co_return boost::system::error_code();
  }
  const auto start = [this](auto waiter) {
    const auto slot = asio::get_associated_cancellation_slot(waiter);
    begin(std::move(waiter));
    if (!slot.is_connected()) return;
    auto connected = slot;
    connected.assign([this](asio::cancellation_type) {
      if (waiter_) complete(asio::error::operation_aborted);
    });
  };
  const auto outcome =
      co_await asio::async_initiate<const asio::use_awaitable_t<>&,
                                    void(boost::system::error_code, boost::system::error_code)>(
          start, asio::use_awaitable);
  co_return outcome;
}

}  // namespace rw::core
