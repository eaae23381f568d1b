#pragma once

#include "k8s/types.hpp"
#include "reactors/bootstrapper_mode.hpp"

#include "tests/unit/config_sync/cluster.hpp"
#include <chrono>
#include <string>
#include <utility>

namespace rw::config_sync::test {

using namespace std::chrono_literals;

/// Two Runtimes that are older than what is changed later, and all sources.
struct landscape : cluster {
  explicit landscape(sync_options options = {}) : cluster(std::move(options)) {
    for (const auto which : all_sources) put(which, "v1");
    add_runtime("r1");
    add_runtime("r2");
    pass(1h);
  }

  void begin() {
    start();
    settle_down();
  }
  /// Whatever was noticed has been signalled.
  void settle_down() { pass(15s); }
  void take(const std::string& name) {
    change(name, {{"annotations", {{force_reconciliation_mark, nullptr}}},
                  {"labels", {{force_reconciliation_mark, nullptr}}}});
  }
  bool is_marked(const std::string& name) { return carries_mark(runtime(name)); }
  std::string noted(const std::string& name) {
    return std::string(k8s::annotation(runtime(name), signalled_annotation).value_or("nothing"));
  }
  std::string version(const std::string& name) {
    return std::string(k8s::resource_version_of(runtime(name)));
  }
};

}  // namespace rw::config_sync::test
