#include "reactors/cli/options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace rw::cli {
namespace {

constexpr auto about =
    "The whole system in one process: API servers in memory for KCP and for the runtimes, an\n"
    "issuer of certificates and a gateway with mutual TLS for KCP, the manager, and on each\n"
    "runtime the webhook, as the Deployment and the Secret say that the manager applied\n"
    "there. It writes kubeconfigs, says what to try, and shows each event. Nothing is kept\n"
    "when it ends.\n"
    "\n"
    "With API servers of your own (--kcp-kubeconfig, --skr-kubeconfig) all of it is the same\n"
    "but for one call: a real API server reaches the webhook by the Service that the manager\n"
    "installs, and Services lead to pods, of which this process has none. One that looks into\n"
    "the Service's Endpoints itself (kube-apiserver --enable-aggregator-routing) finds the\n"
    "webhook there if --pod-address is an address of this machine that it reaches; nothing\n"
    "else may write those Endpoints, so a cluster with controllers of its own won't do.\n"
    "Otherwise changes there cause no events. Definitions that are there are left alone; the\n"
    "namespaces, the Gateway klm-watcher and the Kyma kyma-system/default are applied.";

void describe_clusters(CLI::App& app, dev_settings& to) {
  app.add_option("--dir", to.dir, "Where kubeconfigs and manifests to try are written")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--runtimes", to.runtimes,
                 "How many runtimes there are: runtime-1, runtime-2, ...")
      ->check(CLI::Range(1u, 5000u))
      ->capture_default_str();
  app.add_option("--kcp-kubeconfig", to.kcp_kubeconfig,
                 "A real API server in place of the embedded one of KCP")
      ->type_name("FILE");
  app.add_option("--skr-kubeconfig", to.skr_kubeconfigs,
                 "Real API servers in place of those of the first runtimes")
      ->delimiter(',')
      ->type_name("FILE,...");
  app.add_option("--pod-address", to.pod_address, "Where the runtimes' webhooks listen")
      ->check(ip_address())
      ->type_name("IP")
      ->capture_default_str();
  app.add_flag("--bare", to.bare,
               "Create neither Watcher nor Kymas: they are in --dir, to be applied by you");
  app.add_option("--api-port", to.api_port, "Port of the embedded API servers; 0 picks a free one")
      ->capture_default_str();
}

void describe_control_plane(CLI::App& app, dev_settings& to) {
  app.add_option("--gateway-port", to.gateway_port, "Port of KCP's gateway; 0 picks a free one")
      ->capture_default_str();
  add_duration(&app, "--gateway-idle", "", to.gateway_idle, "3m",
               "When the gateway closes a connection without requests; short, each event shakes "
               "hands anew");
  app.add_flag(
      "--manager,!--no-manager", to.manager,
      "Run the manager, too (on by default); without it, run your own with KCP's kubeconfig");
  app.add_option_function<std::vector<std::string>>(
         "--backend",
         [&to](const std::vector<std::string>& texts) {
           for (const auto& text : texts) to.backends.push_back(*core::parse_host_port(text));
         },
         "Where the gateway finds listeners, taken in turn (with --no-manager)")
      ->check(endpoint())
      ->delimiter(',')
      ->type_name("IP:PORT,...");
  add_duration(&app, "--success-interval", "", to.success_interval, "1h",
               "Between the manager's looks at a runtime where nothing is known to have changed",
               std::chrono::milliseconds(1));
  add_duration(&app, "--ca-grace-period", "", to.ca_grace, "10s",
               "From when a new CA is in the bundle until the gateway may serve with it");
  add_duration(&app, "--rotate-root-every", "", to.rotate_root_every, "0",
               "Make a new root CA so often; 0: only when its Secret is deleted");
  app.add_option("--rotations", to.rotations, "At most so many times; 0: for ever")
      ->capture_default_str();
  add_duration(&app, "--issuer-delay", "", to.issuer_delay, "0",
               "Let each step of the issuer come late by up to so much, at random");
}

void describe_configuration(CLI::App& app, dev_settings& to, dev_texts& texts) {
  const auto* const group = "Configuration of runtimes";
  app.add_option("--bootstrapper-mode", texts.bootstrapper,
                 "Create what the Runtime Bootstrapper is configured from, and Runtimes, and have "
                 "the manager bring it to the runtimes in this way (manager --help): off; signal, "
                 "with a Kyma Infrastructure Manager that is simulated; shadow; direct. Each "
                 "arrival on a runtime is shown")
      ->check(CLI::IsMember({"off", "signal", "shadow", "direct"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--kim-workers", to.kim_workers,
                 "Runtimes that the simulated Kyma Infrastructure Manager works on at once")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str()
      ->group(group);
  add_duration(&app, "--kim-duration", "", to.kim_duration, "2s",
               "How long it works on one that is marked")
      ->group(group);
  app.add_option("--hanging-runtimes", to.hanging_runtimes,
                 "How many runtimes, the last ones, have API servers that take requests and never "
                 "answer")
      ->capture_default_str();
}

}  // namespace

void describe_dev(CLI::App& app, dev_settings& to, dev_texts& texts) {
  app.footer(about);
  describe_clusters(app, to);
  describe_control_plane(app, to);
  describe_configuration(app, to, texts);
  app.add_option("--events", texts.events, "How events are shown on standard output")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_listening_address(
      app, "--metrics-address", to.metrics_address,
      "Where /metrics of all but the manager and the webhooks is served; the addresses of "
      "theirs are logged");
  add_duration(&app, "--drain-timeout", "", to.drain_timeout, "10s",
               "How long after SIGTERM what is under way may take");
}

void check_dev(dev_settings& to, const dev_texts& texts) {
  problems wrong;
  to.json = texts.events == "json";
  to.bootstrapper = parse_bootstrapper_mode(texts.bootstrapper).value_or(bootstrapper_mode::off);
  if (to.manager && !to.backends.empty()) {
    wrong.add("--backend is for managers of your own: give --no-manager, too");
  }
  if (to.hanging_runtimes >= to.runtimes - std::min(to.runtimes, to.skr_kubeconfigs.size())) {
    if (to.hanging_runtimes > 0) {
      wrong.add("--hanging-runtimes must leave one of the embedded --runtimes that answers");
    }
  }
  if (to.dir.empty()) wrong.add("--dir must not be empty");
  wrong.raise();
}

}  // namespace rw::cli
