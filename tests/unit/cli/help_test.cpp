#include "rw/reactors/cli/help.hpp"

#include "rw/reactors/dev/settings.hpp"
#include "rw/reactors/kube_devserver/settings.hpp"

#include <CLI/CLI.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/cli/command_lines.hpp"
#include <algorithm>
#include <cctype>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(help)

namespace {

using namespace rw;
using namespace rw::test::command_lines;

/// Calls `each` with the parser of every command of every program, which formats help of `columns`.
void for_all_commands(std::size_t columns, const std::function<void(const CLI::App&)>& each) {
  cli::settings settings;
  dev::dev_settings whole;
  kube_devserver::api_server_settings server;
  kube_devserver::kube_apiserver_settings kube;
  kube_devserver::etcd_settings etcd;
  std::vector<cli::command> commands = cli::commands_of(settings);
  const auto add = [&commands](const char* name, std::function<void(CLI::App&)> describe) {
    commands.push_back({.name = name, .help = "Runs it", .describe = std::move(describe)});
  };
  add("dev", [&](CLI::App& app) { dev::describe_dev(app, whole); });
  add("api-server", [&](CLI::App& app) { kube_devserver::describe_api_server(app, server); });
  add("kube-apiserver", [&](CLI::App& app) { kube_devserver::describe_kube_apiserver(app, kube); });
  add("etcd", [&](CLI::App& app) { kube_devserver::describe_etcd(app, etcd); });
  for (const auto& command : commands) {
    CLI::App app(command.help, command.name);
    app.formatter(cli::make_help_formatter(columns));
    command.describe(app);
    each(app);
    for (const auto* nested : app.get_subcommands([](const CLI::App*) { return true; })) {
      each(*nested);
    }
  }
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::string> out;
  for (std::string word; words >> word;) out.push_back(word);
  return out;
}

/// Returns the length of the longest line that has more than one word.
std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    if (words_of(line).size() > 1) longest = std::max(longest, line.size());
  }
  return longest;
}

/// Returns the fault of a flag's help; empty if it stands alone.
std::string fault_of(const std::string& text) {
  const auto words = words_of(text);
  if (words.size() < 3) return "fewer than three words";
  if (std::islower(static_cast<unsigned char>(text.front())) != 0) return "no capital";
  if (text.back() == '.') return "a full stop at the end";
  for (const auto* first :
       {"Of", "As", "Its", "Also", "It", "They", "That", "Where", "What", "How", "Who", "From"}) {
    if (words.front() == first) return "begins with " + words.front();
  }
  for (const auto* phrase : {"likewise", "Likewise", "the same", " ditto", " there;"}) {
    if (says(text, phrase)) return "depends on another text: " + std::string(phrase);
  }
  return "";
}

std::string help_of(const std::string& name, const std::string& text, std::size_t columns) {
  CLI::App app("A program", "program");
  app.set_help_flag();
  app.formatter(cli::make_help_formatter(columns));
  std::string value;
  app.add_option(name, value, text)->type_name("N");
  const auto whole = app.help();
  const auto from = whole.find("Options:\n") + 9;
  return whole.substr(from, whole.find_last_not_of('\n') - from + 1);
}

}  // namespace

BOOST_AUTO_TEST_CASE(help_of_every_flag_stands_alone) {
  std::size_t flags = 0;
  for_all_commands(80, [&flags](const CLI::App& app) {
    for (const auto* option : app.get_options({})) {
      if (option->get_group().empty()) continue;
      ++flags;
      const auto text = option->get_description();
      BOOST_TEST(fault_of(text) == "", app.get_name() << " " << option->get_name() << ": " << text);
    }
  });
  BOOST_TEST(flags > 200u);
}

BOOST_AUTO_TEST_CASE(fault_is_found_in_a_text_that_depends_on_another) {
  for (const auto* text :
       {"Of the Lease", "As the manager's", "Output format", "Likewise, for the webhook", "its key",
        "Where to listen", "Time limit after SIGTERM.", "Limit of the same pods"}) {
    BOOST_TEST(fault_of(text) != "", text);
  }
  BOOST_TEST(fault_of("Namespace of the leader-election Lease") == "");
}

BOOST_AUTO_TEST_CASE(help_of_every_command_fits_into_the_columns) {
  for (const std::size_t columns : {60U, 80U, 120U}) {
    for_all_commands(columns, [columns](const CLI::App& app) {
      const auto text = app.help();
      BOOST_TEST(longest_line(text) <= columns, app.get_name() << ":\n" << text);
    });
  }
}

BOOST_AUTO_TEST_CASE(help_is_indented_where_it_continues) {
  const std::string blanks(30, ' ');
  BOOST_TEST(help_of("--flag", "Number of runtimes that are reconciled concurrently", 60) ==
             "  --flag N                    Number of runtimes that are\n" + blanks +
                 "reconciled concurrently");
  BOOST_TEST(help_of("--flag", "Number of runtimes that are reconciled", 80) ==
             "  --flag N                    Number of runtimes that are reconciled");
  BOOST_TEST(help_of("--flag-with-a-very-long-name", "Number of runtimes", 60) ==
             "  --flag-with-a-very-long-name N\n" + blanks + "Number of runtimes");
}

BOOST_AUTO_TEST_CASE(long_list_is_broken_behind_a_comma) {
  const std::string words = "{cert-manager,gardener,another-issuer,yet-another-issuer,none}";
  CLI::App app("A program", "program");
  app.set_help_flag();
  app.formatter(cli::make_help_formatter(60));
  std::string value;
  app.add_option("--certificates", value, "Kind of the Certificates")->type_name(words);
  BOOST_TEST(says(app.help(),
                  "  --certificates\n"
                  "      {cert-manager,gardener,another-issuer,\n"
                  "      yet-another-issuer,none}\n"),
             app.help());
}

BOOST_AUTO_TEST_CASE(columns_are_those_of_the_variable_and_at_least_60) {
  const auto columns_with = [](const char* value) {
    const environment set{{"COLUMNS", value}};
    return cli::help_columns();
  };
  BOOST_TEST(columns_with("132") == 132u);
  BOOST_TEST(columns_with("20") == 60u);
  BOOST_TEST(columns_with("60") == 60u);
  BOOST_TEST(columns_with("wide") >= 60u);
}

BOOST_AUTO_TEST_SUITE_END()
