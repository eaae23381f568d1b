#pragma once

#include "reactors/bootstrapper_mode.hpp"
#include "reactors/config_sync/runtime_signal.hpp"
#include "reactors/runtime_rollout/resource.hpp"

#include <cstddef>
#include <string>

namespace rw::cli {

/// How `runtime-watcher manager` keeps the Runtime Bootstrapper's configuration of all runtimes in
/// step with KCP.
struct runtime_config_settings {
  bootstrapper_mode mode = bootstrapper_mode::off;  ///< off: nothing of it runs
  bootstrapper_sources sources = {};

  config_sync::sync_options signal = {};  ///< its mode apart

  /// Runtimes in mode direct or shadow that have no RuntimeBootstrapper get one.
  bool create_bootstrappers = false;
  bool allow_inline_manifests = false;                     ///< of RuntimeBootstrappers
  std::string state_namespace = "runtime-watcher-system";  ///< of the sources' last good contents
  bool watch_runtimes = true;                              ///< for drift
  bool runtime_condition = false;                          ///< kept on Runtimes in mode direct
  std::size_t concurrent = 16;                             ///< runtimes that are written to at once

  runtime_rollout::defaults rollout = {};
  bool trust_at_once = false;  ///< a change of the trust bundle alone waits for no roll-out
};

}  // namespace rw::cli
