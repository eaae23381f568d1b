#include "rw/reactors/shared/bootstrapper_sources.hpp"

#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/trust_bundles_type.hpp"

namespace rw {

std::string_view to_string(source source) noexcept {
  // Part of digests that are stored on objects.
  constexpr std::array<std::string_view, all_sources.size()> names = {
      "configuration", "manifests", "pull Secret", "trust bundle"};
  return names[static_cast<std::size_t>(source)];
}

const k8s::resource_type& type_of(source source) {
  if (source == source::trust_bundle) return trust_bundles_type();
  return source == source::pull_secret ? secrets_type() : config_maps_type();
}

const std::string& bootstrapper_sources::name_of(source source) const {
  return *std::array{&config, &manifests, &pull_secret,
                     &trust_bundle}[static_cast<std::size_t>(source)];
}

k8s::object_key bootstrapper_sources::key_of(source source) const {
  return {type_of(source).namespaced ? std::string(kcp_namespace) : std::string(), name_of(source)};
}

std::string bootstrapper_sources::describe(source source) const {
  return name_of(source).empty() ? std::string()
                                 : type_of(source).gvk.kind + " " + to_string(key_of(source));
}

k8s::informer& source_informers::of(source source) const {
  const auto& type = type_of(source);
  return type == secrets.type()       ? secrets
         : type == config_maps.type() ? config_maps
                                      : trust_bundles;
}

k8s::object source_informers::find(source source, const bootstrapper_sources& names) const {
  return of(source).objects().get(names.key_of(source));
}

}  // namespace rw
