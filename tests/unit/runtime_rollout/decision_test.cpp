// The one decision on a roll-out.

#include "rw/reactors/runtime_rollout/decision.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime_rollout/fleet.hpp"
#include <map>
#include <string>

namespace rw::runtime_rollout_test {
BOOST_AUTO_TEST_SUITE(decision)

using names = runtime_rollout::name_set;

BOOST_AUTO_TEST_CASE(share_is_a_number_or_a_percentage) {
  using runtime_rollout::parse_share;
  BOOST_TEST(parse_share("5")->of(1000, 2) == 5U);
  BOOST_TEST(parse_share("0")->of(1000, 2) == 0U);
  BOOST_TEST(parse_share("1%")->of(1000, 2) == 10U);
  BOOST_TEST(parse_share("1%")->of(50, 2) == 2U);
  BOOST_TEST(parse_share("100%")->of(7, 2) == 7U);
  for (const auto* wrong : {"", "%", "-1", "1.5", "101%", "5 ", "ten", "5%%"}) {
    BOOST_TEST(!parse_share(wrong).has_value(), wrong);
  }
}

BOOST_AUTO_TEST_CASE(new_content_goes_to_canaries_first) {
  fleet of(30);
  const auto& first = of.decide();
  BOOST_TEST((first.next.at == phase::canary));
  BOOST_TEST((first.admitted == names{"r00", "r01"}));
  BOOST_TEST((of.canaries() == names{"r00", "r01"}));
  BOOST_TEST(first.now.waiting == 30U);
  of.take_all(health::progressing);
  BOOST_TEST(of.decide().now.updating == 2U);
  BOOST_TEST((of.last.admitted == names{"r00", "r01"}));
}

BOOST_AUTO_TEST_CASE(waves_begin_when_all_canaries_have_been_ready_for_a_while) {
  fleet of(30);
  of.decide();
  of.take("r00");
  of.now += 20s;
  of.decide();
  BOOST_TEST((of.state.at == phase::canary));
  of.take("r01");
  of.decide();
  BOOST_TEST((of.state.at == phase::canary));
  BOOST_TEST((of.last.recheck_at == of.now + 10s));
  of.now += 10s;
  const auto& next = of.decide();
  BOOST_TEST((next.next.at == phase::waves));
  BOOST_TEST(next.admitted.size() == 5U);  // the canaries, and 10 % of 30
}

BOOST_AUTO_TEST_CASE(runtime_that_becomes_ready_makes_room_for_the_next) {
  fleet of(30);
  of.pass_canaries();
  of.take("r02");
  of.take("r03", health::progressing);
  BOOST_TEST(of.decide().admitted.size() == 6U);
  BOOST_TEST(of.last.admitted.contains("r05"));
  BOOST_TEST(of.last.now.updating == 2U);
}

BOOST_AUTO_TEST_CASE(rollout_is_completed_when_all_have_it) {
  fleet of(10);
  of.pass_canaries();
  while (of.take_all() > 0) of.decide();
  BOOST_TEST((of.state.at == phase::completed));
  BOOST_TEST(of.last.now.ready == 10U);
  BOOST_TEST((of.last.recheck_at == std::nullopt));
  // From now on a new runtime gets it at once.
  of.all["new"] = {.wanted = "b"};
  BOOST_TEST(of.decide().admitted.contains("new"));
}

BOOST_AUTO_TEST_CASE(runtime_that_refuses_the_repair_of_the_content_has_not_got_it) {
  for (const auto is : {health::ready, health::unreachable}) {
    fleet of(10);
    of.pass_canaries();
    while (of.take_all() > 0) of.decide();
    auto& damaged = of.all.at("r03");
    damaged.rejected = true;
    damaged.is = is;
    damaged.error = "policy forbids it";
    of.now += 10min;
    const auto& next = of.decide();
    BOOST_TEST((next.next.at == phase::completed));
    BOOST_TEST(phase_text(next.next, next.now) == "Partial");
    BOOST_TEST(next.now.updated == 9U);
    BOOST_TEST(next.now.ready == 9U);
    BOOST_TEST(next.now.failed == 0U);
    BOOST_TEST(next.message == "r03: policy forbids it");
    damaged.rejected = false;
    damaged.is = health::ready;
    of.decide();
    BOOST_TEST(phase_text(of.last.next, of.last.now) == "Completed");
    BOOST_TEST(of.last.message.empty());
  }
}

BOOST_AUTO_TEST_CASE(canary_that_refuses_a_repair_stops_nothing) {
  fleet of(30);
  of.decide();
  of.take_all();
  of.all.at("r00").rejected = true;
  of.now += 10s;
  const auto& next = of.decide();
  BOOST_TEST((next.next.at == phase::waves));
  BOOST_TEST(next.now.updated == 1U);
}

BOOST_AUTO_TEST_CASE(canary_that_fails_pauses_at_once) {
  for (const bool takes : {true, false}) {
    fleet of(1000);
    of.decide();
    BOOST_TEST(of.last.admitted.size() == 10U);
    if (takes) {
      of.take_all();
      of.take("r03", health::failed);
    } else {
      of.all.at("r03").rejected = true;
    }
    of.all.at("r03").error = "CrashLoopBackOff";
    const auto& next = of.decide();
    BOOST_TEST((next.next.at == phase::paused));
    BOOST_TEST(next.next.reason == "CanaryFailed");
    BOOST_TEST(next.message.find("r03: CrashLoopBackOff") != std::string::npos);
    BOOST_TEST(next.admitted.size() == (takes ? 10U : 0U));
  }
}

BOOST_AUTO_TEST_CASE(silent_canary_fails_after_five_minutes) {
  fleet of(30);
  of.decide();
  of.take("r00");
  of.take("r01", health::progressing);
  of.now += 299s;
  BOOST_TEST((of.decide().next.at == phase::canary));
  BOOST_TEST((of.last.recheck_at == of.now + 1s));
  of.now += 1s;
  BOOST_TEST((of.decide().next.at == phase::paused));
  BOOST_TEST(of.last.message.find("r01: not ready in time") == 0U);
}

BOOST_AUTO_TEST_CASE(more_failures_than_the_budget_pause) {
  fleet of(100);
  of.with.max_unavailable = {50, false};
  of.pass_canaries();
  of.take_all(health::progressing);
  of.all.at("r10").is = health::failed;
  of.all.at("r11").is = health::failed;
  BOOST_TEST((of.decide().next.at == phase::waves));
  of.all.at("r12").is = health::failed;
  BOOST_TEST((of.decide().next.at == phase::paused));
  BOOST_TEST(of.state.reason == "FailureBudgetExhausted");
  // It stays so, whatever becomes of them.
  for (auto& [key, each] : of.all) each.is = health::ready;
  of.now += 1h;
  BOOST_TEST((of.decide().next.at == phase::paused));
  BOOST_TEST(of.last.admitted.size() == 52U);  // they keep it
}

BOOST_AUTO_TEST_CASE(resume_by_hand_accepts_the_failures_that_there_are) {
  fleet of(100);
  of.with.max_unavailable = {4, false};
  of.pass_canaries();
  of.take_all(health::failed);
  of.decide();
  BOOST_TEST_REQUIRE(of.state.stopped());
  of.request.resume = "1";
  BOOST_TEST((of.decide().next.at == phase::waves));
  BOOST_TEST(of.state.accepted == 4U);
  BOOST_TEST(of.last.admitted.size() == 10U);  // those that failed are in nobody's way
  of.take_all(health::failed);
  BOOST_TEST((of.decide().next.at == phase::paused));
  BOOST_TEST((of.decide().next.at == phase::paused));  // the same value resumes once
}

BOOST_AUTO_TEST_CASE(resume_goes_on_beyond_a_canary_that_failed) {
  fleet of(30);
  of.decide();
  of.take("r00");
  of.take("r01", health::failed);
  of.now += 1min;
  of.decide();
  BOOST_TEST_REQUIRE(of.state.reason == "CanaryFailed");
  of.request.resume = "1";
  BOOST_TEST((of.decide().next.at == phase::waves));
}

BOOST_AUTO_TEST_CASE(pause_by_hand_admits_nobody_and_is_ended_by_hand) {
  fleet of(30);
  of.pass_canaries();
  of.take("r02");
  of.request.paused = true;
  BOOST_TEST((of.decide().next.at == phase::paused));
  BOOST_TEST(of.state.reason == "ByHand");
  BOOST_TEST((of.last.admitted == names{"r00", "r01", "r02"}));
  of.request.paused = false;
  BOOST_TEST((of.decide().next.at == phase::waves));
  BOOST_TEST(of.last.admitted.size() == 6U);
}

BOOST_AUTO_TEST_CASE(newer_content_supersedes_a_paused_one) {
  fleet of(30);
  of.decide();
  of.take_all(health::failed);
  of.decide();
  BOOST_TEST_REQUIRE(of.state.stopped());
  of.request.content = "content c";
  for (auto& [key, each] : of.all) {
    each.wanted = "c";
    each.admitted.reset();
  }
  const auto& next = of.decide();
  BOOST_TEST((next.next.at == phase::canary));
  BOOST_TEST((next.admitted == names{"r00", "r01"}));  // no others are exposed
  of.take_all();
  of.now += 10s;
  BOOST_TEST((of.decide().next.at == phase::waves));
}

BOOST_AUTO_TEST_CASE(canaries_are_the_lowest_of_their_uids_from_content_to_content) {
  fleet of(30);
  for (auto& [key, each] : of.all) each.position = 100 - each.position;
  BOOST_TEST((of.decide().admitted == names{"r28", "r29"}));
  of.request.content = "content c";
  BOOST_TEST((of.decide().admitted == names{"r28", "r29"}));
  of.all.at("r29").is = health::unreachable;
  of.request.content = "content d";
  BOOST_TEST(of.decide().admitted.contains("r27"));
  BOOST_TEST(!of.last.admitted.contains("r29"));
}

BOOST_AUTO_TEST_CASE(failure_within_the_budget_does_not_stop_a_small_fleet) {
  fleet of(10);
  of.with.max_unavailable = {1, false};
  of.pass_canaries();
  of.take_all(health::failed);
  BOOST_TEST((of.decide().next.at == phase::waves));
  BOOST_TEST(of.last.admitted.size() == 4U);  // two canaries, the one that failed, the next one
}

BOOST_AUTO_TEST_CASE(rollout_is_not_completed_while_one_is_not_ready) {
  fleet of(3);
  of.pass_canaries();
  of.take("r02", health::progressing);
  BOOST_TEST((of.decide().next.at == phase::waves));
  of.all.at("r02").is = health::ready;
  BOOST_TEST((of.decide().next.at == phase::completed));
}

BOOST_AUTO_TEST_CASE(runtimes_failing_with_superseded_content_come_first) {
  fleet of(30);
  of.all.at("r25").is = health::failed;
  of.all.at("r25").in_place = "superseded";
  of.pass_canaries();
  BOOST_TEST(of.last.admitted.contains("r25"));
}

/// 100 of 1,000 are not ready with a superseded content, and the new one mends them after 30 s.
BOOST_AUTO_TEST_CASE(ill_runtimes_come_first_and_count_as_unavailable) {
  fleet of(1000);
  of.with.max_unavailable = {100, false};
  const auto is_ill = [](const runtime_rollout::participant& of_runtime) {
    return of_runtime.in_place == "superseded";
  };
  for (std::size_t i = 0; i < 100; ++i) {
    auto& ill = of.all.at(name(7 + 9 * i));
    ill.in_place = "superseded";
    ill.is = i % 2 == 0 ? health::progressing : health::failed;
  }
  of.decide();
  of.take_all();
  of.now += 10s;
  std::map<std::string, runtime_rollout::wall_time> mended_at;
  std::size_t passes = 0;
  for (; of.state.at != phase::completed && passes < 1000; ++passes) {
    of.decide();
    std::size_t down = 0;
    std::size_t taken_down = 0;
    for (auto& [key, each] : of.all) {
      const bool admitted = of.last.admitted.contains(key);
      if (passes == 0 && is_ill(each)) BOOST_TEST(admitted, key);
      if (admitted && !each.updated()) {
        taken_down += each.is == health::ready ? 1 : 0;
        of.take(key, health::progressing);
        mended_at[key] = of.now + 30s;
      }
      down += each.is == health::ready ? 0 : 1;
    }
    BOOST_TEST(taken_down <= 100U);
    BOOST_TEST(down <= 100U);
    of.now += 10s;
    for (const auto& [key, at] : mended_at) {
      if (at <= of.now) of.all.at(key).is = health::ready;
    }
  }
  BOOST_TEST((of.state.at == phase::completed));
  BOOST_TEST(passes < 50U);
}

BOOST_AUTO_TEST_CASE(ill_runtimes_of_later_steps_come_after_the_canaries_too) {
  fleet of(100);
  of.with.steps = {{"2"}, {"10%"}, {"50%"}};
  of.with.max_unavailable = {10, false};
  for (std::size_t i = 50; i < 70; ++i) {
    auto& ill = of.all.at(name(i));
    ill.in_place = "superseded";
    ill.is = health::failed;
  }
  of.decide();
  of.take_all();
  of.now += 10min;
  of.decide();
  for (std::size_t i = 50; i < 70; ++i) BOOST_TEST(of.last.admitted.contains(name(i)));
}

BOOST_AUTO_TEST_CASE(rollout_proceeds_by_one_where_more_are_down_than_may_be) {
  fleet of(100);
  for (std::size_t i = 50; i < 80; ++i) {
    auto& down = of.all.at(name(i));
    down.is = health::progressing;  // its pods may be restarting
    down.since = of.now - 1min;
  }
  of.pass_canaries();
  BOOST_TEST((of.state.at == phase::waves));
  BOOST_TEST(of.last.admitted.size() == 3U);  // two canaries, and one
  of.take_all(health::progressing);
  BOOST_TEST(of.decide().admitted.size() == 3U);
}

BOOST_AUTO_TEST_CASE(unreachable_and_ill_runtimes_hold_up_nobody) {
  fleet of(10);
  of.all.at("r00").is = health::unreachable;
  of.all.at("r05").is = health::failed;
  of.all.at("r06").is = health::unreachable;
  of.pass_canaries();
  BOOST_TEST(of.canaries().contains("r02"));
  BOOST_TEST(!of.canaries().contains("r03"));
  while (of.take_all() > 0) {
    BOOST_TEST(!of.last.admitted.contains("r05"));
    of.decide();
    if (of.state.at == phase::completed) break;
  }
  BOOST_TEST((of.state.at == phase::completed));
  BOOST_TEST(of.last.now.aside == 3U);
  BOOST_TEST(of.last.admitted.size() == 10U);  // they get it now
}

BOOST_AUTO_TEST_CASE(runtime_that_was_not_ready_before_is_set_aside) {
  fleet of(20);
  of.all.at("r00").is = health::progressing;  // for long, with what was rolled out to the end
  of.all.at("r01").is = health::progressing;
  of.all.at("r01").since = of.now - 1min;  // its pods may be restarting
  of.pass_canaries();
  BOOST_TEST(of.last.admitted.contains("r03"));
  BOOST_TEST(of.last.now.aside == 1U);
  BOOST_TEST(!of.last.admitted.contains("r01"));  // ready ones go first
  of.now += 5min;
  of.decide();
  BOOST_TEST(of.last.now.aside == 2U);
  while (of.take_all() > 0) of.decide();
  BOOST_TEST((of.state.at == phase::completed));
}

BOOST_AUTO_TEST_CASE(first_installation_is_not_set_aside) {
  fleet of(20);
  for (auto& [key, each] : of.all) each.in_place = each.completed = {};
  for (auto& [key, each] : of.all) each.is = health::progressing;
  of.pass_canaries();
  BOOST_TEST(of.last.now.aside == 0U);
  BOOST_TEST(of.last.now.waiting == 18U);
}

BOOST_AUTO_TEST_CASE(ill_runtimes_are_set_aside_though_the_rollout_was_deleted) {
  fleet of(20);
  for (auto& [key, each] : of.all) each.completed.clear();
  of.state = {};
  of.all.at("r00").is = health::failed;
  of.pass_canaries();
  BOOST_TEST(of.canaries().contains("r02"));
  BOOST_TEST(!of.canaries().contains("r03"));
  BOOST_TEST((of.state.at == phase::waves));
}

BOOST_AUTO_TEST_CASE(canary_is_inspected_again_at_the_end_of_its_soak) {
  fleet of(30);
  of.decide();
  of.take_all();
  for (const auto* key : {"r00", "r01"}) of.all.at(key).observed = of.now;
  of.now += 10s;
  of.decide();
  BOOST_TEST((of.state.at == phase::canary));
  BOOST_TEST((of.last.to_inspect == names{"r00", "r01"}));
  for (const auto* key : {"r00", "r01"}) of.all.at(key).observed = of.now;
  BOOST_TEST((of.decide().next.at == phase::waves));
}

BOOST_AUTO_TEST_CASE(runtimes_that_return_after_the_completion_come_in_waves) {
  fleet of(100);
  auto away = of.all;
  for (const auto* key : {"r00", "r01"}) away.erase(key);
  of.decide();
  for (const auto& [key, each] : away) of.all.erase(key);
  of.take_all();
  of.now += 10s;
  of.decide();
  BOOST_TEST_REQUIRE((of.state.at == phase::completed));
  of.all.insert(away.begin(), away.end());
  of.decide();
  BOOST_TEST(of.last.admitted.size() == 12U);
  std::size_t rounds = 0;
  for (; of.take_all() > 0; ++rounds) of.decide();
  BOOST_TEST(rounds == 10U);
  BOOST_TEST(of.last.now.ready == 100U);
}

BOOST_AUTO_TEST_CASE(runtime_that_ceases_to_answer_is_in_the_way_for_five_minutes) {
  fleet of(10);
  of.pass_canaries();
  BOOST_TEST_REQUIRE(of.last.admitted.size() == 3U);
  of.all.at("r02").is = health::unreachable;
  BOOST_TEST(of.decide().admitted.size() == 3U);
  of.now += 5min;
  BOOST_TEST(of.decide().admitted.size() == 4U);
  BOOST_TEST(of.last.now.failed == 0U);
  BOOST_TEST((of.state.at == phase::waves));
}

BOOST_AUTO_TEST_CASE(canary_that_ceases_to_answer_is_replaced) {
  fleet of(10);
  of.decide();
  of.take("r00");
  of.all.at("r01").is = health::unreachable;
  of.now += 5min;
  BOOST_TEST(of.decide().admitted.contains("r02"));
  BOOST_TEST((of.state.at == phase::canary));
}

/// Else content that fails would reach both, where more may be unavailable than there are canaries.
BOOST_AUTO_TEST_CASE(canary_that_was_replaced_waits_with_the_others) {
  fleet of(100);
  of.all.at("r00").is = health::unreachable;
  BOOST_TEST((of.decide().admitted == names{"r01", "r02"}));
  of.all.at("r00").is = health::ready;
  BOOST_TEST((of.decide().admitted == names{"r01", "r02"}));
  of.take_all();
  of.now += 10s;
  BOOST_TEST((of.decide().next.at == phase::waves));
  BOOST_TEST(of.last.admitted.contains("r00"));
}

BOOST_AUTO_TEST_CASE(canaries_can_be_chosen_by_label) {
  fleet of(30);
  of.with.steps = {{"canary=true"}};
  of.with.canaries_at_once = false;
  for (const auto* each : {"r07", "r08", "r09", "r20"}) of.all.at(each).labelled = 0;
  BOOST_TEST((of.decide().admitted == names{"r07", "r08", "r09"}));  // 10 %
  of.take_all();
  of.decide();
  BOOST_TEST((of.last.admitted == names{"r07", "r08", "r09", "r20"}));
  of.take_all();
  of.now += 10s;
  BOOST_TEST((of.decide().next.at == phase::waves));
}

BOOST_AUTO_TEST_CASE(canaries_without_a_label_take_the_place_of_unresponsive_ones) {
  fleet of(30);
  of.with.steps = {{"canary=true"}};
  of.with.canaries_at_once = false;
  of.all.at("r07").labelled = 0;
  of.all.at("r07").is = health::unreachable;
  BOOST_TEST((of.decide().admitted == names{"r00", "r01"}));
  of.all.at("r07").is = health::ready;
  BOOST_TEST(of.decide().admitted.contains("r07"));
}

BOOST_AUTO_TEST_CASE(canary_that_turns_ill_stops_the_waves) {
  fleet of(100);
  of.pass_canaries();
  of.all.at("r00").is = health::progressing;
  of.all.at("r00").since = of.now;
  BOOST_TEST((of.decide().next.at == phase::canary));
  const auto admitted = of.last.admitted.size();
  of.take_all();
  BOOST_TEST(of.decide().admitted.size() == admitted);
  of.all.at("r00").is = health::failed;
  BOOST_TEST((of.decide().next.at == phase::paused));
}

BOOST_AUTO_TEST_CASE(runtimes_that_others_have_written_to_are_admitted) {
  fleet of(30);
  of.all.at("r20").ahead = true;
  BOOST_TEST((of.decide().admitted == names{"r00", "r01", "r20"}));
  of.request.paused = true;
  BOOST_TEST((of.decide().admitted == names{"r20"}));
}

BOOST_AUTO_TEST_CASE(content_may_go_to_all_at_once) {
  fleet of(30);
  of.request.at_once = true;
  BOOST_TEST(of.decide().admitted.size() == 30U);
  of.take_all();
  BOOST_TEST((of.decide().next.at == phase::completed));
}

BOOST_AUTO_TEST_CASE(restart_in_the_middle_goes_on_where_it_was) {
  fleet of(30);
  of.pass_canaries();
  of.take("r02");
  for (auto& [key, each] : of.all) each.admitted.reset();  // what is not kept
  const auto& next = of.decide();
  BOOST_TEST((next.next.at == phase::waves));
  BOOST_TEST((of.canaries() == names{"r00", "r01"}));
  BOOST_TEST(next.admitted.size() == 6U);
}

BOOST_AUTO_TEST_CASE(failures_of_the_last_completed_content_are_no_news) {
  fleet of(10);
  for (auto& [key, each] : of.all) each.wanted = "a";  // it has come back
  for (const auto* each : {"r07", "r08", "r09"}) of.all.at(each).is = health::failed;
  BOOST_TEST((of.decide().next.at == phase::completed));
}

BOOST_AUTO_TEST_CASE(canary_that_fails_with_the_last_completed_content_holds_up_nobody) {
  fleet of(10);
  for (auto& [key, each] : of.all) each.wanted = "a";
  of.all.at("r00").is = health::failed;
  BOOST_TEST((of.decide().next.at == phase::completed));
}

BOOST_AUTO_TEST_CASE(last_completed_content_is_remembered_while_others_supersede_each_other) {
  fleet of(10);
  BOOST_TEST(of.decide().next.completed == "content a");
  of.request.content = "content c";
  BOOST_TEST(of.decide().next.completed == "content a");
  of.state.at = phase::completed;
  of.request.content = "content d";
  BOOST_TEST(of.decide().next.completed == "content c");
}

BOOST_AUTO_TEST_CASE(there_may_be_no_canaries) {
  fleet of(30);
  of.with.steps.clear();
  BOOST_TEST((of.decide().next.at == phase::waves));
  BOOST_TEST(of.last.admitted.size() == 3U);
}

BOOST_AUTO_TEST_CASE(without_runtimes_nothing_is_completed) {
  fleet of(0);
  BOOST_TEST((of.decide().next.at == phase::canary));
}

BOOST_AUTO_TEST_CASE(content_that_is_pinned_has_the_sources_of_its_former_rollout) {
  fleet of(4);
  const std::vector<content_source> read{{"ConfigMap", "a", "1"}, {"ConfigMap", "b", "2"}};
  of.request.sources = read;
  const auto content = of.request.content;
  of.decide();
  of.request.content = "newer";
  of.request.sources = {{"ConfigMap", "a", "1"}, {"ConfigMap", "b", "3"}};
  of.decide();
  // Source b has newer content, which waits.
  of.request.content = content;
  of.request.sources = {{"ConfigMap", "a", "4"}};
  of.decide();
  const std::vector<content_source> merged{{"ConfigMap", "a", "4"}, {"ConfigMap", "b", "2"}};
  BOOST_TEST((of.state.history.back().sources == merged));
  BOOST_TEST((of.state.history.front().sources == read));
  BOOST_TEST((of.state.sources == of.request.sources));
}

BOOST_AUTO_TEST_CASE(history_has_the_last_ten_with_their_outcome) {
  fleet of(4);
  of.request.sources = {{"ConfigMap", "a", "1"}};
  of.pass_canaries();
  while (of.take_all() > 0) of.decide();
  of.request.sources = {{"ConfigMap", "a", "2"}};
  of.now += 1h;
  const auto& first = of.decide().next;
  BOOST_REQUIRE(first.history.size() == 1U);
  BOOST_TEST((first.history.front() ==
              runtime_rollout::rollout_record{"content b", k8s::format_time(start),
                                              k8s::format_time(start + 10s), "Completed",
                                              of.request.sources}));
  of.request.content = "content c";
  for (auto& [key, each] : of.all) each.wanted = "c";
  of.decide();
  of.request.content = "content b";  // again: another roll-out
  for (auto& [key, each] : of.all) each.wanted = "b";
  of.now += 1min;
  const auto& again = of.decide().next.history;
  BOOST_REQUIRE(again.size() == 3U);
  BOOST_TEST(again[1].outcome == "Superseded");
  BOOST_TEST(again[1].ended == k8s::format_time(of.now));
  BOOST_TEST(again[2].content == "content b");
  for (int i = 0; i < 20; ++i) {
    of.request.content = std::to_string(i);
    of.decide();
  }
  BOOST_TEST(of.state.history.size() == 10U);
  BOOST_TEST(of.state.history.back().content == "19");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_rollout_test
