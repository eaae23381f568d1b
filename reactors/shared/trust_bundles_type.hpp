#pragma once

#include "k8s/cache/informer.hpp"
#include "k8s/client/client.hpp"
#include "k8s/objects/names.hpp"

#include <memory>
#include <string_view>

namespace rw {

inline constexpr std::string_view trust_bundle_kind = "ClusterTrustBundle";

/// ClusterTrustBundles (certificates.k8s.io) in the version that Kubernetes has since 1.33; others
/// have the same fields.
const k8s::resource_type& trust_bundles_type();

/// An informer of ClusterTrustBundles in whichever version a server has them, which discovery finds
/// before each list; what version an object says does not matter. Where they are not served, which
/// is logged once (`logs`: of several informers one should), there are none; a minute at most after
/// the server begins to serve them they are listed. Where it ceases to, lists fail, and the
/// informer keeps what it has.
std::unique_ptr<k8s::informer> trust_bundle_informer(k8s::client& api, k8s::selection what,
                                                     k8s::informer_environment in,
                                                     bool logs = true);

}  // namespace rw
