#include "rw/reactors/shared/fleet_verdict.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <map>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(fleet_verdict)

using namespace rw;
using namespace std::chrono_literals;

namespace {

const std::chrono::system_clock::time_point day{
    std::chrono::sys_days{std::chrono::year{2026} / 3 / 1}};

std::vector<judged_runtime> fleet(std::size_t all, std::size_t ill, std::size_t unknown = 0,
                                  status_reason reason = status_reason::runtime_unreachable) {
  std::vector<judged_runtime> out;
  for (std::size_t i = 0; i < all; ++i) {
    const auto condition = i < ill             ? runtime_condition::ill
                           : i < ill + unknown ? runtime_condition::unknown
                                               : runtime_condition::well;
    out.push_back(
        {"runtime-" + std::to_string(i), condition, i < ill ? reason : status_reason::none});
  }
  return out;
}

fleet_level level(std::size_t all, std::size_t ill, std::size_t unknown = 0) {
  return judge_fleet(fleet(all, ill, unknown), {}).level;
}

runtime_condition condition_of(const runtime_observation& of) {
  return judge("a", of, day).condition;
}

const std::vector<fleet_fault> paused{{"RolloutPaused", "the roll-out of watcher is paused", "x"}};

}  // namespace

BOOST_AUTO_TEST_CASE(level_is_by_the_share_of_ill_runtimes) {
  using enum fleet_level;
  BOOST_TEST(level(20, 0) == well);
  BOOST_TEST(level(5000, 5) == well);
  BOOST_TEST(level(5000, 50) == well);
  BOOST_TEST(level(5000, 51) == degraded);
  BOOST_TEST(level(5000, 250) == degraded);
  BOOST_TEST(level(5000, 251) == outage);
  BOOST_TEST(level(20, 15) == outage);
  BOOST_TEST(level(8, 1) == degraded, "one of few is no outage");
  BOOST_TEST(level(1, 1) == outage);
  BOOST_TEST(level(0, 0) == well);
}

BOOST_AUTO_TEST_CASE(few_ill_runtimes_are_named_while_the_level_is_well) {
  const auto verdict = judge_fleet(fleet(1000, 7), {});
  BOOST_TEST(verdict.message ==
             "well: 7 of 1000 runtimes are ill (0.7 %): runtime-0, runtime-1, runtime-2, "
             "runtime-3, runtime-4, ...");
}

BOOST_AUTO_TEST_CASE(operator_that_accepts_no_events_degrades_and_is_named) {
  auto all = fleet(5, 5, 0, status_reason::events_wait);
  BOOST_TEST(judge_fleet(all, {}).message ==
             "degraded: events of 5 of 5 runtimes wait for their operators");
  for (auto& runtime : all) runtime.waits_for = "klm";
  auto verdict = judge_fleet(all, {});
  BOOST_TEST(verdict.level == fleet_level::degraded);
  BOOST_TEST(verdict.message == "degraded: events of 5 of 5 runtimes wait for klm");
  BOOST_TEST(text_of(verdict).find("EventsWait: 5 (runtime-0, runtime-1, runtime-2, runtime-3, "
                                   "runtime-4): klm does not accept them\n") != std::string::npos);
  BOOST_TEST(verdict.count(runtime_condition::ill) == 5u);
  // Another operator of one runtime is a cause of its own.
  all[4].waits_for = "kim";
  verdict = judge_fleet(all, {});
  BOOST_TEST(verdict.message == "degraded: events of 5 of 5 runtimes wait for klm, kim");
  BOOST_REQUIRE(verdict.causes.size() == 2u);
  BOOST_TEST(verdict.causes[1].runtimes == std::vector<std::string>{"runtime-4"},
             boost::test_tools::per_element());
  // What is cut off is an outage whatever waits besides.
  for (std::size_t i : {0, 1}) {
    all[i].reason = status_reason::no_heartbeat;
    all[i].waits_for.clear();
  }
  verdict = judge_fleet(all, {});
  BOOST_TEST(verdict.message ==
             "outage: 2 of 5 runtimes are ill (40 %); events of 3 of 5 runtimes wait for klm, kim");
}

BOOST_AUTO_TEST_CASE(next_step_is_about_the_runtimes_as_long_as_most_are_without_the_fault) {
  for (const auto reason : {status_reason::no_heartbeat, status_reason::gateway_unreachable}) {
    for (const auto& [ill, part] : {std::pair(1, "On these: kubectl -n kyma-system get pods"),
                                    std::pair(2, "On these: "), std::pair(3, "see the gateway")}) {
      const auto verdict = judge_fleet(fleet(5, ill, 0, reason), {});
      BOOST_TEST(verdict.causes.at(0).next.find(part) != std::string::npos,
                 verdict.causes.at(0).next);
      BOOST_TEST(verdict.next_step_of(reason) == verdict.causes.at(0).next);
    }
  }
}

BOOST_AUTO_TEST_CASE(runtimes_that_nobody_has_looked_at_make_it_unknown) {
  using enum fleet_level;
  BOOST_TEST(level(5000, 0, 251) == unknown);
  BOOST_TEST(level(5000, 0, 250) == well);
  BOOST_TEST(level(5000, 200, 100) == unknown);
  BOOST_TEST(level(5000, 251, 4000) == outage);
  BOOST_TEST(level(3, 0, 1) == well, "one that is new");
  BOOST_TEST(level(3, 0, 3) == unknown);
  auto starting = fleet(20, 0);
  for (auto& one : starting) one.condition = runtime_condition::under_way;
  const auto verdict = judge_fleet(starting, {});
  BOOST_TEST(verdict.level == unknown);
  BOOST_TEST(verdict.message == "unknown: 0 of 20 runtimes are well; 20 are under way");
}

BOOST_AUTO_TEST_CASE(numbers_agree_with_their_words) {
  BOOST_TEST(judge_fleet(fleet(1, 0), {}).message == "well: 1 of 1 runtime is well");
  BOOST_TEST(judge_fleet(fleet(1, 1), {}).message == "outage: 1 of 1 runtime is ill (100 %)");
  BOOST_TEST(judge_fleet(fleet(8, 1), {}).message == "degraded: 1 of 8 runtimes is ill (13 %)");
  BOOST_TEST(judge_fleet(fleet(30, 0, 1), {}).message ==
             "well: 29 of 30 runtimes are well; 1 is not looked at yet");
}

BOOST_AUTO_TEST_CASE(fault_of_the_landscape_degrades_it) {
  const auto verdict = judge_fleet(fleet(20, 0), paused);
  BOOST_TEST(verdict.level == fleet_level::degraded);
  BOOST_TEST(verdict.message ==
             "degraded: 20 of 20 runtimes are well; the roll-out of watcher is paused");
  BOOST_TEST(judge_fleet(fleet(20, 15), paused).level == fleet_level::outage);
}

BOOST_AUTO_TEST_CASE(causes_are_grouped_with_the_most_frequent_first) {
  auto all = fleet(40, 3, 0, status_reason::no_heartbeat);
  for (int i = 9; i > 0; --i) {
    all.push_back(
        {"x-" + std::to_string(i), runtime_condition::ill, status_reason::access_missing});
  }
  all.push_back({"gone", runtime_condition::left_out, status_reason::none});
  const auto verdict = judge_fleet(all, paused);
  BOOST_TEST(verdict.expected() == 49u);
  BOOST_TEST(verdict.message.starts_with(
      "outage: 12 of 49 runtimes are ill (24 %); 1 is left out (being deleted, or left alone); "));
  BOOST_REQUIRE(verdict.causes.size() == 3u);
  BOOST_TEST(verdict.causes[0].reason == "AccessMissing");
  BOOST_TEST(verdict.causes[0].count == 9u);
  const std::vector<std::string> first{"x-1", "x-2", "x-3", "x-4", "x-5"};
  BOOST_TEST(verdict.causes[0].runtimes == first, boost::test_tools::per_element());
  BOOST_TEST(verdict.causes[1].reason == "NoHeartbeat");
  BOOST_TEST(verdict.causes[2].reason == "RolloutPaused");
  BOOST_TEST(
      text_of(verdict).find("  AccessMissing: 9 (x-1, x-2, x-3, x-4, x-5, ...)\n    see who") !=
      std::string::npos);
}

BOOST_AUTO_TEST_CASE(condition_is_that_of_installation_and_heartbeats) {
  using enum runtime_condition;
  using enum status_reason;
  const auto installed = runtime_state::installed;
  BOOST_TEST(condition_of({}) == unknown);
  BOOST_TEST(condition_of({.is_left_out = true, .installation = runtime_state::failed}) ==
             left_out);
  BOOST_TEST(condition_of({.installation = installed}) == well);
  BOOST_TEST(condition_of({.installation = installed, .heartbeats = liveness::live}) == well);
  BOOST_TEST(condition_of({.installation = installed, .heartbeats = liveness::unknown}) ==
             under_way);
  for (const auto state : {liveness::degraded, liveness::silent}) {
    const auto one = judge(
        "a", {.installation = installed, .heartbeats = state, .heartbeat_reason = no_heartbeat},
        day);
    BOOST_TEST(one.condition == ill);
    BOOST_TEST(one.reason == no_heartbeat);
  }
  const auto waiting = judge("a",
                             {.installation = installed,
                              .heartbeats = liveness::degraded,
                              .heartbeat_reason = events_wait,
                              .waits_for = "klm"},
                             day);
  BOOST_TEST(waiting.waits_for == "klm");
  BOOST_TEST(condition_of({.installation = runtime_state::unreachable,
                           .reason = runtime_unreachable,
                           .heartbeats = liveness::live}) == ill);
}

BOOST_AUTO_TEST_CASE(pods_that_do_not_start_in_time_are_ill) {
  runtime_observation starting{.installation = runtime_state::not_ready,
                               .reason = status_reason::container_creating,
                               .since = day - 9min};
  BOOST_TEST(condition_of(starting) == runtime_condition::under_way);
  starting.since = day - 10min;
  BOOST_TEST(condition_of(starting) == runtime_condition::ill);
  starting.since = day;
  starting.reason = status_reason::crash_loop_back_off;
  BOOST_TEST(condition_of(starting) == runtime_condition::ill);
}

BOOST_AUTO_TEST_CASE(rollout_is_a_fault_while_it_is_paused) {
  const auto rollout = [](const char* status) {
    return boost::json::parse(R"({"metadata": {"name": "watcher"}, "status": )" +
                              std::string(status) + "}");
  };
  BOOST_TEST(!fault_of_rollout(rollout(R"({"phase": "Completed"})")));
  const auto fault = fault_of_rollout(
      rollout(R"({"phase": "Paused", "reason": "CanaryFailed", "message": "runtime-3 crashes"})"));
  BOOST_REQUIRE(fault.has_value());
  BOOST_TEST(fault->message ==
             "the roll-out of watcher is paused (CanaryFailed): runtime-3 crashes");
}

BOOST_AUTO_TEST_CASE(rollout_is_a_fault_while_it_is_stalled) {
  const auto stalled = [](const char* status, const std::string& reason) {
    return boost::json::parse(
        R"({"metadata": {"name": "watcher"}, "status": {"phase": "Waves", "message": "why",
            "conditions": [{"type": "Stalled", "status": ")" +
        std::string(status) + R"(", "reason": ")" + reason + R"("}]}})");
  };
  BOOST_TEST(!fault_of_rollout(stalled("False", "Waves")));
  for (const auto& [reason, next] :
       std::map<std::string, std::string>{{"ContentLost", "rollout undo watcher --to-sources"},
                                          {"ContentNotStored", "the state namespace"}}) {
    const auto fault = fault_of_rollout(stalled("True", reason));
    BOOST_REQUIRE(fault.has_value());
    BOOST_TEST(fault->reason == "RolloutStalled");
    BOOST_TEST(fault->message == "the roll-out of watcher is stalled (" + reason + "): why");
    BOOST_TEST(fault->next.find(next) != std::string::npos, fault->next);
  }
}

BOOST_AUTO_TEST_CASE(verdict_is_the_same_when_it_is_read) {
  const auto made = judge_fleet(fleet(40, 12, 1), paused);
  const boost::json::object response{{"verdict", json_of(made, 60s)}};
  const auto read = read_verdict(boost::json::parse(boost::json::serialize(response)));
  BOOST_TEST(read.level == made.level);
  BOOST_TEST(text_of(read) == text_of(made));
  BOOST_TEST(read.counts == made.counts, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(verdict_that_is_old_or_absent_is_none) {
  const auto well = judge_fleet(fleet(2, 0), {});
  const auto old = read_verdict(boost::json::object{{"verdict", json_of(well, 61s)}});
  BOOST_TEST(old.level == fleet_level::unknown);
  BOOST_TEST(old.message == "unknown: no leader: its verdict is 61 s old");
  for (const auto* const text : {"{}", "[]", R"({"verdict": 1})"}) {
    const auto none = read_verdict(boost::json::parse(text));
    BOOST_TEST(none.level == fleet_level::unknown);
    BOOST_TEST(none.message.starts_with("unknown: no leader"));
  }
  BOOST_TEST(read_verdict(boost::json::parse(R"({"verdict": {"level": "fine"}})")).level ==
             fleet_level::unknown);
}

BOOST_AUTO_TEST_CASE(next_step_names_the_likeliest_cause_first) {
  const auto listener = rw::next_step(rw::status_reason::listener_unavailable);
  const auto slice = listener.find("EndpointSlice of the manager's Service for events");
  BOOST_TEST(slice != listener.npos);
  BOOST_TEST(slice < listener.find("stand by"));
  BOOST_TEST(listener.find("stand by") < listener.find("VirtualService"));
  const auto terminating = rw::next_step(rw::status_reason::namespace_terminating);
  BOOST_TEST(terminating.find("being deleted") != terminating.npos);
  BOOST_TEST(terminating.find("kubeconfig") == terminating.npos);
}

BOOST_AUTO_TEST_SUITE_END()
