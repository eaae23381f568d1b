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

}  // namespace

void use_http() {
  asio::io_context context;
  run(context, body());
}
