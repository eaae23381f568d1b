#include "rw/core/coalescing_set.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(coalescing_set)

namespace {

using rw::core::insert_result;
using set = rw::core::coalescing_set<std::string>;
using names = std::vector<std::string>;

/// The moment `n` seconds after an arbitrary beginning.
set::time_point at(int n) {
  return set::time_point(std::chrono::seconds(n));
}

std::vector<set::taken> take(set& from, std::size_t max) {
  std::vector<set::taken> got;
  from.take(got, max);
  return got;
}

names take_names(set& from, std::size_t max) {
  names all;
  for (const auto& each : take(from, max)) all.push_back(each.key());
  return all;
}

/// The same rules, written as plainly as possible.
struct naive_set {
  struct entry {
    int first;
    int latest;
    int attempts = 0;
    int dirty_since = -1;
    int due = -1;  ///< of a delay
    bool flies = false;
  };
  std::deque<int> queue{};
  std::map<int, entry> inside{};

  insert_result insert(int key, int now) {
    const auto [known, added] = inside.try_emplace(key, entry{now, now});
    auto& e = known->second;
    e.latest = now;
    if (added) queue.push_back(key);
    if (e.flies && e.dirty_since < 0) e.dirty_since = now;
    if (e.due >= 0) e.attempts = 0;
    return added ? insert_result::added : insert_result::merged;
  }
  void end(int key, bool delivered, int due) {
    auto& e = inside.at(key);
    e.flies = false;
    const bool dirty = e.dirty_since >= 0;
    if (delivered && !dirty) {
      inside.erase(key);
      return;
    }
    if (delivered) e.first = e.dirty_since;
    e.attempts = dirty ? 0 : e.attempts + 1;
    e.dirty_since = -1;
    e.due = due;
    if (due < 0) queue.push_back(key);
  }
  void wake(int now) {
    for (;;) {
      auto next = inside.end();
      for (auto i = inside.begin(); i != inside.end(); ++i) {
        if (i->second.due < 0 || i->second.due > now) continue;
        if (next == inside.end() || i->second.due < next->second.due) next = i;
      }
      if (next == inside.end()) return;
      next->second.due = -1;
      queue.push_back(next->first);
    }
  }
  std::vector<int> expire(int until) {
    std::vector<int> gone;
    for (const auto& [key, e] : inside) {
      if (e.latest <= until && !e.flies) gone.push_back(key);
    }
    for (const int key : gone) {
      inside.erase(key);
      std::erase(queue, key);
    }
    return gone;
  }
  std::size_t delayed() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(inside, [](const auto& e) { return e.second.due >= 0; }));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(set_gives_keys_in_the_order_in_which_they_came) {
  set keys;
  for (const char* name : {"c", "a", "b"}) {
    BOOST_CHECK(keys.insert(name, at(0)) == insert_result::added);
  }
  BOOST_CHECK(take_names(keys, 2) == (names{"c", "a"}));
  BOOST_CHECK_EQUAL(keys.queued(), 1U);
  BOOST_CHECK_EQUAL(keys.in_flight(), 2U);
  BOOST_CHECK(take_names(keys, 5) == (names{"b"}));
}

BOOST_AUTO_TEST_CASE(set_gives_key_once_that_was_inserted_twice_and_keeps_its_place) {
  set keys;
  keys.insert("a", at(1));
  keys.insert("b", at(2));
  BOOST_CHECK(keys.insert("a", at(3)) == insert_result::merged);
  const auto got = take(keys, 10);
  BOOST_REQUIRE_EQUAL(got.size(), 2U);
  BOOST_CHECK_EQUAL(got[0].key(), "a");
  BOOST_CHECK(got[0].first_accepted() == at(1));
  BOOST_CHECK(got[0].latest_accepted() == at(3));
}

BOOST_AUTO_TEST_CASE(set_queues_key_at_the_back_that_changed_in_flight) {
  set keys;
  keys.insert("a", at(1));
  const auto a = take(keys, 1);
  BOOST_CHECK(keys.insert("a", at(2)) == insert_result::merged);
  keys.insert("b", at(3));
  keys.insert("a", at(4));
  const auto b = take(keys, 5);
  BOOST_REQUIRE_EQUAL(b.size(), 1U);  // never in flight twice
  keys.done(a[0]);
  keys.done(b[0]);
  const auto again = take(keys, 5);
  BOOST_REQUIRE_EQUAL(again.size(), 1U);
  BOOST_CHECK_EQUAL(again[0].key(), "a");
  BOOST_CHECK(again[0].first_accepted() == at(2));
  BOOST_CHECK(again[0].latest_accepted() == at(4));
  keys.done(again[0]);
  BOOST_CHECK(keys.empty());
}

BOOST_AUTO_TEST_CASE(retried_key_keeps_the_time_of_its_oldest_undelivered_change) {
  set keys;
  keys.insert("a", at(1));
  keys.retry(take(keys, 1)[0]);
  auto got = take(keys, 1);
  BOOST_CHECK(got[0].first_accepted() == at(1));
  BOOST_CHECK_EQUAL(got[0].attempts(), 1U);
  keys.insert("a", at(7));
  keys.retry(got[0]);
  got = take(keys, 1);
  BOOST_CHECK(got[0].first_accepted() == at(1));
  BOOST_CHECK(got[0].latest_accepted() == at(7));
  BOOST_CHECK_EQUAL(got[0].attempts(), 0U);  // as if new
}

BOOST_AUTO_TEST_CASE(delayed_key_is_queued_when_it_is_due) {
  set keys;
  keys.insert("a", at(1));
  keys.insert("b", at(1));
  const auto got = take(keys, 2);
  keys.retry_at(got[0], at(9));
  keys.retry_at(got[1], at(5));
  BOOST_CHECK(keys.next_due() == at(5));
  keys.wake(at(4));
  BOOST_CHECK_EQUAL(keys.queued(), 0U);
  BOOST_CHECK_EQUAL(keys.delayed(), 2U);
  keys.wake(at(9));
  BOOST_CHECK(take_names(keys, 5) == (names{"b", "a"}));
  BOOST_CHECK(keys.next_due() == set::time_point::max());
}

BOOST_AUTO_TEST_CASE(key_that_expired_in_flight_is_removed_after_a_failure_only) {
  for (const bool delivered : {true, false}) {
    set keys;
    names gone;
    const auto note = [&](const std::string& key) { gone.push_back(key); };
    keys.insert("a", at(1));
    keys.insert("b", at(2));
    const auto got = take(keys, 1);
    keys.insert("a", at(3));
    keys.expire(at(9), note);
    BOOST_CHECK(gone == names{"b"});
    if (delivered) keys.done(got[0]);
    if (!delivered) keys.retry(got[0]);
    keys.insert("c", at(10));
    keys.expire(at(9), note);  // the change during the flight has expired as well
    BOOST_CHECK(gone == (names{"b", "a"}));
    BOOST_CHECK(take_names(keys, 5) == names{"c"});
  }
}

BOOST_AUTO_TEST_CASE(set_sheds_its_newest_queued_key_then_the_one_delayed_longest) {
  set keys;
  names gone;
  for (const char* name : {"a", "b", "c", "d"}) keys.insert(name, at(1));
  const auto got = take(keys, 2);
  keys.retry_at(got[0], at(9));
  keys.retry_at(got[1], at(5));
  for (int i = 0; i < 4; ++i) keys.shed([&](const std::string& key) { gone.push_back(key); });
  BOOST_CHECK(gone == (names{"d", "c", "a", "b"}));
  BOOST_CHECK(keys.empty());
  BOOST_CHECK(keys.oldest() == set::time_point::max());
}

BOOST_AUTO_TEST_CASE(set_matches_a_naive_model) {
  std::mt19937 random(20240607);
  for (int round = 0; round < 50; ++round) {
    rw::core::coalescing_set<int> keys;
    naive_set model;
    std::vector<rw::core::coalescing_set<int>::taken> flights;
    const auto end = [&](int now) {
      if (flights.empty()) return;
      const auto which = flights.begin() + static_cast<std::ptrdiff_t>(random() % flights.size());
      const auto flight = *which;
      flights.erase(which);
      const int due = random() % 2 == 0 ? -1 : now + static_cast<int>(random() % 50);
      const bool delivered = due < 0 && random() % 2 == 0;
      model.end(flight.key(), delivered, due);
      if (delivered) {
        keys.done(flight);
      } else if (due < 0) {
        keys.retry(flight);
      } else {
        keys.retry_at(flight, at(due));
      }
    };
    for (int now = 0; now < 2000; ++now) {
      const int key = static_cast<int>(random() % 16);
      switch (random() % 7) {
        case 0:
        case 1:
          BOOST_REQUIRE(keys.insert(int{key}, at(now)) == model.insert(key, now));
          break;
        case 2: {
          const auto before = flights.size();
          const std::size_t max = random() % 4;
          BOOST_REQUIRE_EQUAL(keys.take(flights, max), std::min(max, model.queue.size()));
          for (auto i = before; i < flights.size(); ++i) {
            const int expected = model.queue.front();
            model.queue.pop_front();
            auto& known = model.inside.at(expected);
            known.flies = true;
            BOOST_REQUIRE_EQUAL(flights[i].key(), expected);
            BOOST_REQUIRE(flights[i].first_accepted() == at(known.first));
            BOOST_REQUIRE(flights[i].latest_accepted() == at(known.latest));
            BOOST_REQUIRE_EQUAL(flights[i].attempts(), static_cast<unsigned>(known.attempts));
          }
          break;
        }
        case 3:
          // Keys that are due at the same moment come in any order; here there are none.
          if (model.delayed() < 2) {
            keys.wake(at(now));
            model.wake(now);
          }
          break;
        case 4: {
          std::vector<int> gone;
          keys.expire(at(now - 40), [&](int each) { gone.push_back(each); });
          std::ranges::sort(gone);
          BOOST_REQUIRE(gone == model.expire(now - 40));
          break;
        }
        default:
          end(now);
      }
      BOOST_REQUIRE_EQUAL(keys.size(), model.inside.size());
      BOOST_REQUIRE_EQUAL(keys.in_flight(), flights.size());
      BOOST_REQUIRE_EQUAL(keys.queued(), model.queue.size());
      BOOST_REQUIRE_EQUAL(keys.delayed(), model.delayed());
    }
  }
}

BOOST_AUTO_TEST_CASE(flight_says_whether_its_key_has_changed) {
  rw::core::coalescing_set<int> under_test;
  under_test.insert(1, at(3), at(1));
  std::vector<rw::core::coalescing_set<int>::taken> flights;
  under_test.take(flights, 1);
  BOOST_TEST((flights.at(0).first_accepted() == at(1)));
  BOOST_TEST((flights.at(0).latest_accepted() == at(3)));
  BOOST_TEST(!flights.at(0).changed());
  under_test.insert(1, at(4));
  BOOST_TEST(flights.at(0).changed());
  under_test.done(flights.at(0));
  BOOST_TEST(under_test.queued() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
