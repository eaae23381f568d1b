#pragma once

#include "rw/reactors/cli/settings.hpp"

#include <string>

namespace rw::cli {

/// `runtime-watcher explain`: returns what is known of a reason or an alert, or a line for each of
/// them. Throws `std::runtime_error`, with the words that were meant, if it is none.
std::string explanation_text(const explain_settings& settings);

}  // namespace rw::cli
