#include "core/coalescing_set.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(coalescing_set)

using rw::core::insert_result;
using set = rw::core::coalescing_set<std::string>;

namespace {

/// The moment `n` seconds after an arbitrary beginning.
set::time_point at(int n) {
  return set::time_point(std::chrono::seconds(n));
}

std::vector<std::string> take_names(set& from, std::size_t max) {
  std::vector<set::taken> got;
  from.take(got, max);
  std::vector<std::string> names;
  for (const set::taken& each : got) names.push_back(*each.key);
  return names;
}

/// The same rules, written as plainly as possible.
struct naive_set {
  struct entry {
    int first;
    int latest;
    int attempts;
  };
  std::size_t capacity;
  std::deque<int> queue{};
  std::map<int, entry> inside{};
  std::map<int, int> flying{};  // key to the time it got dirty, or -1

  insert_result insert(int key, int now) {
    if (inside.contains(key)) {
      inside[key].latest = now;
      if (flying.contains(key) && flying[key] < 0) flying[key] = now;
      return insert_result::merged;
    }
    if (inside.size() >= capacity) return insert_result::full;
    inside[key] = {now, now, 0};
    queue.push_back(key);
    return insert_result::added;
  }
  bool end(int key, bool retry) {
    if (!flying.contains(key)) return false;
    const int dirty = flying[key];
    flying.erase(key);
    if (dirty < 0 && !retry) {
      inside.erase(key);
      return true;
    }
    if (dirty >= 0) {
      inside[key].first = dirty;
      inside[key].attempts = 0;
    } else {
      ++inside[key].attempts;
    }
    queue.push_back(key);
    return true;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(keys_are_taken_in_the_order_in_which_they_came) {
  set keys(10);
  for (const char* name : {"c", "a", "b"}) {
    BOOST_CHECK(keys.insert(name, at(0)) == insert_result::added);
  }
  BOOST_CHECK(take_names(keys, 2) == (std::vector<std::string>{"c", "a"}));
  BOOST_CHECK_EQUAL(keys.queued(), 1U);
  BOOST_CHECK_EQUAL(keys.in_flight(), 2U);
  BOOST_CHECK(take_names(keys, 5) == (std::vector<std::string>{"b"}));
}

BOOST_AUTO_TEST_CASE(a_key_inserted_twice_is_taken_once_and_keeps_its_place) {
  set keys(10);
  keys.insert("a", at(1));
  keys.insert("b", at(2));
  BOOST_CHECK(keys.insert("a", at(3)) == insert_result::merged);
  std::vector<set::taken> got;
  BOOST_CHECK_EQUAL(keys.take(got, 10), 2U);
  BOOST_CHECK_EQUAL(*got[0].key, "a");
  BOOST_CHECK(got[0].first_accepted == at(1));
  BOOST_CHECK(got[0].latest_accepted == at(3));
}

BOOST_AUTO_TEST_CASE(a_key_changed_in_flight_goes_to_the_back_when_its_flight_is_done) {
  set keys(10);
  keys.insert("a", at(1));
  BOOST_CHECK(take_names(keys, 1) == (std::vector<std::string>{"a"}));
  BOOST_CHECK(keys.insert("a", at(2)) == insert_result::merged);
  keys.insert("b", at(3));
  keys.insert("a", at(4));
  BOOST_CHECK(take_names(keys, 5) == (std::vector<std::string>{"b"}));  // never in flight twice
  BOOST_CHECK(keys.done("a"));
  BOOST_CHECK(keys.done("b"));
  std::vector<set::taken> got;
  BOOST_REQUIRE_EQUAL(keys.take(got, 5), 1U);
  BOOST_CHECK_EQUAL(*got[0].key, "a");
  BOOST_CHECK(got[0].first_accepted == at(2));
  BOOST_CHECK(got[0].latest_accepted == at(4));
  BOOST_CHECK(keys.done("a"));
  BOOST_CHECK(keys.empty());
}

BOOST_AUTO_TEST_CASE(a_retried_key_keeps_the_time_of_its_first_acceptance) {
  set keys(10);
  keys.insert("a", at(1));
  take_names(keys, 1);
  BOOST_CHECK(keys.retry("a"));
  BOOST_CHECK(keys.head_accepted() == at(1));
  std::vector<set::taken> got;
  keys.take(got, 1);
  BOOST_CHECK(got[0].first_accepted == at(1));
  BOOST_CHECK_EQUAL(got[0].attempts, 1U);
}

BOOST_AUTO_TEST_CASE(a_retried_key_that_is_dirty_counts_from_its_new_change) {
  set keys(10);
  keys.insert("a", at(1));
  take_names(keys, 1);
  keys.retry("a");
  take_names(keys, 1);
  keys.insert("a", at(7));
  BOOST_CHECK(keys.retry("a"));
  std::vector<set::taken> got;
  keys.take(got, 1);
  BOOST_CHECK(got[0].first_accepted == at(7));
  BOOST_CHECK_EQUAL(got[0].attempts, 0U);
}

BOOST_AUTO_TEST_CASE(a_dropped_key_is_forgotten_unless_it_changed_meanwhile) {
  set keys(10);
  keys.insert("a", at(1));
  keys.insert("b", at(1));
  take_names(keys, 2);
  keys.insert("b", at(2));
  BOOST_CHECK(keys.drop("a"));
  BOOST_CHECK(keys.drop("b"));
  BOOST_CHECK(!keys.contains("a"));
  BOOST_CHECK(take_names(keys, 2) == (std::vector<std::string>{"b"}));
}

BOOST_AUTO_TEST_CASE(a_full_set_refuses_new_keys_and_merges_known_ones) {
  set keys(2);
  keys.insert("a", at(1));
  keys.insert("b", at(1));
  take_names(keys, 1);
  std::string other = "a key long enough to live on the heap";
  BOOST_CHECK(keys.insert(std::move(other), at(2)) == insert_result::full);
  BOOST_CHECK_EQUAL(other, "a key long enough to live on the heap");
  BOOST_CHECK(keys.insert("a", at(2)) == insert_result::merged);
  BOOST_CHECK(keys.insert("b", at(2)) == insert_result::merged);
  BOOST_CHECK(keys.full());
}

BOOST_AUTO_TEST_CASE(what_is_not_in_flight_cannot_end) {
  set keys(2);
  keys.insert("a", at(1));
  BOOST_CHECK(!keys.done("a"));
  BOOST_CHECK(!keys.retry("a"));
  BOOST_CHECK(!keys.drop("b"));
  BOOST_CHECK_EQUAL(keys.queued(), 1U);
}

BOOST_AUTO_TEST_CASE(it_does_what_a_naive_model_does) {
  std::mt19937 random(20240607);
  for (int round = 0; round < 50; ++round) {
    const std::size_t capacity = 1 + random() % 12;
    rw::core::coalescing_set<int> keys(capacity);
    naive_set model{capacity};
    for (int now = 0; now < 2000; ++now) {
      const int key = static_cast<int>(random() % 16);
      switch (random() % 5) {
        case 0:
        case 1:
          BOOST_REQUIRE(keys.insert(key, at(now)) == model.insert(key, now));
          break;
        case 2: {
          std::vector<rw::core::coalescing_set<int>::taken> got;
          const std::size_t max = random() % 4;
          BOOST_REQUIRE_EQUAL(keys.take(got, max), std::min(max, model.queue.size()));
          for (const auto& each : got) {
            const int expected = model.queue.front();
            model.queue.pop_front();
            model.flying[expected] = -1;
            BOOST_REQUIRE_EQUAL(*each.key, expected);
            const naive_set::entry& known = model.inside[expected];
            BOOST_REQUIRE(each.first_accepted == at(known.first));
            BOOST_REQUIRE(each.latest_accepted == at(known.latest));
            BOOST_REQUIRE_EQUAL(each.attempts, static_cast<unsigned>(known.attempts));
          }
          break;
        }
        case 3:
          BOOST_REQUIRE_EQUAL(keys.done(key), model.end(key, false));
          break;
        default:
          BOOST_REQUIRE_EQUAL(keys.retry(key), model.end(key, true));
      }
      BOOST_REQUIRE_EQUAL(keys.size(), model.inside.size());
      BOOST_REQUIRE_EQUAL(keys.in_flight(), model.flying.size());
      BOOST_REQUIRE_EQUAL(keys.queued(), model.queue.size());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
