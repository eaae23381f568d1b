#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/k8s/objects/object.hpp"
#include "rw/reactors/bootstrapper/validation.hpp"
#include "rw/reactors/shared/bootstrapper_sources.hpp"
#include "rw/reactors/shared/content_store.hpp"

#include <boost/json/value.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

/// What is applied to a runtime as a whole or not at all, in this order.
enum class unit : std::uint8_t {
  credentials,   ///< the pull Secret
  bootstrapper,  ///< trust bundle, configuration and manifests, which refer to each other
};
inline constexpr std::array all_units = {unit::credentials, unit::bootstrapper};
std::string_view to_string(unit of) noexcept;
std::optional<unit> parse_unit(std::string_view text) noexcept;

/// On every object that is applied to a runtime.
inline constexpr std::string_view synced_by_label = "operator.kyma-project.io/synced-by";
inline constexpr std::string_view synced_by = "runtime-watcher";
/// On every object that is applied to a runtime: digest of its content. It differs where another
/// revision was applied, also in fields that only that one had. (An annotation would change the
/// generation of a Deployment.)
inline constexpr std::string_view digest_label = "operator.kyma-project.io/applied-digest";

/// On the bootstrapper's Deployment: the version that the manifests install.
inline constexpr std::string_view version_label = "app.kubernetes.io/version";
/// Of the manifests in their ConfigMap.
inline constexpr std::string_view manifests_key = "manifests.yaml";
/// On a ConfigMap with manifests that is not the manager's default one: "true". Whoever writes
/// manifests is admin on every runtime that installs them.
inline constexpr std::string_view manifests_label =
    "operator.kyma-project.io/bootstrapper-manifests";

/// The version, and the abilities, that a Deployment of the bootstrapper says it has.
std::string version_of(const boost::json::value& deployment);
abilities abilities_of(const boost::json::value& deployment);

/// Names on every runtime.
struct target_names {
  std::string ns = "kyma-system";
  std::string deployment = "rt-bootstrapper-controller-manager";
  std::string configuration = "rt-bootstrapper-config";
  std::string pull_secret = "registry-credentials";
  std::string trust_bundle = {};  ///< empty: as in the control plane
};

using source_kind = source;
unit unit_of(source_kind kind) noexcept;

/// What each source held at some time, without its metadata but the name; null: nothing.
using content_set = std::array<content_ptr, all_sources.size()>;
/// The same by its contents' digests; empty: nothing.
using content_digests = std::array<std::string, all_sources.size()>;
content_digests digests_of(const content_set& of);

/// One source in the control plane.
struct source_input {
  std::string name = {};           ///< "ConfigMap kcp-system/a"; empty: none is referenced
  boost::json::value object = {};  ///< null: it does not exist, and no content of it is stored
};

struct render_input {
  std::array<source_input, all_sources.size()> sources = {};  ///< by source
  target_names to = {};
  std::string inline_manifests = {};  ///< in place of the source; empty: none
  bool unlabelled = false;            ///< the manifests lack the label that they need

  source_input& at(source_kind kind) { return sources[static_cast<std::size_t>(kind)]; }
  const source_input& at(source_kind kind) const { return sources[static_cast<std::size_t>(kind)]; }
};

struct desired_object {
  source_kind from = source_kind::manifests;
  boost::json::value object = {};
};

/// One state of a unit: the objects that a runtime is to have.
struct revision {
  std::string digest = {};  ///< short, of the objects; independent of the order of fields
  std::vector<desired_object> objects = {};
  std::string version = {};                ///< of the manifests; empty: they do not say
  std::vector<std::string> features = {};  ///< that the configuration names
  /// Of unit `bootstrapper`: a feature, or an object's imagePullSecrets, needs the pull Secret.
  bool uses_pull_secret = false;
  diagnostics found = {};     ///< with errors it must not be applied
  content_set contents = {};  ///< that it was rendered from

  bool valid() const noexcept { return found.errors.empty(); }
};
using revision_ptr = std::shared_ptr<const revision>;

/// Validates the sources of a unit and renders its objects. Pure.
///
/// Manifests are multi-document YAML (k8s/objects/manifests.hpp). Fields that only the API server
/// sets are removed; objects without a namespace get the target's, as far as their scope is known
/// without discovery. An object gives way to another source's target of the same name. Errors: no
/// bootstrapper Deployment, an object twice.
///
/// A trust bundle that does not exist is a warning unless the configuration refers to it.
revision render(unit of, const render_input& from, std::chrono::system_clock::time_point now);

/// True if the configuration, a ConfigMap, refers to a trust bundle.
bool uses_trust_bundle(const boost::json::value& configuration);

/// The content of a source, without its metadata; null of null.
boost::json::value content_of(const boost::json::value& source);

}  // namespace rw::bootstrapper
