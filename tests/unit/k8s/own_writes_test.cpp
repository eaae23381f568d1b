#include "rw/k8s/cache/own_writes.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include <chrono>
#include <string>
#include <string_view>

BOOST_AUTO_TEST_SUITE(own_writes)

namespace json = boost::json;
namespace k8s = rw::k8s;

namespace {

json::value at(std::string_view version, std::string_view uid = "u") {
  return {{"metadata",
           {{"namespace", "n"}, {"name", "a"}, {"uid", uid}, {"resourceVersion", version}}}};
}
k8s::object stored(std::string_view version, std::string_view uid = "u") {
  return k8s::object::from_text(json::serialize(at(version, uid)));
}
/// The version that counts as the newest while the store is at `version`.
std::string newest(k8s::own_writes& writes, std::string_view version) {
  return std::string(k8s::resource_version_of(writes.newest(stored(version))));
}

}  // namespace

BOOST_AUTO_TEST_CASE(own_write_is_the_newest_state_until_the_store_has_it) {
  rw::core::manual_clock clock;
  k8s::own_writes writes(clock);
  BOOST_TEST(newest(writes, "1") == "1");
  writes.wrote(at("2"));
  BOOST_TEST(newest(writes, "1") == "2");
  BOOST_TEST(newest(writes, "1") == "2");
  BOOST_TEST(newest(writes, "2") == "2");
  BOOST_TEST(writes.size() == 0U);
}

BOOST_AUTO_TEST_CASE(store_may_be_behind_by_several_writes) {
  rw::core::manual_clock clock;
  k8s::own_writes writes(clock);
  writes.wrote(at("2"));
  writes.wrote(at("5"));
  BOOST_TEST(newest(writes, "1") == "5");
  BOOST_TEST(newest(writes, "2") == "5");
  BOOST_TEST(newest(writes, "5") == "5");
}

BOOST_AUTO_TEST_CASE(later_foreign_write_replaces_an_own_write) {
  rw::core::manual_clock clock;
  k8s::own_writes writes(clock);
  writes.wrote(at("2"));
  BOOST_TEST(newest(writes, "7") == "7");
  BOOST_TEST(writes.size() == 0U);
  writes.wrote(at("9"));
  BOOST_TEST(newest(writes, "10") == "10");
}

BOOST_AUTO_TEST_CASE(newest_is_the_latest_own_write_when_others_wrote_between) {
  rw::core::manual_clock clock;
  k8s::own_writes writes(clock);
  writes.wrote(at("2"));  // at 1
  writes.wrote(at("4"));  // at 3, which somebody else wrote
  for (const auto* stored : {"1", "2", "3"}) BOOST_TEST(newest(writes, stored) == "4");
  BOOST_TEST(newest(writes, "4") == "4");
  BOOST_TEST(writes.size() == 0U);
}

BOOST_AUTO_TEST_CASE(own_writes_forgets_the_oldest_beyond_its_capacity) {
  rw::core::manual_clock clock;
  k8s::own_writes writes(clock, 2);
  const auto named = [](const char* name) {
    return json::value{
        {"metadata", {{"namespace", "n"}, {"name", name}, {"uid", "u"}, {"resourceVersion", "5"}}}};
  };
  for (const auto* name : {"a", "b", "c"}) writes.wrote(named(name));
  BOOST_TEST(writes.size() == 2U);
  BOOST_TEST(newest(writes, "1") == "1");
}

BOOST_AUTO_TEST_CASE(write_that_a_restored_store_never_shows_is_forgotten_after_a_minute) {
  rw::core::manual_clock clock;
  k8s::own_writes writes(clock);
  writes.wrote(at("1004"));
  clock.advance(k8s::own_writes::lifetime - std::chrono::seconds(1));
  BOOST_TEST(newest(writes, "500") == "1004");
  clock.advance(std::chrono::seconds(1));
  BOOST_TEST(newest(writes, "500") == "500");
  BOOST_TEST(writes.size() == 0U);
}

/// Nobody may ask for it again for long.
BOOST_AUTO_TEST_CASE(write_that_is_not_asked_for_is_forgotten_with_the_next_one) {
  rw::core::manual_clock clock;
  k8s::own_writes writes(clock);
  const auto named = [](const std::string& name) {
    return json::value{
        {"metadata", {{"namespace", "n"}, {"name", name}, {"uid", "u"}, {"resourceVersion", "5"}}}};
  };
  for (const auto* name : {"b", "c"}) writes.wrote(named(name));
  clock.advance(k8s::own_writes::lifetime);
  BOOST_TEST(writes.size() == 2U);
  writes.wrote(at("2"));
  BOOST_TEST(writes.size() == 1U);
  clock.advance(k8s::own_writes::lifetime);
  writes.newest(k8s::object::from_text(json::serialize(named("b"))));
  BOOST_TEST(writes.size() == 0U);
}

BOOST_AUTO_TEST_CASE(answer_without_a_name_is_not_kept) {
  rw::core::manual_clock clock;
  k8s::own_writes writes(clock);
  for (const json::value& none : {json::value(), json::value(json::object())}) writes.wrote(none);
  BOOST_TEST(writes.size() == 0U);
}

BOOST_AUTO_TEST_CASE(newest_is_the_stores_where_versions_are_no_numbers) {
  rw::core::manual_clock clock;
  k8s::own_writes writes(clock);
  writes.wrote(at("x2"));
  BOOST_TEST(newest(writes, "x1") == "x1");
}

BOOST_AUTO_TEST_CASE(write_that_changed_nothing_is_not_waited_for) {
  rw::core::manual_clock clock;
  k8s::own_writes writes(clock);
  writes.wrote(at("1"));
  BOOST_TEST(newest(writes, "1") == "1");
  BOOST_TEST(writes.size() == 0U);
}

BOOST_AUTO_TEST_CASE(object_made_again_is_another_one) {
  rw::core::manual_clock clock;
  k8s::own_writes writes(clock);
  writes.wrote(at("2"));
  BOOST_TEST(k8s::uid_of(writes.newest(stored("1", "other"))) == "other");
  writes.wrote(at("2"));
  writes.forget({"n", "a"});
  BOOST_TEST(newest(writes, "1") == "1");
}

BOOST_AUTO_TEST_SUITE_END()
