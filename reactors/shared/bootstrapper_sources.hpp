#pragma once

#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/k8s/objects/object.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rw {

/// One of the objects in KCP with the configuration of the runtimes.
enum class source : std::uint8_t { config, manifests, pull_secret, trust_bundle };

inline constexpr std::array all_sources{source::config, source::manifests, source::pull_secret,
                                        source::trust_bundle};

/// Returns a name for people, such as "pull Secret".
std::string_view to_string(source source) noexcept;
const k8s::resource_type& type_of(source source);

struct bootstrapper_sources {
  std::string config = "rt-bootstrapper-config";              ///< ConfigMap
  std::string manifests = "runtime-bootstrapper-manifests";   ///< ConfigMap
  std::string pull_secret = "registry-credentials";           ///< kubernetes.io/dockerconfigjson
  std::string trust_bundle = "rt-bootstrapper-trust-bundle";  ///< ClusterTrustBundle

  const std::string& name_of(source source) const;
  /// Returns its key: in `kcp_namespace`, unless it is cluster-scoped.
  k8s::object_key key_of(source source) const;
  /// Returns "ConfigMap kcp-system/rt-bootstrapper-config"; empty if it has no name.
  std::string describe(source source) const;

  friend bool operator==(const bootstrapper_sources&, const bootstrapper_sources&) = default;
};

/// Informers of the sources, which may hold other objects as well. They must outlive it.
struct source_informers {
  k8s::informer& config_maps;  ///< of kcp-system
  k8s::informer& secrets;      ///< of kcp-system
  k8s::informer& trust_bundles;

  k8s::informer& of(source source) const;
  /// The source as it is; empty: it does not exist.
  k8s::object find(source source, const bootstrapper_sources& names) const;
};

}  // namespace rw
