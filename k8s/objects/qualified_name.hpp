#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s {

/// What is wrong with a label's key (or an annotation's), in the words of the real API server;
/// nothing: it is well-formed (Kubernetes: "Labels and Selectors", syntax and character set).
std::vector<std::string> label_key_errors(std::string_view key);

/// The same for a label's value.
std::vector<std::string> label_value_errors(std::string_view value);

/// The same for names of most objects: lower-case RFC 1123 subdomains.
std::vector<std::string> dns_subdomain_errors(std::string_view name);

/// The same for names of namespaces and the like: lower-case RFC 1123 labels.
std::vector<std::string> dns_label_errors(std::string_view name);

}  // namespace rw::k8s
