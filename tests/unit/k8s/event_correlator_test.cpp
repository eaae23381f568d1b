#include "rw/k8s/controller/event_correlator.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

namespace rw::k8s_test {
BOOST_AUTO_TEST_SUITE(event_correlator)

namespace json = boost::json;
namespace k8s = rw::k8s;
using namespace rw::k8s;
using namespace std::chrono_literals;

namespace {

const core::time_point start{1h};
const auto wall = parse_rfc3339("2026-01-01T00:00:00Z").value();

event_note note(const std::string& message, const std::string& object = "a") {
  return {
      {"v1", "Pod", "ns", object, "uid-" + object, "7"}, event_type::warning, "Broken", message};
}

std::int64_t count_of(const k8s::event_correlator::write& one) {
  return find(one.object, {"count"})->as_int64();
}

std::string message_of(const k8s::event_correlator::write& one) {
  return std::string(find_string(one.object, {"message"}));
}

}  // namespace

BOOST_AUTO_TEST_CASE(event_is_written_as_the_api_wants_it) {
  k8s::event_correlator events("manager", "pod-1", {});
  const auto one = events.next(note("it broke"), start, wall);
  BOOST_REQUIRE(one);
  BOOST_TEST(!one->repeated);
  auto expected = json::parse(R"({
    "apiVersion": "v1", "kind": "Event",
    "metadata": {"namespace": "ns", "name": "a.18867d8f86870000"},
    "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "a",
                       "uid": "uid-a", "resourceVersion": "7"},
    "type": "Warning", "reason": "Broken", "message": "it broke",
    "source": {"component": "manager", "host": "pod-1"},
    "reportingComponent": "manager", "reportingInstance": "pod-1",
    "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    "count": 1})");
  expected.as_object()["metadata"].as_object()["name"] = key_of(one->object).name;
  BOOST_TEST((one->object == expected), json::serialize(one->object));
  BOOST_TEST(key_of(one->object).name.starts_with("a.1"));
}

BOOST_AUTO_TEST_CASE(same_event_again_only_raises_its_count) {
  k8s::event_correlator events("manager", "", {});
  const auto first = events.next(note("it broke"), start, wall);
  const auto again = events.next(note("it broke"), start + 1min, wall + 1min);
  BOOST_TEST(again->repeated);
  BOOST_TEST(count_of(*again) == 2);
  BOOST_TEST((key_of(again->object) == key_of(first->object)));
  BOOST_TEST((again->change() == json::parse(R"({"count":2,"message":"it broke",
                                                 "lastTimestamp":"2026-01-01T00:01:00Z"})")));
  BOOST_TEST(find_string(again->object, {"firstTimestamp"}) == "2026-01-01T00:00:00Z");
}

BOOST_AUTO_TEST_CASE(events_differ_by_object_type_reason_and_message) {
  k8s::event_correlator events("manager", "", {});
  events.next(note("x"), start, wall);
  auto other = note("x");
  other.type = event_type::normal;
  BOOST_TEST(!events.next(other, start, wall)->repeated);
  other = note("x");
  other.reason = "Other";
  BOOST_TEST(!events.next(other, start, wall)->repeated);
  BOOST_TEST(!events.next(note("y"), start, wall)->repeated);
  BOOST_TEST(!events.next(note("x", "b"), start, wall)->repeated);
  auto newer = note("x");
  newer.about.resource_version = "8";  // the same object
  BOOST_TEST(events.next(newer, start, wall)->repeated);
}

BOOST_AUTO_TEST_CASE(many_similar_events_become_one) {
  k8s::event_correlator events("manager", "", {});
  for (int i = 1; i < 10; ++i) {
    const auto one = events.next(note(std::to_string(i)), start, wall);
    BOOST_TEST(message_of(*one) == std::to_string(i));
  }
  const auto tenth = events.next(note("10"), start, wall);
  BOOST_TEST(message_of(*tenth) == "(combined from similar events): 10");
  BOOST_TEST(!tenth->repeated);
  const auto next = events.next(note("11"), start, wall);
  BOOST_TEST(message_of(*next) == "(combined from similar events): 11");
  BOOST_TEST(next->repeated);
  BOOST_TEST(count_of(*next) == 2);
  // After ten quiet minutes they are told apart again.
  const auto later = events.next(note("12"), start + 11min, wall + 11min);
  BOOST_TEST(message_of(*later) == "12");
}

BOOST_AUTO_TEST_CASE(too_many_events_of_one_object_are_left_out_but_counted) {
  k8s::event_correlator events("manager", "", {.burst = 3, .every = 300s});
  for (int i = 0; i < 3; ++i) BOOST_TEST(bool(events.next(note("x"), start, wall)));
  BOOST_TEST(!events.next(note("x"), start, wall));
  BOOST_TEST(!events.next(note("y"), start, wall));
  BOOST_TEST(bool(events.next(note("x", "other"), start, wall)));
  const auto later = events.next(note("x"), start + 300s, wall);
  BOOST_REQUIRE(later);
  BOOST_TEST(count_of(*later) == 5);
  BOOST_TEST(!events.next(note("x"), start + 301s, wall));
}

BOOST_AUTO_TEST_CASE(events_of_cluster_scoped_objects_lie_in_the_default_namespace) {
  k8s::event_correlator events("manager", "", {});
  auto one = note("x");
  one.about.ns.clear();
  const auto written = events.next(one, start, wall);
  BOOST_TEST(key_of(written->object).ns == "default");
  BOOST_TEST((find(written->object, {"involvedObject", "namespace"}) == nullptr));
}

BOOST_AUTO_TEST_CASE(names_are_unique_and_long_texts_are_cut) {
  k8s::event_correlator events("manager", "", {});
  const std::string long_name(253, 'n');
  const auto first = key_of(events.next(note("x", long_name), start, wall)->object).name;
  const auto second = key_of(events.next(note("y", long_name), start, wall)->object).name;
  BOOST_TEST(first != second);
  BOOST_TEST(first.size() == 253U);
  const auto cut = events.next(note("begin " + std::string(2000, 'x') + " end"), start, wall);
  const auto message = message_of(*cut);
  BOOST_TEST(message.size() == 1024U);
  BOOST_TEST(message.starts_with("begin xxx"));
  BOOST_TEST(message.ends_with("xxx end"));
}

BOOST_AUTO_TEST_CASE(correlator_bounds_the_remembered_events) {
  k8s::event_correlator events("manager", "", {.remembered = 2});
  events.next(note("x", "a"), start, wall);
  events.next(note("x", "b"), start, wall);
  events.next(note("x", "c"), start, wall);
  BOOST_TEST(events.next(note("x", "c"), start, wall)->repeated);
  BOOST_TEST(!events.next(note("x", "a"), start, wall)->repeated);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::k8s_test
