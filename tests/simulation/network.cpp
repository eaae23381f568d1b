#include "tests/simulation/network.hpp"

#include "rw/core/stream.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/unit/http/echo.hpp"
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace rw::simulation {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t piece = 16 * 1024;

std::array<int, 2> make_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::runtime_error("no sockets are left");
  }
  return ends;
}

/// A name that is no file, and never used again (unix(7), "abstract").
address next_address() {
  static std::uint64_t used = 0;
  address made;
  made.name.sun_family = AF_UNIX;
  const auto text = "rw-simulation-" + std::to_string(::getpid()) + "-" + std::to_string(++used);
  std::ranges::copy(text, made.name.sun_path + 1);
  made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return made;
}

}  // namespace

/// One connection: what arrives at one socket is written to the other.
class simulated_network::link {
 public:
  link(simulated_network& of, std::uint16_t to, int client, int server)
      : port(to),
        network_(of),
        client_(of.in_.executor(), tcp::v4(), client),
        server_(of.in_.executor(), tcp::v4(), server),
        requests_{client_, server_, core::wake(of.in_.executor())},
        answers_{server_, client_, core::wake(of.in_.executor())} {}

  asio::awaitable<void> run() {
    core::task_group pumps(network_.in_.executor());
    pumps.spawn(pump(&requests_));
    pumps.spawn(pump(&answers_));
    co_await pumps.join();
  }

  void reset() {
    error_code ignored;
    client_.close(ignored);
    server_.close(ignored);
    resume();
  }
  void half_close(bool from_server) {
    auto& direction = from_server ? answers_ : requests_;
    error_code ignored;
    direction.ended = true;
    direction.to.shutdown(tcp::socket::shutdown_send, ignored);
  }
  void resume() {
    requests_.resumed.set();
    answers_.resumed.set();
  }

  const std::uint16_t port;

 private:
  struct direction {
    tcp::socket& from;
    tcp::socket& to;
    core::wake resumed;
    std::string data = {};
    bool ended = false;
  };

  asio::awaitable<void> pump(direction* way) {
    for (;;) {
      const auto [error] = co_await core::ready(way->from, core::want::read);
      if (error || !way->from.is_open()) break;
      way->data.resize(piece);
      const auto got = ::recv(way->from.native_handle(), way->data.data(), piece, MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) continue;
      if (got < 0) break;
      way->data.resize(static_cast<std::size_t>(got));
      co_await hold_back(way);
      if (!way->to.is_open()) break;
      if (got == 0) {
        error_code ignored;
        way->to.shutdown(tcp::socket::shutdown_send, ignored);
        co_return;
      }
      co_await write(way);
    }
    reset();
  }

  asio::awaitable<void> hold_back(direction* way) {
    const auto& path = network_.path(port);
    if (path.delay > duration::zero()) {
      co_await network_.in_.sleep(network_.in_.chance.up_to(path.delay));
    }
    while (path.stalls && way->to.is_open()) co_await way->resumed.wait();
  }

  asio::awaitable<void> write(direction* way) {
    std::string_view left = way->data;
    while (!left.empty() && !way->ended && way->to.is_open()) {
      const auto sent =
          ::send(way->to.native_handle(), left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
      if (sent < 0 && errno != EAGAIN) co_return reset();
      if (sent < 0) co_await core::ready(way->to, core::want::write);
    }
  }

  simulated_network& network_;
  tcp::socket client_;
  tcp::socket server_;
  direction requests_;
  direction answers_;
};

std::unique_ptr<core::transport> make_transport(bool http2) {
  if (http2) return std::make_unique<http::test::h2_transport>();
  return core::make_plain_transport();
}

simulated_network::simulated_network(environment& in, bool http2)
    : in_(in), http2_(http2), tasks_(in.executor()) {
  core::network::replace(in_.executor(), this);
}

simulated_network::~simulated_network() {
  in_.finish(tasks_);
  core::network::replace(in_.executor(), nullptr);
}

std::unique_ptr<core::transport> simulated_network::make_plain() {
  return make_transport(http2_);
}

asio::awaitable<void> simulated_network::run(std::shared_ptr<link> one) {
  const auto at = links_.insert(links_.end(), one);
  co_await asio::this_coro::throw_if_cancelled(false);
  try {
    co_await one->run();
  } catch (const boost::system::system_error&) {
    // The seed has ended.
  }
  links_.erase(at);
}

asio::awaitable<error_code> simulated_network::connect(tcp::socket* socket, tcp::endpoint to) {
  const auto port = to.port();
  const auto most = path(port).delay;
  if (most > duration::zero()) co_await in_.sleep(in_.chance.up_to(most));
  const auto ends = make_pair();
  error_code error;
  socket->assign(tcp::v4(), ends[0], error);
  if (path(port).loses || path(port).stalls) {
    co_await socket->async_wait(tcp::socket::wait_read,
                                asio::redirect_error(asio::use_awaitable, error));
    ::close(ends[1]);
    co_return asio::error::timed_out;
  }
  const auto server = servers_.find(port);
  const int other = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const bool reached = !path(port).refuses && server != servers_.end() &&
                       ::connect(other, reinterpret_cast<const sockaddr*>(&server->second.name),
                                 server->second.size) == 0;
  if (!reached) {
    ::close(ends[1]);
    ::close(other);
    co_return asio::error::connection_refused;
  }
  tasks_.spawn(run(std::make_shared<link>(*this, port, ends[1], other)));
  co_return error_code();
}

error_code simulated_network::listen(tcp::acceptor& acceptor, const tcp::endpoint& at) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const auto made = next_address();
  const auto* const name = reinterpret_cast<const sockaddr*>(&made.name);
  const bool listens = ::bind(socket, name, made.size) == 0 && ::listen(socket, SOMAXCONN) == 0;
  if (!listens) throw std::runtime_error("a simulated server cannot listen");
  servers_[at.port()] = made;
  error_code error;
  acceptor.assign(tcp::v4(), socket, error);
  return error;
}

void simulated_network::resume(std::uint16_t port) {
  for (const auto& each : links_) {
    if (each->port == port) each->resume();
  }
}

void simulated_network::cut(std::uint16_t port) {
  for (const auto& each : links_) {
    if (each->port == port) each->reset();
  }
}

void simulated_network::half_close(std::uint16_t port, bool from_server) {
  for (const auto& each : links_) {
    if (each->port == port) each->half_close(from_server);
  }
}

}  // namespace rw::simulation
