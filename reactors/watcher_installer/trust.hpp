#pragma once

#include "core/clock.hpp"
#include "reactors/watcher_installer/known_bundles.hpp"
#include "tls/ca_bundle.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <string>

namespace rw::watcher_installer {

/// What the control plane wants a runtime to have.
struct wanted_trust {
  tls::ca_bundle bundle = {};    ///< of all CAs that the gateway believes
  std::string certificate = {};  ///< the runtime's own, PEM; empty: there is none to bring
  std::string key = {};
  std::string version = {};  ///< of the Secret that the certificate stands in
};

/// What the runtime has; null: it does not.
struct present_objects {
  const boost::json::value* secret = nullptr;
  const boost::json::value* configuration = nullptr;
  const boost::json::value* deployment = nullptr;

  known_bundles* known = nullptr;  ///< spares reading the same again; may be none
};

struct trust_delays {
  /// How long a bundle must have been on the runtime before a certificate that needs it is served:
  /// its API server has to hear of it, on every replica.
  core::duration propagation = std::chrono::seconds(10);
  /// How long after a certificate was replaced the CAs stay that only the former needs: kubelet has
  /// to bring it, and pods that serve the former have to end.
  core::duration retirement = std::chrono::minutes(10);
};

/// What is to be written to a runtime now, which may not yet be what is wanted.
struct trust_step {
  tls::ca_bundle bundle = {};
  std::string bundle_since = {};
  std::string certificate = {};  ///< empty: no Secret is to be written yet
  std::string key = {};
  std::string certificate_since = {};
  std::string restart_trigger = {};

  /// Why this is not the end; empty if it is.
  std::string pending = {};
  /// When to go on; 0: when something changes.
  core::duration again{0};
};

/// The order in which trust changes on a runtime, so that at every moment its API server trusts the
/// certificate that its webhook serves, and its watcher trusts the gateway:
///
///   1. The bundle grows, in every webhook and in the Secret. CAs that the control plane has given
///      up stay as long as the certificate that is served may need them.
///   2. A new certificate follows when the bundle that trusts it has been in place for the
///      propagation delay. Until then the old one stays, and the pods are not restarted.
///   3. Once the former certificate is gone for long enough, so are the CAs that it needed.
///
/// Since when stands on the objects as annotations; so it does not matter who looks, and when, and
/// in which order kubelet and the API server see things. Pure.
trust_step next_step(const wanted_trust& wanted, const present_objects& present,
                     const trust_delays& delays, std::chrono::system_clock::time_point now);

/// True as long as pods with the former certificate may not have ended yet.
bool in_retirement(const present_objects& present, const trust_delays& delays,
                   std::chrono::system_clock::time_point now);

/// The authorities that every webhook of the configuration has, and those that the Secret has.
tls::ca_bundle webhook_bundle_of(const present_objects& present);
tls::ca_bundle secret_bundle_of(const present_objects& present);

}  // namespace rw::watcher_installer
