#pragma once

#include "rw/core/sip_hash.hpp"
#include "rw/k8s/objects/object.hpp"

#include <boost/unordered/unordered_flat_set.hpp>

#include <cstddef>
#include <string_view>

namespace rw::k8s {

struct object_name {
  std::string_view ns;
  std::string_view name;
};

/// Hash and equality of objects by namespace and name. Look-ups need no object.
struct by_name {
  using is_transparent = void;

  static object_name of(const object& from) noexcept { return {from.ns(), from.name()}; }
  static object_name of(const object_name& from) noexcept { return from; }

  template <typename T>
  std::size_t operator()(const T& from) const noexcept {
    const auto key = of(from);
    return core::foreign_hash(key.name, key.ns);
  }

  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const noexcept {
    const auto left = of(a);
    const auto right = of(b);
    return left.name == right.name && left.ns == right.ns;
  }
};

/// A set of objects, each name at most once: a table of pointers, without a node for each.
using object_set = boost::unordered_flat_set<object, by_name, by_name>;

}  // namespace rw::k8s
