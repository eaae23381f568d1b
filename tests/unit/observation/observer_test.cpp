#include "reactors/observation/observer.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(observer)

namespace core = rw::core;
using namespace rw::observation;
using namespace std::chrono_literals;
using rw::managed_watch;
using rw::watch_event;

namespace {

const managed_watch specs{"klm", {"op", "*", "kymas"}, "spec", {}};
const rw::k8s::resource_type kyma_type{{"op", "v2", "Kyma"}, "kymas", true};
using found = rw::observation::observer::confirm_result;

boost::json::value kyma(const std::string& spec, const std::string& label = "1") {
  return boost::json::parse(
      R"({"metadata":{"uid":"u","namespace":"ns","name":"a","labels":{"l":")" + label +
      R"("}},"spec":)" + spec + "}");
}

/// An observer of one Watcher, whose watch is live unless said otherwise.
struct bench {
  explicit bench(observer_options options = {}, std::vector<managed_watch> watches = {specs})
      : under_test(options) {
    const rw::known_managers managers(watches);
    under_test.set_watches(make_plan(managers, false));
    for (const auto& watch : watches) {
      if (watch.watched.plural == "kymas") under_test.set_type(watch, kyma_type);
    }
  }
  void go_live(const managed_watch& watch = specs) {
    under_test.begin_listing(watch);
    under_test.end_listing(watch);
    under_test.set_live(watch, true);
  }

  void review(const std::string& name, const std::string& version = "v1") {
    under_test.accept({"klm", {"op", version, "Kyma"}, {"ns", name}, {}}, now);
  }
  void show(const std::string& name, const std::string& spec) {
    under_test.put(specs, {"ns", name}, mark_of(kyma(spec), "spec"));
  }

  /// What is to be done: "w:a r:b ?c ", by cause (watch, resync, review, unverified; `?` a read).
  std::string due() {
    std::string text;
    for (;;) {
      auto next = under_test.poll(now);
      until = next.until;
      if (next.send) {
        text += "wsru"[static_cast<std::size_t>(next.reason)];
        text += ":" + next.send->watched.name + " ";
        sent.push_back(*next.send);
      } else if (next.confirm) {
        text += "?" + next.confirm->review.watched.name + " ";
        reads.push_back(*next.confirm);
      } else {
        return text;
      }
    }
  }
  auto answer(const found& result) {
    const auto read = reads.at(0);
    reads.erase(reads.begin());
    return under_test.confirm(read, result, now);
  }
  void deliver() {
    for (const auto& event : std::exchange(sent, {})) under_test.delivered(event, event.mark);
  }

  rw::observation::observer under_test;
  core::time_point now = core::time_point(1h);
  core::time_point until;
  std::vector<watch_event> sent;
  std::vector<rw::observation::observer::confirmation> reads;
};

}  // namespace

BOOST_AUTO_TEST_CASE(review_without_a_live_watch_is_sent_after_a_delay) {
  bench b;
  b.review("a");
  BOOST_TEST(b.due() == "");
  BOOST_TEST((b.until == b.now + 100ms));
  b.now += 100ms;
  BOOST_TEST(b.due() == "r:a ");
  BOOST_TEST(b.sent.at(0).mark == 0U);
  BOOST_TEST(b.sent.at(0).gvk.version == "v1");
}

BOOST_AUTO_TEST_CASE(live_watch_alone_sends_events) {
  bench b;
  b.go_live();
  b.review("a");
  b.show("a", "1");
  BOOST_TEST(b.due() == "w:a ");
  BOOST_TEST(b.sent.at(0).mark != 0U);
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
  BOOST_TEST(outcome.not_persisted);
  BOOST_TEST(outcome.lagging.empty());
  BOOST_TEST(b.due() == "");
  BOOST_TEST(b.under_test.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(change_that_the_watch_missed_is_sent_and_the_watch_restarted) {
  bench b;
  b.go_live();
  b.show("a", "1");
  b.due();
  b.review("a");
  b.now += 2s;
  BOOST_TEST(b.due() == "?a ");
  const auto outcome = b.answer({found::kind::found, kyma("2")});
  BOOST_TEST(!outcome.not_persisted);
  BOOST_TEST((outcome.lagging == std::vector{specs}));
  BOOST_TEST(b.due() == "w:a ");
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
  BOOST_TEST(!b.answer({found::kind::not_found}).lagging.empty());
  BOOST_TEST(b.answer({found::kind::not_found}).not_persisted);
  BOOST_TEST(b.due() == "w:a ");
}

BOOST_AUTO_TEST_CASE(object_outside_of_the_selector_does_not_exist_for_its_watcher) {
  const managed_watch labelled{"klm", {"op", "*", "kymas"}, "spec", {{"l", "1"}}};
  bench b({}, {labelled});
  b.go_live(labelled);
  b.review("a");
  b.now += 2s;
  b.due();
  BOOST_TEST(b.answer({found::kind::found, kyma("1", "2")}).not_persisted);
  b.review("a");
  b.now += 2s;
  b.due();
  BOOST_TEST(!b.answer({found::kind::found, kyma("1", "1")}).not_persisted);
  BOOST_TEST(b.due() == "w:a ");
}

BOOST_AUTO_TEST_CASE(unreadable_object_is_sent) {
  bench b;
  b.go_live();
  b.review("a");
  b.now += 2s;
  BOOST_TEST(b.due() == "?a ");
  b.answer({found::kind::failed});
  BOOST_TEST(b.due() == "u:a ");
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
  BOOST_TEST(!b.answer({found::kind::found, kyma("1")}).not_persisted);
  BOOST_TEST(b.due() == "");
  b.now += 2s;
  BOOST_TEST(b.due() == "?a ");
  BOOST_TEST(b.answer({found::kind::found, kyma("1")}).not_persisted);
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
  BOOST_TEST(!b.answer({found::kind::found, kyma("1")}).not_persisted);
  BOOST_TEST(b.due() == "");
  b.now += 1900ms;
  BOOST_TEST(b.due() == "?a ");
  BOOST_TEST(b.answer({found::kind::found, kyma("2")}).lagging.size() == 1U);
  BOOST_TEST(b.due() == "w:a ");
}

BOOST_AUTO_TEST_CASE(review_of_an_object_that_has_another_key_is_not_persisted) {
  bench b;
  b.go_live();
  b.review("invented");
  b.now += 2s;
  BOOST_TEST(b.due() == "?invented ");
  const auto outcome = b.answer({found::kind::found, kyma("1")});
  BOOST_TEST(outcome.not_persisted);
  BOOST_TEST(outcome.lagging.empty());
  BOOST_TEST(b.due() == "");
  BOOST_TEST(b.under_test.objects().size() == 0U);
}

BOOST_AUTO_TEST_CASE(review_that_cannot_be_checked_in_time_is_sent) {
  bench b({.reads = 1});
  b.go_live();
  b.review("a");
  b.review("b");
  b.now += 2s;
  BOOST_TEST(b.due() == "?a ", "the read does not end");
  BOOST_TEST((b.until == b.now + 4s));
  b.now += 4s;
  BOOST_TEST(b.due() == "u:b ");
  BOOST_TEST(b.under_test.waiting() == 1U);
}

BOOST_AUTO_TEST_CASE(object_beyond_the_limit_is_left_to_its_review) {
  bench b({.objects = 1});
  b.go_live();
  b.show("a", "1");
  b.review("b");
  BOOST_TEST(!b.under_test.put(specs, {"ns", "b"}, 20));
  b.under_test.give_up(specs);
  b.now += 100ms;
  BOOST_TEST(b.due() == "w:a r:b ", "what is known of the others is kept");
  b.deliver();
  // The next try finds the same objects.
  b.under_test.begin_listing(specs);
  b.show("a", "1");
  BOOST_TEST(b.due() == "");
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
  b.answer({found::kind::not_found});
  BOOST_TEST(b.due() == "");
  BOOST_TEST(b.under_test.waiting() == 1U);
}

BOOST_AUTO_TEST_CASE(reviews_are_sent_when_their_watch_ends) {
  bench b;
  b.go_live();
  b.review("a");
  b.under_test.set_live(specs, false);
  b.now += 100ms;
  BOOST_TEST(b.due() == "r:a ");
  b.review("b");
  b.under_test.set_live(specs, true);
  b.now += 100ms;
  BOOST_TEST(b.due() == "r:b ");
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

BOOST_AUTO_TEST_CASE(waiting_reviews_are_bounded) {
  bench b({.settling = 2, .confirmations = 1});
  b.go_live();
  for (const auto* name : {"a", "b", "c", "d"}) b.review(name);
  BOOST_TEST(b.due() == "r:b ", "the oldest of the delayed ones goes out early");
  BOOST_TEST(!b.under_test.full());
  for (const auto* name : {"e", "f"}) b.review(name);
  BOOST_TEST(b.under_test.full());
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
}

BOOST_AUTO_TEST_CASE(source_watch_ignores_reviews_where_it_observes) {
  bench b({.source = event_source::watch});
  b.review("early");
  b.go_live();
  b.review("a");
  b.under_test.set_live(specs, false);
  b.review("b");
  b.now += 1h;
  BOOST_TEST(b.due() == "r:early ");
  b.under_test.give_up(specs);
  b.review("c");
  b.now += 1h;
  BOOST_TEST(b.due() == "r:c ");
}

BOOST_AUTO_TEST_CASE(source_webhook_sends_reviews_although_a_watch_is_live) {
  bench b({.source = event_source::webhook});
  b.go_live();
  b.review("a");
  b.now += 100ms;
  BOOST_TEST(b.due() == "r:a ");
}

BOOST_AUTO_TEST_CASE(resyncs_wait_for_outcomes_and_after_losses) {
  bench b({.resyncs = 2});
  b.under_test.begin_listing(specs);
  for (const auto* name : {"a", "b", "c"}) b.show(name, "1");
  b.under_test.end_listing(specs);
  BOOST_TEST(b.due() == "s:a s:b ");
  b.deliver();
  BOOST_TEST(b.due() == "s:c ");
  b.under_test.lost(b.sent.at(0), b.sent.at(0).mark, b.now);
  BOOST_TEST(b.due() == "");
  BOOST_TEST((b.until == b.now + 5s));
  b.now += 5s;
  BOOST_TEST(b.due() == "s:c ");
  b.deliver();
  BOOST_TEST(b.under_test.objects().undelivered() == 0U);
}

BOOST_AUTO_TEST_CASE(delivery_counts_for_all_watchers_of_the_event) {
  const managed_watch statuses{"klm", {"op", "*", "kymas"}, "status", {}};
  bench b({}, {specs, statuses});
  b.go_live();
  b.go_live(statuses);
  b.show("a", "1");
  b.under_test.put(statuses, {"ns", "a"}, 77);
  BOOST_TEST(b.due() == "w:a w:a ");
  // Both became one event, with the newest mark.
  b.under_test.delivered(b.sent.at(0), b.sent.at(1).mark);
  BOOST_TEST(b.under_test.objects().undelivered() == 0U);
}

BOOST_AUTO_TEST_CASE(close_sends_all_that_was_accepted_at_once) {
  bench b;
  b.review("a");
  b.go_live();
  b.review("b");
  b.review("c");
  b.now += 2s;
  b.under_test.poll(b.now);
  b.under_test.begin_listing(specs);
  b.show("resync", "1");
  b.under_test.close();
  BOOST_TEST(!b.under_test.drained());
  BOOST_TEST(b.due() == "r:b r:c ");
  BOOST_TEST(b.under_test.drained(), "a resync is left to the next process");
}

BOOST_AUTO_TEST_CASE(uncovered_review_is_sent_after_the_delay_of_its_object_s_newest_review) {
  bench b;
  b.go_live();
  b.review("a");
  b.now += 1s;
  b.review("a");
  b.under_test.set_live(specs, false);
  BOOST_TEST(b.due() == "", "what was admitted just now may not be stored yet");
  b.now += 100ms;
  BOOST_TEST(b.due() == "r:a ");
}

BOOST_AUTO_TEST_CASE(review_sent_unverified_leaves_a_newer_one_of_its_object) {
  bench b({.reads = 0});
  b.go_live();
  b.review("a");
  b.now += 6s - 10ms;
  b.review("a");
  b.now += 10ms;
  BOOST_TEST(b.due() == "u:a ");
  BOOST_TEST(b.under_test.waiting() == 1U);
  b.now += 6s - 10ms;
  BOOST_TEST(b.due() == "u:a ");
  BOOST_TEST(b.under_test.waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(watchers_come_and_go) {
  bench b;
  b.go_live();
  b.show("a", "1");
  b.due();
  b.deliver();
  b.review("b");
  const managed_watch other{"other", {"op", "*", "kymas"}, "spec", {}};
  b.under_test.set_watches(make_plan(rw::known_managers({specs, other}), false));
  BOOST_TEST(b.under_test.objects().size() == 1U, "the Watcher that stays keeps its objects");
  BOOST_TEST(b.under_test.live_watches() == 1U);
  BOOST_TEST(b.under_test.unobserved_watches() == 1U);
  b.under_test.set_watches({});
  BOOST_TEST(b.under_test.objects().size() == 0U);
  b.now += 100ms;
  BOOST_TEST(b.due() == "r:b ");
}

BOOST_AUTO_TEST_SUITE_END()
