#pragma once

#include "rw/k8s/devserver/cluster.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <vector>

namespace rw::k8s::devserver {

/// Returns the part of OpenAPI v3 that kubectl uses (Kubernetes API concepts, "OpenAPI interface
/// definition"): the parameters of a patch, and the schemas of custom resources. Built-in kinds are
/// described as objects of any shape.
///
/// The document at /openapi/v3 or, below it, of one group version; nothing if that is not served.
std::optional<boost::json::value> describe_openapi(const cluster& in,
                                                   const std::vector<std::string>& path);

}  // namespace rw::k8s::devserver
