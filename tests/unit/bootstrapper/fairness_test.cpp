// What one runtime may cost the others, and itself.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/test_env.hpp"
#include "tests/unit/run.hpp"
#include <algorithm>
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(fairness)

using bootstrapper::direct_sync_options;
using test::eventually;
using namespace std::chrono_literals;

namespace {

direct_sync_options quick() {
  auto out = quick_options();
  out.backoff_limit = 200ms;
  out.unhealthy_probe = 200ms;
  out.probe_timeout = 1s;
  out.runtime_limit = 1s;
  return out;
}

}  // namespace

RW_COROUTINE_TEST(runtime_that_hangs_on_writes_stays_unreachable, test_env, quick()) {
  co_await env->begin_with({"skr"});
  env->hanging_writes["skr"] = true;
  const auto rotated = pull_secret("rotated");
  co_await env->set_source(rotated);
  const auto unhealthy = [env] { return env->metric("rw_bootstrapper_unhealthy_runtimes") == 1; };
  co_await soon(unhealthy);
  int tried = 0;
  int tried_as_healthy = 0;
  env->on_request = [&](const std::string&, const std::string& verb, const std::string&) {
    if (!test::reads(verb)) ++tried;
    if (!test::reads(verb) && !unhealthy()) ++tried_as_healthy;
    return k8s::devserver::fault();
  };
  co_await soon([&] { return tried >= 2; });
  BOOST_TEST(tried_as_healthy == 0);
  env->on_request = {};
  env->hanging_writes["skr"] = false;
  co_await soon([&] { return !unhealthy(); });
  co_await soon([&] { return env->reactor->contents().count("current") == 1; });
}

RW_COROUTINE_TEST(revisions_are_rendered_once_for_all_runtimes, test_env, quick()) {
  co_await env->begin_with({"a", "b", "c"});
  const auto gathered = env->metric("rw_bootstrapper_rendered_total");
  BOOST_TEST(gathered >= 1);
  BOOST_TEST(gathered <= 12);  // both units, live and stored contents; the hour may have passed
  // Another state of a source is another set.
  const auto rotated = pull_secret("rotated");
  co_await env->set_source(rotated);
  co_await soon([&] { return env->metric("rw_bootstrapper_rendered_total") > gathered; });
}

RW_COROUTINE_TEST(repairs_that_are_undone_are_reported_and_delayed, test_env, quick()) {
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->add_bootstrapper("skr");
  co_await env->set_ready("skr");
  co_await env->until_state("skr", "Ready");
  co_await soon([&] { return env->metric("rw_bootstrapper_watched_runtimes") == 1; });
  for (int i = 0; i < 3; ++i) {
    co_await env->remove("skr", bundles, {"", bundle_name});
    co_await env->until("skr", bundles, {"", bundle_name}, is_there);
  }
  co_await soon([&] { return env->metric("rw_bootstrapper_held_back_total") >= 1; });
  const auto told = [&](const std::string& line) {
    return line.find("repairs on a runtime are undone") != line.npos;
  };
  co_await soon([&] { return std::ranges::count_if(env->logged, told) == 1; });
}

RW_COROUTINE_TEST(rejected_revision_on_a_fresh_runtime_is_not_polled, test_env, quick()) {
  co_await env->begin();
  co_await env->add_runtime("bad");
  co_await env->add_runtime("good");
  co_await env->add_bootstrapper("bad", {{"manifests", {{"inline", "no: manifest"}}}});
  co_await env->until_condition("bad", "Compatible", "False", "Invalid");
  // Its pods are on their way, so it is looked at again and again.
  co_await env->add_bootstrapper("good");
  const std::string looks = "rw_bootstrapper_syncs_total{result=";
  co_await soon([&] { return env->metric(looks + "\"unchanged\"}") >= 8; });
  BOOST_TEST(env->metric(looks + "\"refused\"}") <= 3);
}

asio::awaitable<void> defers_the_slow(test_env* env) {
  co_await env->begin();
  auto latency = 250ms;  // some thirty requests are sent for each
  env->on_request = [&](const std::string& cluster, const std::string&, const std::string&) {
    return k8s::devserver::fault{.latency = cluster.starts_with("slow") ? latency : 0ms};
  };
  for (const auto* name : {"slow-1", "slow-2"}) {
    co_await env->add_runtime(name);
    co_await env->add_bootstrapper(name);
  }
  // Both workers are busy with runtimes that respond to each request, but slowly.
  co_await env->until_metric("rw_bootstrapper_unhealthy_runtimes", 2);
  BOOST_TEST(env->reactor->contents().count("current") == 0U);
  co_await env->add_runtime("good");
  co_await env->add_bootstrapper("good");
  co_await env->until_condition("good", "ConfigurationSynced", "True", "Synced");
  BOOST_TEST(env->reactor->contents().count("current") == 1U,
             "neither of the slow ones was waited for");
  BOOST_TEST(env->metric("rw_bootstrapper_unhealthy_runtimes") == 2);
  latency = 100ms;
  for (const auto* name : {"slow-1", "slow-2"}) {
    co_await env->until_condition(name, "ConfigurationSynced", "True", "Synced");
  }
  BOOST_TEST(env->metric("rw_bootstrapper_unhealthy_runtimes") == 2);
  env->on_request = {};
}

BOOST_AUTO_TEST_CASE(slow_runtimes_leave_passes_to_the_others_and_are_synced_in_turn) {
  auto with = quick();
  with.concurrent = 2;
  with.unhealthy_concurrent = 1;
  with.prompt_limit = 1s;  // the slow ones take some 7 s, the good one far less
  with.runtime_limit = 10s;
  test_env env(with);
  test::run(env.context, defers_the_slow(&env), 3 * test::patience);
}

RW_COROUTINE_TEST(changes_that_need_no_repair_are_followed_less_and_less_often, test_env, quick()) {
  co_await env->begin_with({"skr"});
  co_await env->until_metric("rw_bootstrapper_watched_runtimes", 1);
  // Nothing of it has to be repaired.
  for (int i = 0; env->metric("rw_bootstrapper_held_back_total") < 1 && i < 1000; ++i) {
    json::object annotations;
    annotations["example.com/noise"] = std::to_string(i);
    const json::value noise{{"metadata", {{"annotations", std::move(annotations)}}}};
    const auto done =
        co_await env->api("skr").patch(secrets_type(), credentials, k8s::patch_type::merge, noise);
    BOOST_REQUIRE(done.has_value());
  }
  BOOST_TEST(env->metric("rw_bootstrapper_held_back_total") >= 1);
}

RW_COROUTINE_TEST(unit_that_was_cut_off_is_reported_as_applying, test_env, quick()) {
  co_await env->begin_with({"skr"});
  // The dry run is let through, the write is not.
  int seen = 0;
  env->on_request = [&](const std::string&, const std::string& verb, const std::string&) {
    if (!test::reads(verb)) env->hanging_writes["skr"] = ++seen > 1;
    return k8s::devserver::fault();
  };
  co_await env->set_source(pull_secret("rotated"));
  co_await env->until_resource("skr", [](const json::value& object) {
    const auto& unit = object.at("status").at("units").at(0);
    return k8s::find_string(unit, {"phase"}) == "Applying" && !unit.as_object().contains("digest");
  });
  env->on_request = {};
  env->hanging_writes["skr"] = false;
  co_await env->until("skr", secrets_type(), credentials, has_data(pull_secret("rotated")));
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
