#pragma once

#include "reactors/bootstrapper/diagnostics.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

/// Key of the Runtime Bootstrapper's configuration in its ConfigMap.
inline constexpr std::string_view configuration_key = "rt-bootstrapper-config.json";
inline constexpr std::string_view pull_secret_type = "kubernetes.io/dockerconfigjson";
inline constexpr std::string_view pull_secret_key = ".dockerconfigjson";
/// Stands for all available features in a namespace's list.
inline constexpr std::string_view all_features = "rt-cfg.kyma-project.io/all";

/// The Runtime Bootstrapper's features as of this version; a later one lists its own
/// (manifest_set.hpp).
const std::vector<std::string>& default_features();

/// The parts of a configuration that others are checked against.
struct configuration {
  std::string trust_bundle = {};           ///< clusterTrustBundle.name; empty: none
  std::vector<std::string> features = {};  ///< availableFeatures
};

/// Validates the bootstrapper's configuration:
///   - `overrides` (required): registry host to registry host.
///   - `clusterTrustBundle`: `name`, `volumeName`, `volumeMountPath` (absolute) and `certWritePath`
///     (relative). Required by the feature add-cluster-trust-bundle.
///   - `availableFeatures`: of `known`.
///   - `namespaceFeatures`: per namespace, of the available ones, or `all`.
/// What the bootstrapper tolerates is a warning: unknown fields, and `namespaceFeatures` without
/// `availableFeatures`.
configuration validate_configuration(const std::string& text, const std::vector<std::string>& known,
                                     const field_path& path);

/// Validates a pull Secret as kubelet reads it: its type, and a docker config with credentials for
/// at least one registry. Quotes nothing of its content.
void validate_pull_secret(const boost::json::value& secret, const field_path& path);

/// Validates a ClusterTrustBundle: PEM blocks of certificates, at least one of them not expired at
/// `now`. Expired, repeated and non-CA certificates are warnings, by position (from 1) and subject.
void validate_trust_bundle(const boost::json::value& bundle,
                           std::chrono::system_clock::time_point now, const field_path& path);

}  // namespace rw::bootstrapper
