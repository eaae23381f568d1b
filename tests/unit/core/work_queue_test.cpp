#include "rw/core/work_queue.hpp"

#include "rw/core/task_group.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include "tests/unit/run.hpp"
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace rw::core_test {
BOOST_AUTO_TEST_SUITE(work_queue)

namespace asio = boost::asio;
namespace core = rw::core;
using namespace std::chrono_literals;
using core::add_result;
using core::priority;
using rw::test::run;
using rw::test::turn;

namespace {

using queue = core::work_queue<std::string>;

/// A queue whose time stands still, and which somebody runs.
template <typename Key = std::string>
struct bench {
  using queue_type = core::work_queue<Key>;

  explicit bench(core::work_queue_options with = {})
      : keys(io.get_executor(), named(std::move(with)), {time, numbers, [] { return 0; }}) {
    tasks.spawn(keys.run());
    settle();
  }
  ~bench() {
    tasks.cancel();
    run(io, tasks.join());
  }

  static core::work_queue_options named(core::work_queue_options with) {
    with.name = "test";
    return with;
  }

  /// Does all that can be done without time going on.
  void settle() {
    io.restart();
    io.poll();
  }
  void advance(core::duration by) {
    time.advance(by);
    settle();
  }

  /// Takes all keys that are queued and is done with each at once.
  std::vector<Key> take_all() {
    std::vector<Key> taken;
    while (auto item = keys.try_get()) taken.push_back(item.key());
    return taken;
  }

  /// The value of one time series; -1 if there is none.
  double metric(const std::string& series) {
    keys.publish();
    const auto text = core::expose(numbers);
    const auto line = '\n' + series + ' ';
    const auto at = text.find(line);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size()));
  }

  asio::io_context io{1};
  core::manual_clock time;
  core::metrics numbers;
  queue_type keys;
  core::task_group tasks{io.get_executor()};
};

using names = std::vector<std::string>;

asio::awaitable<void> take_into(queue* from, names* taken, bool* ended) {
  for (;;) {
    auto item = co_await from->get();
    if (!item) break;
    taken->push_back(item.key());
  }
  *ended = true;
}

asio::awaitable<void> wait_for_room(queue* in, std::optional<bool>* room) {
  *room = co_await in->wait_for_room();
}

asio::awaitable<void> drain(queue* which, bool* drained) {
  co_await which->drain();
  *drained = true;
}

}  // namespace

BOOST_AUTO_TEST_CASE(keys_are_taken_in_the_order_in_which_they_came_each_once) {
  bench<> b;
  for (const char* name : {"c", "a", "b"}) BOOST_TEST((b.keys.add(name) == add_result::added));
  BOOST_TEST((b.keys.add("a") == add_result::merged));
  BOOST_TEST(b.keys.queued() == 3U);
  BOOST_TEST(b.take_all() == (names{"c", "a", "b"}), boost::test_tools::per_element());
  BOOST_TEST(b.keys.size() == 0U);
  BOOST_TEST(!b.keys.try_get());
}

BOOST_AUTO_TEST_CASE(key_added_while_it_is_processed_is_queued_again_after) {
  bench<> b;
  b.keys.add("a");
  auto item = b.keys.try_get();
  BOOST_TEST((b.keys.add("a") == add_result::added));
  BOOST_TEST((b.keys.add("a") == add_result::merged));
  b.keys.add("b");
  BOOST_TEST(b.keys.queued() == 1U);  // never processed twice at once
  BOOST_TEST(b.keys.processing() == 1U);
  item.done();
  BOOST_TEST(!item);
  BOOST_TEST(b.take_all() == (names{"b", "a"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(item_ends_its_processing_when_it_is_destroyed_or_replaced) {
  bench<> b;
  b.keys.add("a");
  b.keys.add("b");
  {
    auto item = b.keys.try_get();
    BOOST_TEST(item.key() == "a");
    auto other = std::move(item);
    BOOST_TEST(!item);  // NOLINT(bugprone-use-after-move): that is the question
    BOOST_TEST(b.keys.processing() == 1U);
  }
  BOOST_TEST(b.keys.processing() == 0U);
  auto item = b.keys.try_get();
  item = {};
  BOOST_TEST(b.keys.processing() == 0U);
}

BOOST_AUTO_TEST_CASE(higher_priority_goes_first_and_raises_a_key_that_waits) {
  bench<> b;
  b.keys.add("low", priority::low);
  b.keys.add("normal");
  b.keys.add("raised", priority::low);
  b.keys.add("high", priority::high);
  BOOST_TEST((b.keys.add("raised", priority::high) == add_result::merged));
  BOOST_TEST((b.keys.add("high", priority::low) == add_result::merged));  // stays
  BOOST_TEST(b.take_all() == (names{"high", "raised", "normal", "low"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(key_added_while_processed_is_queued_with_the_highest_priority_asked_for) {
  bench<> b;
  b.keys.add("a");
  auto item = b.keys.try_get();
  b.keys.add("b");
  b.keys.add("a", priority::low);
  b.keys.add("a", priority::high);
  item.done();
  BOOST_TEST(b.take_all() == (names{"a", "b"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(no_level_waits_for_more_than_eight_others_and_one_of_each_lower) {
  bench<int> b;
  int next = 0;
  for (int i = 0; i < 100; ++i) b.keys.add(next++, priority::high);
  for (int i = 0; i < 100; ++i) b.keys.add(1000 + i, priority::normal);
  for (int i = 0; i < 100; ++i) b.keys.add(2000 + i, priority::low);
  int since_normal = 0;
  int since_low = 0;
  int high_in_a_row_missed = 0;
  for (int i = 0; i < 200; ++i) {
    b.keys.add(next++, priority::high);  // never runs dry
    const int key = b.keys.try_get().key();
    since_normal = key / 1000 == 1 ? 0 : since_normal + 1;
    since_low = key / 1000 == 2 ? 0 : since_low + 1;
    high_in_a_row_missed = key < 1000 ? 0 : high_in_a_row_missed + 1;
    BOOST_REQUIRE(since_low <= 8);
    BOOST_REQUIRE(since_normal <= 9);
    BOOST_REQUIRE(high_in_a_row_missed <= 2);
  }
}

BOOST_AUTO_TEST_CASE(delayed_key_comes_when_its_time_has_come) {
  bench<> b;
  BOOST_TEST((b.keys.add_after("later", 10s) == add_result::added));
  BOOST_TEST((b.keys.add_after("sooner", 5s) == add_result::added));
  BOOST_TEST((b.keys.add_after("now", 0s) == add_result::added));
  BOOST_TEST(b.keys.delayed() == 2U);
  b.settle();
  BOOST_TEST(b.take_all() == names{"now"}, boost::test_tools::per_element());
  b.advance(4999ms);
  BOOST_TEST(b.take_all().empty());
  b.advance(1ms);
  BOOST_TEST(b.take_all() == names{"sooner"}, boost::test_tools::per_element());
  b.advance(1h);
  BOOST_TEST(b.take_all() == names{"later"}, boost::test_tools::per_element());
  BOOST_TEST(b.keys.delayed() == 0U);
  BOOST_TEST(b.keys.size() == 0U);
}

BOOST_AUTO_TEST_CASE(keys_whose_delays_end_together_come_in_the_order_of_their_additions) {
  bench<> b;
  names expected;
  for (int i = 0; i < 100; ++i) {
    expected.insert(expected.begin(), "key " + std::to_string(i));
    b.keys.add_after(expected.front(), 2s);
  }
  for (const auto& each : expected) b.keys.add_after(each, 1s);
  b.advance(1s);
  BOOST_TEST(b.take_all() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(shorter_delay_replaces_a_longer_one_and_not_the_other_way_round) {
  bench<> b;
  b.keys.add_after("a", 10s);
  BOOST_TEST((b.keys.add_after("a", 20s) == add_result::merged));
  BOOST_TEST((b.keys.add_after("a", 3s) == add_result::added));
  BOOST_TEST(b.keys.delayed() == 1U);
  b.advance(3s);
  BOOST_TEST(b.take_all() == names{"a"}, boost::test_tools::per_element());
  b.advance(1h);
  BOOST_TEST(b.take_all().empty());
}

BOOST_AUTO_TEST_CASE(delayed_key_that_is_added_plainly_comes_now_and_at_its_time) {
  bench<> b;
  b.keys.add_after("a", 10s);
  BOOST_TEST((b.keys.add("a") == add_result::added));
  BOOST_TEST(b.take_all() == names{"a"}, boost::test_tools::per_element());
  b.advance(10s);
  BOOST_TEST(b.take_all() == names{"a"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(delay_that_ends_while_the_key_is_processed_queues_it_again_after) {
  bench<> b;
  b.keys.add("a");
  auto item = b.keys.try_get();
  b.keys.add_after("a", 1s);
  b.advance(1s);
  BOOST_TEST(!b.keys.try_get());
  item.done();
  BOOST_TEST(b.take_all() == names{"a"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(delayed_key_comes_with_the_priority_that_it_was_added_with) {
  bench<> b;
  b.keys.add("a", priority::low);
  auto item = b.keys.try_get();
  b.keys.add_after("a", 1s, priority::high);
  item.done();
  b.keys.add("b");
  b.advance(1s);
  BOOST_TEST(b.take_all() == (names{"a", "b"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(retries_back_off_exponentially_until_the_key_is_forgotten) {
  bench<> b({.retry_base = 1s, .retry_limit = 5s, .retry_jitter = 0});
  for (const auto wait : {1s, 2s, 4s, 5s, 5s}) {
    BOOST_TEST((b.keys.add_rate_limited("a") == add_result::added));
    b.advance(wait - 1ms);
    BOOST_TEST(b.keys.queued() == 0U);
    b.advance(1ms);
    auto item = b.keys.try_get();
    BOOST_REQUIRE(item);
  }
  BOOST_TEST(b.keys.retries("a") == 5U);
  BOOST_TEST(b.keys.size() == 1U);  // remembered
  b.keys.forget("a");
  BOOST_TEST(b.keys.retries("a") == 0U);
  BOOST_TEST(b.keys.size() == 0U);
  b.keys.forget("a");
  b.keys.add_rate_limited("a");
  b.advance(1s);
  BOOST_TEST(b.keys.queued() == 1U);
}

BOOST_AUTO_TEST_CASE(jitter_shortens_retries_by_up_to_its_part) {
  asio::io_context io;
  core::manual_clock time;
  core::metrics numbers;
  for (const auto& [random, wait] : std::vector<std::pair<std::uint64_t, core::duration>>{
           {0, 1000ms}, {std::uint64_t{1} << 63, 750ms}}) {
    queue keys(io.get_executor(), {.name = "j", .retry_base = 1s, .retry_jitter = 0.5},
               {time, numbers, [drawn = random] { return drawn; }});
    core::task_group tasks(io.get_executor());
    tasks.spawn(keys.run());
    keys.add_rate_limited("a");
    io.restart();
    io.poll();
    BOOST_TEST((time.next_alarm() == std::min(time.now() + wait, time.now() + 500ms) ||
                time.next_alarm() == time.now() + wait));
    time.advance(wait - 1ms);
    io.restart();
    io.poll();
    BOOST_TEST(keys.queued() == 0U);
    time.advance(1ms);
    io.restart();
    io.poll();
    BOOST_TEST(keys.queued() == 1U);
    tasks.cancel();
    run(io, tasks.join());
  }
}

BOOST_AUTO_TEST_CASE(token_bucket_limits_all_retries_together) {
  bench<int> b({.retry_base = 0s, .retries_per_second = 10, .retry_burst = 3});
  for (int i = 0; i < 5; ++i) b.keys.add_rate_limited(i);
  b.settle();
  BOOST_TEST(b.keys.queued() == 3U);
  b.advance(100ms);
  BOOST_TEST(b.keys.queued() == 4U);
  b.advance(100ms);
  BOOST_TEST(b.keys.queued() == 5U);
}

BOOST_AUTO_TEST_CASE(full_queue_refuses_new_keys_and_never_those_inside) {
  bench<> b({.capacity = 3});
  b.keys.add("queued");
  b.keys.add("processed", priority::high);
  auto item = b.keys.try_get();
  b.keys.add_after("delayed", 1s);
  BOOST_TEST(!b.keys.has_room());
  BOOST_TEST((b.keys.add("new") == add_result::full));
  BOOST_TEST((b.keys.add_after("new", 1s) == add_result::full));
  BOOST_TEST((b.keys.add_rate_limited("new") == add_result::full));
  BOOST_TEST((b.keys.add("queued") == add_result::merged));
  BOOST_TEST((b.keys.add("processed") == add_result::added));
  BOOST_TEST((b.keys.add("delayed") == add_result::added));
  BOOST_TEST((b.keys.add_rate_limited("processed") == add_result::added));
  BOOST_TEST(b.metric("workqueue_refused_total{name=\"test\",reason=\"full\"}") == 3);
}

BOOST_AUTO_TEST_CASE(key_that_is_only_remembered_gives_way) {
  bench<> b({.capacity = 2, .retry_base = 0s});
  for (const char* name : {"older", "newer"}) {
    b.keys.add_rate_limited(name);
    b.settle();
    b.take_all();
  }
  BOOST_TEST(b.keys.size() == 2U);
  BOOST_TEST(b.keys.has_room());
  BOOST_TEST((b.keys.add("new") == add_result::added));
  BOOST_TEST(b.keys.retries("older") == 0U);
  BOOST_TEST(b.keys.retries("newer") == 1U);
}

BOOST_AUTO_TEST_CASE(waiter_for_room_is_resumed_when_there_is_some) {
  bench<> b({.capacity = 1});
  b.keys.add("a");
  std::optional<bool> room;
  b.tasks.spawn(wait_for_room(&b.keys, &room));
  b.settle();
  BOOST_TEST(!room);
  b.take_all();
  b.settle();
  BOOST_TEST((room == true));
  b.keys.add("a");
  std::optional<bool> never;
  b.tasks.spawn(wait_for_room(&b.keys, &never));
  b.settle();
  b.keys.shut_down();
  b.settle();
  BOOST_TEST((never == false));
}

BOOST_AUTO_TEST_CASE(workers_wait_for_keys_and_end_when_the_queue_is_shut_down_and_empty) {
  bench<> b;
  names taken;
  bool first_ended = false;
  bool second_ended = false;
  b.tasks.spawn(take_into(&b.keys, &taken, &first_ended));
  b.tasks.spawn(take_into(&b.keys, &taken, &second_ended));
  b.settle();
  b.keys.add("a");
  b.keys.add("b");
  b.settle();
  BOOST_TEST(taken.size() == 2U);
  b.keys.add("c");
  b.keys.add_after("never", 1s);
  b.keys.shut_down();
  BOOST_TEST((b.keys.add("d") == add_result::shut_down));
  BOOST_TEST((b.keys.add_after("d", 1s) == add_result::shut_down));
  BOOST_TEST((b.keys.add_rate_limited("d") == add_result::shut_down));
  b.settle();
  BOOST_TEST(taken.size() == 3U);
  BOOST_TEST((first_ended && second_ended));
  BOOST_TEST(b.keys.size() == 0U);
  BOOST_TEST(b.tasks.size() == 0U);  // run ended, too
  BOOST_TEST(b.metric("workqueue_refused_total{name=\"test\",reason=\"shut_down\"}") == 3);
}

BOOST_AUTO_TEST_CASE(key_added_while_processed_is_still_processed_after_shut_down) {
  bench<> b;
  b.keys.add("a");
  auto item = b.keys.try_get();
  b.keys.add("a");
  names taken;
  bool ended = false;
  bool drained = false;
  b.tasks.spawn(take_into(&b.keys, &taken, &ended));
  b.tasks.spawn(drain(&b.keys, &drained));
  b.settle();
  BOOST_TEST(!ended);
  BOOST_TEST(!drained);
  item.done();
  b.settle();
  BOOST_TEST(taken == names{"a"}, boost::test_tools::per_element());
  BOOST_TEST((ended && drained));
}

BOOST_AUTO_TEST_CASE(drain_waits_for_what_is_processed) {
  bench<> b;
  b.keys.add("a");
  auto item = b.keys.try_get();
  bool drained = false;
  b.tasks.spawn(drain(&b.keys, &drained));
  b.settle();
  BOOST_TEST(!drained);
  item.done();
  b.settle();
  BOOST_TEST(drained);
}

BOOST_AUTO_TEST_CASE(cancelled_worker_leaves_its_key_to_the_next) {
  bench<> b;
  names taken;
  bool ended = false;
  bool cancelled_ended = false;
  core::task_group to_cancel(b.io.get_executor());
  to_cancel.spawn(take_into(&b.keys, &taken, &cancelled_ended));
  b.settle();
  b.tasks.spawn(take_into(&b.keys, &taken, &ended));
  b.settle();
  to_cancel.cancel();
  b.keys.add("a");  // wakes the one that is about to be cancelled
  b.settle();
  BOOST_TEST(taken == names{"a"}, boost::test_tools::per_element());
  BOOST_TEST(cancelled_ended);
  BOOST_TEST(!ended);
  run(b.io, to_cancel.join());
  b.keys.shut_down();
  b.settle();
  BOOST_TEST(ended);
}

BOOST_AUTO_TEST_CASE(metrics_tell_what_happened) {
  bench<> b({.retry_base = 1ms});
  b.keys.add("a");
  b.keys.add("a");
  b.keys.add("b", priority::low);
  b.keys.add_after("c", 1h);
  BOOST_TEST(b.metric("workqueue_adds_total{name=\"test\"}") == 2);
  BOOST_TEST(b.metric("workqueue_depth{name=\"test\",priority=\"normal\"}") == 1);
  BOOST_TEST(b.metric("workqueue_depth{name=\"test\",priority=\"low\"}") == 1);
  BOOST_TEST(b.metric("workqueue_retries_total{name=\"test\"}") == 1);
  b.advance(2s);
  auto item = b.keys.try_get();
  auto other = b.keys.try_get();
  b.keys.add("a");
  BOOST_TEST(b.metric("workqueue_depth{name=\"test\",priority=\"normal\"}") == 1);
  BOOST_TEST(b.metric("workqueue_adds_total{name=\"test\"}") == 3);
  BOOST_TEST(b.metric("workqueue_queue_duration_seconds_count{name=\"test\"}") == 2);
  BOOST_TEST(b.metric("workqueue_queue_duration_seconds_sum{name=\"test\"}") == 4);
  b.advance(20s);
  other.done();
  b.advance(10s);
  BOOST_TEST(b.metric("workqueue_unfinished_work_seconds{name=\"test\"}") == 30);
  BOOST_TEST(b.metric("workqueue_longest_running_processor_seconds{name=\"test\"}") == 30);
  item.done();
  b.settle();
  BOOST_TEST(b.metric("workqueue_work_duration_seconds_count{name=\"test\"}") == 2);
  BOOST_TEST(b.metric("workqueue_work_duration_seconds_sum{name=\"test\"}") == 50);
  BOOST_TEST(b.metric("workqueue_work_duration_seconds_bucket{name=\"test\",le=\"10\"}") == 0);
  BOOST_TEST(b.metric("workqueue_work_duration_seconds_bucket{name=\"test\",le=\"100\"}") == 2);
  BOOST_TEST(b.metric("workqueue_unfinished_work_seconds{name=\"test\"}") == 0);
}

BOOST_AUTO_TEST_CASE(run_publishes_while_something_happens_and_rests_otherwise) {
  bench<> b;
  BOOST_TEST((b.time.next_alarm() == core::time_point::max()));
  b.keys.add("a");
  b.settle();
  BOOST_TEST((b.time.next_alarm() == b.time.now() + 500ms));
  auto item = b.keys.try_get();
  b.advance(500ms);
  const auto series = core::expose(b.numbers);
  BOOST_TEST(series.find("workqueue_adds_total{name=\"test\"} 1") != std::string::npos);
  BOOST_TEST((b.time.next_alarm() == b.time.now() + 500ms));  // one is being processed
  item.done();
  b.advance(500ms);
  BOOST_TEST((b.time.next_alarm() == core::time_point::max()));
  b.keys.add("a");
  b.settle();
  BOOST_TEST((b.time.next_alarm() == b.time.now() + 500ms));
}

BOOST_AUTO_TEST_CASE(time_that_passes_within_one_turn_is_seen_on_demand) {
  bench<> b;
  b.keys.add("a");
  auto item = b.keys.try_get();
  b.time.advance(1s);
  b.keys.time_has_passed();
  item.done();
  BOOST_TEST(b.metric("workqueue_work_duration_seconds_sum{name=\"test\"}") == 1);
}

BOOST_AUTO_TEST_CASE(queue_that_can_hold_nothing_is_rejected) {
  asio::io_context io;
  core::manual_clock time;
  core::metrics numbers;
  BOOST_CHECK_THROW(
      queue(io.get_executor(), {.name = "none", .capacity = 0}, {time, numbers, [] { return 0; }}),
      std::invalid_argument);
}

namespace {

/// The same rules, written as plainly as possible.
class naive_queue {
 public:
  explicit naive_queue(std::size_t capacity) : capacity_(capacity) {}

  add_result add(int key, int level) {
    if (!inside(key) && !make_room()) return add_result::full;
    known& one = keys_[key];
    remembered_.erase(std::remove(remembered_.begin(), remembered_.end(), key), remembered_.end());
    if (one.processing) {
      if (one.again) {
        one.again = std::min(*one.again, level);
        return add_result::merged;
      }
      one.again = level;
      return add_result::added;
    }
    if (one.level) {
      if (level >= *one.level) return add_result::merged;
      std::erase(queues_[*one.level], key);
      one.level = level;
      queues_[level].push_back(key);
      return add_result::merged;
    }
    one.level = level;
    queues_[level].push_back(key);
    return add_result::added;
  }

  add_result delay(int key, int level, std::int64_t due) {
    if (!inside(key) && !make_room()) return add_result::full;
    known& one = keys_[key];
    remembered_.erase(std::remove(remembered_.begin(), remembered_.end(), key), remembered_.end());
    if (!one.due) {
      one.due = due;
      one.due_level = level;
      return add_result::added;
    }
    one.due_level = std::min(one.due_level, level);
    if (due >= *one.due) return add_result::merged;
    one.due = due;
    return add_result::added;
  }

  /// Of a retry without backoff.
  add_result fail(int key, int level, std::int64_t due) {
    const auto result = delay(key, level, due);
    if (result != add_result::full) ++keys_[key].failures;
    return result;
  }

  void forget(int key) {
    if (!inside(key)) return;
    keys_[key].failures = 0;
    std::erase(remembered_, key);
    drop_if_idle(key);
  }

  std::optional<int> take() {
    std::optional<int> first;
    std::optional<int> late;
    for (int level = 0; level < 3; ++level) {
      if (queues_[level].empty()) continue;
      if (!first) first = level;
      if (passed_over_[level] >= 8) late = level;
    }
    if (!first) return std::nullopt;
    const int chosen = late.value_or(*first);
    // Turns count only while there is a choice.
    const bool choice = queues_[0].size() + queues_[2].size() > 0;
    for (int level = 0; level < 3; ++level) {
      if (choice && !queues_[level].empty()) ++passed_over_[level];
    }
    if (choice) passed_over_[chosen] = 0;
    const int key = queues_[chosen].front();
    queues_[chosen].pop_front();
    keys_[key].level.reset();
    keys_[key].processing = true;
    return key;
  }

  bool done(int key) {
    if (!inside(key) || !keys_[key].processing) return false;
    known& one = keys_[key];
    one.processing = false;
    if (one.again) {
      one.level = *one.again;
      queues_[*one.again].push_back(key);
      one.again.reset();
    } else if (!one.due && one.failures > 0) {
      remembered_.push_back(key);
    }
    drop_if_idle(key);
    return true;
  }

  void advance(std::int64_t now) {
    for (;;) {
      std::optional<int> next;
      for (const auto& [key, one] : keys_) {
        if (one.due && *one.due <= now && (!next || *one.due < *keys_[*next].due)) next = key;
      }
      if (!next) return;
      keys_[*next].due.reset();
      add(*next, keys_[*next].due_level);
    }
  }

  std::size_t size() const { return keys_.size(); }
  std::size_t queued() const { return queues_[0].size() + queues_[1].size() + queues_[2].size(); }
  std::uint32_t failures(int key) const {
    const auto at = keys_.find(key);
    return at == keys_.end() ? 0 : at->second.failures;
  }

 private:
  struct known {
    std::optional<int> level;  ///< if queued
    std::optional<int> again;
    std::optional<std::int64_t> due;
    int due_level = 1;
    bool processing = false;
    std::uint32_t failures = 0;
  };

  bool inside(int key) const { return keys_.contains(key); }
  bool make_room() {
    if (keys_.size() < capacity_) return true;
    if (remembered_.empty()) return false;
    keys_.erase(remembered_.front());
    remembered_.pop_front();
    return true;
  }
  void drop_if_idle(int key) {
    const known& one = keys_[key];
    if (!one.level && !one.processing && !one.due && one.failures == 0) keys_.erase(key);
  }

  std::size_t capacity_;
  std::map<int, known> keys_;
  std::deque<int> queues_[3];
  std::uint32_t passed_over_[3] = {};
  std::deque<int> remembered_;
};

struct keyed_item {
  int key;
  core::work_queue<int>::item item;
};

void compare_with_model(std::uint32_t seed) {
  std::mt19937 random(seed);
  const std::size_t capacity = 1 + random() % 40;
  const int keys = 1 + static_cast<int>(random() % 60);
  bench<int> b({.capacity = capacity,
                .retry_base = 1us,
                .retry_limit = 1us,
                .retry_jitter = 0,
                .retries_per_second = 0});
  naive_queue model(capacity);
  std::vector<keyed_item> items;
  std::int64_t now = 0;  // in ns
  for (int step = 0; step < 3000; ++step) {
    // No two delays begin, and so end, at the same time: nothing is promised of their order.
    b.advance(1ns);
    model.advance(++now);
    const int key = static_cast<int>(random()) % keys;
    const int level = static_cast<int>(random() % 3);
    switch (random() % 10) {
      case 0:
      case 1:
        BOOST_REQUIRE(b.keys.add(key, priority{static_cast<std::uint8_t>(level)}) ==
                      model.add(key, level));
        break;
      case 2: {
        const auto delay = 1 + static_cast<std::int64_t>(random() % 50);
        BOOST_REQUIRE(b.keys.add_after(key, std::chrono::microseconds(delay),
                                       priority{static_cast<std::uint8_t>(level)}) ==
                      model.delay(key, level, now + delay * 1000));
        break;
      }
      case 3:
        BOOST_REQUIRE(b.keys.add_rate_limited(key, priority{static_cast<std::uint8_t>(level)}) ==
                      model.fail(key, level, now + 1000));
        break;
      case 4:
        b.keys.forget(key);
        model.forget(key);
        break;
      case 5:
      case 6: {
        auto item = b.keys.try_get();
        const auto expected = model.take();
        BOOST_REQUIRE_EQUAL(bool(item), expected.has_value());
        if (item) {
          BOOST_REQUIRE_EQUAL(item.key(), *expected);
          items.push_back({*expected, std::move(item)});
        }
        break;
      }
      case 7:
      case 8:
        if (items.empty()) break;
        std::swap(items[random() % items.size()], items.back());
        items.back().item.done();
        BOOST_REQUIRE(model.done(items.back().key));
        items.pop_back();
        break;
      default:
        const auto by = static_cast<std::int64_t>(random() % 20) * 1000;
        b.advance(std::chrono::nanoseconds(by));
        model.advance(now += by);
    }
    BOOST_REQUIRE_EQUAL(b.keys.size(), model.size());
    BOOST_REQUIRE_EQUAL(b.keys.queued(), model.queued());
    BOOST_REQUIRE_EQUAL(b.keys.processing(), items.size());
    BOOST_REQUIRE_EQUAL(b.keys.retries(key), model.failures(key));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(work_queue_does_what_a_naive_model_does) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    BOOST_TEST_INFO_SCOPE("seed " << seed);
    compare_with_model(seed);
  }
}

BOOST_AUTO_TEST_CASE(many_keys_come_and_go_without_any_being_lost) {
  bench<std::uint64_t> b;
  constexpr std::uint64_t count = 20'000;
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < count; ++i) {
      BOOST_REQUIRE((b.keys.add(i << 40) == add_result::added));
    }
    for (std::uint64_t i = 0; i < count; i += 2) {
      BOOST_REQUIRE((b.keys.add(i << 40) == add_result::merged));
    }
    const auto taken = b.take_all();
    BOOST_REQUIRE_EQUAL(taken.size(), count);
    for (std::uint64_t i = 0; i < count; ++i) BOOST_REQUIRE_EQUAL(taken[i], i << 40);
    BOOST_REQUIRE_EQUAL(b.keys.size(), 0U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::core_test
