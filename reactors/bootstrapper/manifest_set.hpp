#pragma once

#include "reactors/bootstrapper/diagnostics.hpp"

#include <boost/json/value.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

/// The bootstrapper's Deployment, in the namespace of the installation.
inline constexpr std::string_view deployment_name = "rt-bootstrapper-controller-manager";
/// On that Deployment: the version that the manifests bring.
inline constexpr std::string_view version_label = "app.kubernetes.io/version";
/// On that Deployment: the features that this version knows, separated by commas. Without it, those
/// of validation.hpp.
inline constexpr std::string_view features_annotation =
    "operator.kyma-project.io/bootstrapper-features";

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

/// Parses the bootstrapper's manifests, multi-document YAML (k8s/manifests.hpp). Fields that only
/// the API server sets are removed; namespaced objects without a namespace get `ns`, as far as the
/// scope is known without discovery. Errors: no bootstrapper Deployment in `ns`, an object twice.
manifest_set parse_manifest_set(const std::string& text, std::string_view ns,
                                const field_path& path);

}  // namespace rw::bootstrapper
