#pragma once

#include "rw/reactors/watcher_installer/render.hpp"
#include "rw/reactors/watcher_installer/templates.hpp"

#include <chrono>
#include <string>

namespace rw::cli {

/// Loads the manifests of `--skr-manifests`. Manifests that every runtime would reject end the
/// process at its start: they are rendered once with sample values, and checked as the embedded API
/// server checks objects. Throws setting_error.
watcher_installer::templates load_skr_manifests(const std::string& directory,
                                                const watcher_installer::manifest_settings& with);

/// Returns the HEARTBEAT_INTERVAL that the manifests' Deployment sets, otherwise the webhook's
/// default.
std::chrono::milliseconds heartbeat_interval_of(const watcher_installer::templates& manifests);

}  // namespace rw::cli
