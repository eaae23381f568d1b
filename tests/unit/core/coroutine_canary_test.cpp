// Fails under a compiler that compiles common shapes of coroutines into wrong code, as g++ 12 does:
// a `co_await` in the condition of a statement, in a coroutine that declares no variable, skips the
// statement's body; and a capturing lambda, or a braced aggregate, in the same statement as a
// `co_await` is destroyed twice. Stands alone, so that a compiler can be tried with this file only:
//   c++ -std=c++20 -DRW_CANARY_ALONE tests/unit/core/coroutine_canary_test.cpp && ./a.out

#include <coroutine>
#include <exception>
#include <utility>

#ifndef RW_CANARY_ALONE
#include <boost/test/unit_test.hpp>
#endif

BOOST_AUTO_TEST_SUITE(coroutine_canary)

namespace {

/// The least that can be awaited and resumed: the body runs when it is awaited, and its awaiter
/// goes on when it ends.
template <class T>
class task {
 public:
  struct promise_type {
    T value{};
    std::coroutine_handle<> awaiter = std::noop_coroutine();

    task get_return_object() {
      return task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct back {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
          return ended.promise().awaiter;
        }
        void await_resume() noexcept {}
      };
      return back{};
    }
    void return_value(T result) { value = std::move(result); }
    void unhandled_exception() { std::terminate(); }
  };

  explicit task(std::coroutine_handle<promise_type> body) : body_(body) {}
  task(task&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  task& operator=(task&&) = delete;
  ~task() {
    if (body_) body_.destroy();
  }

  bool await_ready() noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiter) noexcept {
    body_.promise().awaiter = awaiter;
    return body_;
  }
  T await_resume() { return std::move(body_.promise().value); }

  /// For the outermost.
  T run() {
    body_.resume();
    return std::move(body_.promise().value);
  }

 private:
  std::coroutine_handle<promise_type> body_;
};

int bodies = 0;
int turns = 0;

task<bool> yes() {
  co_return true;
}
task<bool> three_times() {
  co_return turns++ < 3;
}
task<int> two() {
  co_return 2;
}

task<bool> in_if() {
  if (co_await yes()) ++bodies;
  co_return true;
}

task<bool> in_while() {
  while (co_await three_times()) ++bodies;
  co_return true;
}

task<bool> in_for() {
  for (; co_await three_times();) ++bodies;
  co_return true;
}

task<bool> in_switch() {
  switch (co_await two()) {
    case 2:
      ++bodies;
      break;
    default:
      break;
  }
  co_return true;
}

int run_bodies(task<bool> (*shape)()) {
  bodies = turns = 0;
  shape().run();
  return bodies;
}

int alive = 0;
int destroyed = 0;

struct counted {
  counted() { ++alive; }
  counted(const counted&) { ++alive; }
  counted(counted&&) noexcept { ++alive; }
  counted& operator=(const counted&) = default;
  ~counted() {
    --alive;
    ++destroyed;
  }
};

template <class Function>
task<bool> call(Function function) {
  function();
  co_return true;
}

struct aggregate {
  counted first;
  int second;
};

task<bool> take(aggregate) {
  co_return true;
}

task<bool> lambda_beside_await() {
  counted captured;
  co_return co_await call([captured] { static_cast<void>(captured); });
}

task<bool> aggregate_beside_await() {
  co_return co_await take({counted(), 1});
}

/// What is left alive: below zero if something was destroyed that was not made.
int balance(task<bool> (*shape)()) {
  alive = destroyed = 0;
  {
    auto one = shape();
    one.run();
  }
  return destroyed > 0 ? alive : 99;
}

}  // namespace

#ifdef RW_CANARY_ALONE

int main() {
  const bool conditions = run_bodies(in_if) == 1 && run_bodies(in_while) == 3 &&
                          run_bodies(in_for) == 3 && run_bodies(in_switch) == 1;
  const bool temporaries =
      balance(lambda_beside_await) == 0 && balance(aggregate_beside_await) == 0;
  return (conditions ? 0 : 1) | (temporaries ? 0 : 2);
}

#else

BOOST_AUTO_TEST_CASE(await_in_a_condition_runs_the_body) {
  BOOST_TEST(run_bodies(in_if) == 1);
  BOOST_TEST(run_bodies(in_while) == 3);
  BOOST_TEST(run_bodies(in_for) == 3);
  BOOST_TEST(run_bodies(in_switch) == 1);
}

BOOST_AUTO_TEST_CASE(temporary_beside_an_await_is_destroyed_once) {
  BOOST_TEST(balance(lambda_beside_await) == 0);
  BOOST_TEST(balance(aggregate_beside_await) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

#endif
