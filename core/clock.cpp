#include "rw/core/clock.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace rw::core {
namespace {

namespace asio = boost::asio;

class real_timer final : public timer {
 public:
  explicit real_timer(const asio::any_io_executor& executor) : timer_(executor) {}

  void expires_at(time_point deadline) override { timer_.expires_at(deadline); }

  asio::awaitable<bool> wait() override {
    boost::system::error_code error;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, error));
    co_return !error;
  }

  void cancel() override { timer_.cancel(); }

 private:
  asio::steady_timer timer_;
};

}  // namespace

std::unique_ptr<timer> real_clock::make_timer(asio::any_io_executor executor) {
  return std::make_unique<real_timer>(std::move(executor));
}

}  // namespace rw::core
