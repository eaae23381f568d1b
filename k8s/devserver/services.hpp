#pragma once

#include "rw/k8s/devserver/cluster.hpp"
#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <vector>

// What kube-apiserver allocates for Services: addresses of 10.0.0.0/16, whose first is that of
// `kubernetes`, and node ports of 30000 to 32767 (Kubernetes, "pkg/registry/core/service").

namespace rw::k8s::devserver {

/// Adds what an update of a Service leaves out and only the server decides, and removes what the
/// new type does not have.
void carry_service(const boost::json::value& before, boost::json::value& object);

/// Allocates what a Service has no value for. 422 if a chosen address or port is not free, or out
/// of its range. `before` is null for a new one.
outcome<void> allocate_service(const cluster& in, const boost::json::value& before,
                               boost::json::value& object);

/// Returns false if another Service has received the address meanwhile.
bool has_free_address(const cluster& in, const boost::json::value& object);

/// Adds the errors of a Service.
void check_service(const boost::json::value& before, const boost::json::value& object,
                   std::vector<cause>& found);

}  // namespace rw::k8s::devserver
