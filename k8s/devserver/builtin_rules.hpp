#pragma once

#include "rw/k8s/devserver/call.hpp"
#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <vector>

namespace rw::k8s::devserver {

/// Fills in the defaults of built-in kinds that clients depend on: what kubectl, controllers and
/// this project's reactors read back. In place, idempotent.
///
/// Not simulated: everything that controllers, the scheduler and kubelets do. Pods stay Pending,
/// Deployments make no ReplicaSets, Services have no endpoints.
void fill_builtin_defaults(const resource& of, boost::json::value& object);

/// Sets what only the server decides at creation, such as a Service's address.
void begin_builtin_life(const cluster& in, const resource& of, boost::json::value& object);

/// Returns false for a new Service whose address another one has received meanwhile.
bool has_room_for(const cluster& in, const resource& of, const boost::json::value& object);

/// Writes what a controller would write soon after it observes the object. Also on updates.
void settle_builtin(const cluster& in, const resource& of, boost::json::value& object,
                    const std::string& now);

/// Returns why an object can't be decoded as its kind, in the words of Go's decoder; empty if it
/// can. Checks only fields that this server, or a client of this project, reads itself.
std::string builtin_type_error(const resource& of, const boost::json::value& object);

/// Adds the errors of a built-in object, beyond its metadata. Checks only what users of Kubernetes
/// meet in practice. `before` is null for a new object.
void check_builtin(const resource& of, const boost::json::value& before,
                   const boost::json::value& object, std::vector<cause>& found);

}  // namespace rw::k8s::devserver
