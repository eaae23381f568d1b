#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s {

/// Returns the errors of a label's or annotation's key, in the words of kube-apiserver; empty if it
/// is well-formed (Kubernetes: "Labels and Selectors", syntax and character set).
std::vector<std::string> label_key_errors(std::string_view key);

/// Returns the errors of a label's value.
std::vector<std::string> label_value_errors(std::string_view value);

/// Returns the errors of the names of most objects: lower-case RFC 1123 subdomains.
std::vector<std::string> dns_subdomain_errors(std::string_view name);

/// Returns the errors of the names of namespaces and the like: lower-case RFC 1123 labels.
std::vector<std::string> dns_label_errors(std::string_view name);

/// Returns the errors of the names of Services: lower-case RFC 1035 labels.
std::vector<std::string> dns_1035_label_errors(std::string_view name);

/// Returns the errors of the names of ports: lower-case IANA service names (RFC 6335, section 5.1).
std::vector<std::string> port_name_errors(std::string_view name);

/// Returns the errors of names that are used as an element of a path.
std::vector<std::string> path_segment_errors(std::string_view name);

}  // namespace rw::k8s
