// What is told in mode shadow, while Kyma Infrastructure Manager writes; and how direct takes over.

#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/runtime_config/land.hpp"

namespace rw::runtime_config_test {
BOOST_AUTO_TEST_SUITE(shadow)

namespace {

constexpr auto differing = "rw_bootstrapper_differing_runtimes";

asio::awaitable<void> installed(land* in) {
  co_await in->make({"skr"});
  const auto lacking = co_await in->settled();
  BOOST_REQUIRE_EQUAL(lacking, "");
  in->begin(bootstrapper_mode::signal);
  const bool recorded = co_await in->until_recorded();
  BOOST_REQUIRE(recorded);
}

asio::awaitable<json::value> deployment(land* in) {
  const k8s::object_key key{"kyma-system", "rt-bootstrapper-controller-manager"};
  auto object = co_await in->must(in->api("skr").get(deployments, key));
  co_return object;
}

asio::awaitable<void> reports(land* in) {
  co_await installed(in);
  co_await in->set_mode("skr", bootstrapper_mode::shadow);
  bool good = co_await in->until_told("skr", "InStep", "True");
  BOOST_TEST(good);
  BOOST_TEST(in->metric(differing) == 0);
  in->kim().options().held = true;
  co_await in->change(&versions::config);
  good = co_await in->until_told("skr", "InStep", "False");
  BOOST_TEST(good);
  BOOST_TEST(in->metric(differing) == 1);
  in->kim().options().held = false;
  const auto lacking = co_await in->settled();
  BOOST_TEST(lacking == "");
  // Nothing on the Runtime shows when KIM has written; another manager looks again.
  co_await in->end();
  in->begin(bootstrapper_mode::signal);
  good = co_await in->until_told("skr", "InStep", "True");
  BOOST_TEST(good);
  const auto object = co_await deployment(in);
  for (const auto& one : k8s::find(object, {"metadata", "managedFields"})->as_array()) {
    BOOST_TEST(k8s::find_string(one, {"manager"}) != "runtime-watcher-bootstrapper");
  }
  co_await in->end();
}

asio::awaitable<void> adopts(land* in) {
  co_await installed(in);
  const auto before = co_await deployment(in);
  co_await in->set_mode("skr", bootstrapper_mode::direct);
  bool good = co_await in->until_told("skr", "ConfigurationSynced", "True");
  BOOST_TEST(good);
  auto after = co_await deployment(in);
  BOOST_TEST(k8s::generation_of(before) == k8s::generation_of(after));
  co_await in->set_mode("skr", bootstrapper_mode::signal);
  co_await in->change(&versions::config);
  const auto lacking = co_await in->settled();
  BOOST_TEST(lacking == "");
  after = co_await deployment(in);
  BOOST_TEST(k8s::generation_of(before) == k8s::generation_of(after));
  co_await in->end();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_difference_is_reported_as_long_as_it_lasts_and_nothing_is_written) {
  land here(1);
  test::run(here.context, reports(&here));
}

BOOST_AUTO_TEST_CASE(adoption_and_return_restart_no_pods) {
  land here(2);
  test::run(here.context, adopts(&here));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_config_test
