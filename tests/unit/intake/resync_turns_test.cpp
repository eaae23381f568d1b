#include "rw/reactors/intake/resync_turns.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(resync_turns)

namespace {

using rw::resync_reason;
using turns = rw::listener::resync_turns;

rw::core::time_point second(int of) {
  return rw::core::time_point(std::chrono::seconds(of));
}

/// All that is due, such as "a:dropped b:started ".
std::string taken(turns& from, int at) {
  std::string out;
  while (const auto one = from.take(second(at))) {
    out += one->runtime_id + ":" + std::string(to_string(one->reason)) + " ";
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(first_resync_is_due_at_once_and_later_ones_together_at_the_end_of_the_minute) {
  turns t;
  BOOST_TEST(t.add("a", resync_reason::started, second(0)));
  BOOST_TEST(taken(t, 0) == "a:started ");
  BOOST_TEST(t.add("a", resync_reason::started, second(1)));
  BOOST_TEST(!t.add("a", resync_reason::dropped, second(2)));
  BOOST_TEST(!t.add("a", resync_reason::watch_back, second(59)));
  BOOST_TEST(t.pending() == 1u);
  BOOST_TEST(taken(t, 59) == "");
  BOOST_TEST((t.next() == second(60)));
  BOOST_TEST(taken(t, 60) == "a:dropped ");
  BOOST_TEST(taken(t, 119) == "");
}

BOOST_AUTO_TEST_CASE(minute_begins_when_the_resync_is_taken) {
  turns t;
  t.add("a", resync_reason::started, second(0));
  BOOST_TEST(!t.add("a", resync_reason::watcher_changed, second(30)));
  BOOST_TEST(taken(t, 300) == "a:watcher-changed ");
  BOOST_TEST(t.add("a", resync_reason::started, second(301)));
  BOOST_TEST(taken(t, 359) == "");
  BOOST_TEST(taken(t, 360) == "a:started ");
}

BOOST_AUTO_TEST_CASE(runtimes_do_not_wait_for_each_other) {
  turns t;
  t.add("a", resync_reason::started, second(0));
  BOOST_TEST(taken(t, 0) == "a:started ");
  t.add("a", resync_reason::dropped, second(1));
  t.add("b", resync_reason::started, second(2));
  BOOST_TEST(taken(t, 2) == "b:started ");
  t.add("b", resync_reason::watch_back, second(3));
  BOOST_TEST(taken(t, 61) == "a:dropped ");
  BOOST_TEST(taken(t, 62) == "b:watch-back ");
}

BOOST_AUTO_TEST_CASE(due_resyncs_are_taken_in_the_order_of_their_times) {
  turns t;
  t.add("b", resync_reason::started, second(0));
  t.add("a", resync_reason::started, second(1));
  BOOST_TEST(taken(t, 1) == "b:started a:started ");
  t.add("a", resync_reason::started, second(2));
  t.add("b", resync_reason::started, second(3));
  t.add("c", resync_reason::started, second(4));
  BOOST_TEST(taken(t, 4) == "c:started ");
  BOOST_TEST(taken(t, 61) == "b:started a:started ");
}

BOOST_AUTO_TEST_CASE(runtime_is_forgotten_when_its_minute_has_ended_without_another_resync) {
  turns t;
  for (int i = 0; i < 100; ++i) t.add(std::to_string(i), resync_reason::started, second(0));
  BOOST_TEST(t.runtimes() == 100u);
  taken(t, 0);
  BOOST_TEST(t.pending() == 0u);
  BOOST_TEST(t.runtimes() == 100u);
  BOOST_TEST((t.next() == second(60)));
  BOOST_TEST(taken(t, 60) == "");
  BOOST_TEST(t.runtimes() == 0u);
  BOOST_TEST((t.next() == rw::core::time_point::max()));
}

BOOST_AUTO_TEST_CASE(pending_resyncs_are_due_at_the_end_of_the_host) {
  turns t;
  t.add("a", resync_reason::started, second(0));
  t.add("b", resync_reason::started, second(0));
  taken(t, 0);
  t.add("a", resync_reason::watch_back, second(1));
  t.end_intervals();
  BOOST_TEST(taken(t, 1) == "a:watch-back ");
  BOOST_TEST(t.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(reasons_are_read_as_they_are_written) {
  for (const auto reason : {resync_reason::started, resync_reason::watcher_changed,
                            resync_reason::watch_back, resync_reason::dropped}) {
    BOOST_TEST((rw::parse_resync_reason(to_string(reason)) == reason));
    BOOST_TEST(rw::is_loss(reason) == (reason == resync_reason::dropped));
  }
  BOOST_TEST(to_string(resync_reason::started) == "started");
  BOOST_TEST(to_string(resync_reason::watcher_changed) == "watcher-changed");
  BOOST_TEST(to_string(resync_reason::watch_back) == "watch-back");
  BOOST_TEST(to_string(resync_reason::dropped) == "dropped");
}

BOOST_AUTO_TEST_CASE(unknown_reason_is_read_as_the_gravest_and_malformed_text_is_none) {
  for (const auto& text : {std::string("overflow"), std::string("-"), std::string(32, 'a')}) {
    BOOST_TEST((rw::parse_resync_reason(text) == resync_reason::dropped), text);
  }
  for (const auto& text :
       {std::string(), std::string(33, 'a'), std::string("Started"), std::string("started "),
        std::string("a1"), std::string("a,b"), std::string("a\0b", 3), std::string("\xc3\xa4")}) {
    BOOST_TEST(!rw::parse_resync_reason(text), text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
