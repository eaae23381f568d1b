#pragma once

#include "rw/k8s/devserver/cluster.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// Adds what kube-apiserver's admission plugins would do with a new object, and this server does
/// not: ResourceQuota, LimitRanger, PodSecurity, RuntimeClass, DefaultStorageClass and
/// DefaultIngressClass. Where nothing of that kind is configured, they would do nothing.
void add_plugin_gaps(const cluster& in, const resource& of, std::string_view ns,
                     const boost::json::value& object, std::vector<std::string>& gaps);

}  // namespace rw::k8s::devserver
