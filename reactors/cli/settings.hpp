#pragma once

#include "rw/core/config.hpp"
#include "rw/core/log.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/reactors/cli/runtime_config_settings.hpp"
#include "rw/reactors/events/serve.hpp"
#include "rw/reactors/shared/event_json.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rw::cli {

/// An invalid setting. Ends the process with a message that names it, and code 2.
class setting_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Access to KCP's API server, as a client program finds it (k8s::load_config).
struct kcp_access {
  std::string kubeconfig = {};              ///< empty: $KUBECONFIG, the pod's own, ~/.kube/config
  std::string context = {};                 ///< empty: the current one
  std::string as = {};                      ///< user to impersonate; empty: the kubeconfig's
  std::vector<std::string> as_groups = {};  ///< groups to impersonate; empty: the kubeconfig's
  /// Of a manager that is asked in the place of KCP's leader; empty: that is. For the commands that
  /// are printed as next steps.
  std::string manager = {};
};

/// `runtime-watcher webhook`.
struct webhook_settings : webhook::serve_options {
  std::string bind_address = "::";  ///< both families
  std::uint16_t webhook_port = 8443;
  std::uint16_t metrics_port = 2112;
  std::vector<std::string> remarks = {};  ///< invalid settings replaced by a default; to be logged
  /// Of earlier versions, ignored or read as others; to be logged.
  std::vector<std::string> outdated = {};
};

/// Address of the listener, and the clients that it trusts.
struct listening_settings {
  core::host_port address;
  std::string component;
  std::string tls_cert = {};
  std::string tls_key = {};
  std::string client_ca = {};
  std::string trusted_proxies = "127.0.0.0/8,::1";
};

/// `runtime-watcher listen`.
struct listen_settings {
  listening_settings listening = {};
  bool resyncs = false;
  core::host_port metrics_address;  ///< without a host: not served
  std::chrono::milliseconds drain_timeout = std::chrono::seconds(20);
};

/// `runtime-watcher manager`.
struct manager_settings {
  kcp_access kcp;

  listening_settings listening = {.address = {"::", 8082}, .component = "lifecycle-manager"};
  bool pin_san = false;
  std::string pod_ip;  ///< empty: no EndpointSlice routes the Service for events to this replica
  std::string events_service = "runtime-watcher-manager-events";
  std::uint16_t events_port = 8082;  ///< of that Service
  /// 0: no heartbeats are expected.
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(150);
  std::chrono::milliseconds probe_interval = std::chrono::minutes(10);  ///< 0: no probes
  core::host_port metrics_address = {"::", 8080};
  std::string landscape;         ///< label of all metrics; empty: none
  std::string admin_token_file;  ///< empty: `/runtimes` is served to loopback only

  bool leader_elect = true;
  std::string lease_namespace = "kcp-system";
  std::string lease_name = "runtime-watcher-manager";
  std::chrono::milliseconds lease_duration = std::chrono::seconds(15);
  std::chrono::milliseconds renew_deadline = std::chrono::seconds(10);
  std::chrono::milliseconds retry_period = std::chrono::seconds(2);

  std::string gateway_namespace = "kcp-system";
  std::uint16_t kcp_port = 0;  ///< 0: the Gateway's

  bool shadow = false;
  bool take_over = false;  ///< although lifecycle-manager runs
  std::chrono::milliseconds lifecycle_manager_patience = std::chrono::minutes(2);
  std::string only;  ///< a label selector of Kymas; empty: all
  k8s::local_servers local_runtimes = k8s::local_servers::refused;
  std::string field_manager{default_field_manager};
  std::string former_field_manager = "lifecycle-manager";
  std::chrono::milliseconds contest_pause = std::chrono::hours(1);
  std::string istio_namespace = "istio-system";
  std::string gateway_name = "klm-watcher";

  std::string skr_image = "runtime-watcher:latest";
  std::string skr_manifests;  ///< a directory; empty: the built-in ones
  std::vector<std::string> skr_pull_secrets;
  std::string skr_webhook_sources;  ///< empty: those in the manifests
  std::string skr_memory_limit = "200Mi";
  std::string skr_cpu_limit = "0.1";
  bool skr_restart_on_renewal = false;
  std::size_t concurrent = 16;
  std::chrono::milliseconds success_interval = std::chrono::hours(1);

  bool gardener_certificates = false;
  std::string issuer = "klm-watcher-selfsigned";
  std::string issuer_namespace = "istio-system";
  std::vector<std::string> extra_dns_names;
  std::string certificate_key = "ecdsa-p256";
  std::chrono::milliseconds certificate_duration = std::chrono::hours(1440);
  std::chrono::milliseconds certificate_renew_before = std::chrono::hours(720);
  std::chrono::milliseconds ca_grace = std::chrono::hours(96);
  bool ca_time_only = false;
  std::chrono::milliseconds ca_excuse_after = std::chrono::hours(24);
  std::size_t ca_excuse_percent = 5;
  std::chrono::milliseconds ca_gateway_settles = std::chrono::seconds(10);
  std::chrono::milliseconds ca_propagation = std::chrono::seconds(150);
  std::chrono::milliseconds ca_api_server_propagation = std::chrono::seconds(10);
  std::chrono::milliseconds ca_switch_before_expiry = std::chrono::hours(24);
  std::chrono::milliseconds ca_switch_limit{0};  ///< 0: none

  runtime_config_settings runtime_config = {};

  std::chrono::milliseconds drain_timeout = std::chrono::seconds(20);
};

/// `runtime-watcher uninstall`.
struct uninstall_settings {
  kcp_access kcp;
  bool dry_run = false;
  bool keep_runtimes = false;
  bool force = false;
  std::size_t concurrent = 16;
  std::chrono::milliseconds runtime_timeout = std::chrono::seconds(30);
  k8s::local_servers local_runtimes = k8s::local_servers::refused;
  std::string lease_namespace = "kcp-system";
  std::string lease_name = "runtime-watcher-manager";
  std::chrono::milliseconds lease_timeout = std::chrono::minutes(2);
};

/// `runtime-watcher doctor`.
struct doctor_settings {
  bool pre = false;                    ///< before an installation
  std::vector<std::string> manifests;  ///< that `pre` tries; empty: the built-in ones
  kcp_access kcp;
  std::string service_account = "kcp-system:runtime-watcher-manager";  ///< empty: the user's own
  std::vector<std::string> runtimes;                                   ///< Kymas; empty: all
  std::size_t concurrent = 16;
  std::chrono::milliseconds runtime_timeout = std::chrono::seconds(15);
  k8s::local_servers local_runtimes = k8s::local_servers::refused;
  std::optional<core::host_port> manager;
  std::string token_file;
  double tolerate_percent = 0;  ///< of the runtimes may fail
  std::string format = "text";  ///< "text", "json"
  std::string lease_namespace = "kcp-system";
  std::string lease_name = "runtime-watcher-manager";
};

/// `runtime-watcher replay`.
struct replay_settings {
  core::host_port address = {"localhost", 8443};
  std::string path = "/validate/lifecycle-manager";
  std::string ca_cert;      ///< empty: the system's authorities
  std::string server_name;  ///< empty: the host of the address
  std::chrono::milliseconds timeout = std::chrono::seconds(10);
  std::vector<std::string> files;
};

/// `runtime-watcher rollout`.
struct rollout_settings {
  enum class verb : std::uint8_t { status, history, plan, pause, resume, promote, undo };
  verb command = verb::status;
  kcp_access kcp;
  std::string component;  ///< empty: all
  bool watch = true;
  std::chrono::milliseconds timeout{0};  ///< 0: none
  std::chrono::milliseconds interval = std::chrono::seconds(1);
  std::vector<std::string> sources;  ///< "KIND/NAME=RESOURCEVERSION"
  std::string to_revision;           ///< of `undo`, may be shortened; empty: the one before
  bool to_sources = false;           ///< `undo` takes back an earlier one
  std::string format = "text";       ///< of `status` and `history`: "text", "json" or "yaml"
};

/// `runtime-watcher certs`.
struct certs_settings {
  enum class role : std::uint8_t { ca, server, client, webhook };
  role issues = role::ca;
  std::string dir = ".";
  std::string name;
  std::string common_name;
  std::vector<std::string> sans;  ///< "dns:..", "ip:.." or "uri:.."
  unsigned days = 60;
  std::string key = "ecdsa";
};

/// `runtime-watcher explain`.
struct explain_settings {
  std::string word = {};  ///< a reason or an alert; empty: all of them
  std::string format = "text";
};

/// The way to the manager that leads.
struct leader_access {
  std::optional<core::host_port> address;  ///< none: the leader's, through KCP's API server
  std::string token_file;
  kcp_access kcp;
  std::string lease_namespace = "kcp-system";
  std::string lease_name = "runtime-watcher-manager";
};

/// `runtime-watcher diff`.
struct diff_settings : leader_access {
  std::string kyma;
  std::string format = "text";
};

/// `runtime-watcher status`.
struct status_settings : leader_access {
  std::vector<std::string> states;
  std::vector<std::string> heartbeats;
  std::string reason;
  std::string name;
  std::string kyma;  ///< the only one; empty: all
  std::chrono::milliseconds at_least{0};
  std::string format = "table";
  bool no_headers = false;
  bool watch = false;
  std::chrono::milliseconds interval = std::chrono::seconds(2);
};

struct command_line;

// Adds the options of a command, and checks them against each other after parsing: `check_` throws
// `setting_error`.
void describe_webhook(CLI::App& app, webhook_settings& to);
void check_webhook(CLI::App& app, const command_line& line, webhook_settings& of);
void describe_listen(CLI::App& app, listen_settings& to);
void check_listen(CLI::App& app, const listen_settings& of);
void describe_manager(CLI::App& app, manager_settings& to);
void check_manager(const manager_settings& of);
void describe_status(CLI::App& app, status_settings& to);
void describe_diff(CLI::App& app, diff_settings& to);
void check_diff(CLI::App& app, const command_line& line, const diff_settings& of);
/// Of commands that take RUNTIME and --runtime.
void check_runtime(CLI::App& app, const command_line& line);
void describe_uninstall(CLI::App& app, uninstall_settings& to);
void describe_doctor(CLI::App& app, doctor_settings& to);
void describe_replay(CLI::App& app, replay_settings& to);
void describe_rollout(CLI::App& app, rollout_settings& to);
void describe_certs(CLI::App& app, certs_settings& to);
void describe_explain(CLI::App& app, explain_settings& to);

/// The settings of all commands.
struct settings {
  webhook_settings webhook;
  listen_settings listen;
  manager_settings manager;
  status_settings status;
  diff_settings diff;
  uninstall_settings uninstall;
  doctor_settings doctor;
  replay_settings replay;
  rollout_settings rollout;
  certs_settings certs;
  explain_settings explain;
};

}  // namespace rw::cli
