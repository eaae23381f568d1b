#pragma once

#include "rw/k8s/client/client.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <string>
#include <vector>

namespace rw::watcher_installer {

/// Returns the names of a Deployment's pods that may run, now or soon; none where there is no
/// Deployment (null), or the pods can't be read. The arguments must outlive the call.
boost::asio::awaitable<std::vector<std::string>> list_pods(k8s::client* api,
                                                           const boost::json::value* deployment);

/// Makes kubelet update the Secret that these pods mount at once rather than by its period, by a
/// change of their annotation `secret_version_annotation` (render.hpp). Asks for the right to
/// first. Nothing depends on it: failures are ignored. `version`: the Secret's. False: the right
/// is missing.
boost::asio::awaitable<bool> request_update(k8s::client* api, const boost::json::value* deployment,
                                            std::string version, std::string field_manager);

}  // namespace rw::watcher_installer
