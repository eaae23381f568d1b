#pragma once

#include "k8s/devserver/cluster.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// What a cluster serves (Kubernetes API concepts, "Discovery API"): the answer to a path such as
/// /api, /apis, /apis/apps, /apis/apps/v1; nothing if it is no path of discovery, or the group or
/// version is not served.
std::optional<boost::json::value> discover(const cluster& in, const std::vector<std::string>& path);

/// True if a client can read all groups at once: it names apidiscovery.k8s.io/v2 and would rather
/// have that than the usual form.
bool wants_aggregated_discovery(std::string_view accept);

/// What `discover` tells piecemeal (apidiscovery.k8s.io/v2, APIGroupDiscoveryList): the answer to
/// /api and /apis for such a client, nothing for other paths.
std::optional<boost::json::value> discover_all(const cluster& in,
                                               const std::vector<std::string>& path);
inline constexpr std::string_view aggregated_discovery_type =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The answer to /version.
boost::json::value version_info();

}  // namespace rw::k8s::devserver
