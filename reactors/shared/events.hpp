#pragma once

#include "rw/k8s/objects/names.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace rw {

using k8s::group_version_kind;
using k8s::object_key;

/// "This object changed", for one manager. It never carries the object's content, so it is its own
/// key: a later event for the same object replaces an earlier one, and coalescing loses nothing.
struct watch_event {
  std::string manager;     ///< operator that receives the event; element of the URL's path
  group_version_kind gvk;  ///< of the watched object
  object_key watched;      ///< the watched object

  friend bool operator==(const watch_event&, const watch_event&) = default;
};

/// Maximum length of a Kubernetes name in bytes: that of a DNS subdomain (RFC 1123), the longest of
/// its kinds of names. A longer name identifies no object, and is not stored.
inline constexpr std::size_t max_name = 253;

/// Returns false if any of the names is longer than `max_name`.
bool names_fit(std::initializer_list<std::string_view> names) noexcept;

/// Returns true if a manager's name is a valid element of URL paths: letters, digits, '-', '_' and
/// '.', at most `max_name`, other than "." and "..".
bool is_path_segment(std::string_view name) noexcept;

/// Hash over all of an event, for sets keyed by it. Not noexcept: libstdc++ then stores the hash
/// with the key.
struct watch_event_hash {
  std::size_t operator()(const watch_event& event) const;
};

}  // namespace rw
