// Many runtimes fall silent at once, as when a region is gone.

#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <chrono>
#include <string>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(outage)

using namespace std::chrono_literals;
using test::eventually;
using watcher_installer::installer_options;
using state = runtime_state;

namespace {

/// As patient with a request as in production, and a few workers.
installer_options few_workers() {
  auto out = quick_options();
  out.concurrent = 4;
  out.unhealthy_concurrent = 1;
  out.probe_timeout = 500ms;
  out.unhealthy_probe = 200ms;
  return out;
}

std::string lost(int i) {
  return "lost-" + std::to_string(i);
}
std::string well(int i) {
  return "well-" + std::to_string(i);
}

asio::awaitable<void> add(world* w, std::string name) {
  w->add_cluster(name);
  co_await w->add_kyma(name, w->kubeconfig(name));
  const bool ready = co_await w->until_ready(name);
  BOOST_REQUIRE(ready);
}

asio::awaitable<void> begin(world* w, int lost_ones, int well_ones) {
  co_await w->begin();
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  for (int i = 0; i < lost_ones; ++i) co_await add(w, lost(i));
  for (int i = 0; i < well_ones; ++i) co_await add(w, well(i));
}

bool has_two_webhooks(const json::value& one) {
  const auto* webhooks = k8s::find(one, {"webhooks"});
  return webhooks != nullptr && webhooks->as_array().size() == 2;
}

}  // namespace

asio::awaitable<void> keeps_serving(world* w) {
  co_await begin(w, 8, 3);
  int asked = 0;
  for (int i = 0; i < 8; ++i) {
    w->hanging[lost(i)] = true;
    asked += w->asked[lost(i)].reads;
  }
  const auto reads = [w] {
    int all = 0;
    for (int i = 0; i < 8; ++i) all += w->asked[lost(i)].reads;
    return all;
  };
  // All workers probe runtimes that do not respond.
  for (int i = 0; i < 8; ++i) w->installer->requeue({"kcp-system", lost(i)});
  bool good = co_await eventually([&] { return reads() >= asked + 4; });
  BOOST_REQUIRE(good);
  const auto since = std::chrono::steady_clock::now();
  co_await w->add_watcher("other", "warden", "spec");
  for (int i = 0; i < 3; ++i) {
    good = co_await w->until(well(i), webhook_configurations, configuration, has_two_webhooks);
    BOOST_TEST(good);
  }
  // 8 runtimes for half a second each, on 4 workers; a request alone may take ten seconds.
  BOOST_TEST((std::chrono::steady_clock::now() - since < 15s));
  good = co_await eventually([w] { return w->installer->count(state::unreachable) == 8; });
  BOOST_TEST(good);
  for (int i = 0; i < 8; ++i) w->hanging[lost(i)] = false;
  for (int i = 0; i < 8; ++i) {
    good = co_await w->until(lost(i), webhook_configurations, configuration, has_two_webhooks);
    BOOST_TEST(good);
  }
  good = co_await eventually([w] { return w->installer->count(state::installed) == 11; });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(many_that_fall_silent_keep_the_others_waiting_for_a_moment_only) {
  world w(few_workers());
  // A request that has just begun when its runtime falls silent takes ten seconds by itself.
  test::run(w.context, keeps_serving(&w), 3 * test::patience);
}

asio::awaitable<void> waits_idly(world* w) {
  co_await begin(w, 4, 0);
  for (int i = 0; i < 4; ++i) {
    w->hanging[lost(i)] = true;
    w->installer->requeue({"kcp-system", lost(i)});
  }
  bool good = co_await eventually([w] { return w->installer->count(state::unreachable) == 4; });
  BOOST_REQUIRE(good);
  const auto issued = w->certificates.asked;
  std::map<std::string, int> asked;
  for (int i = 0; i < 4; ++i) asked[lost(i)] = w->asked[lost(i)].reads;
  for (int i = 0; i < 4; ++i) {
    good = co_await eventually([&] { return w->asked[lost(i)].reads >= asked[lost(i)] + 2; });
    BOOST_TEST(good, lost(i) << " is asked again and again");
  }
  BOOST_TEST(w->certificates.asked == issued);
}

BOOST_AUTO_TEST_CASE(unhealthy_runtime_has_its_turn_and_costs_nothing_while_it_waits) {
  auto with = few_workers();
  with.probe_timeout = 200ms;
  with.unhealthy_probe = 100ms;
  with.runtime_limit = 1s;  // so that probes do not become long
  world w(with);
  test::run(w.context, waits_idly(&w));
}

asio::awaitable<void> forgives(world* w) {
  co_await begin(w, 1, 0);
  const auto reads = w->asked[lost(0)].reads;
  w->hanging[lost(0)] = true;
  w->installer->requeue({"kcp-system", lost(0)});
  bool good = co_await eventually([&] { return w->asked[lost(0)].reads == reads + 1; });
  BOOST_TEST(good);
  w->hanging[lost(0)] = false;  // for the requests that come now
  const auto unhealthy = [w] { return w->metric("rw_watcher_installer_unhealthy_runtimes"); };
  good = co_await eventually([&] { return unhealthy() == 1; });
  BOOST_TEST(good);
  good = co_await eventually([&] { return unhealthy() == 0; });
  BOOST_TEST(good);
  BOOST_TEST(w->installer->count(state::unreachable) == 0U);
  BOOST_TEST(w->lines("reconcile failed") == 0, "nothing was known, so nothing is told");
}

BOOST_AUTO_TEST_CASE(runtime_that_was_slow_once_is_asked_again_at_once_and_not_reported) {
  auto with = few_workers();
  with.unhealthy_probe = 20s;
  world w(with);
  test::run(w.context, forgives(&w));
}

asio::awaitable<void> does_without_rights(world* w) {
  w->on_request = [](const std::string& cluster, const std::string&, const std::string& path) {
    k8s::devserver::fault forbidden{.status = 403};
    const bool is_right = cluster != "kcp" && path.find("/clusterroles") != std::string::npos;
    return is_right ? forbidden : k8s::devserver::fault{};
  };
  co_await begin(w, 0, 1);
  bool good = co_await eventually([w] { return w->installer->count(state::installed) == 1; });
  BOOST_TEST(good);
  good = co_await w->until(well(0), webhook_configurations, configuration, is_there);
  BOOST_TEST(good);
  const auto* const seen = w->installer->runtimes().find({"kcp-system", well(0)});
  BOOST_REQUIRE(seen != nullptr);
  BOOST_TEST(seen->reason == status_reason::rights_missing);
  BOOST_TEST(seen->message.starts_with("the watcher can't watch resources"), seen->message);
  w->on_request = {};
}

BOOST_AUTO_TEST_CASE(rights_that_may_not_be_given_leave_a_watcher_without_watches) {
  world w(few_workers());
  test::run(w.context, does_without_rights(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
