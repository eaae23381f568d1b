#pragma once

#include "rw/reactors/cli/settings.hpp"

#include <string>

namespace rw::cli {

/// `runtime-watcher certs`. Returns a line about each file that is written. Throws `setting_error`
/// if a certificate can't be made.
std::string make_certificates(const certs_settings& settings);

}  // namespace rw::cli
