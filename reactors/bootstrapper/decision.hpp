#pragma once

#include "rw/reactors/shared/bootstrapper_mode.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace rw::bootstrapper {

/// What the control plane says of one runtime, by the name that its Runtime and its
/// RuntimeBootstrapper share.
struct runtime_facts {
  // The RuntimeBootstrapper.
  bool exists = false;
  bool deleting = false;
  bool has_finalizer = false;
  bool has_objects = false;  ///< its recorded inventory is not empty
  bool suspended = false;
  std::string invalid = {};        ///< errors of its spec; empty: none
  bool of_former_runtime = false;  ///< its owner is a Runtime of this name that is gone

  // The Runtime.
  bool runtime_exists = false;
  bool runtime_deleting = false;
  bool runtime_suspended = false;
  bool opted_out = false;
  bootstrapper_mode mode = bootstrapper_mode::off;
  bool mode_unknown = false;  ///< it names none, and counts as off

  std::string no_access = {};  ///< why there is no kubeconfig; empty: there is one
};

enum class action : std::uint8_t {
  none,      ///< nothing is to be done; with a reason the runtime should be managed and is not
  create,    ///< the Runtime gets a RuntimeBootstrapper
  reject,    ///< the spec is invalid: reported, nothing is written
  wait,      ///< the runtime is not ours to write to now: reported
  preview,   ///< mode shadow: reads and dry runs
  sync,      ///< the runtime is written to
  undeploy,  ///< what was applied is removed, then the finalizer
  release,   ///< the finalizer is removed, the runtime is left as it is
};

struct sync_decision {
  action next = action::none;
  std::string reason = {};   ///< of conditions; CamelCase
  std::string message = {};  ///< for people

  friend bool operator==(const sync_decision&, const sync_decision&) = default;
};

/// The one decision on a runtime: taken at the begin of each pass and again before each write.
/// Pure. `create`: Runtimes without a RuntimeBootstrapper get one.
sync_decision decide(const runtime_facts& facts, bool create);

}  // namespace rw::bootstrapper
