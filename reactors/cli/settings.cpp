#include "reactors/cli/settings.hpp"

#include "k8s/qualified_name.hpp"
#include "reactors/cli/options.hpp"
#include "reactors/listener/identity.hpp"

#include <CLI/CLI.hpp>
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

/// Blanks around an element of a list are taken away.
std::string trim(std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "must not have empty elements";
  text = text.substr(first, text.find_last_not_of(" \t") - first + 1);
  return "";
}

}  // namespace

CLI::Option* add_duration(CLI::App* app, const std::string& flag, const std::string& variable,
                          std::chrono::milliseconds& value, const std::string& shown,
                          const std::string& help, std::chrono::milliseconds least) {
  auto* option = app->add_option_function<std::string>(
      flag, [&value](const std::string& text) { value = *core::parse_duration(text); }, help);
  const auto is_duration = [least](const std::string& text) -> std::string {
    const auto parsed = core::parse_duration(text);
    if (!parsed) return "not a duration such as 250ms, 20s or 1h: " + text;
    return *parsed < least ? "too short: " + text : "";
  };
  option->check(validator(is_duration, "", "duration"))->type_name("DURATION")->default_str(shown);
  if (!variable.empty()) option->envname(variable);
  return option;
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
  app.add_option("--component", to.component,
                 "Name in the path of the events: the manager of the Watchers")
      ->check(validator(as_component, ""))
      ->type_name("NAME")
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
      ->check(validator(as_networks, ""))
      ->type_name("CIDR,...")
      ->capture_default_str();
}

void check_listening(const listening_settings& of, problems& wrong) {
  if (of.tls_cert.empty() != of.tls_key.empty()) wrong.add("--tls-cert and --tls-key go together");
  if (!of.tls_cert.empty() && of.client_ca.empty()) {
    wrong.add("--tls-cert needs --client-ca: without it nobody could be identified");
  }
}

namespace {

/// A port out of the environment that is none must not keep the webhook from starting.
void add_port(CLI::App& app, const char* flag, const char* variable, std::uint16_t& port,
              std::vector<std::string>& remarks, const char* help) {
  const auto read = [variable, &port, &remarks](const std::string& text) {
    if (const auto parsed = core::parse_port(text)) {
      port = *parsed;
    } else {
      remarks.push_back(variable + (" is no port, using " + std::to_string(port)) + ": " + text);
    }
  };
  app.add_option_function<std::string>(flag, read, help)
      ->envname(variable)
      ->type_name("PORT")
      ->default_str(std::to_string(port));
}

void describe_webhook(CLI::App& app, webhook_settings& to) {
  add_port(app, "--webhook-port", "WEBHOOK_PORT", to.webhook_port, to.remarks,
           "Port of the webhook");
  add_port(app, "--metrics-port", "METRICS_PORT", to.metrics_port, to.remarks,
           "Port of /metrics, /healthz, /livez and /readyz (plain HTTP)");
  app.add_option("--bind-address", to.bind_address, "Address that both ports are opened on")
      ->envname("BIND_ADDRESS")
      ->check(ip_address())
      ->type_name("IP")
      ->capture_default_str();
  app.add_option("--ca-cert", to.ca_cert,
                 "PEM bundle that KCP's gateway is checked against (required)")
      ->envname("CA_CERT")
      ->type_name("FILE");
  app.add_option(
         "--tls-cert", to.tls_cert,
         "PEM certificate, of the webhook and towards KCP; its common name is the runtime's "
         "id (required)")
      ->envname("TLS_CERT")
      ->type_name("FILE");
  app.add_option("--tls-key", to.tls_key, "PEM key of --tls-cert (required)")
      ->envname("TLS_KEY")
      ->type_name("FILE");
  app.add_option("--managers-file", to.managers_file,
                 "Managers that reviews are taken for, as the manager writes it; reloaded when it "
                 "changes. Without it every manager is taken")
      ->envname("MANAGERS_FILE")
      ->type_name("FILE");
  app.add_option_function<std::string>(
         "--kcp-addr", [&to](const std::string& text) { to.kcp = *core::parse_host_port(text); },
         "KCP's gateway (required)")
      ->envname("KCP_ADDR")
      ->check(validator(as_upstream, ""))
      ->type_name("HOST:PORT");
  app.add_option_function<std::string>(
         "--kcp-contract", [&to](const std::string& text) { parse_contract(text, to.contract); },
         "What KCP's listener speaks: v1 or v2 (required)")
      ->envname("KCP_CONTRACT")
      ->check(CLI::IsMember({"v1", "v2"}))
      ->type_name("CONTRACT");
  add_duration(&app, "--admission-wait", "ADMISSION_WAIT", to.admission_wait, "250ms",
               "How long an answer waits for room in a full queue; the user's write waits as long");
  add_duration(&app, "--event-max-age", "EVENT_MAX_AGE", to.event_max_age, "1h",
               "How long after its latest change an event is tried to be delivered",
               std::chrono::milliseconds(1));
  add_duration(&app, "--shutdown-delay", "SHUTDOWN_DELAY", to.shutdown_delay, "5s",
               "How long after SIGTERM reviews are still taken: API servers may not know yet that "
               "this pod is going, and would lose the event with the call");
  add_duration(&app, "--drain-timeout", "DRAIN_TIMEOUT", to.drain_timeout, "20s",
               "How long after that accepted events may take to be delivered");
  app.add_option("--channel-capacity", to.channel_capacity,
                 "Events between intake and dispatch; about 300 bytes each")
      ->envname("CHANNEL_CAPACITY")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  app.add_option(
         "--max-review-bytes", to.max_review_bytes,
         "Largest AdmissionReview that is taken; two objects of 1.5 MiB and their frame fit")
      ->envname("MAX_REVIEW_BYTES")
      ->check(CLI::Range(64u << 10, 64u << 20))
      ->capture_default_str();
  app.add_option("--set-capacity", to.set_capacity,
                 "Objects with undelivered events; about 600 bytes each")
      ->envname("SET_CAPACITY")
      ->check(CLI::Range(1u, 1u << 24))
      ->capture_default_str();
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
  for (const auto& [flag, variable] : {std::pair("--component", "COMPONENT"),
                                       {"--tls-cert", "TLS_CERT"},
                                       {"--tls-key", "TLS_KEY"},
                                       {"--client-ca", "CLIENT_CA"},
                                       {"--xfcc-trusted-proxies", "XFCC_TRUSTED_PROXIES"}}) {
    app.get_option(flag)->envname(variable);
  }
  add_listening_address(
      app, "--metrics-address", to.metrics_address,
      "Where to serve /metrics, /healthz, /livez and /readyz; not served by default")
      ->envname("METRICS_ADDRESS");
  add_duration(&app, "--drain-timeout", "DRAIN_TIMEOUT", to.drain_timeout, "20s",
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
  app.add_option("--dir", to.dir, "Where a kubeconfig for each cluster is written, and ca.crt")
      ->capture_default_str();
  app.add_option("--cluster", to.clusters,
                 "Names of the clusters, each an API server of its own below /clusters/NAME")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--host-name", to.host_names, "Names in the server's certificate")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--history", to.history, "Changes of a cluster that a watch may resume from")
      ->check(CLI::Range(1u, 1u << 24))
      ->capture_default_str();
}

void describe_certs(CLI::App& app, certs_settings& to) {
  const auto describe = [&to](CLI::App* one, certs_settings::role role) {
    one->callback([&to, role] { to.what = role; });
    one->add_option("--dir", to.dir, "Where ca.crt and ca.key are, and what is made goes")
        ->capture_default_str();
    one->add_option("--cn", to.common_name, "Common name; by default --name");
    one->add_option("--days", to.days, "Validity in days")
        ->check(CLI::Range(1, 36500))
        ->capture_default_str();
    one->add_option("--key", to.key, "Kind of key")
        ->check(CLI::IsMember({"ecdsa", "rsa2048", "rsa4096"}))
        ->capture_default_str();
    if (role == certs_settings::role::ca) return;
    one->add_option("--name", to.name, "Makes NAME.crt and NAME.key")->required();
    one->add_option("--san", to.sans, "Alternative names: dns:HOST, ip:ADDRESS, uri:URI")
        ->delimiter(',')
        ->type_name("KIND:NAME,...");
  };
  app.require_subcommand(1);
  using role = certs_settings::role;
  describe(app.add_subcommand("ca", "Makes a certificate authority: ca.crt and ca.key"), role::ca);
  describe(app.add_subcommand("server", "Makes a server certificate"), role::server);
  describe(app.add_subcommand("client", "Makes a client certificate"), role::client);
  describe(app.add_subcommand("webhook", "Makes a certificate for both roles, as an SKR has it"),
           role::webhook);
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

/// Gives every flag a variable; those without a name of their own are RW_ and the flag's. A command
/// that does not run has none, so that it can't be kept from running by a variable of another.
/// Lists take blanks after their commas.
void finish_options(CLI::App& app, const std::vector<std::string>& arguments, bool runs) {
  for (auto* option : app.get_options({})) {
    if (option->get_delimiter() != '\0') option->transform(validator(trim, ""));
    if (!option->nonpositional() || option->get_items_expected_max() == 0) continue;
    auto name = option->get_envname();
    if (name.empty()) {
      name = "RW_" + option->get_lnames().front();
      std::ranges::transform(name, name.begin(), [](unsigned char c) {
        return c == '-' ? '_' : static_cast<char>(std::toupper(c));
      });
    }
    option->envname(runs ? name : "");
  }
  for (auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    finish_options(*command, arguments,
                   runs && std::ranges::find(arguments, command->get_name()) != arguments.end());
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
  app.add_option("--log-level", level, "Least level that is logged")
      ->envname("LOG_LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warning", "warn", "error"}))
      ->capture_default_str();

  auto* const run_webhook = app.add_subcommand(
      "webhook", "Runs on a watched cluster: takes AdmissionReviews, sends WatchEvents to KCP");
  describe_webhook(*run_webhook, result.webhook);
  auto* const run_listen = app.add_subcommand(
      "listen", "Runs in KCP: receives WatchEvents and prints each as a line of JSON");
  describe_listen(*run_listen, result.listen);
  auto* const run_manager = app.add_subcommand(
      "manager", "Runs in KCP: keeps Watchers, the webhook on every SKR and certificates in place");
  describe_manager(*run_manager, result.manager);
  dev_texts dev;
  auto* const run_dev =
      app.add_subcommand("dev", "Runs the whole system in one process, clusters included");
  describe_dev(*run_dev, result.dev, dev);
  auto* const run_api_server =
      app.add_subcommand("api-server",
                         "Runs an API server in memory that kubectl, controllers and validating "
                         "webhooks (called at their clientConfig.url) can be tried on");
  describe_api_server(*run_api_server, result.api_server);
  auto* const make_certs = app.add_subcommand("certs", "Makes certificates, for tests and trials");
  describe_certs(*make_certs, result.certs);
  auto* const say_version = app.add_subcommand("version", "Prints the version");

  finish_options(app, arguments, true);

  try {
    app.parse(argc, argv);
    note_variables(app, arguments, result.variables);
    core::parse_log_level(level, result.log_level);
    if (*say_version) {
      std::cout << "runtime-watcher " RW_VERSION "\n";
    } else if (*run_webhook) {
      check_webhook(*run_webhook, result.webhook);
      result.what = command::webhook;
    } else if (*run_listen) {
      check_listen(*run_listen, result.listen);
      result.what = command::listen;
    } else if (*run_manager) {
      check_manager(result.manager);
      result.what = command::manager;
    } else if (*run_dev) {
      check_dev(result.dev, dev);
      result.dev.log_level = result.log_level;
      result.what = command::dev;
    } else if (*run_api_server) {
      result.what = command::api_server;
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
