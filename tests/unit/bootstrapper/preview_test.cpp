// What the next pass would write.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/test_env.hpp"
#include "tests/unit/run.hpp"
#include <algorithm>
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(preview)

using namespace std::chrono_literals;

namespace {

bool waits_for(const pass_preview& of, std::string_view text) {
  return std::ranges::any_of(
      of.waits, [&](const std::string& each) { return each.find(text) != std::string::npos; });
}

}  // namespace

RW_COROUTINE_TEST(preview_has_what_differs_and_writes_nothing, test_env, quick_options()) {
  co_await env->begin_with({"skr"});
  auto got = co_await env->reactor->preview(skr);
  BOOST_TEST(got.error == "");
  BOOST_TEST(got.writes.empty());
  BOOST_TEST(got.waits.empty());
  // In mode shadow nothing is repaired.
  co_await env->annotate_runtime("skr", std::string(bootstrapper_mode_annotation), "shadow");
  co_await env->until_condition("skr", "Ready", "Unknown", "Shadow");
  auto live = co_await env->must(env->api("skr").get(config_maps_type(), settings));
  live.at("data").as_object()["rt-bootstrapper-config.json"] = "{}";
  live = co_await env->must(env->api("skr").update(config_maps_type(), live));
  (void)co_await env->must(env->api("skr").remove(secrets_type(), credentials));
  got = co_await env->reactor->preview(skr);
  BOOST_TEST(got.error == "");
  BOOST_TEST(waits_for(got, "mode is shadow"));
  BOOST_TEST_REQUIRE(got.writes.size() == 2U);
  BOOST_TEST(got.writes.at(0).type.gvk.kind == "Secret");
  BOOST_TEST(got.writes.at(0).live.is_null());
  BOOST_TEST(got.writes.at(1).type.gvk.kind == "ConfigMap");
  BOOST_TEST(got.writes.at(1).live.at("data").at("rt-bootstrapper-config.json") == "{}");
  BOOST_TEST(got.writes.at(1).next.at("data").at("rt-bootstrapper-config.json") != "{}");
  const auto after = co_await env->must(env->api("skr").get(config_maps_type(), settings));
  BOOST_TEST(k8s::resource_version_of(after) == k8s::resource_version_of(live));
}

RW_COROUTINE_TEST(preview_says_that_the_runtime_awaits_its_turn, test_env, quick_options()) {
  static gate_by_hand gate;
  gate.open = true;
  env->gate = &gate;
  co_await env->begin_with({"skr"});
  gate.open = false;
  co_await env->set_source(manifests_source(manifests("2.0.0")));
  co_await env->until_condition("skr", "ConfigurationSynced", "False", "WaitingForRollout");
  auto got = co_await env->reactor->preview(skr);
  BOOST_TEST(got.error == "");
  BOOST_TEST(got.writes.empty());
  BOOST_TEST(waits_for(got, "the roll-out has not admitted it"));
  BOOST_TEST(got.awaits_turn);
}

RW_COROUTINE_TEST(preview_fails_where_the_sources_are_invalid, test_env, quick_options()) {
  co_await env->begin_with({"skr"});
  co_await env->set_source(config_map("{"));
  co_await env->until_condition("skr", "Compatible", "False", "Invalid");
  const auto got = co_await env->reactor->preview(skr);
  BOOST_TEST(got.error.starts_with("unit bootstrapper: "), got.error);
  BOOST_TEST(got.error.find("JSON") != std::string::npos, got.error);
}

RW_COROUTINE_TEST(preview_of_an_undeployment_releases_the_resource_in_kcp, test_env,
                  quick_options()) {
  const std::string finalizer(bootstrapper::finalizer);
  const std::string opt_out(bootstrapper::opt_out_annotation);
  co_await env->begin_with({"skr"});
  co_await env->pause();
  json::object by_the_manager{{bootstrapper::auto_created_annotation, "true"}};
  json::value change{{"metadata", {{"annotations", std::move(by_the_manager)}}}};
  co_await env->merge(bootstrapper::runtime_bootstrappers_type(), skr, std::move(change));
  co_await env->remove("kcp", bootstrapper::runtime_bootstrappers_type(), skr);
  co_await env->until_resource("skr", k8s::is_being_deleted);
  auto got = co_await env->reactor->preview(skr);
  while (got.kcp_writes.empty()) got = co_await env->reactor->preview(skr);
  BOOST_TEST(got.error == "");
  BOOST_TEST(!got.writes.empty());
  BOOST_TEST_REQUIRE(got.kcp_writes.size() == 2U);
  BOOST_TEST(k8s::annotation(got.kcp_writes.front().live, opt_out) == "");
  BOOST_TEST(k8s::annotation(got.kcp_writes.front().next, opt_out) == "true");
  BOOST_TEST(k8s::has_finalizer(got.kcp_writes.back().live, finalizer));
  BOOST_TEST(!k8s::has_finalizer(got.kcp_writes.back().next, finalizer));
  env->on_request = [](const std::string& cluster, const std::string& verb, const std::string&) {
    const bool refuses = cluster == "skr" && verb == "delete";
    return k8s::devserver::fault{.status = refuses ? 403U : 0U};
  };
  got = co_await env->reactor->preview(skr);
  BOOST_TEST(!got.error.empty());
  BOOST_TEST(got.kcp_writes.empty());
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
