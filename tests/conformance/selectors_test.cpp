#include "sandbox.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(selectors)

using namespace rw;
using namespace rw::conformance;

namespace {

/// A sandbox with ConfigMaps that differ in their labels.
struct labelled : sandbox {
  labelled() {
    create(config_maps, config_map("a", nullptr, {{"env", "prod"}, {"n", "1"}}));
    create(config_maps, config_map("b", nullptr, {{"env", "test"}, {"n", "5"}}));
    create(config_maps, config_map("c", nullptr, {{"env", ""}}));
    create(config_maps, config_map("d"));
  }

  /// The names of what is selected, such as "ab".
  std::string by_labels(const std::string& selector, place from = place::current()) {
    return joined(list(config_maps, {.labels = selector}, {}, from));
  }
  std::string by_fields(const std::string& selector, place from = place::current()) {
    return joined(list(config_maps, {.fields = selector}, {}, from));
  }
  static std::string joined(const json& list) {
    std::string all_of_them;
    for (const auto& name : names(list)) all_of_them += name;
    return all_of_them;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(label_has_a_value, labelled) {
  BOOST_TEST(by_labels("env=prod") == "a");
  BOOST_TEST(by_labels("env==prod") == "a");
  BOOST_TEST(by_labels(" env = prod ") == "a");
  BOOST_TEST(by_labels("env=none").empty());
}

BOOST_FIXTURE_TEST_CASE(label_has_not_a_value_also_where_it_is_missing, labelled) {
  BOOST_TEST(by_labels("env!=prod") == "bcd");
}

BOOST_FIXTURE_TEST_CASE(label_has_one_of_some_values, labelled) {
  BOOST_TEST(by_labels("env in (prod, test)") == "ab");
  BOOST_TEST(by_labels("env in (prod)") == "a");
}

BOOST_FIXTURE_TEST_CASE(label_has_none_of_some_values_also_where_it_is_missing, labelled) {
  BOOST_TEST(by_labels("env notin (prod, test)") == "cd");
}

BOOST_FIXTURE_TEST_CASE(label_is_there_or_not, labelled) {
  BOOST_TEST(by_labels("env") == "abc");
  BOOST_TEST(by_labels("!env") == "d");
}

BOOST_FIXTURE_TEST_CASE(label_may_have_an_empty_value, labelled) {
  BOOST_TEST(by_labels("env=") == "c");
  BOOST_TEST(by_labels("env in ()") == "c");
}

BOOST_FIXTURE_TEST_CASE(labels_are_compared_as_numbers, labelled) {
  BOOST_TEST(by_labels("n>1") == "b");
  BOOST_TEST(by_labels("n<5") == "a");
}

BOOST_FIXTURE_TEST_CASE(selector_holds_if_all_its_terms_do, labelled) {
  BOOST_TEST(by_labels("env,env!=prod") == "bc");
  BOOST_TEST(by_labels("env in (prod,test),n notin (1)") == "b");
  BOOST_TEST(by_labels("env=prod,env=test").empty());
}

BOOST_FIXTURE_TEST_CASE(empty_selector_selects_all, labelled) {
  BOOST_TEST(by_labels("") == "abcd");
  BOOST_TEST(by_fields("") == "abcd");
}

BOOST_FIXTURE_TEST_CASE(label_selector_with_a_fault_is_rejected, labelled) {
  for (const auto* fault : {"=x", "env=a b", "env in (prod", "env in prod", "a b", "env>x"}) {
    BOOST_TEST_CONTEXT(fault) {
      refuse(api.list(config_maps, {.ns = ns, .labels = fault}), {400, "BadRequest"});
    }
  }
}

BOOST_FIXTURE_TEST_CASE(name_is_a_field, labelled) {
  BOOST_TEST(by_fields("metadata.name=b") == "b");
  BOOST_TEST(by_fields("metadata.name==b") == "b");
  BOOST_TEST(by_fields("metadata.name!=b") == "acd");
  BOOST_TEST(by_fields("metadata.name=a,metadata.name=b").empty());
}

BOOST_FIXTURE_TEST_CASE(namespace_is_a_field, labelled) {
  BOOST_TEST(by_fields("metadata.namespace=" + ns) == "abcd");
  BOOST_TEST(by_fields("metadata.namespace=another").empty());
  const auto everywhere = ok(api.list(config_maps, {.fields = "metadata.namespace=" + ns}));
  BOOST_TEST(joined(everywhere) == "abcd");
}

BOOST_FIXTURE_TEST_CASE(labels_and_fields_must_both_hold, labelled) {
  const auto one = list(config_maps, {.labels = "env", .fields = "metadata.name!=a"});
  BOOST_TEST(joined(one) == "bc");
}

BOOST_FIXTURE_TEST_CASE(field_selector_of_other_fields_is_rejected, labelled) {
  refuse(api.list(config_maps, {.ns = ns, .fields = "data.k=v"}), {400, "BadRequest", "data.k"});
  refuse(api.list(gadgets(), {.ns = ns, .fields = "spec.size=1"}),
         {400, "BadRequest", "field label not supported: spec.size"});
}

BOOST_FIXTURE_TEST_CASE(field_selector_with_a_fault_is_rejected, labelled) {
  refuse(api.list(config_maps, {.ns = ns, .fields = "metadata.name"}),
         {400, "BadRequest", "invalid selector"});
}

BOOST_FIXTURE_TEST_CASE(custom_resources_are_selected_by_name, sandbox) {
  create(gadgets(), gadget("a"));
  create(gadgets(), gadget("b"));
  const auto one = list(gadgets(), {.fields = "metadata.name=b"});
  BOOST_TEST(labelled::joined(one) == "b");
}

BOOST_FIXTURE_TEST_CASE(secrets_are_selected_by_type, sandbox) {
  create(secrets, object(secrets, "a"));
  create(secrets, object(secrets, "b", {{"type", "example.com/other"}}));
  BOOST_TEST(labelled::joined(list(secrets, {.fields = "type=example.com/other"})) == "b");
}

BOOST_FIXTURE_TEST_CASE(events_are_selected_by_their_object, sandbox) {
  for (const auto* name : {"a", "b"}) {
    create(events,
           object(events, name,
                  {{"involvedObject", {{"kind", "ConfigMap"}, {"namespace", ns}, {"name", name}}},
                   {"reason", name}}));
  }
  BOOST_TEST(labelled::joined(list(events, {.fields = "involvedObject.name=b"})) == "b");
  BOOST_TEST(labelled::joined(list(events, {.fields = "reason=a,involvedObject.kind=ConfigMap"})) ==
             "a");
}

BOOST_FIXTURE_TEST_CASE(fields_of_events_are_those_of_their_group, sandbox) {
  for (const auto* name : {"a", "b"}) {
    create(events,
           object(events, name,
                  {{"involvedObject", {{"kind", "ConfigMap"}, {"namespace", ns}, {"name", name}}},
                   {"source", {{"component", name}}},
                   {"reason", name}}));
  }
  const k8s::resource_type newer{{"events.k8s.io", "v1", "Event"}, "events", true};
  for (const auto* field :
       {"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"}) {
    list(newer, {.fields = "regarding." + std::string(field) + "=x"});
    refuse(api.list(newer, {.ns = ns, .fields = "involvedObject." + std::string(field) + "=x"}),
           {400, "BadRequest", "field label not supported"});
  }
  BOOST_TEST(labelled::joined(list(newer, {.fields = "regarding.name=b"})) == "b");
  BOOST_TEST(labelled::joined(list(newer, {.fields = "reportingController="})) == "ab");
  refuse(api.list(newer, {.ns = ns, .fields = "source=a"}), {400, "BadRequest", "source"});
  BOOST_TEST(labelled::joined(list(events, {.fields = "source=b"})) == "b");
}

BOOST_FIXTURE_TEST_CASE(status_of_replica_sets_selects_none, sandbox) {
  const k8s::resource_type sets{{"apps", "v1", "ReplicaSet"}, "replicasets", true};
  refuse(api.list(sets, {.ns = ns, .fields = "status.replicas=1"}), {400, "BadRequest"});
  list(pods, {.fields = "status.podIPs=10.0.0.9"});
}

BOOST_FIXTURE_TEST_CASE(cluster_scoped_objects_are_selected_like_others, sandbox) {
  const auto mine = list(namespaces, {.labels = "conformance=" + ns});
  BOOST_TEST(labelled::joined(mine) == ns);
}

BOOST_AUTO_TEST_SUITE_END()
