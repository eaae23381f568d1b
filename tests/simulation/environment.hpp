#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/watchdog.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "tests/unit/k8s/chance.hpp"
#include "tests/unit/manual_clock.hpp"
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rw::simulation {

using core::duration;
using core::time_point;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// What happened, and a hash of it: two runs of a seed must agree in it.
class trace {
 public:
  void note(time_point now, std::string_view what);
  /// For reading only: no part of the hash, and kept only if `verbose`.
  void log(time_point now, std::string_view line);

  std::uint64_t hash() const noexcept { return hash_; }
  const std::vector<std::string>& lines() const noexcept { return lines_; }

  bool verbose = false;

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325ULL;
  std::vector<std::string> lines_;
};

/// One thread, one simulated clock, one source of chance: what all parties of a seed share.
class environment {
 public:
  environment(std::uint64_t seed, bool verbose);
  ~environment();
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;

  boost::asio::any_io_executor executor() { return context.get_executor(); }
  time_point now() const { return clock.now(); }
  void note(std::string_view what) { events.note(now(), what); }

  /// Waits in simulated time.
  boost::asio::awaitable<void> sleep(duration length);

  /// Runs all that is ready, then moves the clock on to the next timer, or to `end`. Returns false
  /// at the end.
  bool step(time_point end);
  /// Cancels the tasks, and runs until they have ended.
  void finish(core::task_group& group);
  /// Runs all that is ready.
  void settle();

  boost::asio::io_context context{1};
  core::manual_clock clock;
  k8s::test::chance chance;
  trace events;
  core::logger log;
  core::watchdog watchdog;
  core::task_group tasks;  ///< ended last

 private:
  boost::asio::awaitable<void> join(core::task_group* group, bool* ended);
};

/// Source of randomness for parties that make their own: seeded by the seed under way.
core::random_source make_seeded_source();

}  // namespace rw::simulation
