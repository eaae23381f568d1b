#pragma once

#include "rw/k8s/devserver/cluster.hpp"
#include "rw/k8s/devserver/identity.hpp"
#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <string>

namespace rw::k8s::devserver {

/// An access of a user to a resource (authorization.k8s.io/v1, ResourceAttributes).
struct wanted_access {
  std::string verb;
  std::string group;
  std::string resource;
  std::string subresource = {};
  std::string ns = {};  ///< empty: cluster-scoped, or in all namespaces
  std::string name = {};
};

/// Returns true if a rule of a Role or ClusterRole grants it (rbac.authorization.k8s.io/v1,
/// PolicyRule).
bool grants(const boost::json::value& rule, const wanted_access& wanted);

/// Returns true if roles that are bound to the user, or to a group of the user's, grant it. Members
/// of system:masters may do everything, and so may users bound to cluster-admin. Aggregated roles
/// have only the rules written in them; rules for non-resource URLs are ignored.
bool is_allowed(const cluster& in, const identity& who, const wanted_access& wanted);

/// Returns 403, 'configmaps is forbidden: User "u" cannot list resource "configmaps" in API group
/// "" in the namespace "n"'.
problem access_denied(const identity& who, const wanted_access& wanted);

}  // namespace rw::k8s::devserver
