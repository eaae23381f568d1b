#pragma once

#include "core/log.hpp"

#include <string>

namespace rw::dev {

/// Returns a sink for standard error that adds the runtime to each line: many of them share a
/// process.
core::logger::sink name_runtime(const std::string& runtime);

}  // namespace rw::dev
