#include "rw/core/http/server.hpp"

#include "rw/core/http/server_connection.hpp"
#include "rw/core/network.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <sstream>
#include <stdexcept>

namespace rw::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

std::string text(const tcp::endpoint& endpoint) {
  std::ostringstream out;
  out << endpoint;
  return out.str();
}

/// What can end a handshake from outside: its deadline, the memory policy, and the server.
class pending_handshake final : public account_owner {
 public:
  explicit pending_handshake(const accepted& parts)
      : place(parts.shared->handshakes, parts.executor, parts.own->address()),
        own_(*parts.own),
        socket_(parts.stream->socket()),
        limit_(parts.shared->environment.watchdog->watch(parts.executor, [this] {
          late = true;
          drop();
        })) {
    limit_.arm(parts.shared->now() + parts.shared->options.limits.handshake);
    own_.attach(this);
  }
  ~pending_handshake() { own_.attach(nullptr); }

  void drain() override {}  // the server knows, and says so to what comes of it
  void drop() override {
    ended = true;
    core::interrupt(socket_);
    place.interrupt();
  }
  void evict(std::size_t) override {
    evicted = true;
    drop();
  }

  handshake_queue::place place;
  bool late = false;
  bool evicted = false;
  bool ended = false;

 private:
  account& own_;
  tcp::socket& socket_;
  core::deadline limit_;
};

/// An IPv4 client of a socket for both families has an IPv4-mapped address (RFC 4291, section
/// 2.5.5.2); everywhere else it is the IPv4 address.
asio::ip::address unmapped(const asio::ip::address& of) {
  if (!of.is_v6() || !of.to_v6().is_v4_mapped()) return of;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, of.to_v6());
}

}  // namespace

server::server(asio::any_io_executor executor, server_options options, handler& responses,
               server_environment environment, executor_source connection_executor)
    : executor_(executor),
      connection_executor_(std::move(connection_executor)),
      shared_(
          std::make_shared<server_shared>(executor, std::move(options), responses, environment)),
      acceptor_(executor),
      connections_(executor, [this](std::exception_ptr failure) { report(failure); }) {
  listen();
}

server::~server() = default;

tcp::endpoint server::address() const {
  const auto& given = shared_->options.address;
  return given.port() == 0 ? acceptor_.local_endpoint() : given;
}

std::size_t server::open_connections() const {
  return shared_->held.connections();
}

void server::drop_connections() {
  shared_->held.for_each(&account_owner::drop);
}

void server::listen() {
  const auto& endpoint = shared_->options.address;
  const auto error = core::network::of(executor_).listen(acceptor_, endpoint);
  if (error) {
    throw std::runtime_error("cannot listen on " + text(endpoint) + " (" + shared_->options.name +
                             "): " + error.message());
  }
  // Accepted sockets inherit it (tcp(7)). A test's may be of another kind.
  boost::system::error_code ignored;
  const auto buffer = static_cast<int>(shared_->options.limits.receive_buffer);
  acceptor_.set_option(asio::socket_base::receive_buffer_size(buffer), ignored);
}

void server::report(std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    shared_->environment.log.error("a connection ended with an exception",
                                   {{"server", shared_->options.name}, {"error", e.what()}});
  }
}

/// False: the connection is not worth keeping, which has been counted.
asio::awaitable<bool> server::shake_hands(const accepted* parts) {
  auto& stream = *parts->stream;
  pending_handshake pending(*parts);
  core::io_result step;
  // A client that says nothing takes no turn from those that have said hello.
  if (stream.encrypted()) step.wants = core::want::read;
  while (!step.error && !pending.ended) {
    if (step.wants != core::want::nothing) {
      step.error = std::get<0>(co_await core::ready(stream.socket(), step.wants));
      if (step.error || pending.ended) break;
      co_await pending.place.turn();
      if (pending.ended) break;
    }
    step = stream.handshake();
    pending.place.done();
    if (!step.error && step.wants == core::want::nothing) co_return true;
  }
  const auto error = pending.late ? std::string("timed out") : step.error.message();
  shared_->note(pending.evicted ? refusal::handshakes : refusal::handshake, parts->from, nullptr, 0,
                pending.evicted ? "a newer one took its place" : error);
  co_return false;
}

asio::awaitable<void> server::serve(accepted parts) {
  const bool trusted = co_await shake_hands(&parts);
  if (!trusted) co_return;
  const auto make =
      parts.stream->protocol() == "h2" ? make_http2_connection : make_http1_connection;
  parts.own->enter(account::phase::idle, shared_->now());
  const std::shared_ptr<server_connection> connection = make(std::move(parts));
  if (shared_->draining) connection->drain();
  co_await connection->run();
}

asio::awaitable<void> server::accept_until_draining() {
  const auto pause = std::make_unique<asio::steady_timer>(executor_);
  while (!shared_->draining) {
    boost::system::error_code error;
    const auto executor = connection_executor_ ? connection_executor_() : executor_;
    auto socket =
        co_await acceptor_.async_accept(executor, asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) break;
    if (error) {
      // Out of descriptors or memory: the connection stays in the backlog, so go on a little later.
      shared_->environment.log.limited(
          accept_log_, core::log_level::error, "cannot accept a connection; trying again in 100 ms",
          {{"server", shared_->options.name}, {"error", error.message()}});
      pause->expires_after(std::chrono::milliseconds(100));
      co_await pause->async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    admit(std::move(socket), executor);
  }
  if (shared_->draining) accept_the_rest();
}

/// Connections that the system has made already would be reset when the acceptor goes, and their
/// clients not know whether anybody has seen a request. So they are told in order.
void server::accept_the_rest() {
  boost::system::error_code error;
  acceptor_.non_blocking(true, error);
  while (!error) {
    const auto executor = connection_executor_ ? connection_executor_() : executor_;
    tcp::socket socket(executor);
    acceptor_.accept(socket, error);
    if (!error) admit(std::move(socket), executor);
  }
}

void server::admit(tcp::socket socket, const asio::any_io_executor& executor) {
  shared_->connections.Increment();
  boost::system::error_code error;
  auto from = socket.remote_endpoint(error);
  if (error) return;
  from.address(unmapped(from.address()));
  auto own = shared_->held.open(executor, from.address(), shared_->now());
  if (!own) return shared_->note(refusal::connections, from);
  auto stream = shared_->environment.transport.wrap(std::move(socket));
  if (!stream) return;
  connections_.spawn(
      executor, serve({shared_, std::move(own), executor, std::move(stream), std::move(from)}));
}

asio::awaitable<void> server::run() {
  std::exception_ptr failure;
  core::task_group watching(executor_);
  auto& own_watchdog = shared_->own_watchdog;
  if (own_watchdog.is_own()) watching.spawn(own_watchdog.run());
  try {
    co_await accept_until_draining();
  } catch (...) {
    failure = std::current_exception();  // cancelled, or worse: then the owner must hear of it
  }
  const auto state = co_await asio::this_coro::cancellation_state;
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  if (failure || state.cancelled() != asio::cancellation_type::none) connections_.cancel();
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await connections_.join();
  watching.cancel();
  co_await watching.join();
  if (failure) std::rethrow_exception(failure);
}

void server::release_connections() {
  shared_->releasing = true;
}

void server::drain() {
  if (shared_->draining.exchange(true)) return;
  asio::post(executor_, [this] {
    boost::system::error_code ignored;
    acceptor_.cancel(ignored);
  });
  shared_->held.for_each(&account_owner::drain);
}

}  // namespace rw::http
