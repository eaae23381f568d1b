#pragma once

#include "k8s/objects/names.hpp"

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

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

/// Bytes that a name in Kubernetes may have: the length of a DNS subdomain (RFC 1123), the longest
/// of its kinds of names. What is longer names no object, and is not kept.
inline constexpr std::size_t max_name = 253;

/// False if any of the names is longer than `max_name`.
bool names_fit(std::initializer_list<std::string_view> names) noexcept;

/// True if a manager's name can be an element of URL paths: letters, digits, '-', '_' and '.', at
/// most `max_name`, other than "." and "..".
bool is_path_segment(std::string_view name) noexcept;

/// Hash over all of an event, for sets keyed by it. Not noexcept: libstdc++ takes that as the sign
/// of a hash that is worth keeping beside the key.
struct watch_event_hash {
  std::size_t operator()(const watch_event& event) const;
};

}  // namespace rw
