#pragma once

#include <boost/json/value.hpp>

#include <optional>
#include <string>

namespace rw::k8s::devserver {

/// One YAML document as JSON, by the rules of Kubernetes (YAML 1.1's scalars; sigs.k8s.io/yaml):
/// what is not quoted may be a number, a boolean or null. Bounded in depth, and in what aliases may
/// grow to. Nothing on failure; `why` then says what is wrong, and where.
std::optional<boost::json::value> parse_yaml(const std::string& text, std::string& why);

}  // namespace rw::k8s::devserver
