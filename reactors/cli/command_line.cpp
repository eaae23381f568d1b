#include "rw/reactors/cli/command_line.hpp"

#include "rw/core/config.hpp"
#include "rw/core/resolver.hpp"
#include "rw/reactors/cli/completion.hpp"
#include "rw/reactors/cli/help.hpp"
#include "rw/reactors/cli/options.hpp"
#include "rw/reactors/cli/output.hpp"
#include "rw/reactors/cli/unknown_arguments.hpp"
#include "rw/reactors/cli/version.hpp"
#include "rw/tls/key_memory.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <iterator>
#include <optional>
#include <poll.h>
#include <string_view>
#include <sys/resource.h>
#include <sysexits.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

/// A connection to each runtime needs one. Where container runtimes leave it to the process, it may
/// open 1,024 at first and 524,288 if it asks (systemd's defaults, DefaultLimitNOFILE in
/// systemd-system.conf).
void allow_all_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Removes blanks around an element of a list.
std::string trim(std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "must not have empty elements";
  text = text.substr(first, text.find_last_not_of(" \t") - first + 1);
  return "";
}

/// Gives every flag an environment variable: its name after `prefix`. A command that does not run
/// has none, so that a variable of another command can't prevent its start; neither has a flag
/// whose variable is one of a Service, which is added to `links`.
void finish_options(CLI::App& app, const std::string& prefix,
                    const std::vector<std::string>& arguments, bool runs,
                    std::vector<std::string>& links) {
  allow_blanks(app);
  for (auto* option : app.get_options({})) {
    const auto name = variable_of(*option, prefix);
    if (name.empty()) continue;
    const auto* const value = runs ? std::getenv(name.c_str()) : nullptr;
    const bool linked = value != nullptr && is_service_link(value);
    if (linked) links.push_back(name);
    option->envname(runs && !linked ? name : "");
  }
  for (auto* nested : app.get_subcommands([](const CLI::App*) { return true; })) {
    const bool named = std::ranges::find(arguments, nested->get_name()) != arguments.end();
    finish_options(*nested, prefix, arguments, runs && named, links);
  }
}

/// Returns the name and the value of a flag of Go's package flag: "-name", "--name" or "-name=BOOL"
/// (pkg.go.dev/flag, Command line flag syntax); nothing if it is none, or no value of a boolean.
std::optional<std::pair<std::string, bool>> read_go_flag(std::string_view text) {
  if (!text.starts_with('-')) return std::nullopt;
  text.remove_prefix(text.starts_with("--") ? 2 : 1);
  const auto equals = text.find('=');
  const std::string name(text.substr(0, equals));
  if (equals == std::string_view::npos) return std::pair(name, true);
  const auto value = text.substr(equals + 1);
  for (const auto each : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (value == each) return std::pair(name, true);
  }
  for (const auto each : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (value == each) return std::pair(name, false);
  }
  return std::nullopt;
}

/// Replaces the aliases of the commands, see `command::aliases`.
std::vector<std::string> without_aliases(std::vector<std::string> arguments,
                                         const std::vector<command>& commands) {
  for (const auto& command : commands) {
    const auto flag_of = [&command](const std::string& argument) {
      auto flag = read_go_flag(argument);
      return flag && command.aliases.contains(flag->first) ? flag : std::nullopt;
    };
    if (arguments.empty()) break;
    if (flag_of(arguments.front())) arguments.insert(arguments.begin(), command.name);
    if (arguments.front() != command.name) continue;
    std::vector<std::string> replaced;
    for (auto& each : arguments) {
      const auto flag = flag_of(each);
      if (!flag) {
        replaced.push_back(std::move(each));
      } else if (flag->second) {
        replaced.push_back(command.aliases.at(flag->first));
      }
    }
    arguments = std::move(replaced);
  }
  return arguments;
}

/// The commands that every program has: `version`, `help` and `completion`.
class further_words {
 public:
  void add_to(CLI::App& parser, const std::string& program) {
    version_ = parser.add_subcommand("version",
                                     "Prints the version, the commit of the sources and its time");
    version_->add_option("--output,-o", format_, "Format of the version; a line of text by default")
        ->check(CLI::IsMember({"json", "yaml"}));
    parser.add_subcommand("help", "Prints the help of a command: help COMMAND [SUBCOMMAND]")
        ->callback([] { throw CLI::CallForHelp(); });
    completion_ = parser.add_subcommand(
        "completion", "Prints a script for the completion of commands and flags: source <(" +
                          program + " completion bash)");
    completion_->add_option("SHELL", shell_, "Shell to complete in: bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  }

  /// Prints the version or a script; returns false if neither was asked for.
  bool print(const CLI::App& parser) const {
    if (*completion_) std::cout << completion_script(parser, shell_);
    if (*version_) {
      std::cout << (format_.empty() ? version_line(parser.get_name()) + "\n"
                                    : version_document(format_ == "yaml"));
    }
    return *completion_ || *version_;
  }

 private:
  CLI::App* version_ = nullptr;
  std::string format_;
  CLI::App* completion_ = nullptr;
  std::string shell_;
};

/// Returns the long flag, which CLI11 does not name where the help does not show the option.
std::string flag_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name() : "--" + option.get_lnames().front();
}

/// Records the options whose values come from the environment.
void note_variables(const CLI::App& app, const std::vector<std::string>& arguments,
                    std::map<std::string, std::string>& variables) {
  for (const auto* option : app.get_options({})) {
    const auto flag = flag_of(*option);
    const auto gives = [&](const std::string& argument) {
      const auto is_short = [&](const std::string& name) {
        return argument.starts_with("-" + name);
      };
      const auto is_long = [&](const std::string& name) {
        return argument == "--" + name || argument.starts_with("--" + name + "=");
      };
      return std::ranges::any_of(option->get_lnames(), is_long) ||
             (!argument.starts_with("--") && std::ranges::any_of(option->get_snames(), is_short));
    };
    if (option->get_envname().empty() || option->results().empty()) continue;
    if (std::ranges::none_of(arguments, gives)) variables[flag] = option->get_envname();
  }
  for (const auto* command : app.get_subcommands({})) {
    note_variables(*command, arguments, variables);
  }
}

/// CLI11 from 2.2 on leaves out a variable whose value a validator refuses, without a word. Here it
/// is refused as the flag's is.
void refuse_ignored_variables(CLI::App& app) {
  for (auto* option : app.get_options([](const CLI::Option*) { return true; })) {
    const auto name = option->get_envname();
    const auto* const value = name.empty() ? nullptr : std::getenv(name.c_str());
    if (value == nullptr || *value == '\0' || option->count() != 0) continue;
    option->add_result(value);
    option->run_callback();
  }
  for (auto* command : app.get_subcommands()) refuse_ignored_variables(*command);
}

/// Returns the flags that differ from their defaults, with their values: "--a=1 --b=x,y".
std::string settings_text(const CLI::App& app) {
  std::string out;
  for (const auto* option : app.get_options({})) {
    if (option->results().empty()) continue;
    out += (out.empty() ? "" : " ") + flag_of(*option) + "=";
    const auto* separator = "";
    for (const auto& each : option->results()) out += std::exchange(separator, ",") + each;
  }
  return out;
}

/// True where the parent had it ignored, as nohup does.
bool is_ignored(int number) {
  struct ::sigaction current = {};
  return ::sigaction(number, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
}

/// SIGTERM, SIGINT and SIGHUP end the app gracefully, a second signal at once.
void stop_on_signal(asio::signal_set& signals, app& running) {
  signals.async_wait([&signals, &running](boost::system::error_code error, int) {
    if (error) return;
    running.stop();
    signals.async_wait([](boost::system::error_code again, int number) {
      if (!again) std::_Exit(128 + number);
    });
  });
}

/// Prints why the process ends, and returns its exit code.
int report(const std::string& program, const std::exception_ptr& failure,
           const command_line& line) {
  try {
    std::rethrow_exception(failure);
  } catch (const setting_error& e) {
    std::cerr << program << ": " << line.as_given(e.what()) << '\n';
    return 2;
  } catch (const std::exception& e) {
    std::cerr << program << ": " << e.what() << '\n';
    return 1;
  }
}

services services_of(const command& chosen, core::log_level least, asio::io_context& context) {
  if (!chosen.log_to) return {context.get_executor(), least};
  auto sink = chosen.log_to(least);
  return {context.get_executor(), least, std::move(sink)};
}

/// Returns `code`, or that of an input/output error where standard output did not take all that was
/// printed (sysexits.h, EX_IOERR): a report that nobody has is none.
int after_output(const std::string& program, int code) {
  errno = 0;
  std::cout.flush();
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
  // The first write that failed may be long ago: whether the reader has gone, the pipe still says.
  pollfd asked{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&asked, 1, 0) > 0 && (asked.revents & POLLERR) != 0) return code;
  const int error = output::error() != 0 ? output::error() : (lost ? errno : 0);
  if (error == EPIPE || (!lost && error == 0)) return code;
  if (code == 0 || code == 3) {
    std::cerr << program << ": cannot write to standard output: "
              << std::generic_category().message(error != 0 ? error : EIO) << '\n';
  }
  return EX_IOERR;
}

int run(const std::string& program, const command& chosen, const command_line& line) {
  std::signal(SIGPIPE, SIG_IGN);
  if (chosen.serves) allow_all_descriptors();
  asio::io_context context(1);
  auto with = services_of(chosen, line.log_level, context);
  if (chosen.serves) {
    with.log.info("starting", {{"command", chosen.name},
                               {"version", RW_VERSION},
                               {"revision", source_revision},
                               {"settings", line.settings}});
  }
  for (const auto& variable : line.service_links) {
    with.log.warning("variable of a Service ignored",
                     {{"variable", variable},
                      {"next_step", "set enableServiceLinks: false in the pod's specification"}});
  }
  const auto running = chosen.make(with);
  asio::signal_set signals(context, SIGTERM, SIGINT);
  if (!is_ignored(SIGHUP)) signals.add(SIGHUP);
  stop_on_signal(signals, *running);
  std::optional<int> code;
  std::exception_ptr failure;
  asio::co_spawn(context, running->run(), [&](std::exception_ptr thrown, int result) {
    failure = thrown;
    code = result;
    signals.cancel();
  });
  while (!code) context.run_one();
  if (failure) code = report(program, failure, line);
  code = after_output(program, *code);
  // A name look-up can't be interrupted, and would delay the exit.
  context.run_for(std::chrono::milliseconds(100));
  if (!context.stopped() || core::resolver::of(context.get_executor()).busy()) {
    std::fflush(nullptr);
    std::_Exit(*code);
  }
  return *code;
}

}  // namespace

std::string command_line::as_given(std::string message) const {
  constexpr std::string_view in_flags = "abcdefghijklmnopqrstuvwxyz0123456789-";
  for (const auto& [flag, variable] : variables) {
    for (auto at = message.find(flag); at != std::string::npos; at = message.find(flag, at + 1)) {
      const auto end = at + flag.size();
      const bool longer = end < message.size() && in_flags.find(message[end]) != in_flags.npos;
      if (!longer) message.replace(at, flag.size(), variable);
    }
  }
  return message;
}

std::string variable_of(const CLI::Option& option, const std::string& prefix) {
  auto name = option.get_envname();
  // A flag without a value has a variable only where it was given one.
  const bool is_flag = option.get_items_expected_max() == 0;
  if (!option.nonpositional() || is_flag || !name.empty()) {
    return option.nonpositional() ? name : std::string();
  }
  name = prefix + option.get_lnames().front();
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return name;
}

void allow_blanks(CLI::App& app) {
  for (auto* option : app.get_options({})) {
    if (option->get_delimiter() != '\0') option->transform(validator(trim, ""));
  }
}

/// "tcp://10.0.0.11:6379", as kubelet writes the variable NAME_PORT of a Service
/// (kubernetes.io/docs/concepts/services-networking/service, Environment variables).
bool is_service_link(const std::string& value) {
  for (const std::string_view scheme : {"tcp://", "udp://", "sctp://"}) {
    if (!value.starts_with(scheme)) continue;
    const auto parsed = core::parse_host_port(value.substr(scheme.size()));
    return parsed && parsed->port != 0;
  }
  return false;
}

void parse(CLI::App& parser, const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (const auto& each : arguments) {
    const bool empty_value = each.starts_with("--") && each.find('=') == each.size() - 1;
    out.push_back(empty_value ? each.substr(0, each.size() - 1) : each);
    if (empty_value) out.emplace_back();
  }
  std::ranges::reverse(out);  // as CLI11 takes them
  parser.parse(std::move(out));
}

command_line parse_command_line(const std::string& program, const std::string& about,
                                const std::vector<command>& commands, int argc, char** argv) {
  command_line result;
  std::string level = "info";
  CLI::App parser(about, program);
  parser.formatter(make_help_formatter(help_columns()));
  const bool single = commands.size() == 1 && commands.front().name.empty();
  if (!single) parser.require_subcommand(1);
  parser.fallthrough();
  parser.set_version_flag("--version", version_line(program));
  parser.footer("A flag overrides its variable, which overrides the default.");
  auto* const log_level = add(parser, "--log-level", level, "",
                              "Least level that is logged; commands that print a report log errors "
                              "alone by default");
  log_level->check(CLI::IsMember({"debug", "info", "warning", "warn", "error"}));
  auto arguments = without_aliases(std::vector<std::string>(argv + 1, argv + argc), commands);
  if (!single) finish_options(parser, "", arguments, true, result.service_links);
  for (const auto& command : commands) {
    command.describe(single ? parser : *parser.add_subcommand(command.name, command.help));
  }
  // A program that accepts any argument, for its callers' sake, has no further words.
  CLI::App none;
  further_words words;
  words.add_to(parser.get_allow_extras() ? none : parser, program);
  arguments = as_request_for_help(parser, std::move(arguments));
  try {
    if (!single) arguments = with_commands_first(parser, std::move(arguments));
    if (!parser.get_allow_extras()) {
      arguments = without_short_equals(parser, std::move(arguments));
    }
    for (const auto& command : commands) {
      auto& described = single ? parser : *parser.get_subcommand(command.name);
      const bool runs = single || (!arguments.empty() && arguments.front() == command.name);
      finish_options(described, command.variable_prefix, arguments, runs, result.service_links);
    }
    check_values(parser, arguments);
    try {
      parse(parser, arguments);
    } catch (const CLI::RequiredError&) {
      refuse_ignored_variables(parser);  // it may be why the flag has no value
      throw;
    }
    refuse_ignored_variables(parser);
    note_variables(parser, arguments, result.variables);
    core::parse_log_level(level, result.log_level);
    const bool printed = words.print(parser);
    for (const auto& command : commands) {
      auto* const parsed = single ? &parser : parser.get_subcommand(command.name);
      if (!*parsed || printed) continue;
      if (command.check) command.check(*parsed, result);
      result.runs = true;
      if (command.reports && log_level->results().empty())
        result.log_level = core::log_level::error;
      result.command = command.name;
      result.settings = settings_text(*parsed);
    }
    return result;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {
      parser.exit(e);
      return result;
    }
    if (!parser.get_allow_extras()) check_flags(parser, arguments);
    note_variables(parser, arguments, result.variables);
    throw setting_error(
        result.as_given(e.what() + std::string("\nRun with --help for more information.")));
  } catch (const setting_error& e) {
    throw setting_error(result.as_given(e.what()));
  }
}

int run_program(const std::string& program, const std::string& about,
                const std::vector<command>& commands, int argc, char** argv) {
  tls::wipe_freed_keys();
  command_line line;
  try {
    line = parse_command_line(program, about, commands, argc, argv);
    if (!line.runs) return after_output(program, 0);
    const auto chosen = std::ranges::find(commands, line.command, &command::name);
    if (chosen->make) return run(program, *chosen, line);
    chosen->act();
    return after_output(program, 0);
  } catch (...) {
    return report(program, std::current_exception(), line);
  }
}

}  // namespace rw::cli
