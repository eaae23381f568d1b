#pragma once

#include "rw/reactors/events/observation.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include "tests/simulation/history.hpp"
#include "tests/simulation/network.hpp"
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rw::simulation {

/// The webhook process of a runtime, wired as in `reactors/events/webhook_pipeline.cpp` but without
/// TLS.
class runtime {
 public:
  static constexpr std::uint16_t gateway_port = 443;

  struct options {
    observation::observer_options observer = {};
    std::size_t objects = 50000;  ///< of a Watcher
    std::size_t set_capacity = 32768;
    bool http2 = false;  ///< to the gateway
    bool watches = true;
    std::uint16_t port = 8443;  ///< of its webhook
  };
  runtime(environment& in, simulated_network& net, history& told, options how);
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  void set_managers(std::vector<managed_watch> watches);
  void start();
  /// Ends the process as SIGKILL does: nothing that it does from now on leaves it.
  void crash();
  /// Ends it as SIGTERM does.
  void stop();
  std::size_t most_objects() const noexcept { return options_.objects; }
  bool up() const noexcept { return running_ != nullptr; }

  /// To be called at each step: holds the process against its bounds.
  void inspect();
  /// Returns true if the process has a live watch for the Watcher.
  bool observes(const managed_watch& watch) const;
  /// How often this process has dropped something, by its own report.
  std::uint64_t lost() const;
  /// What waits in it; empty: nothing.
  std::string waiting() const;

 private:
  struct process;

  bool knows(const managed_watch& watch, const k8s::object_key& key) const;
  environment& in_;
  simulated_network& network_;
  history& history_;
  const options options_;
  managers_in_use managers_;
  std::size_t most_pending_ = 0;  ///< events of this process
  std::unique_ptr<process> running_;
};

}  // namespace rw::simulation
