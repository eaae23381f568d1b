#include "sandbox.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(default_objects)

using namespace rw;
using namespace rw::conformance;

BOOST_FIXTURE_TEST_CASE(api_server_is_a_service, sandbox) {
  const auto service = ok(api.get(services, {"default", "kubernetes"}));
  BOOST_TEST(text(service, "/metadata/labels/component") == "apiserver");
  BOOST_TEST(text(service, "/spec/clusterIP") == "10.0.0.1");
  BOOST_TEST(text(service, "/spec/ports/0/name") == "https");
  const auto endpoints =
      parse(ok(api.raw("GET", "/api/v1/namespaces/default/endpoints/kubernetes", "", "")));
  BOOST_TEST(has(endpoints, "/subsets/0/addresses/0/ip"));
  BOOST_TEST(text(endpoints, "/subsets/0/ports/0/name") == "https");
}

BOOST_FIXTURE_TEST_CASE(priority_classes_of_the_system_exist, sandbox) {
  const std::string path = "/apis/scheduling.k8s.io/v1/priorityclasses/";
  const auto critical = parse(ok(api.raw("GET", path + "system-cluster-critical", "", "")));
  BOOST_TEST(text(critical, "/value") == "2000000000");
  BOOST_TEST(text(parse(ok(api.raw("GET", path + "system-node-critical", "", ""))), "/value") ==
             "2000001000");
}

BOOST_FIXTURE_TEST_CASE(roles_of_users_exist, sandbox) {
  const auto role = [&](std::string_view name) {
    return ok(api.get(cluster_roles, {"", std::string(name)}));
  };
  BOOST_TEST(text(role("cluster-admin"), "/rules/0/verbs/0") == "*");
  for (const auto* const name : {"admin", "edit", "view"}) {
    const auto of_users = role(name);
    BOOST_TEST(text(of_users, "/metadata/labels/kubernetes.io~1bootstrapping") == "rbac-defaults");
    BOOST_TEST(text(of_users,
                    "/aggregationRule/clusterRoleSelectors/0/matchLabels/"
                    "rbac.authorization.k8s.io~1aggregate-to-" +
                        std::string(name)) == "true");
  }
}

BOOST_FIXTURE_TEST_CASE(api_services_are_listed, sandbox) {
  const auto of_apps =
      parse(ok(api.raw("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps", "", "")));
  BOOST_TEST(text(of_apps, "/spec/group") == "apps");
  BOOST_TEST(text(of_apps, "/status/conditions/0/status") == "True");
}

BOOST_FIXTURE_TEST_CASE(default_object_can_be_changed, sandbox) {
  const std::string path = "/api/v1/namespaces/default/services/kubernetes";
  const auto before = parse(ok(api.raw("GET", path, "", "")));
  const auto label = server.unique("l");
  const auto after =
      parse(ok(api.raw("PATCH", path, "application/merge-patch+json",
                       R"({"metadata": {"labels": {"changed": ")" + label + "\"}}}")));
  BOOST_TEST(version(after) > version(before));
  BOOST_TEST(text(parse(ok(api.raw("GET", path, "", ""))), "/metadata/labels/changed") == label);
}

BOOST_FIXTURE_TEST_CASE(templates_and_revisions_are_stored, sandbox) {
  const k8s::resource_type templates{{"", "v1", "PodTemplate"}, "podtemplates", true};
  const auto made = create(
      templates, object(templates, "a", {{"template", {{"spec", simple_pod("a").at("spec")}}}}));
  BOOST_TEST(text(made, "/template/spec/restartPolicy") == "Always");
  const k8s::resource_type revisions{
      {"apps", "v1", "ControllerRevision"}, "controllerrevisions", true};
  const auto revision =
      create(revisions, object(revisions, "a", {{"revision", 3}, {"data", {{"any", {1, "x"}}}}}));
  BOOST_TEST(revision.at("data") == parse(R"({"any": [1, "x"]})"));
}

BOOST_AUTO_TEST_SUITE_END()
