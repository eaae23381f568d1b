#pragma once

#include "reactors/cli/settings.hpp"

namespace rw::cli {

/// `runtime-watcher certs`. Throws `setting_error` where a certificate can't be made.
void make_certificates(const certs_settings& what);

/// The certificates that `dev` works with: ca, webhook (CN `runtime_id`) and gateway, all for
/// localhost. Those that are there already are kept.
void make_dev_certificates(const std::string& dir, const std::string& runtime_id);

}  // namespace rw::cli
