#pragma once

#include "rw/core/sip_hash.hpp"
#include "rw/k8s/objects/names.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace rw {

/// The clusters that a Kyma names as its own. A cluster has several names: the runtime id, and the
/// address with the CA of its API server.
struct cluster_claim {
  k8s::object_key kyma = {};
  std::string uid = {};
  std::chrono::system_clock::time_point created = {};
  std::vector<std::string> clusters = {};
  /// The Kyma has no readable kubeconfig, so its address is not known: it still claims what is
  /// recorded as its own.
  bool is_incomplete = false;
};

/// Records which Kyma each cluster belongs to, and decides between Kymas that claim the same one.
///
/// The recorded owner stays the owner as long as its Kyma exists and claims the cluster. Without a
/// record the older Kyma is the owner; of the same age, the one with the smaller uid. A Kyma that
/// does not own all of the clusters that it claims owns none of them anew.
///
/// Pure: it knows only the claims that it is given. Not thread-safe.
class cluster_owners {
 public:
  /// Returns the Kyma among `rivals` that owns a cluster which `self` claims; null: `self` owns all
  /// of them, and is recorded as their owner. `rivals`: the claims of all other existing Kymas that
  /// claim one of these clusters, or that `recorded` names.
  const cluster_claim* decide(const cluster_claim& self, std::span<const cluster_claim> rivals);

  /// Returns the Kyma that is recorded as the cluster's owner; null: none is. Valid until the next
  /// change.
  const k8s::object_key* recorded(const std::string& cluster) const;

  /// Returns the clusters that are recorded as the Kyma's.
  std::vector<std::string> owned_by(const k8s::object_key& kyma) const;

  /// Records an owner as a former leader did, unless another is recorded.
  void restore(const k8s::object_key& kyma, const std::string& uid,
               const std::vector<std::string>& clusters);

  /// Counts the changes of the records.
  std::size_t changes() const noexcept { return changes_; }

  /// Forgets a Kyma that is deleted.
  void forget(const k8s::object_key& kyma);

 private:
  struct owner {
    k8s::object_key kyma;
    std::string uid;
  };

  bool is_recorded(const std::string& cluster, const cluster_claim& of) const;

  std::size_t changes_ = 0;
  std::unordered_map<std::string, owner, core::foreign_text_hash> owners_;
  std::unordered_map<k8s::object_key, std::vector<std::string>, k8s::object_key_hash> owned_;
};

}  // namespace rw
