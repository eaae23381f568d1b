#include "rw/core/within.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include "tests/unit/run.hpp"
#include <stdexcept>

namespace rw::core_test {
BOOST_AUTO_TEST_SUITE(within)

namespace asio = boost::asio;
namespace core = rw::core;
using namespace std::chrono_literals;
using rw::test::run;
using rw::test::turn;

namespace {

asio::awaitable<int> wait_for(core::clock* time, core::duration by, bool* ended) {
  const auto executor = co_await asio::this_coro::executor;
  const auto alarm = time->make_timer(executor);
  alarm->expires_at(time->now() + by);
  const bool due = co_await alarm->wait();
  *ended = true;
  co_return due ? 1 : 2;
}

asio::awaitable<int> fail() {
  throw std::runtime_error("broken");
  co_return 0;
}

asio::awaitable<void> race(core::clock* time, core::duration limit, core::duration work,
                           std::optional<int>* result, bool* ended) {
  *result = co_await core::within(*time, time->now() + limit, wait_for(time, work, ended));
}

struct bench {
  asio::io_context io;
  core::manual_clock time;
  core::task_group tasks{io.get_executor()};
  std::optional<int> result;
  bool ended = false;

  void settle() {
    io.restart();
    io.poll();
  }
  ~bench() { run(io, tasks.join()); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(within_returns_the_value_before_the_time_limit) {
  bench b;
  b.tasks.spawn(race(&b.time, 2s, 1s, &b.result, &b.ended));
  b.settle();
  b.time.advance(1s);
  b.settle();
  BOOST_TEST((b.result == 1));
  BOOST_TEST(b.tasks.size() == 0U);
}

BOOST_AUTO_TEST_CASE(within_cancels_and_awaits_at_the_time_limit) {
  bench b;
  b.result = 7;
  b.tasks.spawn(race(&b.time, 1s, 1h, &b.result, &b.ended));
  b.settle();
  BOOST_TEST(!b.ended);
  b.time.advance(1s);
  b.settle();
  BOOST_TEST(!b.result);
  BOOST_TEST(b.ended);
}

BOOST_AUTO_TEST_CASE(cancelled_caller_leaves_nothing_behind) {
  bench b;
  b.tasks.spawn(race(&b.time, 1h, 1h, &b.result, &b.ended));
  b.settle();
  b.tasks.cancel();
  b.settle();
  BOOST_TEST(b.ended);
  BOOST_TEST(b.tasks.size() == 0U);
}

BOOST_AUTO_TEST_CASE(exceptions_pass_through) {
  asio::io_context io;
  core::manual_clock time;
  const auto body = [](core::clock* t) -> asio::awaitable<void> {
    bool thrown = false;
    try {
      co_await core::within(*t, t->now() + 1s, fail());
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    BOOST_TEST(thrown);
  };
  run(io, body(&time));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::core_test
