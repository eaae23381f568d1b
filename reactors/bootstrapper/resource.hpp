#pragma once

#include "k8s/failure.hpp"
#include "k8s/names.hpp"
#include "reactors/bootstrapper/desired_set.hpp"
#include "reactors/bootstrapper/problem.hpp"
#include "reactors/bootstrapper_mode.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace rw::bootstrapper {

/// operator.kyma-project.io/v1alpha1, RuntimeBootstrapper: one for each runtime that has, or is to
/// have, the Runtime Bootstrapper.
const k8s::resource_type& runtime_bootstrappers_type();

/// On a RuntimeBootstrapper, as long as something of ours may be on its runtime.
inline constexpr std::string_view finalizer = "operator.kyma-project.io/runtime-bootstrapper";

/// A RuntimeBootstrapper's spec, with what it leaves out filled in.
struct resource_view {
  k8s::object_key key = {};
  std::string runtime = {};        ///< name of the Runtime; empty: only the Kyma is known
  std::string kyma = {};           ///< name of the Kyma; empty: the Runtime's label says it
  std::string configuration = {};  ///< ConfigMap
  std::string pull_secret = {};    ///< Secret; empty: none
  std::string trust_bundle = {};   ///< ClusterTrustBundle; empty: none
  std::string manifests = {};      ///< ConfigMap; empty: they stand in `inline_manifests`
  std::string manifests_key = {};
  std::string inline_manifests = {};
  target_names to = {};
  bool suspended = false;
  bool remove_with_source = false;  ///< what becomes of a source's objects when it is deleted

  friend bool operator==(const resource_view&, const resource_view&) = default;
};

inline constexpr std::string_view default_manifests_key = "manifests.yaml";

/// Reads a RuntimeBootstrapper. Sources that the spec does not name are those of `sources`. What is
/// wrong, beyond what the schema refuses, is added to `wrong`.
resource_view read_resource(const boost::json::value& object, const bootstrapper_sources& sources,
                            problems& wrong);

/// A RuntimeBootstrapper for a Runtime that has none, in its name, and owned by it. The Runtime's
/// metadata are enough.
boost::json::value resource_for(const boost::json::value& runtime,
                                const bootstrapper_sources& sources);

}  // namespace rw::bootstrapper
