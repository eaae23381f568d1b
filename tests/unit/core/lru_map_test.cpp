#include "rw/core/lru_map.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace rw::core_test {
BOOST_AUTO_TEST_SUITE(lru_map)

namespace core = rw::core;

BOOST_AUTO_TEST_CASE(value_is_made_once_and_kept) {
  core::lru_map<std::string, int> map(2);
  BOOST_TEST(map.use("a", 1) == 1);
  BOOST_TEST(map.use("a", 2) == 1);
  map.use("a") = 3;
  BOOST_TEST(map.use("a", 4) == 3);
  map.erase("a");
  map.erase("b");
  BOOST_TEST(map.use("a", 5) == 5);
}

BOOST_AUTO_TEST_CASE(map_evicts_the_least_recently_used_entry) {
  core::lru_map<int, int> map(2);
  map.use(1, 10);
  map.use(2, 20);
  map.use(1);
  map.use(3, 30);
  BOOST_TEST(map.size() == 2U);
  BOOST_TEST(map.use(1, 11) == 10);
  BOOST_TEST(map.use(2, 21) == 21);
}

BOOST_AUTO_TEST_CASE(to_find_an_entry_is_not_to_use_it) {
  core::lru_map<int, int> map(2);
  map.use(1, 10);
  map.use(2, 20);
  BOOST_TEST(*map.find(1) == 10);
  map.use(3, 30);
  BOOST_TEST(map.find(1) == nullptr);
  BOOST_TEST(map.erase(2));
  BOOST_TEST(!map.erase(2));
}

BOOST_AUTO_TEST_CASE(entries_are_forgotten_by_their_value) {
  core::lru_map<int, int> map(8);
  for (int i = 0; i < 6; ++i) map.use(i, i * 10);
  BOOST_TEST(map.erase_if([](int value) { return value >= 30; }) == 3U);
  BOOST_TEST(map.size() == 3U);
  BOOST_TEST(map.find(3) == nullptr);
  BOOST_TEST(*map.find(2) == 20);
}

BOOST_AUTO_TEST_CASE(least_recently_used_entries_are_forgotten_up_to_one_that_stays) {
  core::lru_map<int, int> map(8);
  for (const int i : {0, 1, 2, 3}) map.use(i, i * 10);
  map.use(0);
  const auto erased = map.erase_oldest_while([](int value) { return value != 20; });
  BOOST_TEST(erased == 1U);  // of 1; then comes 2
  BOOST_TEST(map.size() == 3U);
  BOOST_TEST(map.find(1) == nullptr);
  BOOST_TEST(map.erase_oldest_while([](int) { return true; }) == 3U);
  BOOST_TEST(map.size() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::core_test
