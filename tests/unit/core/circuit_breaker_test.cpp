#include "rw/core/circuit_breaker.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>

BOOST_AUTO_TEST_SUITE(circuit_breaker)

namespace core = rw::core;
using namespace std::chrono_literals;

namespace {

/// A breaker of the threshold given whose pauses are as long as they can be: 100 ms, 200 ms, ... 1
/// s.
struct with_longest_pauses {
  explicit with_longest_pauses(unsigned threshold)
      : breaker(threshold, core::backoff(100ms, 1s, [this] {
                  const core::duration pause = pauses++ < 4 ? 100ms * (1 << (pauses - 1)) : 1s;
                  return static_cast<std::uint64_t>(pause.count());
                })) {}

  void fail(int times) {
    for (int i = 0; i < times; ++i) breaker.fail(breaker.enter(), now);
  }

  int pauses = 0;
  core::time_point now{1h};
  core::circuit_breaker breaker;
};

}  // namespace

BOOST_AUTO_TEST_CASE(breaker_is_passable_until_failures_in_a_row_reach_the_threshold) {
  with_longest_pauses g(3);
  g.fail(2);
  BOOST_TEST(!g.breaker.open());
  BOOST_TEST(g.breaker.passable(g.now));
  BOOST_TEST((g.breaker.next() == core::time_point::min()));
  BOOST_TEST(!g.breaker.succeed());
  g.fail(2);
  BOOST_TEST(!g.breaker.open());
  g.fail(1);
  BOOST_TEST(g.breaker.open());
  BOOST_TEST(!g.breaker.passable(g.now));
  BOOST_TEST((g.breaker.next() == g.now + 100ms));
}

BOOST_AUTO_TEST_CASE(many_attempts_that_began_together_are_one_failure) {
  with_longest_pauses g(3);
  const auto first = g.breaker.enter();
  const auto second = g.breaker.enter();
  const auto third = g.breaker.enter();
  g.breaker.fail(first, g.now);
  g.breaker.fail(second, g.now);
  g.breaker.fail(third, g.now);
  BOOST_TEST(!g.breaker.open());
  g.fail(1);
  BOOST_TEST(!g.breaker.open());
  g.fail(1);
  BOOST_TEST(g.breaker.open());
}

BOOST_AUTO_TEST_CASE(open_it_lets_one_probe_through_after_each_pause) {
  with_longest_pauses g(1);
  g.fail(1);
  BOOST_TEST(!g.breaker.passable(g.now + 99ms));
  g.now += 100ms;
  BOOST_TEST(g.breaker.passable(g.now));
  const auto probe = g.breaker.enter();
  BOOST_TEST(!g.breaker.passable(g.now + 1h));
  BOOST_TEST((g.breaker.next() == core::time_point::max()));
  g.breaker.fail(probe, g.now);
  BOOST_TEST(!g.breaker.passable(g.now + 199ms));
  BOOST_TEST(g.breaker.passable(g.now + 200ms));
}

BOOST_AUTO_TEST_CASE(pauses_between_probes_grow_to_their_limit_and_restart_after_success) {
  with_longest_pauses g(1);
  for (const core::duration pause : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
    g.fail(1);
    BOOST_TEST((g.breaker.next() == g.now + pause));
    g.now = g.breaker.next();
  }
  g.breaker.enter();
  BOOST_TEST(g.breaker.succeed());
  BOOST_TEST(!g.breaker.open());
  g.pauses = 0;
  g.fail(1);
  BOOST_TEST((g.breaker.next() == g.now + 100ms));
}

BOOST_AUTO_TEST_CASE(breaker_honours_the_delay_that_the_other_side_requests) {
  with_longest_pauses g(1);
  g.breaker.fail(g.breaker.enter(), g.now, 20s);
  BOOST_TEST(!g.breaker.passable(g.now + 19s));
  BOOST_TEST(g.breaker.passable(g.now + 20s));
}

BOOST_AUTO_TEST_CASE(gate_heeds_a_requested_pause_before_it_opens_and_forgets_it_after_success) {
  with_longest_pauses g(5);
  BOOST_TEST(g.breaker.fail(g.breaker.enter(), g.now, 20s));
  BOOST_TEST(!g.breaker.open());
  BOOST_TEST(g.breaker.failing());
  BOOST_TEST(!g.breaker.passable(g.now + 19s));
  BOOST_TEST((g.breaker.next() == g.now + 20s));
  BOOST_TEST(!g.breaker.succeed());
  BOOST_TEST(g.breaker.passable(g.now));
}

BOOST_AUTO_TEST_CASE(gate_says_whether_a_failure_counted) {
  with_longest_pauses g(5);
  const auto first = g.breaker.enter();
  const auto second = g.breaker.enter();
  BOOST_TEST(g.breaker.fail(first, g.now));
  BOOST_TEST(!g.breaker.fail(second, g.now));
  BOOST_TEST(g.breaker.failures() == 1U);
}

BOOST_AUTO_TEST_CASE(stray_attempt_does_not_take_the_probes_place) {
  with_longest_pauses g(1);
  g.fail(1);
  g.now += 100ms;
  const auto stray = g.breaker.stray();
  BOOST_TEST(g.breaker.passable(g.now));
  BOOST_TEST(g.breaker.fail(stray, g.now));
}

BOOST_AUTO_TEST_CASE(abandoned_probe_makes_room_for_the_next_at_once) {
  with_longest_pauses g(1);
  g.fail(1);
  g.now += 100ms;
  const auto probe = g.breaker.enter();
  g.breaker.abandon(probe);
  BOOST_TEST(g.breaker.open());
  BOOST_TEST(g.breaker.passable(g.now));
}

BOOST_AUTO_TEST_CASE(old_attempt_neither_ends_the_probe_nor_counts_when_it_fails) {
  with_longest_pauses g(1);
  const auto old = g.breaker.enter();
  const auto older = g.breaker.enter();
  g.breaker.fail(g.breaker.enter(), g.now);
  g.now += 100ms;
  g.breaker.enter();
  g.breaker.abandon(older);
  BOOST_TEST(!g.breaker.passable(g.now));
  g.breaker.fail(old, g.now);
  BOOST_TEST(!g.breaker.passable(g.now + 1h));
}

BOOST_AUTO_TEST_CASE(old_attempt_that_succeeds_closes_the_breaker) {
  with_longest_pauses g(1);
  g.breaker.enter();
  g.fail(1);
  BOOST_TEST(g.breaker.open());
  BOOST_TEST(g.breaker.succeed());
  BOOST_TEST(g.breaker.passable(g.now));
}

BOOST_AUTO_TEST_SUITE_END()
