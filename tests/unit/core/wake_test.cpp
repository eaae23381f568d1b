#include "rw/core/wake.hpp"

#include "rw/core/task_group.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include <memory>
#include <optional>

BOOST_AUTO_TEST_SUITE(wake)

namespace asio = boost::asio;
namespace core = rw::core;
using boost::system::error_code;
using rw::test::run;
using rw::test::turn;

namespace {

asio::awaitable<void> wait_and_count(core::wake* signal, int* woken) {
  for (;;) {
    const auto error = co_await signal->wait();
    if (error) co_return;
    ++*woken;
  }
}

asio::awaitable<void> wait_once(core::wake* signal, std::optional<error_code>* outcome) {
  *outcome = co_await signal->wait();
}

}  // namespace

BOOST_AUTO_TEST_CASE(set_before_the_wait_is_kept) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    core::wake signal(executor);
    signal.set();
    BOOST_TEST(signal.is_set());
    const auto error = co_await signal.wait();
    BOOST_TEST(!error);
    BOOST_TEST(!signal.is_set());
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(several_sets_before_the_wait_are_one) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    core::wake signal(executor);
    core::task_group group(executor);
    int woken = 0;
    for (int i = 0; i < 3; ++i) signal.set();
    group.spawn(wait_and_count(&signal, &woken));
    for (int i = 0; i < 10; ++i) co_await turn();
    BOOST_TEST(woken == 1);
    group.cancel();
    co_await group.join();
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(set_wakes_a_wait_that_is_under_way_exactly_once) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    core::wake signal(executor);
    core::task_group group(executor);
    int woken = 0;
    group.spawn(wait_and_count(&signal, &woken));
    for (int i = 1; i <= 5; ++i) {
      for (int t = 0; t < 3; ++t) co_await turn();
      signal.set();
      BOOST_TEST(!signal.is_set());
      for (int t = 0; t < 3; ++t) co_await turn();
      BOOST_TEST(woken == i);
    }
    group.cancel();
    co_await group.join();
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(waiter_is_resumed_by_the_executor_and_not_inside_set) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    core::wake signal(executor);
    core::task_group group(executor);
    std::optional<error_code> outcome;
    group.spawn(wait_once(&signal, &outcome));
    co_await turn();
    signal.set();
    BOOST_TEST(!outcome);
    co_await group.join();
    BOOST_REQUIRE(outcome);
    BOOST_TEST(!*outcome);
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(set_while_the_woken_one_is_on_its_way_is_kept_for_its_next_wait) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    core::wake signal(executor);
    core::task_group group(executor);
    int woken = 0;
    group.spawn(wait_and_count(&signal, &woken));
    co_await turn();
    signal.set();
    signal.set();
    for (int i = 0; i < 10; ++i) co_await turn();
    BOOST_TEST(woken == 2);
    group.cancel();
    co_await group.join();
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(cancelled_wait_ends_with_operation_aborted_and_consumes_nothing) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    core::wake signal(executor);
    core::task_group group(executor);
    std::optional<error_code> outcome;
    group.spawn(wait_once(&signal, &outcome));
    co_await turn();
    group.cancel();
    co_await group.join();
    BOOST_REQUIRE(outcome);
    BOOST_TEST(*outcome == asio::error::operation_aborted);
    signal.set();
    BOOST_TEST(signal.is_set());
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(set_before_the_cancellation_wins) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    core::wake signal(executor);
    core::task_group group(executor);
    std::optional<error_code> outcome;
    group.spawn(wait_once(&signal, &outcome));
    co_await turn();
    signal.set();
    group.cancel();
    co_await group.join();
    BOOST_REQUIRE(outcome);
    BOOST_TEST(!*outcome);
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(wait_in_its_own_coroutines_frame_goes_with_the_context) {
  const auto alive = std::make_shared<int>(0);
  auto context = std::make_unique<asio::io_context>();
  const auto body = [](std::shared_ptr<int>) -> asio::awaitable<void> {
    core::wake never(co_await asio::this_coro::executor);
    co_await never.wait();
  };
  core::task_group group(context->get_executor());
  group.spawn(body(alive));
  group.spawn(asio::make_strand(*context), body(alive));
  context->poll();
  BOOST_TEST(alive.use_count() > 1);
  context.reset();
  BOOST_TEST(alive.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(wake_may_go_after_its_context_and_before) {
  std::optional<core::wake> signal;
  {
    asio::io_context context;
    signal.emplace(context.get_executor());
    core::wake early(context.get_executor());
    early.set();
  }
  signal.reset();
}

BOOST_AUTO_TEST_SUITE_END()
