#include "rw/core/token_bucket.hpp"

#include <boost/test/unit_test.hpp>

namespace rw::core_test {
BOOST_AUTO_TEST_SUITE(token_bucket)

namespace core = rw::core;
using namespace std::chrono_literals;

namespace {
const core::time_point begin{1h};
}

BOOST_AUTO_TEST_CASE(burst_passes_at_once_and_then_the_rate_holds) {
  core::token_bucket bucket(10, 3);
  for (int i = 0; i < 3; ++i) BOOST_TEST((bucket.take(begin) == 0s));
  BOOST_TEST((bucket.take(begin) == 100ms));
  BOOST_TEST((bucket.take(begin) == 200ms));
  BOOST_TEST((bucket.take(begin + 200ms) == 100ms));
  BOOST_TEST((bucket.take(begin + 400ms) == 0s));
}

BOOST_AUTO_TEST_CASE(tokens_gather_up_to_the_burst) {
  core::token_bucket bucket(1, 2);
  BOOST_TEST(bucket.try_take(begin));
  BOOST_TEST(bucket.try_take(begin));
  BOOST_TEST(!bucket.try_take(begin));
  BOOST_TEST(bucket.try_take(begin + 1h));
  BOOST_TEST(bucket.try_take(begin + 1h));
  BOOST_TEST(!bucket.try_take(begin + 1h));
}

BOOST_AUTO_TEST_CASE(bucket_gives_no_token_beyond_the_maximum_wait) {
  core::token_bucket bucket(10, 1);
  BOOST_TEST((bucket.take(begin, 0s) == core::duration(0)));
  BOOST_TEST(!bucket.take(begin, 99ms).has_value());
  BOOST_TEST((bucket.take(begin, 100ms) == core::duration(100ms)));
  BOOST_TEST(!bucket.take(begin, 199ms).has_value());
  BOOST_TEST((bucket.take(begin, 1h) == core::duration(200ms)));
}

BOOST_AUTO_TEST_CASE(returned_token_serves_the_next_caller) {
  core::token_bucket bucket(10, 1);
  BOOST_TEST((bucket.take(begin) == 0s));
  BOOST_TEST((bucket.take(begin) == 100ms));
  bucket.give_back();
  BOOST_TEST((bucket.take(begin) == 100ms));
  bucket.give_back();
  bucket.give_back();
  bucket.give_back();
  BOOST_TEST((bucket.take(begin) == 0s));
  BOOST_TEST((bucket.take(begin) == 100ms));
}

BOOST_AUTO_TEST_CASE(time_that_goes_back_changes_nothing) {
  core::token_bucket bucket(1, 1);
  BOOST_TEST(bucket.try_take(begin));
  BOOST_TEST(!bucket.try_take(begin - 1h));
  BOOST_TEST(!bucket.try_take(begin));
  BOOST_TEST(bucket.try_take(begin + 1s));
}

BOOST_AUTO_TEST_CASE(rate_of_zero_is_no_limit_and_a_tiny_one_no_overflow) {
  core::token_bucket unlimited(0, 1);
  for (int i = 0; i < 1000; ++i) BOOST_TEST((unlimited.take(begin) == 0s));
  core::token_bucket tiny(1e-300, 1);
  BOOST_TEST(tiny.try_take(begin));
  BOOST_TEST((tiny.take(begin) > 24h * 364));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::core_test
