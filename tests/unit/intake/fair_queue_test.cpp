#include "rw/reactors/intake/fair_queue.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(fair_queue)

namespace {

using rw::listener::offer_result;
using queue = rw::listener::fair_queue;

rw::core::time_point at(int seconds) {
  return rw::core::time_point(std::chrono::seconds(seconds));
}

rw::watch_event event_of(const std::string& name) {
  return {{}, {"", "v1", "Pod"}, {"n", name}};
}

offer_result offer(queue& to, const std::string& runtime, const std::string& name) {
  return to.offer(runtime, event_of(name), at(0));
}

/// Offers `count` distinct events; returns how many are accepted.
int flood(queue& to, const std::string& runtime, int count) {
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    if (offer(to, runtime, std::to_string(i)) == offer_result::added) ++accepted;
  }
  return accepted;
}

std::vector<std::string> taken(queue& from, int count) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) {
    const auto one = from.take();
    if (one) out.push_back(one->event.runtime_id + "/" + one->event.event.watched.name);
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(runtimes_take_turns_and_each_has_its_oldest_event_taken) {
  queue q(10, 100);
  for (const auto* name : {"z", "y", "x"}) offer(q, "a", name);
  for (const auto* name : {"q", "r"}) offer(q, "b", name);
  offer(q, "c", "s");
  const std::vector<std::string> expected{"a/z", "b/q", "c/s", "a/y", "b/r", "a/x"};
  BOOST_TEST(taken(q, 10) == expected, boost::test_tools::per_element());
  BOOST_TEST(q.empty());
}

BOOST_AUTO_TEST_CASE(event_that_is_not_added_stays_with_its_owner) {
  queue q(1, 100);
  auto first = event_of("a");
  BOOST_TEST((q.offer("a", std::move(first), at(0)) == offer_result::added));
  for (const std::string name : {"a", "b"}) {  // merged, share_full
    auto event = event_of(name);
    BOOST_TEST((q.offer("a", std::move(event), at(0)) != offer_result::added));
    BOOST_TEST((event == event_of(name)));
  }
}

BOOST_AUTO_TEST_CASE(runtime_that_comes_late_waits_for_one_event_of_each_other) {
  queue q(1000, 10'000);
  flood(q, "a", 1000);
  flood(q, "b", 1000);
  offer(q, "late", "x");
  BOOST_TEST(taken(q, 3).back() == "late/x");
}

BOOST_AUTO_TEST_CASE(equal_pending_event_of_the_runtime_is_merged_and_keeps_its_time) {
  queue q(10, 100);
  q.offer("a", event_of("x"), at(1));
  BOOST_TEST((q.offer("a", event_of("x"), at(2)) == offer_result::merged));
  BOOST_TEST(q.size() == 1u);
  BOOST_TEST((q.take()->since == at(1)));
  BOOST_TEST((offer(q, "a", "x") == offer_result::added));  // it is taken, and may have been read
}

BOOST_AUTO_TEST_CASE(events_that_differ_in_one_name_are_not_merged) {
  queue q(100, 100);
  const auto differs = [&](rw::watch_event event) {
    return q.offer("a", std::move(event), at(0)) == offer_result::added;
  };
  BOOST_TEST(differs(event_of("x")));
  BOOST_TEST(differs({{}, {"g", "v1", "Pod"}, {"n", "x"}}));
  BOOST_TEST(differs({{}, {"", "v2", "Pod"}, {"n", "x"}}));
  BOOST_TEST(differs({{}, {"", "v1", "Job"}, {"n", "x"}}));
  BOOST_TEST(differs({{}, {"", "v1", "Pod"}, {"m", "x"}}));
  BOOST_TEST((offer(q, "b", "x") == offer_result::added));
  BOOST_TEST(q.size() == 6u);
}

BOOST_AUTO_TEST_CASE(full_share_is_refused_to_its_runtime_alone) {
  queue q(3, 100);
  BOOST_TEST(flood(q, "a", 5) == 3);
  BOOST_TEST((offer(q, "a", "x") == offer_result::share_full));
  BOOST_TEST((offer(q, "a", "0") == offer_result::merged));
  BOOST_TEST(flood(q, "b", 5) == 3);
  taken(q, 1);
  BOOST_TEST((offer(q, "a", "x") == offer_result::added));
}

BOOST_AUTO_TEST_CASE(full_queue_is_refused_to_runtimes_above_their_fair_part_alone) {
  queue q(100, 90);
  BOOST_TEST(flood(q, "a", 20) == 20);
  BOOST_TEST(flood(q, "b", 20) == 15);  // ten until a third is full, then half of a third
  BOOST_TEST((offer(q, "a", "x") == offer_result::full));
  BOOST_TEST((offer(q, "a", "0") == offer_result::merged));
  BOOST_TEST(flood(q, "c", 20) == 10);
  BOOST_TEST((offer(q, "b", "x") == offer_result::full));
  BOOST_TEST((offer(q, "d", "x") == offer_result::added));
}

BOOST_AUTO_TEST_CASE(fair_part_counts_only_runtimes_with_something_pending) {
  queue q(100, 90);
  for (int i = 0; i < 10; ++i) offer(q, std::to_string(i), "x");
  taken(q, 10);
  BOOST_TEST(flood(q, "a", 100) == 30);
}

BOOST_AUTO_TEST_CASE(many_runtimes_with_one_event_each_are_accepted_while_a_few_flood) {
  queue q(1024, 18'000);
  for (int i = 0; i < 200; ++i) flood(q, "flood-" + std::to_string(i), 1024);
  BOOST_TEST(q.size() >= 12'000u);
  int accepted = 0;
  for (int i = 0; i < 5000; ++i) accepted += flood(q, "runtime-" + std::to_string(i), 1);
  BOOST_TEST(accepted == 5000);
}

BOOST_AUTO_TEST_CASE(queue_never_holds_more_than_its_bound) {
  queue q(50, 200);
  for (int i = 0; i < 1000; ++i) flood(q, std::string(253, 'r') + std::to_string(i), 50);
  BOOST_TEST(q.size() == 200u);
  BOOST_TEST((offer(q, "another", "x") == offer_result::full));
  taken(q, 1);
  BOOST_TEST((offer(q, "another", "x") == offer_result::added));
}

BOOST_AUTO_TEST_SUITE_END()
