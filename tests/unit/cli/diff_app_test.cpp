#include "rw/reactors/cli/diff_app.hpp"

#include "rw/reactors/shared/fleet_verdict.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(diff_app)

using namespace rw;

namespace {

/// `/runtimes` of a landscape of five runtimes, of which runtime a is shown.
boost::json::value runtimes(const std::string& row) {
  std::vector<judged_runtime> all{
      {"a", runtime_condition::ill, status_reason::no_heartbeat},
      {"b", runtime_condition::well},
      {"c", runtime_condition::well},
      {"d", runtime_condition::well},
      {"e", runtime_condition::well},
  };
  const auto verdict = json_of(judge_fleet(all, {}), std::chrono::seconds(1));
  return boost::json::parse(R"({"runtimes": [)" + row + R"(], "verdict": )" +
                            boost::json::serialize(verdict) + "}");
}

}  // namespace

BOOST_AUTO_TEST_CASE(next_step_is_that_of_the_verdict_for_the_reason) {
  BOOST_TEST(cli::next_step_of_diff(
                 runtimes(R"({"kyma": "a", "condition": "ill", "reason": "RuntimeUnreachable"})"),
                 "a") == next_step(status_reason::runtime_unreachable));
  BOOST_TEST(cli::next_step_of_diff(
                 runtimes(R"({"kyma": "a", "condition": "ill", "reason": "NoHeartbeat"})"), "a") ==
             next_step_of_few(status_reason::no_heartbeat));
}

BOOST_AUTO_TEST_CASE(failure_has_the_next_step_of_the_client_or_of_doctor) {
  cli::leader_access way;
  way.kcp.kubeconfig = "kcp.yaml";
  BOOST_TEST(cli::diff_failure({.error = "KCP does not respond", .next = "check it"}, way) ==
             "KCP does not respond\n  fix: check it");
  BOOST_TEST(cli::diff_failure({.error = "no manager holds Lease a/b", .no_way = true}, way) ==
             "no leader: no manager holds Lease a/b\n  fix: see the manager's Deployment, its pods "
             "and their logs, or apply it: kubectl --kubeconfig kcp.yaml apply -k deploy/manager");
  BOOST_TEST(cli::diff_failure({.error = "pod-2 leads", .no_way = true, .other_leads = true},
                               way) == "pod-2 leads");
}

BOOST_AUTO_TEST_CASE(next_step_without_a_reason_is_doctor) {
  for (const auto* row : {"", R"({"kyma": "a", "condition": "well"})",
                          R"({"kyma": "a", "condition": "underWay", "reason": "WouldWrite"})"}) {
    BOOST_TEST(cli::next_step_of_diff(runtimes(row), "a") == "runtime-watcher doctor a", row);
  }
}

BOOST_AUTO_TEST_SUITE_END()
