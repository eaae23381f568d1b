#pragma once

#include "reactors/bootstrapper/direct_sync.hpp"
#include "reactors/config_sync/runtime_signal.hpp"
#include "reactors/runtime_rollout/resource.hpp"

namespace rw::cli {

/// How `runtime-watcher manager` keeps the Runtime Bootstrapper's configuration of all runtimes in
/// step with KCP.
struct runtime_config_settings {
  bootstrapper_mode mode = bootstrapper_mode::off;  ///< off: nothing of it runs
  config_sync::sync_options signal = {};            ///< its mode apart
  bootstrapper::options direct = {};                ///< its mode apart; `defaults` are the sources
  runtime_rollout::defaults rollout = {};
};

}  // namespace rw::cli
