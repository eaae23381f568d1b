#include "rw/reactors/dev/settings.hpp"

#include "rw/reactors/cli/options.hpp"

#include <algorithm>

namespace rw::dev {
namespace {

using namespace cli;

constexpr auto about =
    "The whole system in one process: API servers in memory for KCP and for the runtimes, an "
    "issuer of certificates and a gateway with mutual TLS for KCP, the manager, and on each "
    "runtime the webhook, as the Deployment and the Secret say that the manager applied "
    "there. It writes kubeconfigs, says what to try, and shows each event. Of the clusters "
    "nothing is kept when it ends; the files in --dir stay until the next start.\n\n"
    "With API servers of your own (--kcp-kubeconfig, --skr-kubeconfig) all of it is the same "
    "but for one call: a real API server reaches the webhook by the Service that the manager "
    "installs, and Services lead to pods, of which this process has none. One that looks into "
    "the Service's Endpoints itself (kube-apiserver --enable-aggregator-routing) finds the "
    "webhook there if --pod-address is an address of this machine that it reaches; nothing "
    "else may write those Endpoints, so a cluster with controllers of its own won't do. "
    "Otherwise changes there cause no events. Definitions that are there are left alone; the "
    "namespaces, the Gateway klm-watcher and the Kyma kyma-system/default are applied.";

void describe_clusters(CLI::App& app, dev_settings& to) {
  add(app, "--dir", to.dir, "DIR",
      "Directory that kubeconfigs and manifests to try are written to");
  add(app, "--runtimes", to.runtimes, "",
      "Number of runtimes, named runtime-1, runtime-2 and so on")
      ->check(CLI::Range(1u, 5000u));
  add(app, "--kcp-kubeconfig", to.kcp_kubeconfig, "FILE",
      "Kubeconfig of a real API server in place of the embedded API server of KCP");
  add(app, "--skr-kubeconfig", to.skr_kubeconfigs, "FILE,...",
      "Kubeconfigs of real API servers in place of the embedded API servers of the first runtimes");
  add(app, "--pod-address", to.pod_address, "IP", "Address that the runtimes' webhooks listen on")
      ->check(ip_address());
  add_duration(app, "--kubelet-delay", to.kubelet_delay,
               "Time from a change of the webhook's Secret until its pod has it");
  app.add_flag("--bare", to.bare,
               "Create neither Watcher nor Kymas: they are in --dir, to be applied by you");
  add(app, "--api-port", to.api_port, "", "Port of the embedded API servers; 0 picks a free one");
}

void describe_control_plane(CLI::App& app, dev_settings& to) {
  add(app, "--gateway-port", to.gateway_port, "", "Port of KCP's gateway; 0 picks a free one");
  add_duration(
      app, "--gateway-idle", to.gateway_idle,
      "Idle timeout of connections to the gateway; if it is short, each event needs a handshake");
  app.add_flag(
      "--manager,!--no-manager", to.manager,
      "Run the manager, too (on by default); without it, run your own with KCP's kubeconfig");
  app.add_option_function<std::vector<std::string>>(
         "--backend",
         [&to](const std::vector<std::string>& texts) {
           for (const auto& text : texts) to.backends.push_back(*core::parse_host_port(text));
         },
         "Addresses of the listeners that the gateway sends events to in turn (with --no-manager)")
      ->check(endpoint())
      ->delimiter(',')
      ->type_name("IP:PORT,...");
  add_duration(app, "--success-interval", to.success_interval,
               "The manager's resync period of a runtime without observed changes",
               std::chrono::milliseconds(1));
  add_duration(
      app, "--ca-grace-period", to.ca_grace,
      "Time from the addition of a new CA to the bundle until the gateway may serve with it");
  add_duration(app, "--rotate-root-every", to.rotate_root_every,
               "Period after which a new root CA is made; 0: only when its Secret is deleted");
  add(app, "--rotations", to.rotations, "", "Maximum number of periodic root CAs; 0: unlimited");
  add_duration(app, "--issuer-delay", to.issuer_delay,
               "Maximum random delay of each step of the issuer");
}

void describe_configuration(CLI::App& app, dev_settings& to) {
  const auto first = app.get_options({}).size();
  add_bootstrapper_mode(
      app, to.bootstrapper,
      "Create the sources of the Runtime Bootstrapper's configuration, and Runtimes, and let the "
      "manager roll it out in this mode (manager --help): off; signal, with a simulated Kyma "
      "Infrastructure Manager; shadow; direct. Prints the first arrival on a runtime, the last, "
      "and each tenth of them between; with --events json all");
  add(app, "--kim-workers", to.kim_workers, "",
      "Number of Runtimes that the simulated Kyma Infrastructure Manager reconciles concurrently")
      ->check(CLI::Range(1u, 1024u));
  add_duration(app, "--kim-duration", to.kim_duration,
               "Time from the removal of a mark by the simulated Kyma Infrastructure Manager to "
               "the end of its reconcile");
  app.add_flag("--kim-config-watcher", to.kim_config_watcher,
               "Run the simulated Kyma Infrastructure Manager's own watcher too, which marks every "
               "Runtime at each update");
  add(app, "--kim-fails", to.kim_fails, "N",
      "Let each N-th reconcile of the simulated Kyma Infrastructure Manager end in the state "
      "Failed after the removal of the mark; 0: none");
  add(app, "--hanging-runtimes", to.hanging_runtimes, "",
      "Number of runtimes, counted from the last, whose API servers accept requests and never "
      "respond");
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
         "Format of the events on standard output")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
  app.add_option_function<std::string>(
         "--table",
         [&to](const std::string& text) {
           to.table = text == "always"  ? table_mode::always
                      : text == "never" ? table_mode::never
                                        : table_mode::automatic;
         },
         "Keep a table of the runtimes below the events; auto: if standard output is a terminal. "
         "Then a terminal gets only warnings and errors of the log: redirect standard error for "
         "all of it")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->default_str("auto");
  add_listening_address(app, "--metrics-address", to.metrics_address,
                        "Address that serves /metrics of all but the manager and the webhooks, "
                        "which log the addresses of their own");
  add_duration(app, "--drain-timeout", to.drain_timeout,
               "Time limit after SIGTERM for work in progress");
}

void check_dev(const dev_settings& of) {
  problems wrong;
  if (of.manager && !of.backends.empty()) {
    wrong.add("--backend is for managers of your own: give --no-manager, too");
  }
  if (of.hanging_runtimes >= of.runtimes - std::min(of.runtimes, of.skr_kubeconfigs.size())) {
    if (of.hanging_runtimes > 0) {
      wrong.add("--hanging-runtimes must leave one of the embedded --runtimes that responds");
    }
  }
  if (of.json && of.table == table_mode::always) {
    wrong.add("--table always and --events json exclude each other");
  }
  if (of.dir.empty()) wrong.add("--dir must not be empty");
  wrong.raise();
}

}  // namespace rw::dev
