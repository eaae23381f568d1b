#pragma once

#include "core/log.hpp"

#include <string>

namespace rw::dev {

/// A sink for standard error that names the runtime in each line: many of them share a process.
core::logger::sink name_runtime(const std::string& runtime);

}  // namespace rw::dev
