#include "rw/reactors/watcher_controller/watcher_status.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/watcher_controller/samples.hpp"
#include <chrono>
#include <string>

BOOST_AUTO_TEST_SUITE(watcher_status)

namespace json = boost::json;
using namespace std::chrono_literals;
using namespace rw::watcher_controller;
using rw::watcher_controller_test::valid_watcher;
using rw::watcher_controller_test::with;

namespace {

const std::chrono::system_clock::time_point start{std::chrono::seconds(1'700'000'000)};
constexpr auto at_start = "2023-11-14T22:13:20Z";

/// The Watcher once `to` was written; it must be news.
json::value told(json::value watcher, const desired_status& to,
                 std::chrono::system_clock::time_point now) {
  auto status = next_status(watcher, to, now);
  BOOST_TEST_REQUIRE(status.has_value());
  watcher.as_object()["status"] = std::move(*status);
  return watcher;
}

std::string condition_of(const json::value& watcher) {
  return json::serialize(watcher.at("status").at("conditions").at(0));
}

}  // namespace

BOOST_AUTO_TEST_CASE(watcher_becomes_ready_by_way_of_processing) {
  auto watcher = valid_watcher();
  BOOST_TEST(state_of(watcher).empty());
  watcher = told(watcher, processing(), start);
  BOOST_TEST(state_of(watcher) == "Processing");
  BOOST_TEST(watcher.at("status").at("observedGeneration") == 3);
  watcher = told(watcher, ready(), start);
  BOOST_TEST(watcher.at("status") == json::parse(R"({
    "state": "Ready", "observedGeneration": 3,
    "conditions": [{"type": "VirtualService", "status": "True", "reason": "Ready",
                    "message": "VirtualService is configured",
                    "lastTransitionTime": "2023-11-14T22:13:20Z"}]})"));
}

BOOST_AUTO_TEST_CASE(message_says_which_changes_cause_no_event) {
  BOOST_TEST(ready("wildcard").condition->message ==
             "VirtualService is configured; events come from reviews alone (wildcard)");
  BOOST_TEST(ready({}, true).condition->message ==
             "VirtualService is configured; without a live watch creations and deletions cause no "
             "event");
}

BOOST_AUTO_TEST_CASE(status_that_is_written_already_is_not_written_again) {
  const auto ready_one = told(valid_watcher(), ready(), start);
  BOOST_TEST(!next_status(ready_one, ready(), start + 1h).has_value());
  const watcher_error why{"GatewayNotFound", "there is none"};
  const auto failed_one = told(ready_one, failed(why), start);
  BOOST_TEST(!next_status(failed_one, failed(why), start + 1h).has_value());
}

BOOST_AUTO_TEST_CASE(transition_time_changes_only_with_the_conditions_status) {
  auto watcher = told(valid_watcher(), failed({"GatewayNotFound", "none"}), start);
  BOOST_TEST(condition_of(watcher).find(at_start) != std::string::npos);
  watcher = told(watcher, failed({"Invalid", "worse"}), start + 1h);
  BOOST_TEST(condition_of(watcher).find(at_start) != std::string::npos);
  BOOST_TEST(condition_of(watcher).find("worse") != std::string::npos);
  watcher = told(watcher, ready(), start + 1h);
  BOOST_TEST(condition_of(watcher).find("2023-11-14T23:13:20Z") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(status_is_written_for_another_generation) {
  auto watcher = told(valid_watcher(), ready(), start);
  watcher = told(with(watcher, "/metadata/generation", "4"), ready(), start + 1h);
  BOOST_TEST(watcher.at("status").at("observedGeneration") == 4);
  BOOST_TEST(condition_of(watcher).find(at_start) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(deleting_leaves_the_condition_as_it_is_unless_there_is_an_obstacle) {
  const auto before = told(valid_watcher(), ready(), start);
  auto watcher = told(before, deleting(), start + 1h);
  BOOST_TEST(state_of(watcher) == "Deleting");
  BOOST_TEST(condition_of(watcher) == condition_of(before));
  watcher = told(watcher, deleting({"VirtualServiceNotDeleted", "no"}), start + 1h);
  BOOST_TEST(state_of(watcher) == "Deleting");
  BOOST_TEST(condition_of(watcher).find("\"False\"") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(status_keeps_what_others_write) {
  auto watcher = with(valid_watcher(), "/status", R"({"other": 1, "conditions": [
      {"type": "Other", "status": "True", "reason": "R", "message": "m",
       "lastTransitionTime": "2020-01-01T00:00:00Z"}]})");
  watcher = told(watcher, ready(), start);
  BOOST_TEST(watcher.at("status").at("other") == 1);
  BOOST_TEST(watcher.at("status").at("conditions").as_array().size() == 2U);
}

BOOST_AUTO_TEST_CASE(message_fits_the_schema) {
  const auto watcher = told(valid_watcher(), failed({"Invalid", std::string(100'000, 'x')}), start);
  BOOST_TEST(condition_of(watcher).size() < 32768U);
}

BOOST_AUTO_TEST_SUITE_END()
