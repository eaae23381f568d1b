#include "k8s/election.hpp"
#include "reactors/cli/options.hpp"

#include <CLI/CLI.hpp>

namespace rw::cli {
namespace {

void describe_listening(CLI::App& app, manager_settings& to, manager_texts& texts) {
  app.add_option("--listen-address", texts.address, "Where events are taken; every replica does")
      ->type_name("HOST:PORT")
      ->default_str("0.0.0.0:8082");
  app.add_option("--component", to.component,
                 "Name in the path of the events: the manager of the Watchers")
      ->capture_default_str();
  app.add_option("--tls-cert", to.tls_cert,
                 "PEM certificate: terminate mutual TLS here (needs --tls-key and --client-ca)")
      ->type_name("FILE");
  app.add_option("--tls-key", to.tls_key, "PEM key of --tls-cert")->type_name("FILE");
  app.add_option("--client-ca", to.client_ca,
                 "PEM bundle that client certificates must chain to, forwarded ones too")
      ->type_name("FILE");
  app.add_option("--xfcc-trusted-proxies", to.trusted_proxies,
                 "Networks whose X-Forwarded-Client-Cert is believed (without --tls-cert)")
      ->type_name("CIDR,...")
      ->capture_default_str();
  app.add_flag("--pin-san", to.pin_san,
               "Take an event only if the sender's certificate names the skr-domain of its Kyma");
  app.add_option("--metrics-address", texts.metrics_address,
                 "Where /metrics, /healthz, /livez and /readyz are served (plain HTTP)")
      ->type_name("HOST:PORT")
      ->default_str("0.0.0.0:8080");
}

void describe_election(CLI::App& app, manager_settings& to) {
  app.add_flag("--leader-elect,!--no-leader-elect", to.leader_elect,
               "Write only while holding a Lease (on by default)");
  app.add_option("--lease-namespace", to.lease_namespace, "Of the Lease")->capture_default_str();
  app.add_option("--lease-name", to.lease_name, "Of the Lease")->capture_default_str();
  add_duration(&app, "--lease-duration", "", to.lease_duration, "15s",
               "How long others leave a Lease alone that is not renewed");
  add_duration(&app, "--renew-deadline", "", to.renew_deadline, "10s",
               "How long the leader tries to renew before it gives up");
  add_duration(&app, "--retry-period", "", to.retry_period, "2s", "Between tries");
}

void describe_runtimes(CLI::App& app, manager_settings& to) {
  app.add_option("--gateway-namespace", to.gateway_namespace,
                 "Where Gateways are selected from by Watchers")
      ->capture_default_str();
  app.add_option("--kcp-port", to.kcp_port,
                 "Port of KCP's gateway as SKRs reach it, in place of the Gateway's")
      ->check(CLI::Range(1, 65535));
  app.add_option("--skr-image", to.skr_image, "Image of the webhook on SKRs")
      ->capture_default_str();
  app.add_option("--skr-manifests", to.skr_manifests,
                 "Directory with manifests in place of the built-in ones (deploy/skr)")
      ->type_name("DIR");
  app.add_option("--skr-pull-secret", to.skr_pull_secrets,
                 "imagePullSecrets of the webhook, in kyma-system on the SKR")
      ->delimiter(',')
      ->type_name("NAME,...");
  app.add_option("--skr-memory-limit", to.skr_memory_limit, "Of the webhook's pods")
      ->capture_default_str();
  app.add_option("--skr-cpu-limit", to.skr_cpu_limit, "Of the webhook's pods")
      ->capture_default_str();
  app.add_option("--concurrent", to.concurrent, "SKRs that are worked on at once")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  add_duration(&app, "--success-interval", "", to.success_interval, "1h",
               "Between looks at an SKR where nothing is known to have changed");
}

void describe_certificates(CLI::App& app, manager_settings& to, manager_texts& texts) {
  app.add_option("--certificates", texts.dialect, "Whose Certificates are made")
      ->check(CLI::IsMember({"cert-manager", "gardener"}))
      ->default_str("cert-manager");
  app.add_option("--issuer", to.issuer, "Issuer of the SKRs' certificates")->capture_default_str();
  app.add_option("--issuer-namespace", to.issuer_namespace, "Of the issuer, with gardener")
      ->capture_default_str();
  app.add_option("--extra-dns-names", to.extra_dns_names, "Further names in each certificate")
      ->delimiter(',')
      ->type_name("NAME,...");
  add_duration(&app, "--ca-grace-period", "", to.ca_grace, "96h",
               "From when a new CA is in the bundle until the gateway may serve with it");
  app.add_flag("--ca-switch-by-time-only", to.ca_time_only,
               "After the grace period, do not wait until every SKR was seen with the new CA");
  add_duration(&app, "--ca-unreachable-after", "", to.ca_unreachable, "1h",
               "An SKR that has been out of reach for so long is not waited for any more");
  add_duration(
      &app, "--ca-gateway-settles", "", to.ca_gateway_settles, "10s",
      "From when a new CA is in the bundle until certificates of it go to SKRs: the gateway "
      "itself has to get the bundle");
  add_duration(&app, "--ca-propagation", "", to.ca_propagation, "10s",
               "From when a bundle is on an SKR until a certificate that needs it is served there");
}

/// The rules of k8s::election, told by the flags' names.
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

void describe_manager(CLI::App& app, manager_settings& to, manager_texts& texts) {
  app.add_option("--kubeconfig", to.kubeconfig,
                 "Access to KCP; by default $KUBECONFIG, the pod's own, or ~/.kube/config")
      ->type_name("FILE");
  app.add_option("--context", to.context, "Context of the kubeconfig; by default the current one");
  describe_listening(app, to, texts);
  describe_election(app, to);
  describe_runtimes(app, to);
  describe_certificates(app, to, texts);
  describe_runtime_config(app, to.runtime_config);
  add_duration(&app, "--drain-timeout", "DRAIN_TIMEOUT", to.drain_timeout, "20s",
               "How long after SIGTERM what is under way may take");
}

void check_manager(manager_settings& to, const manager_texts& texts) {
  problems wrong;
  const auto address = [&](const std::string& text, const char* flag, core::host_port& into) {
    if (text.empty()) return;
    if (const auto parsed = core::parse_host_port(text)) {
      into = *parsed;
    } else {
      wrong.add(std::string(flag) + " must be host:port, not: " + text);
    }
  };
  address(texts.address, "--listen-address", to.address);
  address(texts.metrics_address, "--metrics-address", to.metrics_address);
  to.gardener_certificates = texts.dialect == "gardener";
  if (to.component.empty()) wrong.add("--component must not be empty");
  if (to.tls_cert.empty() != to.tls_key.empty()) wrong.add("--tls-cert and --tls-key go together");
  if (!to.tls_cert.empty() && to.client_ca.empty()) {
    wrong.add("--tls-cert needs --client-ca: without it nobody could be identified");
  }
  if (to.leader_elect) check_election(to, wrong);
  check_runtime_config(to.runtime_config, wrong);
  wrong.raise();
}

}  // namespace rw::cli
