#pragma once

#include <boost/json/value.hpp>

#include <optional>
#include <string>

namespace rw::k8s::devserver {

/// The first document of a YAML text as JSON, by the rules of Kubernetes (manifests.hpp tells
/// them): what is not quoted may be a number, a boolean or null. Null if there is none. Bounded in
/// depth, and in what aliases may grow to. Nothing on failure; `why` then says what is wrong, and
/// where.
std::optional<boost::json::value> parse_yaml(const std::string& text, std::string& why);

}  // namespace rw::k8s::devserver
