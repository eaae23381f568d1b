#include "rw/k8s/devserver/roles.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(roles)

namespace {

using namespace rw::k8s::devserver;
namespace json = boost::json;

bool rule_grants(const std::string& rule, const wanted_access& wanted) {
  return grants(json::parse(rule), wanted);
}

const wanted_access list_pods{"list", "", "pods", "", "n", ""};

/// A cluster into which objects are put as they are.
struct fixture {
  void put(const std::string& plural, const rw::k8s::object_key& key, const std::string& text) {
    auto object = json::parse(text);
    object.as_object()["metadata"] = {{"name", key.name}};
    const auto into = in.objects.open(plural + ".rbac.authorization.k8s.io");
    in.objects.put(*into, in.objects.next(key, std::move(object)));
  }

  bool may(const identity& who, const wanted_access& wanted = list_pods) {
    return is_allowed(in, who, wanted);
  }

  cluster in{"c", 10};
};

constexpr auto read_pods =
    R"({"rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]})";

}  // namespace

BOOST_AUTO_TEST_CASE(rule_grants_the_named_access) {
  const std::string rule =
      R"({"verbs": ["list"], "apiGroups": [""], "resources": ["pods", "pods/log"]})";
  BOOST_TEST(rule_grants(rule, list_pods));
  BOOST_TEST(rule_grants(rule, {"list", "", "pods", "log"}));
  BOOST_TEST(!rule_grants(rule, {"get", "", "pods"}));
  BOOST_TEST(!rule_grants(rule, {"list", "apps", "pods"}));
  BOOST_TEST(!rule_grants(rule, {"list", "", "secrets"}));
  BOOST_TEST(!rule_grants(rule, {"list", "", "pods", "status"}));
}

BOOST_AUTO_TEST_CASE(rule_may_have_stars) {
  BOOST_TEST(rule_grants(R"({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})",
                         {"patch", "apps", "deployments", "scale"}));
  const std::string scales = R"({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale"]})";
  BOOST_TEST(rule_grants(scales, {"patch", "apps", "deployments", "scale"}));
  BOOST_TEST(!rule_grants(scales, {"patch", "apps", "deployments"}));
}

BOOST_AUTO_TEST_CASE(rule_may_be_for_some_names_only) {
  const std::string rule =
      R"({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]})";
  BOOST_TEST(rule_grants(rule, {"get", "", "pods", "", "n", "a"}));
  BOOST_TEST(!rule_grants(rule, {"get", "", "pods", "", "n", "b"}));
  BOOST_TEST(!rule_grants(rule, list_pods));
}

BOOST_FIXTURE_TEST_CASE(user_without_a_binding_is_denied, fixture) {
  put("clusterroles", {"", "reader"}, read_pods);
  BOOST_TEST(!may({"u", {"system:authenticated"}}));
  BOOST_TEST(may({"u", {"system:masters"}}));
}

BOOST_FIXTURE_TEST_CASE(cluster_role_binding_is_good_for_all_namespaces, fixture) {
  put("clusterroles", {"", "reader"}, read_pods);
  put("clusterrolebindings", {"", "b"},
      R"({"roleRef": {"kind": "ClusterRole", "name": "reader"},
          "subjects": [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}]})");
  BOOST_TEST(may({"u", {}}));
  BOOST_TEST(may({"v", {"g"}}));
  BOOST_TEST(!may({"g", {"u"}}));
  BOOST_TEST(!may({"u", {}}, {"delete", "", "pods", "", "n", "a"}));
}

BOOST_FIXTURE_TEST_CASE(role_binding_is_good_for_its_namespace, fixture) {
  put("roles", {"n", "reader"}, read_pods);
  put("rolebindings", {"n", "b"},
      R"({"roleRef": {"kind": "Role", "name": "reader"},
          "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "m"}]})");
  const identity account{"system:serviceaccount:m:s", {}};
  BOOST_TEST(may(account));
  BOOST_TEST(!may(account, {"list", "", "pods", "", "other", ""}));
  BOOST_TEST(!may(account, {"list", "", "pods"}));
  BOOST_TEST(!may({"system:serviceaccount:n:s", {}}));
}

BOOST_FIXTURE_TEST_CASE(role_that_is_not_there_grants_nothing, fixture) {
  put("clusterrolebindings", {"", "b"},
      R"({"roleRef": {"kind": "ClusterRole", "name": "none"},
          "subjects": [{"kind": "User", "name": "u"}]})");
  BOOST_TEST(!may({"u", {}}));
  put("clusterrolebindings", {"", "c"},
      R"({"roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
          "subjects": [{"kind": "User", "name": "u"}]})");
  BOOST_TEST(may({"u", {}}));
}

BOOST_AUTO_TEST_SUITE_END()
