#pragma once

#include "rw/k8s/objects/names.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::k8s::devserver {

class query {
 public:
  static query parse(std::string_view text);

  /// Returns the first value of that name; empty if there is none.
  std::string_view get(std::string_view name) const noexcept;
  bool has(std::string_view name) const noexcept;
  /// Returns a flag by the rules of Kubernetes: anything but "", "0" and "false" is true.
  bool flag(std::string_view name) const noexcept;
  std::vector<std::string_view> all(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// The target of a request: a cluster, and a path in it.
struct target {
  std::string cluster;             ///< empty: none, the server itself
  std::string path;                ///< as received, without cluster and query: "/api/v1/pods"
  std::vector<std::string> parts;  ///< of the path, decoded
  query parameters;

  /// Returns nothing if the text is invalid, such as bad percent-encoding.
  static std::optional<target> parse(std::string_view text);
};

/// The resource that a path names (Kubernetes API concepts, "Resource URIs").
struct resource_path {
  std::string group;
  std::string version;
  std::string plural;
  object_key key;  ///< the name is empty for a collection
  std::string subresource;
};

/// Returns nothing for paths that name no resource, such as those of discovery.
std::optional<resource_path> parse_resource_path(const std::vector<std::string>& parts);

}  // namespace rw::k8s::devserver
