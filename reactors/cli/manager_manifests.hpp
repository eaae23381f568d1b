#pragma once

/// Manifests of deploy/ as YAML, which built_in.cmake puts into the executable.
namespace rw::cli::manager_manifests {

extern const char* const rbac;
extern const char* const certificates;
extern const char* const gardener_certificates;
extern const char* const bootstrapper_rbac_signal;
extern const char* const bootstrapper_rbac_direct;
extern const char* const workload;        ///< the manager's Deployment and all that goes with it
extern const char* const definitions;     ///< the CustomResourceDefinitions
extern const char* const runtime_rights;  ///< what the user of a runtime's kubeconfig may do

}  // namespace rw::cli::manager_manifests
