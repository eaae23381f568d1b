// `run` of the tests themselves, and a body that outlasts its deadline.

#include "tests/unit/run.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>

BOOST_AUTO_TEST_SUITE(run)

namespace asio = boost::asio;

namespace {

asio::awaitable<void> turns(const bool* goes_on) {
  while (*goes_on) co_await rw::test::turn();
}

/// Where the frame of `rw::test::run` was is something else.
[[gnu::noinline]] bool ends_without_writing(asio::io_context& context) {
  std::array<volatile unsigned char, 512> frame{};
  for (auto& each : frame) each = 0xA5;
  context.restart();
  context.run();
  return std::ranges::all_of(frame, [](unsigned char each) { return each == 0xA5; });
}

[[gnu::noinline]] void run_too_long(asio::io_context& context, const bool* goes_on) {
  rw::test::run(context, turns(goes_on), std::chrono::seconds(0));
}

}  // namespace

BOOST_AUTO_TEST_CASE(body_that_ends_after_its_deadline_writes_nowhere) {
  asio::io_context context;
  bool goes_on = true;
  BOOST_CHECK_THROW(run_too_long(context, &goes_on), std::runtime_error);
  goes_on = false;
  BOOST_TEST(ends_without_writing(context));
}

BOOST_AUTO_TEST_SUITE_END()
