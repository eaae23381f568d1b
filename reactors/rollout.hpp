#pragma once

#include "k8s/names.hpp"
#include "tls/ca_bundle.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace rw {

/// What was seen on one runtime cluster: not what was sent there, but what is there.
struct rollout_observation {
  using time_point = std::chrono::system_clock::time_point;

  /// Fingerprints of the authorities that both the webhook configurations' `caBundle` and the
  /// Secret's `ca.crt` have: what the cluster trusts wherever it looks.
  std::vector<std::string> authorities = {};
  /// Of the client certificate in use there.
  time_point client_not_before = {};
  /// Fingerprint of the authority that issued it; empty if neither bundle has that.
  std::string client_issuer = {};

  bool trusts(const std::string& fingerprint) const noexcept;
  friend bool operator==(const rollout_observation&, const rollout_observation&) = default;
};

rollout_observation observe_rollout(const tls::ca_bundle& webhooks, const tls::ca_bundle& secret,
                                    const tls::certificate& client);

/// How far CA bundles and client certificates have come, for each runtime: the installer writes
/// what it has seen, and the rotation of the gateway's certificate reads it before it takes a step
/// that needs all of them.
///
/// A runtime is named by its Kyma. It is either not observed yet (since this process leads), or
/// observed, and in either case it may be out of reach: then the last observation stands.
///
/// Until `complete` was called nobody may conclude anything from who is *not* on the board. Holds
/// as many entries as there are Kymas; the installer removes those that go.
///
/// Everything happens on one executor (thread or strand); it has no coroutines of its own.
class rollout_board {
 public:
  using time_point = std::chrono::system_clock::time_point;

  struct entry {
    std::optional<rollout_observation> seen = {};
    std::optional<time_point> unreachable_since = {};  ///< none: it can be reached, or nobody tried
  };

  /// A runtime that exists. No news if it is known.
  void expect(const k8s::object_key& kyma);
  /// Seen, by that reached as well. Record it when the pods run with it, not when it was applied.
  void observed(const k8s::object_key& kyma, rollout_observation seen);
  /// It answered, though nothing new can be said of what it has.
  void reached(const k8s::object_key& kyma);
  /// Out of reach; `since` counts from the first time.
  void unreachable(const k8s::object_key& kyma, time_point since);
  /// Its Kyma is gone.
  void forget(const k8s::object_key& kyma);
  /// All runtimes that exist have been expected once.
  void complete();
  /// Forgets everything, because another process may have led meanwhile.
  void clear();

  bool is_complete() const noexcept { return complete_; }
  std::size_t size() const noexcept { return entries_.size(); }
  const entry* find(const k8s::object_key& kyma) const;
  void for_each(const std::function<void(const k8s::object_key&, const entry&)>& each) const;

  /// Calls `changed` after each change, as long as the caller keeps the result. It must not change
  /// the board.
  [[nodiscard]] std::shared_ptr<void> subscribe(std::function<void()> changed);

 private:
  void tell();

  std::unordered_map<k8s::object_key, entry, k8s::object_key_hash> entries_;
  bool complete_ = false;
  std::vector<std::weak_ptr<std::function<void()>>> listeners_;
};

}  // namespace rw
