#pragma once

#include "reactors/cli/command_line.hpp"
#include "reactors/cli/settings.hpp"

#include <vector>

namespace rw::cli {

/// What `runtime-watcher --help` begins with.
extern const char* const about;

/// The commands of `runtime-watcher`, which read into `to`, and run with it; `to` outlives them.
std::vector<command> commands_of(settings& to);

}  // namespace rw::cli
