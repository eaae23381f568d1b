#include "reactors/cli/settings.hpp"

#include "reactors/cli/options.hpp"

#include <CLI/CLI.hpp>

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

std::string is_duration(const std::string& text) {
  return core::parse_duration(text) ? "" : "not a duration such as 250ms, 20s or 1h: " + text;
}

}  // namespace

CLI::Option* add_duration(CLI::App* app, const std::string& flag, const std::string& variable,
                          std::chrono::milliseconds& value, const std::string& shown,
                          const std::string& help) {
  auto* option = app->add_option_function<std::string>(
      flag, [&value](const std::string& text) { value = *core::parse_duration(text); }, help);
  option->check(CLI::Validator(is_duration, "", "duration"))
      ->type_name("DURATION")
      ->default_str(shown);
  if (!variable.empty()) option->envname(variable);
  return option;
}

namespace {

/// What the webhook's options are before they are checked together.
struct webhook_texts {
  std::string webhook_port;
  std::string metrics_port;
  std::string kcp_address;
  std::string contract;
};

void describe_webhook(CLI::App& app, webhook_settings& to, webhook_texts& texts) {
  app.add_option("--webhook-port", texts.webhook_port, "Port of the webhook")
      ->envname("WEBHOOK_PORT")
      ->type_name("PORT")
      ->default_str("8443");
  app.add_option("--metrics-port", texts.metrics_port,
                 "Port of /metrics, /healthz, /livez and /readyz (plain HTTP)")
      ->envname("METRICS_PORT")
      ->type_name("PORT")
      ->default_str("2112");
  app.add_option("--bind-address", to.bind_address, "Address that both ports are opened on")
      ->envname("BIND_ADDRESS")
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
  app.add_option("--kcp-addr", texts.kcp_address, "KCP's gateway (required)")
      ->envname("KCP_ADDR")
      ->type_name("HOST:PORT");
  app.add_option("--kcp-contract", texts.contract,
                 "What KCP's listener speaks: v1 or v2 (required)")
      ->envname("KCP_CONTRACT")
      ->type_name("CONTRACT");
  add_duration(&app, "--admission-wait", "ADMISSION_WAIT", to.admission_wait, "250ms",
               "How long an answer waits for room in a full queue; the user's write waits as long");
  add_duration(&app, "--event-max-age", "EVENT_MAX_AGE", to.event_max_age, "1h",
               "How long after its latest change an event is tried to be delivered");
  add_duration(&app, "--shutdown-delay", "SHUTDOWN_DELAY", to.shutdown_delay, "0",
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

/// A port out of the environment that is none must not keep the webhook from starting.
void check_port(const std::string& text, const std::string& setting, std::uint16_t& port,
                std::vector<std::string>& remarks) {
  if (text.empty()) return;
  const auto parsed = core::parse_port(text);
  if (parsed) {
    port = *parsed;
  } else {
    remarks.push_back(setting + " is no port, using " + std::to_string(port) + ": " + text);
  }
}

void check_webhook(webhook_settings& to, const webhook_texts& texts) {
  problems wrong;
  const auto required = [&](const std::string& value, const std::string& variable,
                            const std::string& flag) {
    if (value.empty()) wrong.add(variable + " is required (or the flag " + flag + ")");
    return !value.empty();
  };
  check_port(texts.webhook_port, "WEBHOOK_PORT", to.webhook_port, to.remarks);
  check_port(texts.metrics_port, "METRICS_PORT", to.metrics_port, to.remarks);
  required(to.ca_cert, "CA_CERT", "--ca-cert");
  required(to.tls_cert, "TLS_CERT", "--tls-cert");
  required(to.tls_key, "TLS_KEY", "--tls-key");
  if (required(texts.kcp_address, "KCP_ADDR", "--kcp-addr")) {
    const auto parsed = core::parse_host_port(texts.kcp_address);
    if (parsed && parsed->port != 0) {
      to.kcp = *parsed;
    } else {
      wrong.add("KCP_ADDR must be host:port, not: " + texts.kcp_address);
    }
  }
  if (required(texts.contract, "KCP_CONTRACT", "--kcp-contract") &&
      !parse_contract(texts.contract, to.contract)) {
    wrong.add("KCP_CONTRACT must be v1 or v2, not: " + texts.contract);
  }
  wrong.raise();
}

/// What the listener's options are before they are checked together.
struct listen_texts {
  std::string address;
  std::string metrics_address;
};

void describe_listen(CLI::App& app, listen_settings& to, listen_texts& texts) {
  app.add_option("--address", texts.address, "Where to listen; port 0 picks a free one (required)")
      ->envname("LISTEN_ADDRESS")
      ->type_name("HOST:PORT");
  app.add_option("--component", to.component,
                 "Name in the path of the events: the manager of the Watcher (required)")
      ->envname("COMPONENT")
      ->type_name("NAME");
  app.add_option("--tls-cert", to.tls_cert,
                 "PEM certificate: terminate mutual TLS here (needs --tls-key and --client-ca)")
      ->envname("TLS_CERT")
      ->type_name("FILE");
  app.add_option("--tls-key", to.tls_key, "PEM key of --tls-cert")
      ->envname("TLS_KEY")
      ->type_name("FILE");
  app.add_option("--client-ca", to.client_ca,
                 "PEM bundle that client certificates must chain to, forwarded ones too")
      ->envname("CLIENT_CA")
      ->type_name("FILE");
  app.add_option("--xfcc-trusted-proxies", to.trusted_proxies,
                 "Networks whose X-Forwarded-Client-Cert is believed (without --tls-cert)")
      ->envname("XFCC_TRUSTED_PROXIES")
      ->type_name("CIDR,...")
      ->capture_default_str();
  app.add_option("--metrics-address", texts.metrics_address,
                 "Where to serve /metrics, /healthz, /livez and /readyz; not served by default")
      ->envname("METRICS_ADDRESS")
      ->type_name("HOST:PORT");
  add_duration(&app, "--drain-timeout", "DRAIN_TIMEOUT", to.drain_timeout, "20s",
               "How long after SIGTERM open requests may take");
}

void check_listen(listen_settings& to, const listen_texts& texts) {
  problems wrong;
  if (const auto parsed = core::parse_host_port(texts.address)) {
    to.address = *parsed;
  } else {
    wrong.add("--address is required, as host:port, such as 127.0.0.1:8082");
  }
  if (to.component.empty()) wrong.add("--component is required");
  if (to.tls_cert.empty() != to.tls_key.empty()) {
    wrong.add("--tls-cert and --tls-key go together");
  }
  if (!to.tls_cert.empty() && to.client_ca.empty()) {
    wrong.add("--tls-cert needs --client-ca: without it nobody could be identified");
  }
  if (!texts.metrics_address.empty()) {
    to.metrics_address = core::parse_host_port(texts.metrics_address);
    if (!to.metrics_address) wrong.add("--metrics-address must be host:port");
  }
  wrong.raise();
}

void describe_api_server(CLI::App& app, api_server_settings& to, std::string& address) {
  app.add_option("--address", address, "Where to listen; port 0 picks a free one")
      ->type_name("HOST:PORT")
      ->default_str("127.0.0.1:6443");
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

void check_api_server(api_server_settings& to, const std::string& address) {
  if (address.empty()) return;
  const auto parsed = core::parse_host_port(address);
  if (!parsed) throw setting_error("--address must be host:port, not: " + address);
  to.address = *parsed;
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

/// Every flag has a variable; those without a name of their own are RW_ and the flag's.
void name_variables(CLI::App& app) {
  for (auto* option : app.get_options([](const CLI::Option* one) {
         return one->get_envname().empty() && one->nonpositional() &&
                one->get_items_expected_max() > 0;
       })) {
    auto name = "RW_" + option->get_lnames().front();
    std::ranges::transform(name, name.begin(), [](unsigned char c) {
      return c == '-' ? '_' : static_cast<char>(std::toupper(c));
    });
    option->envname(name);
  }
  for (auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    name_variables(*command);
  }
}

}  // namespace

settings read_settings(int argc, char** argv) {
  settings result;
  webhook_texts webhook;
  listen_texts listen;
  std::string level = "info";
  CLI::App app(about, "runtime-watcher");
  app.formatter(std::make_shared<help_formatter>());
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", "runtime-watcher " RW_VERSION);
  app.footer("A flag goes before its variable, and that before the default.");
  app.add_option("--log-level", level, "Least level that is logged")
      ->envname("LOG_LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();

  auto* const run_webhook = app.add_subcommand(
      "webhook", "Runs on a watched cluster: takes AdmissionReviews, sends WatchEvents to KCP");
  describe_webhook(*run_webhook, result.webhook, webhook);
  auto* const run_listen = app.add_subcommand(
      "listen", "Runs in KCP: receives WatchEvents and prints each as a line of JSON");
  describe_listen(*run_listen, result.listen, listen);
  manager_texts manager;
  auto* const run_manager = app.add_subcommand(
      "manager", "Runs in KCP: keeps Watchers, the webhook on every SKR and certificates in place");
  describe_manager(*run_manager, result.manager, manager);
  dev_texts dev;
  auto* const run_dev =
      app.add_subcommand("dev", "Runs the whole system in one process, clusters included");
  describe_dev(*run_dev, result.dev, dev);
  std::string api_server_address;
  auto* const run_api_server =
      app.add_subcommand("api-server",
                         "Runs an API server in memory that kubectl, controllers and validating "
                         "webhooks (called at their clientConfig.url) can be tried on");
  describe_api_server(*run_api_server, result.api_server, api_server_address);
  auto* const make_certs = app.add_subcommand("certs", "Makes certificates, for tests and trials");
  describe_certs(*make_certs, result.certs);
  auto* const say_version = app.add_subcommand("version", "Prints the version");

  name_variables(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e, std::cout, std::cerr);
    result.exit_code = code == 0 ? 0 : 2;
    return result;
  }
  core::parse_log_level(level, result.log_level);
  if (*say_version) {
    std::cout << "runtime-watcher " RW_VERSION "\n";
  } else if (*run_webhook) {
    check_webhook(result.webhook, webhook);
    result.what = command::webhook;
  } else if (*run_listen) {
    check_listen(result.listen, listen);
    result.what = command::listen;
  } else if (*run_manager) {
    check_manager(result.manager, manager);
    result.what = command::manager;
  } else if (*run_dev) {
    check_dev(result.dev, dev);
    result.dev.log_level = result.log_level;
    result.what = command::dev;
  } else if (*run_api_server) {
    check_api_server(result.api_server, api_server_address);
    result.what = command::api_server;
  } else {
    result.what = command::certs;
  }
  return result;
}

}  // namespace rw::cli
