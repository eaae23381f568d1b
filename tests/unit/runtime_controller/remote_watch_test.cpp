// How drift is detected, and how fast it is repaired.

#include "rw/reactors/runtime_controller/remote_watch.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/environment/simulated.hpp"
#include "tests/unit/run.hpp"
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rw::runtime_controller_test {
BOOST_AUTO_TEST_SUITE(remote_watch)

using namespace std::chrono_literals;

namespace {

const k8s::object_key skr{"kcp-system", "skr"};
const k8s::object_key other{"kcp-system", "other"};
const k8s::object_key settings{"default", "settings"};

namespace asio = boost::asio;

/// A watch of one ConfigMap on a cluster whose bookmarks come fast.
struct watched : test::environment {
  explicit watched(std::vector<std::string> protocols = {"h2", "http/1.1"},
                   std::chrono::milliseconds bookmarks = 50ms,
                   core::random_source random = core::make_random_source())
      : environment(
            {.server = {.protocols = std::move(protocols), .bookmark_interval = bookmarks}}),
        watch(context.get_executor(), {.metrics = "rw_test", .delay = 10ms},
              [this](const k8s::object_key&, core::duration wait) {
                ++changes;
                waits.push_back(wait);
              },
              {clock, numbers, std::move(random)}) {
    add_cluster("skr");
  }
  ~watched() override { shut_down(); }

  asio::awaitable<void> begin(std::string expected) {
    if (!std::exchange(running, true)) tasks.spawn(watch.run());
    co_await asio::post(context, asio::use_awaitable);
    watched_set set;
    set.add(config_maps_type(), settings, expected,
            {.ns = settings.ns, .fields = "metadata.name=" + settings.name});
    watch.watch(skr, client("skr"), std::move(set));
  }
  asio::awaitable<std::string> put(std::string value) {
    auto object = test::object_of(config_maps_type(), settings.ns, settings.name);
    object.as_object()["data"] = {{"value", value}};
    const auto made = co_await api("skr").apply(config_maps_type(), std::move(object),
                                                {.field_manager = "test", .force = true});
    BOOST_REQUIRE(made.has_value());
    co_return std::string(k8s::resource_version_of(*made));
  }
  asio::awaitable<bool> until_changes(int count) {
    return test::eventually([this, count] { return changes >= count; });
  }

  rw::remote_watch watch;
  int changes = 0;
  std::vector<core::duration> waits;  ///< before the reconciles
  bool running = false;
};

/// What the last reconcile has left is no change; what others write is one.
asio::awaitable<void> detects(watched* w) {
  co_await w->begin(co_await w->put("own"));
  co_await w->put("foreign");
  bool good = co_await w->until_changes(1);
  BOOST_TEST(good);
  co_await w->begin(co_await w->put("own"));
  co_await w->remove("skr", config_maps_type(), settings);
  good = co_await w->until_changes(2);
  BOOST_TEST(good);
}

/// Nothing tells of what is not there when the watch begins, but that it is not among the others.
asio::awaitable<void> misses(watched* w) {
  const auto left = co_await w->put("own");
  co_await w->remove("skr", config_maps_type(), settings);
  co_await w->begin(left);
  const auto good = co_await w->until_changes(1);
  BOOST_TEST(good);
}

/// The first watches end with their first event, and none can go on where the one before ended.
asio::awaitable<void> begins_again(watched* w) {
  int watches = 0;
  w->on_request = [w, &watches](const std::string&, const std::string& verb, const std::string&) {
    k8s::devserver::fault out;
    if (verb == "watch" && ++watches <= 3) {
      w->server.compact("skr");
      out.events = 1;
    }
    return out;
  };
  for (int i = 1; i <= 3; ++i) {
    co_await w->begin(co_await w->put("own"));
    co_await w->put("foreign");
    const auto good = co_await w->until_changes(i);
    BOOST_TEST(good);
  }
  BOOST_TEST(watches >= 4);
  w->on_request = {};
}

/// Watches of `count` objects, one each.
watched_set set_of(int count) {
  watched_set out;
  for (int i = 0; i < count; ++i) {
    const k8s::object_key key{"default", "settings-" + std::to_string(i)};
    out.add(config_maps_type(), key, {}, {.ns = key.ns, .fields = "metadata.name=" + key.name});
  }
  return out;
}

/// A cluster that ends each connection gets the attempts of one watch, and then none.
asio::awaitable<void> gives_up(watched* w) {
  constexpr int watches = 6;
  bool drops = false;
  int begun = 0;
  int attempts = 0;
  w->on_request = [&](const std::string&, const std::string& verb, const std::string&) {
    if (verb != "watch") return k8s::devserver::fault{};
    ++(drops ? attempts : begun);
    return k8s::devserver::fault{.drop = drops};
  };
  co_await w->begin(co_await w->put("own"));
  w->watch.watch(skr, w->client("skr"), set_of(watches));
  bool good = co_await test::eventually([&] { return begun >= watches; });
  BOOST_TEST(good);
  drops = true;
  w->server.drop_connections();
  good = co_await w->until_changes(1);
  BOOST_TEST(good, "a reconcile finds out whether it responds again");
  BOOST_TEST(*test::metric_of(w->numbers, "rw_test_watched_runtimes") == 0);
  // All of them once, and two more attempts of one, each of which the client may repeat.
  BOOST_TEST(attempts <= 2 * (watches + 2));
  // Its API server responds, but not to watches: a reconcile succeeds each time.
  w->watch.watch(skr, w->client("skr"), set_of(watches));
  good = co_await w->until_changes(2);
  BOOST_TEST(good);
  BOOST_REQUIRE(w->waits.size() == 2U);
  BOOST_TEST((w->waits[0] == core::duration::zero()));
  BOOST_TEST((w->waits[1] >= 1s));
  drops = false;
  begun = 0;
  w->watch.watch(skr, w->client("skr"), set_of(watches));
  good = co_await test::eventually([&] { return begun >= watches; });
  BOOST_TEST(good);
  w->on_request = {};
}

/// Watches that stood by go on once the one that tries has a response.
asio::awaitable<void> goes_on(watched* w) {
  constexpr int watches = 6;
  core::time_point dropping = {};
  int begun = 0;
  w->on_request = [&](const std::string&, const std::string& verb, const std::string&) {
    if (verb != "watch") return k8s::devserver::fault{};
    const bool drop = w->clock.now() < dropping;
    if (!drop) ++begun;
    return k8s::devserver::fault{.drop = drop};
  };
  co_await w->begin(co_await w->put("own"));
  w->watch.watch(skr, w->client("skr"), set_of(watches));
  bool good = co_await test::eventually([&] { return begun >= watches; });
  BOOST_TEST(good);
  begun = 0;
  // Each tries after 0.5 s, which fails, and the one of them that tries again does so 0.5 s later.
  dropping = w->clock.now() + 750ms;
  w->server.drop_connections();
  good = co_await test::eventually([&] { return begun >= watches; });
  BOOST_TEST(good);
  BOOST_TEST(*test::metric_of(w->numbers, "rw_test_watched_runtimes") == 1);
  BOOST_TEST(w->changes == 0);
  w->on_request = {};
}

/// Bookmarks come once an hour, but the one that ends a streaming list.
asio::awaitable<void> is_live_at_once(watched* w) {
  co_await w->begin(co_await w->put("own"));
  const auto good = co_await test::eventually([&] { return w->watch.is_unchanged(skr); });
  BOOST_TEST(good);
}

/// A server that knows streaming lists and does not allow them is asked once.
asio::awaitable<void> takes_refusal(watched* w) {
  int watches = 0;
  w->on_request = [&](const std::string&, const std::string& verb, const std::string&) {
    k8s::devserver::fault out;
    if (verb == "watch" && ++watches == 1) out.status = 422;
    return out;
  };
  co_await w->begin(co_await w->put("own"));
  const auto good = co_await test::eventually([&] { return w->watch.is_unchanged(skr); });
  BOOST_TEST(good);
  BOOST_TEST(watches == 2);
  BOOST_TEST(!w->client("skr")->streams_lists());
  w->on_request = {};
}

}  // namespace

/// A front end ends each watch at once, of eight kinds on a cluster.
BOOST_AUTO_TEST_CASE(watches_that_end_at_once_cause_reconciles_ever_more_rarely) {
  test::simulated w;
  bool ends = true;
  w.add_cluster("skr");
  w.on_request = [&](const std::string&, const std::string& verb, const std::string&) {
    k8s::devserver::fault out;
    if (verb != "watch") return out;
    if (ends) out.events = 0;
    out.ends = ends;
    return out;
  };
  std::vector<core::duration> causes;
  const auto began = w.clock.now();
  rw::remote_watch watch(w.context.get_executor(), {.metrics = "rw_test"},
                         [&](const k8s::object_key& key, core::duration) {
                           causes.push_back(w.clock.now() - began);
                           watch.reconciled(key, false, false);
                         },
                         {w.clock, w.numbers, core::make_random_source()});
  w.tasks.spawn(watch.run());
  w.settle();
  watch.watch(skr, w.client("skr"), set_of(8));
  w.pass(1s);
  BOOST_TEST(!watch.is_unchanged(skr));
  BOOST_TEST(*test::metric_of(w.numbers, "rw_test_suspect_watches") == 8);
  w.pass(3h);
  const auto between = [&](core::duration from, core::duration to) {
    return std::ranges::count_if(causes, [&](auto at) { return from <= at && at < to; });
  };
  BOOST_TEST(between(0s, 5min) >= 1);
  BOOST_TEST(between(0s, 5min) <= 4);
  BOOST_TEST(between(75min, 135min) <= 1);
  BOOST_TEST(between(75min, 3h) >= 1);
  ends = false;
  w.pass(2min);
  BOOST_TEST(watch.is_unchanged(skr));
  BOOST_TEST(*test::metric_of(w.numbers, "rw_test_suspect_watches") == 0);
  w.tasks.cancel();
  w.settle();
}

BOOST_AUTO_TEST_CASE(watch_is_live_with_the_end_of_its_list) {
  watched w({"h2"}, 1h);
  test::run(w.context, is_live_at_once(&w));
}

BOOST_AUTO_TEST_CASE(server_that_does_not_stream_lists_is_watched_as_it_can) {
  watched w;
  test::run(w.context, takes_refusal(&w));
}

BOOST_AUTO_TEST_CASE(cluster_that_does_not_respond_is_left_to_the_reconciles) {
  for (const auto* const protocol : {"h2", "http/1.1"}) {
    watched w({protocol});
    test::run(w.context, gives_up(&w), 2 * test::patience);
  }
}

BOOST_AUTO_TEST_CASE(watches_that_stood_by_go_on_when_the_cluster_responds) {
  for (const auto* const protocol : {"h2", "http/1.1"}) {
    watched w({protocol}, 50ms, [] { return std::uint64_t{500'000'000}; });
    test::run(w.context, goes_on(&w), 2 * test::patience);
  }
}

BOOST_AUTO_TEST_CASE(change_by_others_is_reported_and_own_ones_are_not) {
  watched w;
  test::run(w.context, detects(&w));
}

BOOST_AUTO_TEST_CASE(object_that_is_missing_from_the_begin_is_a_change) {
  watched w;
  test::run(w.context, misses(&w));
}

BOOST_AUTO_TEST_CASE(watch_that_ends_begins_again_and_misses_nothing) {
  watched w;
  test::run(w.context, begins_again(&w));
}

BOOST_AUTO_TEST_CASE(repairs_in_a_row_wait_twice_as_long_up_to_a_limit) {
  drift_backoff backoff({.base = 500ms, .limit = 3s});
  core::time_point now{};
  BOOST_TEST((backoff.wait(skr, now) == 0ms));
  for (const auto wait : {500ms, 1000ms, 2000ms, 3000ms, 3000ms}) {
    backoff.noted(skr, true, now);
    BOOST_TEST((backoff.wait(skr, now) == wait));
    now += wait;
  }
  BOOST_TEST((backoff.wait(other, now) == 0ms));
  backoff.forget(skr);
  BOOST_TEST((backoff.wait(skr, now) == 0ms));
}

BOOST_AUTO_TEST_CASE(changes_that_need_no_repair_are_waited_for_longer_each_time) {
  drift_backoff backoff({.base = 500ms, .limit = 10min, .idle_limit = 4s});
  core::time_point now{};
  for (const auto wait : {500ms, 1000ms, 2000ms, 4000ms, 4000ms}) {
    BOOST_TEST(backoff.noted(skr, false, now) == 0U);
    BOOST_TEST((backoff.wait(skr, now) == wait));
    now += wait;
  }
  // A repair begins a row of its own, which changes between repairs do not end.
  BOOST_TEST(backoff.noted(skr, true, now) == 1U);
  BOOST_TEST((backoff.wait(skr, now) == 500ms));
  backoff.noted(skr, false, now);
  BOOST_TEST(backoff.noted(skr, true, now) == 2U);
  BOOST_TEST((backoff.wait(skr, now) == 1s));
}

BOOST_AUTO_TEST_CASE(quiet_time_ends_the_row) {
  drift_backoff backoff({.base = 8s, .limit = 10min, .quiet = 10s});
  core::time_point now{};
  BOOST_TEST(backoff.noted(skr, true, now) == 1U);
  BOOST_TEST((backoff.wait(skr, now + 16s) == 8s));
  BOOST_TEST((backoff.wait(skr, now + 17s) == 0ms));
  BOOST_TEST(backoff.noted(skr, true, now + 16s) == 2U);
  BOOST_TEST(backoff.noted(skr, true, now + 60s) == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_controller_test
