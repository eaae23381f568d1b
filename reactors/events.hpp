#pragma once

#include "k8s/names.hpp"

#include <cstddef>
#include <string>

namespace rw {

using k8s::group_version_kind;
using k8s::object_key;

/// "This object changed", for one manager. It never carries the object's content, so it is its own
/// key: a later event for the same object replaces an earlier one, and coalescing loses nothing.
struct watch_event {
  std::string manager;     ///< operator that wants the event; element of the URL's path
  group_version_kind gvk;  ///< of the watched object
  object_key watched;      ///< the watched object
  object_key owner;        ///< contract v1 only: whom the object belongs to; else empty

  friend bool operator==(const watch_event&, const watch_event&) = default;
};

/// Hash over all of an event, for sets keyed by it.
struct watch_event_hash {
  std::size_t operator()(const watch_event& event) const noexcept;
};

}  // namespace rw
