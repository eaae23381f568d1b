#pragma once

#include "k8s/devserver/owner_index.hpp"

#include <compare>
#include <cstdint>
#include <set>
#include <string>

namespace rw::k8s::devserver {

/// Something to be done to a cluster behind a write (garbage_collector.hpp).
struct gc_task {
  enum class kind : std::uint8_t {
    empty_namespace,    ///< delete what is in it, then let it go
    empty_definition,   ///< the same for a CustomResourceDefinition
    examine_dependent,  ///< are its owners still there?
    finish_owner,       ///< do dependents still keep it?
  };
  kind what;
  object_place place;

  friend auto operator<=>(const gc_task&, const gc_task&) = default;
};

/// The gc_tasks of a cluster; each is there once, so that there are never more than objects.
struct gc_task_list {
  std::set<gc_task> open;
  bool running = false;  ///< a task works them off
};

}  // namespace rw::k8s::devserver
