#pragma once

#include "rw/k8s/devserver/cluster.hpp"
#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

namespace rw::k8s::devserver {

/// Adds to a new Pod what kube-apiserver's admission plugins add, and nobody owns: the priority of
/// its class (Priority), tolerations of five minutes for nodes that are not ready
/// (DefaultTolerationSeconds). 403 if there is no such class.
outcome<void> admit_pod(const cluster& in, boost::json::value& pod);

/// Adds the same to an update that leaves it out.
void carry_admitted(const boost::json::value& before, boost::json::value& pod);

}  // namespace rw::k8s::devserver
