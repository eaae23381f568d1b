#pragma once

#include "reactors/watcher_installer/render.hpp"
#include "reactors/watcher_installer/templates.hpp"

#include <string>

namespace rw::cli {

/// The manifests of `--skr-manifests`. What would make every runtime refuse them ends the process
/// at its start: they are filled in once with sample values, and checked as an API server checks
/// them, as far as the embedded one does. Throws setting_error.
watcher_installer::templates load_skr_manifests(const std::string& directory,
                                                const watcher_installer::settings& with);

}  // namespace rw::cli
