#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rw::cli {

/// Returns the arguments with the words of the command before all flags: "rollout --context c
/// status" is "rollout status --context c". Throws a `setting_error`, with the command that was
/// meant, if an argument where `program` has commands is none of them.
std::vector<std::string> with_commands_first(const CLI::App& program,
                                             std::vector<std::string> arguments);

/// Returns the arguments with the long name of each short flag that has its value behind an equals
/// sign, which CLI11 would take as a part of the value: "-o=name" is "--output=name".
std::vector<std::string> without_short_equals(const CLI::App& program,
                                              std::vector<std::string> arguments);

/// Throws a `setting_error`, with the flag that was meant, if an argument is a flag that neither
/// its command nor `program` has.
void check_flags(const CLI::App& program, const std::vector<std::string>& arguments);

/// Throws a `setting_error` if a flag stands where the value of another one is due, as CLI11 would
/// take it as that value.
void check_values(const CLI::App& program, const std::vector<std::string>& arguments);

/// Where the arguments ask for help, returns the words of the command and --help alone: `help
/// COMMAND`, `COMMAND help` of a command that takes no argument but flags, and --help, also where
/// the value of a flag is due. Otherwise they are returned as they are.
std::vector<std::string> as_request_for_help(const CLI::App& program,
                                             std::vector<std::string> arguments);

}  // namespace rw::cli
