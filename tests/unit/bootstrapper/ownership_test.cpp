// Whose a runtime is: one resource for one runtime, and what leaving it means.

#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/world.hpp"
#include "tests/unit/run.hpp"
#include <functional>
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(ownership)

using bootstrapper::options;
using test::eventually;
using namespace std::chrono_literals;

namespace {

const k8s::object_key deployment{"kyma-system", "rt-bootstrapper-controller-manager"};
const std::string mode_annotation(bootstrapper_mode_annotation);
const std::string mark(force_reconciliation_mark);

options quick() {
  options out;
  out.mode = bootstrapper_mode::direct;
  out.ready_interval = 50ms;
  out.ready_interval_limit = 200ms;
  out.backoff_base = 50ms;
  out.backoff_limit = 500ms;
  return out;
}

bool is_there(const json::value& one) {
  return one.is_object();
}
bool is_gone(const json::value& one) {
  return one.is_null();
}

asio::awaitable<bool> is_resource(world* w, std::string name,
                                  std::function<bool(const json::value&)> good) {
  const bool told = co_await w->until("kcp", bootstrapper::runtime_bootstrappers_type(),
                                      {"kcp-system", name}, std::move(good));
  co_return told;
}

asio::awaitable<void> add_resource(world* w, std::string name, json::value spec) {
  json::value object{{"apiVersion", "operator.kyma-project.io/v1alpha1"},
                     {"kind", "RuntimeBootstrapper"},
                     {"metadata", {{"name", name}, {"namespace", "kcp-system"}}},
                     {"spec", std::move(spec)}};
  const auto made =
      co_await w->api("kcp").create(bootstrapper::runtime_bootstrappers_type(), std::move(object));
  BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
}

}  // namespace

asio::awaitable<void> refuses_a_mismatch(world* w) {
  co_await w->begin();
  co_await w->add_runtime("open");
  co_await w->add_runtime("closed", "off");
  co_await add_resource(w, "crossed",
                        {{"runtimeRef", {{"name", "open"}, {"kymaName", "kyma-of-closed"}}}});
  bool good = co_await w->until_told("crossed", "Compatible", "False", "Invalid");
  BOOST_TEST(good);
  BOOST_TEST(w->writes["closed"] == 0);
  const auto resource = co_await w->status("crossed");
  BOOST_TEST(k8s::find_string(resource, {"status", "lastError"}) ==
             "spec.runtimeRef: Runtime open is of Kyma kyma-of-open and not of kyma-of-closed");
  co_await w->change("crossed", {{"runtimeRef", {{"kymaName", "kyma-of-open"}}}});
  good = co_await w->until("open", deployments, deployment, is_there);
  BOOST_TEST(good);
  // It does not leave through the other door either.
  co_await w->change("crossed", {{"runtimeRef", {{"kymaName", "kyma-of-closed"}}}});
  good = co_await w->until_told("crossed", "Compatible", "False", "Invalid");
  BOOST_TEST(good);
  co_await w->remove("kcp", bootstrapper::runtime_bootstrappers_type(), {"kcp-system", "crossed"});
  good = co_await is_resource(w, "crossed", is_gone);
  BOOST_TEST(good);
  BOOST_TEST(w->writes["closed"] == 0);
}

BOOST_AUTO_TEST_CASE(a_runtime_and_a_kyma_that_do_not_belong_together_are_refused) {
  world w(quick());
  test::run(w.context, refuses_a_mismatch(&w));
}

asio::awaitable<void> leaves_in_its_turn(world* w) {
  co_await w->begin();
  co_await w->add_runtime("skr");
  co_await w->add_bootstrapper("skr");
  bool good = co_await w->until_told("skr", "ConfigurationSynced", "True", "Synced");
  BOOST_REQUIRE(good);
  co_await w->annotate_runtime("skr", mark, "true");
  good = co_await w->until_told("skr", "Ready", "Unknown", "Waiting");
  BOOST_TEST(good);
  const auto before = w->writes["skr"];
  co_await w->remove("kcp", bootstrapper::runtime_bootstrappers_type(), {"kcp-system", "skr"});
  good = co_await w->until_state("skr", "Deleting");
  BOOST_TEST(good);
  const auto resource = co_await w->status("skr");
  const auto error = k8s::find_string(resource, {"status", "lastError"});
  BOOST_TEST(error.find("Kyma Infrastructure Manager is about to write") != error.npos, error);
  BOOST_TEST(w->writes["skr"] == before);
  co_await w->annotate_runtime("skr", mark, nullptr);
  good = co_await is_resource(w, "skr", is_gone);
  BOOST_TEST(good);
  good = co_await w->until("skr", deployments, deployment, is_gone);
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(undeploying_waits_until_the_runtime_may_be_written_to) {
  world w(quick());
  test::run(w.context, leaves_in_its_turn(&w));
}

asio::awaitable<void> takes_over(world* w) {
  co_await w->begin();
  co_await w->add_runtime("skr");
  co_await w->add_bootstrapper("skr");
  bool good = co_await w->until_told("skr", "ConfigurationSynced", "True", "Synced");
  BOOST_REQUIRE(good);
  co_await add_resource(w, "twin", {{"runtimeRef", {{"kymaName", "kyma-of-skr"}}}});
  good = co_await w->until_told("twin", "Compatible", "False", "Invalid");
  BOOST_TEST(good);
  co_await w->remove("kcp", bootstrapper::runtime_bootstrappers_type(), {"kcp-system", "skr"});
  good = co_await is_resource(w, "skr", is_gone);
  BOOST_TEST(good);
  good = co_await w->until_told("twin", "ConfigurationSynced", "True", "Synced");
  BOOST_TEST(good);
  // One that comes before it in the alphabet takes it away again, without another's help.
  co_await add_resource(w, "earlier", {{"runtimeRef", {{"name", "skr"}}}});
  good = co_await w->until_told("twin", "Compatible", "False", "Invalid");
  BOOST_TEST(good);
  good = co_await w->until_told("earlier", "ConfigurationSynced", "True", "Synced");
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(the_second_resource_for_a_runtime_takes_over_from_the_first) {
  world w(quick());
  test::run(w.context, takes_over(&w));
}

asio::awaitable<void> leaves_it_as_it_is(world* w) {
  co_await w->begin();
  co_await w->add_runtime("skr");
  co_await w->add_bootstrapper("skr");
  bool good = co_await w->until_told("skr", "ConfigurationSynced", "True", "Synced");
  BOOST_REQUIRE(good);
  co_await w->annotate_runtime("skr", mark, "true");
  good = co_await w->until_told("skr", "Ready", "Unknown", "Waiting");
  BOOST_TEST(good);
  const auto before = w->writes["skr"];
  co_await w->remove("kcp", bootstrapper::runtime_bootstrappers_type(), {"kcp-system", "skr"});
  good = co_await is_resource(w, "skr", is_gone);
  BOOST_TEST(good);
  BOOST_TEST(w->writes["skr"] == before);
  good = co_await w->until("skr", deployments, deployment, is_there);
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(a_resource_does_not_wait_for_ever_for_its_turn_to_undeploy) {
  auto with = quick();
  with.removal_limit = 2s;
  world w(with);
  test::run(w.context, leaves_it_as_it_is(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
