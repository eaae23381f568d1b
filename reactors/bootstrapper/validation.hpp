#pragma once

#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

/// Findings of a validation, each with the field as an operator would search for it and what it
/// violates: "ConfigMap kcp-system/a, rt-bootstrapper-config.json, namespaceFeatures.b[1]: ...".
/// Errors make the input invalid; warnings are reported, and the input is used.
struct diagnostics {
  std::vector<std::string> errors = {};
  std::vector<std::string> warnings = {};
};

/// All of them in one line; beyond `most` only their number.
std::string describe(const std::vector<std::string>& all, std::size_t most = 5);

/// A field below which diagnostics are collected. Refers to its diagnostics.
class field_path {
 public:
  field_path(diagnostics& into, std::string path) : into_(into), path_(std::move(path)) {}

  void error(const std::string& detail) const { into_.errors.push_back(text(detail)); }
  void warning(const std::string& detail) const { into_.warnings.push_back(text(detail)); }

  /// A member: "a.b"; below the name of a document: "a, b".
  field_path at(std::string_view field) const {
    return {into_, path_ + (path_.empty() ? "" : separator_) + std::string(field), "."};
  }
  field_path at(std::size_t index) const {
    return {into_, path_ + "[" + std::to_string(index) + "]", "."};
  }

 private:
  field_path(diagnostics& into, std::string path, const char* separator)
      : into_(into), path_(std::move(path)), separator_(separator) {}
  std::string text(const std::string& detail) const {
    return path_.empty() ? detail : path_ + ": " + detail;
  }

  diagnostics& into_;
  std::string path_;
  const char* separator_ = ", ";
};

/// Key of the Runtime Bootstrapper's configuration in its ConfigMap.
inline constexpr std::string_view configuration_key = "rt-bootstrapper-config.json";
inline constexpr std::string_view pull_secret_type = "kubernetes.io/dockerconfigjson";
inline constexpr std::string_view pull_secret_key = ".dockerconfigjson";
/// The feature that gives pods the pull Secret.
inline constexpr std::string_view pull_secret_feature =
    "rt-cfg.kyma-project.io/add-img-pull-secret";
/// The feature that mounts the trust bundle into pods.
inline constexpr std::string_view trust_bundle_feature =
    "rt-cfg.kyma-project.io/add-cluster-trust-bundle";
/// Stands for all available features in a namespace's list.
inline constexpr std::string_view all_features = "rt-cfg.kyma-project.io/all";

/// The Runtime Bootstrapper's features as of this version; a later one lists its own
/// (desired_set.hpp).
const std::vector<std::string>& default_features();

/// The feature that needs the argument --landscape of the bootstrapper.
inline constexpr std::string_view landscape_feature = "rt-cfg.kyma-project.io/set-landscape";
/// On the bootstrapper's Deployment: the features that this version knows, separated by commas.
/// Without it, the default ones.
inline constexpr std::string_view features_annotation =
    "operator.kyma-project.io/bootstrapper-features";

/// What a Deployment of the bootstrapper can do. It ends with 1 on a configuration that names
/// anything else.
struct abilities {
  std::vector<std::string> features = default_features();
  bool landscape = false;  ///< it has the argument --landscape, with a value

  bool know(std::string_view feature) const;
};

/// The parts of a configuration that others are checked against.
struct configuration {
  std::string trust_bundle = {};            ///< clusterTrustBundle.name; empty: none
  std::vector<std::string> available = {};  ///< availableFeatures
  std::vector<std::string> features = {};   ///< these, and those of namespaces
};

/// Validates the bootstrapper's configuration:
///   - `overrides` (required): registry host to registry host.
///   - `clusterTrustBundle`: `name`, `volumeName`, `volumeMountPath` (absolute) and `certWritePath`
///     (relative). Required by the feature add-cluster-trust-bundle.
///   - `availableFeatures`: those that `runs`, the bootstrapper that will run, knows.
///   - `namespaceFeatures`: per namespace, of the available ones, or `all`.
/// What the bootstrapper tolerates is a warning: unknown fields, and `namespaceFeatures` without
/// `availableFeatures`, or with an empty list. Quotes nothing of a text that is no JSON.
configuration validate_configuration(std::string_view text, const abilities& runs,
                                     const field_path& path);

/// Validates a pull Secret as kubelet reads it: its type, and a docker config with credentials for
/// at least one registry. Quotes nothing of its content.
void validate_pull_secret(const boost::json::value& secret, const field_path& path);

/// Validates a ClusterTrustBundle: PEM blocks of certificates, at least one of them not expired at
/// `now`. Expired, repeated and non-CA certificates are warnings, by position (from 1) and subject.
void validate_trust_bundle(const boost::json::value& bundle,
                           std::chrono::system_clock::time_point now, const field_path& path);

}  // namespace rw::bootstrapper
