#include "rw/reactors/events/observer.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(observer)

namespace core = rw::core;
using namespace rw::observation;
namespace dispatch = rw::dispatch;
using namespace std::chrono_literals;
using rw::managed_watch;
using rw::watch_event;

namespace {

const managed_watch specs{"klm", {"op", "*", "kymas"}, "spec", {}};
const rw::k8s::resource_type kyma_type{{"op", "v2", "Kyma"}, "kymas", true};
using found = rw::observation::observer::confirm_result;
using confirmed = rw::observation::observer::confirmed;

boost::json::value kyma(const std::string& spec, const std::string& label = "1") {
  return boost::json::parse(
      R"({"metadata":{"uid":"u","namespace":"ns","name":"a","labels":{"l":")" + label +
      R"("}},"spec":)" + spec + "}");
}

/// An observer of one Watcher, whose watch is live unless said otherwise.
struct bench {
  explicit bench(observer_options options = {}, std::vector<managed_watch> watches = {specs},
                 std::size_t limit = 1000)
      : objects({.objects = limit},
                [this](const std::string& manager, dispatch::resync_cause cause) {
                  raised += manager + " " + std::string(to_string(cause)) + ", ";
                }),
        under_test(options, objects) {
    const rw::known_managers managers(watches);
    under_test.set_watches(make_plan(managers, false), now);
    for (const auto& watch : watches) {
      if (watch.watched.plural == "kymas") under_test.set_type(watch, kyma_type, true);
    }
    raised.clear();
    // What is owed is not of interest here, and would hold the objects of first lists.
    while (auto queue = objects.adopt()) {
      objects.begin_resync(*queue, true);
      objects.end_resync(*queue, dispatch::resync_account::outcome::taken, [] { return 0U; }, now);
      changes.push_back(queue);
    }
  }
  void go_live(const managed_watch& watch = specs) {
    list(watch);
    under_test.set_live(watch, true, now);
    raised.clear();
  }
  void list(const managed_watch& watch = specs) {
    under_test.begin_listing(watch, now);
    under_test.end_listing(watch, now);
  }

  void review(const std::string& name, const std::string& version = "v1") {
    under_test.accept({"klm", {"op", version, "Kyma"}, {"ns", name}}, now);
  }
  void show(const std::string& name, const std::string& spec) {
    under_test.put(specs, {"ns", name}, state_of(kyma(spec), "spec", true), now);
  }

  /// What is to be done: "r:a ?c l w:b ", a review's event, a read, a list, a change of an object.
  std::string due() {
    std::string text;
    for (;;) {
      auto next = under_test.poll(now);
      until = next.until;
      if (next.send) {
        text += "r:" + next.send->watched.name + " ";
        sent.push_back(*next.send);
      } else if (next.confirm) {
        text += "?" + next.confirm->review.watched.name + " ";
        reads.push_back(*next.confirm);
      } else if (next.list) {
        text += "l ";
      } else {
        break;
      }
    }
    while (auto found = objects.adopt()) changes.push_back(found);
    for (const auto& each : changes) {
      while (auto change = objects.take(*each, false)) {
        text += "w:" + change->event.watched.name + " ";
        objects.told(*each, change->event, now);
        sent.push_back(std::move(change->event));
      }
    }
    return text;
  }
  auto answer(const found& result) {
    const auto read = reads.at(0);
    reads.erase(reads.begin());
    return under_test.confirm(read, result, now);
  }

  core::time_point now = core::time_point(1h);
  std::string raised;  ///< resyncs
  dispatch::delivery objects;
  rw::observation::observer under_test;
  core::time_point until;
  std::vector<watch_event> sent;
  std::vector<rw::observation::observer::confirmation> reads;
  std::vector<std::shared_ptr<dispatch::delivery::queue>> changes;
};

}  // namespace

BOOST_AUTO_TEST_CASE(review_without_a_live_watch_is_sent_after_a_delay) {
  bench b;
  b.review("a");
  BOOST_TEST(b.due() == "");
  BOOST_TEST((b.until == b.now + 100ms));
  b.now += 100ms;
  BOOST_TEST(b.due() == "r:a ");
  BOOST_TEST(b.sent.at(0).gvk.version == "v1");
}

BOOST_AUTO_TEST_CASE(live_watch_alone_sends_events) {
  bench b;
  b.go_live();
  b.review("a");
  b.show("a", "1");
  BOOST_TEST(b.due() == "w:a ");
  BOOST_TEST(b.sent.at(0).gvk.version == "v2");
  b.now += 1h;
  BOOST_TEST(b.due() == "", "the watch has shown the object");
  BOOST_TEST(b.under_test.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(write_that_was_not_persisted_sends_nothing) {
  bench b;
  b.go_live();
  b.show("a", "1");
  b.due();
  b.review("a");
  b.review("a");
  BOOST_TEST(b.due() == "");
  BOOST_TEST((b.until == b.now + 2s));
  b.now += 2s;
  BOOST_TEST(b.due() == "?a ");
  const auto outcome = b.answer({found::kind::found, kyma("1")});
  BOOST_TEST((outcome == confirmed::not_persisted));
  BOOST_TEST(b.due() == "");
  BOOST_TEST(b.under_test.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(object_outside_of_the_selector_does_not_exist_for_its_watcher) {
  const managed_watch labelled{"klm", {"op", "*", "kymas"}, "spec", {{"l", "1"}}};
  bench b({}, {labelled});
  b.go_live(labelled);
  b.review("a");
  b.now += 2s;
  b.due();
  BOOST_TEST((b.answer({found::kind::found, kyma("1", "2")}) == confirmed::not_persisted));
  b.review("a");
  b.now += 2s;
  b.due();
  BOOST_TEST((b.answer({found::kind::found, kyma("1", "1")}) != confirmed::not_persisted));
  BOOST_TEST(b.due() == "w:a ");
}

BOOST_AUTO_TEST_CASE(review_during_a_read_is_confirmed_again) {
  bench b;
  b.go_live();
  b.show("a", "1");
  b.due();
  b.review("a");
  b.now += 2s;
  BOOST_TEST(b.due() == "?a ");
  b.review("a");
  BOOST_TEST((b.answer({found::kind::found, kyma("1")}) != confirmed::not_persisted));
  BOOST_TEST(b.due() == "");
  b.now += 2s;
  BOOST_TEST(b.due() == "?a ");
  BOOST_TEST((b.answer({found::kind::found, kyma("1")}) == confirmed::not_persisted));
}

BOOST_AUTO_TEST_CASE(review_shortly_before_a_read_is_confirmed_again) {
  bench b;
  b.go_live();
  b.show("a", "1");
  b.due();
  b.review("a");
  b.now += 1900ms;
  b.review("a");
  b.now += 100ms;
  BOOST_TEST(b.due() == "?a ");
  // The second write is not stored yet.
  BOOST_TEST((b.answer({found::kind::found, kyma("1")}) != confirmed::not_persisted));
  BOOST_TEST(b.due() == "");
  b.now += 1900ms;
  BOOST_TEST(b.due() == "?a ");
  BOOST_TEST((b.answer({found::kind::found, kyma("2")}) == confirmed::missed));
  BOOST_TEST(b.due() == "w:a ");
}

BOOST_AUTO_TEST_CASE(review_of_an_object_that_has_another_key_is_not_persisted) {
  bench b;
  b.go_live();
  b.review("invented");
  b.now += 2s;
  BOOST_TEST(b.due() == "?invented ");
  const auto outcome = b.answer({found::kind::found, kyma("1")});
  BOOST_TEST((outcome == confirmed::not_persisted));
  BOOST_TEST(b.due() == "");
  BOOST_TEST(b.objects.size() == 0U);
}

BOOST_AUTO_TEST_CASE(result_of_an_abandoned_read_is_ignored) {
  bench b;
  b.go_live();
  b.review("a");
  b.now += 2s;
  BOOST_TEST(b.due() == "?a ");
  b.show("a", "1");
  BOOST_TEST(b.due() == "w:a ");
  b.review("a");
  BOOST_TEST((b.answer({found::kind::not_found}) == confirmed::nothing));
  BOOST_TEST(b.due() == "");
  BOOST_TEST(b.under_test.waiting() == 1U);
}

BOOST_AUTO_TEST_CASE(reviews_are_sent_when_their_watch_ends) {
  bench b;
  b.go_live();
  b.review("a");
  b.under_test.set_live(specs, false, b.now);
  b.now += 100ms;
  BOOST_TEST(b.due() == "r:a ");
  b.review("b");
  b.under_test.set_live(specs, true, b.now);
  b.now += 100ms;
  BOOST_TEST(b.due() == "", "by now a watch shows what becomes of the write");
  b.now += 2s;
  BOOST_TEST(b.due() == "?b ");
}

BOOST_AUTO_TEST_CASE(reads_are_bounded) {
  bench b({.reads = 1});
  b.go_live();
  b.review("a");
  b.review("b");
  b.now += 2s;
  BOOST_TEST(b.due() == "?a ");
  b.answer({found::kind::not_found});
  BOOST_TEST(b.due() == "?b ");
}

BOOST_AUTO_TEST_CASE(watcher_that_is_not_observed_needs_the_reviews) {
  const std::vector<std::pair<managed_watch, std::string>> others{
      {{"klm", {"op", "v1", "kymas"}, "scale", {}}, "r:a "},
      {{"klm", {"op", "v1", "*"}, "spec", {}}, "r:a "},
      {{"klm", {"*", "v1", "kymas"}, "spec", {}}, "r:a "},
      {{"klm", {"op", "v1", "modules"}, "scale", {}}, ""},
      {{"other", {"op", "v1", "kymas"}, "scale", {}}, ""}};
  for (const auto& [other, expected] : others) {
    bench b({}, {specs, other});
    b.go_live();
    b.review("a");
    b.now += 100ms;
    BOOST_TEST(b.due() == expected, other.watched.plural << " " << other.field);
  }
}

BOOST_AUTO_TEST_CASE(watcher_without_a_live_watch_needs_the_reviews_of_all) {
  const managed_watch statuses{"klm", {"op", "*", "kymas"}, "status", {}};
  bench b({}, {specs, statuses});
  b.go_live();
  b.review("a");
  b.now += 100ms;
  BOOST_TEST(b.due() == "r:a ");
  b.go_live(statuses);
  b.review("a");
  b.now += 100ms;
  BOOST_TEST(b.due() == "");
  BOOST_TEST(b.under_test.waiting() == 1U);
}

BOOST_AUTO_TEST_CASE(uncovered_review_is_sent_after_the_delay_of_its_object_s_newest_review) {
  bench b;
  b.go_live();
  b.review("a");
  b.now += 1s;
  b.review("a");
  b.under_test.set_live(specs, false, b.now);
  BOOST_TEST(b.due() == "", "what was admitted just now may not be stored yet");
  b.now += 100ms;
  BOOST_TEST(b.due() == "r:a ");
}

BOOST_AUTO_TEST_CASE(change_that_the_watch_missed_is_sent_and_all_is_listed_again) {
  bench b;
  b.go_live();
  b.show("a", "1");
  b.due();
  b.review("a");
  b.now += 10s;
  BOOST_TEST(b.due() == "?a ");
  BOOST_TEST((b.answer({found::kind::found, kyma("2")}) == confirmed::missed));
  BOOST_TEST(b.due() == "l w:a ");
  b.show("a", "2");
  BOOST_TEST(b.due() == "", "the watch catches up");
}

BOOST_AUTO_TEST_CASE(deletion_that_the_watch_missed_is_sent) {
  bench b;
  b.go_live();
  b.show("a", "1");
  b.due();
  b.review("a");
  b.review("never");
  b.now += 2s;
  BOOST_TEST(b.due() == "?a ?never ");
  BOOST_TEST((b.answer({found::kind::not_found}) == confirmed::missed));
  BOOST_TEST((b.answer({found::kind::not_found}) == confirmed::not_persisted));
  BOOST_TEST(b.due() == "w:a ");
}

BOOST_AUTO_TEST_CASE(unreadable_object_is_decided_by_a_list) {
  bench b;
  b.go_live();
  b.review("a");
  b.now += 10s;
  BOOST_TEST(b.due() == "?a ");
  b.answer({found::kind::failed});
  BOOST_TEST(b.due() == "l ");
  b.list();
  BOOST_TEST(b.under_test.waiting() == 0U);
  BOOST_TEST(b.due() == "", "no event of it");
}

BOOST_AUTO_TEST_CASE(reviews_that_cannot_be_read_in_time_are_decided_by_one_list) {
  bench b({.reads = 1});
  b.go_live();
  for (const auto* name : {"a", "b", "c"}) b.review(name);
  b.now += 2s;
  BOOST_TEST(b.due() == "?a ", "the read does not end");
  b.now += 8s;
  BOOST_TEST(b.due() == "l ");
  BOOST_TEST((b.until <= b.now + 10s));
  b.review("young");
  b.under_test.begin_listing(specs, b.now);
  b.show("c", "1");
  b.under_test.end_listing(specs, b.now);
  BOOST_TEST(b.under_test.waiting() == 1U, "what was admitted just now may be stored later");
  BOOST_TEST(b.due() == "w:c ");
}

BOOST_AUTO_TEST_CASE(review_during_a_list_is_not_decided_by_it) {
  bench b;
  b.go_live();
  b.show("a", "1");
  b.due();
  b.under_test.begin_listing(specs, b.now);
  b.review("a");
  b.show("a", "1");
  b.under_test.end_listing(specs, b.now);
  BOOST_TEST(b.under_test.waiting() == 1U, "the write may be stored after the list");
}

BOOST_AUTO_TEST_CASE(list_that_does_not_begin_is_asked_for_again) {
  bench b({.confirmations = 0});
  b.go_live();
  b.review("a");
  b.now += 10s;
  BOOST_TEST(b.due() == "l ");
  BOOST_TEST(b.due() == "");
  b.now += 10s;
  BOOST_TEST(b.due() == "l ");
}

BOOST_AUTO_TEST_CASE(reviews_beyond_the_limit_cause_a_list_each_ten_seconds) {
  bench b({.confirmations = 1});
  b.go_live();
  int lists = 0;
  for (int second = 0; second < 100; ++second) {
    for (int i = 0; i < 50; ++i) b.review("n" + std::to_string(50 * second + i));
    const auto text = b.due();
    BOOST_TEST(text.find("r:") == std::string::npos, text);
    if (text.find("l ") != std::string::npos) {
      ++lists;
      b.list();
    }
    for (const auto& read : std::exchange(b.reads, {})) {
      b.under_test.confirm(read, {found::kind::not_found}, b.now);
    }
    b.now += 1s;
  }
  BOOST_TEST(lists >= 9);
  BOOST_TEST(lists <= 11);
  BOOST_TEST(b.objects.size() == 0U);
}

BOOST_AUTO_TEST_CASE(reviews_that_no_list_will_decide_raise_a_resync) {
  bench b({.confirmations = 0});
  b.go_live();
  b.now += 1h;
  b.under_test.give_up(specs, b.now);
  BOOST_TEST(b.raised == "", "no review is open");
  b.under_test.set_live(specs, true, b.now);
  b.review("a");
  b.under_test.give_up(specs, b.now);
  BOOST_TEST(b.raised == "klm undecided, ");
  b.under_test.give_up(specs, b.now);
  BOOST_TEST(b.raised == "klm undecided, ", "once");
}

BOOST_AUTO_TEST_CASE(list_before_the_latest_review_is_followed_by_another) {
  bench b({.confirmations = 0});
  b.go_live();
  b.due();
  b.now += 10s;
  b.review("a");
  BOOST_TEST(b.due() == "l ");
  b.list();
  BOOST_TEST(b.due() == "");
  BOOST_TEST((b.until == b.now + 10s), "the write may be stored after the list");
  b.now += 10s;
  BOOST_TEST(b.due() == "l ");
  b.list();
  BOOST_TEST((b.due() == "" && b.until == core::time_point::max()));
}

BOOST_AUTO_TEST_CASE(missed_review_is_made_up_for_where_a_watch_is_live) {
  bench b;
  const watch_event review{"klm", {"op", "v1", "Kyma"}, {"ns", "a"}};
  BOOST_TEST(!b.under_test.missed(review, b.now));
  b.go_live();
  b.now += 10s;
  BOOST_TEST(b.under_test.missed(review, b.now));
  BOOST_TEST(b.due() == "l ");
}

BOOST_AUTO_TEST_CASE(object_beyond_the_limit_is_left_to_its_review) {
  bench b({}, {specs}, 1);
  b.go_live();
  b.show("a", "1");
  b.review("b");
  BOOST_TEST(!b.under_test.put(specs, {"ns", "b"}, 20, b.now));
  BOOST_TEST(b.due() == "w:a ");
  b.under_test.give_up(specs, b.now);
  b.now += 100ms;
  BOOST_TEST(b.due() == "r:b ", "what is known of the others is kept");
  // The next try finds the same objects.
  b.under_test.begin_listing(specs, b.now);
  b.show("a", "1");
  BOOST_TEST(b.due() == "");
}

BOOST_AUTO_TEST_CASE(waiting_reviews_are_bounded) {
  bench b({.settling = 2});
  for (const auto* name : {"a", "b", "c"}) b.review(name);
  BOOST_TEST(b.due() == "r:a ", "the oldest goes out early");
  BOOST_TEST(!b.under_test.full());
  for (const auto* name : {"d", "e"}) b.review(name);
  BOOST_TEST(b.under_test.full());
}

BOOST_AUTO_TEST_CASE(close_sends_and_checks_reviews_once_their_writes_can_be_read) {
  bench b;
  b.review("a");
  b.go_live();
  b.review("b");
  b.review("c");
  b.under_test.close();
  BOOST_TEST(b.due() == "");
  BOOST_TEST(!b.under_test.drained());
  b.now += 100ms;
  BOOST_TEST(b.due() == "r:a ?b ?c ");
  b.answer({found::kind::found, kyma("1")});
  b.answer({found::kind::failed});
  BOOST_TEST(b.due() == "r:c ", "no list is waited for at the end");
  BOOST_TEST(b.under_test.drained());
}

BOOST_AUTO_TEST_CASE(watchers_come_and_go) {
  bench b;
  b.go_live();
  b.show("a", "1");
  b.due();
  b.review("b");
  const managed_watch other{"other", {"op", "*", "kymas"}, "spec", {}};
  b.under_test.set_watches(make_plan(rw::known_managers({specs, other}), false), b.now);
  BOOST_TEST(b.objects.size() == 1U, "the Watcher that stays keeps its objects");
  BOOST_TEST(b.raised == "other watcher_changed, ", "nobody else is concerned");
  BOOST_TEST(b.under_test.live_watches() == 1U);
  BOOST_TEST(b.under_test.unobserved_watches() == 1U);
  b.under_test.set_watches({}, b.now);
  BOOST_TEST(b.objects.size() == 0U);
  b.now += 100ms;
  BOOST_TEST(b.due() == "r:b ");
}

BOOST_AUTO_TEST_SUITE_END()
