#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/objects/names.hpp"

#include <chrono>
#include <cstddef>
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

/// Progress of CA bundles and certificates, for each runtime: the installer writes its
/// observations, and the rotation of the gateway's certificate reads them before a step that needs
/// all runtimes.
///
/// A runtime is named by its Kyma. It is either not observed yet (since this process leads), or
/// observed; in either case it may be unreachable, and its last observation then stays.
///
/// Before `complete` the absence of a runtime means nothing. Holds as many entries as there are
/// Kymas; the installer removes those of deleted ones.
///
/// Everything happens on one executor (thread or strand); it has no coroutines of its own.
class rollout_tracker {
 public:
  using time_point = std::chrono::system_clock::time_point;

  struct entry {
    std::optional<runtime_trust> observed = {};
    /// Time of the last change of the observation, by this process's clock: a runtime's own times
    /// are not trusted.
    time_point since = {};
    std::optional<time_point> unreachable_since = {};  ///< nothing: reachable, or not tried
  };

  /// Adds a runtime that exists. Notifies no subscriber if it is known.
  void expect(const k8s::object_key& kyma);
  /// Records an observation; the runtime is reachable.
  void observed(const k8s::object_key& kyma, runtime_trust trust, time_point now);
  /// Records that it responded, without a new observation.
  void reached(const k8s::object_key& kyma);
  /// Records that it is unreachable; `since` counts from the first time.
  void unreachable(const k8s::object_key& kyma, time_point since);
  /// Removes a runtime whose Kyma is deleted.
  void forget(const k8s::object_key& kyma);
  /// Records that `expect` was called for all existing runtimes.
  void complete();

  bool is_complete() const noexcept { return complete_; }
  std::size_t size() const noexcept { return entries_.size(); }
  const entry* find(const k8s::object_key& kyma) const;
  void for_each(const std::function<void(const k8s::object_key&, const entry&)>& each) const;

  /// Calls `changed` after each change, as long as the caller keeps the result. It must not change
  /// the tracker.
  [[nodiscard]] std::shared_ptr<void> subscribe(std::function<void()> changed);

 private:
  void notify();

  std::unordered_map<k8s::object_key, entry, k8s::object_key_hash> entries_;
  bool complete_ = false;
  std::vector<std::weak_ptr<std::function<void()>>> listeners_;
};

}  // namespace rw
