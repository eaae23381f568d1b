#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rw::cli {

/// Throws a `setting_error`, with the command that was meant, if an argument where `program` has
/// commands is none of them.
void check_commands(const CLI::App& program, const std::vector<std::string>& arguments);

/// Throws a `setting_error`, with the flag that was meant, if an argument is a flag that neither
/// its command nor `program` has.
void check_flags(const CLI::App& program, const std::vector<std::string>& arguments);

}  // namespace rw::cli
