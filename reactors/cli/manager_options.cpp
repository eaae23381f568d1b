#include "rw/reactors/cli/manager_options.hpp"

#include "rw/reactors/cli/skr_manifests.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <algorithm>
#include <utility>

namespace rw::cli {
namespace {

std::chrono::seconds whole_seconds(std::chrono::milliseconds from) {
  return std::chrono::ceil<std::chrono::seconds>(from);
}

}  // namespace

bool has_probes(const manager_settings& settings) {
  constexpr std::chrono::milliseconds none(0);
  return settings.heartbeat_timeout > none && settings.probe_interval > none;
}

std::chrono::milliseconds heartbeat_timeout(const manager_settings& settings,
                                            const watcher_installer::templates& installed) {
  return std::max(settings.heartbeat_timeout, heartbeat_interval_of(installed) * 5 / 2);
}

watcher_controller::watcher_controller_options controller_options(
    const manager_settings& settings) {
  watcher_controller::watcher_controller_options out;
  out.gateway_namespace = settings.gateway_namespace;
  out.field_manager = settings.field_manager;
  if (settings.heartbeat_timeout <= std::chrono::milliseconds(0)) return out;
  const std::string ns(kcp_namespace);
  out.own = {.key = {ns, heartbeat_routes_name},
             .name = std::string(heartbeat_component),
             .service = {.ns = ns, .name = settings.events_service, .port = settings.events_port},
             .gateway = settings.gateway_name};
  return out;
}

certificates::service_options certificate_options(const manager_settings& settings) {
  certificates::service_options out;
  using certificates::issuer_kind;
  out.certificates.ns = settings.istio_namespace;
  out.field_manager = settings.field_manager;
  out.certificates.kind =
      settings.gardener_certificates ? issuer_kind::gardener : issuer_kind::cert_manager;
  out.certificates.issuer = settings.issuer;
  out.certificates.issuer_ns = settings.issuer_namespace;
  out.certificates.extra_dns_names = settings.extra_dns_names;
  out.certificates.key = tls::parse_key_type(settings.certificate_key).value();
  out.certificates.duration = std::chrono::floor<std::chrono::hours>(settings.certificate_duration);
  out.certificates.renew_before =
      std::chrono::floor<std::chrono::hours>(settings.certificate_renew_before);
  out.judge.gateway_settles = whole_seconds(settings.ca_gateway_settles);
  return out;
}

lifecycle_manager_options lease_options(const manager_settings& settings) {
  lifecycle_manager_options out{.patience = whole_seconds(settings.lifecycle_manager_patience)};
  out.interval = std::min<core::duration>(out.interval, out.patience);
  return out;
}

gateway_secret::rotation_options rotation_options(const manager_settings& settings) {
  gateway_secret::rotation_options out;
  out.grace = whole_seconds(settings.ca_grace);
  out.time_only = settings.ca_time_only;
  out.propagation = settings.ca_propagation;
  out.excuse_after = whole_seconds(settings.ca_excuse_after);
  out.excused_percent = settings.ca_excuse_percent;
  // Runtimes outside --only get no new CA, but need the gateway: the rotation waits for its
  // deadline.
  if (!settings.only.empty()) out.excused_percent = 0;
  out.before_expiry = whole_seconds(settings.ca_switch_before_expiry);
  out.limit = whole_seconds(settings.ca_switch_limit);
  return out;
}

watcher_installer::installer_options installer_options_of(const manager_settings& settings,
                                                          std::shared_ptr<const bool> former_runs) {
  watcher_installer::installer_options options;
  options.concurrent = settings.concurrent;
  options.resync_period = settings.success_interval;
  options.watch_runtimes = settings.runtime_config.direct.watch_runtimes;
  options.install.delays.propagation = settings.ca_propagation;
  options.install.delays.api_server = settings.ca_api_server_propagation;
  options.install.field_manager = settings.field_manager;
  options.install.former_manager = settings.former_field_manager;
  options.install.contest_pause = settings.contest_pause;
  options.install.former_runs = std::move(former_runs);
  options.records_namespace = settings.runtime_config.direct.state_namespace;
  options.unused_content_after = settings.runtime_config.direct.unused_content_after;
  options.only = *k8s::label_selector::parse(settings.only);
  options.gateway = settings.gateway_name;
  options.istio_namespace = settings.istio_namespace;
  options.install.restart_on_renewal = settings.skr_restart_on_renewal;
  if (settings.kcp_port != 0) options.kcp_port = settings.kcp_port;
  options.install.set.image = settings.skr_image;
  options.install.set.pull_secrets = settings.skr_pull_secrets;
  options.install.set.webhook_sources = settings.skr_webhook_sources;
  options.install.set.scope = settings.only;
  options.install.set.probed = has_probes(settings);
  options.install.set.memory_limit = settings.skr_memory_limit;
  options.install.set.cpu_limit = settings.skr_cpu_limit;
  if (!settings.skr_manifests.empty()) {
    options.install.manifests = load_skr_manifests(settings.skr_manifests, options.install.set);
  }
  return options;
}

}  // namespace rw::cli
