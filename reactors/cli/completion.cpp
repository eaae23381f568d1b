#include "rw/reactors/cli/completion.hpp"

#include "rw/reactors/shared/explanations.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <vector>

namespace rw::cli {
namespace {

std::vector<const CLI::App*> commands_in(const CLI::App& of) {
  return of.get_subcommands([](const CLI::App*) { return true; });
}

/// Without those that the help does not show either.
std::vector<const CLI::Option*> options_in(const CLI::App& of) {
  return of.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

std::vector<std::string> flags_in(const CLI::App& of) {
  std::vector<std::string> out;
  for (const auto* option : options_in(of)) {
    for (const auto& name : option->get_lnames()) out.push_back(name);
  }
  return out;
}

/// The values of a command's argument: all reasons and alerts, or the shells; each with a blank
/// behind it.
std::string values_after(const CLI::App& command) {
  std::string out;
  if (command.get_option_no_throw("SHELL") != nullptr) return "bash zsh fish ";
  if (command.get_option_no_throw("REASON") == nullptr) return out;
  for (const auto& group : explanation_groups) {
    for (const auto& each : group.entries) out.append(each.word).append(" ");
  }
  return out;
}

/// The words that may follow a command: its own commands, its arguments, its flags, and those of
/// the program.
std::string words_after(const CLI::App& command, const CLI::App& program) {
  std::string out = values_after(command);
  const auto& commands = command.get_name() == "help" ? program : command;
  for (const auto* nested : commands_in(commands)) out += nested->get_name() + " ";
  for (const auto& flag : flags_in(command)) out += "--" + flag + " ";
  for (const auto* nested : commands_in(command)) {
    for (const auto& flag : flags_in(*nested)) {
      if (out.find("--" + flag + " ") == std::string::npos) out += "--" + flag + " ";
    }
  }
  for (const auto& flag : flags_in(program)) {
    if (out.find("--" + flag + " ") == std::string::npos) out += "--" + flag + " ";
  }
  return out;
}

/// Bash Reference Manual, "Programmable Completion".
std::string for_bash(const CLI::App& of) {
  const auto& program = of.get_name();
  auto function = "_" + program;
  std::ranges::replace(function, '-', '_');
  std::string first;
  for (const auto* command : commands_in(of)) first += command->get_name() + " ";
  for (const auto& flag : flags_in(of)) first += "--" + flag + " ";
  auto out = function + "() {\n  local words\n  case \"${COMP_WORDS[1]}\" in\n";
  for (const auto* command : commands_in(of)) {
    out += "    " + command->get_name() + ") words=\"" + words_after(*command, of) + "\" ;;\n";
  }
  out += "    *) words=\"\" ;;\n  esac\n";
  out += "  if [ \"$COMP_CWORD\" -eq 1 ]; then words=\"" + first + "\"; fi\n";
  out += "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\n";
  return out + "complete -o default -F " + function + " " + program + "\n";
}

std::string quoted_for_fish(std::string text) {
  for (auto at = text.find_first_of("\\'"); at != std::string::npos;
       at = text.find_first_of("\\'", at + 2)) {
    text.insert(at, 1, '\\');
  }
  return "'" + text + "'";
}

/// fish documentation, "complete".
std::string for_fish(const CLI::App& of) {
  std::string out;
  const auto begin = "complete -c " + of.get_name() + " -n ";
  for (const auto* command : commands_in(of)) {
    out += begin + "__fish_use_subcommand -f -a " + command->get_name() + " -d " +
           quoted_for_fish(command->get_description()) + "\n";
    if (const auto values = values_after(*command); !values.empty()) {
      out += begin + quoted_for_fish("__fish_seen_subcommand_from " + command->get_name()) +
             " -f -a " + quoted_for_fish(values) + "\n";
    }
    if (command->get_name() == "help") {
      std::string names;
      for (const auto* each : commands_in(of)) names += each->get_name() + " ";
      out += begin + "'__fish_seen_subcommand_from help' -f -a " + quoted_for_fish(names) + "\n";
    }
    for (const auto* option : options_in(*command)) {
      for (const auto& name : option->get_lnames()) {
        out += begin + quoted_for_fish("__fish_seen_subcommand_from " + command->get_name()) +
               " -l " + name + " -d " + quoted_for_fish(option->get_description()) + "\n";
      }
    }
  }
  return out;
}

}  // namespace

std::string completion_script(const CLI::App& of, const std::string& shell) {
  if (shell == "fish") return for_fish(of);
  const std::string compatible = "autoload -U +X bashcompinit && bashcompinit\n";
  return (shell == "zsh" ? compatible : "") + for_bash(of);
}

}  // namespace rw::cli
