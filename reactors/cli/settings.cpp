#include "reactors/cli/settings.hpp"

#include "k8s/qualified_name.hpp"
#include "reactors/cli/options.hpp"
#include "reactors/listener/identity.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <cctype>
#include <iostream>

namespace rw::cli {
namespace {

constexpr auto about =
    "Tells a control plane what changed on a Kubernetes cluster: `webhook` runs on the watched "
    "cluster, `listen` in the control plane. `manager` keeps everything in place from the control "
    "plane. `dev` is the whole system in one process, clusters included. `api-server` is a "
    "Kubernetes API server in memory to try things on.";

using validator = CLI::Validator;

std::string as_component(const std::string& text) {
  return is_path_segment(text)
             ? ""
             : "must be one element of a path: letters, digits, '-', '_' and '.', "
               "253 at most, and not '.' or '..': " +
                   text;
}

std::string as_ip_address(const std::string& text) {
  boost::system::error_code error;
  boost::asio::ip::make_address(text, error);
  return error ? "must be an IP address, not: " + text : "";
}

std::string as_endpoint(const std::string& text) {
  const auto parsed = core::parse_host_port(text);
  const bool usable = parsed && as_ip_address(parsed->host).empty();
  return usable ? "" : "must be an IP address and a port such as 127.0.0.1:8082, not: " + text;
}

std::string as_upstream(const std::string& text) {
  const auto parsed = core::parse_host_port(text);
  return parsed && parsed->port != 0 ? "" : "must be host:port, not: " + text;
}

std::string as_networks(const std::string& text) {
  try {
    const bool none = listener::network_list::parse(text).empty();
    return none ? "must name a network such as 10.0.0.0/8: nobody would be believed" : "";
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

/// A duration as `core::parse_duration` takes it, in the largest unit that it is a multiple of.
std::string show(std::chrono::milliseconds value) {
  if (value.count() == 0) return "0";
  for (const auto& [unit, name] : {std::pair(3'600'000, "h"), {60'000, "m"}, {1000, "s"}}) {
    if (value.count() % unit == 0) return std::to_string(value.count() / unit) + name;
  }
  return std::to_string(value.count()) + "ms";
}

/// Blanks around an element of a list are taken away.
std::string trim(std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "must not have empty elements";
  text = text.substr(first, text.find_last_not_of(" \t") - first + 1);
  return "";
}

}  // namespace

CLI::Option* add_duration(CLI::App& app, const std::string& flag, std::chrono::milliseconds& value,
                          const std::string& help, std::chrono::milliseconds least) {
  const auto is_duration = [least](const std::string& text) -> std::string {
    const auto parsed = core::parse_duration(text);
    if (!parsed) return "not a duration such as 250ms, 20s or 1h: " + text;
    return *parsed < least ? "too short: " + text : "";
  };
  return app
      .add_option_function<std::string>(
          flag, [&value](const std::string& text) { value = *core::parse_duration(text); }, help)
      ->check(validator(is_duration, ""))
      ->type_name("DURATION")
      ->default_str(show(value));
}

CLI::Validator ip_address() {
  return validator(as_ip_address, "");
}

CLI::Validator endpoint() {
  return validator(as_endpoint, "");
}

CLI::Option* add_listening_address(CLI::App& app, const std::string& flag, core::host_port& value,
                                   const std::string& help) {
  auto* option = app.add_option_function<std::string>(
      flag, [&value](const std::string& text) { value = *core::parse_host_port(text); }, help);
  if (!value.host.empty()) option->default_str(value.host + ':' + std::to_string(value.port));
  return option->check(endpoint())->type_name("IP:PORT");
}

void check_object_names(CLI::App& app, std::initializer_list<const char*> flags) {
  const auto error = [](const std::string& text) {
    return k8s::dns_subdomain_errors(text).empty() ? "" : "is no name of an object: " + text;
  };
  for (const auto* flag : flags) app.get_option(flag)->check(validator(error, ""));
}

void check_required(CLI::App& app, std::initializer_list<const char*> flags, problems& wrong) {
  for (const auto* flag : flags) {
    const auto& option = *app.get_option(flag);
    if (!option.results().empty() && !option.results().front().empty()) continue;
    wrong.add(option.get_envname() + " is required (or the flag " + flag + ")");
  }
}

void describe_listening(CLI::App& app, listening_settings& to) {
  add(app, "--component", to.component, "NAME",
      "Name in the path of the events: the manager of the Watchers")
      ->check(validator(as_component, ""));
  add(app, "--tls-cert", to.tls_cert, "FILE",
      "PEM certificate: terminate mutual TLS here (needs --tls-key and --client-ca)");
  add(app, "--tls-key", to.tls_key, "FILE", "PEM key of --tls-cert");
  add(app, "--client-ca", to.client_ca, "FILE",
      "PEM bundle that client certificates must chain to, forwarded ones too");
  add(app, "--xfcc-trusted-proxies", to.trusted_proxies, "CIDR,...",
      "Networks whose X-Forwarded-Client-Cert is believed (without --tls-cert)")
      ->check(validator(as_networks, ""));
}

void check_listening(const listening_settings& of, problems& wrong) {
  if (of.tls_cert.empty() != of.tls_key.empty()) wrong.add("--tls-cert and --tls-key go together");
  if (!of.tls_cert.empty() && of.client_ca.empty()) {
    wrong.add("--tls-cert needs --client-ca: without it nobody could be identified");
  }
}

namespace {

/// A port out of the environment that is none must not keep the webhook from starting.
void add_port(CLI::App& app, const std::string& flag, std::uint16_t& port,
              std::vector<std::string>& remarks, const char* help) {
  const auto read = [flag, &port, &remarks](const std::string& text) {
    if (const auto parsed = core::parse_port(text)) {
      port = *parsed;
    } else {
      remarks.push_back(flag + " is no port, using " + std::to_string(port) + ": " + text);
    }
  };
  app.add_option_function<std::string>(flag, read, help)
      ->type_name("PORT")
      ->default_str(std::to_string(port));
}

void describe_webhook(CLI::App& app, webhook_settings& to) {
  add_port(app, "--webhook-port", to.webhook_port, to.remarks, "Port of the webhook");
  add_port(app, "--metrics-port", to.metrics_port, to.remarks,
           "Port of /metrics, /healthz, /livez and /readyz (plain HTTP)");
  add(app, "--bind-address", to.bind_address, "IP", "Address that both ports are opened on")
      ->check(ip_address());
  add(app, "--ca-cert", to.ca_cert, "FILE",
      "PEM bundle that KCP's gateway is checked against (required)");
  add(app, "--tls-cert", to.tls_cert, "FILE",
      "PEM certificate, of the webhook and towards KCP; its common name is the runtime's id "
      "(required)");
  add(app, "--tls-key", to.tls_key, "FILE", "PEM key of --tls-cert (required)");
  add(app, "--managers-file", to.managers_file, "FILE",
      "Managers that reviews are taken for, as the manager writes it; reloaded when it changes. "
      "Without it every manager is taken");
  app.add_option_function<std::string>(
         "--kcp-addr", [&to](const std::string& text) { to.kcp = *core::parse_host_port(text); },
         "KCP's gateway (required)")
      ->check(validator(as_upstream, ""))
      ->type_name("HOST:PORT");
  app.add_option_function<std::string>(
         "--kcp-contract", [&to](const std::string& text) { parse_contract(text, to.contract); },
         "What KCP's listener speaks: v1 or v2 (required)")
      ->check(CLI::IsMember({"v1", "v2"}))
      ->type_name("CONTRACT");
  add_duration(app, "--admission-wait", to.admission_wait,
               "How long an answer waits for room in a full queue; the user's write waits as long");
  add_duration(app, "--event-max-age", to.event_max_age,
               "How long after its latest change an event is tried to be delivered",
               std::chrono::milliseconds(1));
  add_duration(app, "--shutdown-delay", to.shutdown_delay,
               "How long after SIGTERM reviews are still taken: API servers may not know yet that "
               "this pod is going, and would lose the event with the call");
  add_duration(app, "--drain-timeout", to.drain_timeout,
               "How long after that accepted events may take to be delivered");
  add(app, "--channel-capacity", to.channel_capacity, "",
      "Events between intake and dispatch; about 300 bytes each")
      ->check(CLI::Range(1u, 1u << 20));
  add(app, "--max-review-bytes", to.max_review_bytes, "",
      "Largest AdmissionReview that is taken; two objects of 1.5 MiB and their frame fit")
      ->check(CLI::Range(64u << 10, 64u << 20));
  add(app, "--set-capacity", to.set_capacity, "",
      "Objects with undelivered events; about 600 bytes each")
      ->check(CLI::Range(1u, 1u << 24));
}

void check_webhook(CLI::App& app, const webhook_settings& of) {
  problems wrong;
  check_required(app, {"--ca-cert", "--tls-cert", "--tls-key", "--kcp-addr", "--kcp-contract"},
                 wrong);
  if (of.admission_wait > std::chrono::seconds(30)) {
    wrong.add("--admission-wait must be 30s at most: no API server waits longer for an answer");
  }
  wrong.raise();
}

void describe_listen(CLI::App& app, listen_settings& to) {
  add_listening_address(app, "--address", to.listening.address,
                        "Where to listen; port 0 picks a free one (required)")
      ->envname("LISTEN_ADDRESS");
  describe_listening(app, to.listening);
  add_listening_address(
      app, "--metrics-address", to.metrics_address,
      "Where to serve /metrics, /healthz, /livez and /readyz; not served by default");
  add_duration(app, "--drain-timeout", to.drain_timeout,
               "How long after SIGTERM open requests, and writing events, may take");
}

void check_listen(CLI::App& app, const listen_settings& of) {
  problems wrong;
  check_required(app, {"--address", "--component"}, wrong);
  check_listening(of.listening, wrong);
  wrong.raise();
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

void describe_status(CLI::App& app, status_settings& to) {
  app.add_option_function<std::string>(
         "--address",
         [&to](const std::string& text) {
           const auto read = core::parse_host_port(text);
           if (!read) throw CLI::ValidationError("--address must be HOST:PORT, not: " + text);
           to.address = *read;
         },
         "Of the manager's metrics and /runtimes")
      ->type_name("HOST:PORT")
      ->default_str("127.0.0.1:8080");
  add(app, "--token-file", to.token_file, "FILE", "The manager's --admin-token-file");
  add(app, "--state", to.states, "STATE,...", "Only runtimes in these states")
      ->check(CLI::IsMember({"installed", "not_ready", "failed", "unreachable", "unknown"}));
  add(app, "--reason", to.reason, "TEXT", "Only runtimes whose reason contains it");
  add(app, "--name", to.name, "TEXT", "Only runtimes whose Kyma's name contains it");
  add_duration(app, "--for", to.at_least, "Only runtimes that have been in their state so long");
  add(app, "--output,-o", to.format, "", "How they are printed")
      ->check(CLI::IsMember({"table", "wide", "json"}));
  app.add_flag("--watch,-w", to.watch, "Prints them again and again");
  add_duration(app, "--interval", to.interval, "Between two times, with --watch",
               std::chrono::milliseconds(100));
}

void describe_uninstall(CLI::App& app, uninstall_settings& to) {
  add(app, "--kubeconfig", to.kubeconfig, "FILE",
      "Access to KCP; by default $KUBECONFIG, the pod's own, or ~/.kube/config");
  add(app, "--context", to.context, "", "Context of the kubeconfig; by default the current one");
  app.add_flag("--dry-run", to.dry_run,
               "Changes nothing: says which Kymas would be released, and whose runtime does not "
               "respond");
  app.add_flag("--keep-runtimes", to.keep_runtimes,
               "Leaves runtimes, certificates, VirtualServices and the gateway's Secret as they "
               "are, for lifecycle-manager to go on with");
  app.add_flag("--force", to.force,
               "Releases Kymas whose runtime can't be cleaned, too; its watcher stays there");
  add(app, "--concurrent", to.concurrent, "", "Runtimes that are worked on at once")
      ->check(CLI::Range(1u, 1024u));
  add_duration(app, "--runtime-timeout", to.runtime_timeout, "How long one runtime may take",
               std::chrono::milliseconds(1));
  add(app, "--skr-manifests", to.skr_manifests, "DIR", "As the manager's");
  add(app, "--lease-namespace", to.lease_namespace, "", "As the manager's");
  add(app, "--lease-name", to.lease_name, "", "As the manager's");
  add(app, "--events-service", to.events_service, "NAME", "As the manager's");
  add(app, "--istio-namespace", to.istio_namespace, "", "As the manager's");
}

void describe_certs(CLI::App& app, certs_settings& to) {
  using role = certs_settings::role;
  const auto describe = [&](const char* name, role made, const char* help) {
    auto& command = *app.add_subcommand(name, help);
    command.callback([&to, made] { to.what = made; });
    add(command, "--dir", to.dir, "", "Where ca.crt and ca.key are, and what is made goes");
    add(command, "--cn", to.common_name, "", "Common name; by default --name");
    add(command, "--days", to.days, "", "Validity in days")->check(CLI::Range(1, 36500));
    add(command, "--key", to.key, "", "Kind of key")
        ->check(CLI::IsMember({"ecdsa", "rsa2048", "rsa4096"}));
    if (made == role::ca) return;
    add(command, "--name", to.name, "", "Makes NAME.crt and NAME.key")->required();
    add(command, "--san", to.sans, "KIND:NAME,...",
        "Alternative names: dns:HOST, ip:ADDRESS, uri:URI");
  };
  app.require_subcommand(1);
  describe("ca", role::ca, "Makes a certificate authority: ca.crt and ca.key");
  describe("server", role::server, "Makes a server certificate");
  describe("client", role::client, "Makes a client certificate");
  describe("webhook", role::webhook, "Makes a certificate for both roles, as an SKR has it");
}

/// Help without the values behind flags that say no, such as `--no-manager{false}`.
class help_formatter final : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    auto name = CLI::Formatter::make_option_name(option, positional);
    constexpr std::string_view value = "{false}";
    for (auto at = name.find(value); at != std::string::npos; at = name.find(value)) {
      name.erase(at, value.size());
    }
    return name;
  }
};

/// Gives every flag a variable: its name, behind RW_ unless the existing system knows the variables
/// of that command. A command that does not run has none, so that it can't be kept from running by
/// a variable of another. Lists take blanks after their commas.
void finish_options(CLI::App& app, const std::string& prefix,
                    const std::vector<std::string>& arguments, bool runs) {
  for (auto* option : app.get_options({})) {
    if (option->get_delimiter() != '\0') option->transform(validator(trim, ""));
    if (!option->nonpositional() || option->get_items_expected_max() == 0) continue;
    auto name = option->get_envname();
    if (name.empty()) {
      name = prefix + option->get_lnames().front();
      std::ranges::transform(name, name.begin(), [](unsigned char c) {
        return c == '-' ? '_' : static_cast<char>(std::toupper(c));
      });
    }
    option->envname(runs ? name : "");
  }
  for (auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const auto& name = command->get_name();
    const bool known = app.get_parent() == nullptr && (name == "webhook" || name == "listen");
    const bool named = std::ranges::find(arguments, name) != arguments.end();
    finish_options(*command, known ? "" : "RW_", arguments, runs && named);
  }
}

/// Finds out which options have their values from the environment.
void note_variables(const CLI::App& app, const std::vector<std::string>& arguments,
                    std::map<std::string, std::string>& variables) {
  for (const auto* option : app.get_options({})) {
    const auto flag = option->get_name();
    const auto gives = [&](const std::string& argument) {
      return argument == flag || argument.starts_with(flag + "=");
    };
    if (option->get_envname().empty() || option->results().empty()) continue;
    if (std::ranges::none_of(arguments, gives)) variables[flag] = option->get_envname();
  }
  for (const auto* command : app.get_subcommands({})) {
    note_variables(*command, arguments, variables);
  }
}

}  // namespace

std::string settings::as_given(std::string message) const {
  constexpr std::string_view in_flags = "abcdefghijklmnopqrstuvwxyz0123456789-";
  for (const auto& [flag, variable] : variables) {
    for (auto at = message.find(flag); at != std::string::npos; at = message.find(flag, at + 1)) {
      const auto end = at + flag.size();
      const bool longer = end < message.size() && in_flags.find(message[end]) != in_flags.npos;
      if (!longer) message.replace(at, flag.size(), variable);
    }
  }
  return message;
}

settings read_settings(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  settings result;
  std::string level = "info";
  CLI::App app(about, "runtime-watcher");
  app.formatter(std::make_shared<help_formatter>());
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", "runtime-watcher " RW_VERSION);
  app.footer("A flag goes before its variable, and that before the default.");
  add(app, "--log-level", level, "", "Least level that is logged")
      ->check(CLI::IsMember({"debug", "info", "warning", "warn", "error"}));

  auto* const run_webhook = app.add_subcommand(
      "webhook", "Runs on a watched cluster: takes AdmissionReviews, sends WatchEvents to KCP");
  describe_webhook(*run_webhook, result.webhook);
  auto* const run_listen = app.add_subcommand(
      "listen", "Runs in KCP: receives WatchEvents and prints each as a line of JSON");
  describe_listen(*run_listen, result.listen);
  auto* const run_manager = app.add_subcommand(
      "manager", "Runs in KCP: keeps Watchers, the webhook on every SKR and certificates in place");
  describe_manager(*run_manager, result.manager);
  auto* const run_dev =
      app.add_subcommand("dev", "Runs the whole system in one process, clusters included");
  describe_dev(*run_dev, result.dev);
  auto* const run_api_server =
      app.add_subcommand("api-server",
                         "Runs an API server in memory that kubectl, controllers and validating "
                         "webhooks (called at their clientConfig.url) can be tried on");
  describe_api_server(*run_api_server, result.api_server);
  auto* const show_status = app.add_subcommand(
      "status", "Asks a manager for all runtimes: their states, why, and since when");
  describe_status(*show_status, result.status);
  auto* const run_uninstall = app.add_subcommand(
      "uninstall",
      "Takes the watcher off all runtimes, and the manager's finalizers and objects out of KCP; "
      "may be interrupted and repeated");
  describe_uninstall(*run_uninstall, result.uninstall);
  auto* const make_certs = app.add_subcommand("certs", "Makes certificates, for tests and trials");
  describe_certs(*make_certs, result.certs);
  auto* const say_version = app.add_subcommand("version", "Prints the version");

  finish_options(app, "", arguments, true);

  try {
    app.parse(argc, argv);
    note_variables(app, arguments, result.variables);
    core::parse_log_level(level, result.log_level);
    if (*say_version) {
      std::cout << "runtime-watcher " RW_VERSION "\n";
    } else if (*run_webhook) {
      check_webhook(*run_webhook, result.webhook);
      for (auto& remark : result.webhook.remarks) remark = result.as_given(remark);
      result.what = command::webhook;
    } else if (*run_listen) {
      check_listen(*run_listen, result.listen);
      result.what = command::listen;
    } else if (*run_manager) {
      check_manager(result.manager);
      result.what = command::manager;
    } else if (*run_dev) {
      check_dev(result.dev);
      result.dev.log_level = result.log_level;
      result.what = command::dev;
    } else if (*run_api_server) {
      result.what = command::api_server;
    } else if (*show_status) {
      result.what = command::status;
    } else if (*run_uninstall) {
      result.what = command::uninstall;
    } else {
      result.what = command::certs;
    }
    return result;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {
      app.exit(e);
      return result;
    }
    note_variables(app, arguments, result.variables);
    throw setting_error(
        result.as_given(e.what() + std::string("\nRun with --help for more information.")));
  } catch (const setting_error& e) {
    throw setting_error(result.as_given(e.what()));
  }
}

}  // namespace rw::cli
