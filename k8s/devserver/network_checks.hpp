#pragma once

#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <vector>

// Part of builtin_rules.hpp: kinds of networking.k8s.io, and ports (Kubernetes,
// "pkg/apis/networking/validation"). `before` is null for a new object.

namespace rw::k8s::devserver {

/// Checks a port that is a number or a name.
void check_port_value(const boost::json::value& port, const std::string& at,
                      std::vector<cause>& found);

void check_ingress(const boost::json::value& before, const boost::json::value& object,
                   std::vector<cause>& found);
void check_network_policy(const boost::json::value& before, const boost::json::value& object,
                          std::vector<cause>& found);

}  // namespace rw::k8s::devserver
