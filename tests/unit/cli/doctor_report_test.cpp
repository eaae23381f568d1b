#include "rw/reactors/cli/doctor_report.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/invalid_sources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

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

BOOST_AUTO_TEST_CASE(line_that_sums_others_up_counts_only_those_without_a_line) {
  const finding ill{finding_state::failed, "runtime", "a: b"};
  finding sum{.state = finding_state::failed, .check = "runtimes", .message = "18 of 20 are"};
  sum.checks = 0;
  BOOST_TEST(summary_of({ill, ill, sum}) == "2 checks: 0 proven, 2 failed, 0 not proven\n");
  sum.checks = 7;
  BOOST_TEST(summary_of({ill, sum}) == "8 checks: 0 proven, 8 failed, 0 not proven\n");
}

BOOST_AUTO_TEST_CASE(count_of_runtimes_in_order_agrees_with_its_verb) {
  BOOST_TEST(text_of_order(1, 1) == "1 of 1 is in order");
  BOOST_TEST(text_of_order(1, 2) == "1 of 2 is in order");
  BOOST_TEST(text_of_order(0, 1) == "0 of 1 are in order");
  BOOST_TEST(text_of_order(18, 20) == "18 of 20 are in order");
}

BOOST_AUTO_TEST_CASE(lease_of_another_name_is_doubted_before_the_manager) {
  const auto usual = lease_remedy({"kcp-system", "runtime-watcher-manager"});
  BOOST_TEST(usual ==
             "see the manager's Deployment, its pods and their logs, or apply it: kubectl apply -k "
             "deploy/manager");
  for (const k8s::object_key& lease :
       {k8s::object_key{"kcp-system", "foo"}, k8s::object_key{"foo", "runtime-watcher-manager"}}) {
    const auto other = lease_remedy(lease);
    BOOST_TEST(other.starts_with("check --lease-namespace and --lease-name: the manager's Lease "
                                 "is kcp-system/runtime-watcher-manager by default; if " +
                                 k8s::to_string(lease) + " is right, see the manager's"),
               other);
    BOOST_TEST(other.find("kubectl apply") == other.npos, "it would install a second manager");
  }
}

namespace {

judged_runtime judged(const char* kyma, runtime_condition condition) {
  const bool ill = condition == runtime_condition::ill;
  return {kyma, condition, ill ? status_reason::access_missing : status_reason::none};
}

}  // namespace

BOOST_AUTO_TEST_CASE(verdict_on_named_runtimes_is_never_outage) {
  using condition = runtime_condition;
  const auto of = [](std::vector<judged_runtime> runtimes) { return judge_named(runtimes, {}); };
  const auto alone = of({judged("b", condition::ill)});
  BOOST_TEST(alone.level == fleet_level::degraded);
  BOOST_TEST(alone.message == "degraded: 1 of 1 named runtime is ill: b");
  BOOST_REQUIRE(alone.causes.size() == 1u);
  BOOST_TEST(alone.causes[0].reason == "AccessMissing");
  const auto all = of({judged("b", condition::ill), judged("a", condition::ill)});
  BOOST_TEST(all.level == fleet_level::degraded);
  BOOST_TEST(all.message == "degraded: 2 of 2 named runtimes are ill: a, b");
  BOOST_TEST(of({judged("a", condition::well), judged("b", condition::well)}).message ==
             "well: 2 of 2 named runtimes are well");
  BOOST_TEST(of({judged("a", condition::well), judged("b", condition::ill)}).message ==
             "degraded: 1 of 2 named runtimes is ill: b");
  BOOST_TEST(of({judged("a", condition::unknown), judged("b", condition::ill)}).message ==
             "degraded: 1 of 2 named runtimes is ill: b; 1 not proven");
  BOOST_TEST(of({judged("a", condition::unknown)}).message ==
             "unknown: 0 of 1 named runtime are well; 1 not proven");
}

BOOST_AUTO_TEST_CASE(verdict_on_named_runtimes_has_the_faults_of_the_landscape) {
  const std::vector<judged_runtime> well{judged("a", runtime_condition::well)};
  const std::vector<fleet_fault> faults{{"RolloutPaused", "watcher is paused", "x"},
                                        {"RightsMissing", "it may not", "y"}};
  const auto verdict = judge_named(well, faults);
  BOOST_TEST(verdict.level == fleet_level::degraded);
  BOOST_TEST(verdict.message ==
             "degraded: 1 of 1 named runtime is well; watcher is paused, and 1 more");
  BOOST_TEST(verdict.causes.size() == 2u);
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
  BOOST_TEST(!has_invalid_sources({*found}));
}

BOOST_AUTO_TEST_CASE(invalid_sources_are_told_from_other_faults_of_bootstrappers) {
  bootstrapper::invalid_sources invalid;
  invalid.note({{"metadata", {{"name", "skr"}}},
                {"status",
                 {{"conditions", boost::json::array{{{"type", "Compatible"},
                                                     {"status", "False"},
                                                     {"reason", "Invalid"},
                                                     {"message", "not JSON"}}}}}}});
  const auto fault = invalid.faults().at(0);
  const finding found{finding_state::failed, "bootstrappers", fault.message, fault.next,
                      fault.reason};
  BOOST_TEST(has_invalid_sources({found}));
  BOOST_TEST(!has_invalid_sources({}));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::doctor_report_test
