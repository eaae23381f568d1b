#include "core/ready.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace rw::core {

namespace asio = boost::asio;

asio::awaitable<boost::system::error_code> ready(asio::ip::tcp::socket& socket, want what) {
  const auto kind =
      what == want::write ? asio::socket_base::wait_write : asio::socket_base::wait_read;
  boost::system::error_code error;
  co_await socket.async_wait(kind, asio::redirect_error(asio::use_awaitable, error));
  co_return error;
}

void interrupt(asio::ip::tcp::socket& socket) noexcept {
  boost::system::error_code ignored;
  socket.cancel(ignored);
}

}  // namespace rw::core
