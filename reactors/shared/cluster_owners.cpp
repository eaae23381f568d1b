#include "rw/reactors/shared/cluster_owners.hpp"

#include <algorithm>
#include <tuple>

namespace rw {
namespace {

bool contains(const cluster_claim& of, const std::string& cluster) {
  return std::ranges::find(of.clusters, cluster) != of.clusters.end();
}

bool precedes(const cluster_claim& claim, const cluster_claim& other) {
  return std::tie(claim.created, claim.uid) < std::tie(other.created, other.uid);
}

}  // namespace

bool cluster_owners::is_recorded(const std::string& cluster, const cluster_claim& of) const {
  const auto at = owners_.find(cluster);
  return at != owners_.end() && at->second.kyma == of.kyma && at->second.uid == of.uid;
}

const cluster_claim* cluster_owners::decide(const cluster_claim& self,
                                            std::span<const cluster_claim> rivals) {
  for (const auto& cluster : self.clusters) {
    for (const auto& rival : rivals) {
      const bool claims = contains(rival, cluster) || rival.is_incomplete;
      if (claims && is_recorded(cluster, rival)) return &rival;
    }
  }
  for (const auto& cluster : self.clusters) {
    if (is_recorded(cluster, self)) continue;
    for (const auto& rival : rivals) {
      if (contains(rival, cluster) && precedes(rival, self)) return &rival;
    }
  }
  auto clusters = self.clusters;
  if (self.is_incomplete) {
    for (auto& claim : owned_by(self.kyma)) {
      if (is_recorded(claim, self) && !contains(self, claim)) clusters.push_back(std::move(claim));
    }
  }
  const auto recorded = [&](const auto& claim) { return is_recorded(claim, self); };
  if (clusters == owned_by(self.kyma) && std::ranges::all_of(clusters, recorded)) return nullptr;
  forget(self.kyma);
  ++changes_;
  for (const auto& cluster : clusters) owners_[cluster] = {self.kyma, self.uid};
  owned_[self.kyma] = std::move(clusters);
  return nullptr;
}

const k8s::object_key* cluster_owners::recorded(const std::string& cluster) const {
  const auto at = owners_.find(cluster);
  return at == owners_.end() ? nullptr : &at->second.kyma;
}

std::vector<std::string> cluster_owners::owned_by(const k8s::object_key& kyma) const {
  const auto at = owned_.find(kyma);
  return at == owned_.end() ? std::vector<std::string>() : at->second;
}

void cluster_owners::restore(const k8s::object_key& kyma, const std::string& uid,
                             const std::vector<std::string>& clusters) {
  if (owned_.contains(kyma)) return;
  for (const auto& cluster : clusters) {
    if (!owners_.try_emplace(cluster, owner{kyma, uid}).second) continue;
    owned_[kyma].push_back(cluster);
    ++changes_;
  }
}

void cluster_owners::forget(const k8s::object_key& kyma) {
  const auto at = owned_.find(kyma);
  if (at == owned_.end()) return;
  for (const auto& cluster : at->second) {
    const auto owner = owners_.find(cluster);
    if (owner != owners_.end() && owner->second.kyma == kyma) owners_.erase(owner);
  }
  owned_.erase(at);
  ++changes_;
}

}  // namespace rw
