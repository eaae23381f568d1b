#pragma once

#include "rw/reactors/observation/observation.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include "tests/simulation/history.hpp"
#include "tests/simulation/network.hpp"
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

namespace rw::simulation {

/// The webhook process of a runtime, wired as in `reactors/cli/webhook_pipeline.cpp` but without
/// TLS, and the disk that its journal is on.
class runtime {
 public:
  static constexpr std::uint16_t gateway_port = 443;

  struct options {
    observation::observer_options observer = {};
    std::size_t objects = 50000;  ///< of a Watcher
    std::size_t set_capacity = 32768;
    duration max_age = std::chrono::hours(1);
    bool http2 = false;  ///< to the gateway
  };
  /// What is left on the disk after a process: with a torn end a write was under way; older or
  /// truncated, the node has ended, too; empty in a new pod.
  enum class disk : std::uint8_t { intact, torn, older, truncated, empty };

  runtime(environment& in, simulated_network& net, history& told, known_managers managers,
          options how);
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  void start();
  /// Ends the process as SIGKILL does: nothing that it does from now on leaves it.
  void crash(disk left);
  /// Ends it as SIGTERM does.
  void stop(disk left);
  bool up() const noexcept { return running_ != nullptr; }

  /// To be called at each step: notes what explains events or the lack of them, and holds the
  /// process against its bounds.
  void inspect();
  /// Events of this process that nothing makes up for, by its own report.
  std::uint64_t lost() const;
  /// What waits in it; empty: nothing.
  std::string waiting() const;

 private:
  struct process;
  struct version {
    time_point at;
    std::string bytes;
  };

  void remember_journal();
  void leave(disk left);

  environment& in_;
  simulated_network& network_;
  history& history_;
  const options options_;
  managers_in_use managers_;
  const std::size_t watches_;
  const std::string folder_;
  const std::string journal_;
  std::deque<version> journals_;  ///< newest last
  double written_ = 0;
  double repeats_ = 0;      ///< events that may repeat others, so far
  bool repeating_ = false;  ///< some of them may be under way
  unsigned starts_ = 0;
  unsigned boots_ = 0;  ///< of the node
  std::unique_ptr<process> running_;
};

}  // namespace rw::simulation
