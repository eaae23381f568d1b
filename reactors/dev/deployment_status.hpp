#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <string>

namespace rw::dev {

const k8s::resource_type& deployments_type();
const k8s::resource_type& pods_type();

/// A pod of the Deployment's template, without a status.
boost::json::value pod_of(const boost::json::value& deployment, const k8s::object_key& key);

/// Writes the status of a Deployment (apps/v1, DeploymentStatus) as its controller would: all of
/// its replicas serve, or none does, for the reason `why`. Writes nothing if the status is up to
/// date or the Deployment is deleted. Arguments passed by pointer must live until then.
boost::asio::awaitable<k8s::result<void>> tell_deployment_status(k8s::client* api,
                                                                 core::clock* time,
                                                                 boost::json::value deployment,
                                                                 bool serves, std::string reason);

/// Returns true if the image of one of its containers has the tag `crash`: such a Deployment's pods
/// crash.
bool crashes(const boost::json::value& deployment);

/// Creates the pod of a crashing Deployment, in CrashLoopBackOff; deletes it if the Deployment is
/// not `crashing` any longer.
boost::asio::awaitable<k8s::result<void>> keep_crashing_pod(k8s::client* api,
                                                            boost::json::value deployment,
                                                            bool crashing);

}  // namespace rw::dev
