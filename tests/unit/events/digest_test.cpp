#include "rw/reactors/events/digest.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(digest)

using namespace rw::observation;

namespace {

state_hash of(const std::string& text, std::string_view field = "spec") {
  return state_of(boost::json::parse(text), field, false);
}

}  // namespace

BOOST_AUTO_TEST_CASE(order_of_members_does_not_matter) {
  const auto first = of(R"({"metadata":{"uid":"u"},"spec":{"a":1,"b":{"c":[1,"x"],"d":null}}})");
  const auto second = of(R"({"spec":{"b":{"d":null,"c":[1,"x"]},"a":1},"metadata":{"uid":"u"}})");
  BOOST_TEST(first == second);
}

BOOST_AUTO_TEST_CASE(difference_of_the_watched_part_counts) {
  const std::string begin = R"({"metadata":{"uid":"u"},"spec":)";
  const auto known = of(begin + R"({"a":[1,2],"b":"1"}})");
  for (const auto* other : {R"({"a":[2,1],"b":"1"})", R"({"a":[1,2],"b":1})", R"({"a":[1,2]})",
                            R"({"b":[1,2],"a":"1"})", R"({"a":[[1],2],"b":"1"})",
                            R"({"a":[1,2],"b":"1","c":null})", R"(null)", R"([])"}) {
    BOOST_TEST(of(begin + other + "}") != known, other);
  }
}

BOOST_AUTO_TEST_CASE(difference_of_other_parts_does_not_count) {
  const auto known = of(R"({"metadata":{"uid":"u","resourceVersion":"1"},"spec":1,"status":1})");
  BOOST_TEST(of(R"({"metadata":{"uid":"u","resourceVersion":"2"},"spec":1,"status":2})") == known);
  BOOST_TEST(of(R"({"metadata":{"uid":"u"},"spec":1,"status":1})", "status") !=
             of(R"({"metadata":{"uid":"u"},"spec":1,"status":2})", "status"));
}

BOOST_AUTO_TEST_CASE(digest_counts_another_uid_and_a_deletion) {
  const auto known = of(R"({"metadata":{"uid":"u"},"spec":1})");
  BOOST_TEST(of(R"({"metadata":{"uid":"v"},"spec":1})") != known);
  BOOST_TEST(of(R"({"metadata":{"uid":"u","deletionTimestamp":"x"},"spec":1})") != known);
}

BOOST_AUTO_TEST_CASE(object_without_parts_is_marked_by_its_version) {
  const auto known = of(R"({"metadata":{"uid":"u","resourceVersion":"1"},"data":{"a":"b"}})");
  BOOST_TEST(of(R"({"metadata":{"uid":"u","resourceVersion":"2"},"data":{"a":"b"}})") != known);
  // Without a spec every update is a change, as in a review; a status does not stand in for it.
  BOOST_TEST(of(R"({"metadata":{"uid":"u","resourceVersion":"1"},"status":1})") !=
             of(R"({"metadata":{"uid":"u","resourceVersion":"2"},"status":1})"));
  // A part that is still missing appears later.
  BOOST_TEST(of(R"({"metadata":{"uid":"u","resourceVersion":"1"},"spec":1})", "status") ==
             of(R"({"metadata":{"uid":"u","resourceVersion":"2"},"spec":1})", "status"));
}

BOOST_AUTO_TEST_CASE(generation_counts_for_a_spec_beside_a_status_subresource) {
  const auto of_generation = [](const char* number, std::string_view field, bool has_status) {
    return state_of(boost::json::parse(R"({"metadata":{"uid":"u","generation":)" +
                                       std::string(number) + R"(},"spec":1,"status":1})"),
                    field, has_status);
  };
  BOOST_TEST(of_generation("1", "spec", true) != of_generation("3", "spec", true));
  BOOST_TEST(of_generation("1", "spec", false) == of_generation("3", "spec", false));
  BOOST_TEST(of_generation("1", "status", true) == of_generation("3", "status", true));
  // Pods before Kubernetes 1.33 have none.
  const auto pod =
      state_of(boost::json::parse(R"({"metadata":{"uid":"u"},"spec":1})"), "spec", true);
  BOOST_TEST(pod == of_generation("1", "spec", false));
}

BOOST_AUTO_TEST_CASE(labels_are_all_needed) {
  const auto object = boost::json::parse(R"({"metadata":{"labels":{"a":"1","b":"2"}}})");
  BOOST_TEST(has_labels(object, {}));
  BOOST_TEST(has_labels(object, {{"a", "1"}, {"b", "2"}}));
  BOOST_TEST(!has_labels(object, {{"a", "1"}, {"b", "3"}}));
  BOOST_TEST(!has_labels(object, {{"c", ""}}));
}

BOOST_AUTO_TEST_SUITE_END()
