#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <string>

namespace rw {

/// Names a Kubernetes object. `ns` is empty for a cluster-scoped one.
struct object_key {
  std::string ns;
  std::string name;

  friend bool operator==(const object_key&, const object_key&) = default;
};

/// Group, version and kind (Kubernetes API concepts); the group is empty for the core group.
struct group_version_kind {
  std::string group;
  std::string version;
  std::string kind;

  friend bool operator==(const group_version_kind&, const group_version_kind&) = default;
};

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
