#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/names.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace rw {

/// Objects as a reconcile has left them on a cluster.
struct watched_set {
  /// An object and its resourceVersion as hashes, since thousands of clusters have the same ones.
  /// After a collision only the resync finds the drift.
  struct version {
    std::size_t object = 0;
    std::size_t at = 0;     ///< zero: it does not exist
    std::size_t watch = 0;  ///< index of its watch in `watches`

    /// Of the object of a kind and name. Its watch is not set.
    static version of(const k8s::resource_type& type, const k8s::object_key& key,
                      std::string_view resource_version);
  };
  using version_list = std::vector<version>;
  /// Returns that of the same object; `end` if there is none.
  static version_list::iterator find(version_list& in, version of);
  /// Replaces that of the same object.
  static void put(version_list& into, version of);

  /// One watch on each cluster.
  struct watch {
    k8s::resource_type type;
    k8s::selection selection;

    friend bool operator==(const watch&, const watch&) = default;
  };

  /// Adds an object that a watch of `within` detects changes of.
  void add(const k8s::resource_type& type, const k8s::object_key& key,
           std::string_view resource_version, k8s::selection within);
  bool contains(const k8s::resource_type& type, const k8s::object_key& key) const;

  std::vector<watch> watches = {};
  version_list versions = {};
};

}  // namespace rw
