#include "core/wake.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

namespace rw::core {

namespace asio = boost::asio;

void wake::set() {
  if (waiter_) {
    complete({});
  } else {
    set_ = true;
  }
}

void wake::complete(boost::system::error_code error) {
  auto waiter = std::move(*waiter_);
  waiter_.reset();
  asio::get_associated_cancellation_slot(waiter).clear();
  // The outcome travels as a value: the first, always empty, is what use_awaitable would throw.
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
    waiter_.emplace(std::move(waiter));
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
