#include "reactors/trust_bundles_type.hpp"

#include <string>

namespace rw {
namespace {

constexpr auto bundle_group = "certificates.k8s.io";

}  // namespace

boost::asio::awaitable<k8s::result<std::optional<k8s::resource_type>>> find_trust_bundles(
    k8s::client& api) {
  using found = std::optional<k8s::resource_type>;
  const auto versions = co_await api.versions(bundle_group);
  if (versions.has_error()) co_return versions.error();
  for (const auto& version : *versions) {
    std::string group_version = bundle_group;
    group_version += "/" + version;
    const auto resources = co_await api.resources(std::move(group_version));
    if (resources.has_error() && resources.error().is(k8s::errc::not_found)) continue;
    if (resources.has_error()) co_return resources.error();
    for (const auto& one : *resources) {
      if (one.type.gvk.kind == trust_bundle_kind) co_return found(one.type);
    }
  }
  co_return found();
}

}  // namespace rw
