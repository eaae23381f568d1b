#pragma once

#include "rw/k8s/devserver/custom_kinds.hpp"
#include "rw/k8s/devserver/faults.hpp"
#include "rw/k8s/devserver/gc_task.hpp"
#include "rw/k8s/devserver/owner_index.hpp"
#include "rw/k8s/devserver/storage.hpp"

#include <string>
#include <utility>

namespace rw::k8s::devserver {

/// Snapshot of a cluster's stored objects.
struct cluster_backup {
  storage::contents objects;
  custom_kinds kinds;
  owner_index owners;
};

/// One logical cluster: the state that all its requests share. Small until it is used. Requests and
/// watches own a share, so that it outlives its removal from the server as long as they need it.
struct cluster {
  cluster(std::string its_name, std::size_t history, std::shared_ptr<const storage> base = nullptr)
      : name(std::move(its_name)), objects(history, std::move(base)) {}

  std::string name;
  storage objects;
  custom_kinds kinds;
  owner_index owners;
  gc_task_list gc_tasks;
  devserver::faults faults;

  cluster_backup back_up() const { return {objects.save(), kinds, owners}; }
  void restore(const cluster_backup& from, bool reuse_versions) {
    objects.restore(from.objects, reuse_versions);
    kinds = from.kinds;
    owners = from.owners;
    gc_tasks.open.clear();
  }

  /// Dependents, and the content of namespaces, are deleted, as by kube-controller-manager. To be
  /// switched off before the first request (server::memory).
  bool controllers = true;
  /// Deployments get the status that they have once their Pods run; there are no Pods.
  bool running_deployments = false;
  bool removed = false;  ///< from the server; only requests and watches under way still use it
};

}  // namespace rw::k8s::devserver
