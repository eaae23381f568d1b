// The reactor on embedded API servers: a runtime's bootstrapper from its installation to its end.

#include "k8s/types.hpp"
#include "reactors/bootstrapper/manifest_set.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/world.hpp"
#include "tests/unit/run.hpp"
#include <functional>
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(direct)

using bootstrapper::options;
using test::eventually;
using namespace std::chrono_literals;

namespace {

const k8s::object_key deployment{"kyma-system", "rt-bootstrapper-controller-manager"};
const k8s::object_key credentials{"kyma-system", "registry-credentials"};
const k8s::object_key settings{"kyma-system", "rt-bootstrapper-config"};
const k8s::object_key skr{"kcp-system", "skr"};

/// Quick where the real one is patient.
options quick() {
  options out;
  out.mode = bootstrapper_mode::direct;
  out.ready_interval = 50ms;
  out.ready_interval_limit = 200ms;
  out.backoff_base = 50ms;
  out.backoff_limit = 500ms;
  out.heard_delay = 20ms;
  return out;
}

bool is_gone(const json::value& one) {
  return one.is_null();
}

std::function<bool(const json::value&)> has_data(const json::value& of) {
  return [data = of.at("data")](const json::value& one) {
    return one.is_object() && one.at("data") == data;
  };
}

asio::awaitable<void> one_ready_runtime(world* w) {
  co_await w->begin();
  co_await w->add_runtime("skr");
  co_await w->add_bootstrapper("skr");
  co_await w->set_ready("skr");
  const bool ready = co_await w->until_state("skr", "Ready");
  BOOST_REQUIRE(ready);
}

json::value manifests_source(const std::string& text) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", "runtime-bootstrapper-manifests"}, {"namespace", "kcp-system"}}},
          {"data", {{"manifests.yaml", text}}}};
}

}  // namespace

asio::awaitable<void> installs(world* w) {
  co_await w->begin();
  co_await w->add_runtime("skr");
  co_await w->add_bootstrapper("skr");
  bool good = co_await w->until_state("skr", "InProgress");
  BOOST_TEST(good);
  good = co_await w->until_told("skr", "RuntimeBootstrapperReady", "False",
                                "RuntimeBootstrapperInstallationInProgress");
  BOOST_TEST(good);
  co_await w->set_ready("skr");
  good = co_await w->until_state("skr", "Ready");
  BOOST_TEST(good);
  auto object = co_await w->status("skr");
  for (const auto* condition : {"Compatible", "ConfigurationSynced", "Installed", "Ready"}) {
    const auto found = k8s::find_condition(object, condition);
    BOOST_TEST_REQUIRE(found.has_value());
    BOOST_TEST(found->status == "True", condition);
  }
  good = co_await w->until_told("skr", "RuntimeBootstrapperReady", "True",
                                "RuntimeBootstrapperConfigured");
  BOOST_TEST(good);
  object = co_await w->status("skr");
  BOOST_TEST(k8s::has_finalizer(object, bootstrapper::finalizer));
  BOOST_TEST(k8s::find_string(object, {"status", "installedVersion"}) == "1.0.0");
  BOOST_TEST(k8s::find_string(object, {"status", "mode"}) == "direct");
  const auto digest = bootstrapper::short_digest(w->wanted().digest);
  BOOST_TEST(k8s::find_string(object, {"status", "digest"}) == digest);
  BOOST_TEST(k8s::find_string(object, {"status", "wantedDigest"}) == digest);
  BOOST_TEST(object.at("status").as_object().contains("lastSyncTime"));
  const auto& resources = object.at("status").at("resources").as_array();
  BOOST_TEST_REQUIRE(resources.size() == 4U);
  for (const auto& one : resources) {
    BOOST_TEST(!k8s::find_string(one, {"resourceVersion"}).empty());
    BOOST_TEST(!k8s::find_string(one, {"digest"}).empty());
    BOOST_TEST(!k8s::find_string(one, {"lastSyncTime"}).empty());
  }
  BOOST_TEST(w->reactor->how_far().currents() == 1U);
  BOOST_TEST(w->metric("rw_bootstrapper_current_runtimes") == 1);
  BOOST_TEST(w->metric("rw_bootstrapper_outdated_since_seconds") == 0);
}

BOOST_AUTO_TEST_CASE(a_bootstrapper_is_installed_configured_and_reported) {
  world w(quick());
  test::run(w.context, installs(&w));
}

asio::awaitable<void> rotates(world* w) {
  co_await one_ready_runtime(w);
  const auto rotated = pull_secret("rotated");
  co_await w->set_source(rotated);
  bool good = co_await w->until("skr", secrets_type(), credentials, has_data(rotated));
  BOOST_TEST(good);
  w->now.pull_secret.object = rotated;
  const auto digest = bootstrapper::short_digest(w->wanted().digest);
  good = co_await w->until("kcp", bootstrapper::runtime_bootstrappers_type(), skr,
                           [&](const json::value& one) {
                             return k8s::find_string(one, {"status", "digest"}) == digest;
                           });
  BOOST_TEST(good);
  // Settled: looking again writes nothing, there or here.
  const auto before = w->writes["skr"];
  const auto object = co_await w->status("skr");
  const std::string unchanged = "rw_bootstrapper_syncs_total{result=\"unchanged\"}";
  const auto looks = w->metric(unchanged);
  w->reactor->requeue(skr);
  good = co_await eventually([&] { return w->metric(unchanged) > looks; });
  BOOST_TEST(good);
  BOOST_TEST(w->writes["skr"] == before);
  const auto after = co_await w->status("skr");
  BOOST_TEST(k8s::resource_version_of(after) == k8s::resource_version_of(object));
}

BOOST_AUTO_TEST_CASE(a_rotated_pull_secret_reaches_the_runtime) {
  world w(quick());
  test::run(w.context, rotates(&w));
}

asio::awaitable<void> refuses(world* w) {
  co_await one_ready_runtime(w);
  const auto before = w->writes["skr"];
  co_await w->set_source(config_map(R"({"overrides": {}, "availableFeatures": ["x"]})"));
  bool good = co_await w->until_told("skr", "Compatible", "False", "Invalid");
  BOOST_TEST(good);
  good = co_await w->until_told("skr", "RuntimeBootstrapperReady", "False",
                                "RuntimeBootstrapperConfigurationFailed");
  BOOST_TEST(good);
  good = co_await w->until_told("skr", "ConfigurationSynced", "False", "FormerSetKept");
  BOOST_TEST(good);
  auto object = co_await w->status("skr");
  const auto error = std::string(k8s::find_string(object, {"status", "lastError"}));
  BOOST_TEST(error.find("availableFeatures[0]: \"x\" is no feature") != error.npos, error);
  // Where it is to be mended, which is not on the runtime.
  BOOST_TEST(error.starts_with("ConfigMap kcp-system/rt-bootstrapper-config, "), error);
  BOOST_TEST(k8s::find_string(object, {"status", "digest"}) ==
             bootstrapper::short_digest(w->wanted().digest));
  BOOST_TEST(w->writes["skr"] == before);
  good =
      co_await w->until("skr", config_maps_type(), settings, has_data(w->now.configuration.object));
  BOOST_TEST(good);
  BOOST_TEST(w->reactor->how_far().currents() == 0U);
  // What it has is kept in place meanwhile.
  co_await w->remove("skr", config_maps_type(), settings);
  w->reactor->requeue(skr);
  good =
      co_await w->until("skr", config_maps_type(), settings, has_data(w->now.configuration.object));
  BOOST_TEST(good);
  co_await w->set_source(w->now.configuration.object);
  good = co_await w->until_told("skr", "Compatible", "True", "Validated");
  BOOST_TEST(good);
  object = co_await w->status("skr");
  BOOST_TEST(!object.at("status").as_object().contains("lastError"));
}

BOOST_AUTO_TEST_CASE(a_broken_configuration_is_refused_and_the_runtime_keeps_the_former) {
  world w(quick());
  test::run(w.context, refuses(&w));
}

asio::awaitable<void> hears_of_drift(world* w) {
  co_await one_ready_runtime(w);
  bool good =
      co_await eventually([w] { return w->metric("rw_bootstrapper_watched_runtimes") == 1; });
  BOOST_TEST(good);
  // Nobody looks by itself for minutes. What is there when the watch begins is no change, so the
  // drift must come after that.
  const auto informed = [w](const std::string& resource) {
    return w->metric("rw_informer_objects{resource=\"" + resource + "\"}");
  };
  good =
      co_await eventually([&] { return informed("clustertrustbundles.certificates.k8s.io") >= 2; });
  BOOST_TEST(good);
  good = co_await eventually([&] { return informed("deployments.apps") >= 1; });
  BOOST_TEST(good);
  co_await w->remove("skr", bundles, {"", bundle_name});
  good = co_await w->until("skr", bundles, {"", bundle_name},
                           [](const json::value& one) { return one.is_object(); });
  BOOST_TEST(good);
  const json::value change{{"spec", {{"replicas", 0}}}};
  const auto done =
      co_await w->api("skr").patch(deployments, deployment, k8s::patch_type::merge, change);
  BOOST_REQUIRE(done.has_value());
  good = co_await w->until("skr", deployments, deployment, [](const json::value& one) {
    return *k8s::find(one, {"spec", "replicas"}) == 1;
  });
  BOOST_TEST(good);
  good = co_await eventually(
      [w] { return w->metric("rw_bootstrapper_syncs_total{result=\"repaired\"}") >= 2; });
  BOOST_TEST(good);
  BOOST_TEST(w->metric("rw_bootstrapper_heard_total{from=\"others\"}") >= 2);
  // What was repaired is heard of as well, and known for what it is.
  good = co_await eventually(
      [w] { return w->metric("rw_bootstrapper_heard_total{from=\"own\"}") >= 1; });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(drift_on_the_runtime_is_heard_of_and_repaired) {
  world w(quick());
  test::run(w.context, hears_of_drift(&w));
}

asio::awaitable<void> upgrades(world* w) {
  co_await one_ready_runtime(w);
  const std::string extra =
      "---\napiVersion: v1\nkind: ConfigMap\n"
      "metadata: {name: extra, namespace: kyma-system}\n";
  co_await w->set_source(manifests_source(manifests("2.0.0", extra)));
  const auto is_new = [](const json::value& one) {
    return k8s::label(one, bootstrapper::version_label) == "2.0.0";
  };
  bool good = co_await w->until("skr", deployments, deployment, is_new);
  BOOST_TEST(good);
  good = co_await w->until_told("skr", "RuntimeBootstrapperReady", "False",
                                "RuntimeBootstrapperUpgradeInProgress");
  BOOST_TEST(good);
  auto object = co_await w->status("skr");
  BOOST_TEST(k8s::find_string(object, {"status", "installedVersion"}) == "1.0.0");
  co_await w->set_ready("skr");
  good = co_await w->until_told("skr", "Ready", "True", "Ready");
  BOOST_TEST(good);
  object = co_await w->status("skr");
  BOOST_TEST(k8s::find_string(object, {"status", "installedVersion"}) == "2.0.0");
  co_await w->set_source(manifests_source(manifests("2.0.1")));
  good = co_await w->until("skr", config_maps_type(), {"kyma-system", "extra"}, is_gone);
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(new_manifests_upgrade_and_what_they_lack_is_pruned) {
  world w(quick());
  test::run(w.context, upgrades(&w));
}

asio::awaitable<void> suspends(world* w) {
  co_await one_ready_runtime(w);
  co_await w->change("skr", {{"suspend", true}});
  bool good = co_await w->until_state("skr", "Suspended");
  BOOST_TEST(good);
  const auto before = w->writes["skr"];
  co_await w->set_source(pull_secret("unseen"));
  w->reactor->requeue(skr);
  const auto passes =
      "controller_runtime_reconcile_total{controller=\"runtime-bootstrapper\","
      "result=\"success\"}";
  const auto seen = w->metric(passes);
  good = co_await eventually([&] { return w->metric(passes) > seen; });
  BOOST_TEST(good);
  BOOST_TEST(w->writes["skr"] == before);
  co_await w->change("skr", {{"suspend", false}});
  good = co_await w->until("skr", secrets_type(), credentials, has_data(pull_secret("unseen")));
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(a_suspended_one_is_left_alone) {
  world w(quick());
  test::run(w.context, suspends(&w));
}

asio::awaitable<void> follows_sources(world* w) {
  co_await one_ready_runtime(w);
  co_await w->remove_source(secrets_type(), "registry-credentials");
  w->reactor->requeue(skr);
  bool good = co_await w->until_told("skr", "ConfigurationSynced", "True", "Synced");
  BOOST_TEST(good);
  good = co_await w->until("skr", secrets_type(), credentials, has_data(pull_secret()));
  BOOST_TEST(good);
  co_await w->change("skr", {{"deletionPolicy", "remove"}});
  good = co_await w->until("skr", secrets_type(), credentials, is_gone);
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(a_deleted_source_is_kept_on_the_runtime_unless_it_is_to_be_removed) {
  world w(quick());
  test::run(w.context, follows_sources(&w));
}

asio::awaitable<void> undeploys(world* w) {
  co_await one_ready_runtime(w);
  co_await w->remove("kcp", bootstrapper::runtime_bootstrappers_type(), skr);
  bool good = co_await w->until("kcp", bootstrapper::runtime_bootstrappers_type(), skr, is_gone);
  BOOST_TEST(good);
  for (const auto& one : w->wanted().items) {
    const auto got = co_await w->api("skr").get(one.type, one.key("kyma-system"));
    BOOST_TEST(got.has_error(), one.type.gvk.kind);
  }
}

BOOST_AUTO_TEST_CASE(deleting_the_resource_undeploys) {
  world w(quick());
  test::run(w.context, undeploys(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
