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

/// The commands whose flags may follow the words of this one: itself, those that it belongs to, and
/// its own, whose words may come later.
std::vector<const CLI::App*> commands_with_flags(const CLI::App* command) {
  std::vector<const CLI::App*> out;
  for (const auto* each = command; each != nullptr; each = each->get_parent()) out.push_back(each);
  std::vector<const CLI::App*> nested{command};
  while (!nested.empty()) {
    const auto more = nested.back()->get_subcommands([](const CLI::App*) { return true; });
    nested.pop_back();
    nested.insert(nested.end(), more.begin(), more.end());
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

const CLI::Option* find_option(const CLI::App& command, const std::string& flag) {
  for (const auto* each : commands_with_flags(&command)) {
    if (const auto* const found = each->get_option_no_throw(flag)) return found;
  }
  return nullptr;
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> out;
  for (const auto* each : commands_with_flags(&command)) {
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

bool is_flag(const std::string& argument) {
  return argument.size() > 1 && argument.front() == '-';
}

/// Returns which commands beside this one have the flag: ": there is one of status, history".
std::string siblings_with(const CLI::App& command, const std::string& flag) {
  std::string out;
  if (command.get_parent() == nullptr || command.get_parent()->get_parent() == nullptr) return out;
  for (const auto& each : commands_in(*command.get_parent())) {
    if (find_command(*command.get_parent(), each)->get_option_no_throw(flag) == nullptr) continue;
    out += (out.empty() ? ": there is one of " : ", ") + each;
  }
  return out;
}

/// "-o=name" has the name of a short flag, and its value behind an equals sign.
bool is_short_with_equals(const std::string& argument) {
  return argument.size() > 2 && argument[0] == '-' && argument[1] != '-' && argument[2] == '=';
}

std::string list_of(const std::vector<std::string>& known) {
  std::string out;
  for (const auto& each : known) out += (out.empty() ? ": there are " : ", ") + each;
  return out;
}

[[noreturn]] void reject_command(const std::string& path, const std::string& given,
                                 const std::vector<std::string>& known) {
  const auto other = path == given ? program_with(given) : std::string();
  if (!other.empty()) {
    throw setting_error("unknown command " + path + ": it is one of another program: " + other +
                        " " + path);
  }
  reject("command " + path, given, known, list_of(known));
}

}  // namespace

std::vector<std::string> with_commands_first(const CLI::App& program,
                                             std::vector<std::string> arguments) {
  const auto* command = &program;
  std::string path;
  auto words_end = arguments.begin();
  auto known = commands_in(program);
  for (auto at = arguments.begin(); at != arguments.end() && *at != "--" && !known.empty(); ++at) {
    if (is_flag(*at)) {
      const bool has_next = std::next(at) != arguments.end();
      if (has_next && takes_value(find_option(*command, *at))) ++at;
      continue;
    }
    path += (path.empty() ? "" : " ") + *at;
    const auto* const nested = find_command(*command, *at);
    if (nested == nullptr) {
      // It may be the value of an unknown flag.
      const bool follows_flag = at != words_end && is_flag(*std::prev(at)) &&
                                std::prev(at)->find('=') == std::string::npos;
      if (follows_flag && find_option(*command, *std::prev(at)) == nullptr) return arguments;
      reject_command(path, *at, known);
    }
    command = nested;
    known = commands_in(*command);
    std::rotate(words_end++, at, std::next(at));
  }
  const bool needs_command = !known.empty() && command->get_require_subcommand_min() > 0;
  if (needs_command && words_end == arguments.end()) {
    throw setting_error((path.empty() ? "a command is" : path + ": a command is") + " missing" +
                        list_of(known) + "\nRun with --help for more information.");
  }
  return arguments;
}

std::vector<std::string> without_short_equals(const CLI::App& program,
                                              std::vector<std::string> arguments) {
  const auto* command = &program;
  for (auto at = arguments.begin(); at != arguments.end() && *at != "--"; ++at) {
    if (const auto* const nested = find_command(*command, *at)) command = nested;
    if (!is_flag(*at)) continue;
    const auto* const option = find_option(*command, at->substr(0, 2));
    if (option != nullptr && is_short_with_equals(*at) && !option->get_lnames().empty()) {
      *at = "--" + option->get_lnames().front() + at->substr(2);
    } else if (std::next(at) != arguments.end() && takes_value(find_option(*command, *at))) {
      ++at;
    }
  }
  return arguments;
}

void check_flags(const CLI::App& program, const std::vector<std::string>& arguments) {
  const auto* command = &program;
  for (auto at = arguments.begin(); at != arguments.end() && *at != "--"; ++at) {
    if (!at->starts_with("--")) {
      const bool is_short = (at->size() == 2 && is_flag(*at)) || is_short_with_equals(*at);
      const auto flag = at->substr(0, 2);
      if (is_short && find_option(*command, flag) == nullptr) {
        reject("flag " + flag, flag, {}, siblings_with(*command, flag));
      }
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
    if (next == arguments.end() || !is_flag(*at)) continue;
    if (!takes_value(find_option(*command, *at))) continue;
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
    if (is_flag(*at)) {
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
