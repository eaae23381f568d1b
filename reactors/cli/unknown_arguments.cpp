#include "rw/reactors/cli/unknown_arguments.hpp"

#include "rw/reactors/cli/near_names.hpp"
#include "rw/reactors/cli/settings.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <string_view>

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
    path += (path.empty() ? "" : " ") + *given;
    command = find_command(*command, *given);
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
      if (const auto* const nested = find_command(*command, *at)) command = nested;
      continue;
    }
    const auto equals = at->find('=');
    const auto flag = at->substr(0, equals);
    const auto* const option = find_option(*command, flag);
    if (option == nullptr) reject("flag " + flag, flag, flags_of(*command), "");
    const bool has_next = std::next(at) != arguments.end();
    if (equals == std::string::npos && option->get_items_expected_min() > 0 && has_next) ++at;
  }
}

}  // namespace rw::cli
