#pragma once

#include "rw/reactors/certificates/certificate_service.hpp"
#include "rw/reactors/cli/settings.hpp"
#include "rw/reactors/gateway_secret/rotation.hpp"
#include "rw/reactors/watcher_controller/watcher_controller.hpp"
#include "rw/reactors/watcher_installer/lifecycle_manager_lease.hpp"
#include "rw/reactors/watcher_installer/watcher_installer.hpp"

#include <chrono>
#include <memory>

namespace rw::cli {

// The options of the manager's reactors, from its settings.

bool has_probes(const manager_settings& settings);
/// Returns --heartbeat-timeout, raised to 2.5 times the interval that the manifests set: one
/// heartbeat may fail.
std::chrono::milliseconds heartbeat_timeout(const manager_settings& settings,
                                            const watcher_installer::templates& installed);
watcher_controller::watcher_controller_options controller_options(const manager_settings& settings);
certificates::service_options certificate_options(const manager_settings& settings);
lifecycle_manager_options lease_options(const manager_settings& settings);
gateway_secret::rotation_options rotation_options(const manager_settings& settings);
/// Throws setting_error if the manifests of --skr-manifests are invalid.
watcher_installer::installer_options installer_options_of(const manager_settings& settings,
                                                          std::shared_ptr<const bool> former_runs);

}  // namespace rw::cli
