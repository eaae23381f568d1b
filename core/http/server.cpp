#include "core/http/server.hpp"

#include "core/http/server_connection.hpp"
#include "core/ready.hpp"
#include "core/task_group.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <list>
#include <mutex>
#include <sstream>
#include <stdexcept>

namespace rw::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

core::counter& rejected(core::metrics& registry, const std::string& server, const char* reason) {
  return core::make_counter(registry, "rw_http_rejected_total",
                            "Connections and requests that were refused or given up, by reason",
                            {{"server", server}, {"reason", reason}});
}

core::counter& requests(core::metrics& registry, const std::string& server, const char* protocol) {
  return core::make_counter(registry, "rw_http_requests_total", "Requests that were answered",
                            {{"server", server}, {"protocol", protocol}});
}

std::string text(const tcp::endpoint& endpoint) {
  std::ostringstream out;
  out << endpoint;
  return out.str();
}

/// Keeps the number of open connections true, whichever way a connection ends.
class open_count {
 public:
  explicit open_count(server_shared& shared) : shared_(shared) {
    shared_.counters.open.Set(static_cast<double>(shared_.open.fetch_add(1) + 1));
  }
  ~open_count() { shared_.counters.open.Set(static_cast<double>(shared_.open.fetch_sub(1) - 1)); }
  open_count(const open_count&) = delete;
  open_count& operator=(const open_count&) = delete;

 private:
  server_shared& shared_;
};

}  // namespace

server_counters::server_counters(core::metrics& r, const std::string& s)
    : connections(core::make_counter(r, "rw_http_connections_total",
                                     "Connections that were accepted", {{"server", s}})),
      open(core::make_gauge(r, "rw_http_open_connections", "Connections that are open",
                            {{"server", s}})),
      requests_http1(requests(r, s, "http/1.1")),
      requests_http2(requests(r, s, "h2")),
      too_many_connections(rejected(r, s, "connections")),
      handshake(rejected(r, s, "handshake")),
      header_timeout(rejected(r, s, "header_timeout")),
      body_timeout(rejected(r, s, "body_timeout")),
      write_timeout(rejected(r, s, "write_timeout")),
      malformed(rejected(r, s, "malformed")),
      header_size(rejected(r, s, "header_size")),
      body_size(rejected(r, s, "body_size")),
      memory(rejected(r, s, "memory")),
      protocol(rejected(r, s, "protocol")),
      flood(rejected(r, s, "flood")),
      too_many_streams(rejected(r, s, "streams")),
      vanished(rejected(r, s, "vanished")) {}

bool body_budget::take(std::size_t bytes) noexcept {
  const auto limit = shared_.options.limits.buffered_bytes;
  if (shared_.buffered.fetch_add(bytes) + bytes > limit) {
    shared_.buffered.fetch_sub(bytes);
    return false;
  }
  taken_ += bytes;
  return true;
}

void body_budget::release() noexcept {
  if (taken_ == 0) return;
  shared_.buffered.fetch_sub(taken_);
  taken_ = 0;
}

class server::implementation {
 public:
  implementation(asio::any_io_executor executor, server_options options, handler& answers,
                 server_environment environment, executor_source connection_executor)
      : executor_(executor),
        connection_executor_(std::move(connection_executor)),
        shared_(std::make_shared<server_shared>(std::move(options), answers, environment)),
        acceptor_(executor),
        connections_(executor, [this](std::exception_ptr failure) { report(failure); }) {
    listen();
  }

  tcp::endpoint address() const { return acceptor_.local_endpoint(); }
  std::size_t open_connections() const noexcept { return shared_->open.load(); }

  asio::awaitable<void> run();
  void drain();
  void on_each(void (server_connection::*what)());

 private:
  void listen();
  void report(std::exception_ptr failure);
  asio::awaitable<void> accept_until_draining();
  void accept_the_rest();
  void admit(tcp::socket socket, const asio::any_io_executor& executor);
  asio::awaitable<void> serve(std::unique_ptr<core::stream> stream, tcp::endpoint from,
                              asio::any_io_executor executor);
  asio::awaitable<bool> shake_hands(core::stream* stream, tcp::endpoint from,
                                    asio::any_io_executor executor);
  void remember(const std::shared_ptr<server_connection>& connection,
                const asio::any_io_executor& executor);

  struct entry {
    std::weak_ptr<server_connection> connection;
    asio::any_io_executor executor;
  };

  const asio::any_io_executor executor_;
  const executor_source connection_executor_;
  const std::shared_ptr<server_shared> shared_;
  tcp::acceptor acceptor_;
  core::log_limit accept_log_;
  core::log_limit handshake_log_;
  std::mutex guard_;
  std::vector<entry> entries_;  ///< under `guard_`
  core::task_group connections_;
};

void server::implementation::listen() {
  const auto& where = shared_->options.address;
  boost::system::error_code error;
  acceptor_.open(where.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(where, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw std::runtime_error("cannot listen on " + text(where) + " (" + shared_->options.name +
                             "): " + error.message());
  }
}

void server::implementation::report(std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    shared_->environment.log.error("a connection ended with an exception",
                                   {{"server", shared_->options.name}, {"error", e.what()}});
  }
}

void server::implementation::remember(const std::shared_ptr<server_connection>& connection,
                                      const asio::any_io_executor& executor) {
  const std::lock_guard lock(guard_);
  if (entries_.size() >= 2 * shared_->open.load() + 16) {
    std::erase_if(entries_, [](const entry& e) { return e.connection.expired(); });
  }
  entries_.push_back({connection, executor});
}

asio::awaitable<bool> server::implementation::shake_hands(core::stream* stream, tcp::endpoint from,
                                                          asio::any_io_executor executor) {
  auto& socket = stream->socket();
  bool late = false;
  auto limit = shared_->environment.watchdog.watch(executor, [&] {
    late = true;
    core::interrupt(socket);
  });
  limit.arm(shared_->now() + shared_->options.limits.handshake);
  core::io_result step;
  while (!late) {
    step = stream->handshake();
    if (step.wants == core::want::nothing) break;
    const auto error = co_await core::ready(socket, step.wants);
    if (error) step.error = error;
    if (error) break;
  }
  if (!late && !step.error) co_return true;
  shared_->counters.handshake.Increment();
  shared_->environment.log.limited(
      handshake_log_, core::log_level::warning, "handshake failed",
      {{"server", shared_->options.name},
       {"peer", text(from)},
       {"error", late ? std::string("timed out") : step.error.message()}});
  co_return false;
}

asio::awaitable<void> server::implementation::serve(std::unique_ptr<core::stream> stream,
                                                    tcp::endpoint from,
                                                    asio::any_io_executor executor) {
  const open_count counted(*shared_);
  const bool trusted = co_await shake_hands(stream.get(), from, executor);
  if (!trusted) co_return;
  const auto make = stream->protocol() == "h2" ? make_http2_connection : make_http1_connection;
  const std::shared_ptr<server_connection> connection =
      make(shared_, executor, std::move(stream), std::move(from));
  remember(connection, executor);
  if (shared_->draining) connection->drain();
  co_await connection->run();
}

asio::awaitable<void> server::implementation::accept_until_draining() {
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
void server::implementation::accept_the_rest() {
  boost::system::error_code error;
  acceptor_.non_blocking(true, error);
  while (!error) {
    const auto executor = connection_executor_ ? connection_executor_() : executor_;
    tcp::socket socket(executor);
    acceptor_.accept(socket, error);
    if (!error) admit(std::move(socket), executor);
  }
}

void server::implementation::admit(tcp::socket socket, const asio::any_io_executor& executor) {
  shared_->counters.connections.Increment();
  if (shared_->open.load() >= shared_->options.limits.connections) {
    shared_->counters.too_many_connections.Increment();
    return;
  }
  boost::system::error_code error;
  auto from = socket.remote_endpoint(error);
  if (error) return;
  auto stream = shared_->environment.transport.wrap(std::move(socket));
  if (!stream) return;
  connections_.spawn(executor, serve(std::move(stream), std::move(from), executor));
}

asio::awaitable<void> server::implementation::run() {
  std::exception_ptr failure;
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
  if (failure) std::rethrow_exception(failure);
}

/// Calls `what` on each open connection, on its executor.
void server::implementation::on_each(void (server_connection::*what)()) {
  const std::lock_guard lock(guard_);
  for (const auto& one : entries_) {
    asio::post(one.executor, [what, weak = one.connection] {
      if (const auto connection = weak.lock()) (connection.get()->*what)();
    });
  }
}

void server::implementation::drain() {
  if (shared_->draining.exchange(true)) return;
  asio::post(executor_, [this] {
    boost::system::error_code ignored;
    acceptor_.cancel(ignored);
  });
  on_each(&server_connection::drain);
}

server::server(asio::any_io_executor executor, server_options options, handler& answers,
               server_environment environment, executor_source connection_executor)
    : impl_(std::make_unique<implementation>(std::move(executor), std::move(options), answers,
                                             environment, std::move(connection_executor))) {}
server::~server() = default;
tcp::endpoint server::address() const {
  return impl_->address();
}
asio::awaitable<void> server::run() {
  return impl_->run();
}
void server::drain() {
  impl_->drain();
}
void server::drop_connections() {
  impl_->on_each(&server_connection::drop);
}
std::size_t server::open_connections() const noexcept {
  return impl_->open_connections();
}

}  // namespace rw::http
