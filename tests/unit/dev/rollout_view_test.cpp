#include "rw/reactors/dev/rollout_view.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include <chrono>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(rollout_view)

namespace core = rw::core;
using rw::source;
using rw::dev::arrival;
using std::chrono::milliseconds;

namespace {

/// A view of three runtimes, and what it told.
struct stage {
  core::manual_clock clock;
  std::vector<arrival> told;
  rw::dev::rollout_view view{clock, 3, [this](const arrival& one) { told.push_back(one); }};
};

}  // namespace

BOOST_AUTO_TEST_CASE(view_reports_each_arrival_once) {
  stage s;
  s.view.wanted(source::pull_secret, "new");
  s.clock.advance(milliseconds(7));
  s.view.has("r1", source::pull_secret, "old");
  s.view.has("r2", source::pull_secret, "new");
  s.view.has("r2", source::pull_secret, "new");
  s.view.has("r3", source::config, "new");
  BOOST_REQUIRE(s.told.size() == 1);
  BOOST_TEST(s.told[0].runtime == "r2");
  BOOST_TEST(s.told[0].have == 1);
  BOOST_TEST(s.told[0].of == 3);
  BOOST_TEST((s.told[0].after == core::duration(milliseconds(7))));
}

BOOST_AUTO_TEST_CASE(next_change_in_kcp_restarts_the_view) {
  stage s;
  s.view.wanted(source::config, "one");
  s.view.has("r1", source::config, "one");
  s.view.has("r2", source::config, "one");
  s.clock.advance(milliseconds(5));
  s.view.wanted(source::config, "two");
  s.clock.advance(milliseconds(5));
  s.view.has("r2", source::config, "two");
  BOOST_REQUIRE(s.told.size() == 3);
  BOOST_TEST(s.told[2].have == 1);
  BOOST_TEST((s.told[2].after == core::duration(milliseconds(5))));
}

BOOST_AUTO_TEST_CASE(runtime_that_loses_the_content_no_longer_counts) {
  stage s;
  s.view.wanted(source::config, "one");
  s.view.has("r1", source::config, "one");
  s.view.has("r1", source::config, "");
  s.view.has("r2", source::config, "one");
  BOOST_REQUIRE(s.told.size() == 2);
  BOOST_TEST(s.told[1].have == 1);
}

BOOST_AUTO_TEST_CASE(runtime_that_is_heard_of_before_kcp_counts_when_kcp_is) {
  stage s;
  s.view.has("r1", source::trust_bundle, "one");
  BOOST_TEST(s.told.empty());
  s.view.wanted(source::trust_bundle, "one");
  BOOST_REQUIRE(s.told.size() == 1);
  BOOST_TEST(s.told[0].have == 1);
}

BOOST_AUTO_TEST_CASE(content_that_a_runtime_had_before_arrives_without_a_time) {
  stage s;
  s.view.wanted(source::config, "one");
  s.view.has("r1", source::config, "one");
  s.view.wanted(source::config, "invalid");
  s.clock.advance(milliseconds(5));
  s.view.wanted(source::config, "one");
  BOOST_REQUIRE(s.told.size() == 2);
  BOOST_TEST(is_milestone(s.told[0]));
  BOOST_TEST(!s.told[1].after.has_value());
  BOOST_TEST(!is_milestone(s.told[1]));
  const auto now = std::chrono::system_clock::time_point(std::chrono::hours(9));
  BOOST_TEST(line_of(s.told[1], now) ==
             "09:00:00.000  r1: KCP's configuration was there before (1 of 3 have it)");
  BOOST_TEST(
      !boost::json::parse(json_line_of(s.told[1], now)).as_object().contains("arrivedAfterMs"));
}

BOOST_AUTO_TEST_CASE(rollout_has_no_line_before_a_runtime_takes_part) {
  const auto line = [](const boost::json::value& before, const boost::json::value& now) {
    return rw::dev::rollout_line(before, now, {}, false);
  };
  const boost::json::value idle{{"metadata", {{"name", "watcher"}}},
                                {"status", {{"phase", "Completed"}, {"total", 0}}}};
  const boost::json::value begun{{"metadata", {{"name", "watcher"}}},
                                 {"status", {{"phase", "Canary"}, {"content", "a"}, {"total", 2}}}};
  BOOST_TEST(line({}, idle).empty());
  BOOST_TEST(line(idle, begun) ==
             "00:00:00.000  roll-out of watcher: Canary, 0 updated, 0 ready, 0 failed of 2");
  BOOST_TEST(line(begun, begun).empty());
}

BOOST_AUTO_TEST_CASE(view_reports_no_arrival_of_other_content) {
  stage s;
  s.view.wanted(source::config, "one");
  s.view.wanted(source::config, "");
  s.view.has("r1", source::config, "");
  s.view.has("r1", source::config, "one");
  BOOST_TEST(s.told.empty());
}

BOOST_AUTO_TEST_CASE(of_many_runtimes_a_few_are_worth_a_line) {
  std::vector<std::size_t> lines;
  for (std::size_t have = 1; have <= 1000; ++have) {
    if (is_milestone(arrival{.after = milliseconds(1), .have = have, .of = 1000}))
      lines.push_back(have);
  }
  const std::vector<std::size_t> expected{1,   100, 200, 300, 400, 500,
                                          600, 700, 800, 900, 990, 1000};
  BOOST_TEST(lines == expected, boost::test_tools::per_element());
  for (std::size_t have = 1; have <= 10; ++have) {
    BOOST_TEST(is_milestone(arrival{.after = milliseconds(1), .have = have, .of = 10}));
  }
}

BOOST_AUTO_TEST_CASE(line_is_for_people_and_an_object_for_programs) {
  const arrival what{"r1", source::pull_secret, milliseconds(12), 2, 3};
  const auto now = std::chrono::system_clock::time_point(std::chrono::hours(9));
  BOOST_TEST(line_of(what, now) ==
             "09:00:00.000  r1: KCP's pull Secret has arrived, 12.000 ms after it changed "
             "(2 of 3 have it)");
  const auto told = boost::json::parse(json_line_of(what, now));
  BOOST_TEST(told.at("time").as_string() == "1970-01-01T09:00:00.000000Z");
  BOOST_TEST(told.at("runtime").as_string() == "r1");
  BOOST_TEST(told.at("source").as_string() == "pull Secret");
  BOOST_TEST(told.at("arrivedAfterMs").as_double() == 12.0);
  BOOST_TEST(told.at("have").as_int64() == 2);
  BOOST_TEST(told.at("of").as_int64() == 3);
}

BOOST_AUTO_TEST_SUITE_END()
