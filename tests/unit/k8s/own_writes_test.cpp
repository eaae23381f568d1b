#include "k8s/own_writes.hpp"

#include "k8s/types.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

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

BOOST_AUTO_TEST_CASE(what_was_written_counts_until_the_store_has_it) {
  k8s::own_writes writes;
  BOOST_TEST(newest(writes, "1") == "1");
  writes.wrote("1", at("2"));
  BOOST_TEST(newest(writes, "1") == "2");
  BOOST_TEST(newest(writes, "1") == "2");
  BOOST_TEST(newest(writes, "2") == "2");
  BOOST_TEST(writes.size() == 0U);
}

BOOST_AUTO_TEST_CASE(a_store_may_be_behind_by_several_writes) {
  k8s::own_writes writes;
  writes.wrote("1", at("2"));
  writes.wrote("2", at("5"));
  BOOST_TEST(newest(writes, "1") == "5");
  BOOST_TEST(newest(writes, "2") == "5");
  BOOST_TEST(newest(writes, "5") == "5");
}

BOOST_AUTO_TEST_CASE(what_others_wrote_after_it_wins) {
  k8s::own_writes writes;
  writes.wrote("1", at("2"));
  BOOST_TEST(newest(writes, "7") == "7");
  BOOST_TEST(writes.size() == 0U);
  writes.wrote("1", at("2"));
  writes.wrote("7", at("8"));  // somebody else wrote 7
  BOOST_TEST(newest(writes, "7") == "8");
  BOOST_TEST(newest(writes, "1") == "1");  // which nothing of ours follows directly
}

BOOST_AUTO_TEST_CASE(a_write_that_changed_nothing_is_not_waited_for) {
  k8s::own_writes writes;
  writes.wrote("1", at("1"));
  BOOST_TEST(newest(writes, "1") == "1");
  BOOST_TEST(writes.size() == 0U);
}

BOOST_AUTO_TEST_CASE(an_object_made_anew_is_another_one) {
  k8s::own_writes writes;
  writes.wrote("1", at("2"));
  BOOST_TEST(k8s::uid_of(writes.newest(stored("1", "other"))) == "other");
  writes.wrote("1", at("2"));
  writes.forget({"n", "a"});
  BOOST_TEST(newest(writes, "1") == "1");
}

BOOST_AUTO_TEST_SUITE_END()
