// The reactor on embedded API servers: a runtime's bootstrapper from its installation to its end.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/test_env.hpp"
#include "tests/unit/run.hpp"
#include <algorithm>
#include <chrono>
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(direct)

using bootstrapper::direct_sync_options;
using test::eventually;
using namespace std::chrono_literals;

namespace {

std::string unit_text(const json::value& object, std::size_t unit, std::string_view field) {
  return std::string(k8s::find_string(object.at("status").at("units").at(unit), {field}));
}

direct_sync_options renamed() {
  auto with = quick_options();
  with.to.pull_secret = "own-secret";
  with.to.configuration = "own-config";
  return with;
}

/// Lists, each with one content.
asio::awaitable<std::size_t> stored(test_env* env) {
  const auto list =
      co_await env->must(env->api("kcp").list(secrets_type(), {.ns = "runtime-watcher-system"}));
  const auto& all = list.at("items").as_array();
  const auto lists = std::ranges::count_if(all, [](const json::value& each) {
    return !k8s::annotation(each, "operator.kyma-project.io/source").empty();
  });
  const auto count = static_cast<std::size_t>(lists);
  co_return all.size() == 2 * count ? count : 0;
}

/// So many collections of unused contents begin, or more.
asio::awaitable<void> until_collected(test_env* env, int times) {
  const std::string lists = "rw_kube_requests_total{client=\"test\",code=\"200\",verb=\"list\"}";
  co_await env->until_metric(lists, env->metric(lists) + times);
}

}  // namespace

RW_COROUTINE_TEST(bootstrapper_is_installed_configured_and_reported, test_env, quick_options()) {
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->add_bootstrapper("skr");
  co_await env->until_state("skr", "InProgress");
  co_await env->until_condition("skr", "RuntimeBootstrapperReady", "False",
                                "RuntimeBootstrapperInstallationInProgress");
  co_await env->set_ready("skr");
  co_await env->until_state("skr", "Ready");
  auto object = co_await env->status("skr");
  for (const auto* condition : {"Compatible", "ConfigurationSynced", "Installed", "Ready"}) {
    const auto found = k8s::find_condition(object, condition);
    BOOST_TEST_REQUIRE(found.has_value());
    BOOST_TEST(found->status == "True", condition);
  }
  BOOST_TEST(k8s::has_finalizer(object, bootstrapper::finalizer));
  BOOST_TEST(k8s::find_string(object, {"status", "installedVersion"}) == "1.0.0");
  BOOST_TEST(k8s::find_string(object, {"status", "mode"}) == "direct");
  for (const auto of : bootstrapper::all_units) {
    const auto i = static_cast<std::size_t>(of);
    BOOST_TEST(unit_text(object, i, "name") == to_string(of));
    BOOST_TEST(unit_text(object, i, "phase") == "Applied");
    BOOST_TEST(unit_text(object, i, "digest") == rendered(of, env->now).digest);
  }
  BOOST_TEST(bootstrapper::read_state(object).objects.size() == 7U);
  BOOST_TEST(env->reactor->contents().count("current") == 1U);
  BOOST_TEST(env->metric("rw_bootstrapper_content_runtimes{state=\"current\"}") == 1);
  const auto secrets = co_await stored(env);
  BOOST_TEST(secrets == 4U);
}

RW_COROUTINE_TEST(objects_on_runtimes_have_the_configured_names, test_env, renamed()) {
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->add_bootstrapper("skr");
  co_await env->until("skr", secrets_type(), {"kyma-system", "own-secret"},
                      has_data(pull_secret()));
  co_await env->until("skr", config_maps_type(), {"kyma-system", "own-config"}, is_there);
  const auto default_name = co_await env->api("skr").get(config_maps_type(), settings);
  BOOST_TEST(default_name.has_error());
}

RW_COROUTINE_TEST(rotated_pull_secret_reaches_the_runtime, test_env, quick_options()) {
  co_await one_ready_runtime(env);
  const auto rotated = pull_secret("rotated");
  co_await env->set_source(rotated);
  co_await env->until("skr", secrets_type(), credentials, has_data(rotated));
  env->now.at(source_kind::pull_secret).object = rotated;
  const auto digest = rendered(bootstrapper::unit::credentials, env->now).digest;
  co_await env->until(
      "kcp", bootstrapper::runtime_bootstrappers_type(), skr,
      [&](const json::value& object) { return unit_text(object, 0, "digest") == digest; });
  // Settled: another pass writes nothing, there or here.
  const auto before = env->asked["skr"].writes;
  const auto object = co_await env->status("skr");
  const std::string unchanged = "rw_bootstrapper_syncs_total{result=\"unchanged\"}";
  const auto passes = env->metric(unchanged);
  env->reactor->requeue(skr);
  co_await soon([&] { return env->metric(unchanged) > passes; });
  BOOST_TEST(env->asked["skr"].writes == before);
  const auto after = co_await env->status("skr");
  BOOST_TEST(k8s::resource_version_of(after) == k8s::resource_version_of(object));
}

RW_COROUTINE_TEST(invalid_unit_keeps_its_last_good_content_and_the_other_goes_on, test_env,
                  quick_options()) {
  co_await one_ready_runtime(env);
  const auto& good_config = env->now.at(source_kind::config).object;
  co_await env->set_source(config_map(R"({"overrides": {}, "availableFeatures": ["x"]})"));
  co_await env->until_condition("skr", "Compatible", "False", "Invalid");
  co_await env->until_condition("skr", "ConfigurationSynced", "False", "LastGoodKept");
  auto object = co_await env->status("skr");
  const auto error = std::string(k8s::find_string(object, {"status", "lastError"}));
  BOOST_TEST(error.find("availableFeatures[0]: \"x\" is no feature") != error.npos, error);
  BOOST_TEST(error.starts_with("ConfigMap kcp-system/rt-bootstrapper-config, "), error);
  // The other unit goes on.
  const auto rotated = pull_secret("rotated");
  co_await env->set_source(rotated);
  co_await env->until("skr", secrets_type(), credentials, has_data(rotated));
  BOOST_TEST(env->reactor->contents().count("current") == 0U);
  // Also after a restart it is kept in place meanwhile, by the stored content.
  co_await env->restart();
  co_await env->remove("skr", config_maps_type(), settings);
  env->reactor->requeue(skr);
  co_await env->until("skr", config_maps_type(), settings, has_data(good_config));
  co_await env->set_source(good_config);
  co_await env->until_condition("skr", "Compatible", "True", "Validated");
  object = co_await env->status("skr");
  BOOST_TEST(!object.at("status").as_object().contains("lastError"));
}

RW_COROUTINE_TEST(expired_certificates_and_unknown_fields_are_applied_with_warnings, test_env,
                  quick_options()) {
  co_await one_ready_runtime(env);
  auto text = good_configuration();
  text.insert(1, R"("override": {}, )");
  co_await env->set_source(config_map(text));
  const auto bygone = ca_pem("bygone", 1h, 48h);
  co_await env->set_source(trust_bundle(ca_pem() + bygone));
  co_await env->until("kcp", bootstrapper::runtime_bootstrappers_type(), skr,
                      [](const json::value& object) {
                        const auto* const warnings = k8s::find(object, {"status", "warnings"});
                        return warnings != nullptr && warnings->as_array().size() == 2;
                      });
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
}

/// How many objects each kind's watch has been told of at least: all of them began.
asio::awaitable<void> until_watched(test_env* env) {
  co_await soon([&] { return env->metric("rw_bootstrapper_watched_runtimes") == 1; });
}

asio::awaitable<void> repairs(test_env* env) {
  co_await one_ready_runtime(env);
  co_await until_watched(env);
  const auto is_there = [](const json::value& object) { return object.is_object(); };
  // No pass is due for minutes.
  for (const auto& each : objects_of(env->now)) {
    const auto key = k8s::key_of(each.object);
    co_await env->remove("skr", each.type, key);
    co_await env->until("skr", each.type, key, is_there);
  }
  co_await soon(
      [&] { return env->metric("rw_bootstrapper_observed_changes_total{from=\"others\"}") >= 7; });
}

BOOST_AUTO_TEST_CASE(objects_of_the_inventory_are_watched_and_repaired) {
  auto with = quick_options();
  with.resync_period = 10min;
  test_env env(with);
  test::run(env.context, repairs(&env));
}

RW_COROUTINE_TEST(new_manifests_upgrade_and_obsolete_objects_are_removed, test_env,
                  quick_options()) {
  co_await one_ready_runtime(env);
  const std::string extra =
      "---\napiVersion: v1\nkind: ConfigMap\n"
      "metadata: {name: extra, namespace: kyma-system}\n";
  co_await env->set_source(manifests_source(manifests("2.0.0", extra)));
  co_await env->until("skr", deployments, deployment_key, [](const json::value& object) {
    return k8s::label(object, bootstrapper::version_label) == "2.0.0";
  });
  co_await env->until_condition("skr", "RuntimeBootstrapperReady", "False",
                                "RuntimeBootstrapperUpgradeInProgress");
  auto object = co_await env->status("skr");
  BOOST_TEST(k8s::find_string(object, {"status", "installedVersion"}) == "1.0.0");
  co_await env->set_ready("skr");
  co_await env->until_condition("skr", "Ready", "True", "Ready");
  object = co_await env->status("skr");
  BOOST_TEST(k8s::find_string(object, {"status", "installedVersion"}) == "2.0.0");
  co_await env->set_source(manifests_source(manifests("2.0.1")));
  co_await env->until("skr", config_maps_type(), {"kyma-system", "extra"}, is_gone);
}

RW_COROUTINE_TEST(suspended_runtime_is_not_written_to, test_env, quick_options()) {
  co_await one_ready_runtime(env);
  co_await env->change("skr", {{"suspend", true}});
  co_await env->until_state("skr", "Suspended");
  const auto before = env->asked["skr"].writes;
  co_await env->set_source(pull_secret("unseen"));
  env->reactor->requeue(skr);
  const auto passes =
      "controller_runtime_reconcile_total{controller=\"runtime-bootstrapper\","
      "result=\"success\"}";
  const auto seen = env->metric(passes);
  co_await soon([&] { return env->metric(passes) > seen; });
  BOOST_TEST(env->asked["skr"].writes == before);
  co_await env->change("skr", {{"suspend", false}});
  co_await env->until("skr", secrets_type(), credentials, has_data(pull_secret("unseen")));
}

/// As Kyma Infrastructure Manager does.
asio::awaitable<void> write_credentials(test_env* env, json::value of) {
  json::value secret{{"apiVersion", "v1"},
                     {"kind", "Secret"},
                     {"metadata", {{"name", credentials.name}, {"namespace", credentials.ns}}},
                     {"type", bootstrapper::pull_secret_type},
                     {"data", of.at("data")}};
  co_await env->must(env->api("skr").apply(secrets_type(), std::move(secret),
                                           {.field_manager = "kim-bootstrapper", .force = true}));
}

/// They are brought while no manager runs, and their source is gone at its return.
asio::awaitable<void> bring_unseen_credentials(test_env* env) {
  co_await one_ready_runtime(env);
  co_await env->stop();
  co_await write_credentials(env, pull_secret("unseen"));
  co_await env->remove_source(secrets_type(), "registry-credentials");
  co_await env->restart();
  co_await env->until_condition("skr", "Ready", "False", "ContentLost");
}

/// They are newer than what is stored, and may be the only ones that are still valid.
RW_COROUTINE_TEST(credentials_of_kim_stay_while_their_source_is_missing, test_env,
                  quick_options()) {
  co_await bring_unseen_credentials(env);
  co_await env->until_condition("skr", "Compatible", "False", "SourceMissing");
  co_await env->until("skr", secrets_type(), credentials, has_data(pull_secret("unseen")));
  const auto object = co_await env->status("skr");
  const auto& unit = object.at("status").at("units").at(0).as_object();
  BOOST_TEST(unit.at("name").as_string() == "credentials");
  BOOST_TEST(!unit.contains("digest"));
  // A tenant's are drift, as ever.
  co_await env->must(env->api("skr").remove(secrets_type(), credentials));
  co_await env->until("skr", secrets_type(), credentials, has_data(pull_secret()));
  co_await env->until_condition("skr", "Ready", "True", "Ready");
}

/// It copies whatever the source has.
RW_COROUTINE_TEST(broken_credentials_of_kim_give_way_to_the_last_valid_ones, test_env,
                  quick_options()) {
  co_await one_ready_runtime(env);
  co_await env->stop();
  auto broken = pull_secret();
  k8s::set_secret_data(broken, bootstrapper::pull_secret_key, "{}");
  co_await write_credentials(env, broken);
  co_await env->set_source(broken);
  co_await env->restart();
  co_await env->until_condition("skr", "Compatible", "False", "Invalid");
  co_await env->until("skr", secrets_type(), credentials, has_data(pull_secret()));
}

/// They may be newer than what is stored, and are not undone by what the runtime does not take.
RW_COROUTINE_TEST(credentials_of_kim_stay_where_the_runtime_rejects_the_newest, test_env,
                  quick_options()) {
  co_await one_ready_runtime(env);
  co_await env->stop();
  co_await write_credentials(env, pull_secret("unseen"));
  co_await env->set_source(pull_secret("newest"));
  env->on_request = [rejected = false](const std::string& cluster, const std::string& verb,
                                       const std::string& path) mutable {
    const bool rejects =
        !rejected && cluster == "skr" && verb == "patch" && path.find("/secrets/") != path.npos;
    rejected = rejected || rejects;
    return k8s::devserver::fault{.status = rejects ? 422U : 0U};
  };
  co_await env->restart();
  co_await env->until_condition("skr", "Compatible", "False", "RejectedByRuntime");
  co_await env->until("skr", secrets_type(), credentials, has_data(pull_secret("unseen")));
  const auto object = co_await env->status("skr");
  BOOST_TEST(!object.at("status").at("units").at(0).as_object().contains("digest"));
}

RW_COROUTINE_TEST(credentials_of_kim_give_way_to_a_source_that_is_back, test_env, quick_options()) {
  co_await bring_unseen_credentials(env);
  const auto back = pull_secret("back");
  co_await env->set_source(back);
  co_await env->until("skr", secrets_type(), credentials, has_data(back));
  co_await env->until_condition("skr", "Ready", "True", "Ready");
}

RW_COROUTINE_TEST(deleted_source_is_reported_and_kept_until_it_is_not_referred_to, test_env,
                  quick_options()) {
  co_await one_ready_runtime(env);
  co_await env->remove_source(secrets_type(), "registry-credentials");
  co_await env->until_condition("skr", "Compatible", "False", "SourceMissing");
  co_await env->until_event("skr", "SourceMissing", "Secret kcp-system/registry-credentials");
  const auto object = co_await env->status("skr");
  const auto& warnings = object.at("status").at("warnings").as_array();
  BOOST_REQUIRE(warnings.size() == 1U);
  BOOST_TEST(warnings.at(0).as_string() ==
             "Secret kcp-system/registry-credentials does not exist; its last valid content stays");
  for (const auto* const type : {"ConfigurationSynced", "Ready"}) {
    BOOST_TEST(k8s::find_condition(object, type)->status == "True", type);
  }
  co_await env->until("skr", secrets_type(), credentials, has_data(pull_secret()));
  co_await env->change("skr", {{"pullSecretRef", nullptr}});
  co_await env->until("skr", secrets_type(), credentials, is_gone);
  co_await env->until_condition("skr", "Compatible", "True", "Validated");
}

RW_COROUTINE_TEST(deleting_the_resource_undeploys, test_env, quick_options()) {
  co_await one_ready_runtime(env);
  co_await env->remove("kcp", bootstrapper::runtime_bootstrappers_type(), skr);
  co_await env->until("kcp", bootstrapper::runtime_bootstrappers_type(), skr, is_gone);
  for (const auto& each : objects_of(env->now)) {
    const auto got = co_await env->api("skr").get(each.type, k8s::key_of(each.object));
    BOOST_TEST(got.has_error(), each.type.gvk.kind);
  }
}

asio::awaitable<void> define_widgets(test_env* env, std::string runtime) {
  const json::value definition = json::parse(R"({
      "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
      "metadata": {"name": "widgets.example.com"},
      "spec": {"group": "example.com", "scope": "Namespaced",
               "names": {"kind": "Widget", "plural": "widgets"},
               "versions": [{"name": "v1", "served": true, "storage": true,
                             "schema": {"openAPIV3Schema": {"type": "object"}}}]}})");
  co_await env->create(runtime, definition, test::definitions);
}

const std::string widget =
    "---\napiVersion: example.com/v1\nkind: Widget\n"
    "metadata: {name: one, namespace: kyma-system}\n";

direct_sync_options collecting() {
  auto with = quick_options();
  with.resync_period = 200ms;
  return with;
}

RW_COROUTINE_TEST(runtime_that_rejects_new_manifests_keeps_its_newest_configuration, test_env,
                  collecting()) {
  co_await env->begin();
  for (const auto* name : {"rich", "poor"}) {
    co_await env->add_runtime(name);
    co_await env->add_bootstrapper(name);
  }
  co_await define_widgets(env, "rich");
  for (const auto* name : {"rich", "poor"}) {
    co_await env->until_condition(name, "ConfigurationSynced", "True", "Synced");
  }
  // The configuration changes first, then the manifests, which only one of the runtimes takes.
  auto text = good_configuration();
  text.insert(1, R"("later": true, )");
  const auto configured = config_map(text);
  co_await env->set_source(configured);
  for (const auto* name : {"rich", "poor"}) {
    co_await env->until(name, config_maps_type(), settings, has_data(configured));
    co_await env->until_condition(name, "ConfigurationSynced", "True", "Synced");
  }
  co_await env->set_source(manifests_source(manifests("1.0.0", widget)));
  co_await env->until_condition("poor", "ConfigurationSynced", "False", "LastGoodKept");
  const k8s::resource_type widgets{{"example.com", "v1", "Widget"}, "widgets", true};
  co_await env->until("rich", widgets, {"kyma-system", "one"}, is_there);
  co_await env->until_condition("rich", "ConfigurationSynced", "True", "Synced");
  // What the one has is not among the newest contents of the sources, nor those before.
  co_await env->set_source(manifests_source(manifests("1.0.1", widget)));
  co_await env->until("rich", deployments, deployment_key, [](const json::value& object) {
    return k8s::label(object, bootstrapper::version_label) == "1.0.1";
  });
  co_await env->until_condition("rich", "ConfigurationSynced", "True", "Synced");
  co_await env->until_condition("poor", "ConfigurationSynced", "False", "LastGoodKept");
  co_await until_collected(env, 3);
  co_await env->restart();
  co_await env->remove("poor", config_maps_type(), settings);
  co_await env->until("poor", config_maps_type(), settings, is_there);
  co_await env->until_condition("poor", "ConfigurationSynced", "False", "LastGoodKept");
  const auto kept = co_await env->api("poor").get(config_maps_type(), settings);
  BOOST_REQUIRE(kept.has_value());
  BOOST_TEST(has_data(configured)(*kept));
  const auto deployment = co_await env->api("poor").get(deployments, deployment_key);
  BOOST_REQUIRE(deployment.has_value());
  BOOST_TEST(k8s::label(*deployment, bootstrapper::version_label) == "1.0.0");
}

/// What made it reject the newest content may be gone with the change.
RW_COROUTINE_TEST(change_on_a_runtime_ends_its_rejection, test_env, quick_options()) {
  co_await one_ready_runtime(env);
  json::value change{{"immutable", true}};
  co_await env->must(env->api("skr").patch(secrets_type(), credentials, k8s::patch_type::merge,
                                           std::move(change)));
  const auto rotated = pull_secret("rotated");
  co_await env->set_source(rotated);
  co_await env->until_condition("skr", "Compatible", "False", "RejectedByRuntime");
  co_await env->must(env->api("skr").remove(secrets_type(), credentials));
  co_await env->until("skr", secrets_type(), credentials, has_data(rotated));
  co_await env->until_condition("skr", "Compatible", "True", "Validated");
}

/// The same of a change that no watch sees, since the runtime is cut off.
RW_COROUTINE_TEST(change_that_is_not_seen_ends_a_rejection, test_env, quick_options()) {
  co_await one_ready_runtime(env);
  auto frozen = co_await env->must(env->api("skr").get(secrets_type(), credentials));
  frozen.as_object()["immutable"] = true;
  frozen.as_object()["data"] = pull_secret("of a tenant").at("data");
  bool cut = false;
  int writes = 0;
  env->on_request = [&](const std::string& cluster, const std::string& verb,
                        const std::string& path) {
    if (cluster != "skr") return k8s::devserver::fault();
    const bool writes_it = verb == "patch" && path.ends_with("/" + credentials.name);
    if (writes_it && ++writes == 2) cut = true;  // the dry run is one
    // The test alone updates and deletes there.
    return k8s::devserver::fault{.drop = cut && verb != "update" && verb != "delete"};
  };
  const auto rotated = pull_secret("rotated");
  co_await env->set_source(rotated);
  co_await env->until_condition("skr", "Ready", "Unknown", "RuntimeUnreachable");
  co_await env->must(env->api("skr").update(secrets_type(), std::move(frozen)));
  cut = false;
  co_await env->until_condition("skr", "Compatible", "False", "RejectedByRuntime");
  cut = true;
  env->server.drop_connections();
  co_await env->until_condition("skr", "Ready", "Unknown", "RuntimeUnreachable");
  co_await env->must(env->api("skr").remove(secrets_type(), credentials));
  cut = false;
  co_await env->until("skr", secrets_type(), credentials, has_data(rotated));
  co_await env->until_condition("skr", "Compatible", "True", "Validated");
  env->on_request = {};
}

/// The same where there is nothing to fall back to: the stored contents are lost.
RW_COROUTINE_TEST(change_on_a_runtime_ends_its_rejection_without_stored_contents, test_env,
                  quick_options()) {
  co_await one_ready_runtime(env);
  json::value change{{"immutable", true}};
  co_await env->must(env->api("skr").patch(secrets_type(), credentials, k8s::patch_type::merge,
                                           std::move(change)));
  co_await env->stop();
  const std::string ns = quick_options().state_namespace;
  const auto stored = co_await env->api("kcp").list(secrets_type(), {.ns = ns});
  BOOST_REQUIRE(stored.has_value());
  BOOST_TEST(!stored->at("items").as_array().empty());
  for (const auto& each : stored->at("items").as_array()) {
    co_await env->remove("kcp", secrets_type(), k8s::key_of(each));
  }
  const auto rotated = pull_secret("rotated");
  co_await env->set_source(rotated);
  bool watched = false;
  env->on_request = [&](const std::string& cluster, const std::string& verb,
                        const std::string& path) {
    watched = watched || (cluster == "skr" && verb == "watch" && path.ends_with("/secrets"));
    return k8s::devserver::fault();
  };
  co_await env->restart();
  co_await env->until_condition("skr", "Compatible", "False", "RejectedByRuntime");
  co_await soon([&] { return watched; });
  co_await env->must(env->api("skr").remove(secrets_type(), credentials));
  co_await env->until("skr", secrets_type(), credentials, has_data(rotated));
  co_await env->until_condition("skr", "Compatible", "True", "Validated");
}

/// Thousands may wait for the first ones, and nothing is on its way there.
RW_COROUTINE_TEST(runtime_without_a_deployment_that_waits_for_its_turn_is_left_alone, test_env,
                  quick_options()) {
  static gate_by_hand gate;
  env->gate = &gate;
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->add_bootstrapper("skr");
  co_await env->until_condition("skr", "ConfigurationSynced", "False", "WaitingForRollout");
  auto last = env->clock.now();
  env->on_request = [&](const std::string& cluster, const std::string&, const std::string&) {
    if (cluster == "skr") last = env->clock.now();
    return k8s::devserver::fault();
  };
  co_await soon([&] { return env->clock.now() - last >= 1s; });
  env->on_request = {};
}

RW_COROUTINE_TEST(kind_that_is_defined_later_is_found_soon, test_env, quick_options()) {
  env->now.at(source_kind::manifests).object = manifests_source(manifests("1.0.0", widget));
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->add_bootstrapper("skr");
  co_await env->until_condition("skr", "Compatible", "False", "UnknownKind");
  co_await define_widgets(env, "skr");
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
}

RW_COROUTINE_TEST(manifests_of_another_config_map_need_a_label, test_env, quick_options()) {
  co_await env->begin();
  auto source = manifests_source(manifests("3.0.0"));
  source.at("metadata").as_object()["name"] = "own";
  co_await env->set_source(source);
  co_await env->add_runtime("skr");
  co_await env->add_bootstrapper("skr", {{"manifests", {{"configMapRef", {{"name", "own"}}}}}});
  co_await env->until_condition("skr", "Compatible", "False", "Invalid");
  const auto object = co_await env->status("skr");
  BOOST_TEST(k8s::find_string(object, {"status", "lastError"}) ==
             "ConfigMap kcp-system/own: needs the label "
             "operator.kyma-project.io/bootstrapper-manifests=true");
  co_await env->until("skr", deployments, deployment_key, is_gone);
  k8s::set_label(source, bootstrapper::manifests_label, "true");
  co_await env->set_source(source);
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
}

/// A configuration that needs no pull Secret.
json::value needs_no_secret() {
  auto text = good_configuration();
  const std::string feature = R"(,
    "rt-cfg.kyma-project.io/add-img-pull-secret")";
  text.erase(text.find(feature), feature.size());
  return config_map(text);
}

direct_sync_options removing(std::chrono::milliseconds delay) {
  auto with = quick_options();
  with.removal = {.enabled = true, .delay = delay};
  return with;
}

bool is_still_used(const json::value& object) {
  const auto found = k8s::find_condition(object, "Compatible");
  return found && found->message.ends_with("as the configuration of the runtime refers to it");
}

RW_COROUTINE_TEST(deleted_pull_secret_is_removed_where_no_configuration_refers_to_it, test_env,
                  removing(0s)) {
  co_await one_ready_runtime(env);
  co_await env->remove_source(secrets_type(), "registry-credentials");
  co_await env->until_resource("skr", is_still_used);
  co_await env->until("skr", secrets_type(), credentials, has_data(pull_secret()));
  const auto config = needs_no_secret();
  co_await env->set_source(config);
  co_await env->until("skr", secrets_type(), credentials, is_gone);
  co_await env->until("skr", config_maps_type(), settings, has_data(config));
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
  const auto back = pull_secret("new");
  co_await env->set_source(back);
  co_await env->until("skr", secrets_type(), credentials, has_data(back));
  co_await env->until_condition("skr", "Compatible", "True", "Validated");
}

RW_COROUTINE_TEST(deleted_trust_bundle_is_removed_where_no_configuration_refers_to_it, test_env,
                  removing(0s)) {
  co_await one_ready_runtime(env);
  co_await env->remove_source(bundles, bundle_name);
  co_await env->until_resource("skr", is_still_used);
  co_await env->until("skr", bundles, {{}, bundle_name}, is_there);
  const auto config = config_map(R"({"overrides": {}})");
  co_await env->set_source(config);
  co_await env->until("skr", bundles, {{}, bundle_name}, is_gone);
  co_await env->until_condition("skr", "ConfigurationSynced", "True", "Synced");
}

/// Since when the pull Secret is missing, as it is stored.
asio::awaitable<std::string> missing_since(test_env* env) {
  const auto list =
      co_await env->must(env->api("kcp").list(secrets_type(), {.ns = "runtime-watcher-system"}));
  std::string out;
  for (const auto& each : list.at("items").as_array()) {
    out += k8s::annotation(each, "operator.kyma-project.io/source-missing-since");
  }
  co_return out;
}

RW_COROUTINE_TEST(removal_of_a_deleted_source_waits_across_restarts, test_env, removing(1h)) {
  co_await one_ready_runtime(env);
  const auto config = needs_no_secret();
  co_await env->set_source(config);
  co_await env->until("skr", config_maps_type(), settings, has_data(config));
  co_await env->remove_source(secrets_type(), "registry-credentials");
  co_await env->until_event("skr", "SourceMissing", "is removed from the runtime after ");
  const auto since = co_await missing_since(env);
  BOOST_TEST(!since.empty());
  co_await env->restart();
  co_await env->annotate_runtime("skr", "other", "1");
  const auto config_again = config_map(good_configuration());
  co_await env->set_source(config_again);
  co_await env->until("skr", config_maps_type(), settings, has_data(config_again));
  auto now = co_await missing_since(env);
  BOOST_TEST(now == since);
  co_await env->until("skr", secrets_type(), credentials, has_data(pull_secret()));
  co_await env->set_source(pull_secret());
  co_await env->until_condition("skr", "Compatible", "True", "Validated");
  now = co_await missing_since(env);
  BOOST_TEST(now.empty());
}

asio::awaitable<void> collects_contents(test_env* env) {
  co_await one_ready_runtime(env);
  std::size_t left = co_await stored(env);
  BOOST_TEST(left == 4U);
  co_await env->change("skr", {{"pullSecretRef", nullptr}});
  co_await env->remove_source(secrets_type(), "registry-credentials");
  const auto end = std::chrono::steady_clock::now() + test::patience / 2;
  while (left != 3 && std::chrono::steady_clock::now() < end) left = co_await stored(env);
  BOOST_TEST(left == 3U);
  // What is referred to stays, whether it exists or not.
  co_await env->remove_source(config_maps_type(), "rt-bootstrapper-config");
  co_await until_collected(env, 3);
  left = co_await stored(env);
  BOOST_TEST(left == 3U);
}

BOOST_AUTO_TEST_CASE(stored_contents_of_sources_that_nothing_refers_to_are_deleted) {
  test_env env(collecting());
  test::run(env.context, collects_contents(&env));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
