#pragma once

#include "reactors/bootstrapper/problem.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

/// Where the Runtime Bootstrapper's configuration stands in its ConfigMap.
inline constexpr std::string_view configuration_key = "rt-bootstrapper-config.json";

/// The features of the Runtime Bootstrapper, as it is known here. A version that knows others says
/// so itself (manifest_set.hpp).
const std::vector<std::string>& default_features();
/// Stands for all available features where a namespace's are listed.
inline constexpr std::string_view all_features = "rt-cfg.kyma-project.io/all";

/// What other parts of a set have to fit.
struct configuration {
  std::string trust_bundle = {};           ///< clusterTrustBundle.name; empty: none is used
  std::vector<std::string> features = {};  ///< all that are named
};

/// Reads the bootstrapper's configuration as strictly as the bootstrapper, which refuses pods'
/// changes while it can't read it, and stricter where a mistake would pass unseen there:
///   - `overrides` (required): registry host to registry host.
///   - `clusterTrustBundle`: `name`, `volumeName`, `volumeMountPath` (absolute) and `certWritePath`
///     (relative), all of them. Required where the feature add-cluster-trust-bundle is available.
///   - `availableFeatures`: of `known`.
///   - `namespaceFeatures`: for each namespace, of the available ones, or `all`.
/// No other fields, so that a misspelt one is told. Everything that is wrong is added to `wrong`;
/// the result is then of no use.
configuration check_configuration(const std::string& text, const std::vector<std::string>& known,
                                  findings wrong);

}  // namespace rw::bootstrapper
