#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/intake/listener.hpp"

#include <vector>

namespace rw::cli {

/// Observes a manager, on its executor. Must not block.
class manager_observer {
 public:
  virtual ~manager_observer() = default;

  /// Called with each received event or resync. `kymas`: those with its runtime's id, which are
  /// reconciled because of it. Without any, the event waits for one.
  virtual void on_event(const listener::received_event& event,
                        const std::vector<k8s::object_key>& kymas) = 0;
  /// Called when the reconcile of a Kyma begins.
  virtual void reconciling(const k8s::object_key& kyma) = 0;
};

}  // namespace rw::cli
