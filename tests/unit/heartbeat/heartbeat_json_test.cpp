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
  BOOST_TEST(read->watches.front().reason.starts_with("no?rights ??xxx"));
}

BOOST_AUTO_TEST_CASE(event_age_is_a_number_of_milliseconds) {
  BOOST_TEST((parse_event_age("1500") == std::chrono::milliseconds(1500)));
  for (const auto* text : {"", "-1", "1.5", "1s", " 1", "99999999999999999999", "864000001"}) {
    BOOST_TEST(!parse_event_age(text), text);
  }
}

BOOST_AUTO_TEST_CASE(gap_needs_an_earlier_heartbeat) {
  auto now = complete();
  now.events.lost = 1000;
  BOOST_TEST(gap_between(nullptr, now).empty());
}

BOOST_AUTO_TEST_CASE(lost_events_are_a_gap) {
  const auto before = complete();
  auto now = before;
  BOOST_TEST(gap_between(&before, now).empty());
  ++now.events.lost;
  BOOST_TEST(!gap_between(&before, now).empty());
}

BOOST_AUTO_TEST_CASE(restart_is_a_gap_unless_all_resources_are_observed) {
  const auto before = complete();
  auto now = before;
  now.boot_id = "5";
  now.events = {};
  BOOST_TEST(!gap_between(&before, now).empty());  // Secrets are not observed
  now.watches.pop_back();
  now.watches.front().state = watch_state::catching_up;  // its list will tell
  BOOST_TEST(gap_between(&before, now).empty());
  now.source = "webhook";
  BOOST_TEST(!gap_between(&before, now).empty());
}

BOOST_AUTO_TEST_SUITE_END()
