#pragma once

#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/objects/names.hpp"

#include <memory>
#include <string_view>

namespace rw {

inline constexpr std::string_view trust_bundle_kind = "ClusterTrustBundle";

/// ClusterTrustBundles (certificates.k8s.io) in the version of Kubernetes 1.33 and later; other
/// versions have the same fields.
const k8s::resource_type& trust_bundles_type();

/// Returns an informer of ClusterTrustBundles in any served version, which it discovers before each
/// list; the objects' own version does not matter. If they are not served, which it logs once,
/// there are none; it lists them at most a minute after the server begins to serve them. If the
/// server stops serving them, lists fail, and the informer keeps its objects.
std::unique_ptr<k8s::informer> trust_bundle_informer(k8s::client& api, k8s::selection selection,
                                                     k8s::informer_environment in);

}  // namespace rw
