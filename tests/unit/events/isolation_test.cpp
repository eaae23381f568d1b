#include "rw/reactors/events/dispatch.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/events/upstream.hpp"

// What one operator's trouble may cost the others, and what no event may wait for.

BOOST_AUTO_TEST_SUITE(isolation)

namespace asio = boost::asio;
namespace core = rw::core;
namespace http = rw::http;
using namespace std::chrono_literals;
using asio::ip::tcp;
using rw::dispatch::test::event;
using rw::dispatch::test::value;
using rw::dispatch::test::world;

namespace {

/// Draws the longest pause where the ceiling is `pause`.
core::random_source longest(core::duration pause) {
  return [pause] { return static_cast<std::uint64_t>(pause.count()); };
}

bool is_for(const http::request& from, std::string_view manager) {
  return from.target == "/v2/" + std::string(manager) + "/event";
}

auto failing(std::string manager, unsigned status) {
  return [manager = std::move(manager), status](const http::request& from, http::response& into) {
    if (is_for(from, manager)) into.text(status, "scripted");
  };
}

/// Measures how long it takes until so many events are delivered in all.
asio::awaitable<core::duration> delivered_after(world* w, double events_in_all) {
  const auto begun = std::chrono::steady_clock::now();
  co_await w->until_outcome("delivered", events_in_all);
  co_return std::chrono::steady_clock::now() - begun;
}

/// A gateway that closes the connection on which a request for the manager `closes` comes, and
/// answers 200 to the others.
class closing_gateway {
 public:
  explicit closing_gateway(asio::any_io_executor executor)
      : acceptor_(executor, {asio::ip::address_v4::loopback(), 0}), sessions_(executor) {}

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  asio::awaitable<void> run() {
    for (;;) {
      auto peer = co_await acceptor_.async_accept(asio::use_awaitable);
      sessions_.spawn(serve(std::move(peer)));
    }
  }
  asio::awaitable<void> end() {
    sessions_.cancel();
    co_await sessions_.join();
  }

  int closed = 0;

 private:
  asio::awaitable<void> serve(tcp::socket peer) {
    std::string text;
    for (;;) {
      boost::system::error_code error;
      // The body ends with the object; its braces close twice.
      const auto size =
          co_await asio::async_read_until(peer, asio::dynamic_buffer(text), "\"}}",
                                          asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
      const bool closes = text.find("POST /v2/closes/") == 0;
      text.erase(0, size);
      if (closes) {
        ++closed;
        co_return;
      }
      static constexpr std::string_view ok = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
      co_await asio::async_write(peer, asio::buffer(ok),
                                 asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
    }
  }

  tcp::acceptor acceptor_;
  core::task_group sessions_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(dispatcher_probes_with_fresh_event_while_another_is_in_long_backoff) {
  world w;
  w.options.schedule.retry_base = 60s;
  w.options.schedule.retry_limit = 60s;
  w.options.schedule.probe_limit = 100ms;
  w.options.schedule.threshold = 1;
  w.random = longest(59s);
  bool down = true;
  w.kcp.script = [&](const http::request&, http::response& into) {
    if (down) into.text(503, "down");
  };
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    w.send("old");
    co_await w.until_outcome("retried", 1);
    down = false;
    w.send("fresh");
    const auto took = co_await delivered_after(&w, 2);  // its success releases the old one
    BOOST_TEST((took < 10s));
  });
}

BOOST_AUTO_TEST_CASE(dispatcher_delivers_for_healthy_manager_while_another_fills_the_set) {
  world w;
  w.options.schedule.capacity = 50;
  w.options.schedule.probe_limit = 60s;
  w.options.schedule.retry_base = w.options.schedule.retry_limit = 60s;
  w.random = longest(59s);
  w.kcp.script = failing("sick", 503);
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    for (int i = 0; i < 50; ++i) w.send("x" + std::to_string(i), "sick");
    co_await w.until([&] { return w.under_test->pending() == 50; });
    for (int i = 0; i < 20; ++i) w.send("x" + std::to_string(i), "well");
    const auto took = co_await delivered_after(&w, 20);
    BOOST_TEST((took < 10s));
  });
}

BOOST_AUTO_TEST_CASE(dispatcher_delivers_for_real_manager_beside_invented_ones) {
  world w;
  w.options.schedule.managers = 16;
  w.kcp.script = [](const http::request& from, http::response& into) {
    if (!is_for(from, "real")) into.text(404, "no route");
  };
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    for (int i = 0; i < 40; ++i) {
      w.send("x", "invented-" + std::to_string(i));
      co_await w.until([&] { return w.events->size() == 0; });
    }
    co_await w.until([&] { return w.outcome("retried") >= 40; });
    for (int i = 0; i < 10; ++i) w.send("x" + std::to_string(i), "real");
    co_await w.until_outcome("delivered", 10);
  });
}

BOOST_AUTO_TEST_CASE(dispatcher_merges_known_key_at_once_when_the_set_is_full) {
  world w;
  w.options.schedule.capacity = 4;
  w.kcp.hang = true;
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    for (int i = 0; i < 4; ++i) w.send("x" + std::to_string(i));
    co_await w.until([&] { return w.under_test->pending() == 4; });
    w.send("new");
    w.send("x1");
    co_await w.until_outcome("coalesced", 1);
    BOOST_TEST(w.outcome("overflow") == 1);
    BOOST_TEST(w.events->size() == 0U);  // nobody's write waits
    w.kcp.resume();
    co_await w.until_outcome("delivered", 5);
    BOOST_TEST(w.kcp.times("new") == 0U);
    BOOST_TEST(w.kcp.times("x1") == 2U);
    co_await w.finish();
  });
}

BOOST_AUTO_TEST_CASE(dispatcher_delivers_at_once_for_others_while_one_operator_closes_connections) {
  world w;
  w.options.schedule.retry_base = w.options.schedule.retry_limit = 60s;
  w.options.schedule.probe_limit = 60s;
  w.random = longest(59s);
  closing_gateway gateway(w.context.get_executor());
  w.run([&]() -> asio::awaitable<void> {
    w.serving.spawn(gateway.run());
    w.dispatch_over(*w.plain, gateway.port());
    double well = 0;
    for (int i = 0; i < 10; ++i) {
      w.send("c" + std::to_string(i), "closes");
      co_await w.until([&] { return gateway.closed > std::min(i, 4); });
      w.send("x" + std::to_string(i), "well");
      const auto took = co_await delivered_after(&w, ++well);
      BOOST_TEST((took < 10s));
    }
    w.dispatching.cancel();
    co_await w.until([&] { return w.dispatching.size() == 0; });
    co_await gateway.end();
  });
}

BOOST_AUTO_TEST_CASE(dispatcher_delivers_at_once_for_others_while_two_operators_hang) {
  world w;
  w.options.upstream.limits.exchange = 60s;
  w.kcp.hangs_on = [](const http::request& from) { return !is_for(from, "well"); };
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    for (int i = 0; i < 20; ++i) {
      w.send("x" + std::to_string(i), "hangs");
      w.send("x" + std::to_string(i), "too");
    }
    co_await w.until([&] { return w.kcp.got.size() >= 4; });
    for (int i = 0; i < 20; ++i) w.send("x" + std::to_string(i), "well");
    const auto took = co_await delivered_after(&w, 20);
    BOOST_TEST((took < 10s));
  });
}

BOOST_AUTO_TEST_CASE(
    dispatcher_delivers_for_others_as_soon_as_it_is_connected_although_a_probe_hangs) {
  world w;
  w.options.upstream.limits.exchange = 60s;
  w.options.schedule.retry_base = w.options.schedule.probe_limit = 200ms;
  w.random = longest(200ms);
  w.kcp.hangs_on = [](const http::request& from) { return !is_for(from, "well"); };
  w.run([&]() -> asio::awaitable<void> {
    w.serving.cancel();
    co_await w.until([&] { return w.serving.size() == 0; });
    w.dispatch();
    for (const auto* manager : {"hangs", "too", "well"}) w.send("x", manager);
    co_await w.until([&] {
      return value(w.metrics, R"(rw_http_client_connect_errors_total{client="kcp"})") >= 1;
    });
    w.open();
    core::task_group revived(w.context.get_executor());
    revived.spawn(w.server->run());
    const auto took = co_await delivered_after(&w, 1);
    BOOST_TEST((took < 10s));
    revived.cancel();
    co_await revived.join();
  });
}

BOOST_AUTO_TEST_CASE(dispatcher_gives_an_idle_manager_no_share_of_the_connections) {
  world w;
  w.options.upstream.limits.connections = 8;
  w.options.upstream.limits.exchange = 60s;
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    w.send("one", "idle");
    co_await w.until_outcome("delivered", 1);
    w.kcp.hang = true;
    for (int i = 0; i < 20; ++i) w.send("x" + std::to_string(i), "busy");
    co_await w.until([&] { return w.kcp.got.size() == 5; });  // four at once beside the first
    w.kcp.resume();
    co_await w.until_outcome("delivered", 21);
  });
}

BOOST_AUTO_TEST_CASE(dispatcher_counts_failed_connect_once_for_all_that_waited_for_it) {
  world w;
  w.options.schedule.retry_base = w.options.schedule.probe_limit = 60s;
  w.options.upstream.limits.connect = 200ms;
  w.random = longest(59s);
  // A listener whose backlog is full answers nothing.
  tcp::acceptor deaf(w.context);
  deaf.open(tcp::v4());
  deaf.bind({asio::ip::address_v4::loopback(), 0});
  deaf.listen(0);
  std::vector<tcp::socket> backlog;
  for (int i = 0; i < 4; ++i) {
    backlog.emplace_back(w.context).async_connect(deaf.local_endpoint(),
                                                  [](boost::system::error_code) {});
  }
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch_over(*w.plain, deaf.local_endpoint().port());
    for (int i = 0; i < 5; ++i) {
      w.send("x" + std::to_string(i));
      co_await w.until([&] { return w.events->size() == 0; });
    }
    co_await w.until([&] {
      return value(w.metrics, R"(rw_http_client_connect_errors_total{client="kcp"})") >= 1;
    });
    for (int i = 0; i < 100; ++i) co_await rw::test::turn();
    BOOST_TEST(value(w.metrics, R"(rw_http_client_connect_errors_total{client="kcp"})") == 1);
    BOOST_TEST(value(w.metrics, R"(watcher_failed_kcp_total{error_reason="failed-request"})") == 1);
    for (auto& one : backlog) one.close();
  });
}

BOOST_AUTO_TEST_CASE(dispatcher_publishes_delivery_times_and_figures_by_manager) {
  world w;
  w.kcp.script = failing("sick", 503);
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    for (int i = 0; i < 3; ++i) w.send("x" + std::to_string(i), "well");
    for (int i = 0; i < 2; ++i) w.send("x" + std::to_string(i), "sick");
    co_await w.until_outcome("delivered", 3);
    const auto is = [&](const char* series, auto condition) {
      return w.until([&, series, condition] { return condition(value(w.metrics, series)); });
    };
    co_await is("rw_dispatch_delivery_seconds_count", [](double v) { return v == 3; });
    co_await is(R"(rw_dispatch_manager_events{manager="sick"})", [](double v) { return v == 2; });
    co_await is(R"(rw_dispatch_manager_failures_total{manager="sick"})",
                [](double v) { return v >= 2; });
    co_await is(R"(rw_dispatch_manager_oldest_event_seconds{manager="sick"})",
                [](double v) { return v > 0; });
    co_await is("rw_dispatch_oldest_event_seconds", [](double v) { return v > 0; });
    w.kcp.script = {};
    co_await w.until_outcome("delivered", 5);
    co_await is(R"(rw_dispatch_manager_events{manager="sick"})", [](double v) { return v == 0; });
    co_await is("rw_dispatch_oldest_event_seconds", [](double v) { return v == 0; });
    co_await w.finish();
  });
}

BOOST_AUTO_TEST_SUITE_END()
