// What one runtime may cost the others, and itself.

#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/test_env.hpp"
#include "tests/unit/run.hpp"
#include <algorithm>
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(fairness)

using bootstrapper::options;
using test::eventually;
using namespace std::chrono_literals;

namespace {

options quick() {
  auto out = quick_options();
  out.backoff_limit = 200ms;
  out.unhealthy_probe = 200ms;
  out.probe_timeout = 1s;
  out.runtime_limit = 1s;
  return out;
}

}  // namespace

asio::awaitable<void> stays_sick(test_env* env) {
  co_await env->begin_with({"skr"});
  env->hanging_writes["skr"] = true;
  const auto rotated = pull_secret("rotated");
  co_await env->set_source(rotated);
  const auto sick = [env] { return env->metric("rw_bootstrapper_sick_runtimes") == 1; };
  bool good = co_await eventually(sick);
  BOOST_REQUIRE(good);
  int tried = 0;
  int tried_as_healthy = 0;
  env->on_request = [&](const std::string&, const std::string& verb, const std::string&) {
    if (!test::reads(verb)) ++tried;
    if (!test::reads(verb) && !sick()) ++tried_as_healthy;
    return k8s::devserver::fault();
  };
  good = co_await eventually([&] { return tried >= 2; });
  BOOST_TEST(good);
  BOOST_TEST(tried_as_healthy == 0);
  env->on_request = {};
  env->hanging_writes["skr"] = false;
  good = co_await eventually([&] { return !sick(); });
  BOOST_TEST(good);
  good = co_await eventually([&] { return env->reactor->rollout_progress().currents() == 1; });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(runtime_that_hangs_on_writes_stays_unreachable) {
  test_env env(quick());
  test::run(env.context, stays_sick(&env));
}

asio::awaitable<void> gathers_once(test_env* env) {
  co_await env->begin_with({"a", "b", "c"});
  const auto gathered = env->metric("rw_bootstrapper_gathered_total");
  BOOST_TEST(gathered >= 1);
  BOOST_TEST(gathered <= 12);  // both units, live and stored contents; the hour may have passed
  // Another state of a source is another set.
  const auto rotated = pull_secret("rotated");
  co_await env->set_source(rotated);
  const bool good =
      co_await eventually([&] { return env->metric("rw_bootstrapper_gathered_total") > gathered; });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(revisions_are_rendered_once_for_all_runtimes) {
  test_env env(quick());
  test::run(env.context, gathers_once(&env));
}

asio::awaitable<void> slows_down(test_env* env) {
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->add_bootstrapper("skr");
  co_await env->set_ready("skr");
  bool good = co_await env->until_state("skr", "Ready");
  BOOST_REQUIRE(good);
  good = co_await eventually([&] { return env->metric("rw_bootstrapper_watched_runtimes") == 1; });
  BOOST_REQUIRE(good);
  for (int i = 0; i < 3; ++i) {
    co_await env->remove("skr", bundles, {"", bundle_name});
    good = co_await env->until("skr", bundles, {"", bundle_name}, is_there);
    BOOST_TEST(good);
  }
  good = co_await eventually([&] { return env->metric("rw_bootstrapper_held_back_total") >= 1; });
  BOOST_TEST(good);
  const auto told = [&](const std::string& line) {
    return line.find("repairs on a runtime are undone") != line.npos;
  };
  good = co_await eventually([&] { return std::ranges::count_if(env->logged, told) == 1; });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(repairs_that_are_undone_are_reported_and_delayed) {
  test_env env(quick());
  test::run(env.context, slows_down(&env));
}

asio::awaitable<void> is_patient(test_env* env) {
  co_await env->begin();
  co_await env->add_runtime("bad");
  co_await env->add_runtime("good");
  json::value object{
      {"apiVersion", "operator.kyma-project.io/v1alpha1"},
      {"kind", "RuntimeBootstrapper"},
      {"metadata", {{"name", "bad"}, {"namespace", "kcp-system"}}},
      {"spec", {{"runtimeRef", {{"name", "bad"}}}, {"manifests", {{"inline", "no: manifest"}}}}}};
  co_await env->create("kcp", std::move(object), bootstrapper::runtime_bootstrappers_type());
  bool good = co_await env->until_condition("bad", "Compatible", "False", "Invalid");
  BOOST_TEST(good);
  // Its pods are on their way, so it is looked at again and again.
  co_await env->add_bootstrapper("good");
  const std::string looks = "rw_bootstrapper_syncs_total{result=";
  good = co_await eventually([&] { return env->metric(looks + "\"unchanged\"}") >= 8; });
  BOOST_TEST(good);
  BOOST_TEST(env->metric(looks + "\"refused\"}") <= 3);
}

BOOST_AUTO_TEST_CASE(rejected_revision_on_a_fresh_runtime_is_not_polled) {
  test_env env(quick());
  test::run(env.context, is_patient(&env));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
