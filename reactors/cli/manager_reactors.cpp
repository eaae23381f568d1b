// The reactors of the manager, and what they are made of.

#include "rw/reactors/cli/leader_settings.hpp"
#include "rw/reactors/cli/manager_app.hpp"
#include "rw/reactors/cli/manager_options.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/most_runtimes.hpp"

#include <algorithm>
#include <utility>

namespace rw::cli {

void manager_app::make_reactors() {
  const auto& executor = services_.executor;
  recorder_ = std::make_unique<k8s::event_recorder>(
      executor, k8s::objects_of(shared_),
      k8s::event_recorder_options{.component = "runtime-watcher"}, services_.for_recorder());
  recent_events_ = std::make_unique<recent_events>(*recorder_, services_.clock);
  watcher_events_ = std::make_unique<k8s::quiet_events>(*recent_events_, dry_run_);
  k8s::client_pool_options to_runtimes{.name = "skr",
                                       .client = watcher_installer::runtime_client_options()};
  to_runtimes.writes = leader_fence();
  to_runtimes.local = settings_.local_runtimes;
  // A watched runtime keeps its connection.
  if (settings_.runtime_config.direct.watch_runtimes) to_runtimes.capacity = most_runtimes;
  pool_ =
      std::make_unique<k8s::client_pool>(executor, std::move(to_runtimes), services_.for_client());
  watcher_controller_ = std::make_unique<watcher_controller::watcher_controller>(
      executor,
      watcher_controller::watcher_controller_sources{watchers_, gateways_, virtual_services_},
      controller_options(settings_),
      watcher_controller::watcher_controller_environment{watcher_kcp_, *watcher_events_,
                                                         services_.clock, services_.watchdog,
                                                         services_.log, services_.metrics});
  gateway_secret::rotator_options rotation;
  rotation.root.ns = settings_.istio_namespace;
  rotation.gateway.ns = settings_.istio_namespace;
  rotation.rotation = rotation_options(settings_);
  rotator_ = std::make_unique<gateway_secret::rotator>(
      executor, watcher_kcp_, root_secret_, gateway_secret_, clusters_, rotation,
      gateway_secret::rotator_environment{services_.clock, services_.watchdog, services_.log,
                                          services_.metrics, services_.random(), *watcher_events_});
  service_ = std::make_unique<certificates::certificate_service>(
      watcher_kcp_,
      certificates::service_caches{certificates_.objects(), certificate_secrets_.objects(),
                                   gateway_secret_.objects()},
      certificate_options(settings_),
      certificates::service_environment{services_.clock, services_.log, services_.metrics,
                                        *watcher_events_});

  std::function<void(const k8s::object_key&)> on_reconcile;
  if (observer_ != nullptr) {
    on_reconcile = [this](const k8s::object_key& kyma) { observer_->reconciling(kyma); };
  }
  auto options = installer_options_of(settings_, klm_runs_);
  const auto installed = options.install.manifests;
  installer_ = std::make_unique<watcher_installer::watcher_installer>(
      executor, std::move(options),
      watcher_installer::installer_sources{kymas_,
                                           watchers_,
                                           kubeconfigs_,
                                           gateways_,
                                           gateway_secret_,
                                           virtual_services_,
                                           {&certificates_, &certificate_secrets_},
                                           [this] { return rotator_->foreseen(); }},
      watcher_installer::installer_environment{
          .common = {watcher_kcp_, *pool_, *watcher_events_, services_.clock, services_.watchdog,
                     services_.log, services_.metrics, services_.random(), dry_run_},
          .certificates = *service_,
          .clusters = clusters_,
          .lease = lease(),
          .finalizers = settings_.shadow ? nullptr : &kcp_,
          .reports =
              [this](const k8s::object_key& kyma) {
                return heartbeats_ ? heartbeats_->health().pods(kyma) : std::vector<pod_report>();
              },
          .on_reconcile = std::move(on_reconcile)});
  if (!settings_.runtime_config.prometheus.url.empty()) {
    prometheus_ = std::make_unique<runtime_rollout::prometheus_client>(
        executor, settings_.runtime_config.prometheus, services_.clock, services_.watchdog,
        services_.log, services_.metrics);
  }
  if (settings_.runtime_config.mode != bootstrapper_mode::off) {
    runtime_config_ = std::make_unique<runtime_config>(
        services_, settings_.runtime_config,
        runtime_config::clients{kcp_, shared_, *pool_, rollouts_, lease(), prometheus_.get()},
        kubeconfigs_, *recent_events_);
  } else {
    orphans_ = std::make_unique<bootstrapper::orphans>(kcp_, services_.for_controller());
  }
  rollout_ = std::make_unique<runtime_rollout::runtime_rollout>(
      executor,
      runtime_rollout::rollout_options{.component = "watcher",
                                       .usual = settings_.runtime_config.rollout},
      runtime_rollout::rollout_environment{kcp_, rollouts_, kymas_, kymas_, *recent_events_,
                                           services_.for_controller(), lease(), prometheus_.get()});
  router_ = std::make_unique<kyma_router::router>(
      kymas_, [this](const k8s::object_key& kyma, core::duration after) { route(kyma, after); },
      kyma_router::router_options{},
      kyma_router::router_environment{services_.clock, services_.log, services_.metrics});
  if (heartbeat_channel_) make_heartbeats(installed);
  if (!settings_.pod_ip.empty()) {
    endpoint_ = std::make_unique<listener::leader_endpoint>(
        kcp_,
        listener::endpoint_options{
            .service = {std::string(kcp_namespace), settings_.events_service},
            .address = settings_.pod_ip,
            .port = address().port()},
        listener::endpoint_environment{services_.clock, services_.log, services_.random()});
  }
  if (!settings_.leader_elect) return;
  auto source = services_.random();
  elector_ = std::make_unique<k8s::leader_elector>(
      executor, k8s::objects_of(shared_),
      k8s::election_options{.ns = settings_.lease_namespace,
                            .name = settings_.lease_name,
                            .identity = k8s::make_election_identity(source),
                            .lease_duration = settings_.lease_duration,
                            .renew_deadline = settings_.renew_deadline,
                            .retry_period = settings_.retry_period,
                            .annotations = {{std::string(settings_annotation),
                                             render_leader_settings(settings_, installed)}}},
      std::vector<k8s::leader_elector::reactor>{[this] { return lead(); }}, fence_,
      k8s::leader_environment{services_.clock, services_.log, services_.metrics,
                              services_.random()});
}

void manager_app::make_heartbeats(const watcher_installer::templates& installed) {
  heartbeats::tracker_options options;
  options.health.timeout = heartbeat_timeout(settings_, installed);
  if (options.health.timeout != settings_.heartbeat_timeout) {
    services_.log.warning(
        "--heartbeat-timeout raised to 2.5 times the interval of heartbeats",
        {{"milliseconds", options.health.timeout / std::chrono::milliseconds(1)}});
  }
  options.health.certificate =
      std::min(options.health.certificate,
               std::chrono::floor<std::chrono::seconds>(settings_.certificate_renew_before / 2));
  const auto state_is = [this](const k8s::object_key& kyma,
                               bool (cluster_state::*is)() const noexcept) {
    const auto* const state = clusters_.find(kyma);
    return state != nullptr && (state->*is)();
  };
  const auto reports = [state_is](const k8s::object_key& kyma) {
    return state_is(kyma, &cluster_state::is_reporting);
  };
  const auto is_installed = [state_is](const k8s::object_key& kyma) {
    return state_is(kyma, &cluster_state::is_installed);
  };
  heartbeats_ = std::make_unique<heartbeats::tracker>(
      *heartbeat_channel_, options,
      heartbeats::tracker_environment{
          .clock = services_.clock,
          .log = services_.log,
          .metrics = services_.metrics,
          .events = *watcher_events_,
          .kymas = kymas_,
          .kymas_of = [this](std::string_view id) { return owners_of(id); },
          .reports = reports,
          .on_reloaded =
              [this](const k8s::object_key& kyma) {
                if (leads_) installer_->on_reloaded(kyma);
              },
          .on_silent =
              [this](const k8s::object_key& kyma) {
                installer_->suspect(kyma);
                route(kyma, core::duration::zero());
                if (prober_) prober_->probe(kyma);
              },
          .on_expected =
              [this](const k8s::object_key& kyma) {
                if (prober_) prober_->probe_later(kyma);
              }});
  if (!has_probes(settings_)) return;
  heartbeats::prober_options probes;
  probes.interval = settings_.probe_interval;
  probes.retry = std::min<core::duration>(probes.retry, probes.interval);
  prober_ = std::make_unique<heartbeats::prober>(
      services_.executor, probes,
      heartbeats::prober_environment{
          .clock = services_.clock,
          .watchdog = services_.watchdog,
          .log = services_.log,
          .metrics = services_.metrics,
          .random = services_.random(),
          .kymas = kymas_,
          .runtimes = *pool_,
          .kubeconfig = [this](const auto& kyma) { return installer_->kubeconfig(kyma.name); },
          .installed = is_installed,
          .on_result =
              [this](const k8s::object_key& kyma, heartbeats::probe_result result) {
                // What is installed is compared with what should be, once for each reason.
                const auto reason = result.reason;
                const bool misplaced = reason != status_reason::none &&
                                       result.stage == heartbeats::probe_stage::webhook;
                const auto* const known = heartbeats_->health().find(kyma);
                const bool again =
                    known != nullptr && known->probe && known->probe->reason == reason;
                heartbeats_->probed(kyma, std::move(result));
                if (!misplaced || again) return;
                installer_->suspect(kyma);
                route(kyma, core::duration::zero());
              }});
}

}  // namespace rw::cli
