#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "use.hpp"
#include <rw/core/http/client.hpp>
#include <rw/core/http/client_error.hpp>
#include <rw/core/http/message.hpp>
#include <rw/core/http/server.hpp>
#include <rw/core/network.hpp>
#include <rw/core/resolver.hpp>
#include <rw/core/stream.hpp>
#include <rw/core/task_group.hpp>

namespace asio = boost::asio;
namespace core = rw::core;
namespace http = rw::http;

namespace {

struct echo final : http::handler {
  std::size_t body_limit(const http::request&) const override { return 1024; }
  asio::awaitable<void> handle(http::request& from, http::response& into) override {
    into.body = from.body;
    co_return;
  }
};

asio::awaitable<void> body() {
  const auto executor = co_await asio::this_coro::executor;
  core::real_clock clock;
  core::watchdog watchdog(clock, executor);
  core::logger log(core::log_level::error);
  core::metrics metrics;
  const auto transport = core::make_plain_transport();
  echo handler;
  http::server server(
      executor, {.name = "echo", .address = {asio::ip::address_v4::loopback(), 0}, .limits = {}},
      handler, {*transport, watchdog, log, metrics});
  http::client client(executor,
                      {.name = "host", .host = "127.0.0.1", .port = server.address().port()},
                      {*transport, watchdog, log, metrics});
  core::task_group background(executor);
  background.spawn(server.run());
  background.spawn(watchdog.run());

  http::client_slot slot;
  const auto connected = co_await client.acquire(slot);
  EXPECT(!connected);
  http::request request;
  request.body = "a body";
  http::response response;
  const auto failed = co_await slot.exchange(request, response);
  EXPECT(!failed && response.status == 200 && response.body == "a body");
  slot = {};
  co_await client.close();
  const auto closed = co_await client.acquire(slot);
  EXPECT(closed == http::client_error::shut_down);

  EXPECT(&core::network::of(executor) == &core::network::of(executor));
  EXPECT(!core::resolver::of(executor).busy());
  background.cancel();
  co_await background.join();
}

/// The host runs no watchdog: what arms a deadline does.
asio::awaitable<void> waits_end_without_a_watchdog_of_the_host() {
  using namespace std::chrono_literals;
  using asio::ip::tcp;
  const auto executor = co_await asio::this_coro::executor;
  core::logger log(core::log_level::error, [](std::string_view) {});
  core::metrics metrics;
  const auto transport = core::make_plain_transport();

  echo handler;
  http::server_limits limits;
  limits.header = 300ms;
  http::server server(
      executor,
      {.name = "echo", .address = {asio::ip::address_v4::loopback(), 0}, .limits = limits}, handler,
      {.transport = *transport, .log = log, .metrics = metrics});
  core::task_group background(executor);
  background.spawn(server.run());
  tcp::socket stalls(executor);
  co_await stalls.async_connect(server.address(), asio::use_awaitable);
  const std::string half = "POST / HTTP/1.1\r\n";
  co_await asio::async_write(stalls, asio::buffer(half), asio::use_awaitable);
  std::string said;
  boost::system::error_code ended;
  auto all = asio::dynamic_buffer(said);
  co_await asio::async_read(stalls, all, asio::redirect_error(asio::use_awaitable, ended));
  EXPECT(said.starts_with("HTTP/1.1 408"));
  stalls.close();
  background.cancel();
  co_await background.join();

  // Connections to it come about, and are never accepted.
  tcp::acceptor silent(executor, {asio::ip::address_v4::loopback(), 0});
  http::client_options options{
      .name = "host", .host = "127.0.0.1", .port = silent.local_endpoint().port()};
  options.limits.exchange = 300ms;
  http::client client(executor, options, {.transport = *transport, .log = log, .metrics = metrics});
  http::client_slot slot;
  const auto connected = co_await client.acquire(slot);
  EXPECT(!connected);
  const http::request request;
  http::response response;
  const auto failed = co_await slot.exchange(request, response);
  EXPECT(failed == http::client_error::timed_out);
  slot = {};
  co_await client.close();
}

}  // namespace

void use_http() {
  asio::io_context context;
  run(context, body());
  run(context, waits_end_without_a_watchdog_of_the_host());
}
