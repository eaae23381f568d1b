// What a roll-out says of runtimes that lack the content when it is completed, or take no part.

#include "rw/reactors/runtime_rollout/decision.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime_rollout/fleet.hpp"

namespace rw::runtime_rollout_test {
BOOST_AUTO_TEST_SUITE(catch_up)

/// A completed roll-out has one outcome, however long its unreachable runtimes are away.
BOOST_AUTO_TEST_CASE(completed_rollout_does_not_wait_for_unreachable_runtimes) {
  fleet of(10);
  of.all.at("r06").is = of.all.at("r07").is = health::unreachable;
  of.pass_canaries();
  for (; of.state.at != phase::completed; of.decide()) of.take_all();
  const auto is_partial = [&] {
    BOOST_TEST(runtime_rollout::phase_text(of.last.next, of.last.now) == "Partial");
    BOOST_TEST(of.last.now.aside == 2U);
    BOOST_TEST(of.last.now.updating == 0U);
    BOOST_TEST(of.last.admitted.contains("r06"));
    return !of.last.catches_up && !of.last.recheck_at;
  };
  BOOST_TEST(is_partial());
  for (const auto passed : {0min, 1min, 10min}) {
    of.now += passed;
    of.decide();
    BOOST_TEST(is_partial());
  }
}

BOOST_AUTO_TEST_CASE(completed_rollout_catches_up_while_runtimes_that_respond_get_the_content) {
  fleet of(10);
  of.all.at("r05").is = health::failed;
  of.all.at("r06").is = health::unreachable;
  of.pass_canaries();
  for (; of.state.at != phase::completed; of.decide()) of.take_all();
  BOOST_TEST(of.last.catches_up);  // r05 is admitted by this decision
  of.decide();
  BOOST_TEST(of.last.catches_up);
  BOOST_TEST(of.last.now.updating == 1U);
  of.now += 5min;
  of.decide();
  BOOST_TEST(!of.last.catches_up);
  BOOST_TEST(of.last.now.failed == 1U);
  of.take("r05");
  of.now += 1min;
  of.all.at("r06").is = health::ready;
  of.all.at("r06").since = of.now;
  of.decide();
  BOOST_TEST(of.last.catches_up);
  of.take("r06");
  of.decide();
  BOOST_TEST(!of.last.catches_up);
  BOOST_TEST(of.last.now.ready == 10U);
  // One that restarts has the content.
  of.all.at("r01").is = health::progressing;
  of.all.at("r01").since = of.now;
  BOOST_TEST(!of.decide().catches_up);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_rollout_test
