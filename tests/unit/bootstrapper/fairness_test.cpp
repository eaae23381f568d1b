// What one runtime may cost the others, and itself.

#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/world.hpp"
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
  options out;
  out.mode = bootstrapper_mode::direct;
  out.ready_interval = 50ms;
  out.ready_interval_limit = 200ms;
  out.backoff_base = 50ms;
  out.backoff_limit = 200ms;
  out.sick_limit = 200ms;
  out.first_answer = 1s;
  out.runtime_limit = 1s;
  out.heard_delay = 20ms;
  return out;
}

}  // namespace

asio::awaitable<void> stays_sick(world* w) {
  co_await w->begin();
  co_await w->add_runtime("skr");
  co_await w->add_bootstrapper("skr");
  bool good = co_await w->until_told("skr", "ConfigurationSynced", "True", "Synced");
  BOOST_REQUIRE(good);
  w->hanging_writes["skr"] = true;
  const auto rotated = pull_secret("rotated");
  co_await w->set_source(rotated);
  const auto sick = [w] { return w->metric("rw_bootstrapper_sick_runtimes") == 1; };
  good = co_await eventually(sick);
  BOOST_REQUIRE(good);
  int tried = 0;
  int tried_as_healthy = 0;
  w->wrote = [&](const std::string&) {
    ++tried;
    if (!sick()) ++tried_as_healthy;
  };
  good = co_await eventually([&] { return tried >= 2; });
  BOOST_TEST(good);
  BOOST_TEST(tried_as_healthy == 0);
  w->wrote = {};
  w->hanging_writes["skr"] = false;
  good = co_await eventually([&] { return !sick(); });
  BOOST_TEST(good);
  good = co_await eventually([&] { return w->reactor->how_far().currents() == 1; });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(one_that_answers_reads_and_hangs_on_writes_stays_among_the_sick) {
  world w(quick());
  test::run(w.context, stays_sick(&w));
}

asio::awaitable<void> gathers_once(world* w) {
  co_await w->begin();
  for (const auto* name : {"a", "b", "c"}) {
    co_await w->add_runtime(name);
    co_await w->add_bootstrapper(name);
  }
  for (const auto* name : {"a", "b", "c"}) {
    const bool good = co_await w->until_told(name, "ConfigurationSynced", "True", "Synced");
    BOOST_TEST(good);
  }
  const auto gathered = w->metric("rw_bootstrapper_gathered_total");
  BOOST_TEST(gathered >= 1);
  BOOST_TEST(gathered <= 2);  // the hour may have passed
  // Another state of a source is another set.
  const auto rotated = pull_secret("rotated");
  co_await w->set_source(rotated);
  const bool good =
      co_await eventually([&] { return w->metric("rw_bootstrapper_gathered_total") > gathered; });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(sources_are_parsed_once_for_all_runtimes_that_have_them) {
  world w(quick());
  test::run(w.context, gathers_once(&w));
}

asio::awaitable<void> slows_down(world* w) {
  co_await w->begin();
  co_await w->add_runtime("skr");
  co_await w->add_bootstrapper("skr");
  co_await w->set_ready("skr");
  bool good = co_await w->until_state("skr", "Ready");
  BOOST_REQUIRE(good);
  const std::string watched =
      "rw_informer_objects{resource=\"clustertrustbundles.certificates.k8s.io\"}";
  good = co_await eventually([&] { return w->metric(watched) >= 2; });
  BOOST_REQUIRE(good);
  const auto is_there = [](const json::value& one) { return one.is_object(); };
  for (int i = 0; i < 3; ++i) {
    co_await w->remove("skr", bundles, {"", bundle_name});
    good = co_await w->until("skr", bundles, {"", bundle_name}, is_there);
    BOOST_TEST(good);
  }
  good = co_await eventually([&] { return w->metric("rw_bootstrapper_held_back_total") >= 1; });
  BOOST_TEST(good);
  const auto told = [&](const std::string& line) {
    return line.find("what was applied to a runtime is contested") != line.npos;
  };
  good = co_await eventually([&] { return std::ranges::count_if(w->logged, told) == 1; });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(whoever_undoes_each_repair_is_told_of_and_repaired_less_often) {
  world w(quick());
  test::run(w.context, slows_down(&w));
}

asio::awaitable<void> is_patient(world* w) {
  co_await w->begin();
  co_await w->add_runtime("bad");
  co_await w->add_runtime("good");
  json::value object{
      {"apiVersion", "operator.kyma-project.io/v1alpha1"},
      {"kind", "RuntimeBootstrapper"},
      {"metadata", {{"name", "bad"}, {"namespace", "kcp-system"}}},
      {"spec", {{"runtimeRef", {{"name", "bad"}}}, {"manifests", {{"inline", "no: manifest"}}}}}};
  const auto made =
      co_await w->api("kcp").create(bootstrapper::runtime_bootstrappers_type(), std::move(object));
  BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
  bool good = co_await w->until_told("bad", "Compatible", "False", "Invalid");
  BOOST_TEST(good);
  // Its pods are on their way, so it is looked at again and again.
  co_await w->add_bootstrapper("good");
  const std::string looks = "rw_bootstrapper_syncs_total{result=";
  good = co_await eventually([&] { return w->metric(looks + "\"unchanged\"}") >= 8; });
  BOOST_TEST(good);
  BOOST_TEST(w->metric(looks + "\"refused\"}") <= 3);
}

BOOST_AUTO_TEST_CASE(a_refused_set_on_a_fresh_runtime_is_not_polled) {
  world w(quick());
  test::run(w.context, is_patient(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
