#include "rw/reactors/runtime_controller/watched_set.hpp"

#include "rw/core/hash.hpp"

#include <algorithm>
#include <utility>

namespace rw {

watched_set::version watched_set::version::of(const k8s::resource_type& type,
                                              const k8s::object_key& key,
                                              std::string_view resource_version) {
  core::string_hash object;
  object.add(type.plural).add(type.gvk.group).add(key.ns).add(key.name);
  if (resource_version.empty()) return {object.value(), 0};
  return {object.value(), core::string_hash().add(resource_version).value()};
}

watched_set::version_list::iterator watched_set::find(version_list& in, version of) {
  return std::ranges::find(in, of.object, &version::object);
}

void watched_set::put(version_list& into, version of) {
  const auto known = find(into, of);
  known != into.end() ? * known = of : into.emplace_back(of);
}

void watched_set::add(const k8s::resource_type& type, const k8s::object_key& key,
                      std::string_view resource_version, k8s::selection within) {
  within.metadata_only = true;
  const watch watch{type, std::move(within)};
  const auto known = std::ranges::find(watches, watch);
  const auto index = static_cast<std::size_t>(known - watches.begin());
  if (known == watches.end()) watches.push_back(watch);
  auto version = version::of(type, key, resource_version);
  version.watch = index;
  put(versions, version);
}

bool watched_set::contains(const k8s::resource_type& type, const k8s::object_key& key) const {
  return std::ranges::find(versions, version::of(type, key, {}).object, &version::object) !=
         versions.end();
}

}  // namespace rw
