// The steps of a roll-out: who belongs to them, and when they end.

#include "rw/reactors/runtime_rollout/decision.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime_rollout/fleet.hpp"
#include <map>
#include <string>
#include <vector>

namespace rw::runtime_rollout_test {
BOOST_AUTO_TEST_SUITE(steps)

using names = runtime_rollout::name_set;
using runtime_rollout::step;

namespace {

/// 20 runtimes; steps of one, a tenth and a half of them.
fleet stepped() {
  fleet of(20);
  of.with.steps = {{"1", 10s}, {"10%", 60s}, {"50%", 0s}};
  of.with.canaries_at_once = false;
  of.with.max_unavailable = {4, false};
  return of;
}

/// Until no further runtime is admitted.
void go_on(fleet& of) {
  of.decide();
  while (of.take_all() > 0) of.decide();
}

}  // namespace

BOOST_AUTO_TEST_CASE(position_is_the_begin_of_the_sha_256_of_the_uid) {
  BOOST_TEST(runtime_rollout::position_of("abc") == 0xba7816bfU);
}

BOOST_AUTO_TEST_CASE(runtimes_take_the_content_step_by_step) {
  auto of = stepped();
  go_on(of);
  BOOST_TEST((of.last.admitted == names{"r00"}));
  BOOST_TEST((of.state.at == phase::canary));
  of.now += 10s;
  go_on(of);
  BOOST_TEST((of.last.admitted == names{"r00", "r01"}));
  BOOST_TEST((of.state.at == phase::waves));
  BOOST_TEST(of.state.step == 1U);
  BOOST_TEST((of.last.recheck_at == of.now + 60s));
  of.now += 59s;
  go_on(of);
  BOOST_TEST(of.last.admitted.size() == 2U);
  of.now += 1s;
  BOOST_TEST(of.decide().admitted.size() == 6U);  // by max_unavailable
  BOOST_TEST(!of.last.admitted.contains("r06"));
  go_on(of);
  BOOST_TEST(of.last.now.ready == 20U);
  BOOST_TEST((of.state.at == phase::completed));
  BOOST_TEST(of.state.step == 3U);
}

BOOST_AUTO_TEST_CASE(steps_by_number_are_thresholds_on_positions) {
  auto of = stepped();
  of.all.at("r00").is = health::unreachable;
  of.decide();
  std::map<std::size_t, std::size_t> sizes;
  for (const auto& [key, each] : of.all) {
    ++sizes[step_of(of.state.steps, {each.position, each.labelled})];
  }
  // The one that does not respond is beyond the number.
  BOOST_TEST((sizes == std::map<std::size_t, std::size_t>{{0, 2}, {1, 1}, {2, 8}, {3, 9}}));
  BOOST_TEST((of.last.admitted == names{"r01"}));
  // It responds again: the steps do not shrink.
  const auto steps = of.state.steps;
  of.all.at("r00").is = health::ready;
  BOOST_TEST((of.decide().next.steps == steps));
}

BOOST_AUTO_TEST_CASE(steps_by_label_are_beside_those_by_number) {
  auto of = stepped();
  of.with.steps = {{"1", 0s}, {"plan=trial", 0s}, {"10%", 0s}};
  for (const auto* each : {"r00", "r09"}) of.all.at(each).labelled = 1;
  of.decide();
  const auto belongs = [&](const char* key) {
    const auto& each = of.all.at(key);
    return step_of(of.state.steps, {each.position, each.labelled});
  };
  BOOST_TEST(belongs("r00") == 0U);
  BOOST_TEST(belongs("r09") == 1U);
  BOOST_TEST(belongs("r01") == 2U);
  BOOST_TEST(belongs("r02") == 3U);
}

BOOST_AUTO_TEST_CASE(failures_within_the_budget_do_not_hold_up_a_later_step) {
  auto of = stepped();
  of.with.steps = {{"1", 0s}, {"50%", 60s}};
  go_on(of);
  of.take("r03", health::failed);
  of.take("r04", health::progressing);
  of.state.settled.reset();
  BOOST_TEST((of.decide().next.settled == std::nullopt));
  of.take("r04");
  of.decide();
  BOOST_TEST((of.state.settled == of.now));
  // One that restarts does not begin the bake again, another that fails is beyond the budget.
  of.now += 30s;
  of.all.at("r05").is = health::progressing;
  of.all.at("r05").since = of.now;
  of.decide();
  BOOST_TEST((of.state.settled == of.now - 30s));
  of.take("r06", health::failed);
  BOOST_TEST((of.decide().next.at == phase::waves));
  of.take("r07", health::failed);
  BOOST_TEST((of.decide().next.at == phase::paused));
  BOOST_TEST(of.state.reason == "FailureBudgetExhausted");
}

BOOST_AUTO_TEST_CASE(runtimes_of_a_step_are_read_again_at_the_end_of_its_bake) {
  auto of = stepped();
  go_on(of);
  of.now += 10s;
  go_on(of);
  of.all.at("r01").observed = of.now;
  of.now += 60s;
  BOOST_TEST((of.decide().to_inspect == names{"r01"}));
  BOOST_TEST(of.state.step == 1U);
  of.all.at("r01").observed = of.now;
  BOOST_TEST(of.decide().next.step == 2U);
}

BOOST_AUTO_TEST_CASE(promote_ends_the_bake_of_the_present_step_once) {
  auto of = stepped();
  go_on(of);
  BOOST_TEST(of.state.step == 0U);
  of.request.promote = "1";
  go_on(of);
  BOOST_TEST(of.state.step == 1U);
  BOOST_TEST((of.last.admitted == names{"r00", "r01"}));
  of.now += 30s;
  go_on(of);
  BOOST_TEST(of.state.step == 1U);
  // It waits for the runtimes all the same.
  of.all.at("r01").is = health::progressing;
  of.all.at("r01").since = of.now;
  of.state.settled.reset();
  of.request.promote = "2";
  BOOST_TEST(of.decide().next.step == 1U);
  of.take("r01");
  BOOST_TEST(of.decide().next.step == 2U);
  // Another content bakes.
  of.request.content = "content c";
  BOOST_TEST(!of.decide().next.bake_ended);
}

BOOST_AUTO_TEST_CASE(step_is_verified_when_it_has_baked) {
  auto of = stepped();
  of.with.steps = {{"1", 10s, runtime_rollout::verification{"errors", 1}}, {"10%", 0s}};
  of.decide();
  BOOST_TEST(!of.last.to_verify.has_value());
  of.take_all();
  of.now += 10s;
  BOOST_TEST((of.decide().to_verify == std::size_t{0}));
  BOOST_TEST((of.state.at == phase::canary));
  of.verify = [](std::size_t at) {
    return runtime_rollout::verification_result{at, false, "step 1: 2 is more than 1"};
  };
  BOOST_TEST((of.decide().next.at == phase::paused));
  BOOST_TEST(of.state.reason == "VerificationFailed");
  BOOST_TEST(of.state.stopped());
  BOOST_TEST(of.last.message == "step 1: 2 is more than 1");
  of.verify = {};
  BOOST_TEST(of.decide().message == "step 1: 2 is more than 1");
  of.request.resume = "1";
  BOOST_TEST((of.decide().next.at == phase::waves));
  BOOST_TEST(of.state.step == 1U);
}

BOOST_AUTO_TEST_CASE(step_that_cannot_be_verified_admits_nobody) {
  auto of = stepped();
  of.with.steps.at(1).verify = {"errors", 1};
  of.request.can_verify = false;
  BOOST_TEST(of.decide().admitted.empty());
  BOOST_TEST(of.state.reason == "PrometheusNotConfigured");
  BOOST_TEST(!of.state.stopped());
  BOOST_TEST(of.last.message.find("--rollout-prometheus") != std::string::npos);
  of.request.can_verify = true;
  BOOST_TEST((of.decide().admitted == names{"r00"}));
}

BOOST_AUTO_TEST_CASE(rollout_begins_again_with_other_steps) {
  auto of = stepped();
  go_on(of);
  of.now += 10s;
  go_on(of);
  BOOST_TEST(of.state.step == 1U);
  of.with.steps = {{"2", 30s}, {"5", 0s}};
  BOOST_TEST(of.decide().next.step == 0U);
  BOOST_TEST((of.last.admitted == names{"r00", "r01"}));
  of.now += 30s;
  go_on(of);
  BOOST_TEST((of.state.at == phase::completed));
  // When all have the content nothing begins again.
  of.with.steps = {{"3", 30s}};
  BOOST_TEST((of.decide().next.at == phase::completed));
  BOOST_TEST(of.state.step == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_rollout_test
