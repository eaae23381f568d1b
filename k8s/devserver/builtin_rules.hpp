#pragma once

#include "rw/k8s/devserver/call.hpp"
#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <vector>

namespace rw::k8s::devserver {

/// Fills in what depends on more than a field's type (builtin_defaults.hpp). In place, idempotent.
///
/// Not simulated: everything that controllers, the scheduler and kubelets do. Pods stay Pending,
/// Deployments make no ReplicaSets, Services have no endpoints.
void fill_builtin_defaults(const resource& of, boost::json::value& object);

/// Sets what only the server decides at creation.
void begin_builtin_life(const resource& of, boost::json::value& object, const std::string& now);

/// Sets what the server allocates, and nobody owns: a Service's addresses and node ports. 422 if
/// what the client has chosen can't be allocated. `before` is null for a new object.
outcome<void> allocate_builtin(const cluster& in, const resource& of,
                               const boost::json::value& before, boost::json::value& object);

/// Adds what was allocated before to an update that leaves it out.
void carry_allocated(const resource& of, const boost::json::value& before,
                     boost::json::value& object);

/// Returns false for a new Service whose address another one has received meanwhile.
bool has_room_for(const cluster& in, const resource& of, const boost::json::value& object);

/// Writes what a controller would write soon after it observes the object. Also on updates.
void settle_builtin(const cluster& in, const resource& of, boost::json::value& object,
                    const std::string& now);

/// Adds warnings of a valid object.
void warn_of_builtin(const resource& of, const boost::json::value& object,
                     std::vector<std::string>& warnings);

/// Adds the errors of a built-in object, beyond its metadata. Checks only what users of Kubernetes
/// meet in practice. `before` is null for a new object.
void check_builtin(const resource& of, const boost::json::value& before,
                   const boost::json::value& object, std::vector<cause>& found);

}  // namespace rw::k8s::devserver
