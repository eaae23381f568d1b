#include "rw/reactors/dispatch/observed_objects.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <malloc.h>
#include <map>
#include <string>
#include <tuple>
#include <vector>

BOOST_AUTO_TEST_SUITE(observed_objects)

using namespace rw::dispatch;
using namespace std::chrono_literals;
using rw::managed_watch;
using rw::watch_event;

namespace {

const managed_watch kymas{"klm", {"op", "v1", "kymas"}, "spec", {}};

struct bench {
  explicit bench(std::size_t limit = 1000)
      : objects(limit, {.on_record =
                            [this](const auto&, std::string_view key, state_hash delivered, auto) {
                              journal[std::string(key)] = delivered;
                              if (delivered == absent_state) journal.erase(std::string(key));
                            },
                        .on_gap = [this](const std::string& manager) { gaps += manager + " "; }}),
        table(&add(kymas)) {}

  rw::dispatch::observed_objects::table& add(const managed_watch& watch) {
    auto& added = objects.add(watch);
    objects.set_kind(added, {"op", "v1", "Kyma"});
    return added;
  }
  bool put(const std::string& name, state_hash state) {
    now += 1ms;
    return objects.put(*table, {"ns", name}, state, now);
  }
  void erase(const std::string& name) {
    now += 1ms;
    objects.erase(*table, {"ns", name}, now);
  }
  void list(const std::map<std::string, state_hash>& all) {
    objects.begin_listing(*table);
    for (const auto& [name, state] : all) put(name, state);
    objects.end_listing(*table, now);
  }
  /// Takes all changes, such as "a b ".
  std::string taken(bool closing = false) {
    while (auto next = objects.adopt()) waiting = next;
    std::string text;
    while (auto change = waiting ? objects.take(*waiting, closing) : std::nullopt) {
      text += change->event.watched.name + " ";
    }
    return text;
  }
  static watch_event event(const std::string& name) {
    return {"klm", {"op", "v1", "Kyma"}, {"ns", name}};
  }
  void deliver(const std::string& name) { objects.delivered(*waiting, event(name), now); }
  void put_and_deliver(const std::string& name, state_hash state) {
    put(name, state);
    taken();
    deliver(name);
  }

  std::map<std::string, state_hash> journal;  ///< by key
  std::string gaps;
  rw::dispatch::observed_objects objects;
  rw::dispatch::observed_objects::table* table;
  std::shared_ptr<rw::dispatch::observed_objects::backlog> waiting;
  rw::core::time_point now = rw::core::time_point(1h);
};

}  // namespace

BOOST_AUTO_TEST_CASE(first_list_makes_a_change_of_every_object) {
  bench b;
  b.list({{"a", 10}, {"b", 20}});
  BOOST_TEST(b.taken(true) == "", "a list would bring it again");
  BOOST_TEST(b.taken() == "a b ");
  b.deliver("a");
  b.deliver("b");
  BOOST_TEST(b.objects.undelivered() == 0U);
  b.list({{"a", 10}, {"b", 20}});
  BOOST_TEST(b.taken() == "", "a list that shows the same states changes nothing");
}

BOOST_AUTO_TEST_CASE(live_changes_go_first_and_do_not_starve_resyncs) {
  bench b;
  b.list({{"r1", 10}, {"r2", 20}});
  for (const auto* name : {"a", "b", "c", "d", "e", "f"}) b.put(name, 30);
  BOOST_TEST(b.objects.has_live_changes());
  BOOST_TEST(b.taken() == "a b c r1 d e f r2 ");
}

BOOST_AUTO_TEST_CASE(deletions_take_turns_with_changes) {
  bench b;
  for (const auto* name : {"x", "y"}) b.put_and_deliver(name, 10);
  for (const auto* name : {"a", "b", "c"}) b.put(name, 30);
  b.erase("x");
  b.erase("y");
  const auto order = b.taken();
  BOOST_TEST((order.find('x') < order.rfind('c') && order.find('a') < order.find('y')), order);
}

BOOST_AUTO_TEST_CASE(state_that_is_known_is_no_change) {
  bench b;
  b.put_and_deliver("a", 10);
  b.put("a", 10);
  BOOST_TEST(b.taken() == "");
  b.put("a", 11);
  BOOST_TEST(b.taken() == "a ");
}

BOOST_AUTO_TEST_CASE(object_that_changes_often_keeps_its_turn) {
  bench b;
  b.put("a", 10);
  b.put("b", 20);
  b.put("a", 11);
  BOOST_TEST(b.taken() == "a b ");
}

BOOST_AUTO_TEST_CASE(change_while_taken_is_taken_again_after_the_delivery) {
  bench b;
  b.put_and_deliver("a", 10);
  b.put("a", 11);
  BOOST_TEST(b.taken() == "a ");
  b.put("a", 10);
  BOOST_TEST(b.taken() == "", "it is under delivery");
  b.deliver("a");
  BOOST_TEST(b.objects.undelivered() == 1U, "the event was sent before the change back");
  BOOST_TEST(b.taken() == "a ");
}

BOOST_AUTO_TEST_CASE(returned_change_waits_again) {
  bench b;
  b.put("a", 10);
  b.taken();
  BOOST_TEST(b.objects.returned(*b.waiting, b.event("a"), b.now));
  BOOST_TEST(!b.objects.returned(*b.waiting, b.event("other"), b.now));
  BOOST_TEST(b.taken(true) == "");
  BOOST_TEST(b.taken() == "a ");
  b.deliver("a");
  BOOST_TEST(b.objects.undelivered() == 0U);
}

BOOST_AUTO_TEST_CASE(deletion_is_kept_until_it_is_delivered) {
  bench b;
  b.put_and_deliver("a", 10);
  b.erase("a");
  BOOST_TEST(b.taken() == "a ");
  b.objects.returned(*b.waiting, b.event("a"), b.now);
  BOOST_TEST(b.objects.size() == 1U);
  BOOST_TEST(b.taken() == "a ");
  b.deliver("a");
  BOOST_TEST(b.objects.size() == 0U);
  BOOST_TEST(b.objects.state_of(*b.table, {"ns", "a"}) == absent_state);
  b.erase("a");
  BOOST_TEST(b.taken() == "");
}

BOOST_AUTO_TEST_CASE(deletion_of_an_object_that_nobody_was_told_of_is_no_difference) {
  bench b;
  b.put("a", 10);
  b.erase("a");
  BOOST_TEST(b.objects.size() == 0U);
  BOOST_TEST(b.journal.size() == 0U);
  BOOST_TEST(b.taken() == "");
  b.put("b", 10);
  b.taken();
  b.erase("b");
  b.objects.returned(*b.waiting, b.event("b"), b.now);
  BOOST_TEST(b.taken() == "b ", "the request may have arrived");
  BOOST_TEST(b.gaps == "");
}

BOOST_AUTO_TEST_CASE(object_of_the_first_list_may_have_been_told_without_a_history) {
  bench b;
  b.objects.remove(kymas);
  b.objects.set_history(false);
  b.table = &b.add(kymas);
  b.list({{"a", 10}});
  b.erase("a");
  BOOST_TEST(b.taken() == "a ");
  b.put("b", 10);
  b.erase("b");
  BOOST_TEST(b.taken() == "", "it is new");
}

BOOST_AUTO_TEST_CASE(object_that_a_list_lacks_was_deleted) {
  bench b;
  b.put_and_deliver("a", 10);
  b.put_and_deliver("b", 20);
  b.list({{"b", 20}});
  BOOST_TEST(b.taken() == "a ");
}

BOOST_AUTO_TEST_CASE(interrupted_list_deletes_nothing) {
  bench b;
  b.put_and_deliver("a", 10);
  b.put_and_deliver("b", 20);
  b.objects.begin_listing(*b.table);
  b.put("a", 10);
  b.objects.begin_listing(*b.table);
  b.put("b", 20);
  BOOST_TEST(b.taken() == "b ", "what was told since the latest complete list may have changed");
  b.objects.end_listing(*b.table, b.now);
  BOOST_TEST(b.taken() == "a ", "the second list lacks what the first one showed");
}

BOOST_AUTO_TEST_CASE(journal_leaves_only_what_differs) {
  bench b;
  for (const auto* key : {"ns/same", "ns/changed", "ns/deleted", "ns/unsure"}) {
    b.objects.remember(*b.table, key, std::string_view(key) == "ns/unsure" ? unknown_state : 10);
  }
  BOOST_TEST(b.objects.undelivered() == 0U);
  b.list({{"same", 10}, {"changed", 11}, {"created", 12}, {"unsure", 13}});
  const auto all = b.taken();
  for (const auto* name : {"changed", "created", "deleted", "unsure"}) {
    BOOST_TEST(all.find(name) != std::string::npos, name);
  }
  BOOST_TEST(b.objects.undelivered() == 4U);
}

BOOST_AUTO_TEST_CASE(record_says_unknown_before_a_change_can_be_taken) {
  bench b;
  b.objects.set_recorded(b.now);
  b.put("a", 10);
  BOOST_TEST((b.journal.at("ns/a") == unknown_state));
  BOOST_TEST(b.taken() == "", "the record is not kept yet");
  b.objects.set_recorded(b.now);
  BOOST_TEST(b.taken() == "a ");
  b.deliver("a");
  BOOST_TEST(b.journal.at("ns/a") == 10U);
  b.put("a", 11);
  BOOST_TEST(b.journal.at("ns/a") == unknown_state);
  b.objects.set_recorded(b.now);
  b.taken();
  b.deliver("a");
  b.erase("a");
  b.objects.set_recorded(b.now);
  b.taken();
  BOOST_TEST(b.journal.at("ns/a") == unknown_state);
  b.deliver("a");
  BOOST_TEST(b.journal.empty());
}

BOOST_AUTO_TEST_CASE(event_without_a_state_makes_a_difference_of_the_next_list) {
  bench b;
  b.put_and_deliver("a", 10);
  b.objects.make_unknown(*b.table, {"ns", "a"});
  b.objects.make_unknown(*b.table, {"ns", "new"});
  BOOST_TEST(b.journal.at("ns/a") == unknown_state);
  BOOST_TEST(b.taken() == "");
  b.list({{"a", 10}});
  const auto all = b.taken();
  BOOST_TEST((all == "a new " || all == "new a "), all);
}

BOOST_AUTO_TEST_CASE(event_that_is_sent_without_a_live_watch_leaves_the_state_unknown) {
  bench b;
  b.list({{"a", 10}, {"b", 10}, {"c", 10}});
  for (const auto* name : {"a", "b", "c"}) b.taken(), b.deliver(name);
  b.put("a", 11);
  b.erase("b");
  b.objects.set_live(*b.table, false);
  BOOST_TEST(!b.objects.has_unknown(*b.table));
  b.taken();
  BOOST_TEST(b.objects.has_unknown(*b.table), "the event may tell of it");
  b.deliver("a");
  b.deliver("b");
  BOOST_TEST(b.journal.at("ns/a") == unknown_state);
  BOOST_TEST(b.journal.at("ns/b") == unknown_state);
  BOOST_TEST(b.objects.has_unknown(*b.table));
  b.list({{"a", 11}, {"c", 10}});
  const auto all = b.taken();
  BOOST_TEST((all == "a b " || all == "b a "), all);
  b.deliver("a");
  b.deliver("b");
  BOOST_TEST(b.journal.at("ns/a") == 11U, "a watch from this list on shows what comes after it");
  BOOST_TEST(!b.journal.contains("ns/b"));
  BOOST_TEST(b.objects.undelivered() == 0U);
  BOOST_TEST(!b.objects.has_unknown(*b.table));
}

BOOST_AUTO_TEST_CASE(event_that_was_sent_before_a_list_is_sent_again) {
  bench b;
  for (const auto* name : {"a", "b"}) b.put_and_deliver(name, 10);
  b.put("a", 11);
  b.erase("b");
  b.objects.set_live(*b.table, false);
  b.taken();
  b.list({{"a", 11}});
  b.deliver("a");
  b.deliver("b");
  const auto all = b.taken();
  BOOST_TEST((all == "a b " || all == "b a "), all);
}

BOOST_AUTO_TEST_CASE(event_that_is_sent_again_over_a_live_watch_leaves_the_state_known) {
  bench b;
  b.put("a", 10);
  b.objects.set_live(*b.table, false);
  b.taken();
  b.objects.set_live(*b.table, true);
  b.objects.sending(*b.waiting, b.event("a"));
  b.deliver("a");
  BOOST_TEST(b.journal.at("ns/a") == 10U);
}

BOOST_AUTO_TEST_CASE(event_of_one_watcher_leaves_the_state_unknown_for_another_without_a_watch) {
  bench b;
  auto& other = b.add({"klm", {"op", "v1", "kymas"}, "status", {}});
  b.objects.put(other, {"ns", "a"}, 20, b.now);
  b.put_and_deliver("a", 10);
  b.objects.set_live(other, false);
  b.put_and_deliver("a", 11);
  b.put_and_deliver("new", 10);
  BOOST_TEST(b.objects.undelivered() == 0U);
  BOOST_TEST(b.objects.has_unknown(other));
  b.objects.begin_listing(other);
  b.objects.put(other, {"ns", "a"}, 20, b.now);
  b.objects.end_listing(other, b.now);
  const auto all = b.taken();
  BOOST_TEST((all == "a new " || all == "new a "), all);
}

BOOST_AUTO_TEST_CASE(rejected_change_that_expires_is_one_gap) {
  bench b;
  b.put("a", 10);
  b.put("b", 20);
  b.taken();
  b.objects.failed(*b.waiting, b.event("a"), true);
  BOOST_TEST(b.objects.expired(*b.waiting, b.event("a"), b.now));
  BOOST_TEST(b.objects.expired(*b.waiting, b.event("b"), b.now));
  BOOST_TEST(b.gaps == "klm ");
  BOOST_TEST(b.objects.undelivered() == 2U);
  BOOST_TEST(b.taken() == "b ", "nobody has rejected it");
  b.put("a", 11);
  BOOST_TEST(b.taken() == "a ", "the next change is sent");
}

BOOST_AUTO_TEST_CASE(expired_change_is_sent_when_its_receiver_takes_what_it_had_rejected) {
  bench b;
  b.put("a", 10);
  b.put("b", 20);
  b.taken();
  for (const auto* name : {"a", "b"}) b.objects.failed(*b.waiting, b.event(name), true);
  b.objects.expired(*b.waiting, b.event("a"), b.now);
  BOOST_TEST(b.taken() == "");
  b.deliver("b");
  BOOST_TEST(b.taken() == "a ");
  b.objects.failed(*b.waiting, b.event("a"), true);
  b.put("c", 30);
  b.taken();
  b.objects.failed(*b.waiting, b.event("c"), true);
  for (const auto* name : {"a", "c"}) b.objects.expired(*b.waiting, b.event(name), b.now);
  b.put("c", 31);
  BOOST_TEST(b.taken() == "c ");
  b.deliver("c");
  BOOST_TEST(b.taken() == "a ", "the change of one that had expired shows it, too");
}

BOOST_AUTO_TEST_CASE(change_that_failed_otherwise_as_well_does_not_end) {
  bench b;
  b.put("a", 10);
  b.taken();
  b.objects.failed(*b.waiting, b.event("a"), true);
  b.objects.failed(*b.waiting, b.event("a"), false);
  b.objects.expired(*b.waiting, b.event("a"), b.now);
  BOOST_TEST(b.gaps == "");
  BOOST_TEST(b.taken() == "a ");
  b.objects.failed(*b.waiting, b.event("a"), true);
  b.objects.expired(*b.waiting, b.event("a"), b.now);
  BOOST_TEST(b.gaps == "klm ", "it was rejected all the time since");
}

BOOST_AUTO_TEST_CASE(expired_changes_are_tried_where_nothing_else_is_under_way) {
  bench b;
  for (const auto* name : {"a", "b", "c"}) b.put(name, 10);
  b.taken();
  const auto reject = [&](const char* name) {
    b.objects.failed(*b.waiting, b.event(name), true);
    b.objects.expired(*b.waiting, b.event(name), b.now);
  };
  for (const auto* name : {"a", "b"}) reject(name);
  b.objects.try_expired(b.now);
  BOOST_TEST(b.taken() == "", "c is under way");
  reject("c");
  BOOST_TEST(b.gaps == "klm klm klm ");
  b.objects.try_expired(b.now);
  b.objects.try_expired(b.now);
  BOOST_TEST(b.taken() == "a ", "one at a time");
  reject("a");
  BOOST_TEST(b.gaps == "klm klm klm ", "it was a gap before");
  b.objects.try_expired(b.now);
  BOOST_TEST(b.taken() == "b ");
  b.deliver("b");
  BOOST_TEST(b.taken() == "c a ");
}

BOOST_AUTO_TEST_CASE(rejected_deletion_that_expires_is_a_gap_and_takes_no_room) {
  bench b(2);
  b.put_and_deliver("a", 10);
  b.erase("a");
  b.taken();
  b.objects.failed(*b.waiting, b.event("a"), true);
  BOOST_TEST(b.objects.expired(*b.waiting, b.event("a"), b.now));
  BOOST_TEST(b.gaps == "klm ");
  BOOST_TEST(b.objects.size_of(*b.table) == 0U);
  BOOST_TEST(b.objects.undelivered() == 0U);
}

/// A manager with Watchers of two versions of a kind.
BOOST_AUTO_TEST_CASE(event_of_another_version_tells_nothing_that_came_later) {
  bench b;
  b.put("a", 10);
  BOOST_TEST(b.taken() == "a ");
  auto older = b.event("a");
  older.gvk.version = "v1beta1";
  b.objects.sending(*b.waiting, older);
  b.put("a", 11);
  b.objects.delivered(*b.waiting, b.event("a"), b.now);
  BOOST_TEST(b.objects.undelivered() == 1U, "the older version's event is under way for it");
  b.objects.delivered(*b.waiting, older, b.now);
  BOOST_TEST(b.taken() == "a ");
  b.objects.failed(*b.waiting, older, true);
  b.objects.delivered(*b.waiting, older, b.now);
  BOOST_TEST(b.objects.undelivered() == 1U, "it was sent before the change");
  b.deliver("a");
  BOOST_TEST(b.objects.undelivered() == 0U);
}

BOOST_AUTO_TEST_CASE(events_of_any_two_versions_are_told_apart) {
  const std::vector<std::string> versions{"v1", "v1alpha1", "v1alpha2", "v1beta1", "v1beta2",
                                          "v2", "v2alpha1", "v2beta1",  "v2beta2", "v3"};
  for (const auto& first : versions) {
    for (const auto& second : versions) {
      bench b;
      b.put_and_deliver("a", 10);
      b.put("a", 11);
      b.taken();
      const auto as = [&](const std::string& version) {
        auto event = b.event("a");
        event.gvk.version = version;
        return event;
      };
      b.objects.sending(*b.waiting, as(first));
      b.objects.sending(*b.waiting, as(second));
      b.objects.delivered(*b.waiting, as(first), b.now);
      BOOST_TEST(b.objects.undelivered() == (first == second ? 0U : 1U), first << " " << second);
    }
  }
}

BOOST_AUTO_TEST_CASE(object_that_many_lists_do_not_show_is_deleted) {
  bench b;
  b.put_and_deliver("a", 10);
  for (int i = 0; i < 40; ++i) {
    b.list({{"a", 10}});
    for (int k = 0; k < i; ++k) b.objects.begin_listing(*b.table);  // that come to no end
    b.list({});
    BOOST_TEST(b.taken() == "a ", "after " << i << " lists");
    b.deliver("a");
    b.put_and_deliver("a", 10);
  }
}

BOOST_AUTO_TEST_CASE(event_tells_all_watchers_of_a_manager) {
  bench b;
  const managed_watch statuses{"klm", {"op", "v1", "kymas"}, "status", {}};
  auto& other = b.add(statuses);
  b.put("a", 10);
  b.objects.put(other, {"ns", "a"}, 11, b.now);
  BOOST_TEST(b.taken() == "a ");
  BOOST_TEST(b.objects.undelivered() == 2U);
  b.deliver("a");
  BOOST_TEST(b.objects.undelivered() == 0U);
}

BOOST_AUTO_TEST_CASE(managers_have_backlogs_of_their_own) {
  bench b;
  auto& other = b.add({"dead", {"op", "v1", "kymas"}, "spec", {}});
  for (const auto* name : {"x", "y"}) b.objects.put(other, {"ns", name}, 1000, b.now);
  const auto dead = b.objects.adopt();
  BOOST_TEST(b.objects.manager_of(*dead) == "dead");
  BOOST_TEST(!b.objects.adopt());
  b.put("a", 10);
  BOOST_TEST(b.taken() == "a ");
  BOOST_TEST(b.objects.size_of(*dead) == 2U);
  BOOST_TEST((b.objects.oldest_of(*dead) <= b.now));
  BOOST_TEST(b.objects.has_changes(*dead, true));
}

BOOST_AUTO_TEST_CASE(change_of_an_unknown_kind_waits_for_it) {
  bench b;
  auto& other = b.objects.add({"klm", {"op", "v1", "others"}, "spec", {}});
  b.objects.put(other, {"ns", "a"}, 10, b.now);
  BOOST_TEST(b.taken() == "");
  b.objects.set_kind(other, {"op", "v1", "Other"});
  BOOST_TEST(b.taken() == "a ");
}

BOOST_AUTO_TEST_CASE(objects_that_were_replaced_by_others_do_not_use_up_the_limit) {
  bench b(3);
  for (const auto* name : {"a", "b", "c"}) b.put_and_deliver(name, 10);
  b.list({{"d", 10}, {"e", 10}, {"f", 10}});
  BOOST_TEST(b.objects.existing() == 3U);
  BOOST_TEST(b.objects.size() == 3U, "the oldest deletions went");
  BOOST_TEST(b.gaps == "klm klm klm ");
  BOOST_TEST(b.taken() == "d e f ");
}

BOOST_AUTO_TEST_CASE(objects_that_come_and_go_do_not_use_up_the_limit) {
  bench b(3);
  for (const auto* name : {"a", "b", "c"}) b.put_and_deliver(name, 10);
  for (const auto* name : {"a", "b", "c"}) b.erase(name);
  for (int i = 0; i < 10; ++i) {
    const auto name = "n" + std::to_string(i);
    BOOST_TEST(b.put(name, 10));
    b.erase(name);
  }
  BOOST_TEST(b.objects.size() == 2U);
  BOOST_TEST(b.objects.existing() == 0U);
  BOOST_TEST(b.gaps == "klm ", "the first new one took the place of the oldest deletion");
  const auto left = b.taken();
  BOOST_TEST((left == "b c " || left == "c b "), left);
}

BOOST_AUTO_TEST_CASE(lists_that_do_not_end_leave_twice_the_limit_at_most) {
  bench b(3);
  for (int list = 0; list < 20; ++list) {
    b.objects.begin_listing(*b.table);
    for (int i = 0; i < 3; ++i) {
      BOOST_TEST(b.put(std::to_string(list) + "-" + std::to_string(i), 10));
    }
    BOOST_TEST(!b.put("one too many", 10));
    b.taken();
    for (int i = 0; i < 3; ++i) b.deliver(std::to_string(list) + "-" + std::to_string(i));
    BOOST_TEST(b.objects.size() <= 6U);
  }
  BOOST_TEST(b.gaps == "", "a list that ends may yet show all");
  BOOST_TEST(b.journal.contains(""), "the next process knows that objects are not known");
  b.list({{"19-0", 10}, {"19-1", 10}, {"19-2", 10}});
  const auto told = b.gaps;
  BOOST_TEST(told.starts_with("klm "));
  BOOST_TEST(!b.journal.contains(""));
  b.list({{"19-0", 10}, {"19-1", 10}, {"19-2", 10}});
  BOOST_TEST(b.gaps == told, "once");
}

BOOST_AUTO_TEST_CASE(undelivered_change_that_makes_room_for_a_list_is_a_gap) {
  bench b(1);
  b.put_and_deliver("told", 10);
  b.erase("told");
  // Which record goes first is not said.
  for (int i = 0; i < 10'000 && b.gaps.empty(); ++i) {
    b.objects.begin_listing(*b.table);
    b.put(std::to_string(i), 10);
  }
  BOOST_TEST(b.gaps == "klm ");
  BOOST_TEST(b.objects.size() == 2U);
}

BOOST_AUTO_TEST_CASE(event_of_an_object_without_room_is_a_gap_at_the_next_list) {
  bench b(1);
  b.put_and_deliver("a", 10);
  b.objects.make_unknown(*b.table, {"ns", "b"});
  BOOST_TEST(b.objects.size() == 1U);
  BOOST_TEST(b.gaps == "");
  std::map<std::string, state_hash> written;
  b.objects.visit(*b.table,
                  [&](std::string_view key, state_hash told) { written.emplace(key, told); });
  BOOST_TEST(written.contains(""));

  bench next(1);
  for (const auto& [key, told] : written) next.objects.remember(*next.table, key, told);
  BOOST_TEST(next.objects.size() == 1U);
  next.list({{"a", 10}});
  BOOST_TEST(next.gaps == "klm ", "b may have been deleted meanwhile");
  BOOST_TEST(next.taken() == "");
}

BOOST_AUTO_TEST_CASE(objects_of_a_kind_that_is_not_known_end_as_a_gap) {
  bench b;
  auto& unknown = b.objects.add({"other", {"op", "v1", "others"}, "spec", {}});
  b.objects.make_unknown(unknown, {"ns", "a"});
  b.objects.begin_listing(unknown);
  b.objects.end_listing(unknown, b.now);
  BOOST_TEST(b.gaps == "other ");
  BOOST_TEST(b.objects.size() == 0U);
  BOOST_TEST(b.objects.undelivered() == 0U);
  BOOST_TEST(b.journal.empty());
}

BOOST_AUTO_TEST_CASE(list_in_place_of_a_watch_sends_what_was_told_since_the_latest_one) {
  bench b;
  b.list({{"a", 10}, {"b", 10}});
  b.taken();
  for (const auto* name : {"a", "b"}) b.deliver(name);
  b.list({{"a", 10}, {"b", 10}});
  BOOST_TEST(b.taken() == "");
  // Its event tells whatever it is by then: the watch would show it, this list may not.
  b.put_and_deliver("a", 11);
  BOOST_TEST(b.journal.at("ns/a") == 11U);
  b.objects.begin_listing(*b.table, true);
  BOOST_TEST(b.journal.at("ns/a") == unknown_state);
  b.put("a", 11);
  b.put("b", 10);
  b.objects.end_listing(*b.table, b.now);
  BOOST_TEST(b.taken() == "a ");
}

BOOST_AUTO_TEST_CASE(list_forgets_what_an_interrupted_one_showed) {
  bench b;
  b.objects.begin_listing(*b.table);
  b.put_and_deliver("a", 10);
  b.list({{"a", 10}, {"b", 10}});
  const auto told = b.taken();
  BOOST_TEST((told == "a b " || told == "b a "), told);
}

BOOST_AUTO_TEST_CASE(change_of_a_removed_watcher_is_no_gap_where_another_inherits_it) {
  for (const bool inherited : {false, true}) {
    bench b;
    b.put("a", 10);
    b.objects.remove(kymas, inherited);
    BOOST_TEST(b.gaps == (inherited ? "" : "klm "));
  }
}

BOOST_AUTO_TEST_CASE(only_a_manager_with_watchers_can_be_sent_all_again) {
  bench b;
  BOOST_TEST(b.objects.send_again("klm", b.now));
  BOOST_TEST(!b.objects.send_again("other", b.now));
  b.objects.remove(kymas);
  BOOST_TEST(!b.objects.send_again("klm", b.now));
}

BOOST_AUTO_TEST_CASE(inherited_object_is_told_whether_it_exists_or_not) {
  bench b;
  b.objects.inherit(*b.table, "ns/kept");
  b.objects.inherit(*b.table, "ns/deleted");
  BOOST_TEST(b.journal.at("ns/deleted") == unknown_state);
  BOOST_TEST(b.taken() == "");
  b.list({{"kept", 10}});
  const auto told = b.taken();
  BOOST_TEST((told == "kept deleted " || told == "deleted kept "), told);
}

BOOST_AUTO_TEST_CASE(object_beyond_the_limit_is_not_known) {
  bench b(2);
  BOOST_TEST(b.put("a", 10));
  BOOST_TEST(b.put("b", 10));
  BOOST_TEST(!b.put("c", 10));
  BOOST_TEST(b.put("a", 11));
  auto& other = b.add({"klm", {"op", "v1", "others"}, "spec", {}});
  BOOST_TEST(b.objects.put(other, {"ns", "x"}, 10, b.now), "each Watcher has its own limit");
  b.objects.begin_listing(*b.table);
  BOOST_TEST(b.put("c", 10));
  BOOST_TEST(b.put("c", 11), "listed twice it counts once");
  BOOST_TEST(b.put("d", 10));
  BOOST_TEST(!b.put("e", 10));
}

BOOST_AUTO_TEST_CASE(deleted_objects_do_not_exist) {
  bench b;
  for (const auto* name : {"a", "b"}) b.put_and_deliver(name, 10);
  b.erase("a");
  BOOST_TEST(b.objects.size() == 2U);
  BOOST_TEST(b.objects.existing() == 1U);
  b.put("a", 11);
  BOOST_TEST(b.objects.existing() == 2U);
  b.erase("a");
  b.erase("b");
  b.objects.remove(kymas);
  BOOST_TEST(b.objects.existing() == 0U);
}

BOOST_AUTO_TEST_CASE(removed_watcher_takes_its_objects_along) {
  bench b;
  b.put_and_deliver("b", 20);
  b.objects.remove(kymas);
  BOOST_TEST(b.objects.size() == 0U);
  BOOST_TEST(b.gaps == "");
  b.add(kymas);
  b.table = &b.objects.add(kymas);
  b.put("a", 10);
  b.objects.remove(kymas);
  BOOST_TEST(b.gaps == "klm ", "an undelivered change went with it");
  BOOST_TEST(b.objects.undelivered() == 0U);
  BOOST_TEST(b.taken() == "");
}

BOOST_AUTO_TEST_CASE(resync_sends_all_objects_of_a_manager) {
  bench b;
  b.put_and_deliver("a", 10);
  b.put_and_deliver("b", 10);
  b.erase("b");
  b.objects.send_again("other", b.now);
  b.objects.send_again("klm", b.now);
  BOOST_TEST(b.taken() == "b a ");
}

BOOST_AUTO_TEST_CASE(object_costs_200_bytes_at_most) {
  bench b(100000);
  const std::size_t count = 20000;
  const auto before = ::mallinfo2().uordblks;
  b.objects.begin_listing(*b.table);
  for (std::size_t i = 0; i < count; ++i) {
    b.objects.remember(*b.table, "ns/a-name-of-an-usual-length-" + std::to_string(100000 + i), 10);
  }
  const auto each = (::mallinfo2().uordblks - before) / count;
  BOOST_TEST_MESSAGE("bytes of an object: " << each);
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
  BOOST_TEST(each <= 200U);
  BOOST_TEST(each > 50U, "the allocator does not say");
#endif
}

BOOST_AUTO_TEST_CASE(state_that_an_earlier_version_marked_is_no_change) {
  bench b;
  b.objects.remember(*b.table, "ns/a", 10);
  b.objects.remember(*b.table, "ns/b", 20);
  b.objects.remember(*b.table, "ns/c", unknown_state);
  b.objects.begin_listing(*b.table);
  for (const auto& [name, from, to] :
       {std::tuple("a", 10, 11), std::tuple("b", 21, 22), std::tuple("c", 30, 31)}) {
    b.objects.rehash(*b.table, {"ns", name}, static_cast<state_hash>(from),
                     static_cast<state_hash>(to));
    b.put(name, static_cast<state_hash>(to));
  }
  b.objects.end_listing(*b.table, b.now);
  BOOST_TEST(b.journal["ns/a"] == 11U);
  BOOST_TEST(b.taken() == "b c ");
}

BOOST_AUTO_TEST_SUITE_END()
