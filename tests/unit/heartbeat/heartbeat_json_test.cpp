// What a watcher reports of itself, on the wire.

#include "reactors/shared/heartbeat.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(heartbeat_json)

using namespace rw;

heartbeat complete() {
  heartbeat one;
  one.boot_id = "4e1f";
  one.sequence = 7;
  one.version = "0.1.0";
  one.interval = std::chrono::seconds(20);
  one.source = "both";
  one.ledger = "read";
  one.events = {100, 90, 1, 2, 3, 4, 5, 6};
  one.oldest_undelivered = std::chrono::milliseconds(1500);
  one.delivery = std::chrono::milliseconds(3);
  one.certificate_not_after = std::chrono::system_clock::from_time_t(1'800'000'000);
  one.probes = {"n1", "n2"};
  one.watches = {
      {"lifecycle-manager", "operator.kyma-project.io", "kymas", "spec", watch_state::live, ""},
      {"lifecycle-manager", "", "secrets", "spec", watch_state::unobserved, "secrets"}};
  return one;
}

BOOST_AUTO_TEST_CASE(heartbeat_is_read_as_it_was_written) {
  const auto read = parse_heartbeat(render_heartbeat(complete()));
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST((*read == complete()));
}

BOOST_AUTO_TEST_CASE(heartbeat_with_unknown_fields_is_read) {
  const auto read = parse_heartbeat(R"({"bootId":"1","intervalSeconds":5,"later":{"a":[1]}})");
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(read->boot_id == "1");
  BOOST_TEST(read->interval.count() == 5);
  BOOST_TEST(!read->delivery);
}

BOOST_AUTO_TEST_CASE(heartbeat_error_names_the_field) {
  const std::string long_text(254, 'a');
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[]", "must be an object"},
      {"{", "no JSON"},
      {R"({"intervalSeconds":5})", "bootId"},
      {R"({"bootId":7,"intervalSeconds":5})", "bootId"},
      {R"({"bootId":")" + long_text + R"(","intervalSeconds":5})", "bootId"},
      {R"({"bootId":"a\u0007","intervalSeconds":5})", "bootId"},
      {R"({"bootId":"1"})", "intervalSeconds"},
      {R"({"bootId":"1","intervalSeconds":3601})", "intervalSeconds"},
      {R"({"bootId":"1","intervalSeconds":5,"sequence":-1})", "sequence"},
      {R"({"bootId":"1","intervalSeconds":5,"certificateNotAfter":"soon"})", "certificateNotAfter"},
      {R"({"bootId":"1","intervalSeconds":5,"events":[]})", "events must be an object"},
      {R"({"bootId":"1","intervalSeconds":5,"events":{"lost":1.5}})", "events.lost"},
      {R"({"bootId":"1","intervalSeconds":5,"watches":{}})", "watches"},
      {R"({"bootId":"1","intervalSeconds":5,"probes":["1","2","3","4","5"]})", "probes"},
      {R"({"bootId":"1","intervalSeconds":5,"probes":[1]})", "probes"},
      {R"({"bootId":"1","intervalSeconds":5,"watches":[{"state":"asleep"}]})", "watches[0].state"},
  };
  for (const auto& [body, part] : cases) {
    const auto read = parse_heartbeat(body);
    BOOST_TEST_CONTEXT(body) {
      BOOST_REQUIRE(read.has_error());
      BOOST_TEST(read.error().message.find(part) != std::string::npos, read.error().message);
    }
  }
}

BOOST_AUTO_TEST_CASE(heartbeat_body_is_bounded) {
  auto one = complete();
  const std::string name(253, 'n');
  one.watches.assign(200, {name, name, name, "spec", watch_state::catching_up, name});
  const auto body = render_heartbeat(one);
  BOOST_TEST(body.size() <= max_heartbeat_bytes);
  const auto read = parse_heartbeat(body);
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(!read->watches.empty());
  BOOST_TEST(read->watches.size() + read->more_watches == 200u);
}

BOOST_AUTO_TEST_CASE(reason_is_rendered_as_readers_take_it) {
  auto from = complete();
  from.watches.front().reason = "no\nrights \xc3\xa4" + std::string(300, 'x');
  const auto read = parse_heartbeat(render_heartbeat(from));
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(read->watches.front().reason.starts_with("no rights ?xxx"));
}

BOOST_AUTO_TEST_CASE(event_age_is_a_number_of_milliseconds) {
  BOOST_TEST((parse_event_age("1500") == std::chrono::milliseconds(1500)));
  for (const auto* text : {"", "-1", "1.5", "1s", " 1", "99999999999999999999", "864000001"}) {
    BOOST_TEST(!parse_event_age(text), text);
  }
}

namespace {

heartbeat observing(const std::string& boot, watch_state state, std::uint64_t lost = 0) {
  heartbeat one;
  one.boot_id = boot;
  one.source = state == watch_state::unobserved ? "webhook" : "both";
  one.watches = {{"klm", "operator.kyma-project.io", "kymas", "spec", state, ""}};
  one.events.lost = lost;
  return one;
}

/// One letter for each heartbeat: a gap or none.
std::string gaps_of(const std::vector<heartbeat>& all) {
  gap_detector under_test;
  std::string out;
  for (const auto& each : all) out += under_test.observe(each).empty() ? '.' : 'G';
  return out;
}

constexpr auto live = watch_state::live;
constexpr auto listing = watch_state::catching_up;
constexpr auto unobserved = watch_state::unobserved;

}  // namespace

BOOST_AUTO_TEST_CASE(first_heartbeat_is_a_gap_only_after_lost_events) {
  BOOST_TEST(gaps_of({observing("a", unobserved)}) == ".");
  BOOST_TEST(gaps_of({observing("a", unobserved, 7), observing("a", unobserved, 7)}) == "G.");
}

BOOST_AUTO_TEST_CASE(lost_events_are_a_gap) {
  BOOST_TEST(gaps_of({observing("a", live), observing("a", live, 1), observing("a", live, 1)}) ==
             ".G.");
}

BOOST_AUTO_TEST_CASE(restart_is_a_gap_unless_all_resources_are_observed) {
  BOOST_TEST(gaps_of({observing("a", live), observing("b", live)}) == "..");
  BOOST_TEST(gaps_of({observing("a", live), observing("b", unobserved)}) == ".G");
  BOOST_TEST(gaps_of({observing("a", live), observing("b", listing), observing("b", live),
                      observing("b", unobserved)}) == "....");
}

BOOST_AUTO_TEST_CASE(restart_whose_lists_fail_is_a_gap) {
  BOOST_TEST(gaps_of({observing("a", live), observing("b", listing), observing("b", listing),
                      observing("b", unobserved), observing("b", unobserved)}) == "...G.");
}

BOOST_AUTO_TEST_CASE(pods_that_replace_each_other_are_no_new_gaps) {
  BOOST_TEST(gaps_of({observing("a", live, 3), observing("b", live), observing("a", live, 3),
                      observing("b", live), observing("a", live, 3)}) == "G....");
  BOOST_TEST(gaps_of({observing("a", live, 3), observing("b", live), observing("a", live, 4)}) ==
             "G.G");
}

BOOST_AUTO_TEST_SUITE_END()
