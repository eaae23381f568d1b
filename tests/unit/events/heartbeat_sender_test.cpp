#include "rw/reactors/events/heartbeat_sender.hpp"

#include "rw/core/task_group.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/events/upstream.hpp"
#include "tests/unit/manual_clock.hpp"
#include <optional>

BOOST_AUTO_TEST_SUITE(heartbeat_sender)

namespace asio = boost::asio;
namespace core = rw::core;
namespace http = rw::http;
namespace heartbeats = rw::heartbeats;
using namespace std::chrono_literals;
using rw::dispatch::test::value;

namespace {

rw::watch_report watch(const std::string& manager, rw::watch_state state) {
  return {.manager = manager, .resource = "widgets", .field = "spec", .state = state};
}

/// A sender, and an upstream over plain HTTP/1.1 that records what it gets.
struct environment {
  asio::io_context context;
  core::manual_clock time;
  core::real_clock real;
  core::watchdog dog{real, context.get_executor(), 5ms};
  core::metrics metrics;
  std::vector<std::string> lines;
  core::logger log{core::log_level::info,
                   [this](std::string_view line) { lines.emplace_back(line); }};
  std::unique_ptr<core::transport> plain = core::make_plain_transport();
  rw::dispatch::test::upstream kcp{context.get_executor()};
  http::server server{context.get_executor(),
                      {"kcp", {asio::ip::address_v4::loopback(), 0}, {}},
                      kcp,
                      {*plain, dog, log, metrics}};
  http::client client{context.get_executor(), upstream(), {*plain, dog, log, metrics}};
  std::uint64_t random = 0;
  heartbeats::sender_options options;
  heartbeats::watcher_report report;
  int reports = 0;  ///< so often was `report` read
  std::optional<heartbeats::sender> under_test;
  core::task_group background{context.get_executor()};
  core::task_group sending{context.get_executor()};

  http::client_options upstream() const {
    http::client_options out;
    out.name = "kcp";
    out.host = "127.0.0.1";
    out.port = server.address().port();
    return out;
  }

  void start() {
    under_test.emplace(
        context.get_executor(), options,
        heartbeats::sender_environment{time, log, metrics, [this] { return random; }, client,
                                       [this] {
                                         ++reports;
                                         return report;
                                       }});
    sending.spawn(under_test->run());
  }

  asio::awaitable<void> stop() {
    sending.cancel();
    co_await until([this] { return sending.size() == 0; });
  }

  asio::awaitable<void> until(std::function<bool()> condition) {
    const bool came = co_await rw::test::eventually(std::move(condition));
    BOOST_TEST(came);
  }

  /// In their order.
  std::vector<rw::heartbeat> received() const {
    std::vector<rw::heartbeat> out;
    for (const auto& each : kcp.got) {
      BOOST_TEST(each.target == "/v2/runtime-watcher/event");
      const auto read = rw::parse_heartbeat(each.body);
      BOOST_REQUIRE(read.has_value());
      out.push_back(*read);
    }
    return out;
  }

  asio::awaitable<void> until_heartbeats(std::size_t count) {
    co_await until([this, count] { return received().size() >= count; });
    BOOST_TEST(received().size() == count);
  }

  /// Waits until the sender has counted the outcome of so many heartbeats.
  asio::awaitable<void> until_outcome(std::string outcome, double count) {
    co_await until([this, outcome, count] { return sent(outcome) >= count; });
  }

  double sent(const std::string& outcome) const {
    return value(metrics, "rw_heartbeats_total{outcome=\"" + outcome + "\"}");
  }

  /// Lets time pass up to a check that finds no reason for a heartbeat.
  asio::awaitable<void> pass(core::duration by) {
    const auto before = reports;
    time.advance(by);
    co_await until([this, before] { return reports > before; });
  }

  std::size_t logged(std::string_view text) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        lines, [&](const std::string& line) { return line.find(text) != std::string::npos; }));
  }

  void run(std::function<asio::awaitable<void>()> body) {
    rw::test::run(context, around(std::move(body)));
  }

  asio::awaitable<void> around(std::function<asio::awaitable<void>()> body) {
    background.spawn(dog.run());
    background.spawn(server.run());
    std::exception_ptr failure;
    try {
      co_await body();
    } catch (...) {
      failure = std::current_exception();
    }
    sending.cancel();
    co_await sending.join();
    co_await client.close();
    background.cancel();
    co_await background.join();
    if (failure) std::rethrow_exception(failure);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(first_heartbeat_is_sent_after_a_random_part_of_a_second) {
  environment env;
  env.random = std::uint64_t{1} << 63;
  env.report.content.version = "1.2.3";
  env.report.content.source = "both";
  std::string content_type;
  env.kcp.script = [&](const http::request& from, http::response&) {
    content_type = from.headers.get("content-type");
  };
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    co_await env.until([&] { return env.time.next_alarm() == env.time.now() + 500ms; });
    env.time.advance(500ms);
    co_await env.until_heartbeats(1);
    const auto got = env.received().at(0);
    BOOST_TEST(content_type == rw::heartbeat_media_type);
    BOOST_TEST(got.boot_id.size() == 32U);
    BOOST_TEST(got.sequence == 1U);
    BOOST_TEST(got.version == "1.2.3");
    BOOST_TEST(got.source == "both");
    BOOST_TEST(got.interval.count() == 60);
    co_await env.until_outcome("delivered", 1);
  });
}

BOOST_AUTO_TEST_CASE(heartbeats_follow_each_other_by_the_interval_without_news) {
  environment env;
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    env.time.advance(1s);
    co_await env.until_heartbeats(1);
    for (int i = 0; i < 11; ++i) co_await env.pass(5s);
    BOOST_TEST(env.received().size() == 1U);
    env.time.advance(5s);
    co_await env.until_heartbeats(2);
    BOOST_TEST(env.received().at(1).sequence == 2U);
  });
}

BOOST_AUTO_TEST_CASE(interval_is_shortened_by_up_to_a_tenth) {
  environment env;
  env.random = ~std::uint64_t{0};
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    env.time.advance(1s);
    co_await env.until_heartbeats(1);
    for (int i = 0; i < 10; ++i) co_await env.pass(5s);
    env.time.advance(4100ms);
    co_await env.until_heartbeats(2);
  });
}

BOOST_AUTO_TEST_CASE(news_is_reported_after_five_seconds) {
  using change = std::function<void(heartbeats::watcher_report&)>;
  const std::vector<change> changes = {
      [](auto& r) { r.content.watches = {watch("m", rw::watch_state::live)}; },
      [](auto& r) { r.content.watches[0].state = rw::watch_state::catching_up; },
      [](auto& r) { r.content.losses = {{"m", 1}}; },
      [](auto& r) { r.content.losses[0].count = 2; },
      [](auto& r) { r.content.managers_digest = std::string(64, 'a'); },
      [](auto& r) { r.content.ca_digest = std::string(64, 'a'); },
      [](auto& r) { r.content.source = "watch"; },
      [](auto& r) { r.content.certificate_not_after = std::chrono::system_clock::now(); },
      [](auto& r) { r.upstream_open = true; },
      [](auto& r) { r.upstream_open = false; },
  };
  environment env;
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    env.time.advance(1s);
    co_await env.until_heartbeats(1);
    std::size_t count = 1;
    for (const auto& each : changes) {
      each(env.report);
      env.report.content.events.accepted += 1;
      env.time.advance(4999ms);
      env.time.advance(1ms);
      co_await env.until_heartbeats(++count);
    }
    env.report.content.events.accepted += 1;
    co_await env.pass(5s);
    BOOST_TEST(env.received().size() == count, "numbers alone are no news");
  });
}

BOOST_AUTO_TEST_CASE(reloaded_files_are_reported_at_once) {
  environment env;
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    env.time.advance(1s);
    co_await env.until_heartbeats(1);
    const auto before = env.reports;
    env.under_test->reloaded();  // with what was there
    co_await env.until([&] { return env.reports > before; });
    BOOST_TEST(env.received().size() == 1U);
    for (const char digest : {'a', 'b', 'c'}) {
      env.report.content.ca_digest = std::string(64, digest);
      env.under_test->reloaded();
      co_await env.until_heartbeats(static_cast<std::size_t>(digest - 'a') + 2);
    }
    // From then on one a second.
    env.report.content.ca_digest = std::string(64, 'd');
    env.under_test->reloaded();
    co_await env.until([&] { return env.time.next_alarm() == env.time.now() + 1s; });
    BOOST_TEST(env.received().size() == 4U);
    env.time.advance(1s);
    co_await env.until_heartbeats(5);
    BOOST_TEST(env.received().back().ca_digest == std::string(64, 'd'));
  });
}

BOOST_AUTO_TEST_CASE(failed_heartbeat_is_replaced_by_the_next) {
  environment env;
  env.kcp.script = [](const http::request&, http::response& into) { into.text(503, "busy"); };
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    env.time.advance(1s);
    co_await env.until_outcome("failed", 1);
    env.kcp.script = {};
    for (int i = 0; i < 11; ++i) co_await env.pass(5s);
    BOOST_TEST(env.kcp.got.size() == 1U);
    env.time.advance(5s);
    co_await env.until_outcome("delivered", 1);
    BOOST_TEST(env.received().at(1).sequence == 2U);
    BOOST_TEST(env.logged("status 503") == 1U);
  });
}

BOOST_AUTO_TEST_CASE(sender_pauses_longer_and_longer_where_there_is_no_receiver) {
  environment env;
  env.options.interval = 60s;
  env.kcp.script = [](const http::request&, http::response& into) { into.text(404, "no"); };
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    env.time.advance(1s);
    co_await env.until_outcome("unsupported", 1);
    std::size_t count = 1;
    for (const int minutes : {1, 2, 4, 8, 10, 10}) {
      for (int i = 1; i < minutes; ++i) co_await env.pass(60s);
      BOOST_TEST(env.kcp.got.size() == count);
      env.time.advance(60s);
      co_await env.until_outcome("unsupported", static_cast<double>(++count));
    }
    BOOST_TEST(env.logged("takes no heartbeats") == 1U);
    env.kcp.script = {};
    for (int i = 0; i < 10; ++i) co_await env.pass(60s);
    co_await env.until_outcome("delivered", 1);
    env.time.advance(60s);
    co_await env.until_outcome("delivered", 2);
  });
}

BOOST_AUTO_TEST_CASE(last_heartbeat_is_sent_when_the_connections_of_events_are_closed) {
  environment env;
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    env.time.advance(1s);
    co_await env.until_outcome("delivered", 1);
    co_await env.stop();
    co_await env.client.close();
    env.report.content.events.abandoned = 7;
    http::client own(env.context.get_executor(), env.upstream(),
                     {*env.plain, env.dog, env.log, env.metrics});
    co_await env.under_test->finish(own);
    co_await own.close();
    const auto got = env.received();
    BOOST_REQUIRE(got.size() == 2U);
    BOOST_TEST(got[1].sequence == 2U);
    BOOST_TEST(got[1].events.abandoned == 7U);
  });
}

BOOST_AUTO_TEST_CASE(age_of_the_process_is_right_though_its_clock_is_set) {
  environment env;
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    env.time.advance(1s);
    co_await env.until_outcome("delivered", 1);
    env.time.step_wall(-1h);
    env.time.advance(60s);
    co_await env.until_outcome("delivered", 2);
    const auto got = env.received();
    BOOST_REQUIRE(got.size() == 2U);
    BOOST_TEST((got[1].started == got[0].started && *got[1].sent - *got[1].started == 61s));
  });
}

BOOST_AUTO_TEST_CASE(delivery_is_the_mean_since_the_heartbeat_that_arrived_last) {
  environment env;
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    env.report.content.events.delivered = 2;
    env.report.delivery_time = 20ms;
    env.time.advance(1s);
    co_await env.until_outcome("delivered", 1);
    env.kcp.script = [](const http::request&, http::response& into) { into.text(500, "no"); };
    env.report.content.events.delivered = 3;
    env.report.delivery_time = 120ms;
    env.time.advance(60s);
    co_await env.until_outcome("failed", 1);
    env.kcp.script = {};
    env.report.content.events.delivered = 4;
    env.report.delivery_time = 420ms;
    env.time.advance(60s);
    co_await env.until_outcome("delivered", 2);
    env.time.advance(60s);
    co_await env.until_outcome("delivered", 3);
    const auto got = env.received();
    BOOST_REQUIRE(got.size() == 4U);
    BOOST_TEST((got[0].delivery == 10ms));
    BOOST_TEST((got[1].delivery == 100ms));
    BOOST_TEST((got[2].delivery == 200ms));
    BOOST_TEST(!got[3].delivery.has_value());
  });
}

BOOST_AUTO_TEST_CASE(sender_ends_while_a_response_is_outstanding) {
  environment env;
  env.kcp.hang = true;
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    env.time.advance(1s);
    co_await env.until_heartbeats(1);
    co_await env.stop();
    BOOST_TEST(env.sent("failed") == 0);
    env.kcp.resume();
  });
}

BOOST_AUTO_TEST_CASE(restarted_sender_has_another_boot_id) {
  environment env;
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    env.time.advance(1s);
    co_await env.until_outcome("delivered", 1);
    co_await env.stop();
  });
  const auto first = env.received().at(0);
  environment again;
  again.random = 7;
  again.run([&]() -> asio::awaitable<void> {
    again.start();
    again.time.advance(1s);
    co_await again.until_outcome("delivered", 1);
  });
  const auto second = again.received().at(0);
  BOOST_TEST(first.boot_id != second.boot_id);
  BOOST_TEST(second.sequence == 1U);
}

BOOST_AUTO_TEST_CASE(probe_is_named_by_the_next_heartbeat) {
  environment env;
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    env.time.advance(1s);
    co_await env.until_heartbeats(1);
    co_await env.until_outcome("delivered", 1);
    const auto report = env.under_test->probed("n1");
    BOOST_TEST(report.nonce == "n1");
    BOOST_TEST(report.upstream == "");
    env.time.advance(5s);
    co_await env.until_heartbeats(2);
    const auto got = env.received();
    BOOST_TEST(report.boot_id == got.at(1).boot_id);
    BOOST_TEST((got.at(1).probes == std::vector<std::string>{"n1"}));
    for (const auto* nonce : {"n2", "n3", "n4", "n5"}) env.under_test->probed(nonce);
    env.under_test->probed("");
    co_await env.until_outcome("delivered", 2);
    env.time.advance(5s);
    co_await env.until_heartbeats(3);
    BOOST_TEST((env.received().at(2).probes == std::vector<std::string>{"n2", "n3", "n4", "n5"}));
  });
}

BOOST_AUTO_TEST_CASE(probe_learns_why_kcp_is_not_reached) {
  environment env;
  unsigned status = 503;
  env.kcp.script = [&](const http::request&, http::response& into) { into.text(status, "no"); };
  env.run([&]() -> asio::awaitable<void> {
    env.start();
    env.time.advance(1s);
    co_await env.until_outcome("failed", 1);
    BOOST_TEST(env.under_test->probed("n1").upstream == "status 503");
    status = 200;
    env.time.advance(5s);
    co_await env.until_outcome("delivered", 1);
    BOOST_TEST(env.under_test->probed("n2").upstream == "");
    status = 404;
    env.time.advance(5s);
    co_await env.until_outcome("unsupported", 1);
    BOOST_TEST(env.under_test->probed("n3").upstream == "status 404: nothing routes heartbeats");
    status = 200;
    env.time.advance(5s);  // without the pause after a 404
    co_await env.until_outcome("delivered", 2);
  });
}

BOOST_AUTO_TEST_SUITE_END()
