#pragma once

#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/intake/listener.hpp"
#include "rw/tls/reload.hpp"

#include <memory>

namespace rw::cli {

/// Returns a listener's options for its settings. Loads the certificates that these name, and sets
/// `reloader`, which keeps them in step with their files while it runs. Throws `setting_error`;
/// `address_flag` is the flag of the address.
listener::listener_options listening_options(services& with, const listening_settings& from,
                                             std::string_view address_flag,
                                             std::unique_ptr<tls::reloader>& reloader);

}  // namespace rw::cli
