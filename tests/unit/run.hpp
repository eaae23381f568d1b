#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

namespace rw::test {

/// How long a test may take before it counts as hanging.
inline constexpr std::chrono::seconds patience{20};

/// Runs `context` until `body` has ended. Fails the test if it does not end in time.
inline void run(boost::asio::io_context& context, boost::asio::awaitable<void> body,
                std::chrono::seconds within = patience) {
  struct outcome {
    std::exception_ptr failure;
    bool done = false;
  };
  const auto result = std::make_shared<outcome>();  // the body may end after the deadline
  boost::asio::co_spawn(context, std::move(body), [result](std::exception_ptr thrown) {
    *result = {std::move(thrown), true};
  });
  const auto end = std::chrono::steady_clock::now() + within;
  context.restart();
  while (!result->done && context.run_one_until(end) > 0) {
  }
  if (!result->done) throw std::runtime_error("the test's coroutine did not end in time");
  if (result->failure) std::rethrow_exception(result->failure);
}

/// A test case whose body is a coroutine in an environment (with a member `context`), which is made
/// of the further arguments, and which the body has as the pointer `env`.
#define RW_COROUTINE_TEST(name, environment, ...)             \
  boost::asio::awaitable<void> name##_body(environment* env); \
  BOOST_AUTO_TEST_CASE(name) {                                \
    environment test_environment{__VA_ARGS__};                \
    auto body = name##_body(&test_environment);               \
    rw::test::run(test_environment.context, std::move(body)); \
  }                                                           \
  boost::asio::awaitable<void> name##_body(environment* env)

/// Lets everything else that is ready on the executor have its turn.
inline boost::asio::awaitable<void> turn() {
  const auto executor = co_await boost::asio::this_coro::executor;
  co_await boost::asio::post(executor, boost::asio::use_awaitable);
}

/// Waits for a condition, with the deadline of all tests. False if it did not come true.
inline boost::asio::awaitable<bool> eventually(std::function<bool()> condition) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) co_return false;
    co_await turn();
  }
  co_return true;
}

}  // namespace rw::test
