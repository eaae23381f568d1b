#include "rw/k8s/devserver/custom_kinds.hpp"

namespace rw::k8s::devserver {
namespace {

resource_view in_version(std::shared_ptr<const resource> one, std::string_view version) {
  if (one == nullptr) return {};
  const auto* found = one->find(version);
  return {std::move(one), found};
}

}  // namespace

void custom_kinds::set(std::shared_ptr<const resource> one) {
  custom_[resource_name(one->plural, one->group)] = std::move(one);
}

void custom_kinds::remove(std::string_view group, std::string_view plural) {
  custom_.erase(resource_name(plural, group));
}

std::shared_ptr<const resource> custom_kinds::find(std::string_view group,
                                                   std::string_view plural) const {
  if (auto one = find_builtin(group, plural)) return one;
  if (custom_.empty()) return nullptr;
  const auto at = custom_.find(resource_name(plural, group));
  return at == custom_.end() ? nullptr : at->second;
}

resource_view custom_kinds::find(std::string_view group, std::string_view version,
                                 std::string_view plural) const {
  return in_version(find(group, plural), version);
}

resource_view custom_kinds::find_kind(std::string_view group, std::string_view version,
                                      std::string_view kind) const {
  resource_view found;
  each([&](const std::shared_ptr<const resource>& one) {
    if (found || one->kind != kind || one->group != group) return;
    found = version.empty() ? resource_view{one, &one->versions[one->stored]}
                            : in_version(one, version);
  });
  return found;
}

void custom_kinds::each(
    const std::function<void(const std::shared_ptr<const resource>&)>& visit) const {
  for (const auto& one : builtin_resources()) visit(one);
  for (const auto& [name, one] : custom_) visit(one);
}

}  // namespace rw::k8s::devserver
