#pragma once

#include "rw/k8s/devserver/owner_index.hpp"

#include <compare>
#include <cstdint>
#include <set>
#include <string>

namespace rw::k8s::devserver {

/// A task that follows from a write to a cluster (garbage_collector.hpp).
struct gc_task {
  enum class kind : std::uint8_t {
    empty_namespace,    ///< delete its content, then drop its finalizers
    empty_definition,   ///< the same for a CustomResourceDefinition
    examine_dependent,  ///< check whether its owners still exist
    finish_owner,       ///< check whether dependents still block its deletion
    run_deployment,     ///< say that its Pods run
  };
  kind work;
  object_place place;

  friend auto operator<=>(const gc_task&, const gc_task&) = default;
};

/// The tasks of a cluster, without duplicates, so that there are never more than objects.
struct gc_task_list {
  std::set<gc_task> open;
  bool running = false;  ///< a task processes them
};

}  // namespace rw::k8s::devserver
