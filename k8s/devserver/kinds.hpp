#pragma once

#include "rw/k8s/devserver/schema.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// A column of `kubectl get` (apiextensions/v1, CustomResourceColumnDefinition).
struct printer_column {
  std::string name;
  std::string type;
  std::string json_path;
  std::string format = {};
  std::string description = {};
  std::int64_t priority = 0;
};

/// Paths of the scale subresource's fields, such as ".spec.replicas". The selector is text, or (of
/// built-in kinds) a label selector.
struct scale_paths {
  std::string spec_replicas;
  std::string status_replicas;
  std::string label_selector = {};
};

struct served_version {
  std::string name;
  bool served = true;
  bool status = false;  ///< has the status subresource
  std::optional<scale_paths> scale = {};
  std::shared_ptr<const schema> type = {};
  std::vector<printer_column> columns = {};
  boost::json::value open_api = {};          ///< a custom resource's schema, unchanged
  std::vector<std::string> selectable = {};  ///< paths of fields, such as "spec.color"
  std::string warning = {};                  ///< for each request, if the version is deprecated
};

/// Valid names of objects of a kind (Kubernetes, "Object Names and IDs").
enum class naming : std::uint8_t { subdomain, label, label_1035, path_segment };

/// A subresource other than status and scale, of one built-in kind.
struct own_subresource {
  std::string_view storage_key;
  std::string_view name;
  std::string_view group;
  std::string_view version;
  std::string_view kind;
  std::string_view verbs;  ///< separated by blanks

  group_version_kind type() const {
    return {std::string(group), std::string(version), std::string(kind)};
  }
};
std::span<const own_subresource> own_subresources() noexcept;
/// Returns null if there is none of that name.
const own_subresource* find_subresource(std::string_view storage_key,
                                        std::string_view name) noexcept;

/// A served resource: built in, or of a CustomResourceDefinition. Immutable, shared.
struct resource {
  std::string group;
  std::string plural;
  std::string singular;
  std::string kind;
  std::string list_kind;
  std::vector<std::string> short_names = {};
  std::vector<std::string> categories = {};
  bool namespaced = true;
  bool custom = false;
  naming names = naming::subdomain;
  bool generation = false;          ///< metadata.generation counts changes
  bool needs_version = false;       ///< an update must carry metadata.resourceVersion
  bool terminating = false;         ///< its definition is being deleted: creations are rejected
  bool deletes_collections = true;  ///< has the verb deletecollection
  bool review = false;              ///< is created only: it is answered, and not stored
  bool read_only = false;           ///< the server writes its objects
  bool returns_deleted = false;     ///< the response to a delete is the object instead of a Status
  bool creates_on_update = false;   ///< an update of an object that is not there creates it
  /// Fields of metadata that a write of the status leaves as they were.
  std::vector<std::string_view> status_keeps = {"labels", "annotations", "finalizers",
                                                "ownerReferences"};
  std::vector<served_version> versions = {};
  std::size_t stored = 0;        ///< index of the version that objects are stored in
  std::string storage_key = {};  ///< "deployments.apps"; two groups may share their objects

  const served_version* find(std::string_view version) const noexcept;
  std::string stored_api_version() const;
  std::string api_version(const served_version& in) const {
    return group.empty() ? in.name : group + "/" + in.name;
  }
};

struct served_resource {
  std::shared_ptr<const resource> of;
  const served_version* version = nullptr;

  explicit operator bool() const noexcept { return version != nullptr; }
  std::string api_version() const { return of->api_version(*version); }
  resource_type type() const {
    return {{of->group, version->name, of->kind}, of->plural, of->namespaced};
  }
};

/// Returns all resources that every cluster has, in the order of discovery.
const std::vector<std::shared_ptr<const resource>>& builtin_resources();

/// Returns true for a resource of kube-apiserver's that is not served: requests for it get 501.
bool is_unserved(std::string_view group, std::string_view version,
                 std::string_view plural) noexcept;

/// Returns null if there is none of that group and plural.
std::shared_ptr<const resource> find_builtin(std::string_view group, std::string_view plural);

/// Returns what blanks separate.
std::vector<std::string> words(std::string_view text);

/// Formats as "deployments.apps", "configmaps".
std::string resource_name(std::string_view plural, std::string_view group);

}  // namespace rw::k8s::devserver
