#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/cli/settings.hpp"
#include "rw/reactors/shared/access_right.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <vector>

namespace rw::cli {

/// Returns the objects that an installation applies to KCP, in that order: those of the files, as
/// `kubectl apply -f` reads them, or those of deploy/crds and deploy/manager, which are built in. A
/// kustomization.yaml in a directory is skipped; "-" is standard input. Throws setting_error.
std::vector<boost::json::value> read_manifests(const std::vector<std::string>& files);

/// The settings of the manager that the objects install.
struct planned_manager {
  /// The defaults, but for the arguments and variables of its Deployment.
  manager_settings settings = {};
  std::string error = {};  ///< why the manager would reject these; empty: it does not
  /// Flags and variables whose values the manifests do not have; the defaults are assumed.
  std::vector<std::string> unknown = {};
  bool exists = false;  ///< there is such a Deployment
};
planned_manager find_manager(const std::vector<boost::json::value>& objects);

/// Returns the resource of a kind that one of the objects defines.
std::optional<k8s::resource_type> find_definition(const std::vector<boost::json::value>& objects,
                                                  const k8s::group_version_kind& gvk);

/// Returns the rights that a user must have to create the object, besides those of its kind: what a
/// role grants, or the role of a binding (Kubernetes, "Privilege escalation prevention").
/// `objects` may have that role.
std::vector<access_right> granted_rights(const boost::json::value& object,
                                         const std::vector<boost::json::value>& objects);

}  // namespace rw::cli
