#pragma once

#include "rw/core/log.hpp"
#include "rw/reactors/cli/app.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rw::cli {

/// The command line and the environment, without the values, which the commands hold.
struct command_line {
  bool runs = false;  ///< false: help, the version or a script was printed
  std::string command = {};
  core::log_level log_level = core::log_level::info;
  /// Flags whose values came from the environment, with the variables.
  std::map<std::string, std::string> variables = {};
  std::string settings = {};  ///< the command's flags that were set, by whichever way, with values
  /// Variables of the command's flags that describe a Service, which are ignored: kubelet sets
  /// NAME_PORT for each Service of a pod's namespace unless `enableServiceLinks` is false.
  std::vector<std::string> service_links = {};
  /// Returns a message about flags, with the names of settings as the user gave them.
  std::string as_given(std::string message) const;
};

/// Returns the environment variable of an option: its flag in capitals after `prefix`, or the name
/// that it has; empty: it has none.
std::string variable_of(const CLI::Option& option, const std::string& prefix);

/// Lets the elements of lists have blanks around them.
void allow_blanks(CLI::App& app);

/// True for the value of a variable that describes a Service (`command_line::service_links`).
bool is_service_link(const std::string& value);

/// Parses arguments, of which `--flag=` sets an empty value: CLI11 alone would take the next
/// argument as the value. Throws `CLI::ParseError`.
void parse(CLI::App& parser, const std::vector<std::string>& arguments);

/// A command of a program, such as `manager`: its options, and the code that runs with them.
struct command {
  std::string name = {};  ///< empty: the program has no other command, and needs no word for it
  std::string help = {};
  /// Adds the options.
  std::function<void(CLI::App&)> describe = {};
  /// Checks the options against each other after parsing; throws `setting_error`.
  std::function<void(CLI::App&, const command_line&)> check = {};
  /// Makes the app that runs until a signal or its end. Null: `act` is the whole command.
  std::function<std::unique_ptr<app>(services&)> make = {};
  std::function<void()> act = {};
  /// Returns what receives log lines; called with the minimum level, which it may raise. Null: they
  /// go to standard error.
  std::function<core::logger::sink(core::log_level&)> log_to = {};
  /// Runs until a signal as a server: its first log line says what starts, with which settings.
  bool serves = false;
  /// Prints a report that log lines would tear apart: only errors are logged unless told otherwise.
  bool reports = false;
  /// Flags of the existing system's program, as its users write them, with the arguments that they
  /// stand for. That program has no commands: one of them as the first argument means this one.
  std::map<std::string, std::string> aliases = {};
  /// What the variables of its flags begin with. Empty for names that the existing system uses.
  std::string variable_prefix = "RW_";
};

/// Reads flags over environment over defaults; prints help and the version. Throws `setting_error`
/// that names the invalid settings, as the user gave them, and all missing ones at once.
command_line parse_command_line(const std::string& program, const std::string& about,
                                const std::vector<command>& commands, int argc, char** argv);

/// Parses, and runs the command on one thread; SIGTERM, SIGINT and, unless it is ignored, SIGHUP
/// end it gracefully, a second signal at once. Returns the exit code: 0, 1 for a failure, 2 for an
/// invalid setting; messages are on standard error.
int run_program(const std::string& program, const std::string& about,
                const std::vector<command>& commands, int argc, char** argv);

}  // namespace rw::cli
