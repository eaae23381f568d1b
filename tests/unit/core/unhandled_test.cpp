#include "rw/core/unhandled.hpp"

#include "rw/core/task_group.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include <memory>
#include <stdexcept>
#include <string>

BOOST_AUTO_TEST_SUITE(unhandled)

namespace asio = boost::asio;
namespace core = rw::core;

namespace {

std::string text;
bool may_end = false;

/// What groups report, while it lives.
struct reports {
  reports() {
    text.clear();
    core::set_unhandled([](std::string_view what, bool may) noexcept {
      text = what;
      may_end = may;
    });
  }
  ~reports() { core::set_unhandled(nullptr); }
};

asio::awaitable<void> fail() {
  throw std::runtime_error("a task failed");
  co_return;
}

struct bad_unwinding {
  std::unique_ptr<core::task_group> group;
  ~bad_unwinding() { group.reset(); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(group_reports_when_its_failure_was_not_joined) {
  const reports observed;
  asio::io_context context;
  auto group = std::make_unique<core::task_group>(context.get_executor());
  group->spawn(fail());
  context.run();
  BOOST_TEST(text == "");
  group.reset();
  BOOST_TEST(text == "a task failed");
  BOOST_TEST(may_end);
}

BOOST_AUTO_TEST_CASE(group_that_outlives_its_context_reports_and_ends_nothing) {
  const reports observed;
  auto context = std::make_unique<asio::io_context>();
  auto group = std::make_unique<core::task_group>(context->get_executor());
  group->spawn(fail());
  context->run();
  context.reset();
  group.reset();
  BOOST_TEST(text == "a task failed");
  BOOST_TEST(!may_end);
}

BOOST_AUTO_TEST_CASE(group_is_silent_when_join_has_thrown) {
  const reports observed;
  asio::io_context context;
  auto group = std::make_unique<core::task_group>(context.get_executor());
  group->spawn(fail());
  BOOST_CHECK_THROW(rw::test::run(context, group->join()), std::runtime_error);
  group.reset();
  BOOST_TEST(text == "");
}

BOOST_AUTO_TEST_CASE(group_is_silent_when_on_failure_took_it) {
  const reports observed;
  asio::io_context context;
  auto group =
      std::make_unique<core::task_group>(context.get_executor(), [](std::exception_ptr) {});
  group->spawn(fail());
  context.run();
  group.reset();
  BOOST_TEST(text == "");
}

BOOST_AUTO_TEST_CASE(report_does_not_end_the_process_when_the_stack_unwinds) {
  const reports observed;
  asio::io_context context;
  auto group = std::make_unique<core::task_group>(context.get_executor());
  group->spawn(fail());
  context.run();
  try {
    const bad_unwinding owner{std::move(group)};
    throw std::logic_error("another one");
  } catch (const std::logic_error&) {
  }
  BOOST_TEST(text == "a task failed");
  BOOST_TEST(!may_end);
}

BOOST_AUTO_TEST_SUITE_END()
