#pragma once

#include "k8s/objects/object.hpp"

#include <cstdint>

namespace rw::k8s {

/// How the newest state of an object differs from the one that a subscriber was told last.
struct delta {
  enum class kind : std::uint8_t { added, updated, deleted };
  kind what = kind::added;
  object before = {};  ///< what the subscriber was told last; empty when added
  object now = {};     ///< empty when deleted

  /// The object that both are about.
  const object& any() const noexcept { return now ? now : before; }
};

}  // namespace rw::k8s
