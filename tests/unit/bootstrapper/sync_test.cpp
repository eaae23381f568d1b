// A runtime's configuration comes, changes, drifts and goes.

#include "k8s/manifests.hpp"
#include "reactors/bootstrapper/manifest_set.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/runtime.hpp"
#include "tests/unit/run.hpp"
#include <algorithm>
#include <string>
#include <vector>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(sync)

using bootstrapper::sources_of_set;

namespace {

const std::string deployment = "rt-bootstrapper-controller-manager";

struct samples {
  std::string pem = ca_pem();
  sources_of_set first = good_sources(pem);
};

std::vector<std::string> managers(const json::value& object) {
  std::vector<std::string> out;
  for (const auto& one : object.at("metadata").at("managedFields").as_array()) {
    out.emplace_back(one.at("manager").as_string());
  }
  return out;
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

/// As Kyma Infrastructure Manager leaves it: the configuration applied, the manifests updated.
asio::awaitable<void> install_as_kim(runtimes_world* w, std::string runtime,
                                     bootstrapper::known_set set) {
  for (const auto& one : set.items) {
    auto object = one.written("kyma-system");
    object.as_object()["metadata"].as_object().erase("labels");
    if (one.type.gvk.kind == "Deployment") {
      k8s::set_label(object, "app.kubernetes.io/version", "1.0.0");
    }
    const bool of_manifests = one.from == bootstrapper::part::manifests;
    auto done =
        of_manifests
            ? co_await w->api(runtime)->create(one.type, object, {.field_manager = "manager"})
            : co_await w->api(runtime)->apply(one.type, object,
                                              {.field_manager = "kim-bootstrapper", .force = true});
    BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
  }
}

}  // namespace

asio::awaitable<void> settles(runtimes_world* w, samples all) {
  co_await w->add("skr", true);
  auto report = co_await w->must_sync("skr", request_for(all.first));
  BOOST_TEST(report.refused == "");
  BOOST_TEST(report.version == "1.0.0");
  BOOST_TEST(report.digest == set_of(all.first).digest);
  BOOST_TEST(report.objects == 7U);
  BOOST_TEST(report.deployment.is_object());
  BOOST_TEST(!report.half_way);
  const bool good = co_await w->has("skr", set_of(all.first), {});
  BOOST_TEST(good);
  w->faults["skr"] = {};
  report = co_await w->must_sync("skr", request_for(all.first));
  BOOST_TEST(report.writes == 0U);
  BOOST_TEST(w->faults["skr"].seen == 0);
  BOOST_TEST(report.differences.empty());
  const auto secret = co_await w->get("skr", "Secret", "registry-credentials");
  BOOST_TEST(k8s::find_string(secret, {"type"}) == bootstrapper::pull_secret_type);
}

BOOST_AUTO_TEST_CASE(a_set_is_installed_and_then_costs_reads_only) {
  runtimes_world w;
  test::run(w.context, settles(&w, samples()));
}

asio::awaitable<void> rotates(runtimes_world* w, samples all) {
  co_await w->add("skr");
  co_await w->must_sync("skr", request_for(all.first));
  w->faults["skr"] = {};
  auto second = all.first;
  second.pull_secret.object = pull_secret("rotated");
  const auto report = co_await w->must_sync("skr", request_for(second));
  BOOST_TEST(report.objects == 1U);
  BOOST_TEST(w->faults["skr"].seen <= 6);
  const bool good = co_await w->has("skr", set_of(second), {});
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(a_rotated_secret_is_the_only_object_that_is_written) {
  runtimes_world w;
  test::run(w.context, rotates(&w, samples()));
}

asio::awaitable<void> refuses_dry(runtimes_world* w, samples all) {
  co_await w->add("skr");
  co_await w->must_sync("skr", request_for(all.first));
  auto second = all.first;
  second.pull_secret.object = pull_secret("rotated");
  // Valid as far as can be told here; the API server knows better.
  second.manifests.text = manifests("2.0.0", R"(---
apiVersion: apps/v1
kind: Deployment
metadata: {name: broken, namespace: kyma-system}
spec: {replicas: many}
)");
  const auto report = co_await w->must_sync("skr", request_for(second));
  BOOST_TEST(report.refused.find("Deployment kyma-system/broken") != report.refused.npos,
             report.refused);
  BOOST_TEST(report.objects == 0U);
  BOOST_TEST(report.writes == 0U);
  BOOST_TEST(report.digest == set_of(all.first).digest);
  const bool good = co_await w->has("skr", set_of(all.first), {});
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(what_the_runtime_would_refuse_is_not_begun) {
  runtimes_world w;
  test::run(w.context, refuses_dry(&w, samples()));
}

asio::awaitable<void> refuses_unknown_kinds(runtimes_world* w, samples all) {
  co_await w->add("skr");
  auto from = all.first;
  const std::string widget =
      "---\napiVersion: example.com/v1\nkind: Widget\n"
      "metadata: {name: one, namespace: kyma-system}\n";
  from.manifests.text = manifests("1.0.0", widget);
  auto report = co_await w->must_sync("skr", request_for(from));
  BOOST_TEST(report.refused == "the runtime does not know the kind Widget of example.com/v1 (one)");
  BOOST_TEST(w->faults["skr"].seen == 0);
  // It does if the set defines it.
  from.manifests.text = manifests("1.0.0", widget + R"(---
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
  report = co_await w->must_sync("skr", request_for(from));
  BOOST_TEST(report.refused == "");
  BOOST_TEST(report.objects == 9U);
}

BOOST_AUTO_TEST_CASE(an_unknown_kind_is_refused_unless_the_set_defines_it) {
  runtimes_world w;
  test::run(w.context, refuses_unknown_kinds(&w, samples()));
}

asio::awaitable<void> repairs(runtimes_world* w, samples all) {
  co_await w->add("skr");
  co_await w->must_sync("skr", request_for(all.first));
  const auto config_maps = *k8s::well_known_type("v1", "ConfigMap");
  const k8s::object_key key{"kyma-system", "rt-bootstrapper-config"};
  json::value change{{"data", {{bootstrapper::configuration_key, "{}"}}}};
  auto done = co_await w->api("skr")->patch(config_maps, key, k8s::patch_type::merge, change);
  BOOST_REQUIRE(done.has_value());
  const auto secrets = *k8s::well_known_type("v1", "Secret");
  done = co_await w->api("skr")->remove(secrets, {"kyma-system", "registry-credentials"});
  BOOST_REQUIRE(done.has_value());
  // Though the control plane has nothing valid now.
  const auto report = co_await w->must_sync(
      "skr", {.subject = subject, .invalid = "broken", .now = std::chrono::system_clock::now()});
  const std::string expected[] = {"Secret kyma-system/registry-credentials is missing",
                                  "ConfigMap kyma-system/rt-bootstrapper-config: "
                                  "data.rt-bootstrapper-config.json"};
  BOOST_TEST(report.differences == expected, boost::test_tools::per_element());
  BOOST_TEST(report.refused == "broken");
  BOOST_TEST(report.digest == set_of(all.first).digest);
  const bool good = co_await w->has("skr", set_of(all.first), {});
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(drift_is_repaired_also_while_the_sources_are_broken) {
  runtimes_world w;
  test::run(w.context, repairs(&w, samples()));
}

asio::awaitable<void> adopts(runtimes_world* w, samples all) {
  co_await w->add("skr");
  const auto set = set_of(all.first);
  co_await install_as_kim(w, "skr", set);
  const auto before = co_await w->get("skr", "Deployment", deployment);
  const auto report = co_await w->must_sync("skr", request_for(all.first));
  BOOST_TEST(report.refused == "");
  const auto after = co_await w->get("skr", "Deployment", deployment);
  BOOST_TEST(k8s::generation_of(before) == k8s::generation_of(after));
  BOOST_TEST(json::serialize(before.at("spec")) == json::serialize(after.at("spec")));
  BOOST_TEST(k8s::uid_of(before) == k8s::uid_of(after));
  const auto secret = co_await w->get("skr", "Secret", "registry-credentials");
  for (const auto& one : {after, secret}) {
    const auto all_managers = managers(one);
    BOOST_TEST(contains(all_managers, "runtime-watcher-bootstrapper"));
    BOOST_TEST(!contains(all_managers, "kim-bootstrapper"));
    BOOST_TEST(!contains(all_managers, "manager"));
  }
  // So that a field which a later set lacks goes, though it was not this manager that brought it.
  auto second = all.first;
  second.configuration.object.as_object()["data"].as_object()["more"] = "x";
  co_await w->must_sync("skr", request_for(second));
  co_await w->must_sync("skr", request_for(all.first));
  const bool good = co_await w->has("skr", set, {});
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(what_kim_installed_is_taken_over_and_pods_are_not_restarted) {
  runtimes_world w;
  test::run(w.context, adopts(&w, samples()));
}

asio::awaitable<void> goes_back_to_kims(runtimes_world* w, samples all) {
  co_await w->add("skr");
  const auto kims = set_of(all.first);
  co_await install_as_kim(w, "skr", kims);
  auto second = good_sources(all.pem, "2.0.0");
  second.pull_secret.object = pull_secret("new");
  second.manifests.text = manifests("2.0.0",
                                    "---\napiVersion: v1\nkind: ConfigMap\n"
                                    "metadata: {name: new, namespace: kyma-system}\n");
  w->faults["skr"] = {.refuse = 2, .only_path = "/deployments/"};  // after the dry run
  const auto report = co_await w->must_sync("skr", request_for(second));
  BOOST_TEST(report.rolled_back);
  BOOST_TEST(report.refused.find("did not take it") != report.refused.npos);
  const auto secret = co_await w->get("skr", "Secret", "registry-credentials");
  BOOST_TEST(secret.at("data") == pull_secret().at("data"));
  const auto added = co_await w->get("skr", "ConfigMap", "new");
  BOOST_TEST(added.is_null());
  const auto after = co_await w->get("skr", "Deployment", deployment);
  BOOST_TEST(bootstrapper::version_of(after) == "1.0.0");
}

BOOST_AUTO_TEST_CASE(a_first_set_that_is_refused_leaves_what_was_there_before) {
  runtimes_world w;
  test::run(w.context, goes_back_to_kims(&w, samples()));
}

asio::awaitable<void> keeps(runtimes_world* w, samples all) {
  co_await w->add("skr");
  co_await w->must_sync("skr", request_for(all.first));
  auto from = all.first;
  from.pull_secret.object = nullptr;
  auto report = co_await w->must_sync("skr", request_for(from));
  BOOST_TEST(report.refused == "");
  BOOST_TEST(report.writes == 0U);
  from.remove_missing = true;
  report = co_await w->must_sync("skr", request_for(from));
  BOOST_TEST(report.refused == "");
  auto secret = co_await w->get("skr", "Secret", "registry-credentials");
  BOOST_TEST(secret.is_null());
  // Where nothing is to be kept, what is missing is missing.
  from.remove_missing = false;
  report = co_await w->must_sync("skr", request_for(from));
  BOOST_TEST(report.refused.find("pullSecret: its source is not in the control plane") == 0U);
  // Configuration that needs the bundle holds it.
  from = all.first;
  from.manifests.object = nullptr;
  from.configuration.object = config_map(R"({"overrides": {},
      "availableFeatures": ["rt-cfg.kyma-project.io/fly"]})");
  report = co_await w->must_sync("skr", request_for(from));
  BOOST_TEST(report.refused.find("\"rt-cfg.kyma-project.io/fly\" is no feature") !=
             report.refused.npos);
}

BOOST_AUTO_TEST_CASE(a_source_that_is_gone_is_kept_on_the_runtime_or_removed) {
  runtimes_world w;
  test::run(w.context, keeps(&w, samples()));
}

asio::awaitable<void> goes(runtimes_world* w, samples all) {
  co_await w->add("skr");
  co_await w->must_sync("skr", request_for(all.first));
  // Somebody else makes one of the objects anew: it is theirs now.
  const auto services = *k8s::well_known_type("v1", "Service");
  const k8s::object_key key{"kyma-system", "rt-bootstrapper-webhook-service"};
  auto theirs = co_await w->api("skr")->get(services, key);
  BOOST_REQUIRE(theirs.has_value());
  auto done = co_await w->api("skr")->remove(services, key);
  BOOST_REQUIRE(done.has_value());
  json::value object{{"apiVersion", "v1"},
                     {"kind", "Service"},
                     {"metadata", {{"name", key.name}, {"namespace", key.ns}}},
                     {"spec", {{"ports", json::array{{{"port", 1}}}}}}};
  done = co_await w->api("skr")->create(services, object);
  BOOST_REQUIRE(done.has_value());
  const auto now = std::chrono::system_clock::now();
  auto gone = co_await bootstrapper::undeploy(w->api("skr"), &w->how, subject, {}, now);
  BOOST_REQUIRE_MESSAGE(gone.has_value(), gone.error().message);
  for (const auto& one : set_of(all.first).items) {
    const auto got = co_await w->api("skr")->get(one.type, one.key("kyma-system"));
    BOOST_TEST(got.has_value() == (one.type.gvk.kind == "Service"), one.type.gvk.kind);
  }
  const auto left =
      co_await w->api("skr")->list(*k8s::well_known_type("v1", "Secret"), {.ns = "kyma-system"});
  BOOST_REQUIRE(left.has_value());
  BOOST_TEST(left->at("items").as_array().empty());
  gone = co_await bootstrapper::undeploy(w->api("skr"), &w->how, subject, {}, now);
  BOOST_REQUIRE(gone.has_value());
  BOOST_TEST(*gone == 0U);
}

BOOST_AUTO_TEST_CASE(undeploying_removes_what_is_ours_and_nothing_else) {
  runtimes_world w;
  test::run(w.context, goes(&w, samples()));
}

asio::awaitable<void> moves(runtimes_world* w, samples all) {
  co_await w->add("skr", true);
  co_await w->must_sync("skr", request_for(all.first));
  auto request = request_for(all.first);
  request.to.pull_secret = "renamed";
  bootstrapper::problems wrong;
  request.wanted = bootstrapper::gather(all.first, request.to, request.now, wrong);
  const auto report = co_await w->must_sync("skr", request);
  BOOST_TEST(report.refused == "");
  const auto renamed = co_await w->get("skr", "Secret", "renamed");
  BOOST_TEST(renamed.is_object());
  const auto former = co_await w->get("skr", "Secret", "registry-credentials");
  BOOST_TEST(former.is_null());
}

BOOST_AUTO_TEST_CASE(a_target_with_another_name_takes_the_former_ones_place) {
  runtimes_world w;
  test::run(w.context, moves(&w, samples()));
}

asio::awaitable<void> looks(runtimes_world* w, samples all) {
  co_await w->add("skr");
  auto request = request_for(all.first);
  request.write = false;
  const auto report = co_await w->must_sync("skr", request);
  BOOST_TEST(report.differences.size() == 7U);
  BOOST_TEST(report.wanted == set_of(all.first).digest);
  BOOST_TEST(report.digest == "");
  BOOST_TEST(w->faults["skr"].seen == 0);
  // The mode may change at any moment.
  request.write = true;
  int left = 5;
  request.may_write = [&left] { return left-- > 0; };
  const auto stopped = co_await w->sync("skr", request);
  BOOST_TEST(stopped.has_error());
  BOOST_TEST(stopped.error().is(k8s::errc::fenced));
  BOOST_TEST(w->faults["skr"].seen == 7 + 5);
}

BOOST_AUTO_TEST_CASE(it_can_look_without_writing_and_stops_when_it_may_not_write_any_more) {
  runtimes_world w;
  test::run(w.context, looks(&w, samples()));
}

asio::awaitable<void> keeps_large_sets(runtimes_world* w, samples all) {
  co_await w->add("skr");
  auto from = all.first;
  auto& data = from.configuration.object.as_object()["data"].as_object();
  data["large"] = std::string(1'000'000, 'x');
  co_await w->must_sync("skr", request_for(from));
  auto second = from;
  second.pull_secret.object = pull_secret("new");
  w->faults["skr"] = {.refuse = 2, .only_path = "/secrets/registry-credentials"};
  const auto report = co_await w->must_sync("skr", request_for(second));
  BOOST_TEST(report.rolled_back);
  const bool good = co_await w->has("skr", set_of(from), {});
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(a_set_larger_than_a_secret_is_kept_in_pieces) {
  runtimes_world w;
  test::run(w.context, keeps_large_sets(&w, samples()));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
