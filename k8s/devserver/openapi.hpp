#pragma once

#include "k8s/devserver/cluster.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <vector>

namespace rw::k8s::devserver {

/// OpenAPI v3 as far as kubectl looks at it (Kubernetes API concepts, "OpenAPI interface
/// definition"): which parameters a patch takes, and the schemas of custom resources. Built-in
/// kinds are described as objects of any shape.
///
/// The answer to /openapi/v3 or, below it, to one group version; nothing if that is not served.
std::optional<boost::json::value> describe_openapi(const cluster& in,
                                                   const std::vector<std::string>& path);

}  // namespace rw::k8s::devserver
