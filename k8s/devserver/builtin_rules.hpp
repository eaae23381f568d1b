#pragma once

#include "k8s/devserver/call.hpp"
#include "k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <vector>

namespace rw::k8s::devserver {

/// Defaults of the built-in kinds, as far as clients look at them: what kubectl, controllers and
/// this project's reactors read back. In place, idempotent.
///
/// Not simulated: everything that controllers, the scheduler and kubelets do. Pods stay Pending,
/// Deployments make no ReplicaSets, Services have no endpoints.
void fill_builtin_defaults(const resource& of, boost::json::value& object);

/// What only the server decides at creation, such as a Service's address.
void begin_builtin_life(const cluster& in, const resource& of, boost::json::value& object);

/// False for a new Service whose address another one has got by now.
bool has_room_for(const cluster& in, const resource& of, const boost::json::value& object);

/// What a controller would write as soon as it sees the object, done at once. Also on updates.
void settle_builtin(const cluster& in, const resource& of, boost::json::value& object,
                    const std::string& now);

/// Why an object can't be read as one of its kind, in the words of Go's decoder; empty if it can.
/// Only fields whose content this server, or a client of this project, reads itself are looked at.
std::string builtin_type_error(const resource& of, const boost::json::value& object);

/// What is wrong with a built-in object, beyond its metadata. Only what the real server's users
/// meet in practice is checked. `before` is null for a new object.
void check_builtin(const resource& of, const boost::json::value& before,
                   const boost::json::value& object, std::vector<cause>& found);

}  // namespace rw::k8s::devserver
