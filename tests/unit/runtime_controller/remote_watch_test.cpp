// How fast drift is repaired; time is given.

#include "reactors/remote_watch.hpp"

#include <boost/test/unit_test.hpp>

namespace rw::runtime_controller_test {
BOOST_AUTO_TEST_SUITE(remote_watch)

using namespace std::chrono_literals;

namespace {

const k8s::object_key skr{"kcp-system", "skr"};
const k8s::object_key other{"kcp-system", "other"};

}  // namespace

BOOST_AUTO_TEST_CASE(each_repair_in_a_row_waits_twice_as_long_up_to_a_limit) {
  drift_backoff backoff({.base = 500ms, .limit = 3s});
  core::time_point now{};
  BOOST_TEST((backoff.wait(skr, now) == 0ms));
  for (const auto wait : {500ms, 1000ms, 2000ms, 3000ms, 3000ms}) {
    backoff.noted(skr, true, now);
    BOOST_TEST((backoff.wait(skr, now) == wait));
    now += wait;
  }
  BOOST_TEST((backoff.wait(other, now) == 0ms));
  backoff.forget(skr);
  BOOST_TEST((backoff.wait(skr, now) == 0ms));
}

BOOST_AUTO_TEST_CASE(changes_that_need_no_repair_are_waited_for_longer_each_time) {
  drift_backoff backoff({.base = 500ms, .limit = 10min, .idle_limit = 4s});
  core::time_point now{};
  for (const auto wait : {500ms, 1000ms, 2000ms, 4000ms, 4000ms}) {
    BOOST_TEST(backoff.noted(skr, false, now) == 0U);
    BOOST_TEST((backoff.wait(skr, now) == wait));
    now += wait;
  }
  // A repair begins a row of its own, which changes between repairs do not end.
  BOOST_TEST(backoff.noted(skr, true, now) == 1U);
  BOOST_TEST((backoff.wait(skr, now) == 500ms));
  backoff.noted(skr, false, now);
  BOOST_TEST(backoff.noted(skr, true, now) == 2U);
  BOOST_TEST((backoff.wait(skr, now) == 1s));
}

BOOST_AUTO_TEST_CASE(quiet_time_ends_the_row) {
  drift_backoff backoff({.base = 8s, .limit = 10min, .quiet = 10s});
  core::time_point now{};
  BOOST_TEST(backoff.noted(skr, true, now) == 1U);
  BOOST_TEST((backoff.wait(skr, now + 16s) == 8s));
  BOOST_TEST((backoff.wait(skr, now + 17s) == 0ms));
  BOOST_TEST(backoff.noted(skr, true, now + 16s) == 2U);
  BOOST_TEST(backoff.noted(skr, true, now + 60s) == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_controller_test
