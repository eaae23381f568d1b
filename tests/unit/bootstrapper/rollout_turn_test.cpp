// What a runtime has while it waits for its turn.

#include "rw/reactors/bootstrapper/rollout_turn.hpp"

#include "rw/reactors/shared/field_owners.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(rollout_turn)

namespace json = boost::json;

using bootstrapper::revision;
using bootstrapper::revision_ptr;
using bootstrapper::unit;
using bootstrapper::unit_state;

namespace {

revision_ptr named(std::string digest) {
  revision out;
  out.digest = std::move(digest);
  return std::make_shared<const revision>(std::move(out));
}

unit_state newest_b(const char* in_place) {
  return {.revisions = {named("b"), named("a"), named("z")}, .desired = "b", .in_place = in_place};
}

std::vector<std::string> digests(const unit_state& of) {
  std::vector<std::string> out;
  for (const auto& each : of.revisions) out.push_back(each->digest);
  return out;
}

using list = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(waiting_runtime_keeps_the_revision_in_place) {
  auto of = newest_b("a");
  hold(of, named("c"));
  BOOST_TEST((digests(of) == list{"a"}));
  BOOST_TEST(of.desired == "a");
  BOOST_TEST(of.withheld->digest == "b");
}

BOOST_AUTO_TEST_CASE(runtime_with_nothing_gets_what_was_rolled_out_last) {
  auto of = newest_b("");
  hold(of, named("c"));
  BOOST_TEST((digests(of) == list{"c"}));
  BOOST_TEST(of.desired == "c");
  of = newest_b("");
  hold(of, nullptr);
  BOOST_TEST(of.revisions.empty());
  BOOST_TEST(of.desired.empty());
}

BOOST_AUTO_TEST_CASE(runtime_that_was_cut_short_gets_back_what_it_had) {
  auto of = newest_b("");
  of.applying = "b";
  of.had = named("a");
  hold(of, named("c"));
  BOOST_TEST((digests(of) == list{"a"}));
  BOOST_TEST(of.desired == "a");
  BOOST_TEST(of.withheld->digest == "b");
}

/// Another manager renders the same contents otherwise.
BOOST_AUTO_TEST_CASE(waiting_runtime_keeps_its_contents_with_another_digest) {
  auto of = newest_b("a as before");
  of.had = named("a");
  hold(of, named("c"));
  BOOST_TEST((digests(of) == list{"a"}));
  BOOST_TEST(of.desired == "a");
}

BOOST_AUTO_TEST_CASE(revision_in_place_that_is_not_stored_is_left_alone) {
  auto of = newest_b("lost");
  hold(of, named("c"));
  BOOST_TEST(of.revisions.empty());
  BOOST_TEST(of.desired == "lost");
  BOOST_TEST(of.lost);
  of = newest_b("c");
  hold(of, named("c"));
  BOOST_TEST((digests(of) == list{"c"}));
  BOOST_TEST(!of.lost);
}

BOOST_AUTO_TEST_CASE(invalid_content_brings_no_other_stored_one) {
  unit_state of{.revisions = {named("stored"), named("a")}, .invalid = "a field", .in_place = "a"};
  hold(of, nullptr);
  BOOST_TEST((digests(of) == list{"a"}));
  BOOST_TEST(of.desired.empty());
  BOOST_TEST(of.withheld == nullptr);
}

BOOST_AUTO_TEST_CASE(runtime_on_its_way_to_the_newest_gets_there_if_nothing_else_is_known) {
  unit_state of{.revisions = {named("b")}, .desired = "b", .applying = "b"};
  hold(of, nullptr);
  BOOST_TEST((digests(of) == list{"b"}));
  BOOST_TEST(of.desired == "b");
  BOOST_TEST(of.withheld == nullptr);
  of = {.revisions = {named("b")}, .desired = "b", .applying = "b"};
  hold(of, named("a"));
  BOOST_TEST((digests(of) == list{"a"}));
  BOOST_TEST(of.withheld->digest == "b");
}

BOOST_AUTO_TEST_CASE(runtime_on_its_way_to_an_older_one_gets_there_if_nothing_else_is_known) {
  unit_state of{.revisions = {named("b"), named("a")}, .desired = "b", .applying = "a"};
  hold(of, nullptr);
  BOOST_TEST((digests(of) == list{"a"}));
  BOOST_TEST(of.desired == "a");
  BOOST_TEST(of.withheld->digest == "b");
  of = {.revisions = {named("a")}, .invalid = "a field", .applying = "a"};
  hold(of, nullptr);
  BOOST_TEST((digests(of) == list{"a"}));
  BOOST_TEST(of.desired.empty());
}

BOOST_AUTO_TEST_CASE(field_is_of_the_newer_revision_if_its_value_and_its_owner_say_so) {
  const std::string ours = "ours";
  const std::vector<std::string> others{"kim", "manager"};
  const auto older = json::parse(
      R"({"data": {"a": "1", "b": "1"}, "spec": {"containers": [{"name": "main", "image": "x:1"}], "finalizers": ["old"]}})");
  const auto newer = json::parse(
      R"({"data": {"a": "2", "c": "2"}, "spec": {"containers": [{"name": "main", "image": "x:2"}], "finalizers": ["new"]}})");
  const auto entry = [](const std::string& manager, const char* operation, const char* fields) {
    return json::value{
        {"manager", manager}, {"operation", operation}, {"fieldsV1", json::parse(fields)}};
  };
  const auto is_newer = [&](const char* live, std::vector<json::value> entries) {
    auto object = json::parse(live);
    object.as_object()["metadata"] = {
        {"managedFields", json::array(entries.begin(), entries.end())}};
    return has_newer_field(fields_of_others(object, others, ours), object, older, newer);
  };
  const char* const a_is_new = R"({"data": {"a": "2", "b": "1"}})";
  const char* const a = R"({"f:data": {".": {}, "f:a": {}}})";
  BOOST_TEST(is_newer(a_is_new, {entry("kim", "Apply", a)}));
  BOOST_TEST(is_newer(a_is_new, {entry("manager", "Update", a)}));
  BOOST_TEST(is_newer(a_is_new, {entry("kim", "Apply", R"({"f:data": {}})")}) ==
             false);  // b is not new
  BOOST_TEST(!is_newer(a_is_new, {}));
  BOOST_TEST(!is_newer(a_is_new, {entry(ours, "Apply", a)}));
  BOOST_TEST(!is_newer(a_is_new, {entry(ours, "Apply", a), entry("kim", "Apply", a)}));
  BOOST_TEST(!is_newer(a_is_new, {entry("somebody", "Apply", a)}));
  BOOST_TEST(!is_newer(R"({"data": {"a": "3"}})", {entry("kim", "Apply", a)}));
  BOOST_TEST(!is_newer(R"({"data": {"a": "1"}})", {entry("kim", "Apply", a)}));
  // A field that only the newer one has.
  BOOST_TEST(
      is_newer(R"({"data": {"c": "2"}})", {entry("kim", "Apply", R"({"f:data": {"f:c": {}}})")}));
  // Elements of lists.
  const char* const image =
      R"({"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {".": {}, "f:image": {}}}}})";
  BOOST_TEST(
      is_newer(R"({"spec": {"containers": [{"name": "side"}, {"name": "main", "image": "x:2"}]}})",
               {entry("kim", "Apply", image)}));
  BOOST_TEST(!is_newer(R"({"spec": {"containers": [{"name": "main", "image": "x:1"}]}})",
                       {entry("kim", "Apply", image)}));
  const char* const finalizer = R"({"f:spec": {"f:finalizers": {"v:\"new\"": {}}}})";
  BOOST_TEST(is_newer(R"({"spec": {"finalizers": ["new"]}})", {entry("kim", "Apply", finalizer)}));
  BOOST_TEST(!is_newer(R"({"spec": {"finalizers": ["old"]}})", {entry("kim", "Apply", finalizer)}));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
