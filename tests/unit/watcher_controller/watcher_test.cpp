#include "rw/reactors/shared/watcher.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/watcher_controller/samples.hpp"
#include <string>
#include <string_view>
#include <vector>

BOOST_AUTO_TEST_SUITE(watcher)

namespace json = boost::json;
namespace k8s = rw::k8s;
using rw::watcher_controller_test::valid_watcher;
using rw::watcher_controller_test::with;

namespace {

/// All that is wrong with a Watcher; empty if nothing is.
std::string problems(const json::value& object) {
  const auto read = rw::read_watcher(object);
  return read.has_error() ? read.error().message : std::string();
}

/// What is wrong with the valid one once `value` stands at `pointer`; "absent" removes.
std::string problems(std::string_view pointer, std::string_view value) {
  return problems(with(valid_watcher(), pointer, value));
}

}  // namespace

BOOST_AUTO_TEST_CASE(watcher_is_read) {
  const auto read = rw::read_watcher(valid_watcher());
  BOOST_TEST_REQUIRE(read.has_value(), problems(valid_watcher()));
  BOOST_TEST(to_string(read->key) == "kcp-system/kyma");
  BOOST_TEST(read->uid == "u1");
  BOOST_TEST(read->generation == 3);
  BOOST_TEST(read->manager == "lifecycle-manager");
  BOOST_TEST((read->watched == rw::watcher::resource{"operator.kyma-project.io", "*", "kymas"}));
  BOOST_TEST(read->labels.size() == 1U);
  BOOST_TEST(read->labels.at("operator.kyma-project.io/watched-by") == "kyma");
  BOOST_TEST((read->field == rw::watched_field::spec));
  BOOST_TEST(to_string(read->field) == "spec");
  BOOST_TEST((read->receiver == rw::watcher::service{"kcp-system", "events", 8082}));
  const auto labels = json::parse(R"({"gw":"default"})");
  BOOST_TEST(read->gateways.matches(&labels));
  BOOST_TEST(!read->gateways.matches(nullptr));
}

BOOST_AUTO_TEST_CASE(name_of_the_webhook_must_fit) {
  // "kcp-system." and ".operator.kyma-project.io" leave 217 of 253 characters.
  const auto named = [](std::size_t length) {
    return problems("/metadata/name", '"' + std::string(length, 'a') + '"');
  };
  BOOST_TEST(named(217).empty());
  BOOST_TEST(named(218).starts_with("the Watcher's name is too long: its webhook's, "));
}

BOOST_AUTO_TEST_CASE(invalid_watcher_is_what_its_virtual_service_remembers) {
  auto virtual_service = json::parse(
      R"({"metadata": {"ownerReferences": [{"kind": "Watcher", "name": "kyma", "uid": "u1"}]}})");
  const auto good = valid_watcher();
  const auto bad = with(good, "/spec/manager", R"("../x")");
  BOOST_TEST(!rw::last_valid_watcher(bad, virtual_service));
  BOOST_TEST(!rw::last_valid_watcher(bad, nullptr));
  k8s::set_annotation(virtual_service, rw::last_valid_annotation, rw::last_valid_text(good));
  const auto kept = rw::last_valid_watcher(bad, virtual_service);
  BOOST_TEST_REQUIRE(kept.has_value());
  BOOST_TEST(kept->manager == "lifecycle-manager");
  // Another Watcher of this name.
  BOOST_TEST(!rw::last_valid_watcher(with(bad, "/metadata/uid", R"("u2")"), virtual_service));
  for (const auto* text : {"", "[]", "{", R"({"spec": 1})", "{}"}) {
    k8s::set_annotation(virtual_service, rw::last_valid_annotation, text);
    BOOST_TEST(!rw::last_valid_watcher(bad, virtual_service), text);
  }
  // The manager may have been the label's.
  const auto labelled = with(with(good, "/spec/manager", "absent"), "/metadata/labels",
                             R"({"operator.kyma-project.io/managed-by": "keda"})");
  k8s::set_annotation(virtual_service, rw::last_valid_annotation, rw::last_valid_text(labelled));
  BOOST_TEST(rw::last_valid_watcher(with(labelled, "/metadata/labels", "absent"), virtual_service)
                 ->manager == "keda");
}

BOOST_AUTO_TEST_CASE(manager_is_the_label_where_the_spec_names_none) {
  for (const auto* none : {"absent", "\"\"", "null"}) {
    auto object = with(valid_watcher(), "/spec/manager", none);
    BOOST_TEST(problems(object) ==
               "spec.manager is missing, and so is the label operator.kyma-project.io/managed-by: "
               "one of them must name the operator that the events are for");
    object =
        with(object, "/metadata/labels", R"({"operator.kyma-project.io/managed-by": "warden"})");
    const auto read = rw::read_watcher(object);
    BOOST_TEST_REQUIRE(read.has_value(), problems(object));
    BOOST_TEST(read->manager == "warden");
  }
}

BOOST_AUTO_TEST_CASE(manager_must_fit_into_a_path) {
  for (const auto* bad : {"\"a/b\"", "\"..\"", "\".\"", "\"a b\"", "\"a%2f\"", "\"a?b\"", "7"}) {
    BOOST_TEST(problems("/spec/manager", bad) ==
               "spec.manager is " + std::string(bad) +
                   ", but must be at most 63 letters, digits, '-', '_' and '.', beginning and "
                   "ending with a letter or digit, as it becomes part of URLs");
  }
  BOOST_TEST(problems("/spec/manager", "\"Lifecycle_Manager.2\"").empty());
}

BOOST_AUTO_TEST_CASE(manager_of_heartbeats_is_reserved) {
  BOOST_TEST(problems("/spec/manager", "\"runtime-watcher\"") ==
             "spec.manager is \"runtime-watcher\", but must be another name: heartbeats of the "
             "runtimes are sent to this one");
}

BOOST_AUTO_TEST_CASE(watched_resource_must_be_valid) {
  BOOST_TEST(problems("/spec/resourceToWatch/group", "\"\"").empty());
  BOOST_TEST(problems("/spec/resourceToWatch/version", "\"v1beta2\"").empty());
  BOOST_TEST(problems("/spec/resourceToWatch/group", "\"Kyma!\"") ==
             "spec.resourceToWatch.group is \"Kyma!\", but must be an API group such as "
             "operator.kyma-project.io, empty for the core group, or * for all");
  BOOST_TEST(problems("/spec/resourceToWatch/version", "\"\"") ==
             "spec.resourceToWatch.version is \"\", but must be an API version such as v1, or * "
             "for all");
  for (const auto* bad : {"\"\"", "\"Kymas\"", "\"kymas/\"", "\"/scale\"", "\"kymas/Scale\"",
                          "\"*/*\"", "\"a/b/c\""}) {
    BOOST_TEST(problems("/spec/resourceToWatch/resource", bad) ==
               "spec.resourceToWatch.resource is " + std::string(bad) +
                   ", but must be the plural name of a resource in lower case such as kymas, or * "
                   "for all, maybe with a subresource such as deployments/scale");
  }
}

BOOST_AUTO_TEST_CASE(subresource_is_watched_beside_or_instead_of_the_resource) {
  const auto of = [](std::string_view resource, std::string_view field) {
    return with(with(valid_watcher(), "/spec/resourceToWatch/resource", resource), "/spec/field",
                field);
  };
  const auto scale = rw::read_watcher(of(R"("kymas/scale")", R"("spec")"));
  BOOST_TEST_REQUIRE(scale.has_value());
  BOOST_TEST(scale->watched.plural == "kymas");
  BOOST_TEST(scale->watched.subresource == "scale");
  BOOST_TEST(rw::watch_of(*scale).field == "scale");
  const auto status = rw::read_watcher(of(R"("kymas/status")", R"("status")"));
  BOOST_TEST_REQUIRE(status.has_value());
  BOOST_TEST(status->watched.subresource.empty());
  BOOST_TEST(rw::watch_of(*status).field == "status");
  BOOST_TEST(problems(of(R"("kymas/status")", R"("spec")")) ==
             "spec.resourceToWatch.resource names the subresource status, so spec.field must be "
             "status");
  BOOST_TEST(problems(of(R"("kymas/scale")", R"("status")")) ==
             "spec.field is status, but spec.resourceToWatch.resource names the subresource scale");
}

BOOST_AUTO_TEST_CASE(wildcard_of_resources_needs_labels_and_another_group_than_that_of_leases) {
  const auto all = with(valid_watcher(), "/spec/resourceToWatch/resource", R"("*")");
  BOOST_TEST(problems(all).empty());
  BOOST_TEST(problems(with(all, "/spec/labelsToWatch", "absent"))
                 .starts_with("spec.resourceToWatch.resource is \"*\", which needs "));
  for (const auto* group : {"coordination", "events", "authorization", "authentication"}) {
    const auto name = '"' + std::string(group) + ".k8s.io\"";
    BOOST_TEST(problems(with(all, "/spec/resourceToWatch/group", name))
                   .starts_with("spec.resourceToWatch.resource must not be \"*\" in the group "));
  }
}

BOOST_AUTO_TEST_CASE(resource_of_all_groups_needs_labels_and_is_not_observed) {
  const auto all = with(valid_watcher(), "/spec/resourceToWatch/group", R"("*")");
  const auto read = rw::read_watcher(all);
  BOOST_TEST_REQUIRE(read.has_value());
  BOOST_TEST(read->watched.group == "*");
  BOOST_TEST(rw::unobserved_reason(rw::watch_of(*read), true) == "wildcard");
  const rw::known_managers known({rw::watch_of(*read)});
  const auto parsed = rw::parse_managers(rw::render_managers(known));
  BOOST_TEST_REQUIRE(parsed.has_value());
  BOOST_TEST((parsed->watches() == known.watches()));
  BOOST_TEST(problems(with(all, "/spec/labelsToWatch", "absent"))
                 .starts_with("spec.resourceToWatch.group is \"*\", which needs "));
  BOOST_TEST(problems(with(all, "/spec/resourceToWatch/resource", R"("*")"))
                 .starts_with("spec.resourceToWatch.resource must not be \"*\" in the group *"));
}

BOOST_AUTO_TEST_CASE(labels_to_watch_must_be_labels) {
  const auto all = rw::read_watcher(with(valid_watcher(), "/spec/labelsToWatch", "absent"));
  BOOST_TEST_REQUIRE(all.has_value());
  BOOST_TEST(all->labels.empty());
  BOOST_TEST(problems("/spec/labelsToWatch", R"({"a": ""})").empty());
  BOOST_TEST(problems("/spec/labelsToWatch", "[]") ==
             "spec.labelsToWatch is [], but must be labels: names with their values");
  BOOST_TEST(problems("/spec/labelsToWatch", R"({"a": "b c"})") ==
             "spec.labelsToWatch[\"a\"] is \"b c\", but must be at most 63 letters, digits, '-', "
             "'_' and '.', beginning and ending with a letter or digit");
  BOOST_TEST(problems("/spec/labelsToWatch", R"({"/a": "b"})") ==
             "spec.labelsToWatch[\"/a\"] is no label: its prefix part must be non-empty");
}

BOOST_AUTO_TEST_CASE(field_is_spec_or_status) {
  const auto status = rw::read_watcher(with(valid_watcher(), "/spec/field", "\"status\""));
  BOOST_TEST_REQUIRE(status.has_value());
  BOOST_TEST((status->field == rw::watched_field::status));
  for (const auto* bad : {"\"\"", "\"Spec\"", "\"metadata\"", "1"}) {
    BOOST_TEST(problems("/spec/field", bad) ==
               "spec.field is " + std::string(bad) + ", but must be spec or status");
  }
}

BOOST_AUTO_TEST_CASE(receiving_service_must_be_reachable_by_name_and_port) {
  for (const auto* bad : {"\"\"", "\"a.b\"", "\"A\"", "\"-a\"", "[]"}) {
    BOOST_TEST(problems("/spec/serviceInfo/name", bad) ==
               "spec.serviceInfo.name is " + std::string(bad) +
                   ", but must be the name of a Service: 1 to 63 lower case letters, digits and "
                   "'-', beginning and ending with a letter or digit");
    BOOST_TEST(problems("/spec/serviceInfo/namespace", bad) ==
               "spec.serviceInfo.namespace is " + std::string(bad) +
                   ", but must be the name of a namespace: 1 to 63 lower case letters, digits and "
                   "'-', beginning and ending with a letter or digit");
  }
  for (const auto* bad : {"0", "-1", "65536", "\"8082\"", "8082.5E0", "18446744073709551615"}) {
    const auto shown = json::serialize(json::parse(bad));
    BOOST_TEST(problems("/spec/serviceInfo/port", bad) ==
               "spec.serviceInfo.port is " + shown + ", but must be a port between 1 and 65535");
  }
  BOOST_TEST(problems("/spec/serviceInfo/port", "1").empty());
  BOOST_TEST(problems("/spec/serviceInfo/port", "65535").empty());
}

BOOST_AUTO_TEST_CASE(gateway_selector_must_make_sense) {
  BOOST_TEST(problems("/spec/gateway/selector", "[]") ==
             "spec.gateway.selector is [], but must be a label selector");
  BOOST_TEST(problems("/spec/gateway/selector",
                      R"({"matchExpressions": [{"key": "a", "operator": "Exists"},
                                               {"key": "b", "operator": "Like"}]})") ==
             "spec.gateway.selector.matchExpressions[1].operator is \"Like\", but must be In, "
             "NotIn, Exists or DoesNotExist");
  BOOST_TEST(problems("/spec/gateway/selector",
                      R"({"matchExpressions": [{"key": "a", "operator": "In", "values": []}]})") ==
             "spec.gateway.selector.matchExpressions[0] can't be used: for 'in', 'notin' "
             "operators, values set can't be empty");
  BOOST_TEST(problems("/spec/gateway/selector", R"({"matchLabels": {"a": 1}})") ==
             "spec.gateway.selector.matchLabels[\"a\"] can't be used: matchLabels of a label "
             "selector must be strings");
  BOOST_TEST(problems("/spec/gateway/selector", R"({"matchLabels": []})") ==
             "spec.gateway.selector is no label selector: matchLabels of a label selector must be "
             "an object");
}

BOOST_AUTO_TEST_CASE(empty_gateway_selector_selects_every_gateway) {
  const auto read = rw::read_watcher(with(valid_watcher(), "/spec/gateway/selector", "{}"));
  BOOST_TEST_REQUIRE(read.has_value());
  BOOST_TEST(read->gateways.matches(nullptr));
}

BOOST_AUTO_TEST_CASE(missing_field_is_named_with_what_it_must_be) {
  BOOST_TEST(problems("/spec/serviceInfo/port", "absent") ==
             "spec.serviceInfo.port is missing: it must be a port between 1 and 65535");
  BOOST_TEST(problems("/spec/gateway", "absent") ==
             "spec.gateway.selector is missing: it must be a label selector");
}

BOOST_AUTO_TEST_CASE(errors_are_all_reported_at_once) {
  const auto nothing = json::parse(R"({"metadata": {"name": "a", "namespace": "b"}})");
  const auto read = rw::read_watcher(nothing);
  BOOST_TEST_REQUIRE(read.has_error());
  const auto count = [](std::string_view of) {
    std::size_t sentences = 0;
    for (auto at = of.find("is missing"); at != of.npos; at = of.find("is missing", at + 1))
      ++sentences;
    return sentences;
  };
  BOOST_TEST(count(read.error().message) == 9U, read.error().message);
  BOOST_TEST(count(rw::read_watcher(json::value(1)).error().message) == 9U);
  auto two = with(valid_watcher(), "/spec/field", "\"x\"");
  two = with(two, "/spec/serviceInfo/port", "0");
  BOOST_TEST(problems(two) ==
             "spec.field is \"x\", but must be spec or status; spec.serviceInfo.port is 0, but "
             "must be a port between 1 and 65535");
}

BOOST_AUTO_TEST_CASE(text_of_a_user_is_shown_in_moderation) {
  const std::string long_text(500, 'x');
  const auto text = problems("/spec/field", '"' + long_text + '"');
  BOOST_TEST(text == "spec.field is \"" + std::string(79, 'x') + "..., but must be spec or status");
}

BOOST_AUTO_TEST_SUITE_END()
