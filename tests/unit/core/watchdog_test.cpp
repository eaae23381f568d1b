#include "rw/core/watchdog.hpp"

#include "rw/core/task_group.hpp"

#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include "tests/unit/run.hpp"
#include <atomic>
#include <functional>
#include <memory>
#include <thread>

BOOST_AUTO_TEST_SUITE(watchdog)

namespace asio = boost::asio;
namespace core = rw::core;
using namespace std::chrono_literals;
using rw::test::turn;

namespace {

/// A watchdog that runs on a clock that stands still.
struct kennel {
  asio::io_context context;
  core::manual_clock time;
  core::watchdog dog{time, context.get_executor(), 100ms};

  /// Moves time on by ticks, each seen by the watchdog.
  asio::awaitable<void> pass(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      const bool asleep = co_await rw::test::eventually(
          [this] { return time.next_alarm() != core::time_point::max(); });
      BOOST_TEST(asleep);
      const auto before = dog.now();
      time.advance(100ms);
      const bool looked = co_await rw::test::eventually([&] { return dog.now() != before; });
      BOOST_TEST(looked);
      co_await turn();
    }
  }

  void run(std::function<asio::awaitable<void>()> body) {
    const auto with_dog =
        [](kennel* self, std::function<asio::awaitable<void>()> inner) -> asio::awaitable<void> {
      core::task_group group(self->context.get_executor());
      group.spawn(self->dog.run());
      co_await inner();
      group.cancel();
      co_await group.join();
    };
    rw::test::run(context, with_dog(this, std::move(body)));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(deadline_that_passes_calls_its_action_once) {
  kennel k;
  k.run([&]() -> asio::awaitable<void> {
    int calls = 0;
    auto limit = k.dog.watch(k.context.get_executor(), [&] { ++calls; });
    limit.arm(k.time.now() + 250ms);
    co_await k.pass(2);
    BOOST_TEST(calls == 0);
    co_await k.pass(1);
    BOOST_TEST(calls == 1);
    co_await k.pass(5);
    BOOST_TEST(calls == 1);
    limit.arm(k.time.now() + 100ms);
    co_await k.pass(1);
    BOOST_TEST(calls == 2);
  });
}

BOOST_AUTO_TEST_CASE(deadline_before_all_times_expires_at_the_next_tick) {
  kennel k;
  k.run([&]() -> asio::awaitable<void> {
    int calls = 0;
    auto limit = k.dog.watch(k.context.get_executor(), [&] { ++calls; });
    limit.arm(core::time_point::min());
    co_await k.pass(1);
    BOOST_TEST(calls == 1);
    auto other = k.dog.watch(k.context.get_executor(), [] {});  // has no place in common with it
    limit.arm(k.time.now() + 100ms);
    other.arm(k.time.now() + 500ms);
    co_await k.pass(1);
    BOOST_TEST(calls == 2);
    other.disarm();
  });
}

BOOST_AUTO_TEST_CASE(deadline_that_is_moved_or_disarmed_in_time_does_nothing) {
  kennel k;
  k.run([&]() -> asio::awaitable<void> {
    int calls = 0;
    auto limit = k.dog.watch(k.context.get_executor(), [&] { ++calls; });
    for (int i = 0; i < 5; ++i) {
      limit.arm(k.dog.now() + 250ms);
      co_await k.pass(2);
    }
    limit.disarm();
    co_await k.pass(5);
    BOOST_TEST(calls == 0);
  });
}

BOOST_AUTO_TEST_CASE(deadline_of_a_destroyed_owner_is_dropped) {
  kennel k;
  k.run([&]() -> asio::awaitable<void> {
    int calls = 0;
    auto limit = k.dog.watch(k.context.get_executor(), [&] { ++calls; });
    limit.arm(k.time.now() + 100ms);
    limit = core::deadline();
    co_await k.pass(3);
    BOOST_TEST(calls == 0);
  });
}

BOOST_AUTO_TEST_CASE(deadline_has_no_part_in_those_that_were_before_it_in_its_place) {
  kennel k;
  k.run([&]() -> asio::awaitable<void> {
    int before = 0;
    int after = 0;
    auto limit = k.dog.watch(k.context.get_executor(), [&] { ++before; });
    auto other = k.dog.watch(k.context.get_executor(), [&] { ++before; });
    limit.arm(k.time.now() + 250ms);
    limit = core::deadline();
    co_await k.pass(1);
    limit = k.dog.watch(k.context.get_executor(), [&] { ++after; });
    co_await k.pass(3);
    BOOST_TEST(after == 0);  // it is not armed
    limit.arm(k.time.now() + 100ms);
    co_await k.pass(2);
    BOOST_TEST(after == 1);
    BOOST_TEST(before == 0);
    other.disarm();
  });
}

BOOST_AUTO_TEST_CASE(deadline_may_outlive_its_watchdog) {
  asio::io_context context;
  core::manual_clock time;
  auto dog = std::make_unique<core::watchdog>(time, context.get_executor());
  auto limit = dog->watch(context.get_executor(), [] {});
  dog.reset();
  limit.arm(time.now());
  limit.disarm();
}

BOOST_AUTO_TEST_CASE(action_is_not_called_when_its_owner_is_destroyed_after_the_expiry) {
  kennel k;
  k.run([&]() -> asio::awaitable<void> {
    int calls = 0;
    asio::io_context elsewhere;
    {
      auto limit = k.dog.watch(elsewhere.get_executor(), [&] { ++calls; });
      limit.arm(k.time.now());
      co_await k.pass(1);
    }
    BOOST_TEST(elsewhere.poll() == 1U);
    BOOST_TEST(calls == 0);
  });
}

BOOST_AUTO_TEST_CASE(deadline_that_is_disarmed_or_moved_after_its_expiry_does_not_call_its_action) {
  for (const bool moved : {false, true}) {
    kennel k;
    k.run([&]() -> asio::awaitable<void> {
      int calls = 0;
      asio::io_context elsewhere;
      auto limit = k.dog.watch(elsewhere.get_executor(), [&] { ++calls; });
      limit.arm(k.time.now());
      co_await k.pass(1);
      if (moved) {
        limit.arm(k.time.now() + 200ms);
      } else {
        limit.disarm();
      }
      BOOST_TEST(elsewhere.poll() == 1U);
      BOOST_TEST(calls == 0);
      co_await k.pass(3);
      elsewhere.restart();
      elsewhere.poll();
      BOOST_TEST(calls == (moved ? 1 : 0));
    });
  }
}

BOOST_AUTO_TEST_CASE(time_is_that_of_the_last_tick) {
  kennel k;
  k.run([&]() -> asio::awaitable<void> {
    const auto start = k.dog.now();
    BOOST_TEST((start == k.time.now()));
    co_await k.pass(1);
    k.time.advance(50ms);
    BOOST_TEST((k.dog.now() == start + 100ms));
  });
}

BOOST_AUTO_TEST_CASE(watchdog_ticks_once_a_second_while_the_time_is_not_read) {
  kennel k;
  k.run([&]() -> asio::awaitable<void> {
    int calls = 0;
    auto limit = k.dog.watch(k.context.get_executor(), [&] { ++calls; });
    limit.arm(k.time.now() + 2500ms);
    const auto begun = k.time.now();
    int ticks = 0;
    const auto asleep = [&] { return k.time.next_alarm() != core::time_point::max(); };
    for (; calls == 0 && ticks < 100; ++ticks) {
      co_await rw::test::eventually(asleep);
      k.time.advance(k.time.next_alarm() - k.time.now());
      co_await rw::test::eventually(asleep);
      co_await turn();
    }
    BOOST_TEST(ticks == 4);  // the first one is a short one
    BOOST_TEST((k.time.now() == begun + 2500ms));
    k.time.advance(500ms);
    BOOST_TEST((k.dog.now() == k.time.now()));  // and it ticks again
    co_await rw::test::eventually([&] { return k.time.next_alarm() == k.time.now() + 100ms; });
    BOOST_TEST((k.time.next_alarm() == k.time.now() + 100ms));
  });
}

BOOST_AUTO_TEST_CASE(deadlines_are_made_and_moved_by_other_threads_while_it_looks) {
  kennel k;
  k.run([&]() -> asio::awaitable<void> {
    std::atomic<int> calls = 0;
    const std::jthread owner([&](std::stop_token stop) {
      asio::io_context own;
      while (!stop.stop_requested()) {
        auto limit = k.dog.watch(own.get_executor(), [&] { ++calls; });
        limit.arm(k.dog.now());
        own.restart();
        own.poll();
        std::this_thread::yield();
      }
    });
    co_await k.pass(50);
  });
}

BOOST_AUTO_TEST_SUITE_END()
