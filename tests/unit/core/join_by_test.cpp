#include "rw/core/join_by.hpp"

#include "rw/core/wake.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>

BOOST_AUTO_TEST_SUITE(join_by)

namespace asio = boost::asio;
namespace core = rw::core;

namespace {

struct stage {
  asio::io_context context{1};
  core::real_clock clock;
  core::task_group outer{context.get_executor()};
  core::wake never{context.get_executor()};
  bool waits = false;
  bool went_on = false;
};

asio::awaitable<void> wait_for_ever(core::wake* never) {
  co_await never->wait();
}

/// What an app does at its end, with a task that does not end by itself.
asio::awaitable<void> end_in_order(stage* s, std::chrono::milliseconds limit) {
  co_await asio::this_coro::throw_if_cancelled(false);
  core::task_group inner(s->context.get_executor());
  inner.spawn(wait_for_ever(&s->never));
  s->waits = true;
  co_await rw::core::join_by(s->clock, inner, s->clock.now() + limit);
  s->went_on = inner.size() == 0;
}

asio::awaitable<void> join(core::task_group* group) {
  co_await group->join();
}

}  // namespace

BOOST_AUTO_TEST_CASE(join_by_cancels_remaining_tasks_at_the_time_limit) {
  stage s;
  s.outer.spawn(end_in_order(&s, std::chrono::milliseconds(20)));
  asio::co_spawn(s.context, join(&s.outer), [](std::exception_ptr) {});
  s.context.run_for(std::chrono::seconds(20));
  BOOST_TEST(s.went_on);
}

BOOST_AUTO_TEST_CASE(caller_that_is_cancelled_goes_on_when_all_have_ended) {
  stage s;
  s.outer.spawn(end_in_order(&s, std::chrono::minutes(5)));
  while (!s.waits) s.context.run_one();
  s.context.poll();
  s.outer.cancel();
  asio::co_spawn(s.context, join(&s.outer), [](std::exception_ptr) {});
  s.context.run_for(std::chrono::seconds(20));
  BOOST_TEST(s.went_on);
}

BOOST_AUTO_TEST_SUITE_END()
