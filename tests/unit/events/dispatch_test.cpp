#include "rw/reactors/events/dispatch.hpp"

#include "rw/reactors/intake/listener.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/tls/transport.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/events/upstream.hpp"
#include "tests/unit/tls/pki.hpp"
#include <optional>
#include <set>

BOOST_AUTO_TEST_SUITE(dispatch)

namespace asio = boost::asio;
namespace core = rw::core;
namespace http = rw::http;
using namespace std::chrono_literals;
using rw::dispatch::test::event;
using rw::dispatch::test::value;
using rw::dispatch::test::world;

namespace {

/// Answers with these statuses, then with 200.
auto answers(std::vector<unsigned> statuses) {
  return [statuses = std::move(statuses), i = std::size_t{0}](const http::request&,
                                                              http::response& into) mutable {
    if (i < statuses.size()) into.text(statuses[i++], "scripted");
  };
}

}  // namespace

BOOST_AUTO_TEST_CASE(event_is_posted_to_the_path_of_its_manager) {
  world w;
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    w.send("one", "lifecycle-manager");
    co_await w.until_outcome("delivered", 1);
    BOOST_REQUIRE(w.kcp.got.size() == 1U);
    BOOST_TEST(w.kcp.got[0].target == "/v2/lifecycle-manager/event");
    BOOST_TEST(w.kcp.got[0].body == R"({"watched":{"Namespace":"ns","Name":"one"},)"
                                    R"("watchedGvk":{"group":"g","version":"v1","kind":"Kind"}})");
    BOOST_TEST(value(w.metrics, "watcher_kcp_requests_total") == 1);
    BOOST_TEST(w.under_test->pending() == 0U);
    co_await w.finish();
  });
}

BOOST_AUTO_TEST_CASE(request_has_the_age_of_its_event_since_the_first_acceptance) {
  world w;
  w.options.schedule.retry_base = 20ms;
  w.options.schedule.retry_limit = 20ms;
  w.random = [] { return std::chrono::nanoseconds(20ms).count(); };
  std::vector<std::optional<std::chrono::milliseconds>> ages;
  w.kcp.script = [&](const http::request& from, http::response& into) {
    ages.push_back(rw::parse_event_age(from.headers.get(rw::event_age_header)));
    if (ages.size() < 3) into.text(503, "busy");
    if (ages.size() == 2) w.send("one");  // changes in flight
  };
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    w.send("one");
    co_await w.until_outcome("delivered", 1);
    BOOST_REQUIRE(ages.size() == 3U);
    BOOST_TEST((ages[0] >= 0ms && ages[0] < 20ms));
    BOOST_TEST((ages[1] >= 20ms && ages[1] < 10s));
    BOOST_TEST((ages[2] >= 40ms && ages[2] < 10s));
  });
}

BOOST_AUTO_TEST_CASE(losses_are_counted_and_reported) {
  world w;
  w.options.schedule.capacity = 1;
  w.kcp.hang = true;
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    w.send("one");
    co_await w.until([&] { return w.kcp.got.size() == 1; });
    w.send("two");
    co_await w.until_outcome("overflow", 1);
    BOOST_TEST(w.under_test->statistics().counts.overflowed == 1U);
    BOOST_TEST(w.objects.losses().at("") == 1U);
    BOOST_TEST((w.under_test->statistics().oldest > core::duration::zero()));
    w.kcp.resume();
    co_await w.until_outcome("delivered", 1);
    const auto done = w.under_test->statistics();
    BOOST_TEST(done.counts.delivered == 1U);
    BOOST_TEST((done.counts.delivery_time > core::duration::zero()));
    BOOST_TEST((done.oldest == core::duration::zero()));
  });
}

BOOST_AUTO_TEST_CASE(statistics_name_the_refused_event_and_the_age_of_others) {
  world w;
  w.options.schedule.threshold = 1000;
  w.kcp.script = [](const http::request& from, http::response& into) {
    if (from.target == "/v2/busy/event") into.text(503, "busy");
    if (from.body.find("bad") != std::string::npos) into.text(422, "bad");
  };
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    w.send("bad");
    co_await w.until([&] { return w.kcp.times("bad") > 0; });
    w.send("waits", "busy");
    w.send("good");
    co_await w.until_outcome("delivered", 1);
    const auto now = w.under_test->statistics();
    BOOST_REQUIRE(now.refused.has_value());
    BOOST_TEST(now.refused->event.watched.name == "bad");
    BOOST_TEST(now.refused->status == 422U);
    BOOST_TEST((now.oldest_other > core::duration::zero()));
    BOOST_TEST((now.oldest > now.oldest_other));
    BOOST_TEST(now.oldest_manager == "busy");
    w.kcp.script = {};
    co_await w.until_outcome("delivered", 3);
    const auto done = w.under_test->statistics();
    BOOST_TEST(!done.refused.has_value());
    BOOST_TEST((done.oldest_other == core::duration::zero()));
    BOOST_TEST(done.oldest_manager == "");
  });
}

BOOST_AUTO_TEST_CASE(event_is_sent_until_it_is_accepted_while_its_receiver_may_recover) {
  world w;
  w.kcp.script = answers({503, 500, 404, 401, 403, 408, 429, 302});
  w.options.schedule.threshold = 100;
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    w.send("one");
    co_await w.until_outcome("delivered", 1);
    BOOST_TEST(w.kcp.times("one") == 9U);
    BOOST_TEST(w.outcome("retried") == 8);
    BOOST_TEST(value(w.metrics, R"(watcher_failed_kcp_total{error_reason="failed-request"})") == 8);
  });
}

BOOST_AUTO_TEST_CASE(rejected_event_is_counted_and_sent_again) {
  for (const unsigned status : {400U, 405U, 413U, 421U, 431U, 495U}) {
    world w;
    w.kcp.script = answers({status});
    w.run([&]() -> asio::awaitable<void> {
      w.dispatch();
      w.send("one");
      co_await w.until_outcome("rejected", 1);
      w.send("two");
      co_await w.until_outcome("delivered", 2);
      BOOST_TEST(w.kcp.times("one") == 2U);
      BOOST_TEST(w.outcome("rejected") == 1);
    });
  }
}

BOOST_AUTO_TEST_CASE(change_while_its_event_is_in_flight_is_sent_after_it) {
  world w;
  w.kcp.hang = true;
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    w.send("one");
    co_await w.until([&] { return w.kcp.got.size() == 1; });
    w.send("one");
    w.send("one");
    co_await w.until_outcome("coalesced", 2);
    BOOST_TEST(w.kcp.got.size() == 1U);
    w.kcp.resume();
    co_await w.until_outcome("delivered", 2);
    BOOST_TEST(w.kcp.times("one") == 2U);
    co_await w.finish();
  });
}

BOOST_AUTO_TEST_CASE(while_the_upstream_is_dead_events_wait_and_it_is_found_again) {
  world w;
  w.run([&]() -> asio::awaitable<void> {
    w.serving.cancel();
    co_await w.until([&] { return w.serving.size() == 0; });
    w.dispatch();
    for (int i = 0; i < 100; ++i) w.send("x" + std::to_string(i));
    co_await w.until([&] {
      return value(w.metrics, R"(rw_http_client_connect_errors_total{client="kcp"})") >= 5;
    });
    BOOST_TEST(w.outcome("delivered") == 0);
    BOOST_TEST(w.under_test->pending() == 100U);
    co_await w.until([&] { return value(w.metrics, "rw_dispatch_open_circuits") == 1; });
    BOOST_TEST(w.under_test->statistics().upstream_open);
    w.open();
    core::task_group revived(w.context.get_executor());
    revived.spawn(w.server->run());
    co_await w.until_outcome("delivered", 100);
    for (int i = 0; i < 100; ++i) BOOST_TEST(w.kcp.times("x" + std::to_string(i)) == 1U);
    co_await w.until([&] { return value(w.metrics, "rw_dispatch_open_circuits") == 0; });
    BOOST_TEST(!w.under_test->statistics().upstream_open);
    co_await w.finish();
    revived.cancel();
    co_await revived.join();
  });
}

BOOST_AUTO_TEST_CASE(closing_the_channel_delivers_what_is_in_it_and_ends) {
  world w;
  w.kcp.script = answers({503, 503, 503});
  w.run([&]() -> asio::awaitable<void> {
    for (int i = 0; i < 300; ++i) w.send("x" + std::to_string(i));
    w.events->close();
    w.dispatch();
    co_await w.finish();
    BOOST_TEST(w.outcome("delivered") == 300);
    BOOST_TEST(w.outcome("abandoned") == 0);
    BOOST_TEST(w.under_test->pending() == 0U);
  });
}

BOOST_AUTO_TEST_CASE(closed_empty_channel_ends_the_dispatcher_at_once) {
  world w;
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    co_await w.finish();
    BOOST_TEST(w.kcp.got.empty());
  });
}

BOOST_AUTO_TEST_CASE(cancelled_it_counts_all_that_it_leaves_behind) {
  world w;
  w.kcp.hang = true;
  w.options.batch_events = 8;
  w.run([&]() -> asio::awaitable<void> {
    for (int i = 0; i < 30; ++i) w.send("x" + std::to_string(i));
    w.dispatch();
    co_await w.until([&] { return w.under_test->pending() == 30 && !w.kcp.got.empty(); });
    w.dispatching.cancel();
    co_await w.until([&] { return w.dispatching.size() == 0; });
    BOOST_TEST(w.outcome("abandoned") == 30);
    BOOST_TEST(w.under_test->pending() == 30U, "those that it left");
    w.kcp.resume();
  });
}

BOOST_AUTO_TEST_CASE(dispatcher_empties_the_channel_and_counts_overflow_when_the_set_is_full) {
  world w;
  w.options.schedule.capacity = 4;
  bool down = true;
  w.kcp.script = [&](const http::request&, http::response& into) {
    if (down) into.text(503, "down");
  };
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    for (int i = 0; i < 100; ++i) w.send("x" + std::to_string(i));
    co_await w.until_outcome("overflow", 96);
    BOOST_TEST(w.events->size() == 0U);
    co_await w.until([&] { return w.outcome("retried") > 5; });
    down = false;
    co_await w.until_outcome("delivered", 4);
    co_await w.finish();
  });
}

BOOST_AUTO_TEST_CASE(upstream_that_hangs_costs_its_time_limit_and_no_event) {
  world w;
  w.options.upstream.limits.exchange = 30ms;
  w.kcp.hang = true;
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    w.send("one");
    co_await w.until([&] { return w.kcp.times("one") >= 3; });
    w.kcp.resume();
    co_await w.until_outcome("delivered", 1);
    BOOST_TEST(w.outcome("retried") >= 2);
    co_await w.finish();
  });
}

BOOST_AUTO_TEST_CASE(manager_that_fails_does_not_hold_up_another) {
  world w;
  bool sick = true;
  w.kcp.script = [&](const http::request& from, http::response& into) {
    if (sick && from.target == "/v2/sick/event") into.text(503, "sick");
  };
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    for (int i = 0; i < 50; ++i) {
      w.send("x" + std::to_string(i), "sick");
      w.send("x" + std::to_string(i), "well");
    }
    co_await w.until_outcome("delivered", 50);
    sick = false;
    co_await w.until_outcome("delivered", 100);
    co_await w.finish();
  });
}

BOOST_AUTO_TEST_CASE(batches_are_sent_once_offered_and_partial_answers_are_heeded) {
  world w;
  std::set<std::string> batches;
  bool busy = true;
  w.kcp.script = [&](const http::request& from, http::response& into) {
    into.headers.add("watch-event-batch", "10");
    if (from.target != "/v2/m/events") return;
    batches.insert(from.body);
    if (!std::exchange(busy, false)) return;
    into.status = 207;
    into.body = R"([{"index":1,"status":503},{"index":2,"status":400}])";
  };
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    w.send("first");
    co_await w.until_outcome("delivered", 1);
    for (const auto* name : {"a", "b", "c", "d"}) w.send(name);
    co_await w.until_outcome("delivered", 5);
    BOOST_TEST(w.outcome("rejected") == 1);
    BOOST_TEST(w.outcome("retried") == 1);
    BOOST_REQUIRE(!batches.empty());
    BOOST_TEST(batches.begin()->front() == '[');
    BOOST_TEST(w.kcp.times("b") == 2U);
    BOOST_TEST(w.kcp.times("c") == 2U);
    co_await w.finish();
  });
}

BOOST_AUTO_TEST_CASE(partial_response_that_makes_no_sense_is_no_response) {
  for (const auto* nonsense : {"", "nonsense", "{}", R"([{"index":9,"status":400}])",
                               R"([{"index":-1,"status":400}])", R"([{"index":0}])", "[1]"}) {
    world w;
    bool confused = true;
    w.kcp.script = [&](const http::request& from, http::response& into) {
      into.headers.add("watch-event-batch", "10");
      if (from.target != "/v2/m/events" || !std::exchange(confused, false)) return;
      into.status = 207;
      into.body = nonsense;
    };
    w.run([&]() -> asio::awaitable<void> {
      w.dispatch();
      w.send("first");
      co_await w.until_outcome("delivered", 1);
      for (const auto* name : {"a", "b"}) w.send(name);
      co_await w.until_outcome("delivered", 3);
      BOOST_TEST(w.outcome("retried") == 2);
      BOOST_TEST(w.outcome("rejected") == 0);
    });
  }
}

BOOST_AUTO_TEST_CASE(receiver_that_offers_batches_and_refuses_them_gets_single_events) {
  for (const unsigned status : {400U, 404U, 405U, 413U}) {
    world w;
    int refused = 0;
    w.kcp.script = [&](const http::request& from, http::response& into) {
      into.headers.add("watch-event-batch", "10");
      if (from.target != "/v2/m/events") return;
      ++refused;
      into.text(status, "no batches here");
    };
    w.run([&]() -> asio::awaitable<void> {
      w.dispatch();
      w.send("first");
      co_await w.until_outcome("delivered", 1);
      for (int i = 0; i < 40; ++i) w.send("x" + std::to_string(i));
      co_await w.until_outcome("delivered", 41);
      BOOST_TEST(w.outcome("rejected") == 0);
      BOOST_TEST(refused >= 1);
      BOOST_TEST(refused <= 2);  // two may have been under way
      co_await w.finish();
    });
  }
}

BOOST_AUTO_TEST_CASE(with_new_certificates_new_connections_are_made_and_nothing_is_lost) {
  world w;
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    for (int i = 0; i < 20; ++i) {
      w.send("x" + std::to_string(i));
      w.under_test->renew_connections();
      co_await w.until_outcome("delivered", i + 1);
    }
    BOOST_TEST(value(w.metrics, R"(rw_http_client_connections_total{client="kcp"})") >= 15);
    BOOST_TEST(w.outcome("retried") == 0);
    co_await w.finish();
  });
}

BOOST_AUTO_TEST_CASE(upstream_that_closes_each_connection_after_a_response_gets_everything) {
  world w;
  w.kcp.script = [&](const http::request&, http::response& into) {
    into.headers.add("connection", "close");
  };
  w.run([&]() -> asio::awaitable<void> {
    w.dispatch();
    for (int i = 0; i < 50; ++i) w.send("x" + std::to_string(i));
    co_await w.until_outcome("delivered", 50);
    for (int i = 0; i < 50; ++i) BOOST_TEST(w.kcp.times("x" + std::to_string(i)) == 1U);
    co_await w.finish();
  });
}

BOOST_AUTO_TEST_CASE(with_our_listener_events_go_in_batches_over_one_http2_connection) {
  const auto& pki = rw::tls::test::the_pki();
  world w;
  rw::listener::listener_options options;
  options.address = {asio::ip::address_v4::loopback(), 0};
  options.component = "m";
  options.tls = rw::tls::test::holding(pki.server, pki.ca.certificate_pem());
  auto registered = rw::listener::register_component(w.context.get_executor(), options,
                                                     {w.time, w.dog, w.log, w.metrics});
  const auto tls = rw::tls::test::good(rw::tls::make_client_transport(
      rw::tls::test::holding(pki.client, pki.ca.certificate_pem()), {.server_name = "localhost"}));
  w.run([&]() -> asio::awaitable<void> {
    w.serving.spawn(registered.runnable->run());
    w.dispatch_over(*tls, registered.runnable->address().port());
    constexpr int count = 1000;
    for (int i = 0; i < count; ++i) w.send("x" + std::to_string(i));
    std::set<std::string> received;
    co_await w.until([&] {
      while (auto one = registered.events->try_receive()) {
        BOOST_TEST(one->runtime_id == "runtime-1");
        BOOST_TEST(one->event.manager == "m");
        received.insert(one->event.watched.name);
      }
      return received.size() == count;
    });
    co_await w.until_outcome("delivered", count);
    BOOST_TEST(value(w.metrics, "watcher_kcp_requests_total") < count / 2);
    BOOST_TEST(value(w.metrics, R"(rw_http_client_connections_total{client="kcp"})") == 1);
    co_await w.finish();
  });
}

BOOST_AUTO_TEST_SUITE_END()
