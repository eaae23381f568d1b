#include "rw/core/clock.hpp"

#include "rw/core/task_group.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include "tests/unit/run.hpp"
#include <optional>
#include <thread>

namespace rw::core_test {  // where nothing of the C library has the suite's name
BOOST_AUTO_TEST_SUITE(clock)

namespace asio = boost::asio;
namespace core = rw::core;
using namespace std::chrono_literals;
using rw::test::run;
using rw::test::turn;

namespace {

asio::awaitable<void> wait_once(core::timer* alarm, std::optional<bool>* due) {
  *due = co_await alarm->wait();
}

/// Counts how often the time came; ends at the first wait that ended otherwise.
asio::awaitable<void> tick(core::clock* time, core::timer* alarm, int* ticks) {
  for (;;) {
    alarm->expires_at(time->now() + 1s);
    const bool due = co_await alarm->wait();
    if (!due) co_return;
    ++*ticks;
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(manual_clock_stands_still_and_moves_both_times_alike) {
  core::manual_clock time;
  const auto now = time.now();
  const auto wall = time.wall();
  BOOST_TEST((time.now() == now));
  time.advance(90s);
  BOOST_TEST((time.now() - now == 90s));
  BOOST_TEST((time.wall() - wall == 90s));
}

BOOST_AUTO_TEST_CASE(timer_expires_at_its_time_and_not_before) {
  asio::io_context context;
  core::manual_clock time;
  const auto body = [](asio::any_io_executor executor,
                       core::manual_clock* t) -> asio::awaitable<void> {
    const auto alarm = t->make_timer(executor);
    core::task_group group(executor);
    std::optional<bool> due;
    alarm->expires_at(t->now() + 10s);
    group.spawn(wait_once(alarm.get(), &due));
    co_await turn();
    BOOST_TEST((t->next_alarm() == t->now() + 10s));
    t->advance(9s);
    for (int i = 0; i < 5; ++i) co_await turn();
    BOOST_TEST(!due);
    t->advance(1s);
    co_await group.join();
    BOOST_TEST((due == true));
    BOOST_TEST((t->next_alarm() == core::time_point::max()));
  };
  run(context, body(context.get_executor(), &time));
}

BOOST_AUTO_TEST_CASE(timer_in_the_past_expires_at_once) {
  asio::io_context context;
  core::manual_clock time;
  const auto body = [](asio::any_io_executor executor,
                       core::manual_clock* t) -> asio::awaitable<void> {
    const auto alarm = t->make_timer(executor);
    alarm->expires_at(t->now());
    const bool due = co_await alarm->wait();
    BOOST_TEST(due);
  };
  run(context, body(context.get_executor(), &time));
}

BOOST_AUTO_TEST_CASE(cancel_setting_anew_and_cancellation_end_a_wait_without_the_time_having_come) {
  for (int how = 0; how < 3; ++how) {
    for (const bool manual : {true, false}) {
      asio::io_context context;
      core::manual_clock manual_time;
      core::real_clock real_time;
      core::clock& time = manual ? static_cast<core::clock&>(manual_time) : real_time;
      const auto body = [](asio::any_io_executor executor, core::clock* t,
                           int way) -> asio::awaitable<void> {
        const auto alarm = t->make_timer(executor);
        core::task_group group(executor);
        std::optional<bool> due;
        alarm->expires_at(t->now() + 1h);
        group.spawn(wait_once(alarm.get(), &due));
        co_await turn();
        if (way == 0) alarm->cancel();
        if (way == 1) alarm->expires_at(t->now() + 2h);
        if (way == 2) group.cancel();
        co_await group.join();
        BOOST_TEST((due == false));
      };
      run(context, body(context.get_executor(), &time, how));
    }
  }
}

BOOST_AUTO_TEST_CASE(late_expiry_does_not_end_the_next_wait) {
  asio::io_context context;
  core::manual_clock time;
  const auto body = [](asio::any_io_executor executor,
                       core::manual_clock* t) -> asio::awaitable<void> {
    const auto alarm = t->make_timer(executor);
    core::task_group group(executor);
    int ticks = 0;
    group.spawn(tick(t, alarm.get(), &ticks));
    co_await turn();
    t->advance(1s);
    co_await turn();
    t->advance(100ms);  // the ring of the first is on its way to the waiter
    for (int i = 0; i < 5; ++i) co_await turn();
    BOOST_TEST(ticks == 1);
    t->advance(1s);
    for (int i = 0; i < 5; ++i) co_await turn();
    BOOST_TEST(ticks == 2);
    BOOST_TEST(group.size() == 1U);
    group.cancel();
    co_await group.join();
  };
  run(context, body(context.get_executor(), &time));
}

BOOST_AUTO_TEST_CASE(time_is_moved_by_another_thread_while_a_task_waits) {
  asio::io_context context;
  core::manual_clock time;
  int ticks = 0;
  const auto body = [](asio::any_io_executor executor, core::manual_clock* t,
                       int* number) -> asio::awaitable<void> {
    const auto alarm = t->make_timer(executor);
    core::task_group group(executor);
    group.spawn(tick(t, alarm.get(), number));
    const std::jthread mover([t](std::stop_token stop) {
      while (!stop.stop_requested()) {
        t->advance(500ms);
        std::this_thread::yield();
      }
    });
    const bool came = co_await rw::test::eventually([&] { return *number >= 100; });
    BOOST_TEST(came);
    BOOST_TEST(group.size() == 1U);
    group.cancel();
    co_await group.join();
  };
  run(context, body(context.get_executor(), &time, &ticks));
}

BOOST_AUTO_TEST_CASE(timer_of_the_real_clock_expires_and_takes_the_end_of_time_for_never) {
  asio::io_context context;
  core::real_clock time;
  const auto body = [](asio::any_io_executor executor, core::clock* t) -> asio::awaitable<void> {
    const auto alarm = t->make_timer(executor);
    const auto until = t->now() + 2ms;
    alarm->expires_at(until);
    const bool due = co_await alarm->wait();
    BOOST_TEST(due);
    BOOST_TEST((t->now() >= until));
    core::task_group group(executor);
    std::optional<bool> rang;
    alarm->expires_at(core::time_point::max());
    group.spawn(wait_once(alarm.get(), &rang));
    for (int i = 0; i < 5; ++i) co_await turn();
    BOOST_TEST(!rang);
    group.cancel();
    co_await group.join();
  };
  run(context, body(context.get_executor(), &time));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::core_test
