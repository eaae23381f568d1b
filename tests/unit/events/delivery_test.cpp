#include "rw/reactors/events/delivery.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <malloc.h>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(delivery)

using namespace rw::dispatch;
using namespace std::chrono_literals;
using rw::managed_watch;
using rw::watch_event;

namespace {

const managed_watch kymas{"klm", {"op", "v1", "kymas"}, "spec", {}};

struct bench {
  explicit bench(std::size_t limit = 1000)
      : objects({.objects = limit},
                [this](const std::string& manager, resync_cause cause) {
                  raised += manager + " " + std::string(to_string(cause)) + ", ";
                }),
        table(&add(kymas)) {}

  rw::dispatch::delivery::table& add(const managed_watch& watch) {
    auto& added = objects.add(watch, now);
    objects.set_kind(added, {"op", "v1", "Kyma"});
    return added;
  }
  /// The process has read its managers' file.
  void begin() {
    objects.set_managers({"klm"}, now);
    raised.clear();
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
    objects.begin_listing(*table, false, now);
    for (const auto& [name, state] : all) put(name, state);
    objects.end_listing(*table, now);
    objects.set_live(*table, true, now);
  }
  void adopt() {
    while (auto next = objects.adopt()) waiting = next;
  }
  /// Takes all changes, such as "a b ".
  std::string taken(bool closing = false) {
    adopt();
    std::string text;
    while (auto change = waiting ? objects.take(*waiting, closing) : std::nullopt) {
      text += change->event.watched.name + " ";
    }
    return text;
  }
  /// Whether a resync is due.
  bool due(bool closing = false) {
    adopt();
    if (waiting == nullptr) return false;
    objects.advance(*waiting, closing, now);
    return objects.resync_due(*waiting, closing, now);
  }
  rw::core::time_point next_resync() {
    adopt();
    return objects.next_resync(*waiting, now);
  }
  std::string begin_resync() {
    return std::string(rw::to_string(objects.begin_resync(*waiting, false)));
  }
  /// Ends it. Returns the object by which the receiver is judged.
  std::string end_resync(resync_account::outcome ending) {
    const auto probe = objects.end_resync(*waiting, ending, [] { return 0U; }, now);
    return probe ? probe->watched.name : "";
  }
  void resync() {
    BOOST_TEST(due());
    begin_resync();
    end_resync(resync_account::outcome::taken);
  }
  static watch_event event(const std::string& name) {
    return {"klm", {"op", "v1", "Kyma"}, {"ns", name}};
  }
  void deliver(const std::string& name) { objects.told(*waiting, event(name), now); }
  void put_and_deliver(const std::string& name, state_hash state) {
    put(name, state);
    taken();
    deliver(name);
  }

  std::string raised;  ///< such as "klm overflow, "
  rw::core::time_point now = rw::core::time_point(1h);
  rw::dispatch::delivery objects;
  rw::dispatch::delivery::table* table;
  std::shared_ptr<rw::dispatch::delivery::queue> waiting;
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

BOOST_AUTO_TEST_CASE(live_changes_go_first_and_do_not_starve_listed_ones) {
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
  b.objects.begin_listing(*b.table, false, b.now);
  b.put("a", 10);
  b.objects.begin_listing(*b.table, false, b.now);
  b.put("b", 20);
  BOOST_TEST(b.taken() == "");
  b.objects.end_listing(*b.table, b.now);
  BOOST_TEST(b.taken() == "a ", "the second list lacks what the first one showed");
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
  b.objects.told(*b.waiting, b.event("a"), b.now);
  BOOST_TEST(b.objects.undelivered() == 1U, "the older version's event is under way for it");
  b.objects.told(*b.waiting, older, b.now);
  BOOST_TEST(b.taken() == "a ");
  b.objects.told(*b.waiting, older, b.now);
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
      b.objects.told(*b.waiting, as(first), b.now);
      BOOST_TEST(b.objects.undelivered() == (first == second ? 0U : 1U), first << " " << second);
    }
  }
}

BOOST_AUTO_TEST_CASE(object_that_many_lists_do_not_show_is_deleted) {
  bench b;
  b.put_and_deliver("a", 10);
  for (int i = 0; i < 40; ++i) {
    b.list({{"a", 10}});
    for (int k = 0; k < i; ++k)
      b.objects.begin_listing(*b.table, false, b.now);  // that come to no end
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
  auto& other = b.objects.add({"klm", {"op", "v1", "others"}, "spec", {}}, b.now);
  b.objects.put(other, {"ns", "a"}, 10, b.now);
  BOOST_TEST(b.taken() == "");
  b.objects.set_kind(other, {"op", "v1", "Other"});
  BOOST_TEST(b.taken() == "a ");
}

BOOST_AUTO_TEST_CASE(objects_that_were_replaced_by_others_do_not_use_up_the_limit) {
  bench b(3);
  for (const auto* name : {"a", "b", "c"}) b.put_and_deliver(name, 10);
  b.list({{"d", 10}, {"e", 10}, {"f", 10}});
  BOOST_TEST(b.objects.size() == 3U, "the oldest deletions went");
  BOOST_TEST(b.raised == "klm overflow, klm overflow, klm overflow, ");
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
  BOOST_TEST(b.objects.size() == 3U);
  BOOST_TEST(b.objects.losses().at("klm") > 0U, "a new one takes the place of the oldest deletion");
}

BOOST_AUTO_TEST_CASE(object_beyond_the_limit_is_not_known) {
  bench b(2);
  BOOST_TEST(b.put("a", 10));
  BOOST_TEST(b.put("b", 10));
  BOOST_TEST(!b.put("c", 10));
  BOOST_TEST(b.put("a", 11));
  auto& other = b.add({"klm", {"op", "v1", "others"}, "spec", {}});
  BOOST_TEST(b.objects.put(other, {"ns", "x"}, 10, b.now), "each Watcher has its own limit");
  b.objects.begin_listing(*b.table, false, b.now);
  BOOST_TEST(b.put("c", 10));
  BOOST_TEST(b.put("c", 11), "listed twice it counts once");
  BOOST_TEST(b.put("d", 10));
  BOOST_TEST(!b.put("e", 10));
}

BOOST_AUTO_TEST_CASE(object_costs_200_bytes_at_most) {
  bench b(100000);
  const std::size_t count = 20000;
  const auto before = ::mallinfo2().uordblks;
  b.objects.begin_listing(*b.table, false, b.now);
  for (std::size_t i = 0; i < count; ++i) {
    b.put("a-name-of-an-usual-length-" + std::to_string(100000 + i), 10);
  }
  const auto each = (::mallinfo2().uordblks - before) / count;
  BOOST_TEST_MESSAGE("bytes of an object: " << each);
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
  BOOST_TEST(each <= 200U);
  BOOST_TEST(each > 50U, "the allocator does not say");
#endif
}

/// An operator that came up meanwhile knows it from its own list.
BOOST_AUTO_TEST_CASE(deletion_of_an_object_that_nobody_was_told_of_is_told) {
  bench b;
  b.put("a", 10);
  b.erase("a");
  BOOST_TEST(b.taken() == "a ");
  b.deliver("a");
  BOOST_TEST(b.objects.size() == 0U);
  b.erase("never seen");
  BOOST_TEST(b.taken() == "");
}

BOOST_AUTO_TEST_CASE(lists_that_do_not_end_leave_twice_the_limit_at_most) {
  bench b(3);
  b.begin();
  for (int list = 0; list < 20; ++list) {
    b.objects.begin_listing(*b.table, false, b.now);
    for (int i = 0; i < 3; ++i) {
      BOOST_TEST(b.put(std::to_string(list) + "-" + std::to_string(i), 10));
    }
    BOOST_TEST(!b.put("one too many", 10));
    BOOST_TEST(b.objects.size() <= 6U);
  }
  BOOST_TEST(b.raised.starts_with("klm overflow, "), "what is forgotten may exist");
}

/// One that may not be listed, and is tried again and again.
BOOST_AUTO_TEST_CASE(resync_does_not_wait_for_a_watch_whose_lists_are_refused) {
  bench b;
  b.begin();
  bool was_due = false;
  for (int i = 0; i < 10 && !was_due; ++i) {
    b.objects.begin_listing(*b.table, false, b.now);
    was_due = was_due || b.due();
    b.objects.break_listing(*b.table);
    b.now += 5s;
    was_due = was_due || b.due();
  }
  BOOST_TEST(was_due);
}

BOOST_AUTO_TEST_CASE(change_since_a_resync_was_sent_is_told_though_its_event_waited_before) {
  bench b;
  b.list({});
  b.begin();
  b.put("a", 10);
  BOOST_TEST(b.taken() == "a ");
  BOOST_TEST(b.due());
  b.begin_resync();
  b.put("a", 11);
  b.objects.sending(*b.waiting, b.event("a"));  // again, and it fails again
  b.objects.told_by_resync(*b.waiting, b.event("a"), b.now);
  b.end_resync(resync_account::outcome::taken);
  BOOST_TEST(b.taken() == "a ");
}

BOOST_AUTO_TEST_CASE(objects_that_come_and_go_at_the_limit_raise_no_resync_in_haste) {
  bench b(1);
  b.list({{"a", 10}});
  b.begin();
  b.resync();
  BOOST_TEST(!b.put("b", 10));
  b.objects.set_live(*b.table, false, b.now);
  b.list({{"a", 10}});
  BOOST_TEST(b.raised == "klm checked, ");
}

BOOST_AUTO_TEST_CASE(event_of_a_review_while_the_watch_was_away_raises_a_resync_later) {
  bench b;
  b.list({});
  b.begin();
  b.resync();
  b.objects.set_live(*b.table, false, b.now);
  b.objects.told_by_review(*b.table);
  b.objects.set_live(*b.table, true, b.now);
  BOOST_TEST(b.raised == "klm checked, ");
  BOOST_TEST(!b.due());
}

BOOST_AUTO_TEST_CASE(operator_that_was_known_by_reviews_needs_no_offer_once_the_file_names_it) {
  rw::dispatch::delivery objects({});
  const auto now = rw::core::time_point(1h);
  const auto of = objects.adopt_unlisted("klm", now);
  BOOST_REQUIRE(of);
  objects.drop_review("klm", now);
  BOOST_TEST(objects.losses().count("klm") == 0U, "anybody may name it");
  objects.set_managers({"klm"}, now);
  BOOST_TEST(objects.resync_due(*of, false, now));
}

BOOST_AUTO_TEST_CASE(released_operator_that_is_owed_something_is_adopted_again) {
  bench b;
  b.list({});
  b.objects.set_managers({"klm"}, b.now);
  b.adopt();
  b.objects.release(*b.waiting);
  BOOST_TEST((b.objects.adopt() == b.waiting));
}

BOOST_AUTO_TEST_CASE(end_of_the_process_waits_for_what_was_dropped_just_now) {
  bench b;
  b.list({});
  b.begin();
  b.objects.drop_review("klm", b.now);
  BOOST_TEST(!b.due(true), "its change cannot be read yet");
  BOOST_TEST(b.objects.holds_end());
  b.now += 100ms;
  BOOST_TEST(b.due(true));
  b.objects.begin_resync(*b.waiting, true);
  b.end_resync(resync_account::outcome::taken);
  BOOST_TEST(!b.objects.holds_end());
}

// --- resyncs -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(process_that_begins_owes_a_resync_that_tells_the_first_list) {
  bench b;
  b.objects.set_managers({"klm"}, b.now);
  BOOST_TEST(b.raised == "klm started, ");
  BOOST_TEST(!b.due(), "its watch is not live");
  b.objects.begin_listing(*b.table, false, b.now);
  b.put("a", 10);
  b.put("b", 10);
  BOOST_TEST(b.taken() == "", "they are held");
  BOOST_TEST(b.objects.undelivered() == 2U);
  b.objects.end_listing(*b.table, b.now);
  BOOST_TEST(!b.due());
  b.objects.set_live(*b.table, true, b.now);
  b.put("b", 11);
  b.erase("a");
  b.put("c", 10);
  BOOST_TEST(b.due());
  BOOST_TEST(b.begin_resync() == "started");
  BOOST_TEST(!b.due(), "one is under way");
  b.put("d", 10);
  b.end_resync(resync_account::outcome::taken);
  BOOST_TEST(b.taken() == "d ", "the others are told, this one came later");
  BOOST_TEST(b.objects.owed() == 0U);
  BOOST_TEST(b.objects.size() == 3U, "a is gone");
  b.erase("b");
  BOOST_TEST(b.taken() == "b ");
}

BOOST_AUTO_TEST_CASE(event_under_way_is_not_told_by_a_resync) {
  bench b;
  b.list({});
  b.begin();
  b.put("a", 10);
  BOOST_TEST(b.taken() == "a ");
  b.put("a", 11);
  b.resync();
  BOOST_TEST(b.objects.undelivered() == 1U);
  b.deliver("a");
  BOOST_TEST(b.taken() == "a ", "it changed after its event was sent");
}

BOOST_AUTO_TEST_CASE(loss_while_a_resync_is_under_way_is_owed_after_it) {
  bench b;
  b.list({});
  b.begin();
  BOOST_TEST(b.due());
  b.begin_resync();
  b.objects.raise("klm", resync_cause::overflow);
  b.end_resync(resync_account::outcome::taken);
  BOOST_TEST(b.objects.owed() == 1U);
  BOOST_TEST(!b.due(), "losses have time");
  b.now += resync_account::interval;
  BOOST_TEST(b.due());
  BOOST_TEST(b.begin_resync() == "dropped");
}

BOOST_AUTO_TEST_CASE(resync_waits_for_a_watch_and_not_for_ever) {
  bench b;
  b.begin();
  BOOST_TEST((b.next_resync() == b.now + 30s));
  b.now += 30s;
  BOOST_TEST(b.due(), "it neither lists nor is live");
  b.objects.begin_listing(*b.table, false, b.now);
  BOOST_TEST(!b.due(), "a list ends");
  b.now += 10min;
  BOOST_TEST(b.due(), "or it does not");
}

BOOST_AUTO_TEST_CASE(list_that_ends_after_a_resync_raises_another) {
  bench b;
  b.begin();
  b.objects.begin_listing(*b.table, false, b.now);
  b.put("a", 10);
  b.now += 10min;
  b.resync();
  b.put("b", 10);
  BOOST_TEST(b.raised == "");
  b.objects.end_listing(*b.table, b.now);
  b.objects.set_live(*b.table, true, b.now);
  BOOST_TEST(b.raised == "klm watch_back, ");
  BOOST_TEST(b.taken() == "b ", "the resync was sent before it was listed");
  BOOST_TEST(b.due());
  BOOST_TEST(b.begin_resync() == "watch-back");
}

BOOST_AUTO_TEST_CASE(list_after_the_first_raises_a_resync) {
  for (const bool by_reviews : {false, true}) {
    bench b;
    b.list({{"a", 10}});
    b.begin();
    b.resync();
    b.objects.begin_listing(*b.table, by_reviews, b.now);
    b.put("a", 10);
    b.objects.end_listing(*b.table, b.now);
    BOOST_TEST(b.raised == (by_reviews ? "klm checked, " : "klm watch_back, "));
    BOOST_TEST(b.due() == !by_reviews, "tenants can cause lists by reviews");
    b.now += resync_account::interval;
    BOOST_TEST(b.due());
  }
}

/// It would be sent for each of their tries.
BOOST_AUTO_TEST_CASE(list_of_too_many_objects_raises_no_resync_in_haste) {
  bench b(1);
  b.list({{"a", 10}});
  b.begin();
  b.resync();
  for (int i = 0; i < 3; ++i) {
    b.objects.set_live(*b.table, false, b.now);
    b.objects.begin_listing(*b.table, false, b.now);
    b.put("a", 10);
    BOOST_TEST(!b.put("b", 10));
    b.now += 31s;
    BOOST_TEST(!b.due());
  }
  b.list({{"a", 10}});
  BOOST_TEST(b.raised == "klm checked, ");
  BOOST_TEST(!b.due());
}

BOOST_AUTO_TEST_CASE(watch_that_goes_on_without_a_list_raises_nothing) {
  bench b;
  b.list({{"a", 10}});
  b.begin();
  b.resync();
  b.objects.set_live(*b.table, false, b.now);
  b.objects.set_live(*b.table, true, b.now);
  BOOST_TEST(b.raised == "");
}

BOOST_AUTO_TEST_CASE(receiver_without_resyncs_gets_what_exists) {
  bench b;
  b.begin();
  b.objects.begin_listing(*b.table, false, b.now);
  for (const auto* name : {"a", "b", "c"}) b.put(name, 10);
  b.objects.end_listing(*b.table, b.now);
  b.objects.set_live(*b.table, true, b.now);
  BOOST_TEST(b.due());
  b.begin_resync();
  const auto probe = b.end_resync(resync_account::outcome::unclear);
  BOOST_TEST((probe == "a" || probe == "b" || probe == "c"), probe);
  b.objects.sending(*b.waiting, b.event(probe));
  b.deliver(probe);
  b.objects.accepted(*b.waiting, false, b.now);
  BOOST_TEST(!b.due());
  BOOST_TEST(b.taken() == "", "not in the first minute");
  b.now += 1min;
  BOOST_TEST(!b.due());
  b.put("live", 10);
  b.erase("b");
  const auto all = b.taken();
  BOOST_TEST((all.starts_with("live b ") || all.starts_with("b live ")), all);
  BOOST_TEST(all.size() == std::string("live a b c ").size(), all);
  BOOST_TEST(b.objects.owed() == 1U, "that pays nothing");
  b.objects.raise("klm", resync_cause::watch_back);
  BOOST_TEST(!b.due());
  b.now += 9min + 59s;
  BOOST_TEST(b.due(), "it is tried every ten minutes");
}

BOOST_AUTO_TEST_CASE(object_whose_event_is_under_way_is_sent_again_in_place_of_a_resync) {
  bench b;
  b.list({{"a", 10}});
  b.begin();
  b.now += 1min;
  BOOST_TEST(b.due());
  BOOST_TEST(b.taken() == "a ");
  b.begin_resync();
  b.end_resync(resync_account::outcome::unclear);
  b.objects.accepted(*b.waiting, false, b.now);
  b.due();
  b.deliver("a");
  BOOST_TEST(b.taken() == "a ");
}

BOOST_AUTO_TEST_CASE(operator_without_watchers_is_owed_nothing) {
  bench b;
  b.objects.set_managers({"klm", "gone"}, b.now);
  BOOST_TEST(b.objects.owed() == 2U);
  b.objects.set_managers({"klm"}, b.now);
  BOOST_TEST(b.objects.owed() == 1U);
  BOOST_TEST(b.objects.forgiven() == 1U);
  b.objects.raise("gone", resync_cause::overflow);
  BOOST_TEST(b.objects.owed() == 1U);
}

BOOST_AUTO_TEST_CASE(removed_watcher_takes_its_objects_along) {
  for (const bool replaced : {false, true}) {
    bench b;
    b.list({});
    b.begin();
    b.resync();
    b.put_and_deliver("b", 20);
    b.objects.remove(kymas, replaced, b.now);
    BOOST_TEST(b.objects.size() == 0U);
    BOOST_TEST(b.raised == "");
    b.table = &b.add(kymas);
    b.put("a", 10);
    b.objects.remove(kymas, replaced, b.now);
    BOOST_TEST(b.raised == (replaced ? "" : "klm removed, "), "an untold change went with it");
    BOOST_TEST(b.objects.undelivered() == 0U);
    BOOST_TEST(b.taken() == "");
  }
}

BOOST_AUTO_TEST_CASE(dropped_review_raises_a_resync_when_its_change_can_be_read) {
  bench b;
  b.list({});
  b.begin();
  b.resync();
  b.now += resync_account::interval;
  b.objects.drop_review("klm", b.now);
  BOOST_TEST(b.objects.losses().at("klm") == 1U);
  BOOST_TEST(!b.due());
  BOOST_TEST((b.next_resync() == b.now + 100ms));
  b.now += 60ms;
  b.objects.drop_review("klm", b.now);
  b.now += 40ms;
  BOOST_TEST(b.due());
  BOOST_TEST(b.begin_resync() == "dropped");
  b.end_resync(resync_account::outcome::taken);
  b.now += 60ms;
  BOOST_TEST(!b.due());
  BOOST_TEST(b.objects.owed() == 1U, "for the second one");
  b.objects.drop_review("invented", b.now);
  BOOST_TEST(b.objects.losses().at("") == 1U);
}

BOOST_AUTO_TEST_CASE(end_of_the_process_sends_a_resync_once_whatever_it_waits_for) {
  bench b;
  b.begin();
  BOOST_TEST(!b.due());
  BOOST_TEST(b.objects.holds_end());
  BOOST_TEST(b.due(true));
  b.objects.begin_resync(*b.waiting, true);
  b.end_resync(resync_account::outcome::failed);
  BOOST_TEST(!b.due(true));
  BOOST_TEST(!b.objects.holds_end());
}

/// There is no managers' file.
BOOST_AUTO_TEST_CASE(operator_that_is_known_by_reviews_gets_a_resync_once_it_has_offered) {
  rw::dispatch::delivery objects({});
  const auto now = rw::core::time_point(1h);
  const auto of = objects.adopt_unlisted("klm", now);
  BOOST_REQUIRE(of);
  BOOST_TEST(!objects.resync_due(*of, false, now));
  BOOST_TEST(objects.is_settled(*of));
  objects.accepted(*of, true, now);
  BOOST_TEST(objects.resync_due(*of, false, now));
  objects.begin_resync(*of, false);
  objects.end_resync(*of, resync_account::outcome::taken, [] { return 0U; }, now);
  BOOST_TEST(objects.owed() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
