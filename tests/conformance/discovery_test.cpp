#include "sandbox.hpp"
#include <algorithm>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(discovery)

using namespace rw;
using namespace rw::conformance;

namespace {

bool names_verb(const json& resource, std::string_view verb) {
  return std::ranges::any_of(resource.at("verbs").as_array(),
                             [&](const json& one) { return one.as_string() == verb; });
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(core_group_is_listed, sandbox) {
  const auto versions = parse(ok(api.raw("GET", "/api", "", "")));
  BOOST_TEST(text(versions, "/kind") == "APIVersions");
  BOOST_TEST(versions.at("versions") == parse(R"(["v1"])"));
}

BOOST_FIXTURE_TEST_CASE(groups_are_listed, sandbox) {
  const auto groups = parse(ok(api.raw("GET", "/apis", "", "")));
  BOOST_TEST(text(groups, "/kind") == "APIGroupList");
  for (const auto* name : {"apps", "apiextensions.k8s.io", "coordination.k8s.io",
                           "admissionregistration.k8s.io", "rbac.authorization.k8s.io"}) {
    const auto* group = element(groups, "/groups", "name", name);
    BOOST_TEST_REQUIRE(group != nullptr);
    BOOST_TEST(text(*group, "/preferredVersion/groupVersion") == name + std::string("/v1"));
  }
}

BOOST_FIXTURE_TEST_CASE(group_is_read_alone, sandbox) {
  const auto group = parse(ok(api.raw("GET", "/apis/apps", "", "")));
  BOOST_TEST(text(group, "/kind") == "APIGroup");
  BOOST_TEST(text(group, "/name") == "apps");
  BOOST_TEST(text(group, "/preferredVersion/version") == "v1");
}

BOOST_FIXTURE_TEST_CASE(resources_tell_their_names_and_verbs, sandbox) {
  const auto core = parse(ok(api.raw("GET", "/api/v1", "", "")));
  BOOST_TEST(text(core, "/kind") == "APIResourceList");
  BOOST_TEST(text(core, "/groupVersion") == "v1");
  const auto* found = element(core, "/resources", "name", "configmaps");
  BOOST_TEST_REQUIRE(found != nullptr);
  BOOST_TEST(text(*found, "/kind") == "ConfigMap");
  BOOST_TEST(text(*found, "/namespaced") == "true");
  BOOST_TEST(found->at("shortNames") == parse(R"(["cm"])"));
  for (const auto* verb :
       {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}) {
    BOOST_TEST(names_verb(*found, verb));
  }
  const auto* spaces = element(core, "/resources", "name", "namespaces");
  BOOST_TEST_REQUIRE(spaces != nullptr);
  BOOST_TEST(text(*spaces, "/namespaced") == "false");
  BOOST_TEST(!names_verb(*spaces, "deletecollection"));
}

BOOST_FIXTURE_TEST_CASE(subresources_are_listed, sandbox) {
  const auto apps = parse(ok(api.raw("GET", "/apis/apps/v1", "", "")));
  const auto* status = element(apps, "/resources", "name", "deployments/status");
  BOOST_TEST_REQUIRE(status != nullptr);
  BOOST_TEST(text(*status, "/kind") == "Deployment");
  BOOST_TEST(!names_verb(*status, "create"));
  const auto* scale = element(apps, "/resources", "name", "deployments/scale");
  BOOST_TEST_REQUIRE(scale != nullptr);
  BOOST_TEST(text(*scale, "/kind") == "Scale");
  BOOST_TEST(text(*scale, "/group") == "autoscaling");
}

BOOST_FIXTURE_TEST_CASE(custom_kind_is_discovered, sandbox) {
  const auto& type = gadgets();
  eventually([&] {
    const auto groups = parse(ok(api.raw("GET", "/apis", "", "")));
    return element(groups, "/groups", "name", type.gvk.group) != nullptr;
  });
  const auto found = ok(api.resources(type.gvk.api_version()));
  BOOST_TEST(std::ranges::any_of(found, [&](const auto& one) { return one.type == type; }));
}

BOOST_FIXTURE_TEST_CASE(names_and_categories_of_a_custom_kind_are_discovered, sandbox) {
  auto crd = definition(server.unique("d") + ".example.com", "Thing", "things",
                        parse(R"({"type": "object"})"));
  crd = with(std::move(crd), "/spec/names",
             parse(R"({"kind": "Thing", "plural": "things", "singular": "thing",
                       "shortNames": ["thg"], "categories": ["all"]})"));
  crd = with(std::move(crd), "/spec/scope", "Cluster");
  const auto things = define(crd);
  const auto listed = parse(ok(api.raw("GET", "/apis/" + things.gvk.api_version(), "", "")));
  const auto* found = element(listed, "/resources", "name", "things");
  BOOST_TEST_REQUIRE(found != nullptr);
  BOOST_TEST(text(*found, "/singularName") == "thing");
  BOOST_TEST(text(*found, "/namespaced") == "false");
  BOOST_TEST(found->at("shortNames") == parse(R"(["thg"])"));
  BOOST_TEST(found->at("categories") == parse(R"(["all"])"));
}

BOOST_FIXTURE_TEST_CASE(group_version_that_is_not_served_has_no_resources, sandbox) {
  const auto why = failed(api.resources("apps/v7"));
  BOOST_TEST(why.is(k8s::errc::not_found));
}

BOOST_FIXTURE_TEST_CASE(our_client_finds_versions_and_kinds, sandbox) {
  const auto found = ok(api.find({"apps", "v1", "Deployment"}));
  BOOST_TEST((found == deployments));
  const auto served = ok(api.versions("coordination.k8s.io"));
  BOOST_TEST_REQUIRE(!served.empty());
  BOOST_TEST(served.front() == "v1");
  BOOST_TEST(ok(api.versions("none.example.com")).empty());
}

BOOST_FIXTURE_TEST_CASE(server_tells_its_version, sandbox) {
  const auto told = ok(api.server_version());
  BOOST_TEST(told.first == 1u);
  BOOST_TEST(told.second >= 20u);
}

BOOST_FIXTURE_TEST_CASE(server_reports_its_health, sandbox) {
  for (const auto* probe : {"/readyz", "/livez", "/healthz"}) {
    BOOST_TEST(ok(api.raw("GET", probe, "", "")) == "ok");
  }
}

BOOST_FIXTURE_TEST_CASE(openapi_v2_describes_how_fields_are_merged, sandbox) {
  const auto document = parse(ok(api.raw("GET", "/openapi/v2", "", "")));
  const auto& types = document.at("definitions").as_object();
  const auto extension = [&](std::string_view type, std::string_view field, std::string_view name) {
    const auto& properties = types.at(type).at("properties").as_object();
    return text(properties.at(field), "/x-kubernetes-" + std::string(name));
  };
  BOOST_TEST(extension("io.k8s.api.apps.v1.DeploymentSpec", "strategy", "patch-strategy") ==
             "retainKeys");
  BOOST_TEST(extension("io.k8s.api.core.v1.PodSpec", "volumes", "patch-strategy") ==
             "merge,retainKeys");
  BOOST_TEST(extension("io.k8s.api.core.v1.ServiceSpec", "ports", "patch-merge-key") == "port");
  BOOST_TEST(extension("io.k8s.api.core.v1.ServiceSpec", "ports", "list-type") == "map");
  const auto& port = types.at("io.k8s.api.core.v1.ServicePort").at("properties");
  BOOST_TEST(text(port, "/port/type") == "integer");
  BOOST_TEST(text(types.at("io.k8s.api.core.v1.PodSpec"), "/properties/containers/items/$ref") ==
             "#/definitions/io.k8s.api.core.v1.Container");
}

BOOST_FIXTURE_TEST_CASE(openapi_v2_describes_a_custom_kind, sandbox) {
  const auto crd = definition(server.unique("o") + ".example.com", "Thing", "things", parse(R"({
          "type": "object", "properties": {"spec": {"type": "object", "properties": {
              "size": {"type": "integer", "format": "int32", "maximum": 7},
              "part": {"x-kubernetes-int-or-string": true}}}}})"));
  const auto things = define(crd);
  json found;
  eventually([&] {
    const auto document = parse(ok(api.raw("GET", "/openapi/v2", "", "")));
    for (const auto& [name, type] : document.at("definitions").as_object()) {
      if (text(type, "/x-kubernetes-group-version-kind/0/group") != things.gvk.group) continue;
      if (text(type, "/x-kubernetes-group-version-kind/0/kind") == "Thing") found = type;
    }
    return found.is_object();
  });
  BOOST_TEST(text(found, "/properties/spec/properties/size/type") == "integer");
  BOOST_TEST(text(found, "/properties/spec/properties/part/x-kubernetes-int-or-string") == "true");
  BOOST_TEST(text(found, "/properties/kind/type") == "string");
}

BOOST_FIXTURE_TEST_CASE(versions_of_a_custom_kind_are_reported_the_newest_first, sandbox) {
  auto crd = definition(server.unique("v") + ".example.com", "Thing", "things",
                        parse(R"({"type": "object"})"));
  auto& all_versions = crd.at_pointer("/spec/versions").as_array();
  for (const auto* name : {"v1beta1", "v2", "v2alpha1", "v10"}) {
    auto another = with(with(all_versions.front(), "/name", name), "/storage", false);
    all_versions.push_back(std::move(another));
  }
  const auto things = define(crd);
  const auto served = ok(api.versions(things.gvk.group));
  BOOST_TEST(served == (std::vector<std::string>{"v10", "v2", "v1", "v1beta1", "v2alpha1"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
