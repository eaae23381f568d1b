#include "rw/core/task_group.hpp"

#include "rw/core/clock.hpp"
#include "rw/core/wake.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

BOOST_AUTO_TEST_SUITE(task_group)

namespace asio = boost::asio;
namespace core = rw::core;
using rw::test::run;
using rw::test::turn;

namespace {

asio::awaitable<void> increment(int* count) {
  ++*count;
  co_return;
}

asio::awaitable<void> increment_after(core::wake* signal, int* count) {
  co_await signal->wait();
  ++*count;
}

asio::awaitable<void> fail(std::string with) {
  co_await turn();
  throw std::runtime_error(with);
}

/// Sets `ended` however it ends.
asio::awaitable<void> wait_for_ever(bool* ended) {
  struct mark {
    bool* ended;
    ~mark() { *ended = true; }
  };
  const mark at_end{ended};
  core::wake never(co_await asio::this_coro::executor);
  co_await never.wait();
}

/// A task that needs more than a moment after its cancellation.
asio::awaitable<void> tidy_up_slowly(bool* tidied) {
  core::wake never(co_await asio::this_coro::executor);
  co_await never.wait();
  co_await asio::this_coro::throw_if_cancelled(false);
  for (int i = 0; i < 10; ++i) co_await turn();
  *tidied = true;
}

asio::awaitable<std::string> message_of(asio::awaitable<void> task) {
  try {
    co_await std::move(task);
  } catch (const std::exception& e) {
    co_return e.what();
  }
  co_return "";
}

asio::awaitable<void> join_all(core::task_group* group) {
  co_await group->join();
}

}  // namespace

BOOST_AUTO_TEST_CASE(join_waits_for_every_task) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    core::task_group group(executor);
    core::wake signal(executor);
    int count = 0;
    group.spawn(increment_after(&signal, &count));
    group.spawn(increment(&count));
    BOOST_TEST(group.size() > 0U);
    core::task_group outer(executor);
    bool joined = false;
    const auto join = [](core::task_group* inner, bool* flag) -> asio::awaitable<void> {
      co_await inner->join();
      *flag = true;
    };
    outer.spawn(join(&group, &joined));
    for (int i = 0; i < 5; ++i) co_await turn();
    BOOST_TEST(!joined);
    signal.set();
    co_await outer.join();
    BOOST_TEST(joined);
    BOOST_TEST(count == 2);
    BOOST_TEST(group.size() == 0U);
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(empty_group_joins_at_once) {
  asio::io_context context;
  core::task_group group(context.get_executor());
  run(context, group.join());
}

BOOST_AUTO_TEST_CASE(join_returns_when_all_tasks_ended_before) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    core::task_group group(executor);
    int count = 0;
    for (int i = 0; i < 3; ++i) group.spawn(increment(&count));
    for (int i = 0; i < 10; ++i) co_await turn();
    group.spawn(increment(&count));
    co_await group.join();
    BOOST_TEST(count == 4);
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(cancel_ends_the_tasks_and_rejects_new_tasks) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    core::task_group group(executor);
    bool first = false;
    bool second = false;
    int count = 0;
    group.spawn(wait_for_ever(&first));
    group.spawn(wait_for_ever(&second));
    co_await turn();
    group.cancel();
    group.spawn(increment(&count));
    co_await group.join();
    BOOST_TEST(first);
    BOOST_TEST(second);
    BOOST_TEST(count == 0);
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(first_failure_is_kept_and_cancels_the_others) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    core::task_group group(executor);
    bool ended = false;
    group.spawn(wait_for_ever(&ended));
    group.spawn(fail("first"));
    group.spawn(fail("second"));
    const auto message = co_await message_of(group.join());
    BOOST_TEST(message == "first");
    BOOST_TEST(ended);
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(failure_handler_lets_the_other_tasks_live) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    int failures = 0;
    core::task_group group(executor, [&](std::exception_ptr) { ++failures; });
    core::wake signal(executor);
    int count = 0;
    group.spawn(increment_after(&signal, &count));
    group.spawn(fail("one"));
    group.spawn(fail("another"));
    for (int i = 0; i < 10; ++i) co_await turn();
    BOOST_TEST(failures == 2);
    BOOST_TEST(group.size() == 1U);
    signal.set();
    co_await group.join();
    BOOST_TEST(count == 1);
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(join_that_is_cancelled_cancels_the_tasks_and_still_waits_for_them) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    core::task_group inner(executor);
    bool tidied = false;
    inner.spawn(tidy_up_slowly(&tidied));
    core::task_group outer(executor);
    outer.spawn(join_all(&inner));
    co_await turn();
    outer.cancel();
    co_await outer.join();
    BOOST_TEST(tidied);
    BOOST_TEST(inner.size() == 0U);
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(tasks_may_spawn_tasks) {
  asio::io_context context;
  const auto body = [](asio::any_io_executor executor) -> asio::awaitable<void> {
    core::task_group group(executor);
    int count = 0;
    const auto parent = [](core::task_group* in, int* number) -> asio::awaitable<void> {
      for (int i = 0; i < 3; ++i) {
        in->spawn(increment(number));
        co_await turn();
      }
    };
    group.spawn(parent(&group, &count));
    co_await group.join();
    BOOST_TEST(count == 3);
  };
  run(context, body(context.get_executor()));
}

BOOST_AUTO_TEST_CASE(tasks_are_spawned_from_several_threads_and_all_joined) {
  constexpr int threads = 3;
  constexpr int tasks = 200;
  asio::thread_pool pool(2);
  auto strand = asio::make_strand(pool.get_executor());
  core::task_group group(strand);
  std::atomic<int> count = 0;
  const auto task = [](std::atomic<int>* number) -> asio::awaitable<void> {
    co_await turn();
    number->fetch_add(1);
  };
  {
    std::vector<std::jthread> hosts;
    for (int t = 0; t < threads; ++t) {
      hosts.emplace_back([&] {
        for (int i = 0; i < tasks; ++i) {
          if (i % 2 == 0) {
            group.spawn(task(&count));
          } else {
            group.spawn(asio::make_strand(pool.get_executor()), task(&count));
          }
        }
      });
    }
  }
  auto joined = asio::co_spawn(strand, group.join(), asio::use_future);
  BOOST_REQUIRE(joined.wait_for(rw::test::patience) == std::future_status::ready);
  joined.get();
  BOOST_TEST(count.load() == threads * tasks);
  pool.join();
}

BOOST_AUTO_TEST_CASE(no_task_that_is_spawned_while_another_thread_cancels_goes_on_for_ever) {
  for (int round = 0; round < 100; ++round) {
    asio::thread_pool pool(2);
    auto strand = asio::make_strand(pool.get_executor());
    core::task_group group(strand);
    const auto task = []() -> asio::awaitable<void> {
      core::wake never(co_await asio::this_coro::executor);
      co_await never.wait();
    };
    {
      std::jthread spawner([&] {
        for (int i = 0; i < 20; ++i) group.spawn(asio::make_strand(pool.get_executor()), task());
      });
      std::jthread canceller([&] { group.cancel(); });
    }
    auto joined = asio::co_spawn(strand, group.join(), asio::use_future);
    BOOST_REQUIRE(joined.wait_for(rw::test::patience) == std::future_status::ready);
    pool.join();
  }
}

BOOST_AUTO_TEST_CASE(tasks_that_go_with_their_context_are_no_longer_the_groups) {
  bool ended = false;
  auto context = std::make_unique<asio::io_context>();
  core::task_group group(context->get_executor());
  group.spawn(wait_for_ever(&ended));
  context->poll();
  BOOST_TEST(group.size() == 1U);
  context.reset();
  BOOST_TEST(ended);
  BOOST_TEST(group.size() == 0U);
}

BOOST_AUTO_TEST_CASE(coroutine_that_joins_goes_with_its_context) {
  bool ended = false;
  bool parent_ended = false;
  auto context = std::make_unique<asio::io_context>();
  const auto parent = [](bool* child, bool* self) -> asio::awaitable<void> {
    struct mark {
      bool* ended;
      ~mark() { *ended = true; }
    };
    const mark at_end{self};
    core::task_group group(co_await asio::this_coro::executor);
    group.spawn(wait_for_ever(child));
    co_await group.join();
  };
  core::task_group group(context->get_executor());
  group.spawn(parent(&ended, &parent_ended));
  context->poll();
  context.reset();
  BOOST_TEST(ended);
  BOOST_TEST(parent_ended);
}

BOOST_AUTO_TEST_SUITE_END()
