#include "rw/k8s/devserver/owner_index.hpp"

namespace rw::k8s::devserver {

void owner_index::follow(const std::string& storage_key, const change& change) {
  if (change.before && change.before->owners() != nullptr) {
    for (const auto& uid : *change.before->owners()) {
      const auto range = dependents_.equal_range(uid);
      for (auto at = range.first; at != range.second; ++at) {
        if (at->second.storage_key != storage_key || at->second.path != change.before->path()) {
          continue;
        }
        dependents_.erase(at);
        break;
      }
    }
  }
  if (change.deleted || change.after->owners() == nullptr) return;
  for (const auto& uid : *change.after->owners()) {
    dependents_.emplace(uid, object_place{storage_key, change.after->path()});
  }
}

std::vector<object_place> owner_index::dependents_of(std::string_view uid) const {
  std::vector<object_place> result;
  if (dependents_.empty()) return result;
  const auto range = dependents_.equal_range(std::string(uid));
  for (auto at = range.first; at != range.second; ++at) result.push_back(at->second);
  return result;
}

}  // namespace rw::k8s::devserver
