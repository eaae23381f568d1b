#pragma once

#include "rw/k8s/devserver/cluster.hpp"
#include "rw/k8s/devserver/identity.hpp"
#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include <functional>
#include <string>
#include <string_view>

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

/// Returns the rules of members of system:masters and of the cluster role cluster-admin.
const boost::json::array& every_right();

/// Calls `take` with each rule (rbac.authorization.k8s.io/v1, PolicyRule) that is bound to the
/// user, or to a group of the user's, in the cluster and in the namespace `ns`, until it returns
/// true. Returns whether it did. Aggregated roles have only the rules written in them.
bool any_rule(const cluster& in, const identity& user, std::string_view ns,
              const std::function<bool(const boost::json::value& rule)>& take);

/// Returns true if a rule grants it.
bool grants(const boost::json::value& rule, const wanted_access& wanted);

/// Returns true if roles that are bound to the user grant it.
bool is_allowed(const cluster& in, const identity& user, const wanted_access& wanted);

/// Returns true if the user may send that verb to a path that is no resource: by a role, or because
/// every user may ("/api", "/version" and such).
bool may_visit(const cluster& in, const identity& user, std::string_view verb,
               std::string_view path);

/// Returns 403 if a user writes a Role with rights that they lack, without the verb `escalate`, or
/// a binding to such a role, without the verb `bind`. `before` is null for a new object.
outcome<void> check_escalation(const cluster& in, const identity& user,
                               const boost::json::value& before, const boost::json::value& object);

/// Returns 403, 'configmaps is forbidden: User "u" cannot list resource "configmaps" in API group
/// "" in the namespace "n"'.
problem access_denied(const identity& user, const wanted_access& wanted);

}  // namespace rw::k8s::devserver
