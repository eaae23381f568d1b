#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/bootstrapper/desired_set.hpp"
#include "rw/reactors/shared/bootstrapper_mode.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <string_view>

namespace rw::bootstrapper {

/// operator.kyma-project.io/v1alpha1, RuntimeBootstrapper: one for each Runtime, of its name.
const k8s::resource_type& runtime_bootstrappers_type();

/// On a RuntimeBootstrapper whose deletion has to be acted upon.
inline constexpr std::string_view finalizer = "operator.kyma-project.io/runtime-bootstrapper";
/// The command that releases a deleted RuntimeBootstrapper by hand, without an undeployment.
std::string release_command(const std::string& name);
/// On a RuntimeBootstrapper that was created for its Runtime: "true".
inline constexpr std::string_view auto_created_annotation =
    "operator.kyma-project.io/bootstrapper-auto-created";
/// On a Runtime whose auto-created RuntimeBootstrapper was deleted: "true". It gets no other one
/// until the annotation is removed.
inline constexpr std::string_view opt_out_annotation =
    "operator.kyma-project.io/bootstrapper-opt-out";

/// A RuntimeBootstrapper's spec with defaults.
struct resource_view {
  /// Pull Secret and trust bundle without a name: none. Manifests: `inline_manifests`.
  bootstrapper_sources from = {};
  bool own_manifests = false;  ///< another ConfigMap than the manager's default one
  std::string inline_manifests = {};
  bool suspended = false;
  bool adopt = false;  ///< objects of other managers are taken over
};

/// Reads the spec; what the schema can't check becomes an error.
resource_view read_resource(const boost::json::value& object, const bootstrapper_sources& sources,
                            diagnostics& found);

/// True if it takes the content that runtimes share of unit `bootstrapper`, whose sources are
/// `usual`, and so takes part in its roll-out.
bool shares_content(const resource_view& view, const bootstrapper_sources& usual);

/// The RuntimeBootstrapper that a Runtime gets: of its name, owned by it, marked as auto-created
/// and with the finalizer. The Runtime's metadata suffice.
boost::json::value resource_for(const boost::json::value& runtime,
                                const bootstrapper_sources& sources);

}  // namespace rw::bootstrapper
