#pragma once

#include "rw/core/wake.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/client/client_pool.hpp"
#include "rw/k8s/controller/controller.hpp"
#include "rw/k8s/controller/event_sink.hpp"
#include "rw/k8s/objects/label_selector.hpp"
#include "rw/reactors/runtime_controller/runtime_controller.hpp"
#include "rw/reactors/shared/cluster_state.hpp"
#include "rw/reactors/shared/content_gate.hpp"
#include "rw/reactors/shared/runtime_certificate.hpp"
#include "rw/reactors/watcher_installer/access.hpp"
#include "rw/reactors/watcher_installer/cluster_claims.hpp"
#include "rw/reactors/watcher_installer/cluster_records.hpp"
#include "rw/reactors/watcher_installer/deployment_content.hpp"
#include "rw/reactors/watcher_installer/global_inputs.hpp"
#include "rw/reactors/watcher_installer/installation.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace rw::watcher_installer {

/// Its `resync_period` is an hour unless set.
struct installer_options : runtime_options {
  installer_options() { resync_period = std::chrono::hours(1); }

  install_options install = {};
  std::string gateway = "klm-watcher";  ///< in kcp-system: where events come in
  std::string istio_namespace = "istio-system";
  std::optional<std::uint16_t> kcp_port = {};  ///< in place of the Gateway's
  std::string finalizer = "operator.kyma-project.io/runtime-watcher";
  /// Kymas with other labels are left alone: nothing is done but to release the finalizer,
  /// `removal_limit` after the deletion. Empty: all.
  k8s::label_selector only = {};

  /// Of the records for the next leader (cluster_records.hpp), in KCP.
  std::string records_namespace = "runtime-watcher-system";
  core::duration record_interval = std::chrono::seconds(10);
  /// Between two reads of the stored content of the roll-out, to write it again if it is damaged.
  core::duration content_interval = std::chrono::seconds(30);
  /// Time after which a content of the roll-out that can't be pinned any more is deleted.
  core::duration unused_content_after = std::chrono::hours(1);

  /// Time after which an input of all runtimes that is invalid causes an event.
  core::duration input_patience = std::chrono::seconds(5);
  /// Time that Watchers stay in force that went with the definition of their kind, from its return.
  core::duration withdrawn_patience = std::chrono::minutes(10);

  /// While a certificate is being issued; its Secret is watched as well where that is wired.
  core::duration certificate_interval = std::chrono::seconds(30);
};

/// What the installer reads of the control plane. Their owner runs the informers; other reactors
/// may share them. All of it must outlive the installer.
struct installer_sources {
  k8s::informer& kymas;
  k8s::informer& watchers;
  /// The Secrets with kubeconfigs (kubeconfig_secrets()); may hold others.
  k8s::informer& kubeconfigs;
  k8s::informer& gateways;          ///< of kcp-system
  k8s::informer& gateway_secrets;   ///< of istio-system: klm-istio-gateway with the CA bundle
  k8s::informer& virtual_services;  ///< hold the last valid state of Watchers (watcher.hpp)
  /// Of what is named `<kyma>-webhook-tls`: the runtimes' Certificates and their Secrets. Without
  /// them a change of a certificate is observed at the next reconcile only.
  std::vector<k8s::informer*> certificates = {};
  /// Of a manager that only dry-runs its writes; asked from time to time.
  foreseen_trust foreseen = {};
};

/// All of it must outlive the installer.
struct installer_environment {
  runtime_environment common;  ///< events are on the Kymas
  certificate_provider& certificates;
  cluster_states& clusters;       ///< gets the state of each runtime
  boost::json::value lease = {};  ///< what Events about all runtimes are about; null: none are
  /// Where the client of KCP only dry-runs its writes, as lifecycle-manager owns the watchers:
  /// releases Kymas that are deleted meanwhile. Null: that client does, so that with dry runs such
  /// a Kyma keeps the finalizer.
  k8s::client* finalizers = nullptr;
  /// What the pods of a Kyma's runtime have loaded, as they say. Empty: nothing is known.
  std::function<std::vector<pod_report>(const k8s::object_key& kyma)> reports = {};
  /// Told of each reconcile when it begins, for a host that wants to watch. Must not block.
  std::function<void(const k8s::object_key& kyma)> on_reconcile = {};
};

/// Selects the Secrets of the informer of kubeconfigs.
k8s::selection kubeconfig_secrets();

/// What is named `<kyma>-webhook-tls` ends so.
inline constexpr std::string_view certificate_suffix = "-webhook-tls";
/// The Kyma of a runtime's Certificate, or of its Secret, by its name; empty: it is neither.
std::string kyma_of_certificate(const k8s::object& of);

/// Options of the pool of runtimes' clients: short limits, since thousands wait.
k8s::client_options runtime_client_options();

/// Keeps the watcher installed on every runtime: for each Kyma, what `deploy/skr` says, filled in
/// from the Watchers, the runtime's certificate, the CA bundle and the control plane's address.
///
/// Whatever changes one of these reaches the runtimes that it concerns, spread over a little time
/// where it concerns all. Nothing loops over all runtimes: each is a key of its own, with its own
/// backoff. A runtime is written to only where it differs (installation.hpp), and in the order that
/// keeps trust unbroken (trust.hpp). Unhealthy ones get a bounded part of the reconciles
/// (runtime_controller.hpp).
///
/// An event of a runtime, of which there may be many, causes a reconcile only where not everything
/// is known to be in place (`on_event`).
///
/// What KCP says for all runtimes alike keeps its last valid value (global_inputs.hpp): a damaged
/// or deleted Gateway or CA bundle changes nothing on any runtime, and repairs continue.
///
/// Each Kyma gets a finalizer. When the Kyma is deleted and has no other finalizer left, the
/// watcher is removed from the runtime and the certificate from the control plane; `removal_limit`
/// after the deletion a runtime that does not respond, one that is left alone, and one whose
/// kubeconfig is deleted at once, no longer keep the Kyma. A Kyma that goes with the definition of
/// Kymas is released, and its runtime keeps the watcher. As long as another finalizer keeps the
/// Kyma, the watcher stays in place: it delays no deletion, and events are needed until the modules
/// are deleted.
///
/// A runtime that lifecycle-manager writes to as well is left to it (installation.hpp), which is an
/// event and the reason `Contested`; it is reconciled again when the pause is over.
///
/// With dry clients (`client::dry`) nothing changes, and `changes` has what would be written; but a
/// Kyma that is deleted does not wait for this reactor where `finalizers` is given.
///
/// With a roll-out (content_gate.hpp) another content of the Deployment, such as its image, reaches
/// a runtime when it is admitted; all else, certificates and the address of events included, does
/// not wait. A Deployment that waits keeps its content, and is repaired if that is the one that was
/// rolled out to the end last; one that is missing is made with that, or with the newest if none
/// ever was. Runtimes that are left alone, contested, being removed or without a certificate, or
/// where a Deployment with the newest content has not run since it was created, are no part of it.
///
/// A cluster belongs to one Kyma (cluster_owners.hpp). Another that claims it is
/// `DuplicateRuntime`: nothing is installed for it there, or removed. When the owner is deleted and
/// another claims the cluster, the watcher stays there, and the other takes over.
///
/// Whose each cluster is, and since when it has not converged through a fault of its own, is kept
/// in KCP (cluster_records.hpp) and read before anything is reconciled.
///
/// The cluster states get every Kyma that exists, and what is in place on its runtime.
///
/// Events of the Kyma, when a state begins: WatcherInstalled, WatcherNotReady (with
/// what the pod waits for), WatcherFailed, RuntimeUnreachable, WatcherRemoved,
/// WatcherRemovalFailed, WatcherRemovalAbandoned. Event of the manager's Lease: InputInvalid.
/// Metrics: `rw_watcher_installer_invalid_inputs`, `rw_watcher_installer_writes_total`,
/// `rw_watcher_installer_skipped_events_total`, those of cluster_records, and those of
/// runtime_controller (`rw_watcher_installer`, `watcher-installer`).
///
/// Everything happens on one executor, which is also the informers' and the clients'. It adds an
/// index to the informer of kubeconfigs, so there is one installer for each of those.
class watcher_installer final : public runtime_controller {
 public:
  watcher_installer(boost::asio::any_io_executor executor, installer_options with,
                    installer_sources from, installer_environment in);
  ~watcher_installer() override;

  /// An event of the runtime has arrived: it is reconciled, `after` that time. Where everything is
  /// in place, and live watches show no change since, that costs nothing, and leaves the next due
  /// reconcile at its time. Returns false if the queue is full or shut down.
  bool on_event(const k8s::object_key& key, core::duration after);
  /// A pod of the runtime has loaded other files: if that may end a wait there, it is reconciled,
  /// twice a second at most.
  void on_reloaded(const k8s::object_key& key);
  /// Events may have been missed: the next one is not enough.
  void suspect(const k8s::object_key& key) { settled_.erase(key); }

  /// Runs until cancelled. The pool is to be run and closed by its owner.
  boost::asio::awaitable<void> run();

  /// From now on, before it runs: the Deployment's content comes to runtimes as the gate admits
  /// them. The content that was rolled out last is in `stored`. Both must outlive the installer.
  void roll_out_by(content_gate& gate, content_store& stored);

  /// Returns what the next reconcile of a Kyma would write to its runtime, and to KCP where that
  /// ends a removal. Writes nothing. Where it takes over fields of lifecycle-manager, those that
  /// are not desired go as well, which a dry run can't show. After `limit` it has what was found
  /// until then, and an error.
  boost::asio::awaitable<pass_preview> preview(k8s::object_key kyma,
                                               core::duration time_limit = preview_limit);

  /// The kubeconfig of a Kyma's runtime.
  k8s::result<std::string> kubeconfig(std::string_view kyma) const;

  /// What the last reconcile of the runtime has written, such as "Service skr-webhook"; null: it is
  /// not known.
  const std::vector<std::string>* changes(const k8s::object_key& kyma) const;
  /// Since when what the next leader must know can't be read or written; nothing: it can.
  std::optional<std::chrono::system_clock::time_point> records_not_kept_since() const noexcept {
    return records_.not_kept_since();
  }
  /// What is invalid of the inputs of all runtimes (global_inputs.hpp).
  std::vector<input_error> input_errors() const { return inputs_.errors(); }
  /// Runtimes that are left to lifecycle-manager.
  std::size_t contested() const noexcept { return contested_.size(); }
  /// Since when there are any.
  std::chrono::system_clock::time_point contested_since() const { return contested_since_; }

 private:
  /// What a reconcile of a Kyma comes down to.
  enum class action : std::uint8_t {
    leave,       ///< it is not in this manager's scope
    release,     ///< it is deleted, and its watcher is lifecycle-manager's to remove
    stand_back,  ///< its cluster belongs to another Kyma, the owner
    hand_over,   ///< it is deleted, and the watcher stays for another Kyma, the owner
    remove,
    install,
  };
  struct decision {
    action next = action::install;
    std::string owner = {};
  };

  work<result> reconcile(k8s::object_key key) override;
  /// Who owns the cluster is recorded, unless for a preview.
  decision decide(const k8s::object& stored, const boost::json::value& kyma, bool is_preview);
  work<result> keep_installed(boost::json::value kyma, contact to);
  work<result> apply(boost::json::value kyma, contact to, order order);
  work<k8s::result<void>> complete_order(const k8s::object_key* key, order* order);
  work<k8s::result<void>> preview_pass(k8s::object_key kyma, preview_writes writes,
                                       pass_preview* out);
  work<k8s::result<void>> preview_installation(boost::json::value kyma,
                                               std::shared_ptr<k8s::write_preview> into,
                                               pass_preview* out);
  work<k8s::result<void>> preview_removal(boost::json::value kyma, preview_writes writes,
                                          pass_preview* out);
  work<k8s::result<void>> preview_hand_over(boost::json::value kyma, preview_writes writes);
  work<k8s::result<void>> preview_release(boost::json::value kyma, bool keeps_certificate,
                                          preview_writes writes);
  work<result> keep_removed(boost::json::value kyma, contact to);
  work<result> finish_removal(boost::json::value kyma, removal done, std::string heir);
  result stand_back(const boost::json::value& kyma, const std::string& owner);
  work<result> remove_orphans(k8s::object_key kyma);
  work<result> release(boost::json::value kyma);
  work<result> leave(boost::json::value kyma);
  bool is_kept_by_others(const boost::json::value& kyma) const;
  work<std::optional<result>> reach(const boost::json::value* kyma, contact* to);

  order order_for(const certificate_state& own);
  std::uint64_t refresh_inputs();
  boost::asio::awaitable<void> report_inputs();
  void apply_inputs();
  boost::asio::awaitable<void> restore_records();
  void visit_records(const cluster_records::visitor& visit);
  boost::asio::awaitable<void> keep_records();
  boost::asio::awaitable<void> keep_content();
  result settle(const boost::json::value& kyma, const outcome& seen);
  k8s::reconcile_result deferred(const contact& to);
  result refused(const boost::json::value& kyma, const contact& to, const k8s::failure& error);
  result failed(const boost::json::value& kyma, status_reason reason, const std::string& error,
                bool again);
  bool may_have_certificate(std::string_view kyma) const;
  k8s::object own_certificate(std::string_view kyma) const;

  // definitions.cpp
  boost::asio::awaitable<void> explain_gone_watchers();
  boost::asio::awaitable<core::duration> time_of_unknown();
  boost::asio::awaitable<void> run_controller();
  boost::asio::awaitable<void> end_unknown();
  boost::asio::awaitable<void> complete_states();
  boost::asio::awaitable<bool> know_all_kymas();
  std::optional<object_times> oldest_orphan() const;
  work<k8s::result<core::duration>> time_of_orphan(std::string kyma);
  core::duration time_to_settle(std::optional<std::chrono::system_clock::time_point> created) const;
  void note_gone(const boost::json::value& kyma);
  void fails(const k8s::object_key& key, status_reason reason, cluster_fault fault);
  void forget(const k8s::object_key& key);
  void drop_findings(const k8s::object_key& key);

  void watch_all();
  void fan_out(keys& keys);

  const installer_options options_;
  const installer_sources sources_;
  certificate_provider& certificates_;
  cluster_states& clusters_;
  cluster_claims claims_;
  cluster_records records_;
  global_inputs inputs_;
  std::uint64_t inputs_version_ = 0;  ///< that runtimes were reconciled for
  core::wake watchers_gone_;
  core::wake kymas_gone_;
  std::vector<object_times> gone_kymas_;  ///< it is not known yet why
  bool kymas_withdrawn_ = false;          ///< Kymas have gone with the definition of their kind
  struct definition_of_kymas {
    core::time_point asked = {};
    std::optional<std::chrono::system_clock::time_point> created = {};  ///< nothing: it is gone
  };
  std::optional<definition_of_kymas> kymas_defined_;
  const core::time_point began_;
  const boost::json::value lease_;
  k8s::client& finalizers_;
  deployment_content content_;
  bool has_records_ = false;  ///< of the former leader
  const std::function<std::vector<pod_report>(const k8s::object_key& kyma)> reports_;
  const std::function<void(const k8s::object_key& kyma)> on_reconcile_;
  core::counter& writes_;
  core::counter& skipped_;
  core::gauge& contested_gauge_;
  core::gauge& invalid_inputs_;
  std::unordered_map<k8s::object_key, std::vector<std::string>, k8s::object_key_hash> changes_;
  std::unordered_set<k8s::object_key, k8s::object_key_hash> contested_;
  std::chrono::system_clock::time_point contested_since_ = {};
  /// Runtimes where the last reconcile found all in place, and nothing that only has to wait.
  std::unordered_set<k8s::object_key, k8s::object_key_hash> settled_;
  /// Runtimes whose pods' word would end a wait (trust.hpp).
  struct awaited_word {
    core::time_point until = {};
    core::time_point next = {};  ///< reconcile
  };
  std::unordered_map<k8s::object_key, awaited_word, k8s::object_key_hash> awaited_;
  known_bundles bundles_;
};

}  // namespace rw::watcher_installer
