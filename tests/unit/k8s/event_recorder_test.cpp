#include "rw/k8s/controller/event_recorder.hpp"

#include "rw/core/task_group.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/fake_objects.hpp"
#include "tests/unit/manual_clock.hpp"
#include "tests/unit/run.hpp"
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace rw::k8s_test {
BOOST_AUTO_TEST_SUITE(event_recorder)

namespace asio = boost::asio;
namespace k8s = rw::k8s;
using namespace rw::k8s;
using namespace std::chrono_literals;
using rw::test::run;

namespace {

struct bench {
  explicit bench(event_recorder_options options = {}) {
    options.component = "test";
    recorder.emplace(
        io.get_executor(), api, options,
        event_recorder_environment{time, log, numbers, [] { return ~std::uint64_t{0}; }});
  }
  ~bench() {
    tasks.cancel();
    run(io, tasks.join());
  }

  void start() {
    tasks.spawn(recorder->run());
    settle();
  }
  void settle() {
    for (int i = 0; i < 3; ++i) {
      io.restart();
      io.poll();
    }
  }
  void advance(core::duration by) {
    for (; by > 0s; by -= 1s) {
      time.advance(1s);
      settle();
    }
  }
  double total(const std::string& outcome) {
    const auto text = core::expose(numbers);
    const auto line = "\nrw_events_total{component=\"test\",outcome=\"" + outcome + "\"} ";
    const auto at = text.find(line);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size()));
  }
  /// The only event that is there.
  const boost::json::value& only() const {
    BOOST_REQUIRE(server.all().size() == 1U);
    return server.all().begin()->second;
  }

  asio::io_context io{1};
  core::manual_clock time;
  core::metrics numbers;
  std::string logged;
  core::logger log{core::log_level::debug, [this](std::string_view line) { logged += line; }};
  k8s::test::fake_objects server{io.get_executor()};
  std::shared_ptr<k8s::test::fake_api> api = std::make_shared<k8s::test::fake_api>(server);
  std::optional<k8s::event_recorder> recorder;
  core::task_group tasks{io.get_executor()};
};

const object_reference pod{"v1", "Pod", "ns", "a", "uid", "7"};

}  // namespace

BOOST_AUTO_TEST_CASE(events_are_created_and_then_counted) {
  bench b;
  b.start();
  b.recorder->warning(pod, "Broken", "it broke");
  b.settle();
  BOOST_TEST(find_string(b.only(), {"message"}) == "it broke");
  BOOST_TEST(find_string(b.only(), {"type"}) == "Warning");
  b.recorder->warning(pod, "Broken", "it broke");
  b.settle();
  BOOST_TEST(find(b.only(), {"count"})->as_int64() == 2);
  BOOST_TEST(b.total("created") == 1);
  BOOST_TEST(b.total("repeated") == 1);
}

BOOST_AUTO_TEST_CASE(event_that_the_server_has_forgotten_is_created_again) {
  bench b;
  b.start();
  b.recorder->normal(pod, "Fine", "it works");
  b.settle();
  b.server.erase(key_of(b.only()).name);
  b.recorder->normal(pod, "Fine", "it works");
  b.settle();
  BOOST_TEST(find(b.only(), {"count"})->as_int64() == 2);
}

BOOST_AUTO_TEST_CASE(passing_failure_is_tried_again_and_a_lasting_one_given_up) {
  bench b;
  b.start();
  b.server.fail(errc::unavailable, 3);
  b.recorder->normal(pod, "Fine", "it works");
  b.settle();
  BOOST_TEST(b.total("created") == 0);
  b.advance(10s);  // 1 + 2 + 4 s
  BOOST_TEST(b.total("created") == 1);
  b.server.fail(errc::forbidden);
  b.recorder->normal(pod, "Fine", "it works still");
  b.settle();
  BOOST_TEST(b.total("failed") == 1);
  BOOST_TEST(b.server.all().size() == 1U);
}

BOOST_AUTO_TEST_CASE(delay_that_the_server_asks_for_is_kept_and_logged) {
  bench b;
  b.start();
  b.server.fail(errc::unavailable, 1, 5min);
  b.recorder->normal(pod, "Fine", "it works");
  b.advance(299s);
  BOOST_TEST(b.total("created") == 0);
  BOOST_TEST(b.logged.find("events are delayed by the server's Retry-After") != std::string::npos);
  BOOST_TEST(b.logged.find("\"seconds\":300") != std::string::npos);
  b.advance(2s);
  BOOST_TEST(b.total("created") == 1);
}

BOOST_AUTO_TEST_CASE(tries_are_bounded) {
  bench b({.tries = 2});
  b.start();
  b.server.fail(errc::unavailable, 1000);
  b.recorder->normal(pod, "Fine", "it works");
  b.advance(1min);
  BOOST_TEST(b.total("failed") == 1);
  BOOST_TEST(b.server.requests.size() == 2U);
}

BOOST_AUTO_TEST_CASE(full_queue_drops_and_never_blocks) {
  bench b({.queue = 2});
  b.server.pause();
  b.start();
  for (int i = 0; i < 5; ++i) b.recorder->normal(pod, "Fine", std::to_string(i));
  BOOST_TEST(b.total("dropped") >= 2);
  b.server.resume();
  b.settle();
  BOOST_TEST(b.total("created") + b.total("dropped") == 5);
}

BOOST_AUTO_TEST_CASE(recorder_drops_events_beyond_the_rate_of_one_object) {
  bench b({.limits = {.burst = 2}});
  b.start();
  for (int i = 0; i < 5; ++i) b.recorder->normal(pod, "Fine", "again");
  b.settle();
  BOOST_TEST(b.total("spam") == 3);
}

BOOST_AUTO_TEST_CASE(closed_recorder_writes_queued_notes_and_ends) {
  bench b;
  b.recorder->normal(pod, "Fine", "one");
  b.recorder->normal(pod, "Fine", "two");
  b.recorder->close();
  b.recorder->normal(pod, "Fine", "three");
  b.start();
  BOOST_TEST(b.tasks.size() == 0U);
  BOOST_TEST(b.total("created") == 2);
  BOOST_TEST(b.total("dropped") == 1);
}

BOOST_AUTO_TEST_CASE(cancelled_recorder_counts_remaining_notes_as_abandoned) {
  bench b;
  b.server.pause();
  b.start();
  b.recorder->normal(pod, "Fine", "being written");
  b.settle();
  b.recorder->normal(pod, "Fine", "waits");
  b.tasks.cancel();
  b.settle();
  BOOST_TEST(b.tasks.size() == 0U);
  BOOST_TEST(b.total("abandoned") == 2);
}

BOOST_AUTO_TEST_CASE(notes_may_come_from_any_thread) {
  bench b;
  b.start();
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) b.recorder->normal(pod, "Fine", "from elsewhere");
  });
  other.join();
  b.settle();
  BOOST_TEST(b.total("created") == 1);
  BOOST_TEST(b.total("repeated") == 19);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::k8s_test
