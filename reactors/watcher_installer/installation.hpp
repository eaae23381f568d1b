#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/reactors/runtime_controller/remote_watch.hpp"
#include "rw/reactors/shared/content_gate.hpp"
#include "rw/reactors/shared/content_store.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/status_reason.hpp"
#include "rw/reactors/watcher_installer/render.hpp"
#include "rw/reactors/watcher_installer/templates.hpp"
#include "rw/reactors/watcher_installer/trust.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::watcher_installer {

/// What a runtime is to have.
struct order {
  wanted_trust trust = {};
  kcp_address address = {};
  std::vector<watcher> watchers = {};
  std::string certificate_pending = {};  ///< why `trust` has no certificate, where it has none
  core::duration certificate_again{0};   ///< when time alone changes that
  /// The Deployment that was rolled out to the end last (shared_deployment); null: none was.
  content_ptr completed = {};
  /// The Deployment that takes the place of that of the manifests and settings; null: none does.
  content_ptr pinned = {};
  /// What the pods have loaded, as they say (trust.hpp).
  std::vector<pod_report> reports = {};
  /// Whether a webhook that is there, of no Watcher above, stays as it is. Empty: none does.
  std::function<bool(std::string_view name)> keeps_webhook = {};
  /// Whether the Deployment may get the newest or pinned content, by the digest of the one that it
  /// has (empty: none). Else one that is missing, or has the completed content, gets that; another
  /// one keeps what it has. Asked when that is decided, and again before it is written: false then
  /// fails with `errc::fenced`. Empty: it may.
  std::function<bool(std::string in_place)> may_update = {};
};

/// How it is done, for every runtime alike.
struct install_options {
  templates manifests = templates::built_in();
  manifest_settings set = {};
  trust_delays delays = {};
  bool restart_on_renewal = false;  ///< see wanted_trust
  std::string field_manager{default_field_manager};
  /// Who else may keep the same objects: lifecycle-manager, and this reactor in former versions.
  /// What it owns is taken over once; an object that it writes again is left to it.
  std::string former_manager = "lifecycle-manager";
  /// Time without a write of the former manager after which the runtime is written to again.
  core::duration contest_pause = std::chrono::hours(1);
  /// While it is false nobody runs that writes as the former manager: what does is the runtime's
  /// own client, and is written over. Null: it may run.
  std::shared_ptr<const bool> former_runs = {};
};

/// State of a runtime after one reconcile, and what that wrote.
struct outcome {
  std::size_t writes = 0;
  std::vector<std::string> changes = {};  ///< what was written, such as "Service skr-webhook"
  std::string contested = {};  ///< the object that has another writer; nothing was written then
  bool ready = false;          ///< the Deployment has a ready replica
  bool rolled_out = false;     ///< all of its pods run with what it says
  status_reason not_ready = status_reason::none;  ///< why it has none
  std::string details = {};                       ///< of that; a sentence
  std::string pending = {};  ///< what still has to wait; empty: it is what was ordered
  bool awaits_turn = false;  ///< the Deployment does, in a roll-out
  /// Why the watcher has no rights to watch resources; empty: it has them. It works without.
  std::string unobserved = {};
  core::duration again{0};                  ///< when to go on with that; 0: when something changes
  std::optional<runtime_trust> trust = {};  ///< that is in place
  bool is_loaded = false;                   ///< all pods have said that they have loaded that
  /// The pods' word would shorten a wait, of this installation or of the gateway, and has not come.
  bool awaits_pods = false;
  watched_set left = {};  ///< what the webhook does not work without, as it was left
  /// Of the Deployment. None: no roll-out counts it, since it does not exist, is contested, or has
  /// not run since it was created.
  std::optional<content_facts> content = {};
};

/// Takes the runtime one step towards `what`, and returns what it has then. Reads everything at
/// once. Writes only objects that differ from their desired state, by server-side apply, those that
/// others need first. A runtime that has all of it costs reads only. While it has no certificate,
/// objects that need one are not created.
///
/// After a change of the Secret the annotation `operator.kyma-project.io/secret-version` of the
/// running pods is changed, too, where this manager may patch pods: kubelet then updates what they
/// mount at once rather than by its period. Nothing depends on that.
///
/// The managers' file names every manager that has a webhook at any moment: it grows before the
/// webhooks are written, and shrinks after.
///
/// Where the former manager runs and has written an object after this reactor did, and with other
/// content, nothing is written to the runtime for the pause of `install_options`: each would undo
/// the other's writes.
///
/// `how` and `known` must outlive the call.
boost::asio::awaitable<k8s::result<outcome>> install(std::shared_ptr<k8s::client> api,
                                                     const install_options* options,
                                                     known_bundles* known, order order,
                                                     core::clock* clock);

/// Removes everything that `install` applies, the webhooks first; the namespace stays. What is not
/// there is no failure.
boost::asio::awaitable<k8s::result<void>> uninstall(std::shared_ptr<k8s::client> api,
                                                    const install_options* options);

}  // namespace rw::watcher_installer
