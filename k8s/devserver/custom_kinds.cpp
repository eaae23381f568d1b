#include "rw/k8s/devserver/custom_kinds.hpp"

namespace rw::k8s::devserver {
namespace {

served_resource in_version(std::shared_ptr<const resource> kind, std::string_view version) {
  if (kind == nullptr) return {};
  const auto* found = kind->find(version);
  return {std::move(kind), found};
}

}  // namespace

void custom_kinds::set(std::shared_ptr<const resource> kind) {
  custom_[resource_name(kind->plural, kind->group)] = std::move(kind);
}

void custom_kinds::remove(std::string_view group, std::string_view plural) {
  custom_.erase(resource_name(plural, group));
}

std::shared_ptr<const resource> custom_kinds::find(std::string_view group,
                                                   std::string_view plural) const {
  if (auto found = find_builtin(group, plural)) return found;
  if (custom_.empty()) return nullptr;
  const auto at = custom_.find(resource_name(plural, group));
  return at == custom_.end() ? nullptr : at->second;
}

served_resource custom_kinds::find(std::string_view group, std::string_view version,
                                   std::string_view plural) const {
  return in_version(find(group, plural), version);
}

served_resource custom_kinds::find_kind(std::string_view group, std::string_view version,
                                        std::string_view kind) const {
  served_resource found;
  for_each([&](const std::shared_ptr<const resource>& other) {
    if (found || other->kind != kind || other->group != group) return;
    found = version.empty() ? served_resource{other, &other->versions[other->stored]}
                            : in_version(other, version);
  });
  return found;
}

void custom_kinds::for_each(
    const std::function<void(const std::shared_ptr<const resource>&)>& visit) const {
  for (const auto& builtin_resource : builtin_resources()) visit(builtin_resource);
  for (const auto& [name, kind] : custom_) visit(kind);
}

}  // namespace rw::k8s::devserver
