#include "rw/k8s/cache/list_watch.hpp"

#include "rw/k8s/cache/watch_health.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/scripted_source.hpp"
#include <memory>
#include <string>

BOOST_AUTO_TEST_SUITE(list_watch)

namespace asio = boost::asio;
namespace core = rw::core;
using namespace rw::k8s::test;
using rw::k8s::errc;

namespace {

/// Writes down what it receives.
struct recorder final : rw::k8s::object_sink {
  void begin_listing() override { text += "[ "; }
  void put(rw::k8s::object next) override { text += "+" + std::string(next.name()) + " "; }
  void remove(const rw::k8s::object& last) override {
    text += "-" + std::string(last.name()) + " ";
  }
  void end_listing() override { text += "] "; }
  void live(bool live) override { text += live ? "live " : "down "; }
  void request_failed(const rw::k8s::failure& error) override {
    text += "failed:" + std::to_string(error.status) + " ";
  }
  void after_input() override {}

  std::string take() { return std::exchange(text, {}); }

  std::string text;
};

/// An opened watch that does nothing until it goes, as a client's over HTTP/2.
struct opened_exchange final : rw::http::opened_exchange {
  explicit opened_exchange(bool& closed) : closed_(closed) {}
  ~opened_exchange() override { closed_ = true; }

  bool& closed_;
};

struct environment {
  environment() = default;
  ~environment() {
    tasks.cancel();
    rw::test::run(context, tasks.join());
  }

  asio::awaitable<void> expect(std::string call) {
    const bool came = co_await rw::test::eventually([&] { return source->call == call; });
    BOOST_REQUIRE_MESSAGE(came, "no call came, but should: " << call);
  }

  /// Lets time pass until the driver calls again.
  asio::awaitable<void> expect_after_pause(std::string call) {
    const bool came = co_await rw::test::eventually([&] {
      const auto next = clock.next_alarm();
      if (next != core::time_point::max()) clock.advance(next - clock.now());
      return source->call == call;
    });
    BOOST_REQUIRE_MESSAGE(came, "no call came, but should: " << call);
  }

  asio::io_context context{1};
  core::manual_clock clock;
  core::metrics metrics{};
  core::logger log{core::log_level::error};
  std::shared_ptr<scripted_source> source =
      std::make_shared<scripted_source>(context.get_executor());
  recorder sink;
  rw::k8s::list_watch under_test{source,
                                 configmaps(),
                                 {.streaming_list = false},
                                 {clock, log, metrics, [] { return std::uint64_t{7}; }},
                                 sink};
  core::task_group tasks{context.get_executor()};
};

}  // namespace

RW_COROUTINE_TEST(sink_is_live_from_a_watch_response_until_the_watch_ends, environment) {
  auto& source = *env->source;
  env->tasks.spawn(env->under_test.run());
  co_await env->expect("list 500");
  source.accepts_watches = false;
  source.answer(list("10", {configmap("a", "1")}));
  co_await env->expect("watch 10");
  BOOST_TEST(env->sink.take() == "[ +a ] ");
  source.send(event("ADDED", configmap("b", "11")));
  BOOST_TEST(env->sink.take() == "live +b ");
  source.fail(errc::unreachable);
  co_await env->expect_after_pause("watch 11");
  BOOST_TEST(env->sink.take() == "down failed:0 ");
}

RW_COROUTINE_TEST(streaming_list_is_live_once_it_is_complete, environment) {
  auto& source = *env->source;
  rw::k8s::list_watch streaming(env->source, configmaps(), {},
                                {env->clock, env->log, env->metrics, [] { return 7U; }}, env->sink);
  core::task_group tasks(env->context.get_executor());
  tasks.spawn(streaming.run());
  co_await env->expect("version");
  source.answer();
  co_await env->expect("stream");
  source.send(event("ADDED", configmap("a", "1")));
  BOOST_TEST(env->sink.take() == "[ +a ");
  source.send(bookmark("10", true) + event("DELETED", configmap("a", "11")));
  BOOST_TEST(env->sink.take() == "] live -a ");
  tasks.cancel();
  co_await tasks.join();
}

RW_COROUTINE_TEST(failed_page_is_reported_to_the_sink, environment) {
  env->tasks.spawn(env->under_test.run());
  co_await env->expect("list 500");
  env->source->fail(errc::forbidden, 403);
  co_await env->expect_after_pause("list 500");
  BOOST_TEST(env->sink.take() == "[ failed:403 ");
}

RW_COROUTINE_TEST(refused_watch_is_reported_to_the_sink, environment) {
  auto& source = *env->source;
  env->tasks.spawn(env->under_test.run());
  co_await env->expect("list 500");
  source.accepts_watches = false;
  source.answer(list("10", {}));
  co_await env->expect("watch 10");
  env->sink.take();
  source.fail(errc::not_found, 404);
  co_await env->expect_after_pause("watch 10");
  BOOST_TEST(env->sink.take() == "failed:404 ");
}

RW_COROUTINE_TEST(silent_watch_ends_at_once_for_a_list_when_told_to_list_again, environment) {
  auto& source = *env->source;
  env->tasks.spawn(env->under_test.run());
  co_await env->expect("list 500");
  source.answer(list("1004", {configmap("a", "1"), configmap("b", "1004")}));
  co_await env->expect("watch 1004");
  BOOST_TEST(env->sink.take() == "[ +a +b ] live ");
  env->under_test.list_again();
  co_await env->expect("list 500");
  BOOST_TEST(env->sink.take() == "[ ");
  source.answer(list("500", {configmap("a", "500")}));
  co_await env->expect("watch 500");
  BOOST_TEST(source.send(event("MODIFIED", configmap("a", "501"))));
  BOOST_TEST(env->sink.take() == "+a ] +a ");
  BOOST_TEST(env->under_test.resource_version() == "501");
}

RW_COROUTINE_TEST(opened_watch_is_closed_at_once_when_told_to_list_again, environment) {
  auto& source = *env->source;
  env->tasks.spawn(env->under_test.run());
  co_await env->expect("list 500");
  source.answer(list("10", {}));
  co_await env->expect("watch 10");
  bool closed = false;
  source.open(std::make_unique<opened_exchange>(closed));
  const bool idle = co_await rw::test::eventually([&] { return source.call.empty(); });
  BOOST_TEST(idle);
  for (int i = 0; i < 5; ++i) co_await rw::test::turn();
  env->under_test.list_again();
  co_await env->expect("list 500");
  BOOST_TEST(closed);
  BOOST_TEST(env->sink.take() == "[ ] live [ ");
}

RW_COROUTINE_TEST(listing_begins_anew_when_told_to_list_again, environment) {
  auto& source = *env->source;
  env->tasks.spawn(env->under_test.run());
  co_await env->expect("list 500");
  source.answer(list("10", {configmap("a", "1")}, "more"));
  co_await env->expect("list 500 more=more");
  env->under_test.list_again();
  co_await env->expect("list 500");
  source.answer(list("7", {configmap("b", "2")}));
  co_await env->expect("watch 7");
  BOOST_TEST(env->sink.take() == "[ +a [ +b ] live ");
}

RW_COROUTINE_TEST(sink_is_no_longer_live_when_the_list_told_of_fails, environment) {
  auto& source = *env->source;
  env->tasks.spawn(env->under_test.run());
  co_await env->expect("list 500");
  source.answer(list("10", {}));
  co_await env->expect("watch 10");
  env->under_test.list_again();
  co_await env->expect("list 500");
  env->sink.take();
  source.fail(errc::unreachable);
  co_await env->expect_after_pause("list 500");
  BOOST_TEST(env->sink.take() == "down failed:0 ");
  source.answer(list("10", {}));
  co_await env->expect("watch 10");
  BOOST_TEST(env->sink.take() == "] live ");
}

RW_COROUTINE_TEST(pause_after_a_failure_is_not_shortened_when_told_to_list_again, environment) {
  auto& source = *env->source;
  env->tasks.spawn(env->under_test.run());
  co_await env->expect("list 500");
  source.answer(list("10", {}));
  co_await env->expect("watch 10");
  source.fail(errc::unreachable);
  const bool waits = co_await rw::test::eventually(
      [&] { return env->clock.next_alarm() != core::time_point::max(); });
  BOOST_TEST(waits);
  env->sink.take();
  const auto due = env->clock.next_alarm();
  env->under_test.list_again();
  for (int i = 0; i < 20; ++i) co_await rw::test::turn();
  BOOST_TEST(source.call == "");
  BOOST_TEST((env->clock.next_alarm() == due));
  co_await env->expect_after_pause("list 500");
  BOOST_TEST(env->sink.take() == "[ ");
}

RW_COROUTINE_TEST(watch_that_goes_backward_is_followed_by_a_list, environment) {
  auto& source = *env->source;
  env->tasks.spawn(env->under_test.run());
  co_await env->expect("list 500");
  source.answer(list("1004", {configmap("a", "1")}));
  co_await env->expect("watch 1004");
  BOOST_TEST(!source.send(bookmark("500")));
  co_await env->expect_after_pause("list 500");
  BOOST_TEST(env->sink.take() == "[ +a ] live down failed:0 [ ");
}

RW_COROUTINE_TEST(cancelled_driver_ends_in_any_request_and_lists_no_more, environment) {
  auto& source = *env->source;
  for (const bool in_a_watch : {false, true}) {
    core::task_group tasks(env->context.get_executor());
    tasks.spawn(env->under_test.run());
    co_await env->expect("list 500");
    if (in_a_watch) {
      source.answer(list("10", {}));
      co_await env->expect("watch 10");
      env->under_test.list_again();
    }
    tasks.cancel();
    co_await tasks.join();
    env->under_test.list_again();
    for (int i = 0; i < 20; ++i) co_await rw::test::turn();
    BOOST_TEST(source.call == "");
  }
}

RW_COROUTINE_TEST(watches_that_end_at_once_are_suspect_and_lead_to_a_list, environment) {
  auto& source = *env->source;
  env->tasks.spawn(env->under_test.run());
  co_await env->expect("list 500");
  source.answer(list("10", {configmap("a", "1")}));
  for (int i = 0; i < 5; ++i) {
    co_await env->expect_after_pause("watch 10");
    BOOST_TEST(env->under_test.suspect_since().has_value() == (i > 0));
    env->clock.advance(std::chrono::seconds(7));
    source.answer();
  }
  co_await env->expect_after_pause("list 500");
  source.answer(list("12", {configmap("a", "12")}));
  co_await env->expect_after_pause("watch 12");
  BOOST_TEST(env->under_test.suspect_since().has_value());
  // A watch that lasts is trusted before its end.
  env->clock.advance(rw::k8s::watch_health::proof_of_life);
  BOOST_TEST(!env->under_test.suspect_since().has_value());
  const auto text = core::expose(env->metrics);
  BOOST_TEST(text.find(R"(end="empty",resource="configmaps"} 5)") != std::string::npos, text);
}

RW_COROUTINE_TEST(streaming_list_that_brings_nothing_is_listed_in_pages_there, environment) {
  auto& source = *env->source;
  for (const bool again : {false, true}) {
    rw::k8s::list_watch streaming(env->source, configmaps(), {},
                                  {env->clock, env->log, env->metrics, [] { return 7U; }},
                                  env->sink);
    core::task_group tasks(env->context.get_executor());
    tasks.spawn(streaming.run());
    co_await env->expect("version");
    source.answer();
    if (!again) {
      co_await env->expect("stream");
      source.send(event("ADDED", configmap("a", "1")));
      const auto since = env->clock.now();
      co_await env->expect_after_pause("list 500");
      BOOST_TEST((env->clock.now() - since == std::chrono::seconds(30)));
    } else {
      // The server is not asked for another, by nobody.
      co_await env->expect("list 500");
    }
    source.answer(list("10", {configmap("a", "1")}));
    co_await env->expect("watch 10");
    tasks.cancel();
    co_await tasks.join();
  }
}

RW_COROUTINE_TEST(streaming_list_goes_on_for_as_long_as_objects_come, environment) {
  auto& source = *env->source;
  rw::k8s::list_watch streaming(env->source, configmaps(), {},
                                {env->clock, env->log, env->metrics, [] { return 7U; }}, env->sink);
  core::task_group tasks(env->context.get_executor());
  tasks.spawn(streaming.run());
  co_await env->expect("version");
  source.answer();
  co_await env->expect("stream");
  for (int i = 1; i <= 10; ++i) {
    source.send(event("ADDED", configmap("a" + std::to_string(i), std::to_string(i))));
    env->clock.advance(std::chrono::seconds(20));
    for (int turn = 0; turn < 10; ++turn) co_await rw::test::turn();
    BOOST_TEST(source.call == "stream");
  }
  source.send(bookmark("10", true));
  env->clock.advance(std::chrono::minutes(4));
  for (int turn = 0; turn < 10; ++turn) co_await rw::test::turn();
  BOOST_TEST(source.call == "stream");
  tasks.cancel();
  co_await tasks.join();
}

RW_COROUTINE_TEST(sign_of_life_ends_a_pause_at_most_once_a_second, environment) {
  auto& source = *env->source;
  const auto is_called = [&](std::string call) {
    return rw::test::eventually([&source, call] { return source.call == call; });
  };
  env->tasks.spawn(env->under_test.run());
  co_await env->expect("list 500");
  source.answer(list("10", {}));
  co_await env->expect("watch 10");
  env->under_test.try_early();  // nothing to end
  source.fail(errc::unreachable);
  for (int i = 0; i < 20; ++i) co_await rw::test::turn();
  env->under_test.try_early();
  bool early = co_await is_called("watch 10");
  BOOST_TEST(early);
  source.fail(errc::unreachable);
  for (int i = 0; i < 20; ++i) co_await rw::test::turn();
  env->under_test.try_early();
  for (int i = 0; i < 20; ++i) co_await rw::test::turn();
  BOOST_TEST(source.call == "");
  // The pause of one failure may be over by itself within a second.
  co_await env->expect_after_pause("watch 10");
  source.fail(errc::unreachable);
  for (int i = 0; i < 20; ++i) co_await rw::test::turn();
  env->clock.advance(std::chrono::milliseconds(1));
  env->under_test.try_early();
  env->under_test.try_early();
  co_await env->expect_after_pause("watch 10");
}

BOOST_AUTO_TEST_SUITE_END()
