#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/reactors/cli/settings.hpp"
#include "rw/reactors/shared/bootstrapper_sources.hpp"
#include "rw/reactors/watcher_installer/templates.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace rw::cli {

/// On the manager's Lease: the settings that it was acquired with, as JSON.
inline constexpr std::string_view settings_annotation =
    "operator.kyma-project.io/runtime-watcher-settings";

/// Those settings of the manager that other commands depend on; no secrets. The leader
/// writes them to its Lease, so that they are known even if no manager runs.
struct leader_settings {
  bool known = false;  ///< read from the Lease; otherwise the manager's defaults
  std::string unknown_because = {};

  bootstrapper_mode bootstrapper = bootstrapper_mode::off;
  bool gardener_certificates = false;
  bool shadow = false;
  bool rollout_none = false;
  k8s::local_servers local_runtimes = k8s::local_servers::refused;
  std::string state_namespace = runtime_config_settings().direct.state_namespace;
  std::string events_service = manager_settings().events_service;
  std::string field_manager = manager_settings().field_manager;
  std::string former_field_manager = manager_settings().former_field_manager;
  std::string gateway_name = manager_settings().gateway_name;
  std::string gateway_namespace = manager_settings().gateway_namespace;
  std::string istio_namespace = manager_settings().istio_namespace;
  std::string only = {};
  bootstrapper_sources usual = {};  ///< of runtimes without sources of their own
  std::chrono::milliseconds heartbeat_timeout = manager_settings().heartbeat_timeout;
  std::chrono::milliseconds probe_interval = manager_settings().probe_interval;
  /// apiVersion, kind and metadata of what it installs on runtimes, if that is not built in.
  std::vector<boost::json::value> skr_objects = {};

  /// What kubeconfigs of runtimes may say, where a command's own flag says `by_flag`.
  k8s::local_servers local_runtimes_or(k8s::local_servers by_flag) const noexcept {
    return local_runtimes == k8s::local_servers::allowed ? local_runtimes : by_flag;
  }
  bool has_probes() const noexcept;
  bool has_heartbeats() const noexcept { return heartbeat_timeout.count() > 0; }
};

/// Returns the annotation's text. `installed`: what the manager installs on runtimes.
std::string render_leader_settings(const manager_settings& from,
                                   const watcher_installer::templates& installed);

/// Reads the annotation's text; members that are missing or invalid have the defaults. Not `known`
/// if it is no JSON object.
leader_settings parse_leader_settings(std::string_view text);

/// Reads the settings from the Lease. Where that fails, the defaults hold: `unknown_because`.
boost::asio::awaitable<leader_settings> read_leader_settings(k8s::client* kcp, std::string ns,
                                                             std::string name);

}  // namespace rw::cli
