#pragma once

#include "rw/k8s/devserver/cluster.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// Returns the cluster's discovery document (Kubernetes API concepts, "Discovery API") at a path
/// such as /api, /apis, /apis/apps, /apis/apps/v1; nothing if it is not a path of discovery, or the
/// group or version is not served.
std::optional<boost::json::value> discover(const cluster& in, const std::vector<std::string>& path);

/// Returns true if the client prefers to read all groups at once: it names apidiscovery.k8s.io/v2
/// before the usual form.
bool wants_aggregated_discovery(std::string_view accept);

/// Returns the documents of `discover` as one (apidiscovery.k8s.io/v2, APIGroupDiscoveryList), at
/// /api and /apis; nothing for other paths.
std::optional<boost::json::value> discover_all(const cluster& in,
                                               const std::vector<std::string>& path);
inline constexpr std::string_view aggregated_discovery_type =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Returns the document at /version; `version` is such as "v1.32.0".
boost::json::value version_info(std::string_view version);

}  // namespace rw::k8s::devserver
