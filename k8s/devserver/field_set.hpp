#pragma once

#include <boost/json/value.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// A set of paths into an object, as `fieldsV1` of managedFields writes it (Kubernetes API
/// reference, "FieldsV1 v1 meta"; structured-merge-diff, fieldpath). A node of a tree whose edges
/// are the elements of the paths, in their written form: "f:name", `k:{"name":"x"}`, `v:"x"`,
/// "i:0".
struct field_set {
  using elements = std::map<std::string, field_set, std::less<>>;
  using path = std::vector<std::string>;

  bool member = false;  ///< the path to this node belongs to the set; written as "."
  elements children;    ///< without empty ones

  /// Returns nothing if this is not a `fieldsV1`.
  static std::optional<field_set> parse(const boost::json::value& fields);
  boost::json::value to_json() const;

  bool empty() const noexcept { return !member && children.empty(); }
  void insert(const path& path);

  void unite(const field_set& other);
  void subtract(const field_set& other);
  void intersect(const field_set& other);
  /// Removes the paths of `other`, and all that begin with one.
  void subtract_trees(const field_set& other);

  friend bool operator==(const field_set&, const field_set&) = default;
};

/// Returns every path in the form of messages, such as `.spec.ports[port=80,protocol="TCP"].name`;
/// a path precedes the longer paths that begin with it.
std::vector<std::string> printed(const field_set& set);

/// Returns one path in that form.
std::string printed(const field_set::path& path);

}  // namespace rw::k8s::devserver
