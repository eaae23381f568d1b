#pragma once

#include "rw/core/http/server.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/client/client_pool.hpp"
#include "rw/k8s/client/fence.hpp"
#include "rw/k8s/controller/event_recorder.hpp"
#include "rw/k8s/controller/leader_election.hpp"
#include "rw/reactors/admin/admin.hpp"
#include "rw/reactors/admin/live_feed.hpp"
#include "rw/reactors/bootstrapper/orphans.hpp"
#include "rw/reactors/certificates/certificate_service.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/manager_observer.hpp"
#include "rw/reactors/cli/runtime_config.hpp"
#include "rw/reactors/cli/settings.hpp"
#include "rw/reactors/gateway_secret/rotator.hpp"
#include "rw/reactors/heartbeat/prober.hpp"
#include "rw/reactors/heartbeat/tracker.hpp"
#include "rw/reactors/intake/kyma_router.hpp"
#include "rw/reactors/intake/leader_endpoint.hpp"
#include "rw/reactors/intake/listener.hpp"
#include "rw/reactors/runtime_rollout/runtime_rollout.hpp"
#include "rw/reactors/shared/cluster_state.hpp"
#include "rw/reactors/shared/content_store.hpp"
#include "rw/reactors/shared/recent_events.hpp"
#include "rw/reactors/watcher_controller/watcher_controller.hpp"
#include "rw/reactors/watcher_installer/lifecycle_manager_lease.hpp"
#include "rw/reactors/watcher_installer/watcher_installer.hpp"
#include "rw/tls/reload.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rw::cli {

struct runtime_summary;

/// `runtime-watcher manager`: the control plane's part of the system. Every replica runs the
/// informers; the leader runs the controllers, and accepts the events:
///
///     Watchers, Gateways  -> watcher_controller -> VirtualServices
///     root Secret         -> gateway_secret     -> the gateway's certificate and CA bundle
///     Kymas, all of it    -> watcher_installer  -> certificates, and the webhook on every SKR
///     RuntimeRollout      -> runtime_rollout    -> when watcher_installer updates which SKR
///     events              -> listener -> kyma_router -> watcher_installer
///     heartbeats          -> listener -> heartbeat   -> watcher_installer
///     see runtime_config  -> config_sync        -> marks on Runtimes
///
/// While lifecycle-manager runs on the same control plane the reactors of watchers only dry-run
/// each write, as in shadow mode. When lifecycle-manager begins or ends, the process exits with
/// code 1 to restart.
///
/// The Service for events routes to the leader (intake/leader_endpoint.hpp); the other replicas
/// respond 503 with Retry-After. A replica that loses the lease exits with code 1, and kubelet or
/// its like restarts it: no state of its term remains.
class manager_app final : public app {
 public:
  /// Reads the kubeconfig, loads the certificates and binds. Throws an exception that names the
  /// invalid setting. `observer` may be null, and must outlive it.
  manager_app(services& with, manager_settings settings, manager_observer* observer = nullptr);
  ~manager_app() override;

  boost::asio::awaitable<int> run() override;

  boost::asio::ip::tcp::endpoint address() const { return listener_.runnable->address(); }
  boost::asio::ip::tcp::endpoint metrics_address() const { return admin_->address(); }
  /// "POD:PORT", by which the API server's proxy of Pods has its pages.
  std::string proxied_pod() const;
  /// Calls `visit` with each runtime, in no order. On the manager's executor; what a summary refers
  /// to is valid during the call.
  void for_each_runtime(const std::function<void(const runtime_summary&)>& visit) const;

  /// What it shows beyond its metrics, for pages of a process that contains it.
  admin::page_options page_options();

 private:
  class view;

  std::shared_ptr<const k8s::fence> leader_fence() const;
  k8s::client connect(const char* name) const;
  k8s::informer& inform(const k8s::resource_type& type, k8s::informer_options options);
  listener::listener_options listener_options();
  std::vector<k8s::object> owners_of(std::string_view runtime_id) const;
  std::optional<std::string> domain_of(std::string_view runtime_id) const;
  std::string not_ready() const;
  std::string admin_token() const;
  boost::asio::awaitable<void> publish_token();
  std::optional<admin::other_leader> other_leader() const;
  std::string page_command() const;
  std::string stands_back_text() const;
  boost::json::value lease() const;
  void stand_back();
  boost::asio::awaitable<void> await_lifecycle_manager();
  void begin_term(core::task_group& reactors, bool asks);
  boost::asio::awaitable<void> end_when_changed();
  boost::asio::awaitable<void> follow_lifecycle_manager();
  void route(const k8s::object_key& kyma, core::duration after);
  void show(const listener::received_event& event) const;
  boost::asio::awaitable<admin::json_page> diff(std::string query);
  boost::asio::awaitable<std::vector<pass_preview>> preview_passes(k8s::object_key kyma);
  void make_reactors();
  void make_heartbeats(const watcher_installer::templates& installed);
  boost::asio::awaitable<void> take_events();
  boost::asio::awaitable<void> read_events();
  boost::asio::awaitable<void> judge_fleet();
  boost::asio::awaitable<void> keep_history();
  boost::asio::awaitable<void> lead();
  boost::asio::awaitable<void> close_clients();

  const manager_settings settings_;
  manager_observer* const observer_;
  /// Set before a term's reactors begin: those of watchers only dry-run their writes.
  const std::shared_ptr<bool> dry_run_;
  const std::shared_ptr<bool> klm_runs_;  ///< lifecycle-manager; true as long as it is not known
  core::gauge& stands_back_gauge_;
  k8s::fence fence_;
  k8s::client shared_;       ///< of all replicas: the Lease, events, the informers
  k8s::client kcp_;          ///< writes while this replica leads
  k8s::client watcher_kcp_;  ///< likewise; that of watchers, which is dry where dry_run_ says so
  lifecycle_manager_lease klm_;
  std::unique_ptr<k8s::client_pool> pool_;

  std::vector<std::unique_ptr<k8s::informer>> informers_;
  k8s::informer& watchers_;
  k8s::informer& gateways_;
  k8s::informer& virtual_services_;
  k8s::informer& kymas_;
  k8s::informer& kubeconfigs_;
  k8s::informer& certificates_;
  k8s::informer& certificate_secrets_;
  k8s::informer& root_secret_;
  k8s::informer& gateway_secret_;
  k8s::informer rollouts_;  ///< run by the leader

  content_store watcher_contents_;  ///< that were rolled out
  std::unique_ptr<k8s::event_recorder> recorder_;
  std::unique_ptr<recent_events> recent_events_;       ///< of all reactors
  std::unique_ptr<k8s::quiet_events> watcher_events_;  ///< of watchers
  cluster_states clusters_;                            ///< written by the installer
  std::unique_ptr<certificates::certificate_service> service_;
  std::unique_ptr<watcher_controller::watcher_controller> watcher_controller_;
  std::unique_ptr<gateway_secret::rotator> rotator_;
  std::unique_ptr<runtime_rollout::prometheus_client> prometheus_;  ///< null: there is none
  std::unique_ptr<runtime_rollout::runtime_rollout> rollout_;       ///< of the watcher
  std::unique_ptr<watcher_installer::watcher_installer> installer_;
  std::unique_ptr<runtime_config> runtime_config_;  ///< null: its mode is off
  std::unique_ptr<bootstrapper::orphans> orphans_;  ///< of the mode off
  std::unique_ptr<kyma_router::router> router_;
  std::unique_ptr<heartbeats::tracker> heartbeats_;  ///< null: none are expected
  std::unique_ptr<heartbeats::prober> prober_;       ///< null: runtimes are not probed
  core::log_limit route_log_;
  std::unique_ptr<k8s::leader_elector> elector_;

  const std::shared_ptr<core::channel<received_heartbeat>> heartbeat_channel_;
  std::unique_ptr<tls::reloader> reloader_;  ///< null: the listener has no certificates
  listener::registration listener_;
  std::unique_ptr<listener::leader_endpoint> endpoint_;  ///< null: the pod's address is unknown
  const std::unique_ptr<core::transport> plain_;
  const std::unique_ptr<view> view_;
  std::set<std::string> diffs_;  ///< Kymas whose runtimes are being compared
  std::string term_token_;       ///< empty: this replica does not lead
  admin::live_feed live_;
  admin::pages pages_;
  std::unique_ptr<http::server> admin_;
  bool leads_ = false;
  bool in_waves_ = false;     ///< watchers are updated by a roll-out
  bool stands_back_ = false;  ///< because lifecycle-manager runs
  bool awaits_klm_ = false;   ///< it is not known yet whether lifecycle-manager runs
  std::chrono::system_clock::time_point stands_since_ = {};
  bool lost_ = false;
  bool stopping_ = false;
  bool takes_events_ = false;
};

}  // namespace rw::cli
