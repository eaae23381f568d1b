#include "core/ready.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>

namespace rw::core {

namespace asio = boost::asio;

asio::awaitable<boost::system::error_code> ready(asio::ip::tcp::socket& socket, want what) {
  const auto kind =
      what == want::write ? asio::socket_base::wait_write : asio::socket_base::wait_read;
  // Deferred, since use_awaitable would take one more coroutine frame for each wait.
  const auto [error] = co_await socket.async_wait(kind, asio::as_tuple(asio::deferred));
  co_return error;
}

void interrupt(asio::ip::tcp::socket& socket) noexcept {
  boost::system::error_code ignored;
  socket.cancel(ignored);
}

}  // namespace rw::core
