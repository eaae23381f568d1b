// A set on a real API server, with its defaults and schemas, as on the embedded one. Trust bundles
// are left out: not every version serves them.

#include "k8s/manifests.hpp"
#include "reactors/bootstrapper/resource.hpp"
#include "reactors/bootstrapper/status.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/runtime.hpp"
#include "tests/unit/run.hpp"
#include <fstream>
#include <iterator>
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(any_server)

using bootstrapper::sources_of_set;

namespace {

/// These tests run against a real API server as well.
const boost::unit_test::label kube("kube");

sources_of_set generation(const std::string& version, const std::string& extra) {
  sources_of_set out = good_sources({}, version);
  out.trust_bundle = {};
  out.pull_secret.object = pull_secret("password of " + version);
  out.configuration.object =
      config_map(R"({"overrides": {"a.example.com": "b-)" + version + R"(.example.com"}})");
  out.configuration.object.as_object()["data"].as_object()["of-" + version] = "x";
  out.manifests.text =
      manifests(version, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + extra +
                             ", namespace: kyma-system}\ndata: {a: b}\n" +
                             R"(---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: rt-bootstrapper, namespace: kyma-system}
spec:
  podSelector: {matchLabels: {app: rt-bootstrapper}}
  policyTypes: [Ingress]
  ingress: [{ports: [{port: 9443, protocol: TCP}]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: rt-bootstrapper}
rules: [{apiGroups: [""], resources: [configmaps, secrets], verbs: [get, list, watch]}]
)");
  return out;
}

}  // namespace

asio::awaitable<void> settles(runtimes_world* w) {
  co_await w->add_any();
  const auto first = generation("1.0.0", "old");
  auto report = co_await w->must_sync("skr", request_for(first));
  BOOST_TEST(report.refused == "");
  report = co_await w->must_sync("skr", request_for(first));
  BOOST_TEST(report.writes == 0U);
  BOOST_TEST(report.differences.empty());
  auto broken = first;
  broken.manifests.text +=
      "---\napiVersion: apps/v1\nkind: Deployment\n"
      "metadata: {name: broken, namespace: kyma-system}\nspec: {}\n";
  report = co_await w->must_sync("skr", request_for(broken));
  BOOST_TEST(report.refused != "");
  BOOST_TEST(report.writes == 0U);
  broken = first;
  broken.manifests.text +=
      "---\napiVersion: v1\nkind: Service\n"
      "metadata: {name: broken, namespace: kyma-system}\n"
      "spec: {port: 1}\n";
  report = co_await w->must_sync("skr", request_for(broken));
  BOOST_TEST(report.refused.find("Service kyma-system/broken") != report.refused.npos);
  BOOST_TEST(report.writes == 0U);
}

BOOST_AUTO_TEST_CASE(a_settled_set_costs_reads_only_and_a_broken_one_is_refused, *kube) {
  runtimes_world w;
  test::run(w.context, settles(&w));
}

asio::awaitable<void> stops_anywhere(runtimes_world* w) {
  const auto first = generation("1.0.0", "old");
  const auto second = generation("2.0.0", "new");
  bool whole = false;
  int k = 0;
  for (; !whole && k < 40; ++k) {
    co_await w->add_any();
    co_await w->must_sync("skr", request_for(first));
    auto request = request_for(second);
    request.may_write = [left = k]() mutable { return left-- > 0; };
    const auto stopped = co_await w->sync("skr", request);
    whole = stopped.has_value();
    BOOST_TEST((whole || stopped.error().is(k8s::errc::fenced)));
    co_await w->must_sync(
        "skr", {.subject = subject, .invalid = "broken", .now = std::chrono::system_clock::now()});
    const bool former = co_await w->has("skr", set_of(first), set_of(second));
    bool good = co_await w->has("skr", set_of(second), set_of(first));
    BOOST_TEST((former || good), "a mixture after " << k << " writes");
    co_await w->must_sync("skr", request_for(second));
    good = co_await w->has("skr", set_of(second), set_of(first));
    BOOST_TEST(good, "after " << k << " writes");
  }
  BOOST_TEST(whole);
  BOOST_TEST(k > 8);
}

BOOST_AUTO_TEST_CASE(a_sync_that_stops_before_any_of_its_writes_leaves_a_whole_set, *kube) {
  runtimes_world w;
  test::run(w.context, stops_anywhere(&w));
}

asio::awaitable<void> takes_over(runtimes_world* w) {
  co_await w->add_any();
  const auto set = generation("1.0.0", "old");
  json::value ns{
      {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "kyma-system"}}}};
  auto made = co_await w->api("skr")->apply({{"", "v1", "Namespace"}, "namespaces", false}, ns,
                                            {.field_manager = "manager", .force = true});
  BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
  for (const auto& one : set_of(set).items) {
    auto object = one.written("kyma-system");
    made = co_await w->api("skr")->apply(one.type, object,
                                         {.field_manager = "kim-bootstrapper", .force = true});
    BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
  }
  const auto before = co_await w->get("skr", "Deployment", "rt-bootstrapper-controller-manager");
  const auto report = co_await w->must_sync("skr", request_for(set));
  BOOST_TEST(report.refused == "");
  BOOST_TEST(report.differences.empty());
  const auto after = co_await w->get("skr", "Deployment", "rt-bootstrapper-controller-manager");
  BOOST_TEST(k8s::generation_of(after) == k8s::generation_of(before));
  for (const auto& one : after.at("metadata").at("managedFields").as_array()) {
    BOOST_TEST(one.at("manager") == "runtime-watcher-bootstrapper");
  }
}

BOOST_AUTO_TEST_CASE(objects_of_another_manager_are_taken_over_without_a_new_generation, *kube) {
  runtimes_world w;
  test::run(w.context, takes_over(&w));
}

/// The definition as deploy/ has it, waited for until it is served.
asio::awaitable<void> define(runtimes_world* w) {
  std::ifstream in(RW_SOURCE_DIR "/deploy/crds/operator.kyma-project.io_runtimebootstrappers.yaml");
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto all = k8s::parse_manifests(text);
  BOOST_REQUIRE_MESSAGE(all.has_value(), all.error().message());
  const auto type = *k8s::well_known_type("apiextensions.k8s.io/v1", "CustomResourceDefinition");
  const auto made = co_await w->api("skr")->apply(type, all->front(), {.force = true});
  BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
  const auto end = std::chrono::steady_clock::now() + test::patience / 2;
  bool served = false;
  while (!served && std::chrono::steady_clock::now() < end) {
    const auto list = co_await w->api("skr")->list(bootstrapper::runtime_bootstrappers_type(), {});
    served = list.has_value();
    if (!served) co_await test::turn();
  }
  BOOST_REQUIRE(served);
}

asio::awaitable<void> fits_its_schema(runtimes_world* w) {
  co_await w->add_any();
  co_await define(w);
  json::value runtime{{"apiVersion", "infrastructuremanager.kyma-project.io/v1"},
                      {"kind", "Runtime"},
                      {"metadata", {{"name", "schema"}, {"namespace", "default"}, {"uid", "1"}}}};
  auto object = bootstrapper::resource_for(runtime, {});
  object.at("spec").as_object()["deletionPolicy"] = "remove";
  const auto& type = bootstrapper::runtime_bootstrappers_type();
  const auto made = co_await w->api("skr")->apply(type, object, {.force = true});
  BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
  BOOST_TEST(made->at("spec") == object.at("spec"));
  bootstrapper::situation seen{.mode = bootstrapper_mode::shadow, .invalid = "x"};
  seen.report = bootstrapper::sync_report{.digest = "a", .version = "1", .wanted = "a"};
  seen.sources = {{bootstrapper::part::configuration, "ConfigMap a/b", "7", "d"}};
  auto status = bootstrapper::next_status(*made, seen, std::chrono::system_clock::now());
  BOOST_REQUIRE(status.has_value());
  const json::value change{{"status", *status}};
  const auto told = co_await w->api("skr")->patch(type, k8s::key_of(*made), k8s::patch_type::merge,
                                                  change, {.subresource = "status"});
  BOOST_REQUIRE_MESSAGE(told.has_value(), told.error().message);
  BOOST_TEST(told->at("status") == *status);
  json::value wrong = object;
  wrong.at("spec").as_object()["deletionPolicy"] = "maybe";
  const auto refused = co_await w->api("skr")->apply(type, wrong, {.force = true});
  BOOST_TEST(refused.has_error());
  const auto gone = co_await w->api("skr")->remove(type, k8s::key_of(*made));
  BOOST_TEST(gone.has_value());
}

BOOST_AUTO_TEST_CASE(the_resource_and_its_status_fit_the_schema, *kube) {
  runtimes_world w;
  test::run(w.context, fits_its_schema(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
