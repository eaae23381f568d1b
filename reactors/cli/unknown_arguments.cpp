#include "rw/reactors/cli/unknown_arguments.hpp"

#include "rw/reactors/cli/near_names.hpp"
#include "rw/reactors/cli/settings.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace rw::cli {
namespace {

std::vector<std::string> commands_in(const CLI::App& of) {
  std::vector<std::string> out;
  for (const auto* each : of.get_subcommands([](const CLI::App*) { return true; })) {
    out.push_back(each->get_name());
  }
  return out;
}

const CLI::App* find_command(const CLI::App& of, const std::string& name) {
  const auto found =
      of.get_subcommands([&name](const CLI::App* each) { return each->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

/// A command and those that it belongs to, whose flags it takes too.
std::vector<const CLI::App*> command_and_parents(const CLI::App* command) {
  std::vector<const CLI::App*> out;
  for (; command != nullptr; command = command->get_parent()) out.push_back(command);
  return out;
}

const CLI::Option* find_option(const CLI::App& command, const std::string& flag) {
  for (const auto* each : command_and_parents(&command)) {
    if (const auto* const found = each->get_option_no_throw(flag)) return found;
  }
  return nullptr;
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> out;
  for (const auto* each : command_and_parents(&command)) {
    for (const auto* option : each->get_options({})) {
      if (option->get_group().empty()) continue;  // not in the help either
      for (const auto& name : option->get_lnames()) out.push_back("--" + name);
    }
  }
  return out;
}

[[noreturn]] void reject(const std::string& argument, const std::string& given,
                         const std::vector<std::string>& known, const std::string& otherwise) {
  const auto near = near_names(given, known);
  throw setting_error("unknown " + argument +
                      (near.empty() ? otherwise : "; did you mean " + near.front() + "?") +
                      "\nRun with --help for more information.");
}

/// The commands of the programs that a user may take for each other.
constexpr std::pair<std::string_view, std::string_view> commands_of_programs[] = {
    {"runtime-watcher", "webhook"},        {"runtime-watcher", "listen"},
    {"runtime-watcher", "manager"},        {"runtime-watcher", "status"},
    {"runtime-watcher", "diff"},           {"runtime-watcher", "rollout"},
    {"runtime-watcher", "uninstall"},      {"runtime-watcher", "doctor"},
    {"runtime-watcher", "explain"},        {"runtime-watcher", "replay"},
    {"runtime-watcher", "certs"},          {"runtime-watcher-dev", "dev"},
    {"runtime-watcher-dev", "api-server"},
};

/// Returns the program that has a command; empty: none has.
std::string program_with(std::string_view command) {
  const auto* const found = std::ranges::find(
      commands_of_programs, command, &std::pair<std::string_view, std::string_view>::second);
  return found == std::end(commands_of_programs) ? std::string() : std::string(found->first);
}

bool takes_value(const CLI::Option* option) {
  return option != nullptr && option->get_items_expected_min() > 0;
}

bool takes_arguments(const CLI::App& command) {
  const auto all =
      command.get_options([](const CLI::Option* each) { return each->get_positional(); });
  return !all.empty();
}

bool is_flag_without_value(const std::string& argument) {
  return argument.starts_with('-') && argument.find('=') == std::string::npos;
}

}  // namespace

void check_commands(const CLI::App& program, const std::vector<std::string>& arguments) {
  const auto* command = &program;
  std::string path;
  auto begin = arguments.begin();
  for (auto known = commands_in(program); !known.empty(); known = commands_in(*command)) {
    const auto given = std::find_if(begin, arguments.end(),
                                    [](const std::string& each) { return !each.starts_with('-'); });
    if (given == arguments.end()) return;
    // It may be the value of a flag.
    if (given != arguments.begin() && is_flag_without_value(*std::prev(given))) return;
    const auto other = path.empty() ? program_with(*given) : std::string();
    path += (path.empty() ? "" : " ") + *given;
    command = find_command(*command, *given);
    if (command == nullptr && !other.empty()) {
      throw setting_error("unknown command " + path + ": it is one of another program: " + other +
                          " " + path);
    }
    if (command == nullptr) {
      std::string all;
      for (const auto& each : known) all += (all.empty() ? ": there are " : ", ") + each;
      reject("command " + path, *given, known, all);
    }
    begin = std::next(given);
  }
}

void check_flags(const CLI::App& program, const std::vector<std::string>& arguments) {
  const auto* command = &program;
  for (auto at = arguments.begin(); at != arguments.end() && *at != "--"; ++at) {
    if (!at->starts_with("--")) {
      const bool is_short = at->size() == 2 && at->front() == '-';
      if (is_short && find_option(*command, *at) == nullptr) reject("flag " + *at, *at, {}, "");
      if (const auto* const nested = find_command(*command, *at)) command = nested;
      continue;
    }
    const auto equals = at->find('=');
    const auto flag = at->substr(0, equals);
    const auto* const option = find_option(*command, flag);
    if (option == nullptr) reject("flag " + flag, flag, flags_of(*command), "");
    const bool has_next = std::next(at) != arguments.end();
    if (equals == std::string::npos && takes_value(option) && has_next) ++at;
  }
}

void check_values(const CLI::App& program, const std::vector<std::string>& arguments) {
  if (program.get_allow_extras()) return;
  const auto* command = &program;
  for (auto at = arguments.begin(); at != arguments.end() && *at != "--"; ++at) {
    if (const auto* const nested = find_command(*command, *at)) command = nested;
    const auto next = std::next(at);
    const bool is_flag = at->size() > 1 && at->front() == '-';
    if (!is_flag || next == arguments.end() || !takes_value(find_option(*command, *at))) continue;
    if (next->starts_with("--")) {
      throw setting_error(*at + " needs a value, and " + *next +
                          " is a flag; a value that begins with -- is given as " + *at +
                          "=VALUE\nRun with --help for more information.");
    }
    at = next;
  }
}

std::vector<std::string> as_request_for_help(const CLI::App& program,
                                             std::vector<std::string> arguments) {
  if (program.get_allow_extras()) return arguments;
  const std::string flag = "--help";
  const auto* command = &program;
  std::vector<std::string> words;
  bool asked = false;
  for (auto at = arguments.begin(); at != arguments.end() && *at != "--"; ++at) {
    const bool is_flag = at->size() > 1 && at->front() == '-';
    if (is_flag) {
      asked = asked || *at == flag || *at == "-h";
      const auto next = std::next(at);
      // An unknown flag has its value with it.
      if (takes_value(find_option(*command, *at)) && next != arguments.end() && *next != flag) ++at;
    } else if (*at == "help" && !takes_arguments(*command)) {
      asked = true;
    } else if (!commands_in(*command).empty()) {
      words.push_back(*at);
      if (const auto* const nested = find_command(*command, *at)) command = nested;
    }
  }
  if (!asked) return arguments;
  words.push_back(flag);
  return words;
}

}  // namespace rw::cli
