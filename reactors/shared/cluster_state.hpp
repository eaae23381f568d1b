#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/objects/label_selector.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/shared/status_reason.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw {

/// The observed state of one runtime cluster, rather than what was sent.
struct runtime_trust {
  using time_point = std::chrono::system_clock::time_point;

  /// Fingerprints of the authorities that are in both the webhook configuration's `caBundle`s and
  /// the Secret's `ca.crt`: the cluster trusts them everywhere.
  std::vector<std::string> authorities = {};
  /// Of the certificate in the Secret.
  time_point client_not_before = {};
  /// Fingerprint of the authority that issued it; empty if neither bundle has it.
  std::string client_issuer = {};

  bool trusts(const std::string& fingerprint) const noexcept;
  friend bool operator==(const runtime_trust&, const runtime_trust&) = default;
};

/// Who has to act before a runtime converges.
enum class cluster_fault : std::uint8_t {
  manager,  ///< this manager, or how it is configured
  tenant,  ///< the runtime, or its owner: it is unreachable, has no kubeconfig, rejects writes, ...
  issuer,  ///< of certificates
  kcp,     ///< what KCP says of the runtime
};
std::string_view to_string(cluster_fault of) noexcept;

/// What this manager has to do with a runtime, as its Kyma says.
enum class cluster_scope : std::uint8_t {
  managed,
  left_alone,  ///< by the label `skip-reconciliation`
  unselected,  ///< `--only` does not select it: another manager is responsible for it
  leaving,     ///< the Kyma is deleted, and the watcher is being removed
};
/// Returns the scope of a Kyma that is not leaving.
cluster_scope scope_of(const boost::json::value& kyma, const k8s::label_selector& only);

/// Why a runtime has not converged.
struct cluster_error {
  status_reason reason = status_reason::none;
  cluster_fault fault = cluster_fault::manager;
  /// Time from which on it has not converged through such a fault, whatever the reason.
  std::chrono::system_clock::time_point since = {};

  friend bool operator==(const cluster_error&, const cluster_error&) = default;
};

/// What is known of one runtime cluster: whose it is, what is in place there, and why that is not
/// what is desired.
struct cluster_state {
  using time_point = std::chrono::system_clock::time_point;

  /// Name of the Kyma that the cluster belongs to; empty: the Kyma that the state is of.
  std::string owner = {};
  cluster_scope scope = cluster_scope::managed;
  bool is_ready = false;     ///< at the last reconcile that reached it: the watcher, in place
  bool is_outdated = false;  ///< it waits for its turn in a roll-out, with an earlier content
  std::optional<runtime_trust> observed = {};  ///< nothing: not since this process leads
  /// Time of the last change of the observation, by this process's clock: a runtime's own times
  /// are not trusted.
  time_point since = {};
  bool is_loaded = false;  ///< all pods have said that they have loaded what is observed
  std::optional<cluster_error> error = {};  ///< nothing: it has converged, or was not tried
  /// The latest fault of its own since it has last converged, as former leaders knew it, too. It
  /// excuses nothing unless it is the `error`: this leader has to see it itself.
  std::optional<cluster_error> own_fault = {};

  /// Returns since when it has not converged through a fault of its own; nothing: it has, or the
  /// latest fault is another's.
  std::optional<time_point> own_fault_since() const;

  /// Whether what concerns all runtimes has to reach it.
  bool is_concerned() const noexcept {
    return owner.empty() && (scope == cluster_scope::managed || scope == cluster_scope::left_alone);
  }
  /// Whether the watcher works there, as far as writes show, so that probes prove the rest.
  bool is_installed() const noexcept { return is_mine() && is_ready && !is_outdated && !error; }
  /// Whether heartbeats are expected. A watcher reports whether or not the manager reaches its
  /// runtime, or has its kubeconfig. One that waits for its turn may be too old to, and one that
  /// another manager writes may report to that.
  bool is_reporting() const noexcept;
  bool is_mine() const noexcept { return owner.empty() && scope == cluster_scope::managed; }
};

/// The state of each runtime cluster. The installer writes it; the rotation of the gateway's
/// certificate, the heartbeats' tracker, the prober and the pages read it: none decides by itself
/// whether a runtime is installed, reports, or is waited for.
///
/// A runtime is named by its Kyma. Its last observation stays while it does not converge.
///
/// Before `complete` the absence of a runtime means nothing. Holds as many entries as there are
/// Kymas; the installer removes those of deleted ones.
///
/// Everything happens on one executor (thread or strand); it has no coroutines of its own.
class cluster_states {
 public:
  using time_point = std::chrono::system_clock::time_point;

  /// Adds a runtime that exists. Notifies no subscriber if it is known.
  void expect(const k8s::object_key& kyma);
  /// Records what is in place. `is_loaded`: all pods say that they have loaded it, which holds as
  /// long as it stays.
  void observed(const k8s::object_key& kyma, runtime_trust trust, time_point now,
                bool is_loaded = false);
  /// Records a fault of its own that a former leader has seen, unless this one has.
  void restore(const k8s::object_key& kyma, cluster_error own_fault);
  /// Records that the runtime is as desired, and whether the watcher is ready there.
  void converged(const k8s::object_key& kyma, bool is_ready = true);
  /// Records whether it waits for its turn in a roll-out.
  void set_outdated(const k8s::object_key& kyma, bool is_outdated);
  void set_scope(const k8s::object_key& kyma, cluster_scope scope);
  /// Records that it is not. A fault of another than the tenant says nothing of the tenant's: the
  /// time of that one runs until the runtime converges.
  void failing(const k8s::object_key& kyma, status_reason reason, cluster_fault fault,
               time_point now);
  /// Records that the cluster belongs to another Kyma, of which nothing else is known here; or, if
  /// `owner` is empty, that it does no longer.
  void belongs_to(const k8s::object_key& kyma, const std::string& owner);
  /// Removes a runtime whose Kyma is deleted.
  void forget(const k8s::object_key& kyma);
  /// Records that `expect` was called for all existing runtimes.
  void complete();
  /// Records that some were removed that may still exist.
  void reopen();

  bool is_complete() const noexcept { return complete_; }
  std::size_t size() const noexcept { return entries_.size(); }
  const cluster_state* find(const k8s::object_key& kyma) const;
  /// Returns whether the cluster is known to belong to another Kyma.
  bool is_duplicate(const k8s::object_key& kyma) const;
  void for_each(
      const std::function<void(const k8s::object_key&, const cluster_state&)>& visit) const;

  /// Calls `changed` after each change, as long as the caller keeps the result. It must not change
  /// the states.
  [[nodiscard]] std::shared_ptr<void> subscribe(std::function<void()> changed);

 private:
  void notify();

  std::unordered_map<k8s::object_key, cluster_state, k8s::object_key_hash> entries_;
  bool complete_ = false;
  std::vector<std::weak_ptr<std::function<void()>>> listeners_;
};

}  // namespace rw
