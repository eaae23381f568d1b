#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include <memory>
#include <vector>

namespace rw::core_test {
BOOST_AUTO_TEST_SUITE(wake_list)

namespace asio = boost::asio;
namespace core = rw::core;

namespace {

asio::awaitable<void> wait(core::wake_list* in, int number, std::vector<int>* woken) {
  const bool was_woken = co_await in->wait();
  woken->push_back(was_woken ? number : -number);
}

void settle(asio::io_context& io) {
  io.restart();
  io.poll();
}

}  // namespace

BOOST_AUTO_TEST_CASE(wake_list_wakes_the_oldest_or_all) {
  asio::io_context io;
  core::wake_list list(io.get_executor());
  core::task_group tasks(io.get_executor());
  std::vector<int> woken;
  list.wake_one();  // nobody is there; it is not kept
  for (int i = 1; i <= 4; ++i) tasks.spawn(wait(&list, i, &woken));
  settle(io);
  BOOST_TEST(woken.empty());
  list.wake_one();
  settle(io);
  BOOST_TEST(woken == (std::vector<int>{1}), boost::test_tools::per_element());
  list.wake_all();
  BOOST_TEST(list.empty());
  settle(io);
  BOOST_TEST(woken == (std::vector<int>{1, 2, 3, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(wake_for_a_cancelled_waiter_goes_to_the_next) {
  asio::io_context io;
  core::wake_list list(io.get_executor());
  core::task_group cancelled(io.get_executor());
  core::task_group others(io.get_executor());
  std::vector<int> woken;
  cancelled.spawn(wait(&list, 1, &woken));
  settle(io);
  others.spawn(wait(&list, 2, &woken));
  others.spawn(wait(&list, 3, &woken));
  settle(io);
  cancelled.cancel();
  list.wake_one();
  settle(io);
  BOOST_TEST(woken == (std::vector<int>{-1, 2}), boost::test_tools::per_element());
  others.cancel();
  settle(io);
  BOOST_TEST(woken == (std::vector<int>{-1, 2, -3}), boost::test_tools::per_element());
  BOOST_TEST(list.empty());
}

BOOST_AUTO_TEST_CASE(list_and_waiters_may_go_in_any_order_with_their_context) {
  std::vector<int> woken;
  {
    asio::io_context io;
    core::wake_list list(io.get_executor());
    core::task_group tasks(io.get_executor());
    tasks.spawn(wait(&list, 1, &woken));
    settle(io);
    tasks.cancel();
    settle(io);
  }
  {
    core::task_group* tasks = nullptr;
    std::unique_ptr<core::task_group> owner;
    auto io = std::make_unique<asio::io_context>();
    {
      core::wake_list list(io->get_executor());
      owner = std::make_unique<core::task_group>(io->get_executor());
      tasks = owner.get();
      tasks->spawn(wait(&list, 2, &woken));
      settle(*io);
    }
    io.reset();
  }
  BOOST_TEST(woken == (std::vector<int>{-1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::core_test
