#pragma once

#include "rw/reactors/bootstrapper/direct_sync.hpp"
#include "rw/reactors/config_sync/runtime_signal.hpp"
#include "rw/reactors/runtime_rollout/prometheus.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"

namespace rw::cli {

/// Settings of `runtime-watcher manager` for the Runtime Bootstrapper's configuration of all
/// runtimes.
struct runtime_config_settings {
  bootstrapper_mode mode = bootstrapper_mode::off;  ///< off: none of it runs
  config_sync::sync_options signal = {};            ///< without its mode
  bootstrapper::direct_sync_options direct = {};  ///< without its mode; `defaults` are the sources
  runtime_rollout::defaults rollout = {};
  runtime_rollout::prometheus_options prometheus = {};
  bool rollout_none = false;  ///< new content goes to all runtimes at once
};

}  // namespace rw::cli
