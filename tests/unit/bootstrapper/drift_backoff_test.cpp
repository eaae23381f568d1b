// How fast drift is repaired; time is given.

#include "reactors/bootstrapper/drift_backoff.hpp"

#include <boost/test/unit_test.hpp>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(drift_backoff)

using namespace std::chrono_literals;

namespace {

const k8s::object_key skr{"kcp-system", "skr"};
const k8s::object_key other{"kcp-system", "other"};

}  // namespace

BOOST_AUTO_TEST_CASE(each_repair_in_a_row_waits_twice_as_long_up_to_a_limit) {
  bootstrapper::drift_backoff one({.base = 500ms, .limit = 3s});
  core::time_point now{};
  BOOST_TEST((one.wait(skr, now) == 0ms));
  for (const auto wait : {500ms, 1000ms, 2000ms, 3000ms, 3000ms}) {
    one.repaired(skr, now);
    BOOST_TEST((one.wait(skr, now) == wait));
    now += wait;
  }
  BOOST_TEST((one.wait(other, now) == 0ms));
  one.forget(skr);
  BOOST_TEST((one.wait(skr, now) == 0ms));
}

BOOST_AUTO_TEST_CASE(a_quiet_while_ends_the_row) {
  bootstrapper::drift_backoff one({.base = 8s, .limit = 10min, .quiet = 10s});
  core::time_point now{};
  BOOST_TEST(one.repaired(skr, now) == 1U);
  BOOST_TEST((one.wait(skr, now + 16s) == 8s));
  BOOST_TEST((one.wait(skr, now + 17s) == 0ms));
  BOOST_TEST(one.repaired(skr, now + 16s) == 2U);
  BOOST_TEST(one.repaired(skr, now + 60s) == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
