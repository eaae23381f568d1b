#pragma once

#include "rw/core/log.hpp"
#include "rw/reactors/dev/terminal.hpp"

#include <string>

namespace rw::dev {

/// Returns a sink for the terminal's standard error that adds the runtime to each line: many of
/// them share a process. `on` must outlive it.
core::logger::sink name_runtime(const std::string& runtime, terminal& on);

}  // namespace rw::dev
