#pragma once

#include "k8s/objects/names.hpp"
#include "reactors/listener/listener.hpp"

#include <vector>

namespace rw::cli {

/// Hears what a manager does, as it happens, on its executor. Must not block.
class manager_observer {
 public:
  virtual ~manager_observer() = default;

  /// An event has come. `kymas`: those that have its runtime's id, and are looked at because of it;
  /// without any, it waits for one.
  virtual void heard(const listener::received_event& event,
                     const std::vector<k8s::object_key>& kymas) = 0;
  /// The reconcile of a Kyma begins.
  virtual void reconciling(const k8s::object_key& kyma) = 0;
};

}  // namespace rw::cli
