#pragma once

#include "rw/core/lru_map.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/reactors/shared/cluster_owners.hpp"
#include "rw/reactors/shared/most_runtimes.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace rw::watcher_installer {

/// Returns the name of the cluster that a Kyma names by its runtime id, or a kubeconfig by its
/// server's URL and CA; empty: none.
std::string cluster_of_id(std::string_view runtime_id);
std::string cluster_of_kubeconfig(const std::string& kubeconfig);

/// Which Kymas claim the same cluster, by what KCP says of all of them: the label with the runtime
/// id, and the server's URL and CA in the kubeconfig. A second address of one cluster is not
/// recognised.
///
/// Adds indexes to both informers, so there is one of it for each. Single executor.
class cluster_claims {
 public:
  cluster_claims(k8s::informer& kymas, k8s::informer& kubeconfigs);
  ~cluster_claims();
  cluster_claims(const cluster_claims&) = delete;
  cluster_claims& operator=(const cluster_claims&) = delete;

  /// Returns the name of the Kyma that owns the cluster of `kyma`, which exists; empty: `kyma` owns
  /// it, and is recorded as the owner.
  std::string other_owner(const k8s::object& kyma);
  /// The same, but records nothing.
  std::string find_other_owner(const k8s::object& kyma) const;

  /// Returns the name of another Kyma that claims a cluster of `kyma` and is not being deleted;
  /// empty: none does.
  std::string heir(const k8s::object& kyma) const;

  /// Returns the other Kymas that claim the runtime id of a Kyma, or the address in a kubeconfig
  /// Secret. The object may be an earlier state, or deleted.
  std::vector<k8s::object_key> sharing_id(const k8s::object& kyma) const;
  std::vector<k8s::object_key> sharing_address(const k8s::object& secret) const;

  void forget(const k8s::object_key& kyma) { owners_.forget(kyma); }

  /// Which Kyma each cluster belongs to, for the next leader and from the former one.
  cluster_owners& owners() noexcept { return owners_; }

  /// Returns the Secrets with kubeconfigs for a Kyma.
  std::vector<k8s::object> kubeconfigs_of(std::string_view kyma) const;

 private:
  cluster_claim claim_of(const k8s::object& kyma) const;
  std::vector<cluster_claim> rivals_of(const cluster_claim& self) const;
  std::string address_in(const k8s::object& secret) const;
  void add_sharing(const std::string& cluster, std::vector<k8s::object_key>& into) const;

  k8s::informer& kymas_;
  k8s::informer& kubeconfigs_;
  /// A kubeconfig is costly to parse.
  struct address {
    k8s::object of = {};
    std::string name = {};
  };
  /// Those of kubeconfigs that are gone stay for a while.
  mutable core::lru_map<k8s::object_key, address, k8s::object_key_hash> addresses_{2 *
                                                                                   most_runtimes};
  cluster_owners owners_;
};

}  // namespace rw::watcher_installer
