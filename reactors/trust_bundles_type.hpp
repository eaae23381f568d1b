#pragma once

#include "k8s/client.hpp"
#include "k8s/names.hpp"

#include <boost/asio/awaitable.hpp>

#include <optional>
#include <string_view>

namespace rw {

inline constexpr std::string_view trust_bundle_kind = "ClusterTrustBundle";

/// Asks a server by discovery which resource its ClusterTrustBundles are (certificates.k8s.io, in
/// the first version that has the kind: v1beta1 since Kubernetes 1.33, v1alpha1 before). Nothing:
/// it has none.
boost::asio::awaitable<k8s::result<std::optional<k8s::resource_type>>> find_trust_bundles(
    k8s::client& api);

}  // namespace rw
