#include "rw/reactors/shared/bootstrapper_sources.hpp"

#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/trust_bundles_type.hpp"

namespace rw {

std::string_view to_string(source which) noexcept {
  // Part of digests that are stored on objects.
  constexpr std::array<std::string_view, all_sources.size()> names = {
      "configuration", "manifests", "pull Secret", "trust bundle"};
  return names[static_cast<std::size_t>(which)];
}

const k8s::resource_type& type_of(source which) {
  if (which == source::trust_bundle) return trust_bundles_type();
  return which == source::pull_secret ? secrets_type() : config_maps_type();
}

const std::string& bootstrapper_sources::name_of(source which) const {
  return *std::array{&config, &manifests, &pull_secret,
                     &trust_bundle}[static_cast<std::size_t>(which)];
}

k8s::object_key bootstrapper_sources::key_of(source which) const {
  return {type_of(which).namespaced ? std::string(kcp_namespace) : std::string(), name_of(which)};
}

std::string bootstrapper_sources::describe(source which) const {
  return name_of(which).empty() ? std::string()
                                : type_of(which).gvk.kind + " " + to_string(key_of(which));
}

k8s::informer& source_informers::of(source which) const {
  const auto& type = type_of(which);
  return type == secrets.type()       ? secrets
         : type == config_maps.type() ? config_maps
                                      : trust_bundles;
}

k8s::object source_informers::find(source which, const bootstrapper_sources& names) const {
  return of(which).objects().get(names.key_of(which));
}

}  // namespace rw
