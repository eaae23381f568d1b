#pragma once

#include "reactors/bootstrapper_mode.hpp"
#include "reactors/runtime_rollout/resource.hpp"

#include <chrono>
#include <cstddef>
#include <string>

namespace rw::cli {

/// How `runtime-watcher manager` keeps the Runtime Bootstrapper's configuration of all runtimes in
/// step with KCP.
struct runtime_config_settings {
  bootstrapper_mode mode = bootstrapper_mode::off;  ///< off: nothing of it runs
  bootstrapper_sources sources = {};

  mark_form signal_by = mark_form::annotation;
  std::string field_manager = "runtime-watcher-config-sync";
  bool signal_all_once = false;
  std::chrono::milliseconds settle = std::chrono::seconds(2);
  std::chrono::milliseconds quiet = std::chrono::minutes(2);
  std::chrono::milliseconds timeout = std::chrono::hours(1);
  std::chrono::milliseconds retry = std::chrono::minutes(5);

  /// Runtimes in mode direct or shadow that have no RuntimeBootstrapper get one.
  bool create_bootstrappers = false;
  bool allow_inline_manifests = false;                     ///< of RuntimeBootstrappers
  std::string state_namespace = "runtime-watcher-system";  ///< of the sources' last good contents
  bool watch_runtimes = true;                              ///< for drift
  std::size_t concurrent = 16;                             ///< runtimes that are written to at once

  runtime_rollout::defaults rollout = {};
  bool trust_at_once = false;  ///< a change of the trust bundle alone waits for no roll-out
};

}  // namespace rw::cli
