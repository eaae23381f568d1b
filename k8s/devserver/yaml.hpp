#pragma once

#include <boost/json/value.hpp>

#include <optional>
#include <string>

namespace rw::k8s::devserver {

/// Parses the first document of a YAML text as JSON, by the rules of Kubernetes (manifests.hpp
/// states them): unquoted scalars may be a number, a boolean or null. Null if there is no document.
/// Bounded in depth, and in the expansion of aliases. Returns nothing on failure, with the error
/// and its position in `why`.
std::optional<boost::json::value> parse_yaml(const std::string& text, std::string& reason);

}  // namespace rw::k8s::devserver
