// What is told in mode shadow, while Kyma Infrastructure Manager writes; and how direct takes over.

#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/runtime_config/audit.hpp"
#include "tests/unit/runtime_config/kim.hpp"
#include "tests/unit/runtime_config/land.hpp"

namespace rw::runtime_config_test {
BOOST_AUTO_TEST_SUITE(shadow)

namespace {

constexpr auto differing = "rw_bootstrapper_differing_runtimes";

asio::awaitable<void> installed(land* in) {
  co_await in->make({"skr"});
  co_await in->annotate("skr", {{force_reconciliation_mark, "true"}});
  const auto lacking = co_await in->settled();
  BOOST_REQUIRE_EQUAL(lacking, "");
  in->begin(bootstrapper_mode::signal);
  const bool recorded = co_await in->until_recorded();
  BOOST_REQUIRE(recorded);
}

asio::awaitable<std::int64_t> generation(land* in) {
  const k8s::object_key key{"kyma-system", "rt-bootstrapper-controller-manager"};
  const auto object = co_await in->must(in->api("skr").get(deployments, key));
  co_return k8s::generation_of(object);
}

asio::awaitable<void> tells(land* in, kim* manager, findings* found) {
  co_await installed(in);
  co_await in->set_mode("skr", bootstrapper_mode::shadow);
  bool good = co_await in->until_told("skr", "InStep", "True");
  BOOST_TEST(good);
  BOOST_TEST(in->metric(differing) == 0);
  manager->hold();
  co_await in->change(&versions::config);
  good = co_await in->until_told("skr", "InStep", "False");
  BOOST_TEST(good);
  BOOST_TEST(in->metric(differing) == 1);
  manager->go_on();
  // As soon as Kyma Infrastructure Manager is done, and not at the next look anyway.
  good = co_await in->until_told("skr", "InStep", "True");
  BOOST_TEST(good);
  BOOST_TEST(in->metric(differing) == 0);
  const auto lacking = co_await in->settled();
  BOOST_TEST(lacking == "");
  co_await in->end();
  co_await audit_runtime(in, "skr", found);
}

asio::awaitable<void> adopts(land* in, findings* found) {
  co_await installed(in);
  const auto before = co_await generation(in);
  co_await in->set_mode("skr", bootstrapper_mode::direct);
  bool good = co_await in->until_told("skr", "ConfigurationSynced", "True");
  BOOST_TEST(good);
  auto after = co_await generation(in);
  BOOST_TEST(before == after);
  co_await in->set_mode("skr", bootstrapper_mode::signal);
  co_await in->change(&versions::config);
  const auto lacking = co_await in->settled();
  BOOST_TEST(lacking == "");
  after = co_await generation(in);
  BOOST_TEST(before == after);
  co_await in->end();
  co_await audit_runtime(in, "skr", found);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_difference_is_told_as_long_as_it_lasts_and_nothing_is_written) {
  land here(1);
  kim manager(here);
  findings found;
  test::run(here.context, tells(&here, &manager, &found));
  BOOST_TEST(found.wrong == "");
  BOOST_TEST(found.ours == 0U);
  BOOST_TEST(found.kims > 0U);
}

BOOST_AUTO_TEST_CASE(taking_over_and_giving_back_restarts_no_pods) {
  land here(2);
  kim manager(here);
  findings found;
  test::run(here.context, adopts(&here, &found));
  BOOST_TEST(found.wrong == "");
  BOOST_TEST(found.ours > 0U);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_config_test
