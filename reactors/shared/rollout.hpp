#pragma once

#include "core/clock.hpp"
#include "k8s/objects/names.hpp"

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

/// What is in place on one runtime cluster: observed there, not what was sent.
struct runtime_trust {
  using time_point = std::chrono::system_clock::time_point;

  /// Fingerprints of the authorities that both the webhook configuration's `caBundle`s and the
  /// Secret's `ca.crt` have: what the cluster trusts wherever it looks.
  std::vector<std::string> authorities = {};
  /// Of the certificate in the Secret.
  time_point client_not_before = {};
  /// Fingerprint of the authority that issued it; empty if neither bundle has that.
  std::string client_issuer = {};

  bool trusts(const std::string& fingerprint) const noexcept;
  friend bool operator==(const runtime_trust&, const runtime_trust&) = default;
};

/// How far CA bundles and certificates have come, for each runtime: the installer writes what it
/// has observed, and the rotation of the gateway's certificate reads it before it takes a step that
/// needs all of them.
///
/// A runtime is named by its Kyma. It is either not observed yet (since this process leads), or
/// observed, and in either case it may be out of reach: then the last observation stands.
///
/// Until `complete` was called nothing may be concluded from what is *not* tracked. Holds as
/// many entries as there are Kymas; the installer removes those that go.
///
/// Everything happens on one executor (thread or strand); it has no coroutines of its own.
class rollout_tracker {
 public:
  using time_point = std::chrono::system_clock::time_point;

  struct entry {
    std::optional<runtime_trust> observed = {};
    /// Since when nothing else was observed, by this process's clock: nothing that a runtime says
    /// of itself is believed.
    time_point since = {};
    std::optional<time_point> unreachable_since = {};  ///< none: it can be reached, or nobody tried
  };

  /// A runtime that exists. Not reported if it is known.
  void expect(const k8s::object_key& kyma);
  /// Observed, by that reached as well.
  void observed(const k8s::object_key& kyma, runtime_trust trust, time_point now);
  /// It answered, though nothing new can be said of what it has.
  void reached(const k8s::object_key& kyma);
  /// Out of reach; `since` counts from the first time.
  void unreachable(const k8s::object_key& kyma, time_point since);
  /// Its Kyma is gone.
  void forget(const k8s::object_key& kyma);
  /// All runtimes that exist have been expected once.
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
