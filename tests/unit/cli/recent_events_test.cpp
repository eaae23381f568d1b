#include "rw/reactors/shared/recent_events.hpp"

#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "../manual_clock.hpp"
#include <vector>

namespace rw::recent_events_test {
BOOST_AUTO_TEST_SUITE(recent_events)

using rw::recent_events;
using namespace std::chrono_literals;

namespace {

struct noted final : k8s::event_sink {
  void record(k8s::event_note note) noexcept override { notes.push_back(std::move(note)); }
  std::vector<k8s::event_note> notes;
};

struct fixture {
  void say(std::string_view kind, std::string_view name, std::string_view reason,
           std::string_view message) {
    events.warning({.kind = std::string(kind), .ns = "kcp-system", .name = std::string(name)},
                   reason, message);
    clock.advance(1s);
  }
  std::string reasons(std::string_view kind, std::string_view name) const {
    std::string out;
    for (const auto& each : events.of(kind, {"kcp-system", std::string(name)})) {
      out += each.reason + " ";
    }
    return out;
  }

  core::manual_clock clock{std::chrono::sys_seconds(1'800'000'000s)};
  noted to;
  recent_events events{to, clock, 64U << 10U};
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(events_are_passed_on_and_kept_by_object_the_newest_first, fixture) {
  say("Kyma", "a", "WatcherSilent", "no heartbeat");
  say("Kyma", "b", "WatcherSilent", "no heartbeat");
  say("Runtime", "a", "Other", "of a Runtime");
  say("Kyma", "a", "WatcherLive", "heartbeats arrive");
  BOOST_TEST(to.notes.size() == 4U);
  BOOST_TEST(to.notes[2].message == "of a Runtime");
  BOOST_TEST(reasons("Kyma", "a") == "WatcherLive WatcherSilent ");
  BOOST_TEST(reasons("Runtime", "a") == "Other ");
  BOOST_TEST(reasons("Kyma", "c") == "");
  BOOST_TEST(events.of("Kyma", {"elsewhere", "a"}).empty());
}

BOOST_FIXTURE_TEST_CASE(repeated_event_is_one_with_a_count_and_its_latest_time, fixture) {
  say("Kyma", "a", "First", "m");
  say("Kyma", "a", "Second", "m");
  say("Kyma", "a", "First", "m");
  const auto all = events.of("Kyma", {"kcp-system", "a"});
  BOOST_REQUIRE_EQUAL(all.size(), 2U);
  BOOST_TEST(all[0].reason == "First");
  BOOST_TEST(all[0].count == 2U);
  BOOST_TEST(all[0].at == 1'800'000'002U);
  BOOST_TEST(to.notes.size() == 3U, "Kubernetes counts by itself");
  const auto shown = json_of(all);
  BOOST_TEST(boost::json::serialize(shown[0]) ==
             R"({"at":1800000002,"type":"Warning","reason":"First","message":"m",)"
             R"("about":"Kyma","count":2})");
  BOOST_TEST(!shown[1].as_object().contains("count"));
}

BOOST_FIXTURE_TEST_CASE(object_has_the_last_eight, fixture) {
  for (int i = 0; i < 20; ++i) say("Kyma", "a", "R" + std::to_string(i), "m");
  BOOST_TEST(reasons("Kyma", "a") == "R19 R18 R17 R16 R15 R14 R13 R12 ");
}

BOOST_FIXTURE_TEST_CASE(events_of_all_objects_are_bounded_and_the_oldest_go_first, fixture) {
  const std::string longest(4000, 'x');
  for (int i = 0; i < 1000; ++i) {
    say("Kyma", "k" + std::to_string(i), "R", longest);
    say("Kyma", "k0", "Again", "m");
    BOOST_REQUIRE(events.bytes() <= 64U << 10U);
  }
  BOOST_TEST(reasons("Kyma", "k999") == "R ");
  BOOST_TEST(reasons("Kyma", "k1") == "");
  BOOST_TEST(reasons("Kyma", "k0") == "Again ", "what comes again is new");
  BOOST_TEST(events.of("Kyma", {"kcp-system", "k999"})[0].message.size() ==
             recent_events::max_message);
  BOOST_TEST(to.notes.back().message == "m");
  BOOST_TEST(to.notes[0].message.size() == longest.size(), "what is passed on is complete");
}

BOOST_AUTO_TEST_CASE(event_that_is_larger_than_the_bound_is_passed_on_and_not_kept) {
  core::manual_clock clock;
  noted to;
  recent_events events(to, clock, 0);
  events.normal({.kind = "Kyma", .ns = "n", .name = "a"}, "R", "m");
  BOOST_TEST(events.of("Kyma", {"n", "a"}).empty());
  BOOST_TEST(to.notes.size() == 1U);
  BOOST_TEST(events.bytes() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::recent_events_test
