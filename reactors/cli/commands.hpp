#pragma once

#include "rw/reactors/cli/command_line.hpp"
#include "rw/reactors/cli/settings.hpp"

#include <vector>

namespace rw::cli {

/// Beginning of `runtime-watcher --help`.
extern const char* const about;

/// Returns the commands of `runtime-watcher`, which parse into `to`, and run with it; `to` outlives
/// them.
std::vector<command> commands_of(settings& to);

}  // namespace rw::cli
