#include "rw/reactors/cli/settings.hpp"

#include "rw/reactors/cli/command_line.hpp"
#include "rw/reactors/cli/exit_codes.hpp"
#include "rw/reactors/cli/help.hpp"
#include "rw/reactors/cli/options.hpp"
#include "rw/reactors/cli/rollout_text.hpp"
#include "rw/reactors/cli/runtimes_view.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <charconv>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace rw::cli {
namespace {

std::vector<std::string> as_strings(std::span<const std::string_view> states) {
  return {states.begin(), states.end()};
}

std::string as_upstream(const std::string& text) {
  const auto parsed = core::parse_host_port(text);
  return parsed && parsed->port != 0 ? "" : "must be host:port, not: " + text;
}

/// An invalid port in the environment must not prevent the webhook's start.
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

/// "1%", "0.5%".
void add_percentage(CLI::App& app, const std::string& flag, double& into, const char* help) {
  const auto read = [](const std::string& text, double& to) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    return error == std::errc() && std::string_view(end, text.data() + text.size()) == "%" &&
           to >= 0 && to <= 100;
  };
  const auto check = [read](const std::string& text) {
    double ignored = 0;
    return read(text, ignored) ? "" : "must be a percentage, such as 1%, not: " + text;
  };
  app.add_option_function<std::string>(
         flag, [read, &into](const std::string& text) { read(text, into); }, help)
      ->check(validator(check, ""))
      ->type_name("PERCENT")
      ->default_str("0%");
}

/// `watch`, which earlier versions had, must not prevent the webhook's start either.
void add_source(CLI::App& app, webhook_settings& to) {
  const auto read = [&to](const std::string& text) {
    to.watches = text != "webhook";
    if (text == "watch") to.outdated.emplace_back("--source watch is read as both");
  };
  const auto known = [](const std::string& text) {
    const bool is = text == "webhook" || text == "both" || text == "watch";
    return is ? std::string() : "must be webhook or both, not: " + text;
  };
  app.add_option_function<std::string>(
         "--source", read,
         "Source of events: webhook (reviews alone) or both (watches of the resources in "
         "--managers-file, checked by reviews, and reviews where no watch is possible)")
      ->check(validator(known, ""))
      ->type_name("{webhook,both}")
      ->default_str("both");
}

/// A setting of an earlier version, which a Deployment still has: it must not prevent the start.
void add_ignored(CLI::App& app, const std::string& flag, const std::string& reason,
                 webhook_settings& to) {
  const auto note = [flag, reason, &to](const std::string&) {
    to.outdated.push_back(flag + " is ignored: " + reason);
  };
  app.add_option_function<std::string>(flag, note)->group("");  // not in the help
}

/// "kcp-system/runtime-1", as the manager's log and `kubectl get -A` name it, is runtime-1.
std::string without_namespace(std::string& name) {
  const auto ns = std::string(kcp_namespace) + "/";
  if (name.starts_with(ns)) name.erase(0, ns.size());
  return "";
}

/// "runtimerollout/watcher", in any of the names that kubectl knows the kind by, is watcher.
std::string without_kind(std::string& name) {
  const auto slash = name.find('/');
  const auto kind = name.substr(0, slash);
  for (const auto* const known : {"runtimerollout", "runtimerollouts", "rro"}) {
    const bool is = kind == known || kind.starts_with(std::string(known) + ".");
    if (is && slash != std::string::npos) name.erase(0, slash + 1);
  }
  return "";
}

/// Access to KCP of commands for people, with kubectl's flags for impersonation.
void add_kcp_access(CLI::App& app, kcp_access& to) {
  add_kubeconfig(app, to);
  add(app, "--as", to.as, "USER",
      "User to impersonate, such as system:serviceaccount:NAMESPACE:NAME, in place of the user "
      "that the kubeconfig impersonates");
  // A group's name may have commas.
  app.add_option("--as-group", to.as_groups,
                 "Group to impersonate; the flag may be given several times")
      ->type_name("GROUP")
      ->allow_extra_args(false);
}

void add_lease_name(CLI::App& app, std::string& ns, std::string& name) {
  add(app, "--lease-namespace", ns, "",
      "Namespace of the manager's leader-election Lease, whose annotation has the manager's other "
      "settings");
  add(app, "--lease-name", name, "", "Name of the manager's leader-election Lease");
}

void add_manager_token(CLI::App& app, std::string& file) {
  add(app, "--token-file", file, "FILE", "File with the token of the manager's --admin-token-file");
}

void add_leader_access(CLI::App& app, leader_access& to) {
  add_kcp_access(app, to.kcp);
  add_host_port(app, "--address", to.address,
                "Address of a manager's metrics and /runtimes; by default the leader is asked "
                "through KCP's API server, and in a pod 127.0.0.1:8080")
      ->each([&to](const std::string& text) { to.kcp.manager = text; });
  add_manager_token(app, to.token_file);
  add_lease_name(app, to.lease_namespace, to.lease_name);
}

}  // namespace

void describe_webhook(CLI::App& app, webhook_settings& to) {
  add_port(app, "--webhook-port", to.webhook_port, to.remarks,
           "Port that serves admission reviews over HTTPS");
  add_port(app, "--metrics-port", to.metrics_port, to.remarks,
           "Port of /metrics, /healthz, /livez and /readyz (plain HTTP)");
  add(app, "--bind-address", to.bind_address, "IP",
      "Address that --webhook-port and --metrics-port are opened on")
      ->check(ip_address());
  add(app, "--ca-cert", to.files.ca, "FILE",
      "PEM bundle that KCP's gateway is checked against (required)");
  add(app, "--tls-cert", to.files.certificate, "FILE",
      "PEM certificate, of the webhook and towards KCP; its common name is the runtime's id "
      "(required)");
  add(app, "--tls-key", to.files.key, "FILE", "PEM key of --tls-cert (required)");
  add(app, "--managers-file", to.managers_file, "FILE",
      "Managers whose reviews are accepted, as the manager writes the file; reloaded when it "
      "changes. Without it every manager is accepted");
  app.add_option_function<std::string>(
         "--kcp-addr", [&to](const std::string& text) { to.kcp = *core::parse_host_port(text); },
         "Address of KCP's gateway, which receives the events (required)")
      ->check(validator(as_upstream, ""))
      ->type_name("HOST:PORT");
  const auto agreed = [](const std::string& text) {
    if (text == "v1") return std::string("v1 is not spoken any more: KCP's listener must take v2");
    return text == "v2" ? std::string() : "must be v2, not: " + text;
  };
  app.add_option("--kcp-contract", "Version of the contract that KCP's listener accepts")
      ->check(validator(agreed, ""))
      ->type_name("{v2}")
      ->default_str("v2");
  add_source(app, to);
  add_duration(app, "--settle", to.settle,
               "Time from a review to its event where no watch is live: the API server stores the "
               "change only after the review");
  add_duration(app, "--confirm-wait", to.confirm_wait,
               "Time from a review until its object is read, unless a watch has shown it by then",
               std::chrono::milliseconds(1));
  app.add_flag("--observe-secrets", to.observe_secrets,
               "Watch Secrets as other resources; by default their events come from reviews alone")
      ->envname("OBSERVE_SECRETS");
  add(app, "--observe-objects", to.observe_objects, "",
      "Maximum number of objects that one Watcher watches, undelivered deletions included, twice "
      "as many during a list; about 200 bytes each. Events of a Watcher with more come from "
      "reviews alone")
      ->check(CLI::Range(1u, 1u << 20));
  add(app, "--kubeconfig", to.kubeconfig, "FILE",
      "Kubeconfig for the API server; by default the pod's service account. Without either, events "
      "come from reviews alone");
  add_duration(
      app, "--heartbeat-interval", to.heartbeat_interval,
      "Time between two heartbeats to KCP, from 1s to 1h, shortened by up to 10 %; 0 sends none");
  add(app, "--pod-name", to.pod_name, "NAME", "Name of the pod, which heartbeats report");
  add_duration(app, "--admission-wait", to.admission_wait,
               "Maximum time that a response waits for room in a full queue; the user's write "
               "waits as long");
  add_duration(app, "--shutdown-delay", to.shutdown_delay,
               "Time after SIGTERM for which reviews are still accepted: an API server that does "
               "not yet know of the pod's end would lose the event with the call");
  add_duration(app, "--drain-timeout", to.drain_timeout,
               "Time limit, after --shutdown-delay, for the delivery of accepted events");
  add(app, "--channel-capacity", to.channel_capacity, "",
      "Maximum number of events between intake and dispatch; about 300 bytes each")
      ->check(CLI::Range(1u, 1u << 20));
  add(app, "--max-review-bytes", to.max_review_bytes, "",
      "Maximum size of an AdmissionReview in bytes; two objects of 1.5 MiB and their frame fit "
      "into the default")
      ->check(CLI::Range(64u << 10, 64u << 20));
  add(app, "--set-capacity", to.set_capacity, "",
      "Maximum number of objects with undelivered events; about 600 bytes each")
      ->check(CLI::Range(1u, 1u << 24));
  add_ignored(app, "--ledger-file", "there is no journal, a restart sends a resync", to);
  add_ignored(app, "--event-max-age", "events do not expire", to);
}

void check_webhook(CLI::App& app, const command_line& line, webhook_settings& of) {
  for (auto& remark : of.remarks) remark = line.as_given(remark);
  for (auto& remark : of.outdated) remark = line.as_given(remark);
  problems wrong;
  check_required(app, {"--ca-cert", "--tls-cert", "--tls-key", "--kcp-addr"}, wrong);
  if (of.admission_wait > std::chrono::seconds(30)) {
    wrong.add("--admission-wait must be 30s at most: no API server waits longer for a response");
  }
  const auto heartbeat = of.heartbeat_interval;
  if (heartbeat > std::chrono::hours(1) ||
      (heartbeat > std::chrono::seconds(0) && heartbeat < std::chrono::seconds(1))) {
    wrong.add("--heartbeat-interval must be 0, or from 1s to 1h");
  }
  wrong.raise();
}

void describe_listen(CLI::App& app, listen_settings& to) {
  add_listening_address(app, "--address", to.listening.address,
                        "Address to listen on for events; port 0 picks a free one (required)")
      ->envname("LISTEN_ADDRESS");
  describe_listening(app, to.listening);
  app.add_flag("--resyncs", to.resyncs,
               "Accept resyncs: a line with \"resync\" asks the reader to reconcile everything of "
               "its runtime")
      ->envname("RESYNCS");
  add_listening_address(
      app, "--metrics-address", to.metrics_address,
      "Address that serves /metrics, /healthz, /livez and /readyz; none by default");
  add_duration(app, "--drain-timeout", to.drain_timeout,
               "Time limit after SIGTERM for open requests, and for writing events");
}

void check_listen(CLI::App& app, const listen_settings& of) {
  problems wrong;
  check_required(app, {"--address", "--component"}, wrong);
  check_listening(of.listening, wrong);
  wrong.raise();
}

void describe_diff(CLI::App& app, diff_settings& to) {
  app.footer(diff_exit_codes);
  add_leader_access(app, to);
  add(app, "--runtime", to.kyma, "KYMA", "Another way to give RUNTIME")
      ->transform(validator(without_namespace, ""));
  app.add_option("RUNTIME", to.kyma, "Name of the Kyma whose runtime is compared")
      ->option_text(std::string(required_text))
      ->transform(validator(without_namespace, ""));
  add(app, "--output,-o", to.format, "",
      "Format of the report; text is a unified diff of YAML, as kubectl diff prints it")
      ->check(CLI::IsMember({"text", "json"}));
}

void check_runtime(CLI::App& app, const command_line& line) {
  const bool both = !app.get_option("RUNTIME")->results().empty() &&
                    !app.get_option("--runtime")->results().empty();
  if (both && !line.variables.contains("--runtime")) {
    throw setting_error("RUNTIME and --runtime are the same: give one of them");
  }
}

void check_diff(CLI::App& app, const command_line& line, const diff_settings& of) {
  check_runtime(app, line);
  if (of.kyma.empty()) throw setting_error("RUNTIME is required (or the flag --runtime)");
}

void describe_status(CLI::App& app, status_settings& to) {
  app.footer(status_exit_codes);
  add_leader_access(app, to);
  add(app, "--state", to.states, "STATE,...", "Show only runtimes in these states")
      ->check(CLI::IsMember(as_strings(runtimes_query::known_states)));
  add(app, "--heartbeat", to.heartbeats, "STATE,...",
      "Show only runtimes whose heartbeats are in these states")
      ->check(CLI::IsMember(as_strings(runtimes_query::known_heartbeats)));
  add(app, "--reason", to.reason, "TEXT", "Show only runtimes whose reason contains this text");
  add(app, "--name", to.name, "TEXT", "Show only runtimes whose Kyma's name contains this text");
  add_duration(app, "--for", to.at_least,
               "Show only runtimes that have been in their state for at least this long");
  add(app, "--output,-o", to.format, "",
      "Format of the report; name prints the names of the Kymas alone")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml", "name"}));
  app.add_flag("--no-headers", to.no_headers, "Print the rows of the table without its headings");
  app.add_option("RUNTIME", to.kyma, "Name of the Kyma whose runtime alone is shown")
      ->transform(validator(without_namespace, ""));
  app.add_flag("--watch,-w", to.watch, "Print the runtimes again after each --interval");
  app.footer(
      "Columns of -o wide: CERTIFICATE-END, when the certificate of the runtime's watcher expires; "
      "CAS, the number of certificate authorities in its CA bundle (2 during a CA rotation); "
      "LAST-HEARTBEAT, the time since the latest heartbeat; PROBE, the stage that the latest probe "
      "of the way to KCP has reached; DELIVERY, the mean time from an event to its delivery to "
      "KCP; "
      "LOSSES, the number of events that the watcher has dropped; VERSION, that of the watcher; "
      "MESSAGE, the reason as a sentence.\n"
      "A flag overrides its variable, which overrides the default.");
  add_duration(app, "--interval", to.interval, "Time between two reports of --watch",
               std::chrono::milliseconds(100));
}

void describe_uninstall(CLI::App& app, uninstall_settings& to) {
  app.footer(uninstall_exit_codes);
  add_kcp_access(app, to.kcp);
  app.add_flag(
      "--dry-run", to.dry_run,
      "Change nothing: print which Kymas would be released, and which runtimes do not respond");
  app.add_flag("--keep-runtimes", to.keep_runtimes,
               "Leave runtimes, certificates, VirtualServices and the gateway's Secret to "
               "lifecycle-manager, which becomes the owner of the webhook "
               "configurations on runtimes");
  app.add_flag("--force", to.force,
               "Release Kymas even if their runtime can't be cleaned; the watcher stays on it");
  add(app, "--concurrent", to.concurrent, "", "Number of runtimes cleaned concurrently")
      ->check(CLI::Range(1u, 1024u));
  add_duration(app, "--runtime-timeout", to.runtime_timeout, "Time limit for one runtime",
               std::chrono::milliseconds(1));
  add_local_runtimes(app, to.local_runtimes);
  add_lease_name(app, to.lease_namespace, to.lease_name);
  add_duration(app, "--lease-timeout", to.lease_timeout,
               "Longest wait for the manager's Lease, which a manager that runs keeps",
               std::chrono::milliseconds(1));
}

void describe_doctor(CLI::App& app, doctor_settings& to) {
  app.footer(doctor_exit_codes);
  add_kcp_access(app, to.kcp);
  auto* const pre = app.add_flag(
      "--pre", to.pre,
      "Check before an installation whether it would succeed with the rights of the kubeconfig's "
      "user; changes nothing. The flags for a manager that runs have no effect then");
  add(app, "--filename,-f", to.manifests, "FILE|DIR,...",
      "With --pre: manifests to be installed, as for kubectl apply; - is standard input, such as "
      "the output of helm template; by default those of deploy/crds and deploy/manager, which are "
      "built in")
      ->needs(pre);
  add(app, "--service-account", to.service_account, "NAMESPACE:NAME",
      "ServiceAccount of the manager, whose rights are checked by impersonation; empty: the rights "
      "of the kubeconfig's user, or of --as, are checked");
  add(app, "--runtime", to.runtimes, "KYMA,...", "Another way to give RUNTIME")
      ->transform(validator(without_namespace, ""));
  app.add_option("RUNTIME", to.runtimes,
                 "Names of the Kymas whose runtimes alone are checked; by default all are, and "
                 "three with --pre")
      ->transform(validator(without_namespace, ""));
  add(app, "--concurrent", to.concurrent, "", "Number of runtimes checked concurrently")
      ->check(CLI::Range(1u, 1024u));
  add_duration(app, "--runtime-timeout", to.runtime_timeout, "Time limit for one runtime",
               std::chrono::milliseconds(1));
  add_local_runtimes(app, to.local_runtimes);
  add_host_port(app, "--manager,--address", to.manager,
                "Address of a manager's metrics and /runtimes; by default the leader is asked "
                "through KCP's API server")
      ->each([&to](const std::string& text) { to.kcp.manager = text; });
  add_manager_token(app, to.token_file);
  add_percentage(app, "--tolerate", to.tolerate_percent,
                 "Percentage of the runtimes that may fail without exit code 3");
  add(app, "--output,-o", to.format, "", "Format of the report on standard output")
      ->check(CLI::IsMember({"text", "json"}));
  add_lease_name(app, to.lease_namespace, to.lease_name);
}

void describe_replay(CLI::App& app, replay_settings& to) {
  add_host_port(app, "--address", to.address, "Address of the webhook")
      ->default_str("localhost:8443");
  add(app, "--path", to.path, "PATH", "Path of the webhook, whose last part names the manager")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.starts_with('/') ? std::string() : "must begin with /, not: " + text;
          },
          ""));
  add(app, "--ca-cert", to.ca_cert, "FILE",
      "PEM bundle that the webhook's certificate is checked against; by default the system's "
      "authorities");
  add(app, "--server-name", to.server_name, "NAME",
      "Name in the webhook's certificate; by default the address's host");
  add_duration(app, "--timeout", to.timeout, "Time limit for one review",
               std::chrono::milliseconds(1));
  app.add_option("FILE", to.files, "Files with AdmissionReviews, such as those of deploy/samples")
      ->required()
      ->check(CLI::ExistingFile);
}

void describe_rollout(CLI::App& app, rollout_settings& to) {
  using verb = rollout_settings::verb;
  const auto describe = [&](const char* name, verb does, const char* help) -> CLI::App& {
    auto& command = *app.add_subcommand(name, help);
    command.callback([&to, does] { to.command = does; });
    add_kcp_access(command, to.kcp);
    command
        .add_option("COMPONENT", to.component,
                    "Name of the RuntimeRollout: bootstrapper or watcher; by default all")
        ->check(CLI::IsMember({"bootstrapper", "watcher"}))
        ->transform(validator(without_kind, ""));
    return command;
  };
  const auto add_format = [&to](CLI::App& command) {
    add(command, "--output,-o", to.format, "",
        "Format of the report; json and yaml have a document for each RuntimeRollout")
        ->check(CLI::IsMember({"text", "json", "yaml"}));
  };
  app.require_subcommand(1);
  auto& status = describe("status", verb::status,
                          "Shows the progress until all runtimes have the content. Exit code 1: it "
                          "is stalled, partial, or not done in time");
  status.add_flag("--watch,-w,!--no-watch", to.watch,
                  "Wait for the end (on by default); otherwise show the progress once");
  add_duration(status, "--timeout", to.timeout, "Time limit of --watch; 0: none");
  add_format(status);
  add(status, "--source", to.sources, "KIND/NAME=RESOURCEVERSION,...",
      "Wait until this version of a source, or a later one, is what is rolled out, such as "
      "ConfigMap/rt-bootstrapper-config=4711")
      ->check(validator(
          [](const std::string& text) {
            return parse_source_version(text) ? std::string()
                                              : "must be KIND/NAME=RESOURCEVERSION, not: " + text;
          },
          ""));
  auto& undo = describe("undo", verb::undo,
                        "Rolls an earlier content out in place of that of the sources, until it is "
                        "taken back by --to-sources");
  undo.get_option("COMPONENT")
      ->description("Name of the RuntimeRollout: bootstrapper or watcher")
      ->required();
  add(undo, "--to-revision", to.to_revision, "REVISION",
      "Revision of the history, which is a digest, or its beginning; by default the last one "
      "before "
      "the present one that was rolled out completely");
  undo.add_flag("--to-sources", to.to_sources, "Roll the content of the sources out again")
      ->excludes("--to-revision");
  add_format(
      describe("history", verb::history, "Shows the last ten roll-outs, with their sources"));
  describe("plan", verb::plan,
           "Shows which step each runtime belongs to: of the content that is rolled out, or of the "
           "next one as if all runtimes responded. SELECTED-BY is the number, share (2 runtimes at "
           "least) or labels of the step, RUNTIMES how many are in it");
  describe("pause", verb::pause, "Pauses: no further runtime gets the content");
  describe("resume", verb::resume,
           "Resumes one that was paused, by hand or by failures, which then count no longer");
  describe("promote", verb::promote,
           "Ends the bake of the present step: the next one begins as soon as all of its runtimes "
           "are ready and it is verified");
}

void describe_explain(CLI::App& app, explain_settings& to) {
  app.add_option("REASON", to.word, "A reason or an alert; without it each is listed in one line");
  add(app, "--output,-o", to.format, "", "Format of the explanation on standard output")
      ->check(CLI::IsMember({"text", "json"}));
}

void describe_certs(CLI::App& app, certs_settings& to) {
  using role = certs_settings::role;
  const auto describe = [&](const char* name, role made, const char* help) {
    auto& command = *app.add_subcommand(name, help);
    command.callback([&to, made] { to.issues = made; });
    add(command, "--dir", to.dir, "", "Directory of ca.crt and ca.key, and of the output");
    add(command, "--cn", to.common_name, "",
        made == role::ca ? "Common name of the certificate; by default runtime-watcher CA"
                         : "Common name of the certificate; by default --name");
    add(command, "--days", to.days, "", "Validity of the certificate in days")
        ->check(CLI::Range(1, 36500));
    add(command, "--key", to.key, "", "Kind of the private key")
        ->check(CLI::IsMember({"ecdsa", "rsa2048", "rsa4096"}));
    if (made == role::ca) return;
    add(command, "--name", to.name, "", "Name of the output files NAME.crt and NAME.key")
        ->required();
    const std::string otherwise = made == role::webhook  ? " (required)"
                                  : made == role::server ? "; by default --name"
                                                         : "";
    add(command, "--san", to.sans, "KIND:NAME,...",
        "Alternative names of the certificate: dns:HOST, ip:ADDRESS, uri:URI" + otherwise);
  };
  app.require_subcommand(1);
  describe("ca", role::ca, "Makes a certificate authority: ca.crt and ca.key");
  describe("server", role::server, "Makes a server certificate");
  describe("client", role::client, "Makes a client certificate");
  describe("webhook", role::webhook, "Makes a certificate for both roles, as an SKR has it");
}

}  // namespace rw::cli
