#include "rw/reactors/events/schedule.hpp"

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
using rw::dispatch::batch_response;
using rw::dispatch::batch_result;
using rw::dispatch::delivery_failure;
using rw::dispatch::loss;
using rw::dispatch::schedule_options;

namespace {

using batch = std::unique_ptr<rw::dispatch::schedule::batch>;
using strings = std::vector<std::string>;

rw::watch_event event(const std::string& name, const std::string& manager = "m") {
  return {.manager = manager, .gvk = {"g", "v1", "Kind"}, .watched = {"ns", name}};
}

strings names(const batch& of) {
  strings all;
  for (const auto& one : of->events) all.push_back(one.key().watched.name);
  return all;
}

/// A schedule whose random source draws what `drawn` says, and time that stands still.
struct bench {
  explicit bench(schedule_options options = {})
      : plan(
            options, [this] { return drawn; },
            [this](loss what, const rw::watch_event& one) {
              ++losses[what];
              lost.push_back(one.manager + "/" + one.watched.name);
            },
            objects) {}

  /// True if it became one with a known event.
  bool offer(const std::string& name, const std::string& manager = "m") {
    return plan.offer(event(name, manager), now);
  }
  void offer_many(int count, const std::string& manager = "m", const std::string& prefix = "x") {
    for (int i = 0; i < count; ++i) offer(prefix + std::to_string(i), manager);
  }

  /// True if there is something to send; `next` gives it.
  bool ready() {
    if (held) return true;
    auto decided = plan.poll(now);
    held = std::move(decided.send);
    until = decided.until;
    return held != nullptr;
  }
  batch next() {
    BOOST_REQUIRE(ready());
    return std::move(held);
  }

  /// When there will be something to do.
  core::time_point next_time() {
    BOOST_TEST(!ready());
    return until;
  }

  batch_result reply(batch load, unsigned status, std::chrono::seconds retry_after = 0s,
                     std::size_t offer = 1) {
    return plan.on_response(std::move(load), {status, retry_after, offer}, now);
  }
  batch_result send_next(unsigned status, std::chrono::seconds retry_after = 0s,
                         std::size_t offer = 1) {
    return reply(next(), status, retry_after, offer);
  }
  bool fail(batch load, delivery_failure cause) { return plan.failed(std::move(load), cause, now); }
  bool fail_next(delivery_failure cause) { return fail(next(), cause); }

  /// Lets the receiver of `manager` offer batches.
  void take_batches(std::size_t events, const std::string& manager = "m") {
    offer("offers", manager);
    send_next(200, 0s, events);
  }

  /// Sends all that is ready to managers whose requests hang; says to whom.
  std::map<std::string, std::size_t> hang() {
    std::map<std::string, std::size_t> requests;
    while (ready()) {
      hanging.push_back(next());
      ++requests[*hanging.back()->manager];
    }
    return requests;
  }

  std::size_t open_circuits() const {
    std::size_t open = plan.upstream_open() ? 1 : 0;
    plan.report([&](const auto& destination) { open += destination.open ? 1 : 0; });
    return open;
  }
  /// The object of the event that is refused while others are accepted, and the status.
  std::string refused() const {
    std::string out;
    plan.report([&](const auto& destination) {
      if (destination.refused == nullptr) return;
      out = destination.refused->event.watched.name + " " +
            std::to_string(destination.refused->status);
    });
    return out;
  }
  std::size_t delayed() const {
    std::size_t all = 0;
    plan.report([&](const auto& destination) { all += destination.delayed; });
    return all;
  }
  std::size_t events_of(const std::string& manager) const {
    std::size_t all = 0;
    plan.report([&](const auto& destination) {
      all += destination.manager == manager ? destination.events : 0;
    });
    return all;
  }

  /// Draws the longest pause there can be up to `ceiling`.
  void draw(core::duration ceiling) { drawn = static_cast<std::uint64_t>(ceiling.count()); }

  std::uint64_t drawn = 0;
  core::time_point now{1h};
  core::time_point until;
  std::map<loss, int> losses;
  strings lost;
  rw::dispatch::delivery objects{{}};
  rw::dispatch::schedule plan;
  batch held;
  std::vector<batch> hanging;
};

}  // namespace

BOOST_AUTO_TEST_CASE(empty_schedule_sends_nothing_and_waits_for_nothing) {
  bench b;
  BOOST_TEST(b.plan.empty());
  BOOST_TEST((b.next_time() == core::time_point::max()));
}

BOOST_AUTO_TEST_CASE(schedule_sends_events_one_by_one_in_the_order_they_came) {
  bench b;
  for (const auto* name : {"a", "b", "c"}) BOOST_TEST(!b.offer(name));
  for (const auto* name : {"a", "b", "c"}) {
    auto load = b.next();
    BOOST_TEST(names(load) == strings{name});
    BOOST_TEST(!load->as_batch);
    BOOST_TEST(*load->manager == "m");
    BOOST_TEST(b.reply(std::move(load), 200).delivered == 1U);
  }
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(schedule_merges_changes_of_an_object_that_waits) {
  bench b;
  BOOST_TEST(!b.offer("a"));
  BOOST_TEST(b.offer("a"));
  BOOST_TEST(b.plan.size() == 1U);
  b.send_next(200);
  BOOST_TEST(!b.ready());
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(schedule_keeps_objects_apart_that_differ_in_anything) {
  bench b;
  b.offer("a");
  auto kind = event("a");
  kind.gvk.kind = "Other";
  BOOST_TEST(!b.plan.offer(std::move(kind), b.now));
  BOOST_TEST(!b.offer("a", "another manager"));
  BOOST_TEST(b.plan.size() == 3U);
}

BOOST_AUTO_TEST_CASE(schedule_sends_object_again_when_it_changed_in_flight) {
  for (const unsigned first : {200U, 400U}) {
    bench b;
    b.offer("a");
    auto flight = b.next();
    BOOST_TEST(b.offer("a"));
    BOOST_TEST(b.offer("a"));
    BOOST_TEST(!b.ready());
    b.reply(std::move(flight), first);
    BOOST_TEST(b.plan.size() == 1U);
    BOOST_TEST(b.send_next(200).delivered == 1U);
    BOOST_TEST(b.plan.empty());
    BOOST_TEST(!b.ready());
  }
}

BOOST_AUTO_TEST_CASE(schedule_serves_managers_in_turn) {
  bench b;
  for (const auto* name : {"1", "2", "3"}) {
    for (const auto* manager : {"a", "b", "c"}) b.offer(name, manager);
  }
  std::string order;
  while (b.ready()) {
    auto load = b.next();
    order += *load->manager;
    b.reply(std::move(load), 200);
  }
  BOOST_TEST(order == "abcabcabc");
}

BOOST_AUTO_TEST_CASE(schedule_sends_to_healthy_manager_while_another_fails) {
  bench b;
  b.draw(100ms);
  b.offer_many(50, "sick");
  b.offer_many(50, "well");
  std::map<std::string, int> sent;
  while (b.ready()) {
    auto load = b.next();
    const bool sick = *load->manager == "sick";
    ++sent[*load->manager];
    b.reply(std::move(load), sick ? 503 : 200);
  }
  BOOST_TEST(sent["well"] == 50);
  BOOST_TEST(sent["sick"] == 5);
  BOOST_TEST(b.plan.size() == 50U);
  BOOST_TEST(b.open_circuits() == 1U);
}

// --- time after a failure -----------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(failed_event_waits_for_backoff_that_doubles_from_100_ms_to_30_s) {
  schedule_options options;
  options.threshold = 1000;
  bench b(options);
  b.offer("a");
  for (const core::duration pause :
       {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 12800ms, 25600ms, 30000ms, 30000ms}) {
    b.draw(pause);
    const auto result = b.send_next(503);
    BOOST_TEST(result.retried == 1U);
    BOOST_TEST(b.delayed() == 1U);
    BOOST_TEST((b.next_time() == b.now + pause));
    b.now += pause - 1ms;
    BOOST_TEST(!b.ready());
    b.now += 1ms;
    BOOST_TEST(b.ready());
  }
  b.send_next(200);
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(backoff_has_full_jitter) {
  bench b;
  b.offer("a");
  b.draw(30ms);
  b.send_next(503);
  BOOST_TEST((b.next_time() == b.now + 30ms));
}

BOOST_AUTO_TEST_CASE(retry_after_holds_back_the_event_and_its_manager) {
  bench b;
  b.offer("a");
  b.send_next(503, 7s);
  b.offer("fresh");
  b.offer("elsewhere", "other");
  BOOST_TEST(*b.next()->manager == "other");
  BOOST_TEST((b.next_time() == b.now + 7s));
  b.now += 7s - 1ms;
  BOOST_TEST(!b.ready());
  b.now += 1ms;
  BOOST_TEST(b.ready());
}

BOOST_AUTO_TEST_CASE(retry_after_outlasts_the_pause_of_an_open_breaker) {
  bench b;
  b.draw(3s);
  for (int i = 0; i < 5; ++i) {
    b.offer("x" + std::to_string(i));
    b.send_next(429, i == 4 ? 60s : 0s);
  }
  BOOST_TEST(b.open_circuits() == 1U);
  b.offer("fresh");
  b.now += 60s - 1ms;
  BOOST_TEST(!b.ready());
  b.now += 1ms;
  BOOST_TEST(b.ready());
}

BOOST_AUTO_TEST_CASE(retry_after_of_a_batch_that_was_accepted_in_part_holds_back_its_rest_only) {
  bench b;
  b.take_batches(10);
  b.offer("taken");
  b.offer("busy");
  b.plan.on_response(b.next(), {.status = 207, .retry_after = 7s, .statuses = {200, 503}}, b.now);
  b.offer("fresh");
  BOOST_TEST(names(b.next()) == strings{"fresh"});
  BOOST_TEST((b.next_time() == b.now + 7s));
}

BOOST_AUTO_TEST_CASE(change_during_backoff_waits_with_it_and_begins_again) {
  bench b;
  b.draw(100ms);
  b.offer("a");
  b.send_next(503);
  b.now += 50ms;
  BOOST_TEST(b.offer("a"));
  BOOST_TEST(!b.ready());
  b.now += 50ms;
  auto load = b.next();
  BOOST_TEST(load->events.front().attempts() == 0U);
  b.reply(std::move(load), 200);
  BOOST_TEST(b.plan.empty());
}

// --- circuit breakers ---------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(five_failures_in_a_row_open_the_breaker_and_one_event_probes_it) {
  bench b;
  b.take_batches(100);
  b.draw(3s);
  for (int i = 0; i < 5; ++i) {
    BOOST_TEST(b.open_circuits() == 0U);
    b.offer("x" + std::to_string(i));
    b.send_next(503);
  }
  BOOST_TEST(b.open_circuits() == 1U);
  b.offer_many(20, "m", "new");
  BOOST_TEST(!b.ready());
  const auto when = b.next_time();
  BOOST_TEST((when <= b.now + 3s));
  b.now = when;
  auto probe = b.next();
  BOOST_TEST(probe->events.size() == 1U);
  BOOST_TEST(!b.ready());  // one probe at a time
  b.reply(std::move(probe), 503);
}

BOOST_AUTO_TEST_CASE(accepted_probe_releases_all_that_waits_for_its_backoff) {
  schedule_options options;
  options.threshold = 1;
  options.retry_base = options.retry_limit = 30s;
  bench b(options);
  b.take_batches(5);
  b.offer_many(5);
  b.draw(24s);
  b.send_next(503);
  BOOST_TEST(b.delayed() == 5U);
  b.offer("other");
  b.now += 3s;  // the breaker's longest pause
  auto probe = b.next();
  BOOST_TEST(names(probe) == strings{"other"});
  BOOST_TEST(b.reply(std::move(probe), 200, 0s, 5).delivered == 1U);
  BOOST_TEST(b.open_circuits() == 0U);
  BOOST_TEST(b.delayed() == 0U);
  BOOST_TEST(b.send_next(200).delivered == 5U);
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(rejected_event_is_sent_again_until_it_is_accepted) {
  for (const unsigned status : {400U, 405U, 413U, 421U, 426U, 431U, 451U, 495U}) {
    bench b;
    b.draw(100ms);
    b.offer("x");
    for (int i = 0; i < 3; ++i) {
      BOOST_TEST(b.send_next(status).rejected == 1U);
      BOOST_TEST(b.plan.size() == 1U);
      b.now += 30s;
    }
    BOOST_TEST(b.send_next(200).delivered == 1U);
    BOOST_TEST(b.plan.empty());
    BOOST_TEST(b.lost.empty());
  }
}

BOOST_AUTO_TEST_CASE(rejected_events_do_not_open_the_breaker_while_others_are_accepted) {
  bench b;
  b.draw(30s);
  for (int i = 0; i < 20; ++i) {
    b.offer("bad" + std::to_string(i));
    BOOST_TEST(b.send_next(400).rejected == 1U);
    b.offer("good" + std::to_string(i));
    BOOST_TEST(b.send_next(200).delivered == 1U);
  }
  BOOST_TEST(b.open_circuits() == 0U);
  BOOST_TEST(b.plan.size() == 20U);
}

BOOST_AUTO_TEST_CASE(single_rejected_event_never_opens_the_breaker) {
  bench b;
  b.draw(100ms);
  b.offer("bad");
  for (int i = 0; i < 20; ++i) {
    b.send_next(400);
    b.now += 30s;
  }
  BOOST_TEST(b.open_circuits() == 0U);
}

BOOST_AUTO_TEST_CASE(refused_event_is_reported_while_others_are_accepted) {
  for (const unsigned status : {422U, 403U, 503U}) {
    bench b;
    b.draw(30s);
    b.offer("bad");
    b.send_next(status);
    BOOST_TEST(b.refused() == "", "maybe no event is accepted");
    b.offer("good");
    b.send_next(200);
    BOOST_TEST(b.refused() == "bad " + std::to_string(status));
    b.offer("worse");
    b.send_next(400);
    BOOST_TEST(b.refused() == "bad " + std::to_string(status), "the first of two");
    b.now += 30s;
    b.send_next(451);
    BOOST_TEST(b.refused() == "bad 451");
    b.now += 30s;
    b.send_next(400);  // "worse"
    b.send_next(200);
    BOOST_TEST(b.refused() == "");
    b.now += 30s;
    b.send_next(400);
    b.offer("good");
    b.send_next(200);
    BOOST_TEST(b.refused() == "worse 400");
  }
}

BOOST_AUTO_TEST_CASE(refused_event_of_a_batch_is_reported_whatever_its_place) {
  for (const std::size_t bad : {0U, 1U}) {
    bench b;
    b.take_batches(2);
    b.offer_many(2);
    std::vector<unsigned> statuses{200, 200};
    statuses[bad] = 422;
    b.plan.on_response(b.next(), {.status = 207, .statuses = statuses}, b.now);
    BOOST_TEST(b.refused() == "x" + std::to_string(bad) + " 422");
  }
}

BOOST_AUTO_TEST_CASE(no_event_is_reported_as_refused_while_the_breaker_is_open) {
  bench b;
  b.draw(30s);
  b.offer("bad");
  b.send_next(422);
  b.offer("good");
  b.send_next(200);
  b.offer_many(5);
  for (int i = 0; i < 5; ++i) b.send_next(503);
  BOOST_TEST(b.open_circuits() == 1U);
  BOOST_TEST(b.refused() == "");
}

BOOST_AUTO_TEST_CASE(rejection_of_every_event_leaves_probes_and_the_first_success_releases_all) {
  bench b;
  b.draw(3s);
  b.offer_many(1000);
  for (int i = 0; i < 5; ++i) b.send_next(400);
  BOOST_TEST(b.open_circuits() == 1U);
  BOOST_TEST(!b.ready());
  b.now += 3s;
  auto probe = b.next();
  BOOST_TEST(!b.ready());
  b.reply(std::move(probe), 200);
  BOOST_TEST(b.delayed() == 0U);
  BOOST_TEST(b.plan.size() == 999U);
  while (!b.plan.empty()) b.send_next(200);
  BOOST_TEST(b.lost.empty());
}

BOOST_AUTO_TEST_CASE(schedule_sends_only_a_probe_while_no_connection_can_be_opened) {
  bench b;
  b.take_batches(10);
  b.offer_many(5);
  b.draw(100ms);
  b.fail_next(delivery_failure::connect);
  BOOST_TEST((b.next_time() == b.now + 100ms));
  b.offer("x", "other");
  BOOST_TEST((b.next_time() == b.now + 100ms));
  b.now += 100ms;
  auto probe = b.next();
  BOOST_TEST(probe->events.size() == 1U);
  BOOST_TEST((b.next_time() == core::time_point::max()));
  b.plan.connected(64);
  // The connection is there, whatever its operator says: the others go at once.
  BOOST_TEST(b.hang().size() == 2U);
  b.reply(std::move(probe), 200);
}

BOOST_AUTO_TEST_CASE(failed_connect_counts_once_for_all_requests_that_waited_for_it) {
  bench b;
  b.offer_many(3);
  auto first = b.next();
  auto second = b.next();
  BOOST_TEST(b.fail(std::move(first), delivery_failure::connect));
  BOOST_TEST(!b.fail(std::move(second), delivery_failure::connect));
  BOOST_TEST(b.open_circuits() == 1U);
}

BOOST_AUTO_TEST_CASE(unsent_events_are_sent_again_without_an_attempt_or_a_failure) {
  bench b;
  b.draw(0s);
  b.offer("a");
  for (int i = 0; i < 20; ++i) {
    auto load = b.next();
    BOOST_TEST(load->events.front().attempts() == 0U);
    b.fail(std::move(load), delivery_failure::connect);
  }
  b.plan.connected(64);
  BOOST_TEST(b.open_circuits() == 0U);
  BOOST_TEST(b.delayed() == 0U);
  b.send_next(200);
  BOOST_TEST(b.plan.empty());
}

BOOST_AUTO_TEST_CASE(requests_that_nobody_looked_at_open_no_breaker_and_are_slowed_down) {
  bench b;
  b.offer("a");
  b.fail_next(delivery_failure::unprocessed);
  b.fail_next(delivery_failure::unprocessed);
  b.draw(100ms);
  b.fail_next(delivery_failure::unprocessed);
  BOOST_TEST((b.next_time() == b.now + 100ms));
  BOOST_TEST(b.open_circuits() == 0U);
  for (int i = 0; i < 20; ++i) {
    b.now += 30s;
    b.fail_next(delivery_failure::unprocessed);
  }
  BOOST_TEST(b.open_circuits() == 0U);
}

BOOST_AUTO_TEST_CASE(answer_ends_a_row_of_requests_that_nobody_looked_at) {
  bench b;
  b.draw(100ms);
  for (int i = 0; i < 3; ++i) {
    b.offer("a");
    b.fail_next(delivery_failure::unprocessed);
    b.fail_next(delivery_failure::unprocessed);
    BOOST_TEST(b.delayed() == 0U);
    b.send_next(200);
  }
}

BOOST_AUTO_TEST_CASE(operator_that_closes_every_kept_connection_opens_its_own_breaker) {
  schedule_options options;
  options.threshold = 2;
  bench b(options);
  b.plan.connected(8);
  b.offer("x", "closes");
  for (int i = 0; i < 10; ++i) {
    BOOST_TEST(b.open_circuits() == 0U);
    b.now += 30s;
    b.fail_next(delivery_failure::unprocessed);
  }
  BOOST_TEST(b.open_circuits() == 1U);
  BOOST_TEST(!b.plan.upstream_open());
}

BOOST_AUTO_TEST_CASE(first_broken_connection_costs_no_backoff) {
  bench b;
  b.draw(30s);
  b.offer_many(2);
  auto first = b.next();
  auto second = b.next();
  BOOST_TEST(b.fail(std::move(first), delivery_failure::stream));
  BOOST_TEST(!b.fail(std::move(second), delivery_failure::stream));  // the same connection
  BOOST_TEST(b.delayed() == 0U);
  b.fail_next(delivery_failure::stream);
  BOOST_TEST(b.delayed() == 1U);
}

BOOST_AUTO_TEST_CASE(operator_that_closes_connections_opens_its_own_breaker_only) {
  schedule_options options;
  options.threshold = 2;
  bench b(options);
  b.draw(3s);
  for (int i = 0; i < 10; ++i) {
    b.offer("x" + std::to_string(i), "closes");
    while (b.ready()) b.fail_next(delivery_failure::stream);
    b.offer("x" + std::to_string(i), "well");
    auto load = b.next();
    BOOST_TEST(*load->manager == "well");
    b.reply(std::move(load), 200);
  }
  BOOST_TEST(!b.plan.upstream_open());
}

BOOST_AUTO_TEST_CASE(connections_that_break_under_different_managers_open_the_shared_breaker) {
  bench b;
  b.draw(100ms);
  b.offer("x", "a");
  b.offer("x", "b");
  b.offer("x", "c");
  b.fail_next(delivery_failure::stream);
  BOOST_TEST(!b.plan.upstream_open());
  b.fail_next(delivery_failure::stream);
  BOOST_TEST(b.plan.upstream_open());
  auto healthy = b.next();  // one that has not failed is let through
  BOOST_TEST(*healthy->manager == "c");
  BOOST_TEST(!b.ready());
  b.reply(std::move(healthy), 200);
  BOOST_TEST(!b.plan.upstream_open());
  BOOST_TEST(b.ready());
}

BOOST_AUTO_TEST_CASE(connection_that_breaks_under_several_managers_at_once_is_one_failure) {
  bench b;
  b.offer("x", "a");
  b.offer("x", "b");
  auto first = b.next();
  auto second = b.next();
  b.fail(std::move(first), delivery_failure::stream);
  b.fail(std::move(second), delivery_failure::stream);
  BOOST_TEST(!b.plan.upstream_open());
  BOOST_TEST(b.ready());
}

BOOST_AUTO_TEST_CASE(operators_that_hang_open_no_shared_breaker) {
  bench b;
  b.draw(100ms);
  for (const auto* manager : {"a", "b", "c"}) {
    b.offer("x", manager);
    b.fail_next(delivery_failure::timeout);
  }
  BOOST_TEST(!b.plan.upstream_open());
  BOOST_TEST(b.delayed() == 3U);
}

// --- shares -------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(manager_that_is_alone_has_half_of_the_requests_under_way) {
  bench b;
  b.plan.connected(8);
  b.offer("x", "idle");
  b.send_next(200);
  b.offer_many(20, "hangs");
  BOOST_TEST(b.hang()["hangs"] == 4U);
}

BOOST_AUTO_TEST_CASE(managers_that_hang_leave_slots_for_those_with_nothing_under_way) {
  bench b;
  b.plan.connected(8);
  b.offer_many(20, "a");
  b.offer_many(20, "b");
  const auto first = b.hang();
  BOOST_TEST(first.at("a") + first.at("b") == 6U);
  b.offer_many(20, "c");
  b.offer_many(20, "d");
  const auto second = b.hang();
  BOOST_TEST(second.at("c") == 1U);
  BOOST_TEST(second.at("d") == 1U);
}

BOOST_AUTO_TEST_CASE(manager_that_fails_has_one_request_under_way_and_all_that_fail_have_half) {
  bench b;
  b.plan.connected(8);
  b.draw(100ms);
  for (int i = 0; i < 7; ++i) {
    b.offer("first", "sick" + std::to_string(i));
    b.fail_next(delivery_failure::timeout);
  }
  for (int i = 0; i < 7; ++i) b.offer_many(3, "sick" + std::to_string(i));
  const auto requests = b.hang();
  BOOST_TEST(requests.size() == 4U);
  for (const auto& [manager, count] : requests) BOOST_TEST(count == 1U);
  b.offer_many(20, "well");
  BOOST_TEST(b.hang()["well"] > 1U);
}

BOOST_AUTO_TEST_CASE(known_key_is_always_taken_and_new_one_costs_who_holds_most) {
  schedule_options options;
  options.capacity = 10;
  bench b(options);
  b.offer_many(10, "a");
  BOOST_TEST(!b.offer("one too many", "a"));
  BOOST_TEST(b.lost == strings{"a/one too many"});
  BOOST_TEST(b.offer("x3", "a"));
  b.offer_many(20, "b");
  BOOST_TEST(b.plan.size() == 10U);
  BOOST_TEST(b.events_of("a") == 5U);
  BOOST_TEST(b.events_of("b") == 5U);
  BOOST_TEST(b.losses[loss::overflow] == 21);
}

BOOST_AUTO_TEST_CASE(events_in_flight_and_delayed_count_and_those_in_flight_are_not_shed) {
  schedule_options options;
  options.capacity = 2;
  bench b(options);
  b.draw(100ms);
  b.offer_many(2, "a");
  auto flight = b.next();
  b.offer("delayed", "b");
  b.offer("more", "b");
  BOOST_TEST(b.lost == (strings{"a/x1", "b/more"}));
  b.send_next(503);
  b.offer("x", "c");
  BOOST_TEST(b.lost.back() == "c/x");  // nobody holds more
  b.offer("third", "a");
  BOOST_TEST(b.lost.back() == "a/third");
  b.reply(std::move(flight), 200);
  BOOST_TEST(b.plan.size() == 1U);
}

BOOST_AUTO_TEST_CASE(new_key_costs_managers_that_only_answered_404_first) {
  schedule_options options;
  options.capacity = 20;
  bench b(options);
  b.draw(100ms);
  b.offer("x", "invented");
  b.send_next(404);
  b.offer("y", "real");
  b.send_next(503);
  b.offer_many(18, "real");
  BOOST_TEST(b.plan.size() == 20U);
  b.offer("one more", "real");
  BOOST_TEST(b.lost == strings{"invented/x"});
  b.offer("two more", "real");
  BOOST_TEST(b.lost.back() == "real/two more");
}

BOOST_AUTO_TEST_CASE(managers_that_only_answered_404_make_way_for_another) {
  schedule_options options;
  options.managers = 4;
  bench b(options);
  b.draw(100ms);
  b.offer("x", "real");
  b.send_next(503);
  for (int i = 0; i < 20; ++i) {
    b.offer("x", "invented-" + std::to_string(i));
    b.send_next(404);
  }
  BOOST_TEST(b.losses[loss::overflow] == 17);
  BOOST_TEST(b.events_of("real") == 1U);
  b.offer("x", "late");
  BOOST_TEST(*b.next()->manager == "late");
}

BOOST_AUTO_TEST_CASE(invented_managers_do_not_shut_out_real_ones_while_nobody_answers) {
  schedule_options options;
  options.managers = 4;
  bench b(options);
  b.offer_many(3, "real");
  for (int i = 0; i < 20; ++i) b.offer("x", "invented-" + std::to_string(i));
  b.offer("x", "late");
  BOOST_TEST(b.events_of("real") == 3U);
  BOOST_TEST(b.events_of("late") == 1U);
  BOOST_TEST(b.losses[loss::overflow] == 18);
  BOOST_TEST(b.plan.size() == 6U);
}

BOOST_AUTO_TEST_CASE(manager_beyond_the_limit_is_lost_when_all_others_are_real) {
  schedule_options options;
  options.managers = 2;
  bench b(options);
  for (const auto* manager : {"a", "b"}) {
    b.offer("x", manager);
    b.send_next(200);
  }
  b.offer("x", "a");
  b.offer("x", "b");
  b.offer("x", "c");
  BOOST_TEST(b.lost == strings{"c/x"});
  BOOST_TEST(b.plan.size() == 2U);
  b.send_next(200);
  b.offer("x", "c");  // the idle one goes
  BOOST_TEST(b.plan.size() == 2U);
}

// --- batches ------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(schedule_sends_batches_after_an_offer_and_as_large_as_offered) {
  bench b;
  b.offer_many(10);
  auto first = b.next();
  BOOST_TEST(first->events.size() == 1U);
  b.reply(std::move(first), 200, 0s, 4);
  auto full = b.next();
  BOOST_TEST(full->as_batch);
  BOOST_TEST(names(full) == (strings{"x1", "x2", "x3", "x4"}));
  b.reply(std::move(full), 200, 0s, 0);
  BOOST_TEST(!b.next()->as_batch);
}

BOOST_AUTO_TEST_CASE(offer_of_batches_is_for_one_manager) {
  bench b;
  b.take_batches(10, "a");
  b.offer_many(2, "a");
  b.offer_many(2, "b");
  std::map<std::string, std::size_t> sizes;
  for (int i = 0; i < 2; ++i) {
    b.hanging.push_back(b.next());
    sizes[*b.hanging.back()->manager] = b.hanging.back()->events.size();
  }
  BOOST_TEST(sizes["a"] == 2U);
  BOOST_TEST(sizes["b"] == 1U);
}

BOOST_AUTO_TEST_CASE(single_event_is_no_batch_and_batches_are_limited_in_number) {
  bench b;
  b.take_batches(2);
  b.offer("alone");
  auto alone = b.next();
  BOOST_TEST(!alone->as_batch);
  b.offer_many(10);
  auto second = b.next();
  BOOST_TEST(second->as_batch);
  BOOST_TEST(!b.ready());  // two requests are under way
  b.reply(std::move(second), 200, 0s, 2);
  BOOST_TEST(b.ready());
}

BOOST_AUTO_TEST_CASE(event_of_a_batch_has_its_own_result) {
  bench b;
  b.take_batches(10);
  b.draw(100ms);
  for (const auto* name : {"taken", "busy", "bad"}) b.offer(name);
  auto load = b.next();
  BOOST_REQUIRE(load->events.size() == 3U);
  const auto result = b.plan.on_response(
      std::move(load), {.status = 207, .batch_offer = 10, .statuses = {200, 503, 400}}, b.now);
  BOOST_TEST(result.delivered == 1U);
  BOOST_TEST(result.retried == 1U);
  BOOST_TEST(result.rejected == 1U);
  BOOST_TEST(b.lost.empty());
  BOOST_TEST(b.open_circuits() == 0U);
  BOOST_TEST(b.plan.size() == 2U);
  BOOST_TEST((b.next_time() == b.now + 100ms));
  b.now += 100ms;
  auto again = names(b.next());
  std::ranges::sort(again);
  BOOST_TEST((again == strings{"bad", "busy"}));
}

BOOST_AUTO_TEST_CASE(refused_batch_is_sent_one_by_one_and_counts_no_attempt) {
  for (const unsigned status : {400U, 404U, 405U, 413U}) {
    bench b;
    b.take_batches(10);
    b.offer_many(5);
    auto load = b.next();
    BOOST_TEST(load->as_batch);
    b.reply(std::move(load), status);
    BOOST_TEST(b.plan.size() == 5U);
    for (int i = 0; i < 5; ++i) {
      auto single = b.next();
      BOOST_TEST(names(single) == strings{"x" + std::to_string(i)});
      BOOST_TEST(single->events.front().attempts() == 0U);
      b.reply(std::move(single), 200, 0s, 10);  // which offers batches again
    }
    BOOST_TEST(b.plan.empty());
  }
}

BOOST_AUTO_TEST_CASE(receiver_that_offers_batches_and_refuses_them_starves_no_event) {
  bench b;
  b.take_batches(4);
  for (const auto* name : {"a", "b", "c", "d"}) b.offer(name);
  std::map<std::string, int> delivered;
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    b.now += 100ms;
    b.offer("fresh" + std::to_string(round));
    auto load = b.next();
    if (load->as_batch) {
      ++refused;
      b.reply(std::move(load), 404);
    } else {
      for (const auto& name : names(load)) ++delivered[name];
      b.reply(std::move(load), 200, 0s, 4);
    }
  }
  for (const auto* name : {"a", "b", "c", "d"}) BOOST_TEST(delivered[name] == 1);
  BOOST_TEST(refused <= 3);  // after 10 s, and then after 20 s, in 40 s
}

BOOST_AUTO_TEST_CASE(offer_of_batches_is_believed_again_after_a_while) {
  bench b;
  b.take_batches(4);
  b.offer_many(4);
  b.send_next(404);
  b.send_next(200, 0s, 4);
  b.now += 10s - 1ms;
  b.send_next(200, 0s, 4);
  b.now += 1ms;
  b.send_next(200, 0s, 4);
  b.offer_many(4);
  auto load = b.next();
  BOOST_TEST(load->events.size() == 4U);
}

BOOST_AUTO_TEST_CASE(pause_after_a_refused_batch_begins_again_when_one_was_accepted) {
  bench b;
  for (int i = 0; i < 3; ++i) {
    b.now += 10s;
    b.take_batches(4);
    b.offer_many(2);
    auto load = b.next();
    BOOST_TEST(load->as_batch);
    b.reply(std::move(load), 200, 0s, 4);
    b.offer_many(2);
    b.send_next(404);
    b.send_next(200);
    b.send_next(200);
  }
}

namespace {

/// Drives a schedule at random as the dispatcher does, polling after each call and at the times
/// that it names, and remembers which keys have a change that was not delivered since.
class model {
 public:
  explicit model(std::uint32_t seed, bool loses)
      : random_(seed),
        loses_(loses),
        plan_(
            options(loses), [this] { return (std::uint64_t{random_()} << 32) | random_(); },
            [this](loss, const rw::watch_event& e) { lose(e); }, objects_) {}

  void run() {
    for (int i = 0; i < 3000; ++i) step();
    finish();
  }

 private:
  static schedule_options options(bool loses) {
    schedule_options o;
    o.capacity = loses ? 25 : 1000;
    o.managers = loses ? 3 : 256;
    return o;
  }

  using key = std::pair<std::string, std::string>;

  struct pending {
    int change;  ///< its number
  };
  struct flight {
    batch load;
    std::map<key, int> changes;  ///< the latest change of each key when it was sent
  };

  static key key_of(const rw::watch_event& e) { return {e.manager, e.watched.name}; }

  void lose(const rw::watch_event& e) {
    const auto k = key_of(e);
    BOOST_TEST(loses_);
    BOOST_TEST(!in_flight_.contains(k));
    pending_.erase(k);
  }

  void step() {
    switch (random_() % 4) {
      case 0:
      case 1:
        offer();
        break;
      case 2:
        pass(std::chrono::milliseconds(random_() % 200));
        break;
      default:
        land(random_() % 10);
        break;
    }
    pump();
  }

  /// Lets time pass, and stops where the schedule wants to be asked again.
  void pass(core::duration by) {
    const auto end = now_ + by;
    while (until_ <= end) {
      now_ = until_;
      pump();
    }
    now_ = end;
  }

  void offer() {
    auto one = event("x" + std::to_string(random_() % 30), "m" + std::to_string(random_() % 4));
    const auto k = key_of(one);
    const bool known = pending_.contains(k);
    pending_[k] = {++changes_};
    BOOST_TEST(plan_.offer(std::move(one), now_) == known);  // a known key is always merged
  }

  void pump() {
    for (;;) {
      auto next = plan_.poll(now_);
      until_ = next.until;
      if (!next.send) break;
      begin(std::move(next.send));
    }
    BOOST_TEST(plan_.size() == pending_.size());
    BOOST_TEST((until_ > now_));
    // Nothing waits for nothing: with no flight under way, time goes on.
    if (flights_.empty() && !plan_.empty()) BOOST_TEST((until_ != core::time_point::max()));
  }

  void begin(batch load) {
    flight one;
    for (const auto& e : load->events) {
      const auto k = key_of(e.key());
      BOOST_TEST(k.first == *load->manager);
      BOOST_TEST(pending_.contains(k));         // nothing is made up
      BOOST_TEST(in_flight_.insert(k).second);  // nothing is in flight twice
      one.changes[k] = pending_[k].change;
    }
    one.load = std::move(load);
    flights_.push_back(std::move(one));
  }

  void land(std::uint32_t how) {
    if (flights_.empty()) return;
    const auto at = flights_.begin() + static_cast<std::ptrdiff_t>(random_() % flights_.size());
    auto one = std::move(*at);
    flights_.erase(at);
    for (const auto& [k, change] : one.changes) in_flight_.erase(k);
    if (how < 4) {
      plan_.failed(std::move(one.load), static_cast<delivery_failure>(how), now_);
      return;
    }
    plan_.connected(random_() % 12);
    batch_response a{.status = how == 4   ? 503U
                               : how == 5 ? 404U
                               : how == 7 ? 400U
                                          : 200U,
                     .batch_offer = random_() % 6};
    if (how == 6 && one.load->as_batch) {
      a.status = 207;
      for (const auto& e : one.load->events)
        a.statuses.push_back(e.attempts() % 2 == 0 ? 503 : 200);
    }
    for (std::size_t i = 0; i < one.load->events.size(); ++i) {
      const auto k = key_of(one.load->events[i].key());
      // What was delivered is the state at the time of sending: a later change is still due.
      if (a.status_of(i) == 200 && pending_[k].change == one.changes.at(k)) pending_.erase(k);
    }
    plan_.on_response(std::move(one.load), a, now_);
  }

  void finish() {
    for (int i = 0; i < 10000 && !plan_.empty(); ++i) {
      while (!flights_.empty()) {
        land(9);
        pump();
      }
      if (plan_.empty()) break;
      BOOST_REQUIRE((until_ != core::time_point::max()));  // something will be done, in time
      now_ = until_;
      pump();
    }
    BOOST_TEST(plan_.empty());
    BOOST_TEST(pending_.empty());  // every key was delivered after its last change, or lost
  }

  std::mt19937 random_;
  const bool loses_;
  rw::dispatch::delivery objects_{{}};
  rw::dispatch::schedule plan_;
  core::time_point now_{1h};
  core::time_point until_ = core::time_point::max();
  std::map<key, pending> pending_;  ///< changes that no delivery covers
  std::set<key> in_flight_;
  std::vector<flight> flights_;
  int changes_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(schedule_loses_no_event_and_has_none_in_flight_twice_whatever_happens) {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      model(seed, false).run();
    }
  }
}

BOOST_AUTO_TEST_CASE(schedule_reports_each_event_that_it_loses_whatever_happens) {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      model(seed, true).run();
    }
  }
}

namespace {

/// A schedule with observed objects of one Watcher.
struct observing {
  explicit observing(schedule_options options = {}, std::size_t limit = 1000)
      : objects({.objects = limit}, [this](const std::string&, auto) { ++raised; }),
        plan(
            options, [] { return 0U; },
            [this](loss, const rw::watch_event& one) { lost += one.watched.name + " "; }, objects) {
    objects.set_kind(table, event("a").gvk);
  }
  void put(const std::string& name, std::uint64_t state) {
    objects.put(table, event(name).watched, state, now);
  }
  batch next() { return plan.poll(now).send; }

  int raised = 0;
  std::string lost;
  rw::dispatch::delivery objects;
  rw::dispatch::delivery::table& table =
      objects.add({event("a").manager, {"op", "*", "kymas"}, "spec", {}}, core::time_point(1h));
  rw::dispatch::schedule plan;
  core::time_point now = core::time_point(1h);
};

}  // namespace

BOOST_AUTO_TEST_CASE(change_of_an_observed_object_is_taken_and_delivered) {
  observing o;
  o.put("a", 10);
  BOOST_TEST(!o.plan.empty());
  auto sent = o.next();
  BOOST_REQUIRE(sent);
  BOOST_TEST(sent->events.at(0).key().watched.name == "a");
  BOOST_TEST(o.plan.size() == 1U);
  o.plan.on_response(std::move(sent), {200}, o.now);
  BOOST_TEST(o.objects.undelivered() == 0U);
  BOOST_TEST(o.plan.empty());
}

BOOST_AUTO_TEST_CASE(change_during_its_request_is_sent_again) {
  observing o;
  o.put("a", 10);
  auto sent = o.next();
  o.put("a", 11);
  BOOST_TEST(!o.next(), "one event of an object is under way at a time");
  o.plan.on_response(std::move(sent), {200}, o.now);
  sent = o.next();
  BOOST_REQUIRE(sent);
  o.plan.on_response(std::move(sent), {200}, o.now);
  BOOST_TEST(o.objects.undelivered() == 0U);
}

BOOST_AUTO_TEST_CASE(change_between_two_requests_is_told_by_the_second) {
  observing o;
  o.put("a", 10);
  o.plan.on_response(o.next(), {503}, o.now);
  o.put("a", 11);
  o.now += 1s;
  auto sent = o.next();
  BOOST_REQUIRE(sent);
  o.plan.on_response(std::move(sent), {200}, o.now);
  BOOST_TEST(o.objects.undelivered() == 0U);
  BOOST_TEST(!o.next());
}

BOOST_AUTO_TEST_CASE(change_and_review_of_one_object_are_one_event) {
  observing o;
  o.plan.offer(event("a"), o.now);
  auto sent = o.next();
  o.put("a", 10);
  BOOST_TEST(!o.next());
  o.plan.on_response(std::move(sent), {200}, o.now);
  BOOST_TEST(o.objects.undelivered() == 1U, "the review's event was sent before the change");
  sent = o.next();
  BOOST_REQUIRE(sent);
  o.plan.on_response(std::move(sent), {200}, o.now);
  BOOST_TEST(o.objects.undelivered() == 0U);
}

BOOST_AUTO_TEST_CASE(changes_fill_a_batch_after_the_events_that_were_offered) {
  observing o;
  o.put("a", 10);
  o.plan.on_response(o.next(), {.status = 200, .batch_offer = 3}, o.now);
  for (const auto* name : {"b", "c", "d"}) o.put(name, 10);
  o.plan.offer(event("r"), o.now);
  const auto sent = o.next();
  BOOST_REQUIRE(sent);
  BOOST_REQUIRE(sent->events.size() == 3U);
  BOOST_TEST(sent->events.at(0).key().watched.name == "r");
  BOOST_TEST(sent->events.at(2).key().watched.name == "c");
}

BOOST_AUTO_TEST_CASE(change_is_not_lost_for_lack_of_capacity_or_time) {
  observing o({.capacity = 2});
  o.put("a", 10);
  o.plan.on_response(o.next(), {503}, o.now);
  for (const auto* name : {"x", "y", "z"}) o.plan.offer(event(name), o.now);
  BOOST_TEST(o.lost.find('a') == std::string::npos);
  o.now += 2h;
  BOOST_TEST((o.next() != nullptr));
  BOOST_TEST(o.lost.find('a') == std::string::npos);
  BOOST_TEST(o.objects.undelivered() == 1U);
  BOOST_TEST(o.raised == 0);
}

BOOST_AUTO_TEST_CASE(deletions_that_nobody_takes_are_bounded) {
  observing o({}, 100);
  for (int i = 0; i < 10000; ++i) {
    const auto name = "n" + std::to_string(i);
    o.put(name, 10);
    if (auto sent = o.next()) o.plan.on_response(std::move(sent), {404}, o.now);
    o.objects.erase(o.table, event(name).watched, o.now);
    o.now += 1s;
  }
  BOOST_TEST(o.objects.size() + o.plan.size() <= 400U);
}

BOOST_AUTO_TEST_CASE(closed_schedule_takes_nothing_that_a_list_brought) {
  observing o;
  o.objects.begin_listing(o.table, false, o.now);
  o.put("listed", 10);
  o.objects.end_listing(o.table, o.now);
  o.put("live", 10);
  o.plan.close();
  auto sent = o.next();
  BOOST_REQUIRE(sent);
  BOOST_TEST(sent->events.at(0).key().watched.name == "live");
  o.plan.on_response(std::move(sent), {200}, o.now);
  BOOST_TEST(!o.next());
  BOOST_TEST(o.plan.empty());
}

BOOST_AUTO_TEST_CASE(figures_include_what_waits_at_the_objects) {
  observing o;
  o.put("a", 10);
  o.plan.on_response(o.next(), {503}, o.now);
  const auto begin = o.now;
  o.put("b", 10);
  o.put("c", 10);
  o.now += 1s;
  std::size_t events = 0;
  core::time_point oldest;
  o.plan.report([&](const rw::dispatch::schedule::figures& each) {
    events = each.events;
    oldest = each.oldest;
  });
  BOOST_TEST(events == 3U);
  BOOST_TEST((oldest == begin));
}

BOOST_AUTO_TEST_CASE(abandoned_events_are_reported_but_for_changes) {
  observing o;
  o.plan.offer(event("r"), o.now);
  o.put("a", 10);
  for (int i = 0; i < 2; ++i) o.plan.on_response(o.next(), {503}, o.now);
  BOOST_TEST(o.plan.abandon(o.now) == 1U);
  BOOST_TEST(o.lost == "r ");
  BOOST_TEST(o.plan.size() == 0U);
  BOOST_TEST(o.objects.undelivered() == 1U);
  BOOST_TEST(o.objects.waiting() == 1U);
}

// --- resyncs and dead receivers ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(lone_event_is_the_probe_of_an_open_breaker_whatever_it_waits_for) {
  bench b;
  b.offer("a");
  b.draw(30s);
  for (int i = 0; i < 4; ++i) {
    b.send_next(503);
    b.now += 30s;
  }
  b.now += 1h;  // the patience is at its end
  b.send_next(503);
  BOOST_TEST(b.delayed() == 1U);
  BOOST_TEST((b.next_time() <= b.now + 30s));
  b.now += 30s;
  BOOST_TEST(b.send_next(200).delivered == 1U);
}

/// 5,000 clusters must not send 1,700 requests a second to a dead operator.
BOOST_AUTO_TEST_CASE(probes_are_3_s_apart_at_first_and_15_to_30_s_after_a_minute) {
  bench b;
  b.drawn = 12345;
  b.offer("a");
  const auto begin = b.now;
  int early = 0;
  int late = 0;
  while (b.now < begin + 11min) {
    if (b.ready()) {
      ++(b.now < begin + 1min ? early : late);
      b.send_next(503);
    }
    b.now += 50ms;
  }
  BOOST_TEST(early >= 20);
  BOOST_TEST(late >= 18);
  BOOST_TEST(late <= 40);
}

/// A tenth of 5,000, each with one event and an owed resync, in steps of a second.
BOOST_AUTO_TEST_CASE(probes_of_5000_clusters_are_300_a_second_at_most_after_a_minute) {
  struct cluster {
    explicit cluster(std::uint32_t seed) : random(seed) {}
    std::mt19937_64 random;
    rw::dispatch::delivery objects{{}};
    rw::dispatch::schedule plan{{}, [this] { return random(); }, [](loss, const auto&) {}, objects};
  };
  constexpr unsigned count = 500;
  std::vector<std::unique_ptr<cluster>> clusters;
  core::time_point now{1h};
  for (unsigned i = 0; i < count; ++i) {
    auto& each = *clusters.emplace_back(std::make_unique<cluster>(i));
    each.objects.set_managers({"m"}, now);
    each.plan.offer(event("a"), now);
  }
  unsigned all = 0;
  for (int second = 0; second < 600; ++second) {
    unsigned requests = 0;
    for (const auto& each : clusters) {
      for (auto sent = each->plan.poll(now).send; sent; sent = each->plan.poll(now).send) {
        ++requests;
        each->plan.on_response(std::move(sent), {503}, now);
      }
    }
    if (second > 70) all += requests;
    now += 1s;
  }
  const double rate = 10.0 * all / (600 - 71);
  BOOST_TEST_MESSAGE("requests a second of 5,000 clusters: " << rate);
  BOOST_TEST(rate <= 300);
}

BOOST_AUTO_TEST_CASE(refused_event_waits_five_minutes_at_most_while_others_pass) {
  bench b;
  b.drawn = ~std::uint64_t{0} / 2;
  b.offer("bad");
  for (int i = 0; i < 20; ++i) {
    if (b.ready()) b.send_next(400);
    b.offer("good");
    b.send_next(200);
    b.now += 5min;
  }
  BOOST_TEST(b.refused() == "bad 400");
  BOOST_TEST(b.send_next(200).delivered == 1U);
}

BOOST_AUTO_TEST_CASE(resync_is_a_request_of_its_own_and_opens_no_breaker) {
  observing o;
  o.objects.set_live(o.table, true, o.now);
  o.objects.set_managers({"m"}, o.now);
  for (int i = 0; i < 10; ++i) {
    auto sent = o.next();
    BOOST_REQUIRE(sent);
    BOOST_TEST((sent->resync == rw::resync_reason::started));
    BOOST_TEST(sent->as_batch);
    BOOST_TEST(sent->events.empty());
    o.plan.on_response(std::move(sent), {503}, o.now);
    o.now += 5min;
  }
  o.put("a", 10);
  auto resync = o.next();
  auto event = o.next();
  BOOST_REQUIRE((resync && event));
  BOOST_TEST(event->events.size() == 1U);
  o.plan.on_response(std::move(event), {200}, o.now);
  o.plan.on_response(std::move(resync), {.status = 200, .resync_taken = true}, o.now);
  BOOST_TEST(o.objects.owed() == 0U);
  BOOST_TEST(o.plan.empty());
}

BOOST_AUTO_TEST_CASE(operator_that_is_owed_a_resync_alone_waits_since_its_first_failure) {
  observing o;
  o.objects.set_live(o.table, true, o.now);
  o.objects.set_managers({"m"}, o.now);
  const auto oldest = [&o] {
    auto out = core::time_point::max();
    o.plan.report(
        [&](const rw::dispatch::schedule::figures& each) { out = std::min(out, each.oldest); });
    return out;
  };
  BOOST_TEST((oldest() == core::time_point::max()));
  const auto begin = o.now;
  for (int i = 0; i < 3; ++i) {
    o.plan.on_response(o.next(), {503}, o.now);
    BOOST_TEST((oldest() == begin));
    o.now += 5min;
  }
  o.plan.on_response(o.next(), {.status = 404}, o.now);  // it, or another, responds
  BOOST_TEST((oldest() == core::time_point::max()));
  o.now += 5min;
  o.plan.on_response(o.next(), {503}, o.now);
  BOOST_TEST((oldest() == o.now));
  o.now += 5min;
  o.plan.on_response(o.next(), {.status = 200, .resync_taken = true}, o.now);
  BOOST_TEST((oldest() == core::time_point::max()));
}

BOOST_AUTO_TEST_CASE(resync_of_a_manager_that_was_away_waits_from_its_own_failure) {
  observing o;
  o.objects.set_live(o.table, true, o.now);
  o.objects.set_managers({"m"}, o.now);
  o.plan.on_response(o.next(), {503}, o.now);
  o.objects.set_managers({}, o.now);
  static_cast<void>(o.next());
  o.now += 3h;
  o.objects.set_managers({"m"}, o.now);
  o.plan.report(
      [&](const rw::dispatch::schedule::figures& each) { BOOST_TEST((each.oldest >= o.now)); });
}

BOOST_AUTO_TEST_CASE(resync_that_is_taken_tells_what_waits_for_its_backoff) {
  observing o;
  o.objects.set_live(o.table, true, o.now);
  o.plan.offer(event("review"), o.now);
  o.put("a", 10);
  auto first = o.next();
  auto second = o.next();
  BOOST_REQUIRE((first && second));
  o.plan.on_response(std::move(first), {503, 60s}, o.now);
  o.plan.on_response(std::move(second), {503, 60s}, o.now);
  BOOST_TEST(o.plan.size() == 2U);
  o.now += 1s;
  o.plan.offer(event("early"), o.now);
  o.now += 99ms;
  o.objects.set_managers({"m"}, o.now);
  auto sent = o.next();
  BOOST_REQUIRE((sent && sent->resync));
  o.now += 1s;
  o.plan.offer(event("later"), o.now);
  o.plan.on_response(std::move(sent), {.status = 200, .resync_taken = true}, o.now);
  BOOST_TEST(o.plan.size() == 2U,
             "the one that came later, and one whose change may not have been stored");
  BOOST_TEST(o.objects.undelivered() == 0U);
  BOOST_TEST(o.lost == "");
}

BOOST_AUTO_TEST_CASE(resync_that_is_answered_like_by_no_listener_sends_an_object_as_an_event) {
  for (const unsigned status : {404U, 200U, 400U, 302U}) {
    observing o;
    o.put("a", 10);
    o.plan.on_response(o.next(), {200}, o.now);
    o.objects.set_live(o.table, true, o.now);
    o.objects.set_managers({"m"}, o.now);
    o.plan.on_response(o.next(), {status}, o.now);
    auto sent = o.next();
    BOOST_REQUIRE(sent);
    BOOST_TEST(!sent->resync);
    BOOST_TEST(sent->events.at(0).key().watched.name == "a");
    o.plan.on_response(std::move(sent), {.status = 200, .offers_resyncs = true}, o.now);
    BOOST_TEST(!o.next(), "what has answered may do so again");
    o.now += 1s;
    sent = o.next();
    BOOST_REQUIRE((sent && sent->resync));
    o.plan.on_response(std::move(sent), {.status = 200, .resync_taken = true}, o.now);
    BOOST_TEST(o.plan.empty());
  }
}

BOOST_AUTO_TEST_CASE(resync_that_waits_for_the_way_to_kcp_names_the_time) {
  observing o;
  o.objects.set_live(o.table, true, o.now);
  o.plan.offer(event("r"), o.now);
  auto sent = o.next();
  BOOST_REQUIRE(sent);
  // Long ago, so that probes are rare.
  o.plan.failed(std::move(sent), delivery_failure::connect, o.now);
  o.now += 2min;
  o.plan.failed(o.next(), delivery_failure::connect, o.now);
  o.objects.set_managers({"m"}, o.now);
  const auto next = o.plan.poll(o.now);
  BOOST_TEST(!next.send);
  BOOST_TEST((next.until > o.now));
  BOOST_TEST((next.until <= o.now + 30s));
  o.plan.close();
  const auto last = o.plan.poll(o.now).send;
  BOOST_REQUIRE(last);
  BOOST_TEST(last->resync.has_value(), "at the end there is one attempt");
}

BOOST_AUTO_TEST_CASE(resync_that_is_taken_ends_the_pause_of_its_operator) {
  observing o;
  o.objects.set_live(o.table, true, o.now);
  o.put("a", 10);
  for (int i = 0; i < 8; ++i) {
    if (auto sent = o.next()) o.plan.on_response(std::move(sent), {503}, o.now);
    o.now += 1min;
  }
  o.objects.set_managers({"m"}, o.now);
  auto sent = o.next();
  BOOST_REQUIRE((sent && sent->resync));
  o.plan.on_response(std::move(sent), {.status = 200, .resync_taken = true}, o.now);
  o.put("b", 10);
  sent = o.next();
  BOOST_REQUIRE(sent);
  BOOST_TEST(sent->events.at(0).key().watched.name == "b");
}

BOOST_AUTO_TEST_CASE(closed_schedule_sends_no_event_by_which_a_receiver_is_judged) {
  observing o;
  o.put("a", 10);
  o.plan.on_response(o.next(), {200}, o.now);
  o.objects.set_managers({"m"}, o.now);
  o.plan.close();
  o.plan.on_response(o.next(), {404}, o.now);
  BOOST_TEST(!o.next());
  BOOST_TEST(o.plan.empty());
}

BOOST_AUTO_TEST_CASE(closed_schedule_is_not_empty_before_its_resync_was_tried) {
  observing o;
  o.objects.set_managers({"m"}, o.now);
  BOOST_TEST(!o.next(), "its watch is not live");
  o.plan.close();
  BOOST_TEST(!o.plan.empty());
  auto sent = o.next();
  BOOST_REQUIRE((sent && sent->resync));
  BOOST_TEST(!o.plan.empty());
  o.plan.on_response(std::move(sent), {503}, o.now);
  BOOST_TEST(o.plan.empty());
}

BOOST_AUTO_TEST_SUITE_END()
