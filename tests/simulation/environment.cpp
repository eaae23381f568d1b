#include "tests/simulation/environment.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <stdexcept>

namespace rw::simulation {
namespace {

namespace asio = boost::asio;

constexpr std::size_t most_steps = 1'000'000;  ///< without time going by

/// Of the seed under way: a client makes its source by a plain function.
std::uint64_t next_source = 0;

std::uint64_t seed_under_way = 0;

/// Nothing can be ended in order any more.
[[noreturn]] void give_up() {
  std::cout << "seed " << seed_under_way << " failed:\n  the parties do not come to rest\n"
            << std::flush;
  std::_Exit(1);
}

std::string stamped(time_point now, std::string_view what) {
  const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch() -
                                                                            std::chrono::hours(1));
  return std::to_string(passed.count()) + " us  " + std::string(what);
}

}  // namespace

void trace::note(time_point now, std::string_view what) {
  lines_.push_back(stamped(now, what));
  // FNV-1a.
  for (const char each : lines_.back()) {
    hash_ = (hash_ ^ static_cast<unsigned char>(each)) * 0x100000001B3ULL;
  }
}

void trace::log(time_point now, std::string_view line) {
  if (verbose) lines_.push_back(stamped(now, line.substr(0, line.find_last_not_of('\n') + 1)));
}

core::random_source make_seeded_source() {
  return k8s::test::chance(next_source++).source();
}

environment::environment(std::uint64_t seed, bool verbose)
    : chance(seed),
      log(verbose ? core::log_level::info : core::log_level::error,
          [this](std::string_view line) { events.log(now(), line); }),
      watchdog(clock, context.get_executor(), milliseconds(250)),
      tasks(context.get_executor()) {
  events.verbose = verbose;
  next_source = seed << 20;
  seed_under_way = seed;
  tasks.spawn(watchdog.run());
}

environment::~environment() {
  finish(tasks);
}

asio::awaitable<void> environment::sleep(duration length) {
  const auto timer = clock.make_timer(executor());
  timer->expires_at(now() + length);
  const bool due = co_await timer->wait();
  if (!due) throw boost::system::system_error(asio::error::operation_aborted);
}

void environment::settle() {
  std::size_t steps = 0;
  while (context.poll_one() > 0) {
    if (++steps > most_steps) give_up();
  }
  context.restart();
}

bool environment::step(time_point end) {
  settle();
  const auto next = std::min(clock.next_alarm(), end);
  if (next > now()) clock.advance(next - now());
  if (now() < end) return true;
  settle();
  return false;
}

asio::awaitable<void> environment::join(core::task_group* group, bool* ended) {
  co_await group->join();
  *ended = true;
}

void environment::finish(core::task_group& group) {
  bool ended = false;
  group.cancel();
  asio::co_spawn(context, join(&group, &ended), asio::detached);
  const auto end = now() + std::chrono::minutes(10);
  settle();
  while (!ended && step(end)) {
  }
  if (!ended) throw std::logic_error("tasks do not end when they are cancelled");
}

}  // namespace rw::simulation
