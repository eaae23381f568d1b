#pragma once

#include "rw/k8s/objects/object.hpp"

#include <cstdint>

namespace rw::k8s {

/// Change of an object since the state last delivered to a subscriber.
struct delta {
  enum class kind : std::uint8_t { added, updated, deleted };
  kind type = kind::added;
  object before = {};  ///< state last delivered to the subscriber; empty when added
  object now = {};     ///< empty when deleted

  /// Returns the latest nonempty state.
  const object& latest() const noexcept { return now ? now : before; }
};

}  // namespace rw::k8s
