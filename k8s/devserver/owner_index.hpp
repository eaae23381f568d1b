#pragma once

#include "rw/k8s/devserver/storage.hpp"

#include <compare>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw::k8s::devserver {

/// The location of an object: its collection and its path in it.
struct object_place {
  std::string storage_key;
  std::string path;

  friend auto operator<=>(const object_place&, const object_place&) = default;
};

/// Index of dependents by owner. Nearly free without owner references.
class owner_index {
 public:
  /// Updates the index after a write.
  void follow(const std::string& storage_key, const change& change);

  bool empty() const noexcept { return dependents_.empty(); }
  std::vector<object_place> dependents_of(std::string_view uid) const;

 private:
  std::unordered_multimap<std::string, object_place> dependents_;
};

}  // namespace rw::k8s::devserver
