#pragma once

#include "reactors/bootstrapper/problem.hpp"

#include <boost/json/value.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

/// The Deployment whose state is that of the bootstrapper, in the namespace of the installation.
inline constexpr std::string_view deployment_name = "rt-bootstrapper-controller-manager";
/// On that Deployment: the version that the manifests bring.
inline constexpr std::string_view version_label = "app.kubernetes.io/version";
/// On that Deployment: the features that this version knows, separated by commas. Without it, those
/// of configuration.hpp.
inline constexpr std::string_view features_annotation =
    "operator.kyma-project.io/bootstrapper-features";

/// Secrets of this reactor on a runtime begin so (runtime_store.hpp).
inline constexpr std::string_view reserved_prefix = "rt-bootstrapper-sync-";

struct manifest_set {
  std::vector<boost::json::value> objects = {};  ///< in the order of the text
  std::string version = {};                      ///< empty: the manifests do not say
  std::vector<std::string> features = {};
};

/// The version, and the features, that a Deployment of the bootstrapper says it has.
std::string version_of(const boost::json::value& deployment);
std::vector<std::string> features_of(const boost::json::value& deployment);

/// Largest text of manifests: a ConfigMap can't hold more.
inline constexpr std::size_t manifest_bytes = 1u << 20;

/// Reads the bootstrapper's manifests, multi-document YAML (k8s/manifests.hpp). What the API server
/// itself writes (status, uid, resourceVersion and the like) is left out, and what has no namespace
/// and needs one, as far as that is known without discovery, comes into `ns`. They must hold the
/// bootstrapper's Deployment in `ns`, no object twice, and none of the names that begin with
/// `reserved_prefix`, which are this reactor's own.
manifest_set check_manifests(const std::string& text, std::string_view ns, findings wrong);

}  // namespace rw::bootstrapper
