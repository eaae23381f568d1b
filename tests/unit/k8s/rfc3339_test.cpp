#include "rw/k8s/objects/types.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>

BOOST_AUTO_TEST_SUITE(rfc3339)

using rw::k8s::parse_rfc3339;

namespace {

/// Microseconds since 1970; -1 if it is no time.
std::int64_t micros(std::string_view text) {
  const auto got = parse_rfc3339(text);
  if (!got) return -1;
  return std::chrono::duration_cast<std::chrono::microseconds>(got->time_since_epoch()).count();
}

}  // namespace

BOOST_AUTO_TEST_CASE(times_are_read_to_the_microsecond) {
  BOOST_TEST(micros("1970-01-01T00:00:00Z") == 0);
  BOOST_TEST(micros("2001-09-09T01:46:40Z") == 1'000'000'000'000'000);
  BOOST_TEST(micros("2001-09-09T01:46:40.25Z") == 1'000'000'000'250'000);
  BOOST_TEST(micros("2001-09-09T01:46:40.123456789Z") == 1'000'000'000'123'456);
  BOOST_TEST(micros("2001-09-09T03:46:40+02:00") == 1'000'000'000'000'000);
  BOOST_TEST(micros("2001-09-08T20:16:40-05:30") == 1'000'000'000'000'000);
  BOOST_TEST(micros("2001-09-09t01:46:40z") == 1'000'000'000'000'000);
  BOOST_TEST(micros("2016-12-31T23:59:60Z") == micros("2017-01-01T00:00:00Z"));
  BOOST_TEST(micros("2000-02-29T00:00:00Z") > 0);
}

BOOST_AUTO_TEST_CASE(parse_rfc3339_rejects_other_text) {
  for (const auto* text :
       {"", "now", "2001-09-09", "2001-09-09T01:46:40", "2001-09-09T01:46:40.Z",
        "2001-13-09T01:46:40Z", "2001-02-29T01:46:40Z", "2001-09-09T24:46:40Z",
        "2001-09-09T01:60:40Z", "2001-09-09T01:46:61Z", "2001-09-09T01:46:40Zx",
        "2001-09-09T01:46:40+0200", "2001-09-09T01:46:40+25:00", "1969-12-31T23:59:59Z",
        "9999-01-01T00:00:00Z", "2001-9-9T01:46:40Z", "+001-09-09T01:46:40Z"}) {
    BOOST_TEST(micros(text) == -1, text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
