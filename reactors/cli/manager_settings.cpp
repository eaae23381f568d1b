#include "rw/k8s/controller/election.hpp"
#include "rw/k8s/objects/label_selector.hpp"
#include "rw/reactors/cli/options.hpp"
#include "rw/reactors/intake/leader_endpoint.hpp"
#include "rw/reactors/watcher_installer/render.hpp"

#include <regex>

namespace rw::cli {
namespace {

/// A positive quantity as Kubernetes writes it, such as 200Mi, 100m or 0.1.
CLI::Validator quantity() {
  const auto error = [](const std::string& text) -> std::string {
    static const std::regex amount("([0-9]+[.]?[0-9]*|[.][0-9]+)(m|k|[KMGTPE]i|[MGTPE])?");
    const bool positive = text.find_first_of("123456789") != std::string::npos;
    const bool usable = positive && std::regex_match(text, amount);
    return usable ? "" : "must be a quantity such as 200Mi or 0.1, not: " + text;
  };
  return CLI::Validator(error, "");
}

void describe_intake(CLI::App& app, manager_settings& to) {
  add_listening_address(app, "--listen-address", to.listening.address,
                        "Address that the leading replica receives events on");
  describe_listening(app, to.listening);
  app.add_flag("--pin-san", to.pin_san,
               "Accept an event only if the sender's certificate names the skr-domain of its Kyma");
  add(app, "--pod-ip", to.pod_ip, "IP",
      "Address of this pod, which the leader writes to the EndpointSlice of --events-service; by "
      "default none: no slice is written")
      ->envname("POD_IP")
      ->check(CLI::Validator(listener::endpoint_address_error, ""));
  add(app, "--events-service", to.events_service, "NAME",
      "Service without a selector, in kcp-system, that routes events to the leader");
  add(app, "--events-port", to.events_port, "PORT",
      "Port of --events-service, in the VirtualService of the watchers' heartbeats")
      ->check(CLI::Range(1, 65535));
  add_duration(app, "--heartbeat-timeout", to.heartbeat_timeout,
               "Time without a heartbeat of a runtime's watcher after which the runtime counts as "
               "silent, at least 2.5 times the HEARTBEAT_INTERVAL of --skr-manifests; 0: no "
               "heartbeats are expected");
  add_duration(app, "--probe-interval", to.probe_interval,
               "Period of the probes of a runtime, which prove the way of events without writing "
               "anything; a failed one is repeated after 30 s; 0: no probes");
  add(app, "--admin-token-file", to.admin_token_file, "FILE",
      "File with the token that lets clients read the page (/), /live and /runtimes from outside "
      "the loopback interface");
  add(app, "--landscape", to.landscape, "NAME",
      "Value of the label landscape of all metrics, which tells landscapes of one Prometheus "
      "apart; by default none");
  add_listening_address(app, "--metrics-address", to.metrics_address,
                        "Address that serves /metrics, /healthz, /livez and /readyz (plain HTTP)");
}

void describe_election(CLI::App& app, manager_settings& to) {
  app.add_flag("--leader-elect,!--no-leader-elect", to.leader_elect,
               "Write only while holding a Lease (on by default)");
  add(app, "--lease-namespace", to.lease_namespace, "", "Namespace of the leader-election Lease");
  add(app, "--lease-name", to.lease_name, "", "Name of the leader-election Lease");
  add_duration(app, "--lease-duration", to.lease_duration,
               "Time after the last renewal of the Lease at which another replica may take it");
  add_duration(app, "--renew-deadline", to.renew_deadline,
               "Time after the last renewal of the Lease at which the leader stops leading");
  add_duration(app, "--retry-period", to.retry_period,
               "Delay between attempts to acquire or renew the Lease");
}

void describe_runtimes(CLI::App& app, manager_settings& to) {
  add(app, "--gateway-namespace", to.gateway_namespace, "",
      "Namespace of the Gateways that Watchers select");
  add(app, "--gateway-name", to.gateway_name, "",
      "Name of the Gateway in kcp-system to whose host and port SKRs send events");
  add(app, "--istio-namespace", to.istio_namespace, "",
      "Namespace of the Certificates and of the CA and gateway Secrets");
  add(app, "--kcp-port", to.kcp_port, "",
      "Port of KCP's gateway as SKRs reach it; 0: that of --gateway-name")
      ->check(CLI::Range(1, 65535));
  add(app, "--skr-image", to.skr_image, "", "Image of the webhook on SKRs");
  add(app, "--skr-manifests", to.skr_manifests, "DIR",
      "Directory with manifests that replace the built-in manifests (deploy/skr)");
  add(app, "--skr-pull-secret", to.skr_pull_secrets, "NAME,...",
      "Names of the webhook's imagePullSecrets, in kyma-system on the SKR");
  add(app, "--skr-webhook-sources", to.skr_webhook_sources, "LABEL=VALUE,...",
      "Pods in kube-system of the SKR that may call the webhook, or \"any\" for every client; by "
      "default as the manifests say: app=vpn-shoot")
      ->check(CLI::Validator(watcher_installer::webhook_sources_error, ""));
  add(app, "--skr-memory-limit", to.skr_memory_limit, "", "Memory limit of the webhook's pods")
      ->check(quantity());
  add(app, "--skr-cpu-limit", to.skr_cpu_limit, "", "CPU limit of the webhook's pods")
      ->check(quantity());
  app.add_flag("--skr-restart-on-renewal", to.skr_restart_on_renewal,
               "Restart the webhook's pods when they get a new certificate: for an image that does "
               "not reload it, as runtime-watcher does");
  add_local_runtimes(app, to.local_runtimes);
  add(app, "--concurrent", to.concurrent, "", "Number of SKRs reconciled concurrently")
      ->check(CLI::Range(1u, 1024u));
  add_duration(app, "--success-interval", to.success_interval,
               "Resync period of an SKR without observed changes, plus up to 10 % jitter",
               std::chrono::milliseconds(1));
}

std::string selector_error(const std::string& text) {
  const auto parsed = k8s::label_selector::parse(text);
  return parsed ? "" : parsed.error().message;
}

/// Options for the replacement of lifecycle-manager's part (deploy/manager/MIGRATION.md).
void describe_migration(CLI::App& app, manager_settings& to) {
  app.add_flag(
      "--shadow", to.shadow,
      "Change nothing: send each write as a server-side dry run, and show in /runtimes "
      "what would be written; a Kyma that is deleted meanwhile waits for a manager without "
      "this flag, which takes the watcher off its runtime");
  app.add_flag("--take-over", to.take_over,
               "Write even while lifecycle-manager runs (by default the manager then acts as with "
               "--shadow); lifecycle-manager's own part for watchers must be switched off");
  add_duration(app, "--lifecycle-manager-patience", to.lifecycle_manager_patience,
               "Time after the last renewal of lifecycle-manager's Lease at which its part is "
               "taken over; must exceed the duration of a restart",
               std::chrono::seconds(1));
  add(app, "--only", to.only, "SELECTOR",
      "Selector of the Kymas to reconcile, such as canary=yes; all others are left alone, but for "
      "the finalizer, 5 minutes after a deletion, and a rotation of the CA waits for them until "
      "its deadline")
      ->check(CLI::Validator(selector_error, ""));
  add(app, "--field-manager", to.field_manager, "NAME", "Field manager of all writes");
  add(app, "--former-field-manager", to.former_field_manager, "NAME",
      "Field manager whose fields on SKRs are taken over; if it writes them again, the manager "
      "stops writing to that SKR");
  add_duration(app, "--contest-pause", to.contest_pause,
               "Time without a write of --former-field-manager after which the manager writes to "
               "an SKR again",
               std::chrono::seconds(1));
}

void describe_certificates(CLI::App& app, manager_settings& to) {
  add_certificates_kind(app, to.gardener_certificates);
  add(app, "--issuer", to.issuer, "", "Issuer of the SKRs' certificates");
  add(app, "--issuer-namespace", to.issuer_namespace, "",
      "Namespace of --issuer, with --certificates=gardener");
  add(app, "--extra-dns-names", to.extra_dns_names, "NAME,...",
      "Further DNS names in the certificate of each SKR");
  add(app, "--certificate-key", to.certificate_key, "",
      "Key of the SKRs' certificates, from their next renewal on; a handshake with rsa-4096 costs "
      "the webhook ten times the CPU")
      ->check(CLI::IsMember({"ecdsa-p256", "rsa-2048", "rsa-3072", "rsa-4096"}));
  add_duration(app, "--certificate-duration", to.certificate_duration,
               "Validity of the SKRs' certificates, in whole hours", std::chrono::hours(1));
  add_duration(app, "--certificate-renew-before", to.certificate_renew_before,
               "Time before its expiry at which an SKR's certificate is renewed, in whole hours",
               std::chrono::hours(1));
  add_duration(
      app, "--ca-grace-period", to.ca_grace,
      "Time from the addition of a new CA to the bundle until the gateway may serve with it");
  app.add_flag("--ca-switch-by-time-only", to.ca_time_only,
               "Switch the gateway to a new CA after --ca-grace-period, without waiting until "
               "every SKR has it");
  add_duration(app, "--ca-switch-before-expiry", to.ca_switch_before_expiry,
               "Time before the expiry of the gateway's certificate at which the gateway switches "
               "to the new one, even if SKRs lack the new CA");
  add_duration(
      app, "--ca-switch-limit", to.ca_switch_limit,
      "Maximum time from the addition of a new CA to the bundle until the gateway switches to it, "
      "even if SKRs lack it; at least --ca-grace-period; 0: until --ca-switch-before-expiry");
  add_duration(
      app, "--ca-excuse-after", to.ca_excuse_after,
      "Time after which the rotation no longer waits for an SKR that fails through a fault "
      "of its own: it is unreachable, rejects the kubeconfig or writes, or has none",
      std::chrono::seconds(1));
  add(app, "--ca-excuse-percent", to.ca_excuse_percent, "PERCENT",
      "Maximum percentage of the SKRs that the rotation does not wait for after --ca-excuse-after, "
      "3 SKRs at least; 0: it waits for all")
      ->check(CLI::Range(0, 100));
  add_duration(app, "--ca-gateway-settles", to.ca_gateway_settles,
               "Time from the addition of a new CA to the bundle until its certificates are "
               "installed on SKRs: the gateway has to load the bundle first");
  add_duration(app, "--ca-propagation", to.ca_propagation,
               "Time from a write to an SKR until it is in effect there (kubelet has updated the "
               "pods): a certificate waits this long for its CA, a new manager's webhook for the "
               "managers' file, and the gateway for the new CA. The wait ends earlier where the "
               "heartbeats of all pods say that they have loaded it");
  add_duration(
      app, "--ca-api-server-propagation", to.ca_api_server_propagation,
      "Part of --ca-propagation that a certificate waits for its CA even if heartbeats report the "
      "CA earlier: until all replicas of an SKR's API server observe the webhook configuration");
}

/// Checks the rules of k8s::election, with the flags' names in the messages.
void check_election(const manager_settings& of, problems& wrong) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  if (of.lease_duration < seconds(1) || of.lease_duration % seconds(1) != milliseconds(0)) {
    wrong.add("--lease-duration must be whole seconds");
  }
  if (of.lease_duration - k8s::election_options().margin <= of.renew_deadline) {
    wrong.add("--lease-duration must be longer than --renew-deadline by more than a second");
  }
  if (of.retry_period <= milliseconds(0) || 5 * of.renew_deadline <= 6 * of.retry_period) {
    wrong.add("--renew-deadline must be longer than 1.2 times --retry-period");
  }
}

}  // namespace

void describe_manager(CLI::App& app, manager_settings& to) {
  add_kubeconfig(app, to.kcp);
  describe_intake(app, to);
  describe_election(app, to);
  describe_runtimes(app, to);
  describe_migration(app, to);
  describe_certificates(app, to);
  describe_runtime_config(app, to.runtime_config);
  add_duration(app, "--drain-timeout", to.drain_timeout,
               "Time limit after SIGTERM for work in progress")
      ->envname("DRAIN_TIMEOUT");
  check_object_names(app, {"--lease-namespace", "--lease-name", "--gateway-namespace",
                           "--events-service", "--skr-pull-secret", "--gateway-name",
                           "--istio-namespace", "--issuer", "--issuer-namespace"});
}

void check_manager(const manager_settings& of) {
  problems wrong;
  check_listening(of.listening, wrong);
  if (of.leader_elect) check_election(of, wrong);
  if (of.certificate_renew_before >= of.certificate_duration) {
    wrong.add("--certificate-renew-before must be shorter than --certificate-duration");
  }
  const auto mode = of.runtime_config.mode;
  if (of.shadow && (mode == bootstrapper_mode::signal || mode == bootstrapper_mode::direct)) {
    wrong.add("--shadow changes nothing, so --bootstrapper-mode must be off or shadow");
  }
  const auto& prometheus = of.runtime_config.prometheus;
  if (prometheus.url.empty()) {
    if (!prometheus.ca_file.empty() || !prometheus.token_file.empty()) {
      wrong.add(
          "--rollout-prometheus-ca and --rollout-prometheus-token-file need "
          "--rollout-prometheus");
    }
  } else if (const auto url = runtime_rollout::parse_prometheus_url(prometheus.url,
                                                                    !prometheus.token_file.empty());
             !url) {
    wrong.add("--rollout-prometheus " + url.error().message + ": " + prometheus.url);
  }
  wrong.raise();
}

}  // namespace rw::cli
