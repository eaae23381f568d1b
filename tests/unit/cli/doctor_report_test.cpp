#include "rw/reactors/cli/doctor_report.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <stdexcept>

namespace rw::doctor_report_test {
BOOST_AUTO_TEST_SUITE(doctor_report)

using namespace rw::cli;

BOOST_AUTO_TEST_CASE(placeholders_are_hosts_below_example_com) {
  for (const auto* host : {"example.com", "kcp.example.com", "listener.kcp.example.com"}) {
    BOOST_TEST(is_placeholder(host), host);
  }
  for (const auto* host :
       {"", "com", "anexample.com", "example.com.kyma.ondemand.com", "kcp.local"}) {
    BOOST_TEST(!is_placeholder(host), host);
  }
}

BOOST_AUTO_TEST_CASE(rules_of_roles_are_rights_one_by_one) {
  const auto rights = rights_of(R"(
apiVersion: v1
kind: ServiceAccount
metadata: {name: a, namespace: home}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: home}
rules:
  - {apiGroups: [""], resources: [secrets, pods/log], verbs: [get], resourceNames: [x, z]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
rules:
  - {apiGroups: [g.io], resources: [things], verbs: [list, watch]}
)");
  std::string all;
  for (const auto& each : rights) all += text_of(each) + "\n";
  BOOST_TEST(all ==
             "get secrets \"x\" in namespace home\n"
             "get secrets \"z\" in namespace home\n"
             "get pods/log \"x\" in namespace home\n"
             "get pods/log \"z\" in namespace home\n"
             "list things.g.io in all namespaces\n"
             "watch things.g.io in all namespaces\n");
  BOOST_CHECK_THROW(rights_of("kind: [unclosed"), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(review_asks_for_one_right) {
  const access_right right{"patch", "g.io", "things", "status", "n", "x"};
  BOOST_TEST(boost::json::serialize(review_of(right)) ==
             R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",)"
             R"("spec":{"resourceAttributes":{"verb":"patch","group":"g.io","resource":"things",)"
             R"("subresource":"status","namespace":"n","name":"x"}}})");
  BOOST_TEST(is_allowed(R"({"status":{"allowed":true}})"));
  for (const auto* no :
       {R"({"status":{"allowed":false}})", R"({"status":{}})", "{}", "no JSON", ""}) {
    BOOST_TEST(!is_allowed(no), no);
  }
}

BOOST_AUTO_TEST_CASE(finding_is_a_line_and_its_remedy_another) {
  const finding well{finding_state::proven, "access", "KCP responds", ""};
  const finding ill{finding_state::failed, "runtime", "a: b", "see this"};
  BOOST_TEST(text_of(well) == "proven      access        KCP responds\n");
  BOOST_TEST(text_of(ill) ==
             "FAILED      runtime       a: b\n"
             "                          fix: see this\n");
  BOOST_TEST(text_of({finding_state::not_proven, "rights", "r", ""}) ==
             "not proven  rights        r\n");
  BOOST_TEST(boost::json::serialize(json_of(well)) ==
             R"({"state":"proven","check":"access","message":"KCP responds"})");
  BOOST_TEST(
      boost::json::serialize(json_of({finding_state::failed, "runtime", "a: R: b", "", "R"})) ==
      R"({"state":"failed","check":"runtime","message":"a: R: b","reason":"R"})");
  BOOST_TEST(summary_of({well, ill, well}) == "3 checks: 2 proven, 1 failed, 0 not proven\n");
  BOOST_TEST(summary_of({well}) == "1 check: 1 proven, 0 failed, 0 not proven\n");
}

BOOST_AUTO_TEST_CASE(deleted_bootstrapper_that_nothing_releases_is_found_with_the_command) {
  const boost::json::value deleted{
      {"metadata",
       {{"name", "skr"},
        {"deletionTimestamp", "2026-01-01T00:00:00Z"},
        {"finalizers", boost::json::array{"operator.kyma-project.io/runtime-bootstrapper"}}}}};
  const auto at = *k8s::parse_rfc3339("2026-01-01T00:00:00Z");
  const auto soon = at + std::chrono::minutes(1);
  BOOST_TEST(!check_orphan(deleted, true, soon).has_value());
  const auto found = check_orphan(deleted, false, soon);
  BOOST_REQUIRE(found.has_value());
  BOOST_TEST(
      found->message ==
      "RuntimeBootstrapper skr is deleted, and the manager, in mode off, may not release it");
  BOOST_TEST(found->remedy.find(": kubectl -n kcp-system patch runtimebootstrappers skr ") !=
             std::string::npos);
  BOOST_TEST(check_orphan(deleted, true, at + std::chrono::minutes(3)).has_value());
  auto released = deleted;
  released.at("metadata").as_object().erase("finalizers");
  BOOST_TEST(!check_orphan(released, false, soon).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::doctor_report_test
