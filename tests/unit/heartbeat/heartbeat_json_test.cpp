// What a watcher reports of itself, on the wire.

#include "rw/reactors/shared/heartbeat.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(heartbeat_json)

using namespace rw;

constexpr auto noon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 24) +
                      std::chrono::hours(12) + std::chrono::microseconds(250);

heartbeat complete() {
  heartbeat one;
  one.boot_id = "4e1f";
  one.pod = "skr-webhook-7d4b9c-x2x7p";
  one.sequence = 7;
  one.started = noon;
  one.sent = noon + std::chrono::hours(1);
  one.version = "0.1.0";
  one.interval = std::chrono::seconds(20);
  one.source = "both";
  one.events = {100, 90, 1, 2, 3, 4, 5};
  one.losses = {{"", 1}, {"lifecycle-manager", 5}};
  one.oldest_undelivered = std::chrono::milliseconds(1500);
  one.oldest_manager = "infrastructure-manager";
  one.refused = {"lifecycle-manager", 422,    "operator.kyma-project.io",   "Kyma",
                 "kyma-system",       "kyma", std::chrono::milliseconds(40)};
  one.delivery = std::chrono::milliseconds(3);
  one.certificate_not_after = std::chrono::system_clock::from_time_t(1'800'000'000);
  one.managers_digest = std::string(64, 'a');
  one.ca_digest = std::string(64, 'b');
  one.certificate_digest = std::string(64, 'c');
  one.probes = {"n1", "n2"};
  one.watches = {
      {"lifecycle-manager", "operator.kyma-project.io", "kymas", "spec", watch_state::live, ""},
      {"lifecycle-manager", "", "secrets", "spec", watch_state::unobserved, "secrets"}};
  one.watches.front().live_since = noon + std::chrono::seconds(1);
  return one;
}

BOOST_AUTO_TEST_CASE(heartbeat_is_read_as_it_was_written) {
  const auto read = parse_heartbeat(render_heartbeat(complete()));
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST((*read == complete()));
}

BOOST_AUTO_TEST_CASE(losses_are_an_object_by_operator) {
  BOOST_TEST(render_heartbeat(complete()).find(R"("losses":{"lifecycle-manager":5,"":1})") !=
             std::string::npos);
  auto none = complete();
  none.losses.clear();
  BOOST_TEST(render_heartbeat(none).find("losses") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(losses_beyond_the_limit_are_those_of_the_empty_name) {
  const auto rendered = [](std::size_t operators, std::size_t name) {
    auto one = complete();
    one.losses = {{"", 3}, {"no path", 4}};
    for (std::size_t i = 0; i < operators; ++i) {
      one.losses.push_back({std::to_string(100 + i) + std::string(name, 'n'), 2});
    }
    one.watches.assign(64, one.watches.front());
    const auto read = parse_heartbeat(render_heartbeat(one));
    BOOST_REQUIRE(read.has_value());
    BOOST_TEST(read->watches.size() == 64u);
    return read->losses;
  };
  const auto few = rendered(5, 4);
  BOOST_TEST(few.size() == 6u);
  BOOST_TEST((few.front() == operator_losses{"", 7}));
  const auto many = rendered(100, 4);
  BOOST_TEST(many.size() == max_heartbeat_losses);
  BOOST_TEST((many.front() == operator_losses{"", 7 + 2 * (100 - 63)}));
  const auto longest = rendered(60, 250);
  BOOST_TEST(longest.size() > 1u);
  BOOST_TEST((longest.front() == operator_losses{"", 7 + 2 * (61 - longest.size())}));
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
  std::string too_many = R"("m":1)";
  for (int i = 0; i < 64; ++i) too_many += R"(,"m)" + std::to_string(i) + R"(":1)";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[]", "must be an object"},
      {"{", "it is not JSON"},
      {R"({"intervalSeconds":5})", "bootId"},
      {R"({"bootId":7,"intervalSeconds":5})", "bootId"},
      {R"({"bootId":")" + long_text + R"(","intervalSeconds":5})", "bootId"},
      {R"({"bootId":"a\u0007","intervalSeconds":5})", "bootId"},
      {R"({"bootId":"1"})", "intervalSeconds"},
      {R"({"bootId":"1","intervalSeconds":3601})", "intervalSeconds"},
      {R"({"bootId":"1","intervalSeconds":5,"sequence":-1})", "sequence"},
      {R"({"bootId":"1","intervalSeconds":5,"certificateNotAfter":"soon"})", "certificateNotAfter"},
      {R"({"bootId":"1","intervalSeconds":5,"events":[]})", "events must be an object"},
      {R"({"bootId":"1","intervalSeconds":5,"events":{"abandoned":1.5}})", "events.abandoned"},
      {R"({"bootId":"1","intervalSeconds":5,"watches":{}})", "watches"},
      {R"({"bootId":"1","intervalSeconds":5,"probes":["1","2","3","4","5"]})", "probes"},
      {R"({"bootId":"1","intervalSeconds":5,"probes":[1]})", "probes"},
      {R"({"bootId":"1","intervalSeconds":5,"watches":[{"state":"asleep"}]})", "watches[0].state"},
      {R"({"bootId":"1","intervalSeconds":5,"watches":[{"state":"live","liveSince":"now"}]})",
       "watches[0].liveSince"},
      {R"({"bootId":"1","intervalSeconds":5,"sentAt":"now"})", "sentAt"},
      {R"({"bootId":"1","intervalSeconds":5,"caDigest":"ab"})", "caDigest"},
      {R"({"bootId":"1","intervalSeconds":5,"oldestManager":"a/b"})", "oldestManager"},
      {R"({"bootId":"1","intervalSeconds":5,"refused":[]})", "refused must be an object"},
      {R"({"bootId":"1","intervalSeconds":5,"refused":{"status":1000}})", "refused.status"},
      {R"({"bootId":"1","intervalSeconds":5,"refused":{"name":"a\u0007"}})", "refused.name"},
      {R"({"bootId":"1","intervalSeconds":5,"losses":[]})", "losses must be an object"},
      {R"({"bootId":"1","intervalSeconds":5,"losses":{"klm":"1"}})", "losses.klm"},
      {R"({"bootId":"1","intervalSeconds":5,"losses":{"a b":1}})", "elements of a path"},
      {R"({"bootId":"1","intervalSeconds":5,"losses":{)" + too_many + "}}", "at most 64 members"},
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

/// Its object may be invented by any pod of the runtime.
BOOST_AUTO_TEST_CASE(refused_event_is_rendered_as_readers_take_it) {
  auto from = complete();
  from.refused->name = "no\nname \xc3\xa4" + std::string(300, 'x');
  const auto read = parse_heartbeat(render_heartbeat(from));
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(read->refused->name.starts_with("no name ?xxx"));
}

BOOST_AUTO_TEST_CASE(event_age_is_a_number_of_milliseconds) {
  BOOST_TEST((parse_event_age("1500") == std::chrono::milliseconds(1500)));
  for (const auto* text : {"", "-1", "1.5", "1s", " 1", "99999999999999999999", "864000001"}) {
    BOOST_TEST(!parse_event_age(text), text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
