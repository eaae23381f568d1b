// Random histories of the reactor with a simulated KIM, on a clock that only the test moves: in the
// end every runtime that is signalled was configured with what the sources hold, with no more marks
// than are needed. RW_CONFIG_SYNC_SEEDS says how many (100, and fewer under a sanitizer),
// RW_CONFIG_SYNC_FIRST which is the first; one that goes wrong prints its seed and its end.

#include "tests/unit/config_sync/history.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(history)

using namespace rw::k8s::test;

BOOST_AUTO_TEST_CASE(after_any_history_every_runtime_has_what_the_sources_hold) {
  const auto first = from_environment("RW_CONFIG_SYNC_FIRST", 1);
  const auto seeds = from_environment("RW_CONFIG_SYNC_SEEDS", sanitized ? 10 : 100);
  double marks = 0;
  std::size_t states = 0;
  std::size_t restarts = 0;
  std::size_t reconciles = 0;
  std::size_t broken = 0;
  for (auto seed = first; seed < first + seeds; ++seed) {
    rw::config_sync::test::history one(seed);
    one.run();
    BOOST_CHECK_MESSAGE(one.wrong.empty(), "RW_CONFIG_SYNC_SEEDS=1 RW_CONFIG_SYNC_FIRST="
                                               << seed << " went wrong\n"
                                               << one.wrong << "what happened at last:\n"
                                               << one.journal());
    if (!one.wrong.empty()) ++broken;
    marks += one.marks;
    states += one.states;
    restarts += one.restarts;
    reconciles += one.reconciles;
  }
  BOOST_TEST_MESSAGE(seeds << " histories: " << states << " states, " << marks << " marks, "
                           << reconciles << " reconciles of KIM, " << restarts << " restarts, "
                           << broken << " broken");
  BOOST_TEST(marks > 20.0 * static_cast<double>(seeds));
}

BOOST_AUTO_TEST_SUITE_END()
