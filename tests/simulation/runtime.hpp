#pragma once

#include "reactors/observation/observation.hpp"
#include "reactors/shared/managers_file.hpp"

#include "tests/simulation/history.hpp"
#include "tests/simulation/network.hpp"
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

namespace rw::simulation {

/// The webhook process of a runtime, wired as in `reactors/cli/webhook_pipeline.cpp` but without
/// TLS, and the disk that its ledger is on.
class runtime {
 public:
  static constexpr std::uint16_t gateway_port = 443;

  struct options {
    observation::observer_options observer = {};
    std::size_t set_capacity = 32768;
    duration max_age = std::chrono::hours(1);
    bool http2 = false;  ///< to the gateway
  };
  /// What is left on the disk after a process.
  enum class disk : std::uint8_t { intact, older, truncated, empty };

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
  /// Nothing of it waits.
  bool is_idle() const;
  /// Holds the counters of events against each other.
  void check_counters();

 private:
  struct process;
  struct version {
    time_point at;
    std::string bytes;
  };

  void remember_ledger();
  void leave(disk left);

  environment& in_;
  simulated_network& network_;
  history& history_;
  const options options_;
  managers_in_use managers_;
  const std::size_t watches_;
  const std::string folder_;
  const std::string ledger_;
  std::deque<version> ledgers_;  ///< newest last
  double written_ = 0;
  double repeats_ = 0;      ///< events that may repeat others, so far
  double reviews_ = 0;      ///< of these, events of reviews
  bool reviewing_ = false;  ///< some of those may be under way
  bool repeating_ = false;  ///< some of them may be under way
  std::unique_ptr<process> running_;
};

}  // namespace rw::simulation
