#pragma once

#include "k8s/devserver/owner_index.hpp"

#include <compare>
#include <cstdint>
#include <set>
#include <string>

namespace rw::k8s::devserver {

/// A task that follows from a write to a cluster (housekeeping.hpp).
struct chore {
  enum class kind : std::uint8_t {
    empty_namespace,    ///< delete its content, then drop its finalizers
    empty_definition,   ///< the same for a CustomResourceDefinition
    examine_dependent,  ///< check whether its owners still exist
    finish_owner,       ///< check whether dependents still block its deletion
  };
  kind what;
  object_place place;

  friend auto operator<=>(const chore&, const chore&) = default;
};

/// The chores of a cluster, without duplicates, so that there are never more than objects.
struct chore_list {
  std::set<chore> open;
  bool at_work = false;  ///< a task processes them
};

}  // namespace rw::k8s::devserver
