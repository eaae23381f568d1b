#pragma once

#include "rw/reactors/cli/commands.hpp"

#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

// Command lines of runtime-watcher, and what comes of them.

namespace rw::test::command_lines {

/// Variables that are set for the length of a test.
class environment {
 public:
  environment(std::initializer_list<std::pair<const char*, const char*>> variables) {
    for (const auto& [name, value] : variables) {
      ::setenv(name, value, 1);
      names_.emplace_back(name);
    }
  }
  ~environment() {
    for (const auto& name : names_) ::unsetenv(name.c_str());
  }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;

 private:
  std::vector<std::string> names_;
};

inline cli::command_line parse(std::vector<std::string> arguments,
                               const std::vector<cli::command>& commands) {
  arguments.insert(arguments.begin(), "program");
  std::vector<char*> pointers;
  for (auto& one : arguments) pointers.push_back(one.data());
  return cli::parse_command_line("program", "", commands, static_cast<int>(pointers.size()),
                                 pointers.data());
}

struct given : cli::settings {
  core::log_level log_level = {};
};

inline given read(std::vector<std::string> arguments) {
  given result;
  result.log_level = parse(std::move(arguments), cli::commands_of(result)).log_level;
  return result;
}

/// Returns the error of settings that are rejected; empty if they are accepted.
inline std::string refusal(std::vector<std::string> arguments) {
  try {
    read(std::move(arguments));
    return {};
  } catch (const cli::setting_error& e) {
    return e.what();
  }
}

/// Returns what is written to standard output.
inline std::string printed(std::vector<std::string> arguments) {
  const std::ostringstream out;
  auto* const before = std::cout.rdbuf(out.rdbuf());
  read(std::move(arguments));
  std::cout.rdbuf(before);
  return out.str();
}

inline std::vector<std::string> with(std::vector<std::string> base,
                                     std::initializer_list<std::string> more) {
  base.insert(base.end(), more);
  return base;
}

inline bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace rw::test::command_lines
