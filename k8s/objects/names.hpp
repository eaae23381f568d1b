#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rw::k8s {

/// Identifies a Kubernetes object within its kind. `ns` is empty for a cluster-scoped one.
struct object_key {
  std::string ns;
  std::string name;

  friend bool operator==(const object_key&, const object_key&) = default;
};

/// "namespace/name", or "name".
std::string to_string(const object_key& key);

struct object_key_hash {
  std::size_t operator()(const object_key& key) const noexcept;
};

/// Group, version and kind (Kubernetes API concepts); the group is empty for the core group.
struct group_version_kind {
  std::string group;
  std::string version;
  std::string kind;

  /// Formats it for `apiVersion`: "apps/v1", "v1".
  std::string api_version() const { return group.empty() ? version : group + "/" + version; }

  friend bool operator==(const group_version_kind&, const group_version_kind&) = default;
};

/// Splits "apps/v1" or "v1" into `into.group` and `into.version`. Returns false if it is neither.
bool parse_api_version(std::string_view text, group_version_kind& into);

/// A resource as the API serves it: its URL path and its kind.
struct resource_type {
  group_version_kind gvk;
  std::string plural;  ///< lower case, as in the URL: "configmaps"
  bool namespaced = true;

  friend bool operator==(const resource_type&, const resource_type&) = default;
};

/// Returns "kymas.operator.kyma-project.io"; "secrets" in the core group. The name of the
/// definition of a custom resource.
std::string to_string(const resource_type& type);

/// Returns the path of a collection, such as "/api/v1/namespaces/default/configmaps" or
/// "/apis/apps/v1/deployments" (all namespaces: `ns` empty), and of one object in it
/// ("…/configmaps/name", with `subresource` "…/configmaps/name/status"). Names are percent-encoded.
std::string collection_path(const resource_type& type, std::string_view ns);
std::string object_path(const resource_type& type, const object_key& key,
                        std::string_view subresource = {});

}  // namespace rw::k8s
