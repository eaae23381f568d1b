#include "rw/reactors/dev/issuer/random_delay.hpp"

#include <utility>

namespace rw::dev_issuer {

random_delay::random_delay(boost::asio::any_io_executor executor, core::clock& clock,
                           core::duration most, core::random_source random)
    : executor_(std::move(executor)), clock_(clock), most_(most), random_(std::move(random)) {}

boost::asio::awaitable<bool> random_delay::pause() {
  if (most_ <= core::duration::zero()) co_return true;
  const auto range = static_cast<std::uint64_t>(most_.count());
  const core::duration by(static_cast<core::duration::rep>(random_() % range));
  const auto timer = clock_.make_timer(executor_);
  timer->expires_at(clock_.now() + by);
  const bool due = co_await timer->wait();
  co_return due;
}

}  // namespace rw::dev_issuer
