#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <string>

namespace rw::k8s::devserver {

/// Returns the status of a Deployment (apps/v1, DeploymentStatus) as its controller writes it once
/// all of its replicas serve, or none does, for the reason `why_not`.
boost::json::object deployment_status(const boost::json::value& deployment, bool serves,
                                      const std::string& why_not,
                                      std::chrono::system_clock::time_point now);

}  // namespace rw::k8s::devserver
