#pragma once

#include "rw/core/clock.hpp"
#include "rw/reactors/shared/cluster_state.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/reactors/shared/managers_file.hpp"
#include "rw/reactors/watcher_installer/known_bundles.hpp"
#include "rw/tls/ca_bundle.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace rw::watcher_installer {

/// What the control plane wants a runtime to have.
struct wanted_trust {
  tls::ca_bundle bundle = {};    ///< of all CAs that the gateway believes
  std::string certificate = {};  ///< the runtime's own, PEM; empty: there is none to bring
  std::string key = {};
  known_managers managers = {};  ///< of the Watchers
  /// A new certificate restarts the pods: for an image that does not reload it.
  bool restart_on_renewal = false;
};

/// What the runtime has; null: it does not.
struct present_objects {
  const boost::json::value* secret = nullptr;
  const boost::json::value* configuration = nullptr;
  const boost::json::value* deployment = nullptr;

  known_bundles* known = nullptr;  ///< spares reading the same again; may be none
};

/// What each pod of the watcher says that it has loaded, by its heartbeats. False: one of them has
/// not said so (yet, or in a way that is understood), which means nothing.
struct pods_word {
  bool bundle = false;       ///< that of the Secret
  bool certificate = false;  ///< likewise
  bool managers = false;     ///< likewise: the managers' file
};

/// What is in place on a runtime, and since when, as its objects and its pods say. Whether pods run
/// is no part of it: a running pod reloads what kubelet updates, and a starting one reads it.
struct observed_trust {
  using time_point = std::chrono::system_clock::time_point;

  // In the Secret.
  tls::ca_bundle bundle = {};
  std::string certificate = {};
  std::string key = {};
  std::optional<time_point> certificate_since = {};
  std::optional<known_managers> managers = {};    ///< none: pods count every manager as known
  std::optional<time_point> managers_since = {};  ///< when the last new one came
  std::string managers_digest = {};               ///< of their file
  // In the webhook configuration.
  std::vector<tls::ca_bundle> webhooks = {};
  known_managers called = {};                   ///< managers that it has webhooks of
  std::optional<time_point> bundle_since = {};  ///< in all webhooks and in the Secret
  // In the Deployment.
  std::string restart_trigger = {};
  // In the pods.
  pods_word loaded = {};

  bool serves() const { return !certificate.empty() && !key.empty(); }
};

observed_trust observe(const present_objects& from);

/// The word of the pods of a runtime, which are those of `names`, about what is in place there:
/// every one of them must have said it, after what it speaks of was written. Without any pod there
/// is none.
///
/// All of it is the claim of the runtime, which may report any pods: that shortens waits of this
/// runtime alone, and loses no other's events.
pods_word word_of(const std::vector<std::string>& names, const std::vector<pod_report>& reports,
                  const observed_trust& has);

/// The same in short, for the rotation of the gateway's certificate; none: there is no certificate.
std::optional<runtime_trust> summary_of(const observed_trust& has);

struct trust_delays {
  /// Time from a write to a runtime until it is in effect there: each replica of its API server has
  /// to observe it, and kubelet has to update the Secrets of the pods, which takes its sync period
  /// (a minute, and up to half as much by chance) and its cache's: 50 to 83 s in eight samples of a
  /// real one. Kubelet's share ends when all pods say what they have loaded.
  core::duration propagation = std::chrono::seconds(150);
  /// The share of the API server's replicas, for which no pod can speak.
  core::duration api_server = std::chrono::seconds(10);
  /// How long after a certificate was replaced the CAs stay that only the former needs: pods that
  /// serve the former have to end, if they can't reload it.
  core::duration retirement = std::chrono::minutes(10);
};

/// Returns whether something was written so lately that the pods' word, which has not come, would
/// shorten a wait.
bool awaits_word(const observed_trust& has, const trust_delays& delays,
                 std::chrono::system_clock::time_point now);

/// What is to be written to a runtime now, which may not yet be what is wanted.
struct trust_step {
  tls::ca_bundle bundle = {};
  std::string bundle_since = {};
  std::string certificate = {};  ///< empty: no Secret is to be written yet
  std::string key = {};
  std::string certificate_since = {};
  std::string restart_trigger = {};  ///< empty: as the manifests have it
  known_managers managers = {};      ///< for the file
  std::string managers_since = {};
  std::optional<known_managers> in_effect = {};  ///< managers that the pods know; none: every one

  /// Why this is not the end; empty if it is.
  std::string pending = {};
  /// When to go on; 0: when something changes.
  core::duration again{0};
};

/// The order in which trust changes on a runtime, so that at every moment its API server trusts the
/// certificate that its webhook serves, its watcher trusts the gateway, and knows every manager
/// that it is called for:
///
///   1. The bundle grows, in every webhook and in the Secret. CAs that the control plane has given
///      up stay as long as the certificate that is served may need them.
///   2. A new certificate follows when the bundle that trusts it has been in place for the
///      propagation delay, or for the API servers' share of it if all pods have loaded it. Until
///      then the old one stays.
///   3. The CAs that only the former certificate needed are removed `retirement` after it.
///
/// The managers' file grows at once, too; a webhook of a manager, or subresource, that is new in it
/// waits for the propagation delay, or until all pods have loaded it; those of managers that have
/// webhooks already wait for nothing.
///
/// Annotations of the objects store the times; so the result depends neither on the process that
/// reconciles nor on the order in which kubelet and the API server observe changes. Pure.
trust_step next_step(const wanted_trust& wanted, const observed_trust& has,
                     const trust_delays& delays, std::chrono::system_clock::time_point now);

}  // namespace rw::watcher_installer
