#include "reactors/places.hpp"

#include "core/metrics.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(places)

using rw::places;

namespace {

k8s::object_key key(const char* name) {
  return {"kcp-system", name};
}

/// One place, and who was called.
struct fixture {
  core::metrics numbers;
  std::string called;
  std::string absent;
  class places all{numbers, "rw_watcher_installer", 1, [this](const k8s::object_key& one) {
                     called += one.name;
                     return absent.find(one.name) == absent.npos;
                   }};
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(they_are_taken_and_given_back, fixture) {
  {
    const auto one = all.take(key("a"));
    BOOST_TEST(static_cast<bool>(one));
  }
  auto one = all.take(key("b"));
  BOOST_TEST(static_cast<bool>(one));
  one = {};
  BOOST_TEST(static_cast<bool>(all.take(key("c"))));
  BOOST_TEST(called.empty());
}

BOOST_FIXTURE_TEST_CASE(who_gets_none_is_called_in_turn_and_finds_it_kept, fixture) {
  auto first = all.take(key("a"));
  for (const auto* name : {"b", "c", "b"}) BOOST_TEST(!all.take(key(name)));
  BOOST_TEST(all.waiting() == 2U);
  BOOST_TEST(core::expose(numbers).find("rw_watcher_installer_sick_waiting 2") !=
             std::string::npos);
  first = {};
  BOOST_TEST(called == "b");
  BOOST_TEST(!all.take(key("c")), "it is kept for b");
  BOOST_TEST(!all.claim(key("c")));
  auto second = all.claim(key("b"));
  BOOST_TEST(static_cast<bool>(second));
  second = {};
  BOOST_TEST(called == "bc");
  // One that is called claims, even if it has no more use for the place.
  all.claim(key("c"));
  BOOST_TEST(static_cast<bool>(all.take(key("d"))));
  BOOST_TEST(all.waiting() == 0U);
}

BOOST_FIXTURE_TEST_CASE(who_cannot_come_loses_its_turn, fixture) {
  absent = "bc";
  auto first = all.take(key("a"));
  for (const auto* name : {"b", "c", "d"}) BOOST_TEST(!all.take(key(name)));
  first = {};
  BOOST_TEST(called == "bcd");
  BOOST_TEST(static_cast<bool>(all.claim(key("d"))));
  absent = "bcd";
  first = all.take(key("a"));
  BOOST_TEST(!all.take(key("d")));
  first = {};
  BOOST_TEST(static_cast<bool>(all.take(key("e"))), "it is kept for nobody");
}

BOOST_FIXTURE_TEST_CASE(who_wants_one_is_called_as_soon_as_there_is_one, fixture) {
  all.want(key("a"));
  BOOST_TEST(called == "a");
  all.want(key("a"));
  all.want(key("b"));
  BOOST_TEST(called == "a");
  all.claim(key("a"));
  BOOST_TEST(called == "ab");
  BOOST_TEST(static_cast<bool>(all.take(key("b"))), "what is kept is taken, too");
  absent = "c";
  all.want(key("c"));
  BOOST_TEST(static_cast<bool>(all.take(key("d"))));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
