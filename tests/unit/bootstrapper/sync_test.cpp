// One pass over a runtime: install, change, repair, ownership, rejection, removal.

#include "rw/k8s/objects/manifests.hpp"
#include "rw/reactors/shared/field_owners.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/sync_env.hpp"
#include "tests/unit/run.hpp"
#include <algorithm>
#include <string>
#include <vector>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(sync)

using bootstrapper::rejection;
using bootstrapper::render_input;
using bootstrapper::unit;

namespace {

const std::string deployment = "rt-bootstrapper-controller-manager";
const k8s::object_key config_key{"kyma-system", "rt-bootstrapper-config"};

struct samples {
  std::string pem = ca_pem();
  render_input first = good_sources(pem);
};

render_input with_secret(render_input from, const std::string& password) {
  from.at(source_kind::pull_secret).object = pull_secret(password);
  return from;
}

render_input with_manifests(render_input from, const std::string& version,
                            const std::string& more = {}) {
  from.at(source_kind::manifests).object = manifests_source(manifests(version, more));
  return from;
}

std::string config_map_text(const std::string& name, const std::string& data = "{}") {
  return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name +
         ", namespace: kyma-system}\ndata: " + data + "\n";
}

std::vector<std::string> managers(const json::value& object) {
  std::vector<std::string> out;
  for (const auto& each : object.at("metadata").at("managedFields").as_array()) {
    out.emplace_back(each.at("manager").as_string());
  }
  return out;
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

}  // namespace

RW_COROUTINE_TEST(sync_costs_reads_only_when_nothing_differs, sync_env) {
  samples all;
  co_await env->add("skr", true);
  auto report = co_await env->must_sync("skr", {all.first});
  for (const auto of : bootstrapper::all_units) {
    BOOST_TEST(!report.at(of).rejected.has_value());
    BOOST_TEST(report.at(of).applied == rendered(of, all.first).digest);
  }
  BOOST_TEST(report.at(unit::bootstrapper).version == "1.0.0");
  BOOST_TEST(report.objects.size() == 7U);
  BOOST_TEST(report.deployment.is_object());
  const bool good = co_await env->has_all("skr", all.first, all.first);
  BOOST_TEST(good);
  env->faults["skr"] = {};
  report = co_await env->must_sync("skr", {all.first});
  BOOST_TEST(report.writes == 0U);
  BOOST_TEST(env->faults["skr"].seen == 0);
  BOOST_TEST(report.left.watches.size() == 7U);
  const auto secret = co_await env->get("skr", "Secret", "registry-credentials");
  BOOST_TEST(k8s::find_string(secret, {"type"}) == bootstrapper::pull_secret_type);
}

RW_COROUTINE_TEST(rotated_credentials_cost_one_write_and_its_record, sync_env) {
  samples all;
  co_await env->add_synced("skr", all.first);
  BOOST_TEST(env->recorded == 2);  // one for each unit
  env->faults["skr"] = {};
  const auto second = with_secret(all.first, "rotated");
  const auto report = co_await env->must_sync("skr", {second});
  BOOST_TEST(report.writes == 1U);
  BOOST_TEST(env->faults["skr"].seen == 2);  // with the dry run
  BOOST_TEST(env->recorded == 3);
  const bool good = co_await env->has_all("skr", second, second);
  BOOST_TEST(good);
}

RW_COROUTINE_TEST(credentials_are_written_before_the_bootstrapper, sync_env) {
  samples all;
  co_await env->add_synced("skr", all.first);
  env->faults["skr"] = {};
  co_await env->must_sync("skr", {with_secret(with_manifests(all.first, "2.0.0"), "rotated")});
  const auto& paths = env->faults["skr"].paths;
  BOOST_TEST_REQUIRE(paths.size() == 4U);
  for (std::size_t i = 0; i < 2; ++i) BOOST_TEST(paths[i].find("/secrets/") != paths[i].npos);
}

RW_COROUTINE_TEST(dry_run_rejects_a_unit_and_the_other_goes_on, sync_env) {
  samples all;
  co_await env->add_synced("skr", all.first);
  // Valid as far as can be told here; the API server knows better.
  const auto second = with_secret(with_manifests(all.first, "2.0.0", R"(---
apiVersion: apps/v1
kind: Deployment
metadata: {name: broken, namespace: kyma-system}
spec: {replicas: many}
)"),
                                  "rotated");
  const auto report = co_await env->must_sync("skr", {second, all.first});
  const auto& rejected = report.at(unit::bootstrapper).rejected;
  BOOST_TEST_REQUIRE(rejected.has_value());
  BOOST_TEST((rejected->cause == rejection::reason::rejected_by_runtime));
  BOOST_TEST(rejected->message.find("Deployment kyma-system/broken") != std::string::npos);
  BOOST_TEST(!report.at(unit::bootstrapper).changed);
  BOOST_TEST(report.at(unit::bootstrapper).applied ==
             rendered(unit::bootstrapper, all.first).digest);
  bool good = co_await env->has("skr", unit::bootstrapper, all.first, all.first);
  BOOST_TEST(good);
  // The other unit goes on.
  good = co_await env->has("skr", unit::credentials, second, second);
  BOOST_TEST(good);
}

RW_COROUTINE_TEST(unknown_kind_is_rejected_unless_the_manifests_define_it, sync_env) {
  samples all;
  co_await env->add("skr");
  const std::string widget =
      "---\napiVersion: example.com/v1\nkind: Widget\n"
      "metadata: {name: one, namespace: kyma-system}\n";
  auto report = co_await env->must_sync("skr", {with_manifests(all.first, "1.0.0", widget)});
  const auto& rejected = report.at(unit::bootstrapper).rejected;
  BOOST_TEST_REQUIRE(rejected.has_value());
  BOOST_TEST((rejected->cause == rejection::reason::unknown_kind));
  BOOST_TEST(rejected->message ==
             "the runtime does not serve the kind Widget of example.com/v1 (one)");
  BOOST_TEST(!report.at(unit::bootstrapper).changed);
  // It does if the manifests define it.
  const auto defining = with_manifests(all.first, "1.0.0", widget + R"(---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object}}
)");
  report = co_await env->must_sync("skr", {defining});
  BOOST_TEST(!report.at(unit::bootstrapper).rejected.has_value());
  BOOST_TEST_REQUIRE(report.at(unit::bootstrapper).warnings.size() == 1U);
  BOOST_TEST(report.at(unit::bootstrapper).warnings[0].find("could not be dry-run") !=
             std::string::npos);
  BOOST_TEST(report.objects.size() == 9U);
}

RW_COROUTINE_TEST(drift_is_repaired_and_named, sync_env) {
  samples all;
  co_await env->add_synced("skr", all.first);
  json::value change{{"data", {{bootstrapper::configuration_key, "{}"}}}};
  co_await env->must(
      env->api("skr")->patch(config_maps_type(), config_key, k8s::patch_type::merge, change));
  co_await env->must(
      env->api("skr")->remove(secrets_type(), {"kyma-system", "registry-credentials"}));
  const auto report = co_await env->must_sync("skr", {all.first});
  BOOST_TEST(report.at(unit::credentials).differences.at(0) ==
             "Secret kyma-system/registry-credentials is missing");
  BOOST_TEST(report.at(unit::bootstrapper).differences.at(0) ==
             "ConfigMap kyma-system/rt-bootstrapper-config: data.rt-bootstrapper-config.json");
  for (const auto& each : report.units) BOOST_TEST(each.repaired);
  const bool good = co_await env->has_all("skr", all.first, all.first);
  BOOST_TEST(good);
}

RW_COROUTINE_TEST(repair_that_fails_names_what_may_be_half_there, sync_env) {
  samples all;
  co_await env->add_synced("skr", all.first);
  const auto in_place = env->states["skr"].at(unit::credentials).in_place;
  co_await env->must(
      env->api("skr")->remove(secrets_type(), {"kyma-system", "registry-credentials"}));
  int writes = 0;
  env->on_request = [&](const std::string&, const std::string& verb, const std::string& path) {
    const bool fails = verb == "patch" && path.find("/secrets/") != path.npos && ++writes == 2;
    return k8s::devserver::fault{.status = fails ? 500U : 0U};
  };
  const auto report = co_await env->must_sync("skr", {all.first});
  env->on_request = {};
  const auto& of = report.at(unit::credentials);
  BOOST_TEST(writes == 2);  // the dry run is one
  BOOST_TEST(of.failed.has_value());
  BOOST_TEST(of.applied == "");
  BOOST_TEST(of.applying == in_place);
  BOOST_TEST((of.applying_contents == of.contents));
}

RW_COROUTINE_TEST(objects_of_kim_are_taken_over_with_the_fields_of_the_revision_only, sync_env) {
  samples all;
  co_await env->add("skr");
  co_await env->install_as_kim("skr", all.first);
  // A field of KIM's that no revision has stays KIM's.
  json::value more{{"apiVersion", "v1"},
                   {"kind", "ConfigMap"},
                   {"metadata", {{"name", config_key.name}, {"namespace", config_key.ns}}},
                   {"data", {{"of-kim", "x"}}}};
  co_await env->must(env->api("skr")->apply(
      config_maps_type(), more, {.field_manager = "infrastructure-manager", .force = true}));
  const auto before = co_await env->get("skr", "Deployment", deployment);
  const auto report = co_await env->must_sync("skr", {all.first});
  for (const auto& each : report.units) {
    BOOST_TEST((each.rejected ? each.rejected->message : "") == "");
    BOOST_TEST(each.differences.empty());
  }
  const auto after = co_await env->get("skr", "Deployment", deployment);
  BOOST_TEST(k8s::generation_of(before) == k8s::generation_of(after));
  BOOST_TEST(json::serialize(before.at("spec")) == json::serialize(after.at("spec")));
  const auto config = co_await env->get("skr", "ConfigMap", config_key.name);
  BOOST_TEST(contains(managers(config), "infrastructure-manager"));
  const auto secret = co_await env->get("skr", "Secret", "registry-credentials");
  for (const auto& each : {after, secret, config}) {
    BOOST_TEST(contains(managers(each), "runtime-watcher-bootstrapper"));
    BOOST_TEST(!contains(managers(each), "kim-bootstrapper"));
  }
  // So that a field which a later revision lacks goes, though it was KIM that brought it.
  auto second = all.first;
  auto& data = second.at(source_kind::config).object.at("data").as_object();
  data["more"] = "x";
  co_await env->must_sync("skr", {second});
  co_await env->must_sync("skr", {all.first});
  const auto last = co_await env->get("skr", "ConfigMap", config_key.name);
  BOOST_TEST(!last.at("data").as_object().contains("more"));
  BOOST_TEST(last.at("data").as_object().contains("of-kim"));
}

RW_COROUTINE_TEST(foreign_object_is_rejected_unless_it_is_to_be_adopted, sync_env) {
  samples all;
  co_await env->add("skr");
  json::value foreign{{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", {{"name", "theirs"}, {"namespace", "kyma-system"}}},
                      {"data", {{"a", "theirs"}}}};
  co_await env->must(
      env->api("skr")->create(config_maps_type(), foreign, {.field_manager = "them"}));
  const auto from = with_manifests(all.first, "1.0.0", config_map_text("theirs", "{a: ours}"));
  auto report = co_await env->must_sync("skr", {from});
  const auto& rejected = report.at(unit::bootstrapper).rejected;
  BOOST_TEST_REQUIRE(rejected.has_value());
  BOOST_TEST((rejected->cause == rejection::reason::foreign_object));
  BOOST_TEST(rejected->message.find("ConfigMap kyma-system/theirs is managed by them") == 0U);
  BOOST_TEST(!report.at(unit::bootstrapper).changed);
  BOOST_TEST(report.at(unit::credentials).changed);
  auto live = co_await env->get("skr", "ConfigMap", "theirs");
  BOOST_TEST(k8s::find_string(live, {"data", "a"}) == "theirs");
  // Undeploying leaves it alone.
  const auto gone = co_await bootstrapper::undeploy(env->api("skr"), &env->options,
                                                    env->states["skr"].objects, {});
  BOOST_REQUIRE(gone.has_value());
  live = co_await env->get("skr", "ConfigMap", "theirs");
  BOOST_TEST(live.is_object());
  env->like.adopt = true;
  env->states["skr"] = {};
  report = co_await env->must_sync("skr", {from});
  BOOST_TEST(!report.at(unit::bootstrapper).rejected.has_value());
  live = co_await env->get("skr", "ConfigMap", "theirs");
  BOOST_TEST(k8s::find_string(live, {"data", "a"}) == "ours");
}

RW_COROUTINE_TEST(obsolete_objects_are_removed_but_no_namespaces, sync_env) {
  samples all;
  co_await env->add("skr");
  const auto former = with_manifests(
      all.first, "1.0.0",
      config_map_text("old") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: kept}\n");
  co_await env->must_sync("skr", {former});
  auto report = co_await env->must_sync("skr", {all.first});
  BOOST_TEST(
      contains(report.at(unit::bootstrapper).differences, "ConfigMap kyma-system/old is obsolete"));
  const auto old = co_await env->get("skr", "ConfigMap", "old");
  BOOST_TEST(old.is_null());
  co_await env->must(env->api("skr")->get(namespaces_type(), {{}, "kept"}));
  BOOST_TEST(report.objects.size() == 7U);
  auto renamed = all.first;
  renamed.to.pull_secret = "renamed";
  co_await env->must_sync("skr", {renamed});
  const auto live_1 = co_await env->get("skr", "Secret", "registry-credentials");
  BOOST_TEST(live_1.is_null());
  const auto live_2 = co_await env->get("skr", "Secret", "renamed");
  BOOST_TEST(live_2.is_object());
  // A unit without valid revisions is left as it is.
  auto broken = all.first;
  broken.at(source_kind::pull_secret).object = nullptr;
  report = co_await env->must_sync("skr", {broken});
  const auto live_3 = co_await env->get("skr", "Secret", "renamed");
  BOOST_TEST(live_3.is_object());
  BOOST_TEST(report.objects.size() == 7U);
  broken.at(source_kind::pull_secret).name.clear();
  co_await env->must_sync("skr", {broken});
  const auto live_4 = co_await env->get("skr", "Secret", "renamed");
  BOOST_TEST(live_4.is_null());
}

RW_COROUTINE_TEST(undeploying_removes_managed_objects_only, sync_env) {
  samples all;
  co_await env->add_synced("skr", all.first);
  // Another actor makes one of the objects again: it is foreign now.
  const auto services = *k8s::well_known_type("v1", "Service");
  const k8s::object_key key{"kyma-system", "rt-bootstrapper-webhook-service"};
  co_await env->must(env->api("skr")->remove(services, key));
  json::value object{{"apiVersion", "v1"},
                     {"kind", "Service"},
                     {"metadata", {{"name", key.name}, {"namespace", key.ns}}},
                     {"spec", {{"ports", json::array{{{"port", 1}}}}}}};
  co_await env->must(env->api("skr")->create(services, object, {.field_manager = "them"}));
  auto gone = co_await bootstrapper::undeploy(env->api("skr"), &env->options,
                                              env->states["skr"].objects, {});
  BOOST_REQUIRE_MESSAGE(gone.has_value(), gone.error().message);
  for (const auto& each : objects_of(all.first)) {
    const auto got = co_await env->api("skr")->get(each.type, k8s::key_of(each.object));
    BOOST_TEST(got.has_value() == (each.type.gvk.kind == "Service"), each.type.gvk.kind);
  }
  gone = co_await bootstrapper::undeploy(env->api("skr"), &env->options, env->states["skr"].objects,
                                         {});
  BOOST_REQUIRE(gone.has_value());
  BOOST_TEST(*gone == 0U);
}

RW_COROUTINE_TEST(preview_does_dry_runs_and_writes_nothing, sync_env) {
  samples all;
  co_await env->add("skr");
  env->like.write = false;
  const auto broken = with_manifests(all.first, "2.0.0", R"(---
apiVersion: apps/v1
kind: Deployment
metadata: {name: broken, namespace: kyma-system}
spec: {replicas: many}
)");
  auto report = co_await env->must_sync("skr", {broken});
  BOOST_TEST(report.at(unit::bootstrapper).rejected.has_value());
  BOOST_TEST(report.at(unit::credentials).differences.size() == 1U);
  BOOST_TEST(report.writes == 0U);
  for (const auto& each : objects_of(all.first)) {
    const auto got = co_await env->api("skr")->get(each.type, k8s::key_of(each.object));
    BOOST_TEST(got.has_error(), each.type.gvk.kind);
  }
}

RW_COROUTINE_TEST(sync_ends_when_the_runtime_must_no_longer_be_written_to, sync_env) {
  samples all;
  co_await env->add("skr");
  int left = 3;
  env->like.may_write = [&left] { return left-- > 0; };
  const auto stopped = co_await env->sync("skr", {all.first});
  BOOST_TEST(stopped.has_error());
  BOOST_TEST(stopped.error().is(k8s::errc::fenced));
  const auto late = co_await env->get("skr", "Deployment", deployment);
  BOOST_TEST(late.is_null());
}

/// As where other content has come meanwhile.
RW_COROUTINE_TEST(unit_begins_only_if_it_may_when_it_is_written, sync_env) {
  samples all;
  const auto second = with_manifests(all.first, "2.0.0");
  co_await env->add_synced("skr", all.first);
  const auto recorded = env->recorded;
  int left = 0;
  env->like.may_begin = [&left](unit of, const bootstrapper::revision_ptr&) {
    return of == unit::credentials || left-- > 0;
  };
  const auto is_fenced = [&]() -> asio::awaitable<void> {
    const auto done = co_await env->sync("skr", {second, all.first});
    BOOST_TEST(done.has_error());
    BOOST_TEST(done.error().is(k8s::errc::fenced));
    const bool kept = co_await env->has("skr", unit::bootstrapper, all.first, second);
    BOOST_TEST(kept);
  };
  co_await is_fenced();
  BOOST_TEST(env->recorded == recorded);
  // It may when that is recorded, and no more afterwards.
  left = 1;
  co_await is_fenced();
  BOOST_TEST(env->recorded == recorded + 1);
  BOOST_TEST(!env->states["skr"].at(unit::bootstrapper).applying.empty());
  // It has been recorded before.
  co_await is_fenced();
  BOOST_TEST(env->recorded == recorded + 1);
  left = 2;
  co_await env->must_sync("skr", {second, all.first});
  const bool whole = co_await env->has_all("skr", second, all.first);
  BOOST_TEST(whole);
}

RW_COROUTINE_TEST(objects_of_a_runtime_are_read_up_to_a_bound, sync_env) {
  samples all;
  co_await env->add("skr");
  std::string many;
  for (int i = 0; i < 18; ++i) {
    const auto name = "large-" + std::to_string(i);
    many += config_map_text(name);
    json::value large{{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", {{"name", name}, {"namespace", "kyma-system"}}},
                      {"data", {{"a", std::string(1'000'000, 'x')}}}};
    co_await env->must(env->api("skr")->create(config_maps_type(), std::move(large)));
  }
  const auto report = co_await env->must_sync("skr", {with_manifests(all.first, "1.0.0", many)});
  const auto& rejected = report.at(unit::bootstrapper).rejected;
  BOOST_TEST_REQUIRE(rejected.has_value());
  BOOST_TEST(rejected->message.find("have more than 16777216 bytes") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(fields_are_subtracted_leaf_by_leaf) {
  const auto fields = json::parse(
      R"({"f:data": {".": {}, "f:a": {}, "f:b": {}}, "f:metadata": {"f:labels": {"f:x": {}}}})");
  const auto owned =
      json::parse(R"({"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:x": {}}}})");
  BOOST_TEST(
      (rw::subtract_fields(fields, owned) == json::parse(R"({"f:data": {".": {}, "f:b": {}}})")));
  BOOST_TEST(rw::subtract_fields(fields, fields).is_null());
  const auto both = json::parse(R"({"f:data": {"f:a": {}, "f:b": {}}, "f:metadata": {}})");
  BOOST_TEST((rw::subtract_fields(fields, both) ==
              json::parse(R"({"f:metadata": {"f:labels": {"f:x": {}}}})")));
}

RW_COROUTINE_TEST(kim_overwrites_what_was_applied_here, sync_env) {
  samples all;
  co_await env->add_synced("skr", all.first);
  // Back in mode signal: KIM writes a newer content over it, and is not hindered.
  json::value secret{{"apiVersion", "v1"},
                     {"kind", "Secret"},
                     {"metadata", {{"name", "registry-credentials"}, {"namespace", "kyma-system"}}},
                     {"type", bootstrapper::pull_secret_type},
                     {"data", pull_secret("newer").at("data")}};
  co_await env->must(env->api("skr")->apply(secrets_type(), secret,
                                            {.field_manager = "kim-bootstrapper", .force = true}));
  json::value image = json::parse(R"({"apiVersion": "apps/v1", "kind": "Deployment",
      "metadata": {"name": "rt-bootstrapper-controller-manager", "namespace": "kyma-system"},
      "spec": {"template": {"spec": {"containers": [{"name": "manager", "image": "newer"}]}}}})");
  co_await env->must(env->api("skr")->apply(
      test::deployments, image, {.field_manager = "infrastructure-manager", .force = true}));
  const auto live = co_await env->get("skr", "Secret", "registry-credentials");
  BOOST_TEST((live.at("data") == secret.at("data")));
  const auto pods = co_await env->get("skr", "Deployment", deployment);
  const auto& containers = pods.at("spec").at("template").at("spec").at("containers");
  BOOST_TEST(containers.as_array().size() == 1U);
  BOOST_TEST(containers.at(0).at("image").as_string() == "newer");
}

RW_COROUTINE_TEST(object_without_managers_is_foreign_if_it_has_content, sync_env) {
  samples all;
  co_await env->add("skr");
  json::value object{{"apiVersion", "v1"},
                     {"kind", "ConfigMap"},
                     {"metadata", {{"name", config_key.name}, {"namespace", config_key.ns}}},
                     {"data", {{"a", "theirs"}}}};
  co_await env->must(env->api("skr")->create(config_maps_type(), object));
  // A client may reset the field managers (Kubernetes: "Server-Side Apply", clearing them).
  const json::value cleared = json::parse(R"({"metadata": {"managedFields": [{}]}})");
  const auto bare = co_await env->must(
      env->api("skr")->patch(config_maps_type(), config_key, k8s::patch_type::merge, cleared));
  BOOST_TEST(!k8s::find(bare, {"metadata", "managedFields"}));
  const auto report = co_await env->must_sync("skr", {all.first});
  const auto& rejected = report.at(unit::bootstrapper).rejected;
  BOOST_TEST_REQUIRE(rejected.has_value());
  BOOST_TEST((rejected->cause == rejection::reason::foreign_object));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
