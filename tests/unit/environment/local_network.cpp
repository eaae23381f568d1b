#include "tests/unit/environment/local_network.hpp"

#include <boost/asio/error.hpp>

#include "tests/unit/http/echo.hpp"
#include <cerrno>
#include <cstddef>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace rw::test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

int make_socket() {
  return ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

error_code last_error() {
  return {errno, boost::system::system_category()};
}

const sockaddr* pointer_to(const sockaddr_un& name) {
  return reinterpret_cast<const sockaddr*>(&name);
}

}  // namespace

local_network::local_network(asio::any_io_executor executor) : executor_(std::move(executor)) {
  core::network::replace(executor_, this);
}

local_network::~local_network() {
  core::network::replace(executor_, nullptr);
}

asio::awaitable<error_code> local_network::connect(tcp::socket* socket, tcp::endpoint to) {
  const auto server = servers_.find(to.port());
  if (server == servers_.end()) co_return asio::error::connection_refused;
  sockaddr_un name{};
  server->second.copy(reinterpret_cast<char*>(&name), sizeof name);
  error_code error;
  socket->assign(tcp::v4(), make_socket(), error);
  const auto size = static_cast<socklen_t>(server->second.size());
  if (!error && ::connect(socket->native_handle(), pointer_to(name), size) != 0) {
    error = last_error();
  }
  co_return error;
}

error_code local_network::listen(tcp::acceptor& acceptor, const tcp::endpoint& at) {
  const int socket = make_socket();
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  socklen_t size = sizeof name;
  // Without a name: the kernel finds a free one (unix(7), "Autobind feature").
  const bool listens = ::bind(socket, pointer_to(name), sizeof name.sun_family) == 0 &&
                       ::listen(socket, SOMAXCONN) == 0 &&
                       ::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size) == 0;
  if (!listens) {
    const auto error = last_error();
    ::close(socket);
    return error;
  }
  servers_[at.port()].assign(reinterpret_cast<const char*>(&name), size);
  error_code error;
  acceptor.assign(tcp::v4(), socket, error);
  return error;
}

std::unique_ptr<core::transport> local_network::make_plain() {
  return std::make_unique<http::test::h2_transport>();
}

}  // namespace rw::test
