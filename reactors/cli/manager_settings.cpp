#include "k8s/election.hpp"
#include "reactors/cli/options.hpp"

#include <CLI/CLI.hpp>

#include <regex>

namespace rw::cli {
namespace {

/// A positive amount as Kubernetes writes it, such as 200Mi, 100m or 0.1.
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
                        "Where events are taken; every replica does");
  describe_listening(app, to.listening);
  app.add_flag("--pin-san", to.pin_san,
               "Take an event only if the sender's certificate names the skr-domain of its Kyma");
  add_listening_address(app, "--metrics-address", to.metrics_address,
                        "Where /metrics, /healthz, /livez and /readyz are served (plain HTTP)");
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
      ->check(quantity())
      ->capture_default_str();
  app.add_option("--skr-cpu-limit", to.skr_cpu_limit, "Of the webhook's pods")
      ->check(quantity())
      ->capture_default_str();
  app.add_option("--concurrent", to.concurrent, "SKRs that are worked on at once")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  add_duration(&app, "--success-interval", "", to.success_interval, "1h",
               "Between looks at an SKR where nothing is known to have changed",
               std::chrono::milliseconds(1));
}

void describe_certificates(CLI::App& app, manager_settings& to) {
  app.add_option_function<std::string>(
         "--certificates",
         [&to](const std::string& dialect) { to.gardener_certificates = dialect == "gardener"; },
         "Whose Certificates are made")
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

void describe_manager(CLI::App& app, manager_settings& to) {
  app.add_option("--kubeconfig", to.kubeconfig,
                 "Access to KCP; by default $KUBECONFIG, the pod's own, or ~/.kube/config")
      ->type_name("FILE");
  app.add_option("--context", to.context, "Context of the kubeconfig; by default the current one");
  describe_intake(app, to);
  describe_election(app, to);
  describe_runtimes(app, to);
  describe_certificates(app, to);
  describe_runtime_config(app, to.runtime_config);
  add_duration(&app, "--drain-timeout", "DRAIN_TIMEOUT", to.drain_timeout, "20s",
               "How long after SIGTERM what is under way may take");
  check_object_names(app, {"--lease-namespace", "--lease-name", "--gateway-namespace",
                           "--skr-pull-secret", "--issuer", "--issuer-namespace"});
}

void check_manager(manager_settings& to) {
  problems wrong;
  check_listening(to.listening, wrong);
  if (to.leader_elect) check_election(to, wrong);
  check_runtime_config(to.runtime_config);
  wrong.raise();
}

}  // namespace rw::cli
