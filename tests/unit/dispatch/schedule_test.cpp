#include "reactors/dispatch/schedule.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(schedule)

namespace core = rw::core;
using namespace std::chrono_literals;
using rw::dispatch::outcome;
using rw::dispatch::schedule_options;
using rw::dispatch::settlement;
using rw::dispatch::shipment;
using offered = rw::dispatch::schedule::offered;
using what = rw::dispatch::verdict;

namespace {

rw::watch_event event(const std::string& name, const std::string& manager = "m") {
  return {.manager = manager, .gvk = {"g", "v1", "Kind"}, .watched = {"ns", name}, .owner = {}};
}

std::vector<std::string> names(const shipment& of) {
  std::vector<std::string> all;
  for (const auto& one : of.events) all.push_back(one.key->watched.name);
  return all;
}

/// A schedule whose random source draws what `drawn` says, and time that stands still.
struct bench {
  explicit bench(schedule_options options = {}) : plan(options, [this] { return drawn; }) {}

  offered offer(const std::string& name, const std::string& manager = "m") {
    auto one = event(name, manager);
    return plan.offer(one, now);
  }

  bool ready() { return plan.ready(now); }

  shipment next() {
    shipment load;
    BOOST_REQUIRE(plan.ready(now));
    BOOST_REQUIRE(plan.next(now, load));
    return load;
  }

  settlement settle(const shipment& load, what all, std::chrono::seconds retry_after = 0s) {
    return plan.settle(load, std::vector<outcome>(load.events.size(), {all, retry_after}), now);
  }

  settlement send_next(what all, std::chrono::seconds retry_after = 0s) {
    return settle(next(), all, retry_after);
  }

  /// Draws the longest pause there can be up to `ceiling`.
  void draw(core::duration ceiling) { drawn = static_cast<std::uint64_t>(ceiling.count()); }

  std::uint64_t drawn = 0;
  core::time_point now{1h};
  rw::dispatch::schedule plan;
};

using strings = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(an_empty_schedule_has_nothing_to_send_and_waits_for_nothing) {
  bench b;
  BOOST_TEST(b.plan.empty());
  BOOST_TEST(!b.ready());
  shipment load;
  BOOST_TEST(!b.plan.next(b.now, load));
  BOOST_TEST((b.plan.next_time(b.now) == core::time_point::max()));
}

BOOST_AUTO_TEST_CASE(events_go_one_by_one_in_the_order_they_came) {
  bench b;
  for (const auto* name : {"a", "b", "c"}) BOOST_TEST((b.offer(name) == offered::added));
  for (const auto* name : {"a", "b", "c"}) {
    const auto load = b.next();
    BOOST_TEST(names(load) == strings{name});
    BOOST_TEST(!load.as_batch);
    BOOST_TEST(load.manager == "m");
    BOOST_TEST(b.settle(load, what::delivered).delivered == 1U);
  }
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(changes_of_an_object_that_waits_become_one_event) {
  bench b;
  BOOST_TEST((b.offer("a") == offered::added));
  BOOST_TEST((b.offer("a") == offered::merged));
  BOOST_TEST(b.plan.size() == 1U);
  b.send_next(what::delivered);
  BOOST_TEST(!b.ready());
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(objects_that_differ_in_anything_are_different) {
  bench b;
  b.offer("a");
  auto other = event("a");
  other.owner = {"ns", "owner"};
  BOOST_TEST((b.plan.offer(other, b.now) == offered::added));
  auto kind = event("a");
  kind.gvk.kind = "Other";
  BOOST_TEST((b.plan.offer(kind, b.now) == offered::added));
  BOOST_TEST((b.offer("a", "another manager") == offered::added));
  BOOST_TEST(b.plan.size() == 4U);
}

BOOST_AUTO_TEST_CASE(an_object_that_changes_while_its_event_is_in_flight_is_sent_again_after) {
  for (const auto first : {what::delivered, what::rejected}) {
    bench b;
    b.offer("a");
    const auto flight = b.next();
    BOOST_TEST((b.offer("a") == offered::merged));
    BOOST_TEST((b.offer("a") == offered::merged));
    BOOST_TEST(!b.ready());
    b.settle(flight, first);
    BOOST_TEST(b.plan.size() == 1U);
    BOOST_TEST(b.send_next(what::delivered).delivered == 1U);
    BOOST_TEST(b.plan.empty());
    BOOST_TEST(!b.ready());
  }
}

BOOST_AUTO_TEST_CASE(lanes_take_turns) {
  bench b;
  for (const auto* name : {"1", "2", "3"}) {
    for (const auto* manager : {"a", "b", "c"}) b.offer(name, manager);
  }
  std::string order;
  while (b.ready()) {
    const auto load = b.next();
    order += load.manager;
    b.settle(load, what::delivered);
  }
  BOOST_TEST(order == "abcabcabc");
}

BOOST_AUTO_TEST_CASE(a_manager_that_fails_holds_up_no_other) {
  bench b;
  b.draw(100ms);
  for (int i = 0; i < 50; ++i) {
    b.offer("x" + std::to_string(i), "sick");
    b.offer("x" + std::to_string(i), "well");
  }
  std::map<std::string, int> sent;
  while (b.ready()) {
    const auto load = b.next();
    ++sent[load.manager];
    b.settle(load, load.manager == "sick" ? what::retry : what::delivered);
  }
  BOOST_TEST(sent["well"] == 50);
  BOOST_TEST(sent["sick"] == 5);
  BOOST_TEST(b.plan.size() == 50U);
  BOOST_TEST(b.plan.open_circuits() == 1U);
}

BOOST_AUTO_TEST_CASE(an_event_that_failed_waits_for_a_backoff_that_doubles_from_100_ms_to_30_s) {
  schedule_options options;
  options.threshold = 1000;
  bench b(options);
  b.offer("a");
  for (const core::duration pause :
       {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 12800ms, 25600ms, 30000ms, 30000ms}) {
    b.draw(pause);
    const auto result = b.send_next(what::retry);
    BOOST_TEST(result.retried == 1U);
    BOOST_TEST(b.plan.delayed() == 1U);
    BOOST_TEST((b.plan.next_time(b.now) == b.now + pause));
    b.now += pause - 1ms;
    BOOST_TEST(!b.ready());
    b.now += 1ms;
    BOOST_TEST(b.ready());
  }
  b.send_next(what::delivered);
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(the_backoff_has_full_jitter) {
  bench b;
  b.offer("a");
  b.draw(30ms);
  b.send_next(what::retry);
  BOOST_TEST((b.plan.next_time(b.now) == b.now + 30ms));
}

BOOST_AUTO_TEST_CASE(retry_after_is_honoured) {
  bench b;
  b.offer("a");
  b.send_next(what::retry, 7s);
  BOOST_TEST((b.plan.next_time(b.now) == b.now + 7s));
  b.now += 7s - 1ms;
  BOOST_TEST(!b.ready());
  b.now += 1ms;
  BOOST_TEST(b.ready());
}

BOOST_AUTO_TEST_CASE(a_change_during_the_backoff_waits_with_it_and_begins_anew) {
  schedule_options options;
  options.max_age = 1min;
  bench b(options);
  b.draw(100ms);
  b.offer("a");
  b.send_next(what::retry);
  b.now += 50ms;
  BOOST_TEST((b.offer("a") == offered::merged));
  BOOST_TEST(!b.ready());
  b.now += 50ms;
  const auto load = b.next();
  BOOST_TEST(load.events.front().attempts == 0U);
  b.settle(load, what::delivered);
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(an_event_is_given_up_when_its_latest_change_is_older_than_the_limit) {
  schedule_options options;
  options.max_age = 10s;
  options.threshold = 1000;
  bench b(options);
  b.offer("a");
  b.now += 8s;
  b.offer("a");
  b.now += 8s;
  BOOST_TEST(b.send_next(what::retry).retried == 1U);  // its latest change is 8 s old
  b.now += 3s;
  const auto result = b.send_next(what::retry);
  BOOST_TEST(result.expired == 1U);
  BOOST_TEST(result.retried == 0U);
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(an_old_event_that_is_taken_after_all_is_delivered) {
  schedule_options options;
  options.max_age = 10s;
  bench b(options);
  b.offer("a");
  b.now += 1h;
  BOOST_TEST(b.send_next(what::delivered).delivered == 1U);
}

BOOST_AUTO_TEST_CASE(an_event_that_changed_in_flight_does_not_expire_with_its_old_change) {
  schedule_options options;
  options.max_age = 10s;
  bench b(options);
  b.offer("a");
  const auto flight = b.next();
  b.now += 11s;
  b.offer("a");
  BOOST_TEST(b.settle(flight, what::retry).expired == 1U);
  BOOST_TEST(b.plan.size() == 1U);
  BOOST_TEST(b.send_next(what::delivered).delivered == 1U);
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(five_failures_in_a_row_open_the_circuit_and_one_event_probes_it) {
  bench b;
  b.draw(3s);
  b.plan.set_batch("m", 100, b.now);
  for (int i = 0; i < 5; ++i) {
    BOOST_TEST(b.plan.open_circuits() == 0U);
    b.offer("x" + std::to_string(i));
    b.send_next(what::retry);
  }
  BOOST_TEST(b.plan.open_circuits() == 1U);
  for (int i = 0; i < 20; ++i) b.offer("new" + std::to_string(i));
  b.draw(0ms);
  BOOST_TEST(!b.ready());
  const auto when = b.plan.next_time(b.now);
  BOOST_TEST((when <= b.now + 3s));
  b.now = when;
  const auto probe = b.next();
  BOOST_TEST(probe.events.size() == 1U);
  BOOST_TEST(!b.ready());  // one probe at a time
  b.settle(probe, what::retry);
}

BOOST_AUTO_TEST_CASE(a_probe_that_is_taken_releases_all_that_waits_for_its_backoff) {
  bench b;
  b.draw(30s);
  for (int i = 0; i < 5; ++i) b.offer("x" + std::to_string(i));
  for (int i = 0; i < 5; ++i) b.send_next(what::retry, 200s);
  BOOST_TEST(b.plan.delayed() == 5U);
  BOOST_TEST(!b.ready());
  b.now += 200s;
  const auto probe = b.next();
  b.settle(probe, what::retry, 250s);
  b.offer("other");
  b.now += 250s;
  const auto second = b.next();
  BOOST_TEST(second.events.size() == 1U);
  BOOST_TEST(b.settle(second, what::delivered).delivered == 1U);
  BOOST_TEST(b.plan.open_circuits() == 0U);
  BOOST_TEST(b.plan.delayed() == 0U);
  int rest = 0;
  for (; b.ready(); ++rest) b.send_next(what::delivered);
  BOOST_TEST(rest == 5);
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(a_rejection_shows_that_the_receiver_is_there) {
  bench b;
  for (int i = 0; i < 20; ++i) {
    b.offer("x" + std::to_string(i));
    b.offer("y" + std::to_string(i));
    b.send_next(what::rejected);
    b.send_next(what::rejected);
  }
  BOOST_TEST(b.plan.open_circuits() == 0U);
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(batches_are_sent_only_after_an_offer_and_are_as_large_as_offered) {
  bench b;
  for (int i = 0; i < 10; ++i) b.offer("x" + std::to_string(i));
  const auto first = b.next();
  BOOST_TEST(first.events.size() == 1U);
  b.settle(first, what::delivered);
  b.plan.set_batch("m", 4, b.now);
  const auto batch = b.next();
  BOOST_TEST(batch.as_batch);
  BOOST_TEST(names(batch) == (strings{"x1", "x2", "x3", "x4"}));
  b.settle(batch, what::delivered);
  b.plan.set_batch("m", 0, b.now);
  const auto single = b.next();
  BOOST_TEST(!single.as_batch);
}

BOOST_AUTO_TEST_CASE(an_offer_is_for_one_manager) {
  bench b;
  b.plan.set_batch("a", 10, b.now);
  for (const auto* name : {"1", "2"}) {
    b.offer(name, "a");
    b.offer(name, "b");
  }
  const auto first = b.next();
  const auto second = b.next();
  BOOST_TEST(first.manager == "a");
  BOOST_TEST(first.events.size() == 2U);
  BOOST_TEST(second.manager == "b");
  BOOST_TEST(second.events.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_single_event_is_no_batch_and_batches_are_limited_in_number) {
  bench b;
  b.plan.set_batch("m", 2, b.now);
  b.offer("alone");
  BOOST_TEST(!b.next().as_batch);
  for (int i = 0; i < 10; ++i) b.offer("x" + std::to_string(i));
  const auto second = b.next();
  BOOST_TEST(second.as_batch);
  BOOST_TEST(!b.ready());  // two requests are under way
  b.settle(second, what::delivered);
  BOOST_TEST(b.ready());
}

BOOST_AUTO_TEST_CASE(of_a_batch_each_event_has_its_own_outcome) {
  bench b;
  b.draw(100ms);
  b.plan.set_batch("m", 10, b.now);
  for (const auto* name : {"taken", "busy", "bad"}) b.offer(name);
  const auto batch = b.next();
  BOOST_REQUIRE(batch.events.size() == 3U);
  const auto result =
      b.plan.settle(batch, {{what::delivered, {}}, {what::retry, 2s}, {what::rejected, {}}}, b.now);
  BOOST_TEST(result.delivered == 1U);
  BOOST_TEST(result.retried == 1U);
  BOOST_TEST(result.rejected == 1U);
  BOOST_TEST(b.plan.open_circuits() == 0U);
  BOOST_TEST(b.plan.size() == 1U);
  BOOST_TEST((b.plan.next_time(b.now) == b.now + 2s));
  b.now += 2s;
  BOOST_TEST(names(b.next()) == strings{"busy"});
}

BOOST_AUTO_TEST_CASE(a_refused_batch_is_sent_one_by_one_and_counts_no_attempt) {
  bench b;
  b.plan.set_batch("m", 10, b.now);
  for (int i = 0; i < 5; ++i) b.offer("x" + std::to_string(i));
  const auto batch = b.next();
  BOOST_TEST(batch.as_batch);
  b.plan.split(batch, b.now);
  BOOST_TEST(b.plan.size() == 5U);
  for (int i = 0; i < 5; ++i) {
    const auto single = b.next();
    BOOST_TEST(names(single) == strings{"x" + std::to_string(i)});
    BOOST_TEST(single.events.front().attempts == 0U);
    b.plan.set_batch("m", 10, b.now);  // the answer to a single one offers batches again
    b.settle(single, what::delivered);
  }
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(a_receiver_that_offers_batches_and_refuses_them_cannot_starve_an_event) {
  bench b;
  b.plan.set_batch("m", 4, b.now);
  for (const auto* name : {"a", "b", "c", "d"}) b.offer(name);
  std::map<std::string, int> delivered;
  int refused = 0;
  int fresh = 0;
  for (int round = 0; round < 400; ++round) {
    b.now += 100ms;
    b.offer("fresh" + std::to_string(fresh++));
    const auto load = b.next();
    if (load.as_batch) {
      ++refused;
      b.plan.split(load, b.now);
    } else {
      for (const auto& name : names(load)) ++delivered[name];
      b.settle(load, what::delivered);
      b.plan.set_batch("m", 4, b.now);
    }
  }
  for (const auto* name : {"a", "b", "c", "d"}) BOOST_TEST(delivered[name] == 1);
  BOOST_TEST(refused <= 3);  // after 10 s, and then after 20 s, in 40 s
}

BOOST_AUTO_TEST_CASE(offers_are_believed_again_after_a_while) {
  schedule_options options;
  options.batch_pause = 10s;
  bench b(options);
  b.plan.set_batch("m", 4, b.now);
  for (const auto* name : {"a", "b", "c", "d"}) b.offer(name);
  b.plan.split(b.next(), b.now);
  b.now += 10s;
  b.plan.set_batch("m", 4, b.now);
  const auto batch = b.next();
  BOOST_TEST(batch.events.size() == 4U);
  b.settle(batch, what::delivered);
}

BOOST_AUTO_TEST_CASE(a_full_schedule_refuses_only_what_it_does_not_know) {
  schedule_options options;
  options.capacity = 2;
  bench b(options);
  b.offer("a");
  b.offer("b", "other");
  BOOST_TEST(b.plan.full());
  auto unknown = event("c");
  BOOST_TEST((b.plan.offer(unknown, b.now) == offered::full));
  BOOST_TEST(unknown.watched.name == "c");  // left alone
  auto stranger = event("a", "third");
  BOOST_TEST((b.plan.offer(stranger, b.now) == offered::full));
  BOOST_TEST((b.offer("a") == offered::merged));
  const auto flight = b.next();
  BOOST_TEST((b.offer("a") == offered::merged));
  BOOST_TEST((b.plan.offer(unknown, b.now) == offered::full));  // in flight counts
  const auto second = b.next();
  BOOST_TEST(second.manager == "other");
  b.settle(second, what::delivered);
  BOOST_TEST((b.plan.offer(unknown, b.now) == offered::added));
  b.settle(flight, what::delivered);  // but it is dirty
  BOOST_TEST(b.plan.full());
}

BOOST_AUTO_TEST_CASE(
    what_found_no_receiver_is_put_back_without_an_attempt_or_a_failure_of_its_lane) {
  bench b;
  b.offer("a");
  for (int i = 0; i < 20; ++i) {
    const auto load = b.next();
    BOOST_TEST(load.events.front().attempts == 0U);
    BOOST_TEST(b.plan.put_back(load, b.now).retried == 1U);
  }
  BOOST_TEST(b.plan.open_circuits() == 0U);
  BOOST_TEST(b.plan.delayed() == 0U);
  b.send_next(what::delivered);
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(what_is_put_back_too_late_has_expired) {
  schedule_options options;
  options.max_age = 10s;
  bench b(options);
  b.offer("a");
  const auto load = b.next();
  b.now += 11s;
  BOOST_TEST(b.plan.put_back(load, b.now).expired == 1U);
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(with_the_way_to_kcp_broken_nothing_is_ready_but_a_probe) {
  bench b;
  b.draw(100ms);
  b.plan.set_batch("m", 10, b.now);
  for (int i = 0; i < 5; ++i) b.offer("x" + std::to_string(i));
  const auto ticket = b.plan.upstream.enter();
  b.plan.upstream.fail(ticket, b.now);
  BOOST_TEST(!b.ready());
  BOOST_TEST((b.plan.next_time(b.now) == b.now + 100ms));
  b.now += 100ms;
  BOOST_TEST(b.ready());
  b.plan.upstream.enter();
  BOOST_TEST(!b.ready());
  BOOST_TEST((b.plan.next_time(b.now) == core::time_point::max()));
  shipment probe;
  BOOST_TEST(b.plan.next(b.now, probe));
  BOOST_TEST(probe.events.size() == 1U);
  BOOST_TEST(b.plan.upstream.succeed());
  b.settle(probe, what::delivered);
  BOOST_TEST(b.next().events.size() == 4U);
}

BOOST_AUTO_TEST_CASE(a_long_backoff_of_one_event_does_not_put_off_the_probe_for_the_others) {
  bench b;
  b.draw(100ms);
  b.offer("later");
  b.send_next(what::retry, 300s);
  b.offer("now");
  b.plan.upstream.fail(b.plan.upstream.enter(), b.now);
  BOOST_TEST((b.plan.next_time(b.now) == b.now + 100ms));
}

BOOST_AUTO_TEST_CASE(the_time_to_ask_again_lies_ahead_while_others_are_busy) {
  bench b;
  b.draw(100ms);
  for (int i = 0; i < 5; ++i) b.offer("x" + std::to_string(i));
  for (int i = 0; i < 5; ++i) b.send_next(what::retry);
  b.offer("y");
  b.now = b.plan.next_time(b.now);
  BOOST_TEST(b.ready());
  // Ready already, so time has nothing more to add: whoever is free next sends it.
  BOOST_TEST((b.plan.next_time(b.now) > b.now));
  b.now += 1h;
  BOOST_TEST(b.ready());
  BOOST_TEST((b.plan.next_time(b.now) > b.now));
}

BOOST_AUTO_TEST_CASE(what_is_too_old_is_given_up_although_nothing_can_be_sent) {
  schedule_options options;
  options.max_age = 10s;
  bench b(options);
  b.offer("old");
  b.offer("changed");
  b.offer("old", "other");
  b.now += 8s;
  b.offer("changed");
  b.offer("new");
  b.now += 3s;
  BOOST_TEST(b.plan.expire(b.now).expired == 2U);
  BOOST_TEST(b.plan.size() == 2U);
  BOOST_TEST(b.plan.expire(b.now).expired == 0U);
  std::set<std::string> left;
  while (b.ready()) {
    const auto load = b.next();
    BOOST_TEST(load.events.front().attempts == 0U);
    left.insert(names(load).front());
    b.settle(load, what::delivered);
  }
  BOOST_TEST((left == std::set<std::string>{"changed", "new"}));
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(a_manager_among_others_has_no_more_than_its_share_under_way) {
  bench b;
  b.plan.set_share(2);
  for (int i = 0; i < 10; ++i) b.offer("x" + std::to_string(i), "hangs");
  b.offer("x", "other");
  std::map<std::string, std::vector<shipment>> under_way;
  while (b.ready()) {
    auto load = b.next();
    under_way[load.manager].push_back(std::move(load));
  }
  BOOST_TEST(under_way["hangs"].size() == 2U);
  BOOST_TEST(under_way["other"].size() == 1U);
  b.settle(under_way["hangs"].front(), what::delivered);
  BOOST_TEST(b.next().manager == "hangs");
}

BOOST_AUTO_TEST_CASE(managers_beyond_the_limit_are_refused_until_others_have_nothing_left) {
  schedule_options options;
  options.managers = 3;
  options.max_age = 10s;
  bench b(options);
  for (const auto* manager : {"a", "b", "c"}) BOOST_TEST((b.offer("x", manager) == offered::added));
  BOOST_TEST((b.offer("x", "d") == offered::refused));
  BOOST_TEST((b.offer("y", "a") == offered::added));
  BOOST_TEST(b.plan.size() == 4U);
  const auto flight = b.next();
  b.now += 11s;
  b.plan.expire(b.now);
  BOOST_TEST(b.plan.size() == 1U);
  BOOST_TEST((b.offer("x", "d") == offered::added));
  BOOST_TEST((b.offer("x", "e") == offered::added));
  BOOST_TEST((b.offer("x", "f") == offered::refused));  // one is in flight
  b.settle(flight, what::delivered);
  BOOST_TEST((b.offer("x", "f") == offered::added));
}

BOOST_AUTO_TEST_CASE(any_number_of_managers_may_come_one_after_the_other) {
  bench b;
  for (int i = 0; i < 1000; ++i) {
    BOOST_TEST((b.offer("x", "manager-" + std::to_string(i)) == offered::added));
    b.send_next(what::delivered);
  }
  BOOST_TEST(b.plan.empty());
}

namespace {

/// Drives a schedule at random, and remembers which keys have a change that was not delivered
/// since.
class model {
 public:
  explicit model(std::uint32_t seed)
      : random_(seed),
        plan_(options(), [this] { return (std::uint64_t{random_()} << 32) | random_(); }) {}

  void run() {
    for (int i = 0; i < 3000; ++i) step();
    finish();
  }

 private:
  static schedule_options options() {
    schedule_options o;
    o.capacity = 40;
    o.max_age = 1000h;  // nothing is given up
    return o;
  }

  using key = std::pair<std::string, std::string>;

  struct flight {
    shipment load;
    std::map<key, int> changes;  ///< the latest change of each key when it was sent
  };

  static key key_of(const rw::watch_event& e) { return {e.manager, e.watched.name}; }

  void step() {
    now_ += std::chrono::milliseconds(random_() % 50);
    switch (random_() % 4) {
      case 0:
      case 1:
        offer();
        break;
      case 2:
        send();
        break;
      default:
        land(random_() % 8);
        break;
    }
    check();
  }

  void offer() {
    auto one = event("x" + std::to_string(random_() % 30), "m" + std::to_string(random_() % 3));
    const auto k = key_of(one);
    const auto result = plan_.offer(one, now_);
    const bool known = pending_.contains(k);
    if (result == offered::full) BOOST_TEST(!known);
    if (result == offered::merged) BOOST_TEST(known);
    if (result == offered::added) BOOST_TEST(!known);
    if (result != offered::full) pending_[k] = ++changes_;
  }

  bool send() {
    if (!plan_.ready(now_)) return false;
    flight one;
    BOOST_REQUIRE(plan_.next(now_, one.load));
    for (const auto& e : one.load.events) {
      const auto k = key_of(*e.key);
      BOOST_TEST(k.first == one.load.manager);
      BOOST_TEST(pending_.contains(k));         // nothing is made up
      BOOST_TEST(in_flight_.insert(k).second);  // nothing is in flight twice
      one.changes[k] = pending_[k];
    }
    flights_.push_back(std::move(one));
    return true;
  }

  void land(std::uint32_t how) {
    if (flights_.empty()) return;
    const auto at = flights_.begin() + static_cast<std::ptrdiff_t>(random_() % flights_.size());
    const auto one = std::move(*at);
    flights_.erase(at);
    for (const auto& [k, change] : one.changes) in_flight_.erase(k);
    if (how == 0) {
      plan_.put_back(one.load, now_);
    } else if (how == 1 && one.load.as_batch) {
      plan_.split(one.load, now_);
    } else {
      std::vector<outcome> outcomes;
      for (const auto& e : one.load.events) {
        const bool good = how > 4 || (how > 2 && random_() % 2 == 0);
        outcomes.push_back({good ? what::delivered : what::retry, 0s});
        const auto k = key_of(*e.key);
        // What was delivered is the state at the time of sending: a later change is still due.
        if (good && pending_[k] == one.changes.at(k)) pending_.erase(k);
      }
      plan_.set_batch(one.load.manager, random_() % 6, now_);
      plan_.settle(one.load, outcomes, now_);
    }
  }

  void check() {
    BOOST_TEST(plan_.size() == pending_.size());
    BOOST_TEST(plan_.size() <= 40U);
    BOOST_TEST((plan_.next_time(now_) > now_));
  }

  void finish() {
    while (!flights_.empty()) land(7);
    for (int i = 0; i < 10000 && !plan_.empty(); ++i) {
      while (send()) land(7);
      check();
      const auto next = plan_.next_time(now_);
      if (plan_.empty()) break;
      BOOST_REQUIRE((next != core::time_point::max()));  // something will be done, in time
      now_ = next;
    }
    BOOST_TEST(plan_.empty());
    BOOST_TEST(pending_.empty());  // every key was delivered after its last change
    BOOST_TEST(plan_.delayed() == 0U);
  }

  std::mt19937 random_;
  rw::dispatch::schedule plan_;
  core::time_point now_{1h};
  std::map<key, int> pending_;  ///< changes that no delivery covers, each by its number
  std::set<key> in_flight_;
  std::vector<flight> flights_;
  int changes_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(whatever_happens_no_event_is_lost_or_in_flight_twice) {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      model(seed).run();
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
