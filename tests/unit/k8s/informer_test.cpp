#include "rw/k8s/cache/informer.hpp"

#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/scripted_source.hpp"
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(informer)

namespace asio = boost::asio;
namespace core = rw::core;
using namespace std::chrono_literals;
using namespace rw::k8s::test;
using rw::k8s::delta;
using rw::k8s::errc;
using rw::k8s::object;

namespace {

/// Answers the first list with a@1 and b@2, at version 10, and waits for the watch.
asio::awaitable<void> list_two(informer_world& w) {
  co_await w.expect("list 500");
  w.source->answer(list("10", {configmap("a", "1"), configmap("b", "2")}));
  co_await w.expect("watch 10");
}

}  // namespace

BOOST_AUTO_TEST_CASE(list_and_a_watch_keep_the_store_equal_to_the_server) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    const auto told = w.under_test->subscribe();
    BOOST_TEST(!w.under_test->synced());
    co_await list_two(w);
    BOOST_TEST(w.under_test->synced());
    BOOST_TEST(w.contents() == "a@1 b@2");
    BOOST_TEST(w.source->send(event("ADDED", configmap("c", "11")) +
                              event("MODIFIED", configmap("a", "12")) +
                              event("DELETED", configmap("b", "13")) + bookmark("20")));
    BOOST_TEST(w.contents() == "a@12 c@11");
    BOOST_TEST(w.under_test->resource_version() == "20");
    BOOST_TEST(w.taken(*told) == "+a@1 +b@2 +c@11 ~a@1>12 -b@2");
    BOOST_TEST(w.metric("rw_informer_objects") == 2);
    BOOST_TEST(w.metric("rw_informer_events_total", "type=\"added\"") == 1);
    BOOST_TEST(w.metric("rw_informer_events_total", "type=\"bookmark\"") == 1);
    BOOST_TEST(w.metric("rw_informer_lists_total") == 1);
  });
  BOOST_TEST(w.under_test->synced());
}

BOOST_AUTO_TEST_CASE(list_in_pages_is_whole_with_its_last_one) {
  informer_world w;
  w.options.page = 2;
  w.run([&]() -> asio::awaitable<void> {
    co_await w.expect("list 2");
    w.source->answer(list("10", {configmap("a", "1"), configmap("b", "2")}, "more"));
    co_await w.expect("list 2 more=more");
    BOOST_TEST(!w.under_test->synced());
    w.source->answer(list("10", {configmap("c", "3")}));
    co_await w.expect("watch 10");
    BOOST_TEST(w.under_test->synced());
    BOOST_TEST(w.contents() == "a@1 b@2 c@3");
  });
}

BOOST_AUTO_TEST_CASE(streaming_list_is_whole_with_its_bookmark) {
  informer_world w;
  w.options.streaming_list = true;
  w.run([&]() -> asio::awaitable<void> {
    co_await w.expect("version");
    w.source->answer();
    co_await w.expect("stream");
    BOOST_TEST(w.source->watched.bookmarks);
    BOOST_TEST(
        w.source->send(event("ADDED", configmap("a", "1")) + event("ADDED", configmap("b", "2"))));
    BOOST_TEST(!w.under_test->synced());
    BOOST_TEST(w.source->send(bookmark("10", true)));
    BOOST_TEST(w.under_test->synced());
    BOOST_TEST(w.source->send(event("DELETED", configmap("a", "11"))));
    BOOST_TEST(w.contents() == "b@2");
    w.source->answer();
    co_await w.pause();
    co_await w.expect("watch 11");
  });
}

BOOST_AUTO_TEST_CASE(second_stream_delivers_deletions) {
  informer_world w;
  w.options.streaming_list = true;
  w.run([&]() -> asio::awaitable<void> {
    co_await w.expect("version");
    w.source->answer();
    co_await w.expect("stream");
    w.source->send(event("ADDED", configmap("a", "1")) + event("ADDED", configmap("b", "2")) +
                   event("ADDED", configmap("c", "3")) + bookmark("10", true));
    const auto told = w.under_test->subscribe();
    w.taken(*told);
    w.source->send(error_event(410, "Expired"));
    co_await w.expect("stream");
    w.source->send(event("ADDED", configmap("b", "2")) + event("ADDED", configmap("c", "30")) +
                   event("DELETED", configmap("c", "31")));
    BOOST_TEST(w.contents() == "a@1 b@2");
    w.source->send(bookmark("40", true));
    BOOST_TEST(w.contents() == "b@2");
    BOOST_TEST(w.taken(*told) == "~c@3>30 -c@30 -a@1");
  });
}

BOOST_AUTO_TEST_CASE(broken_watch_goes_on_where_it_was_and_nothing_is_reported_twice) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    co_await list_two(w);
    const auto told = w.under_test->subscribe();
    BOOST_TEST(w.taken(*told).size() == 9U);
    w.source->send(event("MODIFIED", configmap("a", "11")));
    w.source->fail(errc::unreachable);
    const auto pause = co_await w.pause();
    BOOST_TEST((pause <= 800ms));
    co_await w.expect("watch 11");
    w.source->send(event("MODIFIED", configmap("a", "11")) +
                   event("MODIFIED", configmap("a", "12")));
    BOOST_TEST(w.taken(*told) == "~a@1>11 ~a@11>12");
    BOOST_TEST(w.metric("rw_informer_watches_total", "end=\"broken\"") == 1);
    BOOST_TEST(w.metric("rw_informer_lists_total") == 1);
    BOOST_TEST(w.log_text.find("as scripted") != std::string::npos);
  });
}

BOOST_AUTO_TEST_CASE(relist_delivers_exactly_the_changes) {
  for (const bool as_event : {true, false}) {
    informer_world w;
    w.run([&]() -> asio::awaitable<void> {
      co_await list_two(w);
      const auto told = w.under_test->subscribe();
      w.taken(*told);
      if (as_event) {
        w.source->send(error_event(410, "Expired"));
      } else {
        w.source->fail(errc::gone, 410);
      }
      co_await w.expect("list 500");
      BOOST_TEST(w.contents() == "a@1 b@2");
      w.source->answer(list("50", {configmap("b", "40"), configmap("c", "41")}));
      co_await w.expect("watch 50");
      BOOST_TEST(w.contents() == "b@40 c@41");
      BOOST_TEST(w.taken(*told) == "~b@2>40 +c@41 -a@1");
      BOOST_TEST(w.metric("rw_informer_watches_total", "end=\"expired\"") == 1);
      BOOST_TEST(w.metric("rw_informer_objects") == 2);
    });
  }
}

BOOST_AUTO_TEST_CASE(relist_that_finds_everything_as_it_was_tells_nothing) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    co_await list_two(w);
    const auto told = w.under_test->subscribe();
    w.taken(*told);
    w.source->fail(errc::gone, 410);
    co_await w.expect("list 500");
    w.source->answer(list("50", {configmap("a", "1"), configmap("b", "2")}));
    co_await w.expect("watch 50");
    BOOST_TEST(w.taken(*told).empty());
  });
}

BOOST_AUTO_TEST_CASE(object_made_again_meanwhile_is_reported_as_deleted_and_added) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    co_await list_two(w);
    const auto told = w.under_test->subscribe();
    w.taken(*told);
    w.source->fail(errc::gone, 410);
    co_await w.expect("list 500");
    w.source->answer(list("50", {configmap("a", "40", "another"), configmap("b", "2")}));
    co_await w.expect("watch 50");
    BOOST_TEST(w.taken(*told) == "-a@1 +a@40");
    w.source->send(event("DELETED", configmap("a", "51", "another")) +
                   event("ADDED", configmap("a", "52", "third")));
    BOOST_TEST(w.taken(*told) == "-a@40 +a@52");
  });
}

BOOST_AUTO_TEST_CASE(relist_that_fails_half_way_deletes_nothing) {
  informer_world w;
  w.options.page = 1;
  w.run([&]() -> asio::awaitable<void> {
    co_await w.expect("list 1");
    w.source->answer(list("10", {configmap("a", "1")}, "more"));
    co_await w.expect("list 1 more=more");
    w.source->answer(list("10", {configmap("b", "2")}));
    co_await w.expect("watch 10");
    w.source->fail(errc::gone, 410);
    co_await w.expect("list 1");
    w.source->answer(list("50", {configmap("c", "40")}, "rest"));
    co_await w.expect("list 1 more=rest");
    w.source->answer("<html>busy</html>");
    co_await w.pause();
    BOOST_TEST(w.contents() == "a@1 b@2 c@40");
    co_await w.expect("list 1");
    w.source->answer(list("60", {configmap("d", "55")}));
    co_await w.expect("watch 60");
    BOOST_TEST(w.contents() == "d@55");
    BOOST_TEST(w.metric("rw_informer_failures_total", "phase=\"decode\"") == 1);
    BOOST_TEST(
        w.log_text.find("cannot list configmaps: the answer is not JSON") != std::string::npos,
        w.log_text);
  });
}

BOOST_AUTO_TEST_CASE(watch_with_invalid_json_leads_to_a_list) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    co_await list_two(w);
    BOOST_TEST(!w.source->send(event("MODIFIED", configmap("a", "11")) + "<html>\n" +
                               event("MODIFIED", configmap("a", "12"))));
    BOOST_TEST(w.contents() == "a@11 b@2");
    co_await w.expect("list 500");
    w.source->answer(list("50", {configmap("a", "12")}));
    co_await w.expect("watch 50");
    BOOST_TEST(w.contents() == "a@12");
    BOOST_TEST(w.metric("rw_informer_watches_total", "end=\"bad_event\"") == 1);
    BOOST_TEST(w.log_text.find("cannot watch configmaps: an event of the watch is not JSON") !=
               std::string::npos);
  });
}

BOOST_AUTO_TEST_CASE(object_over_the_budget_keeps_its_last_state_and_stops_no_other) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    std::string arrays = "[0]";
    for (int i = 0; i < 60'000; ++i) arrays += ",[0]";
    const auto dense = [&](const std::string& name, const std::string& version) {
      auto text = configmap(name, version);
      return text.replace(text.find(R"("data":{)"), 8, R"("data":{"dense":[)" + arrays + "],");
    };
    co_await list_two(w);
    BOOST_TEST(w.source->send(event("MODIFIED", dense("a", "11")) +
                              event("ADDED", dense("new", "12")) +
                              event("MODIFIED", configmap("b", "13"))));
    BOOST_TEST(w.contents() == "a@1 b@13");
    BOOST_TEST(w.log_text.find(R"("name":"a")") != std::string::npos, w.log_text);
    BOOST_TEST(w.log_text.find("it has more values than its length is good for") !=
               std::string::npos);
    BOOST_TEST(w.metric("rw_informer_failures_total", "phase=\"decode\"") == 2);
    // A list that has it keeps it, too; one that does not, or a deletion, ends it.
    w.source->fail(errc::gone, 410);
    co_await w.expect("list 500");
    w.source->answer(list("50", {dense("a", "11"), configmap("b", "13")}));
    co_await w.expect("watch 50");
    BOOST_TEST(w.contents() == "a@1 b@13");
    w.source->send(event("MODIFIED", configmap("a", "51")));
    BOOST_TEST(w.contents() == "a@51 b@13");
    w.source->send(event("MODIFIED", dense("a", "52")) + event("DELETED", dense("a", "53")));
    BOOST_TEST(w.contents() == "b@13");
    // Made again: what is known is of another one.
    auto again = dense("b", "60");
    again.replace(again.find("u-b"), 3, "u-c");
    w.source->send(event("ADDED", again));
    BOOST_TEST(w.contents() == "");
  });
}

BOOST_AUTO_TEST_CASE(event_of_twenty_mebibytes_is_listed_instead) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    co_await list_two(w);
    const std::string piece(64 << 10, 'x');
    bool go_on = w.source->send(R"({"type":"MODIFIED","object":{"metadata":{"name":")");
    std::size_t sent = 0;
    for (; go_on && sent < 20U << 20; sent += piece.size()) go_on = w.source->send(piece);
    BOOST_TEST(!go_on);
    BOOST_TEST(sent <= w.options.event_bytes);
    co_await w.expect("list 500");
    const std::string large(20 << 20, 'y');
    w.source->answer(list("50", {configmap("a", "40", {}, large)}));
    co_await w.expect("watch 50");
    BOOST_TEST(w.contents() == "a@40");
    BOOST_TEST(w.under_test->objects().get("default", "a").text().size() > large.size());
  });
}

BOOST_AUTO_TEST_CASE(watch_backoff_grows_while_each_attempt_takes_long_to_reach_no_server) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    co_await list_two(w);
    w.source->accepts_watches = false;
    core::duration longest{0};
    for (int i = 0; i < 12; ++i) {
      w.clock.advance(40s);  // connection attempts
      w.source->fail(errc::unreachable);
      const auto pause = co_await w.pause();
      longest = std::max(longest, pause);
      co_await w.expect("watch 10");
    }
    BOOST_TEST((longest > 5s));
    BOOST_TEST((longest <= 30s));
  });
}

BOOST_AUTO_TEST_CASE(silent_watch_counts_as_broken) {
  for (const bool begun : {true, false}) {
    informer_world w;
    w.options.silence = 30s;
    w.source->accepts_watches = begun;
    w.run([&]() -> asio::awaitable<void> {
      co_await list_two(w);
      BOOST_TEST((w.source->watched.silence == 30s));
      w.source->fail(errc::timed_out);
      co_await w.turns();
      BOOST_TEST(w.metric("rw_informer_watches_total", "end=\"silent\"") == (begun ? 1 : 0));
      BOOST_TEST(w.metric("rw_informer_watches_total", "end=\"broken\"") == (begun ? 0 : 1));
      co_await w.pause();
      co_await w.expect("watch 10");
    });
  }
}

BOOST_AUTO_TEST_CASE(watch_that_ends_in_time_is_restarted_at_once) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    co_await list_two(w);
    for (int i = 0; i < 5; ++i) {
      w.clock.advance(w.source->watched.timeout);
      w.source->answer();
      co_await w.expect("watch 10");
    }
    BOOST_TEST(w.metric("rw_informer_watches_total", "end=\"ended\"") == 5);
    BOOST_TEST(w.metric("rw_informer_failures_total", "phase=\"watch\"") == 0);
  });
}

BOOST_AUTO_TEST_CASE(server_that_closes_after_each_event_is_followed_without_haste) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    co_await list_two(w);
    core::duration waited{0};
    for (int i = 0; i < 50; ++i) {
      w.source->send(event("MODIFIED", configmap("a", std::to_string(100 + i))));
      w.source->answer();
      const auto pause = co_await w.pause();
      waited += pause;
      co_await w.expect("watch " + std::to_string(100 + i));
    }
    BOOST_TEST(w.contents() == "a@149 b@2");
    BOOST_TEST((waited > 25s && waited < 120s));
    BOOST_TEST(w.metric("rw_informer_lists_total") == 1);
  });
}

BOOST_AUTO_TEST_CASE(list_that_fails_is_tried_again_until_it_succeeds) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    std::optional<core::time_point> since;
    BOOST_TEST(!w.under_test->failing());
    for (const auto code : {errc::unreachable, errc::unauthorized, errc::forbidden, errc::not_found,
                            errc::unavailable}) {
      co_await w.expect("list 500");
      w.source->fail(code);
      co_await w.pause();
      const auto& failing = w.under_test->failing();
      BOOST_REQUIRE(failing.has_value());
      BOOST_TEST(failing->cause.is(code));
      since = since.value_or(failing->since);
      BOOST_TEST((failing->since == *since));
    }
    co_await list_two(w);
    BOOST_TEST(w.under_test->synced());
    BOOST_TEST(!w.under_test->failing());
    BOOST_TEST(w.metric("rw_informer_failures_total", "phase=\"list\"") == 5);
  });
}

BOOST_AUTO_TEST_CASE(late_subscriber_receives_all_objects_as_added) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    co_await list_two(w);
    const auto told = w.under_test->subscribe();
    std::vector<std::string> all;
    while (auto next = told->try_receive()) all.push_back(words(*next));
    std::ranges::sort(all);
    BOOST_TEST(all == (std::vector<std::string>{"+a@1", "+b@2"}));
  });
}

BOOST_AUTO_TEST_CASE(slow_subscriber_gets_the_newest_state_of_each_object) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    co_await list_two(w);
    const auto told = w.under_test->subscribe(1);
    // One lies ready, the other waits for room. Then everything changes often.
    for (int i = 100; i < 200; ++i) {
      w.source->send(event("MODIFIED", configmap("a", std::to_string(4 * i))) +
                     event("MODIFIED", configmap("b", std::to_string(4 * i + 1))) +
                     event("ADDED", configmap("c", std::to_string(4 * i + 2))) +
                     event("DELETED", configmap("c", std::to_string(4 * i + 3))));
    }
    w.source->send(event("ADDED", configmap("d", "5000")));
    BOOST_TEST(w.metric("rw_informer_pending_deltas") == 4);
    std::map<std::string, std::string> view;
    int deltas = 0;
    for (; deltas < 5; ++deltas) {
      const auto next = co_await told->receive();
      BOOST_REQUIRE(next.has_value());
      const std::string name(next->latest().name());
      BOOST_TEST(view[name] == next->before.resource_version());
      view[name] = next->now.resource_version();
    }
    co_await w.turns();
    BOOST_TEST(!told->try_receive());
    BOOST_TEST(w.metric("rw_informer_pending_deltas") == 0);
    BOOST_TEST(view["a"] == "796");
    BOOST_TEST(view["b"] == "797");
    BOOST_TEST(view["d"] == "5000");
    BOOST_TEST(!view.contains("c"));
  });
}

BOOST_AUTO_TEST_CASE(slow_subscriber_does_not_hold_up_another) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    const auto slow = w.under_test->subscribe(1);
    const auto fast = w.under_test->subscribe(64);
    co_await list_two(w);
    w.source->send(event("DELETED", configmap("a", "11")));
    BOOST_TEST(w.taken(*fast) == "+a@1 +b@2 -a@1");
  });
}

BOOST_AUTO_TEST_CASE(subscription_ends_when_it_is_closed_dropped_or_the_informer_ends) {
  informer_world w;
  rw::k8s::informer::subscription kept;
  w.run([&]() -> asio::awaitable<void> {
    const auto closed = w.under_test->subscribe(1);
    auto dropped = w.under_test->subscribe(1);
    kept = w.under_test->subscribe(8);
    closed->close();
    co_await list_two(w);
    dropped.reset();
    w.source->send(event("MODIFIED", configmap("a", "11")) +
                   event("MODIFIED", configmap("b", "12")));
    co_await w.turns();
    w.source->send(event("MODIFIED", configmap("b", "13")));
    BOOST_TEST(w.metric("rw_informer_pending_deltas") == 0);
    BOOST_TEST(w.taken(*kept) == "+a@1 +b@2 ~a@1>11 ~b@2>12 ~b@12>13");
    BOOST_TEST(!kept->is_closed());
  });
  BOOST_TEST(kept->is_closed());
  BOOST_TEST(w.under_test->subscribe()->is_closed());
}

BOOST_AUTO_TEST_CASE(wait_synced_returns_at_the_first_list_or_at_the_end) {
  for (const bool answered : {true, false}) {
    informer_world w;
    std::optional<bool> synced;
    core::task_group others(w.context.get_executor());
    const auto wait = [](informer_world& world,
                         std::optional<bool>& into) -> asio::awaitable<void> {
      into = co_await world.under_test->wait_synced();
    };
    w.run([&]() -> asio::awaitable<void> {
      others.spawn(wait(w, synced));
      co_await w.expect("list 500");
      BOOST_TEST(!synced.has_value());
      if (!answered) co_return;
      w.source->answer(list("10", {}));
      co_await w.expect("watch 10");
      co_await w.turns();
      BOOST_TEST(synced.value());
    });
    rw::test::run(w.context, others.join());
    BOOST_TEST(synced.value() == answered);
  }
}

BOOST_AUTO_TEST_CASE(index_is_kept_from_the_beginning) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> {
    w.under_test->add_index("name", [](const object& from, std::vector<std::string>& values) {
      values.emplace_back(from.name().substr(0, 1));
    });
    co_await w.expect("list 500");
    w.source->answer(list("10", {configmap("ab", "1"), configmap("ac", "2"), configmap("b", "3")}));
    co_await w.expect("watch 10");
    BOOST_TEST(w.under_test->objects().by_index("name", "a").size() == 2U);
  });
}

BOOST_AUTO_TEST_CASE(only_the_projection_is_kept) {
  informer_world w;
  w.options.keep = rw::k8s::projection::metadata();
  w.options.objects.metadata_only = true;
  w.run([&]() -> asio::awaitable<void> {
    co_await w.expect("list 500 metadata");
    w.source->answer(list("10", {configmap("a", "1")}));
    co_await w.expect("watch 10");
    BOOST_TEST(w.under_test->objects().get("default", "a").text().find("data\":{\"k") ==
               std::string_view::npos);
  });
}

BOOST_AUTO_TEST_CASE(gauges_end_with_their_informer) {
  informer_world w;
  w.run([&]() -> asio::awaitable<void> { co_await list_two(w); });
  BOOST_TEST(w.metric("rw_informer_objects") == 2);
  w.under_test.reset();
  BOOST_TEST(w.metric("rw_informer_objects") == 0);
}

BOOST_AUTO_TEST_CASE(informer_may_end_with_its_execution_context) {
  informer_world w;
  w.under_test.emplace(
      w.source, configmaps(), w.options,
      rw::k8s::informer_environment{w.clock, w.log, w.metrics, core::make_random_source()});
  auto context = std::make_unique<asio::io_context>();
  const auto source = std::make_shared<scripted_source>(context->get_executor());
  auto informer = std::make_unique<rw::k8s::informer>(
      source, configmaps(), w.options,
      rw::k8s::informer_environment{w.clock, w.log, w.metrics, core::make_random_source()});
  const auto told = informer->subscribe(1);
  auto tasks = std::make_unique<core::task_group>(context->get_executor());
  tasks->spawn(informer->run());
  context->poll();
  source->answer(list("10", {configmap("a", "1"), configmap("b", "2"), configmap("c", "3")}));
  context->poll();
  BOOST_TEST(source->call == "watch 10");
  context.reset();
  tasks.reset();
  informer.reset();
}

BOOST_AUTO_TEST_SUITE_END()
