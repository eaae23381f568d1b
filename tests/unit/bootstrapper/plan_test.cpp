// Which writes a set needs on a runtime, and in which order.

#include "reactors/bootstrapper/plan.hpp"

#include "k8s/manifests.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/samples.hpp"
#include <algorithm>
#include <string>
#include <vector>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(plan)

using bootstrapper::known_set;
using bootstrapper::make_plan;
using bootstrapper::part;
using bootstrapper::set_item;
using bootstrapper::sync_record;

namespace {

const std::string ns = "kyma-system";
const k8s::resource_type bundles{
    {"certificates.k8s.io", "v1beta1", "ClusterTrustBundle"}, "clustertrustbundles", false};

known_set set_of(const std::string& version = "1.0.0", const std::string& more = {}) {
  static const auto pem = ca_pem();
  auto from = good_sources(pem, version);
  from.manifests.text = manifests(version, more);
  bootstrapper::problems wrong;
  const auto gathered = bootstrapper::gather(from, {}, std::chrono::system_clock::now(), wrong);
  BOOST_TEST_REQUIRE(wrong.empty(), bootstrapper::describe(wrong));
  known_set out{.digest = digest_of(gathered.objects), .version = version};
  for (const auto& one : gathered.objects) {
    const auto type = k8s::well_known_type(k8s::find_string(one.object, {"apiVersion"}),
                                           k8s::find_string(one.object, {"kind"}));
    out.items.push_back({one.from, one.object, type.value_or(bundles)});
  }
  bootstrapper::sort_for_apply(out, false);
  return out;
}

std::vector<std::string> kinds(const known_set& set) {
  std::vector<std::string> out;
  for (const auto& one : set.items) out.push_back(one.type.gvk.kind);
  return out;
}

std::vector<json::value> nothing(const known_set& set) {
  return std::vector<json::value>(set.items.size());
}

std::vector<json::value> as_written(const known_set& set) {
  std::vector<json::value> out;
  for (const auto& one : set.items) out.push_back(one.written(ns));
  return out;
}

std::size_t index_of(const known_set& set, const std::string& kind) {
  const auto found = std::ranges::find_if(
      set.items, [&](const set_item& one) { return one.type.gvk.kind == kind; });
  return static_cast<std::size_t>(found - set.items.begin());
}

}  // namespace

BOOST_AUTO_TEST_CASE(trust_comes_first_then_credentials_then_configuration_then_workloads) {
  const std::string expected[] = {"ClusterTrustBundle",
                                  "Secret",
                                  "ServiceAccount",
                                  "Service",
                                  "ConfigMap",
                                  "Deployment",
                                  "MutatingWebhookConfiguration"};
  BOOST_TEST(kinds(set_of()) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(namespaces_and_definitions_come_before_all) {
  const auto set = set_of("1.0.0", R"(---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.example.com}
spec: {}
---
apiVersion: v1
kind: Namespace
metadata: {name: kyma-system}
)");
  BOOST_TEST(set.items[0].type.gvk.kind == "Namespace");
  BOOST_TEST(set.items[1].type.gvk.kind == "CustomResourceDefinition");
  BOOST_TEST(set.items[2].type.gvk.kind == "ClusterTrustBundle");
}

BOOST_AUTO_TEST_CASE(a_configuration_that_needs_the_new_version_follows_it) {
  auto set = set_of();
  bootstrapper::sort_for_apply(set, true);
  BOOST_TEST(index_of(set, "ConfigMap") > index_of(set, "Deployment"));
  BOOST_TEST(index_of(set, "ConfigMap") < index_of(set, "MutatingWebhookConfiguration"));
}

BOOST_AUTO_TEST_CASE(an_empty_runtime_gets_everything) {
  const auto set = set_of();
  const auto todo = make_plan(set, {}, nothing(set), ns);
  BOOST_TEST(todo.writes.size() == set.items.size());
  BOOST_TEST(todo.prune.empty());
  for (std::size_t i = 0; i < todo.writes.size(); ++i) BOOST_TEST(todo.writes[i].item == i);
}

BOOST_AUTO_TEST_CASE(a_runtime_that_has_it_all_gets_nothing) {
  const auto set = set_of();
  const auto record = bootstrapper::settled_record(set, 1, ns, {});
  BOOST_TEST(make_plan(set, record, as_written(set), ns).empty());
}

BOOST_AUTO_TEST_CASE(what_is_there_and_not_known_as_ours_is_taken_over) {
  const auto set = set_of();
  const auto todo = make_plan(set, {}, as_written(set), ns);
  BOOST_TEST(todo.writes.size() == set.items.size());
  for (const auto& one : todo.writes) BOOST_TEST((one.difference.empty() && !one.missing));
}

BOOST_AUTO_TEST_CASE(drift_is_written_over_and_named) {
  const auto set = set_of();
  const auto record = bootstrapper::settled_record(set, 1, ns, {});
  auto live = as_written(set);
  live[index_of(set, "Deployment")].as_object()["spec"].as_object()["replicas"] = 0;
  const auto todo = make_plan(set, record, live, ns);
  BOOST_TEST_REQUIRE(todo.writes.size() == 1U);
  BOOST_TEST(todo.writes[0].difference == "spec.replicas");
}

BOOST_AUTO_TEST_CASE(a_field_that_the_former_set_had_makes_a_write) {
  const auto former = set_of();
  const auto record = bootstrapper::settled_record(former, 1, ns, {});
  auto set = former;
  auto& data = set.items[index_of(set, "ConfigMap")].object.as_object()["data"].as_object();
  const auto live = as_written(former);
  data.clear();
  const auto todo = make_plan(set, record, live, ns);
  BOOST_TEST_REQUIRE(todo.writes.size() == 1U);
  BOOST_TEST(todo.writes[0].item == index_of(set, "ConfigMap"));
}

BOOST_AUTO_TEST_CASE(what_the_new_set_lacks_is_pruned_but_no_namespace) {
  const auto former = set_of("1.0.0", R"(---
apiVersion: v1
kind: Namespace
metadata: {name: kyma-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: old, namespace: kyma-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: old, namespace: kyma-system}
)");
  const auto record = bootstrapper::settled_record(former, 1, ns, {});
  const auto set = set_of("1.1.0");
  const auto todo = make_plan(set, record, as_written(set), ns);
  BOOST_TEST_REQUIRE(todo.prune.size() == 2U);
  BOOST_TEST(todo.prune[0].type.gvk.kind == "Deployment");
  BOOST_TEST(todo.prune[1].type.gvk.kind == "ConfigMap");
  BOOST_TEST(todo.prune[1].key.name == "old");
}

BOOST_AUTO_TEST_CASE(the_inventory_never_lacks_what_may_be_written) {
  const auto former = set_of("1.0.0",
                             "---\napiVersion: v1\nkind: ConfigMap\n"
                             "metadata: {name: old, namespace: kyma-system}\n");
  const auto set = set_of("1.1.0",
                          "---\napiVersion: v1\nkind: ConfigMap\n"
                          "metadata: {name: new, namespace: kyma-system}\n");
  const auto before = bootstrapper::settled_record(former, 2, ns, {});
  auto begun = bootstrapper::begin_record(before, set, 3, ns, {});
  BOOST_TEST((begun.now == sync_record::phase::applying));
  BOOST_TEST(begun.good == former.digest);
  BOOST_TEST(begun.good_parts == 2U);
  BOOST_TEST(begun.target == set.digest);
  BOOST_TEST(begun.inventory.size() == former.items.size() + 1);
  const auto config_maps = *k8s::well_known_type("v1", "ConfigMap");
  BOOST_TEST(begun.find(config_maps, {ns, "new"})->digest == "");
  BOOST_TEST(begun.find(config_maps, {ns, "old"})->digest != "");
  const auto deployments = *k8s::well_known_type("apps/v1", "Deployment");
  BOOST_TEST(begun.find(deployments, {ns, "rt-bootstrapper-controller-manager"})->digest == "");
}

BOOST_AUTO_TEST_CASE(record_and_set_survive_being_written) {
  const auto set = set_of();
  auto record = bootstrapper::begin_record(
      bootstrapper::settled_record(set, 1, ns, {}), set_of("2.0.0"), 2, ns,
      std::chrono::system_clock::time_point(std::chrono::hours(24 * 365 * 30)));
  record.refused = {"abc", "why \"so\"", record.since};
  const auto read = bootstrapper::read_record(bootstrapper::write_record(record));
  BOOST_TEST_REQUIRE(read.has_value());
  BOOST_TEST((*read == record));
  const auto text = bootstrapper::write_set(set);
  const auto again = bootstrapper::read_set(text, set.digest);
  BOOST_TEST_REQUIRE(again.has_value());
  BOOST_TEST(bootstrapper::write_set(*again) == text);
  BOOST_TEST(!bootstrapper::read_set(text.substr(0, text.size() - 1), set.digest).has_value());
  BOOST_TEST(!bootstrapper::read_set(text, set_of("2.0.0").digest).has_value());
  BOOST_TEST(!bootstrapper::read_record(json::value{{"phase", "odd"}}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
