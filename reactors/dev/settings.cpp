#include "reactors/dev/settings.hpp"

#include "reactors/cli/options.hpp"

#include <algorithm>

namespace rw::dev {
namespace {

using namespace cli;

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
  add(app, "--dir", to.dir, "DIR", "Where kubeconfigs and manifests to try are written");
  add(app, "--runtimes", to.runtimes, "", "How many runtimes there are: runtime-1, runtime-2, ...")
      ->check(CLI::Range(1u, 5000u));
  add(app, "--kcp-kubeconfig", to.kcp_kubeconfig, "FILE",
      "A real API server in place of the embedded one of KCP");
  add(app, "--skr-kubeconfig", to.skr_kubeconfigs, "FILE,...",
      "Real API servers in place of those of the first runtimes");
  add(app, "--pod-address", to.pod_address, "IP", "Where the runtimes' webhooks listen")
      ->check(ip_address());
  app.add_flag("--bare", to.bare,
               "Create neither Watcher nor Kymas: they are in --dir, to be applied by you");
  add(app, "--api-port", to.api_port, "", "Port of the embedded API servers; 0 picks a free one");
}

void describe_control_plane(CLI::App& app, dev_settings& to) {
  add(app, "--gateway-port", to.gateway_port, "", "Port of KCP's gateway; 0 picks a free one");
  add_duration(
      app, "--gateway-idle", to.gateway_idle,
      "When the gateway closes a connection without requests; short, each event shakes hands anew");
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
  add_duration(app, "--success-interval", to.success_interval,
               "Between the manager's looks at a runtime where nothing is known to have changed",
               std::chrono::milliseconds(1));
  add_duration(app, "--ca-grace-period", to.ca_grace,
               "From when a new CA is in the bundle until the gateway may serve with it");
  add_duration(app, "--rotate-root-every", to.rotate_root_every,
               "Make a new root CA so often; 0: only when its Secret is deleted");
  add(app, "--rotations", to.rotations, "", "At most so many times; 0: for ever");
  add_duration(app, "--issuer-delay", to.issuer_delay,
               "Let each step of the issuer come late by up to so much, at random");
}

void describe_configuration(CLI::App& app, dev_settings& to) {
  const auto first = app.get_options({}).size();
  add_bootstrapper_mode(
      app, to.bootstrapper,
      "Create what the Runtime Bootstrapper is configured from, and Runtimes, and have the manager "
      "bring it to the runtimes in this way (manager --help): off; signal, with a Kyma "
      "Infrastructure Manager that is simulated; shadow; direct. Each arrival on a runtime is "
      "shown");
  add(app, "--kim-workers", to.kim_workers, "",
      "Runtimes that the simulated Kyma Infrastructure Manager works on at once")
      ->check(CLI::Range(1u, 1024u));
  add_duration(app, "--kim-duration", to.kim_duration,
               "Time from its taking the mark off to the end of its reconcile");
  app.add_flag("--kim-config-watcher", to.kim_config_watcher,
               "Let it run its own watcher, too, which marks every Runtime at each update");
  add(app, "--kim-fails", to.kim_fails, "N",
      "Let each N-th of its reconciles end in the state Failed after the mark was taken; 0: none");
  add(app, "--hanging-runtimes", to.hanging_runtimes, "",
      "How many runtimes, the last ones, have API servers that take requests and never answer");
  group_options(app, first, "Configuration of runtimes");
}

}  // namespace

void describe_dev(CLI::App& app, dev_settings& to) {
  app.footer(about);
  describe_clusters(app, to);
  describe_control_plane(app, to);
  describe_configuration(app, to);
  app.add_option_function<std::string>(
         "--events", [&to](const std::string& text) { to.json = text == "json"; },
         "How events are shown on standard output")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
  add_listening_address(
      app, "--metrics-address", to.metrics_address,
      "Where /metrics of all but the manager and the webhooks is served; the addresses of "
      "theirs are logged");
  add_duration(app, "--drain-timeout", to.drain_timeout,
               "How long after SIGTERM what is under way may take");
}

void describe_api_server(CLI::App& app, api_server_settings& to) {
  add_listening_address(app, "--address", to.address, "Where to listen; port 0 picks a free one");
  add(app, "--dir", to.dir, "", "Where a kubeconfig for each cluster is written, and ca.crt");
  add(app, "--cluster", to.clusters, "NAME,...",
      "Names of the clusters, each an API server of its own below /clusters/NAME");
  add(app, "--host-name", to.host_names, "NAME,...", "Names in the server's certificate");
  add(app, "--history", to.history, "", "Changes of a cluster that a watch may resume from")
      ->check(CLI::Range(1u, 1u << 24));
  add_duration(app, "--storage-delay", to.storage_delay,
               "Time for which objects of a new CustomResourceDefinition are answered with 429, as "
               "kube-apiserver does while their storage is initializing; 0: none");
}

void check_dev(const dev_settings& of) {
  problems wrong;
  if (of.manager && !of.backends.empty()) {
    wrong.add("--backend is for managers of your own: give --no-manager, too");
  }
  if (of.hanging_runtimes >= of.runtimes - std::min(of.runtimes, of.skr_kubeconfigs.size())) {
    if (of.hanging_runtimes > 0) {
      wrong.add("--hanging-runtimes must leave one of the embedded --runtimes that answers");
    }
  }
  if (of.dir.empty()) wrong.add("--dir must not be empty");
  wrong.raise();
}

}  // namespace rw::dev
