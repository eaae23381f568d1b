#include "rw/core/backoff.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <set>
#include <vector>

BOOST_AUTO_TEST_SUITE(backoff)

namespace core = rw::core;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

/// Draws the greatest possible delay.
core::random_source greatest(core::duration ceiling) {
  return [ceiling] { return static_cast<std::uint64_t>(ceiling.count()); };
}

}  // namespace

BOOST_AUTO_TEST_CASE(ceiling_doubles_from_the_base_up_to_the_limit) {
  core::duration expected[] = {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms, 1000ms};
  core::duration ceiling{};
  core::backoff pause(100ms, 1s, [&] { return static_cast<std::uint64_t>(ceiling.count()); });
  for (const auto one : expected) {
    ceiling = one;
    BOOST_TEST((pause.next() == one));
  }
}

BOOST_AUTO_TEST_CASE(ceiling_is_exactly_the_limit_where_doubling_passes_it) {
  // The draw wraps to zero at this ceiling only.
  core::backoff pause(100ms, 1s,
                      [] { return static_cast<std::uint64_t>(nanoseconds(1s).count()) + 1; });
  pause.skip(4);
  BOOST_TEST((pause.next() == 0ms));
}

BOOST_AUTO_TEST_CASE(jitter_is_full_from_zero_to_the_ceiling_inclusive) {
  std::uint64_t drawn = 0;
  core::backoff pause(nanoseconds(9), nanoseconds(9), [&] { return drawn; });
  std::set<core::duration::rep> seen;
  for (drawn = 0; drawn < 100; ++drawn) seen.insert(pause.next().count());
  BOOST_TEST(seen.size() == 10U);
  BOOST_TEST(*seen.begin() == 0);
  BOOST_TEST(*seen.rbegin() == 9);
}

BOOST_AUTO_TEST_CASE(failures_are_counted_skipped_and_reset) {
  core::backoff pause(100ms, 30s, greatest(400ms));
  pause.skip(2);
  BOOST_TEST(pause.failures() == 2U);
  BOOST_TEST((pause.next() == 400ms));
  BOOST_TEST(pause.failures() == 3U);
  pause.reset();
  BOOST_TEST(pause.failures() == 0U);
  BOOST_TEST((pause.next() <= 100ms));
}

BOOST_AUTO_TEST_CASE(ceiling_stays_at_the_limit_after_any_number_of_failures) {
  core::backoff pause(100ms, 30s, greatest(30s));
  pause.skip(std::numeric_limits<unsigned>::max());
  BOOST_TEST((pause.next() == 30s));
  pause.skip(5);
  BOOST_TEST(pause.failures() == std::numeric_limits<unsigned>::max());
  BOOST_TEST((pause.next() == 30s));
}

BOOST_AUTO_TEST_CASE(extreme_limits_do_not_overflow) {
  core::backoff longest(1h, core::duration::max(), [] { return std::uint64_t{0} - 1; });
  for (int i = 0; i < 100; ++i) BOOST_TEST((longest.next() >= core::duration::zero()));
  core::backoff none(0ms, 30s, greatest(30s));
  none.skip(std::numeric_limits<unsigned>::max());
  BOOST_TEST((none.next() == 0ms));
  core::backoff small_limit(1s, 10ms, greatest(10ms));
  BOOST_TEST((small_limit.next() == 10ms));
}

BOOST_AUTO_TEST_CASE(random_source_of_the_system_does_not_repeat_itself) {
  auto one = core::make_random_source();
  auto other = core::make_random_source();
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 100; ++i) {
    seen.insert(one());
    seen.insert(other());
  }
  BOOST_TEST(seen.size() == 200U);
}

BOOST_AUTO_TEST_SUITE_END()
