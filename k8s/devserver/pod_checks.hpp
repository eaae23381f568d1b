#pragma once

#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// Checks a PodSpec (Kubernetes, "pkg/apis/core/validation"): containers, their images, ports,
/// variables, mounts, resources and probes, volumes, policies.
void check_pod_spec(const boost::json::value& spec, const std::string& at,
                    std::vector<cause>& found);

/// Adds warnings of what is valid in a PodSpec, and in most cases a mistake ("pkg/api/pod",
/// warnings.go): selectors that match no Pod.
void warn_of_pod_spec(const boost::json::value& spec, const std::string& at,
                      std::vector<std::string>& warnings);

/// Checks a Pod: its spec, and that an update changes only what may change.
void check_pod(const boost::json::value& before, const boost::json::value& object,
               std::vector<cause>& found);

}  // namespace rw::k8s::devserver
