#pragma once

#include "rw/reactors/observation/observation.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include "tests/simulation/history.hpp"
#include "tests/simulation/network.hpp"
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

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

  runtime(environment& in, simulated_network& net, history& told, options how);
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  void set_managers(std::vector<managed_watch> watches);
  void start();
  /// Ends the process as SIGKILL does: nothing that it does from now on leaves it.
  void crash(disk left);
  /// Ends it as SIGTERM does.
  void stop(disk left);
  std::size_t most_objects() const noexcept { return options_.objects; }
  bool up() const noexcept { return running_ != nullptr; }

  /// To be called at each step: notes what explains events, and holds the process against its
  /// bounds.
  void inspect();
  /// Tells the history what may cause events.
  void explain();
  /// Returns true if the process has a live watch for the Watcher.
  bool observes(const managed_watch& watch) const;
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

  /// Since when each watch has been live that may show its object; empty: one is not.
  using cover = std::vector<std::chrono::system_clock::time_point>;
  struct covered_review {
    watch_event review;
    cover by;
  };

  cover cover_of(const watch_event& review) const;
  void reviewed(const watch_event& review);
  void release_reviews();
  void remember_journal();
  void leave(disk left, time_point complete, time_point delivered);

  environment& in_;
  simulated_network& network_;
  history& history_;
  const options options_;
  managers_in_use managers_;
  const std::string folder_;
  const std::string journal_;
  std::deque<version> journals_;  ///< newest last
  double written_ = 0;
  std::size_t most_pending_ = 0;  ///< events of this process
  /// Up to when the disk has each record, and each delivery.
  time_point complete_ = time_point::min();
  time_point delivered_ = time_point::min();
  std::vector<covered_review> covered_;  ///< reviews that may be undecided
  std::vector<managed_watch> live_;      ///< that were live since the journal began
  unsigned starts_ = 0;
  unsigned boots_ = 0;  ///< of the node
  std::unique_ptr<process> running_;
};

}  // namespace rw::simulation
