#include "rw/core/log.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <mutex>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <vector>

namespace rw::core_test {  // where nothing of the C library has the suite's name
BOOST_AUTO_TEST_SUITE(log)

namespace core = rw::core;
namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

/// Keeps the lines that were logged.
struct book {
  core::logger::sink sink() {
    return [this](std::string_view line) {
      const std::lock_guard lock(guard);
      lines.emplace_back(line);
    };
  }

  json::object only() const {
    BOOST_REQUIRE(lines.size() == 1U);
    return json::parse(lines.front()).as_object();
  }

  std::mutex guard;
  std::vector<std::string> lines;
};

std::vector<std::string> keys_of(const json::object& object) {
  std::vector<std::string> keys;
  for (const auto& pair : object) keys.emplace_back(pair.key());
  return keys;
}

}  // namespace

BOOST_AUTO_TEST_CASE(line_is_one_json_object_with_time_level_message_and_fields) {
  book b;
  core::logger log(core::log_level::debug, b.sink());
  log.warning("something happened", {{"text", "a \"b\""},
                                     {"int", -5},
                                     {"unsigned", std::numeric_limits<std::uint64_t>::max()},
                                     {"double", 0.5},
                                     {"bool", true}});
  const auto line = b.only();
  const std::vector<std::string> expected = {"time", "level",    "msg",    "text",
                                             "int",  "unsigned", "double", "bool"};
  BOOST_TEST(keys_of(line) == expected);
  const std::string time(line.at("time").as_string());
  BOOST_TEST(std::regex_match(time, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)")));
  BOOST_TEST(line.at("level").as_string() == "warning");
  BOOST_TEST(line.at("msg").as_string() == "something happened");
  BOOST_TEST(line.at("text").as_string() == "a \"b\"");
  BOOST_TEST(line.at("int").as_int64() == -5);
  BOOST_TEST(line.at("unsigned").as_uint64() == std::numeric_limits<std::uint64_t>::max());
  BOOST_TEST(line.at("double").as_double() == 0.5);
  BOOST_TEST(line.at("bool").as_bool());
  BOOST_TEST(b.lines.front().find('\n') == b.lines.front().size() - 1);
}

BOOST_AUTO_TEST_CASE(log_line_is_valid_json_for_any_bytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::string text(random() % 40, '\0');
    for (auto& c : text) c = static_cast<char>(random());
    book b;
    core::logger log(core::log_level::debug, b.sink());
    log.info(text, {{"value", text}, {"key " + text, 1}});
    BOOST_REQUIRE(b.lines.size() == 1U);
    boost::system::error_code error;
    json::parse(b.lines.front(), error);
    BOOST_TEST(!error, b.lines.front());
    BOOST_TEST(b.lines.front().find('\n') == b.lines.front().size() - 1);
  }
}

BOOST_AUTO_TEST_CASE(numbers_that_json_does_not_know_become_null) {
  book b;
  core::logger log(core::log_level::debug, b.sink());
  log.info("numbers", {{"nan", std::nan("")}, {"inf", std::numeric_limits<double>::infinity()}});
  const auto line = b.only();
  BOOST_TEST(line.at("nan").is_null());
  BOOST_TEST(line.at("inf").is_null());
}

BOOST_AUTO_TEST_CASE(levels_below_the_least_are_left_out) {
  book b;
  core::logger log(core::log_level::warning, b.sink());
  log.debug("no");
  log.info("no");
  log.warning("yes");
  log.error("yes");
  BOOST_TEST(b.lines.size() == 2U);
  BOOST_TEST(!log.enabled(core::log_level::info));
  BOOST_TEST(log.enabled(core::log_level::error));
}

BOOST_AUTO_TEST_CASE(parse_log_level_accepts_only_level_names) {
  auto level = core::log_level::info;
  BOOST_TEST(core::parse_log_level("debug", level));
  BOOST_TEST((level == core::log_level::debug));
  BOOST_TEST(core::parse_log_level("warn", level));
  BOOST_TEST((level == core::log_level::warning));
  BOOST_TEST(core::parse_log_level("error", level));
  for (const auto* wrong : {"", "Error", "errors", "warn ", "0", "fatal"}) {
    BOOST_TEST(!core::parse_log_level(wrong, level), wrong);
  }
  BOOST_TEST((level == core::log_level::error));
}

BOOST_AUTO_TEST_CASE(limit_lets_a_burst_through_in_each_period_and_counts_the_rest) {
  core::log_limit limit(2, 10s);
  const std::chrono::steady_clock::time_point start{1h};
  std::uint64_t suppressed = 99;
  BOOST_TEST(limit.pass(suppressed, start));
  BOOST_TEST(suppressed == 0U);
  BOOST_TEST(limit.pass(suppressed, start + 1s));
  for (int i = 0; i < 3; ++i) BOOST_TEST(!limit.pass(suppressed, start + 9s));
  BOOST_TEST(limit.pass(suppressed, start + 10s));
  BOOST_TEST(suppressed == 3U);
  BOOST_TEST(limit.pass(suppressed, start + 11s));
  BOOST_TEST(suppressed == 0U);
  BOOST_TEST(!limit.pass(suppressed, start + 12s));
}

BOOST_AUTO_TEST_CASE(limit_passes_its_first_message_at_any_time) {
  core::log_limit limit(1, 1h);
  std::uint64_t suppressed = 0;
  BOOST_TEST(limit.pass(suppressed, std::chrono::steady_clock::time_point{}));
}

BOOST_AUTO_TEST_CASE(next_line_carries_the_number_of_suppressed_lines) {
  book b;
  core::logger log(core::log_level::info, b.sink());
  core::log_limit limit(1, 3600s);
  const auto earlier = std::chrono::steady_clock::now() - 2h;
  std::uint64_t suppressed = 0;
  for (int i = 0; i < 5; ++i) limit.pass(suppressed, earlier);
  log.limited(limit, core::log_level::warning, "often");
  log.limited(limit, core::log_level::warning, "often");
  log.limited(limit, core::log_level::debug, "below the level, so it uses up nothing");
  BOOST_TEST(b.only().at("suppressed").as_int64() == 4);
}

BOOST_AUTO_TEST_CASE(lines_of_several_threads_are_whole_and_none_is_uncounted) {
  book b;
  core::logger log(core::log_level::info, b.sink());
  core::log_limit limit(50, 3600s);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) {
          log.info("free", {{"i", i}});
          log.limited(limit, core::log_level::info, "limited", {{"i", i}});
        }
      });
    }
  }
  std::size_t limited = 0;
  for (const auto& line : b.lines) {
    limited += json::parse(line).as_object().at("msg").as_string() == "limited" ? 1 : 0;
  }
  BOOST_TEST(limited == 50U);
  BOOST_TEST(b.lines.size() == 350U);
}

BOOST_AUTO_TEST_CASE(latest_warnings_are_kept_in_order) {
  book b;
  core::logger log(core::log_level::info, b.sink());
  BOOST_TEST(log.latest_warnings().empty());
  log.info("started");
  log.warning("first", {{"n", 1}});
  log.error("second", {{"text", std::string(3000, 'x')}});
  auto kept = log.latest_warnings();
  BOOST_REQUIRE(kept.size() == 2U);
  BOOST_TEST(kept.front().latest + "\n" == b.lines.at(1));
  const auto shortened = json::parse(kept.back().latest).as_object();
  BOOST_TEST(shortened.at("msg").as_string() == "second");
  BOOST_TEST(!shortened.contains("text"));
  for (int i = 0; i < 40; ++i) log.warning("next " + std::to_string(i));
  log.warning("next 9");
  kept = log.latest_warnings();
  BOOST_REQUIRE(kept.size() == 32U);
  BOOST_TEST(json::parse(kept.front().latest).at("msg").as_string() == "next 8");
  BOOST_TEST(json::parse(kept.back().latest).at("msg").as_string() == "next 9");
  BOOST_TEST(kept.back().count == 2U);
}

BOOST_AUTO_TEST_CASE(warnings_of_a_cause_are_counted_with_the_names_of_the_last_ones) {
  book b;
  core::logger log(core::log_level::info, b.sink());
  for (int i = 1; i <= 1000; ++i) {
    const auto name = "runtime-" + std::to_string(i);
    log.warning("not ready", {{"name", name}, {"reason", "NoEndpoints"}, {"message", i}});
    log.error("reconcile failed", {{"name", name}, {"error", "no Secret kubeconfig-" + name}});
  }
  log.warning("not ready", {{"name", "runtime-998"}, {"reason", "NoEndpoints"}});
  log.warning("not ready", {{"name", "runtime-1"}, {"reason", "CrashLoopBackOff"}});
  const auto kept = log.latest_warnings();
  BOOST_REQUIRE(kept.size() == 3U);
  BOOST_TEST(kept[0].count == 1000U);
  BOOST_TEST(kept[1].count == 1001U);
  const std::vector<std::string> last{"runtime-996", "runtime-997", "runtime-999", "runtime-1000",
                                      "runtime-998"};
  BOOST_TEST(kept[1].names == last, boost::test_tools::per_element());
  BOOST_TEST(kept[2].count == 1U);
}

BOOST_AUTO_TEST_CASE(warnings_have_one_cause_whatever_the_length_of_a_name) {
  book b;
  core::logger log(core::log_level::info, b.sink());
  for (const std::size_t length : {1U, 20U, 63U}) {
    const std::string name(length, 'e');
    log.error("failed", {{"name", name},
                         {"error", "no Secret kubeconfig-" + name + ": " + std::string(300, 'z')}});
    log.error("lost", {{"name", name}, {"error", "the runtime is unreachable"}});
  }
  BOOST_TEST(log.latest_warnings().size() == 2U);
}

BOOST_AUTO_TEST_CASE(warnings_that_a_limit_dropped_count) {
  book b;
  core::logger log(core::log_level::info, b.sink());
  core::log_limit limit(5, 3600s);
  const auto earlier = std::chrono::steady_clock::now() - 2h;
  std::uint64_t suppressed = 0;
  for (int i = 0; i < 8; ++i) limit.pass(suppressed, earlier);
  log.limited(limit, core::log_level::warning, "often");
  BOOST_TEST(log.latest_warnings().front().count == 4U);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::core_test
