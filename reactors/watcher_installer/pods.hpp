#pragma once

#include <boost/json/value.hpp>

#include <string>

namespace rw::watcher_installer {

bool has_ready_pod(const boost::json::value& deployment);

/// True if some of the pods are of another template than the Deployment's. They may be ending, and
/// still deliver what they accepted, with the certificate and the bundle that they began with:
/// kubelet does not renew the volumes of a pod that is ending.
bool has_former_pods(const boost::json::value& deployment, const boost::json::value& pods);

/// Why no pod of a list is ready: the reason that a container waits for, or that the pod has no
/// node. Starting up is a reason only where there is no other.
struct waiting {
  std::string reason = {};
  std::string message = {};
};
waiting waiting_of(const boost::json::value& pods);

}  // namespace rw::watcher_installer
