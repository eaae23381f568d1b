#include "rw/k8s/controller/leader_election.hpp"

#include "rw/core/task_group.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/fake_objects.hpp"
#include "tests/unit/manual_clock.hpp"
#include "tests/unit/run.hpp"
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace rw::k8s {
BOOST_AUTO_TEST_SUITE(leader_election)

namespace asio = boost::asio;
using namespace std::chrono_literals;
using rw::test::run;

namespace {

/// A reactor that runs until it is cancelled, and then takes `farewell` to end.
asio::awaitable<void> react(core::clock* time, core::duration farewell, int* running) {
  const auto executor = co_await asio::this_coro::executor;
  const auto alarm = time->make_timer(executor);
  ++*running;
  alarm->expires_at(core::time_point::max());
  co_await alarm->wait();
  co_await asio::this_coro::reset_cancellation_state();
  if (farewell > 0s) {
    alarm->expires_at(time->now() + farewell);
    co_await alarm->wait();
  }
  --*running;
}

/// One that goes on for `farewell` however often it is cancelled.
asio::awaitable<void> insist(core::clock* time, core::duration farewell, int* running) {
  const auto executor = co_await asio::this_coro::executor;
  const auto alarm = time->make_timer(executor);
  ++*running;
  alarm->expires_at(core::time_point::max());
  co_await alarm->wait();
  co_await asio::this_coro::throw_if_cancelled(false);
  const auto end = time->now() + farewell;
  while (time->now() < end) {
    alarm->expires_at(end);
    co_await alarm->wait();
  }
  --*running;
}

asio::awaitable<void> fail(core::clock* time) {
  const auto executor = co_await asio::this_coro::executor;
  const auto alarm = time->make_timer(executor);
  alarm->expires_at(time->now() + 1s);
  co_await alarm->wait();
  throw std::runtime_error("the reactor is broken");
}

asio::awaitable<void> return_at_once() {
  co_return;
}

struct bench {
  void settle() {
    for (int i = 0; i < 3; ++i) {
      io.restart();
      io.poll();
    }
  }
  /// In small steps, as time goes.
  void advance(core::duration by, core::duration step = 500ms) {
    for (; by > 0s; by -= step) {
      time.advance(std::min(by, step));
      settle();
    }
  }

  asio::io_context io{1};
  core::manual_clock time;
  core::metrics numbers;
  core::logger log{core::log_level::debug,
                   [this](std::string_view line) { lines.emplace_back(line); }};
  std::vector<std::string> lines;
  test::fake_objects server{io.get_executor()};
};

/// One process.
struct process {
  process(bench& in, const std::string& identity, core::duration farewell = 0s)
      : b(in),
        api(std::make_shared<test::fake_api>(in.server)),
        elector(in.io.get_executor(), api, {.ns = "ns", .name = "lock", .identity = identity},
                {[this, farewell] { return react(&b.time, farewell, &running); }}, writes,
                {in.time, in.log, in.numbers, [] { return 0; }}),
        tasks(in.io.get_executor()) {
    tasks.spawn(elector.run());
    b.settle();
  }
  ~process() {
    tasks.cancel();
    for (int i = 0; i < 100 && tasks.size() > 0; ++i) b.advance(1s);
    run(b.io, tasks.join());
  }

  bench& b;
  std::shared_ptr<test::fake_api> api;
  fence writes{b.time};
  int running = 0;
  leader_elector elector;
  core::task_group tasks;
};

}  // namespace

BOOST_AUTO_TEST_CASE(elector_runs_its_reactors_while_the_other_waits) {
  bench b;
  process first(b, "first");
  process second(b, "second");
  BOOST_TEST(first.elector.leading());
  BOOST_TEST(first.running == 1);
  BOOST_TEST(first.writes.open());
  BOOST_TEST(!second.elector.leading());
  BOOST_TEST(!second.writes.open());
  BOOST_TEST(second.elector.holder() == "first");
  b.advance(10min, 1s);
  BOOST_TEST(first.elector.leading());
  BOOST_TEST(first.writes.open());
  BOOST_TEST(first.running == 1);
  BOOST_TEST(!second.elector.leading());
}

BOOST_AUTO_TEST_CASE(leader_that_ends_gives_the_lease_back_after_its_reactors_have_ended) {
  bench b;
  auto first = std::make_unique<process>(b, "first", 20s);
  process second(b, "second");
  first->tasks.cancel();
  // Longer than the lease, which is renewed meanwhile.
  b.advance(19s);
  BOOST_TEST(first->running == 1);
  BOOST_TEST(first->writes.open());
  BOOST_TEST(!second.elector.leading());
  b.advance(2s);
  BOOST_TEST(first->running == 0);
  BOOST_TEST(!first->writes.open());
  BOOST_TEST(first->tasks.size() == 0U);
  b.advance(3s);
  BOOST_TEST(second.elector.leading());
  const auto spec = read_lease(*b.server.find("lock"));
  BOOST_TEST(spec.holder == "second");
  BOOST_TEST(spec.transitions == 1);
}

BOOST_AUTO_TEST_CASE(leader_that_is_cut_off_has_stopped_before_another_leads) {
  for (const auto farewell : {0s, 4s, 60s}) {
    bench b;
    process first(b, "first", farewell);
    process second(b, "second");
    first.api->cut = true;
    bool open_with_two = false;
    for (int i = 0; i < 400; ++i) {
      b.advance(100ms, 100ms);
      open_with_two = open_with_two || (first.writes.open() && second.elector.leading());
      if (farewell <= 4s) {
        BOOST_REQUIRE(first.running == 0 || !second.elector.leading());
      }
    }
    BOOST_TEST(!open_with_two);
    BOOST_TEST(second.elector.leading());
    BOOST_TEST(!first.elector.leading());
    BOOST_TEST(core::expose(b.numbers).find("rw_leader_election_lost_total{name=\"lock\"} 1") !=
               std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(leader_with_hanging_requests_stops_before_another_leads) {
  bench b;
  process first(b, "first");
  b.server.pause();
  b.advance(9s);
  BOOST_TEST(first.running == 1);
  b.advance(3s);
  BOOST_TEST(first.running == 0);
  BOOST_TEST(!first.writes.open());
  b.server.resume();
  b.advance(5s);
  BOOST_TEST(first.elector.leading());  // nobody else wanted it
  BOOST_TEST(first.running == 1);
}

BOOST_AUTO_TEST_CASE(renewal_that_arrived_without_its_response_is_no_loss) {
  bench b;
  process first(b, "first");
  b.advance(1s);
  b.server.pause(true);
  b.advance(6500ms);  // the renewal is done on the server, and given up here after five seconds
  b.server.resume();
  b.advance(1min);
  BOOST_TEST(first.elector.leading());
  BOOST_TEST(core::expose(b.numbers).find("rw_leader_election_lost_total{name=\"lock\"} 0") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(process_that_was_stopped_finds_its_fence_shut_before_it_runs_again) {
  bench b;
  process first(b, "first");
  BOOST_TEST(first.writes.open());
  b.time.advance(1h);  // and nothing runs
  BOOST_TEST(!first.writes.open());
  BOOST_TEST(first.running == 1);
  b.settle();
  BOOST_TEST(first.running == 0);
}

BOOST_AUTO_TEST_CASE(leader_that_lost_leads_again_later_with_new_reactors) {
  bench b;
  process first(b, "first");
  first.api->cut = true;
  b.advance(11s);
  BOOST_TEST(first.running == 0);
  first.api->cut = false;
  b.advance(5s);
  BOOST_TEST(first.elector.leading());
  BOOST_TEST(first.running == 1);
  BOOST_TEST(first.writes.open());
}

BOOST_AUTO_TEST_CASE(broken_reactor_ends_the_elector_after_the_lease_was_given_back) {
  bench b;
  auto api = std::make_shared<test::fake_api>(b.server);
  fence writes(b.time);
  int running = 0;
  leader_elector elector(
      b.io.get_executor(), api, {.ns = "ns", .name = "lock", .identity = "me"},
      {[&] { return fail(&b.time); }, [&] { return react(&b.time, 0s, &running); }}, writes,
      {b.time, b.log, b.numbers, [] { return 0; }});
  std::string thrown;
  core::task_group tasks(b.io.get_executor(), [&](std::exception_ptr failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      thrown = e.what();
    }
  });
  tasks.spawn(elector.run());
  b.settle();
  BOOST_TEST(running == 1);
  b.advance(2s);
  BOOST_TEST(running == 0);
  BOOST_TEST(thrown == "the reactor is broken");
  BOOST_TEST(read_lease(*b.server.find("lock")).holder.empty());
  BOOST_TEST(!writes.open());
  run(b.io, tasks.join());
}

BOOST_AUTO_TEST_CASE(returning_reactor_does_not_end_the_elector) {
  bench b;
  auto api = std::make_shared<test::fake_api>(b.server);
  fence writes(b.time);
  leader_elector elector(b.io.get_executor(), api, {.ns = "ns", .name = "lock", .identity = "me"},
                         {return_at_once}, writes, {b.time, b.log, b.numbers, [] { return 0; }});
  core::task_group tasks(b.io.get_executor());
  tasks.spawn(elector.run());
  b.advance(1min);
  BOOST_TEST(elector.leading());
  tasks.cancel();
  b.settle();
  BOOST_TEST(tasks.size() == 0U);
  BOOST_TEST(read_lease(*b.server.find("lock")).holder.empty());
  run(b.io, tasks.join());
}

BOOST_AUTO_TEST_CASE(follower_ends_at_once_even_while_a_request_hangs) {
  bench b;
  b.server.pause();
  process first(b, "first");
  first.tasks.cancel();
  b.settle();
  BOOST_TEST(first.tasks.size() == 0U);
}

BOOST_AUTO_TEST_CASE(elector_that_is_cancelled_while_it_stops_its_reactors_awaits_them) {
  bench b;
  process first(b, "first", 20s);
  first.api->cut = true;
  b.advance(11s);
  BOOST_TEST(!first.elector.leading());
  first.tasks.cancel();
  b.settle();
  BOOST_TEST(first.running == 1);
  BOOST_TEST(first.tasks.size() == 1U);
  b.advance(20s);
  BOOST_TEST(first.running == 0);
  BOOST_TEST(first.tasks.size() == 0U);
}

BOOST_AUTO_TEST_CASE(leader_that_is_cancelled_twice_writes_no_more_and_gives_the_lease_back_later) {
  bench b;
  fence writes(b.time);
  int running = 0;
  leader_elector elector(b.io.get_executor(), std::make_shared<test::fake_api>(b.server),
                         {.ns = "ns", .name = "lock", .identity = "first"},
                         {[&] { return insist(&b.time, 60s, &running); }}, writes,
                         {b.time, b.log, b.numbers, [] { return 0; }});
  core::task_group tasks(b.io.get_executor());
  tasks.spawn(elector.run());
  b.settle();
  process second(b, "second");
  tasks.cancel();
  b.advance(20s);
  BOOST_TEST(running == 1);
  BOOST_TEST(writes.open());
  tasks.cancel();
  b.settle();
  BOOST_TEST(running == 1);
  BOOST_TEST(!writes.open());
  // The lease is kept, and renewed, for as long as a reactor runs; then it need not run out.
  b.advance(39s);
  BOOST_TEST(running == 1);
  BOOST_TEST(!writes.open());
  BOOST_TEST(!second.elector.leading());
  b.advance(4s);
  BOOST_TEST(running == 0);
  BOOST_TEST(tasks.size() == 0U);
  BOOST_TEST(second.elector.leading());
  run(b.io, tasks.join());
}

BOOST_AUTO_TEST_CASE(two_electors_never_lead_at_once_under_failures) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    bench b;
    unsigned random = seed;
    const auto next = [&] { return (random = random * 1664525 + 1013904223) >> 16; };
    process first(b, "first");
    process second(b, "second");
    for (int i = 0; i < 1000; ++i) {
      switch (next() % 12) {
        case 0:
          first.api->cut = !first.api->cut;
          break;
        case 1:
          second.api->cut = !second.api->cut;
          break;
        case 2:
          b.server.fail(next() % 2 == 0 ? errc::conflict : errc::unreachable);
          break;
        case 3:
          b.server.pause(next() % 2 == 0);
          break;
        case 4:
        case 5:
          b.server.resume();
          break;
        default:
          break;
      }
      b.advance(std::chrono::milliseconds(next() % 3000), 100ms);
      BOOST_REQUIRE(!(first.writes.open() && second.writes.open()));
      BOOST_REQUIRE(first.running + second.running <= 1);
    }
    b.server.resume();
    first.api->cut = second.api->cut = false;
    b.advance(1min);
    BOOST_TEST(first.running + second.running == 1);
  }
}

BOOST_AUTO_TEST_CASE(identities_differ) {
  auto random = core::make_random_source();
  const auto one = make_election_identity(random);
  BOOST_TEST(one != make_election_identity(random));
  BOOST_TEST(one.size() > 17U);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::k8s
