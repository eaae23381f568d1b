#include "rw/k8s/controller/controller.hpp"

#include "rw/core/task_group.hpp"
#include "rw/k8s/cache/informer.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/scripted_source.hpp"
#include "tests/unit/manual_clock.hpp"
#include "tests/unit/run.hpp"
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace rw::k8s_test {
BOOST_AUTO_TEST_SUITE(controller)

namespace asio = boost::asio;
namespace core = rw::core;
namespace k8s = rw::k8s;
using namespace std::chrono_literals;
using k8s::object_key;
using k8s::reconcile_result;
using rw::test::run;

namespace {

/// Does what the test says, and remembers what it was called for.
class scripted final : public k8s::reconciler {
 public:
  explicit scripted(core::clock& time) : time_(time) {}

  asio::awaitable<reconcile_result> reconcile(object_key key) override {
    const auto name = to_string(key);
    calls.push_back(name);
    at_once = std::max(at_once, ++running);
    BOOST_TEST(++by_key[name] == 1, "one key twice at once");
    const on_exit ended{*this, name};
    if (takes > 0s) {
      const auto executor = co_await asio::this_coro::executor;
      const auto alarm = time_.make_timer(executor);
      alarm->expires_at(time_.now() + takes);
      const bool due = co_await alarm->wait();
      if (!due) ++cancelled;
      if (!due) throw boost::system::system_error(asio::error::operation_aborted);
    }
    if (throws) throw std::runtime_error("a bug");
    co_return result;
  }

  reconcile_result result;
  core::duration takes = 0s;
  bool throws = false;

  std::vector<std::string> calls;
  std::map<std::string, int> by_key;
  int running = 0;
  int at_once = 0;
  int cancelled = 0;

 private:
  struct on_exit {
    scripted& in;
    std::string name;
    ~on_exit() {
      --in.running;
      --in.by_key[name];
    }
  };

  core::clock& time_;
};

struct bench {
  explicit bench(k8s::controller_options with = {}, bool brings_watchdog = true)
      : options(std::move(with)), brings_watchdog_(brings_watchdog) {
    options.name = "test";
    keepers.spawn(watchdog.run());
  }
  ~bench() {
    tasks.cancel();
    for (int i = 0; i < 100 && tasks.size() > 0; ++i) advance(1s);
    keepers.cancel();
    run(io, tasks.join());
    run(io, keepers.join());
  }

  k8s::controller& start() {
    make();
    tasks.spawn(under_test->run());
    settle();
    return *under_test;
  }
  k8s::controller& make() {
    if (!under_test) {
      under_test.emplace(
          io.get_executor(), options, target,
          k8s::controller_environment{
              time,
              brings_watchdog_ ? core::optional_watchdog(watchdog) : core::optional_watchdog(), log,
              numbers, [] { return std::uint64_t{0}; }});
    }
    return *under_test;
  }

  void settle() {
    for (int i = 0; i < 3; ++i) {
      io.restart();
      io.poll();
    }
  }
  void advance(core::duration by, core::duration step = 100ms) {
    for (; by > 0s; by -= step) {
      time.advance(std::min(by, step));
      settle();
    }
  }

  double metric(const std::string& series) {
    const auto text = core::expose(numbers);
    const auto line = '\n' + series + ' ';
    const auto at = text.find(line);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size()));
  }
  double total(const std::string& result) {
    return metric("controller_runtime_reconcile_total{controller=\"test\",result=\"" + result +
                  "\"}");
  }
  double number(const std::string& name) { return metric(name + "{controller=\"test\"}"); }
  long lines(const std::string& with) const {
    return std::ranges::count_if(
        logged, [&](const std::string& line) { return line.find(with) != std::string::npos; });
  }
  std::vector<std::string> calls() { return std::exchange(target.calls, {}); }

  asio::io_context io{1};
  core::manual_clock time;
  core::metrics numbers;
  std::vector<std::string> logged;
  core::logger log{core::log_level::debug,
                   [this](std::string_view line) { logged.emplace_back(line); }};
  core::watchdog watchdog{time, io.get_executor()};
  scripted target{time};
  k8s::controller_options options;
  bool brings_watchdog_ = true;
  core::task_group keepers{io.get_executor()};
  core::task_group tasks{io.get_executor()};
  std::optional<k8s::controller> under_test;
};

using names = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(keys_from_a_channel_are_reconciled) {
  bench b;
  const auto events = std::make_shared<core::channel<std::string>>(4);
  b.make().watch<std::string>(events, [](const std::string& name, k8s::controller::keys& keys) {
    keys.push_back({"ns", name});
    if (name == "two") keys.push_back({"", "more"});
  });
  events->try_send(std::string("one"));
  b.start();
  events->try_send(std::string("two"));
  b.settle();
  BOOST_TEST(b.calls() == (names{"ns/one", "ns/two", "more"}), boost::test_tools::per_element());
  BOOST_TEST(b.total("success") == 3);
  BOOST_TEST(b.number("controller_runtime_max_concurrent_reconciles") == 4);
  BOOST_TEST(b.number("controller_runtime_active_workers") == 0);
  events->close();
  b.settle();
  BOOST_TEST(b.tasks.size() == 1U);  // a source that ends does not end the controller
}

BOOST_AUTO_TEST_CASE(reconciles_run_at_once_up_to_a_bound_and_never_two_of_one_key) {
  bench b({.concurrent = 3});
  b.target.takes = 1s;
  auto& controller = b.start();
  for (int i = 0; i < 10; ++i) controller.add({"", "k" + std::to_string(i)});
  b.settle();
  BOOST_TEST(b.target.running == 3);
  BOOST_TEST(b.number("controller_runtime_active_workers") == 3);
  controller.add({"", "k0"});  // is being reconciled
  b.advance(10s);
  BOOST_TEST(b.target.at_once == 3);
  BOOST_TEST(b.target.calls.size() == 11U);
  BOOST_TEST(b.number("controller_runtime_reconcile_time_seconds_count") == 11);
}

BOOST_AUTO_TEST_CASE(key_is_looked_at_again_after_the_time_it_asked_for) {
  bench b;
  b.target.result = reconcile_result::requeue_after(1min);
  b.start().add({"", "a"});
  b.settle();
  BOOST_TEST(b.total("requeue_after") == 1);
  b.advance(59s, 1s);
  BOOST_TEST(b.target.calls.size() == 1U);
  b.advance(1s);
  BOOST_TEST(b.target.calls.size() == 2U);
}

BOOST_AUTO_TEST_CASE(error_is_tried_again_with_backoff_and_reported_once) {
  bench b;
  b.target.result = reconcile_result::error("no gateway");
  b.start().add({"ns", "a"});
  b.advance(2min);
  BOOST_TEST(b.target.calls.size() > 10U);
  BOOST_TEST(b.target.calls.size() < 20U);  // 5 ms, 10 ms, ... about a minute
  BOOST_TEST(b.lines("reconcile failed") == 1);
  BOOST_TEST(b.under_test->failing() == 1U);
  BOOST_TEST(b.number("rw_controller_failing_keys") == 1);
  b.target.result = reconcile_result::error("another reason");
  b.advance(10min);
  BOOST_TEST(b.lines("reconcile failed") == 2);
  const auto tries = b.target.calls.size();
  BOOST_TEST(b.total("error") == static_cast<double>(tries));
  BOOST_TEST(b.number("controller_runtime_reconcile_errors_total") == static_cast<double>(tries));
  b.target.result = reconcile_result::done();
  b.advance(20min, 1s);
  BOOST_TEST(b.lines("reconcile succeeds again") == 1);
  BOOST_TEST(b.lines("\"failures\":" + std::to_string(tries)) == 1);
  BOOST_TEST(b.under_test->failing() == 0U);
  BOOST_TEST(b.number("rw_controller_failing_keys") == 0);
}

BOOST_AUTO_TEST_CASE(error_line_has_the_delay_that_the_server_asked_for) {
  bench b;
  b.target.result = reconcile_result::error(rw::k8s::failure{
      .code = rw::k8s::errc::unavailable, .status = 503, .message = "busy", .retry_after = 300s});
  b.start().add({"ns", "a"});
  b.advance(4min, 1s);
  BOOST_TEST(b.target.calls.size() == 1U);
  BOOST_TEST(b.lines("\"retry_after_s\":300") == 1);
  b.advance(2min, 1s);
  BOOST_TEST(b.target.calls.size() == 2U);
}

BOOST_AUTO_TEST_CASE(errors_with_the_same_reason_are_one_state) {
  bench b;
  b.start().add({"ns", "a"});
  for (int i = 0; i < 200; ++i) {
    b.target.result = reconcile_result::error("try " + std::to_string(i), "unreachable");
    b.advance(1s);
  }
  BOOST_TEST(b.lines("reconcile failed") == 1);
  for (int i = 0; i < 200; ++i) {
    b.target.result = reconcile_result::error("try " + std::to_string(i));
    b.advance(1s);
  }
  BOOST_TEST(b.lines("reconcile failed") <= 4);  // at most once a minute
}

BOOST_AUTO_TEST_CASE(failed_request_is_not_repeated_before_its_time) {
  bench b;
  b.target.result = reconcile_result::error(
      k8s::failure{k8s::make_error_code(k8s::errc::too_many_requests), 429, {}, "slow down", 30s});
  b.start().add({"ns", "a"});
  b.advance(29s);
  BOOST_TEST(b.target.calls.size() == 1U);
  b.advance(2s);
  BOOST_TEST(b.target.calls.size() == 2U);
}

BOOST_AUTO_TEST_CASE(terminal_error_waits_for_a_change) {
  bench b;
  b.target.result = reconcile_result::terminal("the spec is wrong");
  b.start().add({"ns", "a"});
  b.advance(10min, 1s);
  BOOST_TEST(b.target.calls.size() == 1U);
  BOOST_TEST(b.number("controller_runtime_terminal_reconcile_errors_total") == 1);
  b.under_test->add({"ns", "a"});
  b.settle();
  BOOST_TEST(b.target.calls.size() == 2U);
  BOOST_TEST(b.lines("not repeated until something changes") == 1);
}

BOOST_AUTO_TEST_CASE(exception_is_counted_and_the_key_tried_again) {
  bench b;
  b.target.throws = true;
  b.start().add({"ns", "a"});
  b.advance(1s);
  BOOST_TEST(b.target.calls.size() > 3U);
  BOOST_TEST(b.number("controller_runtime_reconcile_panics_total") ==
             static_cast<double>(b.target.calls.size()));
  BOOST_TEST(b.lines("exception: a bug") == 1);
  b.target.throws = false;
  b.advance(10s);
  BOOST_TEST(b.total("success") == 1);
}

BOOST_AUTO_TEST_CASE(reconcile_that_takes_too_long_is_cancelled_and_tried_again) {
  bench b({.concurrent = 1, .reconcile_limit = 10s});
  b.target.takes = 1h;
  auto& controller = b.start();
  controller.add({"ns", "a"});
  b.advance(9s);
  BOOST_TEST(b.target.cancelled == 0);
  b.advance(2s);
  BOOST_TEST(b.target.cancelled == 1);
  BOOST_TEST(b.number("rw_controller_reconcile_timeouts_total") == 1);
  BOOST_TEST(b.lines("within its time limit") == 1);
  BOOST_TEST(b.target.calls.size() == 2U);
  b.target.takes = 0s;
  b.advance(20s);  // the second try is cancelled, the third is well
  BOOST_TEST(b.total("success") == 1);
}

BOOST_AUTO_TEST_CASE(controller_without_a_watchdog_limits_reconciles) {
  bench b({.concurrent = 1, .reconcile_limit = 10s}, false);
  b.target.takes = 1h;
  b.start().add({"ns", "a"});
  b.advance(9s);
  BOOST_TEST(b.target.cancelled == 0);
  b.advance(2s);
  BOOST_TEST(b.target.cancelled == 1);
}

BOOST_AUTO_TEST_CASE(source_waits_where_there_is_no_room_and_loses_nothing) {
  bench b({.concurrent = 1, .queue = {.capacity = 2}});
  const auto numbers = std::make_shared<core::channel<int>>(8);
  b.make().watch<int>(numbers, [](const int& number, k8s::controller::keys& keys) {
    keys.push_back({"", std::to_string(number)});
  });
  b.target.takes = 1s;
  b.start();
  int sent = 0;
  names expected;
  for (int i = 0; i < 1000 && expected.size() < 20; ++i) {
    while (sent < 20 && numbers->try_send(int{sent}) == core::send_status::sent) ++sent;
    b.advance(1s);
    if (b.target.calls.size() == 20U) break;
  }
  b.advance(2s);
  for (int i = 0; i < 20; ++i) expected.push_back(std::to_string(i));
  BOOST_TEST(b.calls() == expected, boost::test_tools::per_element());
  BOOST_TEST(b.lines("the work queue is full") >= 1);
}

BOOST_AUTO_TEST_CASE(shutdown_awaits_running_reconciles_and_starts_no_queued_ones) {
  bench b({.concurrent = 1, .shutdown = 10s});
  b.target.takes = 5s;
  auto& controller = b.start();
  controller.add({"", "runs"});
  controller.add({"", "waits"});
  b.settle();
  b.tasks.cancel();
  b.advance(4s);
  BOOST_TEST(b.tasks.size() == 1U);
  b.advance(2s);
  BOOST_TEST(b.tasks.size() == 0U);
  BOOST_TEST(b.calls() == names{"runs"}, boost::test_tools::per_element());
  BOOST_TEST(b.total("success") == 1);
  BOOST_TEST(b.target.cancelled == 0);
}

BOOST_AUTO_TEST_CASE(reconciles_that_do_not_end_in_time_are_cancelled_at_the_end) {
  bench b({.concurrent = 2, .shutdown = 10s});
  b.target.takes = 1h;
  auto& controller = b.start();
  controller.add({"", "a"});
  controller.add({"", "b"});
  b.settle();
  b.tasks.cancel();
  b.advance(9s);
  BOOST_TEST(b.tasks.size() == 1U);
  b.advance(2s);
  BOOST_TEST(b.tasks.size() == 0U);
  BOOST_TEST(b.target.cancelled == 2);
  BOOST_TEST(b.total("error") == 0);  // it is nobody's error
}

BOOST_AUTO_TEST_CASE(second_cancellation_ends_the_controller_all_the_same) {
  bench b({.shutdown = 10s});
  b.target.takes = 1h;
  b.start().add({"", "a"});
  b.settle();
  b.tasks.cancel();
  b.advance(1s);
  b.tasks.cancel();
  b.advance(11s);
  BOOST_TEST(b.tasks.size() == 0U);
  BOOST_TEST(b.target.running == 0);
}

BOOST_AUTO_TEST_CASE(no_reconcile_begins_before_the_informers_are_synced) {
  bench b;
  const auto source = std::make_shared<k8s::test::scripted_source>(b.io.get_executor());
  k8s::informer informer(source, k8s::test::configmaps(), {.streaming_list = false},
                         {b.time, b.log, b.numbers, [] { return std::uint64_t{0}; }});
  core::task_group informers(b.io.get_executor());
  informers.spawn(informer.run());
  auto& controller = b.make();
  controller.watch(informer);
  b.start();
  controller.add({"", "early"});
  b.advance(31s, 1s);
  BOOST_TEST(b.target.calls.empty());
  BOOST_TEST(b.lines("controller waits for an informer") == 1);
  source->answer(
      k8s::test::list("5", {k8s::test::configmap("a", "3"), k8s::test::configmap("b", "4")}));
  b.settle();
  BOOST_TEST(b.lines("controller started") == 1);
  auto called = b.calls();
  std::ranges::sort(called);
  BOOST_TEST(called == (names{"default/a", "default/b", "early"}),
             boost::test_tools::per_element());
  b.advance(1s);
  source->send(k8s::test::event("DELETED", k8s::test::configmap("a", "6")));
  b.advance(1s);
  BOOST_TEST(b.calls() == names{"default/a"}, boost::test_tools::per_element());
  b.tasks.cancel();
  b.settle();
  BOOST_TEST(b.tasks.size() == 0U);
  informers.cancel();
  run(b.io, informers.join());
}

BOOST_AUTO_TEST_CASE(informer_that_ended_before_it_was_synced_ends_the_controller) {
  bench b;
  const auto source = std::make_shared<k8s::test::scripted_source>(b.io.get_executor());
  k8s::informer informer(source, k8s::test::configmaps(), {.streaming_list = false},
                         {b.time, b.log, b.numbers, [] { return std::uint64_t{0}; }});
  core::task_group informers(b.io.get_executor());
  informers.spawn(informer.run());
  b.make().watch(informer);
  b.start();
  informers.cancel();
  b.settle();
  BOOST_TEST(b.tasks.size() == 0U);
  BOOST_TEST(b.lines("controller does not start") == 1);
  run(b.io, informers.join());
}

BOOST_AUTO_TEST_CASE(exception_of_a_mapping_ends_the_controller_and_is_rethrown) {
  bench b;
  const auto events = std::make_shared<core::channel<int>>(4);
  b.make().watch<int>(events,
                      [](const int&, k8s::controller::keys&) { throw std::logic_error("a bug"); });
  std::string thrown;
  core::task_group tasks(b.io.get_executor(), [&](std::exception_ptr failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      thrown = e.what();
    }
  });
  tasks.spawn(b.under_test->run());
  b.settle();
  events->try_send(1);
  b.settle();
  BOOST_TEST(thrown == "a bug");
  run(b.io, tasks.join());
}

BOOST_AUTO_TEST_CASE(options_that_cannot_be_are_refused) {
  bench b;
  BOOST_CHECK_THROW(k8s::controller(b.io.get_executor(), {}, b.target,
                                    {b.time, b.watchdog, b.log, b.numbers, {}}),
                    std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::k8s_test
