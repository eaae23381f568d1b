#pragma once

#include "rw/core/requirements.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <functional>
#include <optional>
#include <string_view>

namespace rw::http {
class handler;
}

namespace rw::k8s::devserver {

/// Where a Service of a simulated cluster leads. Calls fail without an endpoint, worded as by
/// kube-apiserver (pkg/util/proxy, ResolveEndpoint): 'service "x" not found', or
/// 'no endpoints available for service "x"'.
struct service_route {
  bool exists = false;
  std::optional<boost::asio::ip::tcp::endpoint> endpoint = {};
};

/// Called with the cluster's name and the Service as "namespace/name:port", for each call of a
/// webhook that clientConfig.service names. The webhook's certificate must still be for the
/// Service's name.
using service_resolver =
    std::function<service_route(std::string_view cluster, std::string_view service)>;

/// Called with the cluster's name and the Pod as "namespace/name:port", for each request to the
/// proxy of a Pod (Kubernetes API reference, "Get Connect Proxy Path"). Returns who handles it;
/// null: there is no such Pod. The handler gets the path below the proxy's, and no peer's address.
using pod_resolver = std::function<http::handler*(std::string_view cluster, std::string_view pod)>;

}  // namespace rw::k8s::devserver
