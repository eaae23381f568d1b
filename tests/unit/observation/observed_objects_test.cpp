#include "reactors/observation/observed_objects.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdlib>
#include <malloc.h>
#include <map>
#include <string>

BOOST_AUTO_TEST_SUITE(observed_objects)

using namespace rw::observation;

namespace {

const rw::managed_watch kymas{"klm", {"op", "v1", "kymas"}, "spec", {}};

struct bench {
  rw::observation::observed_objects objects;
  rw::observation::observed_objects::table& table = objects.add(kymas);
  const rw::core::time_point time = rw::core::time_point(std::chrono::hours(1));
  std::map<std::string, std::uint64_t> sequences;  ///< of the newest event, by name

  void put(const std::string& name, mark now) { objects.put(table, {"ns", name}, now); }
  void erase(const std::string& name) { objects.erase(table, {"ns", name}); }
  void list(const std::map<std::string, mark>& all) {
    objects.begin_listing(table);
    for (const auto& [name, now] : all) put(name, now);
    objects.end_listing(table);
  }
  /// Hands out all changes, such as "a b ".
  std::string sent(bool resyncs = true) {
    std::string text;
    for (;;) {
      const auto live = objects.next_live();
      const auto change = live || !resyncs ? live : objects.next_resync(1000, time);
      if (!change) return text;
      text += change->key.name + " ";
      sequences[change->key.name] = change->sequence;
    }
  }
  void deliver(const std::string& name) { objects.delivered(table, {"ns", name}, sequences[name]); }
  void lose(const std::string& name) { objects.lost(table, {"ns", name}, sequences[name], time); }
  std::string ledger() const {
    std::map<std::string, mark> sorted;
    rw::observation::observed_objects::position all;
    objects.visit(
        all, 1'000'000, [](const auto&) {},
        [&](std::string_view key, mark of) { sorted.emplace(key, of); });
    std::string text;
    for (const auto& [key, of] : sorted) text += key + "=" + std::to_string(of) + " ";
    return text;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(list_without_ledger_sends_every_object_once) {
  bench b;
  b.list({{"a", 10}, {"b", 20}});
  BOOST_TEST(b.sent(false) == "", "a resync waits until it may go");
  BOOST_TEST(b.sent() == "a b ");
  BOOST_TEST(b.objects.open_resyncs() == 2U);
  BOOST_TEST(b.sent() == "");
  b.deliver("a");
  b.deliver("b");
  BOOST_TEST(b.objects.undelivered() == 0U);
  BOOST_TEST(b.objects.open_resyncs() == 0U);
  b.list({{"a", 10}, {"b", 20}});
  BOOST_TEST(b.sent() == "", "a list that shows the same states changes nothing");
}

BOOST_AUTO_TEST_CASE(live_change_goes_before_resyncs) {
  bench b;
  b.list({{"a", 10}, {"b", 20}});
  b.put("c", 30);
  b.put("b", 21);
  BOOST_TEST(b.objects.has_live_changes());
  BOOST_TEST(b.sent() == "c b a ");
}

BOOST_AUTO_TEST_CASE(state_that_is_known_is_no_change) {
  bench b;
  b.put("a", 10);
  BOOST_TEST(b.sent() == "a ");
  b.put("a", 10);
  BOOST_TEST(b.sent() == "");
  b.deliver("a");
  b.put("a", 10);
  BOOST_TEST(b.sent() == "");
  b.put("a", 11);
  BOOST_TEST(b.sent() == "a ");
}

BOOST_AUTO_TEST_CASE(change_back_during_the_flight_is_sent_again) {
  bench b;
  b.put("a", 10);
  b.sent();
  b.deliver("a");
  b.put("a", 11);
  b.sent();
  b.put("a", 10);
  b.deliver("a");
  BOOST_TEST(b.objects.undelivered() == 1U, "the event was sent before the change back");
  BOOST_TEST(b.sent() == "a ");
}

BOOST_AUTO_TEST_CASE(later_event_covers_an_earlier_one) {
  bench b;
  b.put("a", 10);
  b.sent();
  b.objects.delivered(b.table, {"ns", "a"}, b.sequences["a"] + 5);
  BOOST_TEST(b.objects.undelivered() == 0U);
}

BOOST_AUTO_TEST_CASE(earlier_event_does_not_cover_a_later_change) {
  bench b;
  b.put("a", 10);
  b.sent();
  const auto first = b.sequences["a"];
  b.put("a", 11);
  b.sent();
  b.objects.delivered(b.table, {"ns", "a"}, first);
  BOOST_TEST(b.objects.undelivered() == 1U);
  b.objects.lost(b.table, {"ns", "a"}, first, b.time);
  BOOST_TEST(b.sent() == "", "the later event is on its way");
  b.deliver("a");
  BOOST_TEST(b.objects.undelivered() == 0U);
}

BOOST_AUTO_TEST_CASE(lost_event_becomes_a_resync) {
  bench b;
  b.put("a", 10);
  b.sent();
  b.lose("a");
  BOOST_TEST(b.sent(false) == "");
  BOOST_TEST(b.sent() == "a ");
  b.deliver("a");
  BOOST_TEST(b.objects.undelivered() == 0U);
}

BOOST_AUTO_TEST_CASE(deletion_is_kept_until_it_is_delivered) {
  bench b;
  b.put("a", 10);
  b.sent();
  b.deliver("a");
  b.erase("a");
  BOOST_TEST(b.sent() == "a ");
  b.lose("a");
  BOOST_TEST(b.objects.size() == 1U);
  BOOST_TEST(b.sent() == "a ");
  b.deliver("a");
  BOOST_TEST(b.objects.size() == 0U);
  BOOST_TEST(b.objects.state_of(b.table, {"ns", "a"}) == absent_mark);
  b.erase("a");
  BOOST_TEST(b.sent() == "");
}

BOOST_AUTO_TEST_CASE(object_that_a_list_lacks_was_deleted) {
  bench b;
  b.list({{"a", 10}, {"b", 20}});
  b.sent();
  b.deliver("a");
  b.deliver("b");
  b.list({{"b", 20}});
  BOOST_TEST(b.sent() == "a ");
}

BOOST_AUTO_TEST_CASE(interrupted_list_deletes_nothing) {
  bench b;
  b.list({{"a", 10}, {"b", 20}});
  b.sent();
  b.deliver("a");
  b.deliver("b");
  b.objects.begin_listing(b.table);
  b.put("a", 10);
  b.objects.begin_listing(b.table);
  b.put("b", 20);
  BOOST_TEST(b.sent() == "");
  b.objects.end_listing(b.table);
  BOOST_TEST(b.sent() == "a ", "the second list lacks what the first one showed");
}

BOOST_AUTO_TEST_CASE(ledger_leaves_only_what_differs) {
  bench b;
  for (const auto* key : {"ns/same", "ns/changed", "ns/deleted", "ns/unsure"}) {
    b.objects.remember(b.table, key, std::string_view(key) == "ns/unsure" ? unknown_mark : 10);
  }
  BOOST_TEST(b.objects.undelivered() == 0U);
  b.list({{"same", 10}, {"changed", 11}, {"created", 12}, {"unsure", 13}});
  BOOST_TEST(b.objects.undelivered() == 4U);
  std::map<std::string, int> counts;
  while (const auto change = b.objects.next_resync(10, b.time)) ++counts[change->key.name];
  const std::map<std::string, int> expected{
      {"changed", 1}, {"created", 1}, {"deleted", 1}, {"unsure", 1}};
  BOOST_TEST((counts == expected));
}

BOOST_AUTO_TEST_CASE(ledger_has_what_was_delivered) {
  bench b;
  b.put("a", 10);
  b.put("b", 20);
  b.sent();
  b.deliver("a");
  BOOST_TEST(b.ledger() == "ns/a=10 ns/b=0 ");
  b.deliver("b");
  b.erase("a");
  BOOST_TEST(b.ledger() == "ns/a=0 ns/b=20 ", "an undelivered deletion is remembered");
  const auto version = b.objects.version();
  b.put("b", 20);
  BOOST_TEST(b.objects.version() == version);
}

BOOST_AUTO_TEST_CASE(manager_that_takes_nothing_delays_only_its_own_resyncs) {
  bench b;
  auto& other = b.objects.add({"dead", {"op", "v1", "kymas"}, "spec", {}});
  b.objects.begin_listing(other);
  for (const auto* name : {"x", "y", "z"}) b.objects.put(other, {"ns", name}, 1000);
  b.objects.end_listing(other);
  b.list({{"a", 10}, {"b", 20}, {"c", 30}});

  std::string turns;
  std::uint64_t first = 0;
  while (const auto change = b.objects.next_resync(2, b.time)) {
    turns += change->key.name;
    if (change->key.name == "x") first = change->sequence;
    if (change->watch.manager == "klm") {
      b.objects.delivered(b.table, change->key, change->sequence);
    }
  }
  BOOST_TEST(turns == "xaybc");
  BOOST_TEST((b.objects.resumes(2) == rw::core::time_point::max()));

  b.objects.lost(other, {"ns", "x"}, first, b.time + std::chrono::seconds(5));
  BOOST_TEST(!b.objects.next_resync(2, b.time));
  BOOST_TEST((b.objects.resumes(2) == b.time + std::chrono::seconds(5)));
  b.list({{"a", 11}, {"b", 20}, {"c", 30}});
  BOOST_TEST(b.sent() == "a ", "the pause is that of the other manager");
}

BOOST_AUTO_TEST_CASE(deleted_objects_do_not_exist) {
  bench b;
  b.list({{"a", 10}, {"b", 20}});
  b.erase("a");
  BOOST_TEST(b.objects.size() == 2U);
  BOOST_TEST(b.objects.existing() == 1U);
  b.put("a", 11);
  BOOST_TEST(b.objects.existing() == 2U);
  b.erase("a");
  b.sent();
  b.deliver("a");
  BOOST_TEST(b.objects.size() == 1U);
  BOOST_TEST(b.objects.existing() == 1U);
  b.erase("b");
  b.objects.remove(kymas);
  BOOST_TEST(b.objects.existing() == 0U);
}

BOOST_AUTO_TEST_CASE(removed_watcher_takes_its_objects_along) {
  bench b;
  b.put("a", 10);
  b.list({{"b", 20}});
  b.sent(false);
  b.objects.remove(kymas);
  BOOST_TEST(b.objects.size() == 0U);
  BOOST_TEST(b.objects.undelivered() == 0U);
  BOOST_TEST(!b.objects.next_resync(10, b.time));
}

BOOST_AUTO_TEST_CASE(object_costs_200_bytes_at_most) {
  bench b;
  const std::size_t count = 20000;
  const auto before = ::mallinfo2().uordblks;
  for (std::size_t i = 0; i < count; ++i) {
    b.put("a-name-of-an-usual-length-" + std::to_string(100000 + i), 10 + i);
  }
  const auto each = (::mallinfo2().uordblks - before) / count;
  BOOST_TEST_MESSAGE("bytes of an object: " << each);
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
  BOOST_TEST(each <= 200U);
  BOOST_TEST(each > 50U, "the allocator does not say");
#endif
}

BOOST_AUTO_TEST_SUITE_END()
