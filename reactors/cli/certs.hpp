#pragma once

#include "rw/reactors/cli/settings.hpp"

namespace rw::cli {

/// `runtime-watcher certs`. Throws `setting_error` if a certificate can't be made.
void make_certificates(const certs_settings& settings);

}  // namespace rw::cli
