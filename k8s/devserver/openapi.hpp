#pragma once

#include "rw/k8s/devserver/cluster.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <vector>

namespace rw::k8s::devserver {

/// Returns the part of OpenAPI v3 that kubectl uses (Kubernetes API concepts, "OpenAPI interface
/// definition"): the parameters of a patch, and the schemas of all kinds.
///
/// The document at /openapi/v3 or, below it, of one group version; nothing if that is not served.
std::optional<boost::json::value> describe_openapi(const cluster& in,
                                                   const std::vector<std::string>& path);

/// Returns the document at /openapi/v2, of the same parts.
boost::json::object describe_openapi_v2(const cluster& in);

}  // namespace rw::k8s::devserver
