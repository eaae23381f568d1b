// Who writes to a runtime: the road from Kyma Infrastructure Manager to us, and runtimes that do
// not answer.

#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/world.hpp"
#include "tests/unit/run.hpp"
#include <functional>
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(modes)

using bootstrapper::options;
using test::eventually;
using namespace std::chrono_literals;

namespace {

const k8s::object_key deployment{"kyma-system", "rt-bootstrapper-controller-manager"};
const std::string mode_annotation(bootstrapper_mode_annotation);
const std::string mark(force_reconciliation_mark);
const std::string signalled(signalled_annotation);

options quick(bootstrapper_mode mode) {
  options out;
  out.mode = mode;
  out.ready_interval = 50ms;
  out.ready_interval_limit = 200ms;
  out.backoff_base = 50ms;
  out.backoff_limit = 500ms;
  out.sick_limit = 200ms;
  out.first_answer = 300ms;
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

}  // namespace

asio::awaitable<void> migrates(world* w) {
  co_await w->begin();
  co_await w->add_runtime("skr");
  co_await w->add_bootstrapper("skr");
  // signal: nothing is ours.
  bool good = co_await w->until_told("skr", "Ready", "Unknown", "Waiting");
  BOOST_TEST(good);
  BOOST_TEST(w->writes["skr"] == 0);
  // shadow: what would be written is told.
  co_await w->annotate_runtime("skr", mode_annotation, "shadow");
  good = co_await w->until_told("skr", "InStep", "False", "WouldWrite");
  BOOST_TEST(good);
  BOOST_TEST(w->writes["skr"] == 0);
  BOOST_TEST(w->metric("rw_bootstrapper_differing_runtimes") == 1);
  auto object = co_await w->status("skr");
  BOOST_TEST(!k8s::has_finalizer(object, bootstrapper::finalizer));
  // direct, but Kyma Infrastructure Manager still has its mark.
  co_await w->annotate_runtime("skr", mark, "true");
  co_await w->annotate_runtime("skr", signalled, "abc");
  co_await w->annotate_runtime("skr", mode_annotation, "direct");
  good = co_await is_resource(w, "skr", [](const json::value& one) {
    const auto ready = k8s::find_condition(one, "Ready");
    return ready && ready->message.find("Kyma Infrastructure Manager") == 0;
  });
  BOOST_TEST(good);
  BOOST_TEST(w->writes["skr"] == 0);
  co_await w->annotate_runtime("skr", mark, nullptr);
  good = co_await is_resource(w, "skr", [](const json::value& one) {
    const auto ready = k8s::find_condition(one, "Ready");
    return ready && ready->message.find("may still be told") != std::string::npos;
  });
  BOOST_TEST(good);
  BOOST_TEST(w->writes["skr"] == 0);
  co_await w->annotate_runtime("skr", signalled, json::value(signalled_nothing));
  good = co_await w->until("skr", deployments, deployment, is_there);
  BOOST_TEST(good);
  good = co_await w->until_told("skr", "ConfigurationSynced", "True", "Synced");
  BOOST_TEST(good);
  object = co_await w->status("skr");
  BOOST_TEST(!k8s::find_condition(object, "InStep").has_value());
  // And back.
  co_await w->annotate_runtime("skr", mode_annotation, "signal");
  good = co_await w->until_told("skr", "Ready", "Unknown", "Waiting");
  BOOST_TEST(good);
  BOOST_TEST(w->reactor->how_far().managed() == 0U);
  for (const auto one : {runtime_state::installed, runtime_state::not_ready, runtime_state::failed,
                         runtime_state::unreachable}) {
    BOOST_TEST(w->reactor->count(one) == 0U);
  }
  const auto before = w->writes["skr"];
  co_await w->set_source(pull_secret("for another"));
  w->reactor->requeue({"kcp-system", "skr"});
  // It goes without touching what is somebody else's now.
  co_await w->remove("kcp", bootstrapper::runtime_bootstrappers_type(), {"kcp-system", "skr"});
  good = co_await is_resource(w, "skr", is_gone);
  BOOST_TEST(good);
  BOOST_TEST(w->writes["skr"] == before);
  good = co_await w->until("skr", deployments, deployment, is_there);
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(a_runtime_goes_from_signal_over_shadow_to_direct_and_back) {
  world w(quick(bootstrapper_mode::signal));
  test::run(w.context, migrates(&w));
}

asio::awaitable<void> creates(world* w) {
  co_await w->begin();
  co_await w->add_runtime("skr");
  co_await w->add_runtime("other", "signal");
  bool good = co_await is_resource(w, "skr", is_there);
  BOOST_TEST(good);
  const auto made = co_await w->status("skr");
  const auto owners = k8s::owners_of(made);
  BOOST_TEST_REQUIRE(owners.size() == 1U);
  BOOST_TEST(owners.front().api_version == "infrastructuremanager.kyma-project.io/v1");
  BOOST_TEST(owners.front().kind == "Runtime");
  BOOST_TEST(owners.front().name == "skr");
  good = co_await w->until("skr", deployments, deployment, is_there);
  BOOST_TEST(good);
  co_await w->set_ready("skr");
  good = co_await w->until_state("skr", "Ready");
  BOOST_TEST(good);
  good = co_await is_resource(w, "other", is_gone);
  BOOST_TEST(good);
  co_await w->annotate_runtime("other", mode_annotation, "direct");
  good = co_await is_resource(w, "other", is_there);
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(runtimes_get_a_resource_of_their_own_where_that_is_asked_for) {
  auto with = quick(bootstrapper_mode::direct);
  with.create_for_runtimes = true;
  world w(with);
  test::run(w.context, creates(&w));
}

asio::awaitable<void> refuses_a_second(world* w) {
  co_await w->begin();
  co_await w->add_runtime("skr");
  co_await w->add_bootstrapper("skr");
  bool good = co_await w->until("skr", deployments, deployment, is_there);
  BOOST_TEST(good);
  json::value second{{"apiVersion", "operator.kyma-project.io/v1alpha1"},
                     {"kind", "RuntimeBootstrapper"},
                     {"metadata", {{"name", "twin"}, {"namespace", "kcp-system"}}},
                     {"spec", {{"runtimeRef", {{"name", "skr"}}}}}};
  const auto made =
      co_await w->api("kcp").create(bootstrapper::runtime_bootstrappers_type(), std::move(second));
  BOOST_REQUIRE(made.has_value());
  good = co_await w->until_told("twin", "Compatible", "False", "Invalid");
  BOOST_TEST(good);
  const auto twin = co_await w->status("twin");
  BOOST_TEST(k8s::find_string(twin, {"status", "lastError"}) ==
             "spec.runtimeRef: RuntimeBootstrapper skr has this runtime");
  co_await w->remove("kcp", bootstrapper::runtime_bootstrappers_type(), {"kcp-system", "twin"});
  good = co_await is_resource(w, "twin", is_gone);
  BOOST_TEST(good);
  good = co_await w->until("skr", deployments, deployment, is_there);
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(a_second_resource_for_a_runtime_is_refused) {
  world w(quick(bootstrapper_mode::direct));
  test::run(w.context, refuses_a_second(&w));
}

asio::awaitable<void> survives_silence(world* w) {
  co_await w->begin();
  for (const auto* name : {"a", "b", "c"}) {
    co_await w->add_runtime(name);
    co_await w->add_bootstrapper(name);
  }
  for (const auto* name : {"a", "b", "c"}) {
    const bool there = co_await w->until(name, deployments, deployment, is_there);
    BOOST_REQUIRE(there);
  }
  w->hanging["b"] = true;
  const auto rotated = pull_secret("rotated");
  co_await w->set_source(rotated);
  for (const auto* name : {"a", "c"}) {
    const bool good = co_await w->until(
        name, secrets_type(), {"kyma-system", "registry-credentials"}, [&](const json::value& one) {
          return one.is_object() && one.at("data") == rotated.at("data");
        });
    BOOST_TEST(good, name);
  }
  bool good = co_await w->until_told("b", "Ready", "Unknown", "RuntimeUnreachable");
  BOOST_TEST(good);
  BOOST_TEST(w->metric("rw_bootstrapper_outdated_since_seconds") > 0);
  w->hanging["b"] = false;
  good = co_await w->until("b", secrets_type(), {"kyma-system", "registry-credentials"},
                           [&](const json::value& one) {
                             return one.is_object() && one.at("data") == rotated.at("data");
                           });
  BOOST_TEST(good);
  good = co_await eventually([&] { return w->reactor->how_far().currents() == 3; });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(a_runtime_that_hangs_holds_up_no_other_and_gets_it_later) {
  auto with = quick(bootstrapper_mode::direct);
  with.runtime_limit = 1s;
  world w(with);
  test::run(w.context, survives_silence(&w));
}

asio::awaitable<void> gives_up_removal(world* w) {
  co_await w->begin();
  co_await w->add_runtime("skr");
  co_await w->add_bootstrapper("skr");
  bool good = co_await w->until_told("skr", "ConfigurationSynced", "True", "Synced");
  BOOST_TEST(good);
  w->hanging["skr"] = true;
  co_await w->remove("kcp", bootstrapper::runtime_bootstrappers_type(), {"kcp-system", "skr"});
  good = co_await w->until_state("skr", "Deleting");
  BOOST_TEST(good);
  good = co_await is_resource(w, "skr", is_gone);
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(a_runtime_that_is_gone_for_good_does_not_keep_its_resource) {
  auto with = quick(bootstrapper_mode::direct);
  with.runtime_limit = 500ms;
  with.removal_limit = 3s;
  world w(with);
  test::run(w.context, gives_up_removal(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
