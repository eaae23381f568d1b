#include <boost/version.hpp>

#include "use.hpp"
#include <rw/core/backoff.hpp>
#include <rw/core/circuit_breaker.hpp>
#include <rw/core/clock.hpp>
#include <rw/core/gather.hpp>
#include <rw/core/task_group.hpp>
#include <rw/core/token_bucket.hpp>
#include <rw/core/unhandled.hpp>
#include <rw/core/wake.hpp>
#include <rw/core/watchdog.hpp>
#include <rw/core/within.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace asio = boost::asio;
namespace core = rw::core;
using namespace std::chrono_literals;

namespace {

asio::awaitable<int> number(int of) {
  co_return of;
}

asio::awaitable<int> never() {
  core::wake end(co_await asio::this_coro::executor);
  const auto cancelled = co_await end.wait();
  co_return cancelled ? 1 : 0;
}

asio::awaitable<void> body() {
  const auto executor = co_await asio::this_coro::executor;
  core::real_clock clock;

  std::vector<asio::awaitable<int>> calls;
  calls.push_back(number(1));
  calls.push_back(number(2));
  const auto numbers = co_await core::gather(std::move(calls));
  EXPECT((numbers == std::vector{1, 2}));
  const auto late = co_await core::within(clock, clock.now() + 1ms, never());
  EXPECT(!late);

  core::watchdog watchdog(clock, executor, 1ms);
  core::wake expired(executor);
  auto deadline = watchdog.watch(executor, [&expired] { expired.set(); });
  deadline.arm(clock.now());
  core::task_group background(executor);
  background.spawn(watchdog.run());
  const auto error = co_await expired.wait();
  EXPECT(!error);
  background.cancel();
  co_await background.join();
}

}  // namespace

void use_tasks() {
  asio::io_context context;
  run(context, body());

#if BOOST_VERSION < 108700
  // A host may call what Asio deprecates, and later versions do without: the libraries have it.
  boost::system::error_code unused;
  context.restart();
  context.run(unused);
  EXPECT(!unused);
#endif

  static std::string text;
  core::set_unhandled([](std::string_view what, bool) noexcept { text = what; });
  core::unhandled(std::make_exception_ptr(std::runtime_error("thrown")), true);
  EXPECT(text == "thrown");
  core::set_unhandled(nullptr);

  core::backoff backoff(1s, 8s, [] { return std::uint64_t{0}; });
  backoff.next();
  EXPECT(backoff.failures() == 1);
  core::token_bucket bucket(1, 1);
  const auto now = core::real_clock().now();
  EXPECT(bucket.try_take(now) && !bucket.try_take(now));
  core::circuit_breaker breaker(1, backoff);
  EXPECT(breaker.fail(breaker.enter(), now, 1s) && !breaker.passable(now));
}
