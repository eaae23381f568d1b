#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/version.hpp"

#include <CLI/CLI.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/cli/command_lines.hpp"
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

BOOST_AUTO_TEST_SUITE(arguments)

namespace {

using namespace rw::cli;
using namespace rw::test::command_lines;

/// A kubeconfig file without TLS, which impersonates a user if `as` says so.
class kubeconfig_file {
 public:
  explicit kubeconfig_file(const std::string& as) {
    std::ofstream(name) << R"({"apiVersion": "v1", "kind": "Config", "current-context": "c",
      "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
      "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
      "users": [{"name": "u", "user": {)" +
                               as + "}}]}";
  }
  ~kubeconfig_file() { std::filesystem::remove(name); }
  kubeconfig_file(const kubeconfig_file&) = delete;
  kubeconfig_file& operator=(const kubeconfig_file&) = delete;

  const std::string name = (std::filesystem::temp_directory_path() /
                            ("rw-arguments-" + std::to_string(::getpid()) + ".kubeconfig"))
                               .string();
};

using texts = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(unknown_flag_is_named_with_the_flag_that_was_meant) {
  const auto check = [](const texts& line, const std::string& message) {
    const auto text = refusal(line);
    BOOST_TEST(says(text, message), text);
  };
  check({"status", "--kubconfig", "f"}, "unknown flag --kubconfig; did you mean --kubeconfig?");
  check({"status", "--log-levle=debug"}, "unknown flag --log-levle; did you mean --log-level?");
  check({"manager", "--no-leader-elct"}, "did you mean --no-leader-elect?");
  check({"rollout", "undo", "--to-revison", "4"}, "did you mean --to-revision?");
  check({"status", "--reason", "x", "--heartbeet=live"}, "did you mean --heartbeat?");
  for (const auto* output : {"-o", "-o=yaml"}) {
    check({"rollout", "plan", output}, "unknown flag -o: there is one of status, history\n");
  }
  BOOST_TEST(refusal({"status", "--nothing-like-this"}) ==
             "unknown flag --nothing-like-this\nRun with --help for more information.");
  check({"webhook", "--ledger-fil=x"}, "unknown flag --ledger-fil\n");
}

BOOST_AUTO_TEST_CASE(unknown_command_of_a_command_is_named_with_the_command_that_was_meant) {
  BOOST_TEST(
      says(refusal({"rollout", "stauts"}), "unknown command rollout stauts; did you mean status?"));
  BOOST_TEST(says(refusal({"certs", "something"}),
                  "unknown command certs something: there are ca, server, client, webhook"));
  BOOST_TEST(says(refusal({"help", "docter"}), "did you mean doctor?"));
  BOOST_TEST(says(refusal({"rollout", "--as", "kim", "stauts"}),
                  "unknown command rollout stauts; did you mean status?"));
  BOOST_TEST(says(refusal({"rollout", "--kubconfig", "k", "status"}), "did you mean --kubeconfig"));
}

BOOST_AUTO_TEST_CASE(flags_may_come_before_the_words_of_a_command) {
  const auto given = read({"--as", "status", "rollout", "--kubeconfig=k", "--timeout", "5s", "-w",
                           "status", "-o", "json", "watcher"});
  BOOST_TEST(given.rollout.kcp.as == "status");
  BOOST_TEST(given.rollout.kcp.kubeconfig == "k");
  BOOST_TEST((given.rollout.timeout == std::chrono::seconds(5)));
  BOOST_TEST(given.rollout.format == "json");
  BOOST_TEST(given.rollout.component == "watcher");
  BOOST_TEST(read({"certs", "--dir", "d", "ca"}).certs.dir == "d");
  BOOST_TEST(printed({"rollout", "--as", "kim", "undo", "--help"}) ==
             printed({"rollout", "undo", "--help"}));
  const environment variable{{"RW_CONTEXT", "c"}};
  BOOST_TEST(read({"--as", "manager", "status"}).status.kcp.context == "c");
  BOOST_TEST(says(refusal({"rollout", "--timeout", "5s", "history"}), "unknown flag --timeout"));
}

BOOST_AUTO_TEST_CASE(value_of_a_short_flag_follows_it_as_kubectl_takes_it) {
  for (const auto& line :
       {texts{"-o", "name"}, texts{"-o=name"}, texts{"-oname"}, texts{"--output=name"}}) {
    auto status = texts{"status", "k"};
    status.insert(status.end(), line.begin(), line.end());
    BOOST_TEST(read(status).status.format == "name", line.front());
    status = line;
    status.emplace_back("status");
    BOOST_TEST(read(status).status.format == "name", line.front());
  }
  BOOST_TEST(read({"status", "-w=true"}).status.watch);
  BOOST_TEST(!read({"rollout", "status", "-w=false"}).rollout.watch);
  BOOST_TEST(read({"status", "--reason", "-o=x"}).status.reason == "-o=x");
}

BOOST_AUTO_TEST_CASE(rollout_is_named_as_kubectl_names_it) {
  for (const auto* name : {"watcher", "runtimerollout/watcher", "runtimerollouts/watcher",
                           "rro/watcher", "runtimerollout.operator.kyma-project.io/watcher"}) {
    BOOST_TEST(read({"rollout", "status", name}).rollout.component == "watcher", name);
  }
  BOOST_TEST(refusal({"rollout", "status", "deployment/watcher"}) != "");
}

BOOST_AUTO_TEST_CASE(error_of_a_duration_names_the_units) {
  BOOST_TEST(says(refusal({"status", "--for", "10d"}), "units ms, s, m and h: 10d"));
}

BOOST_AUTO_TEST_CASE(help_of_a_command_is_printed_by_the_command_help) {
  const environment wide{{"COLUMNS", "200"}};
  const auto undo = printed({"help", "rollout", "undo"});
  BOOST_TEST(says(undo, "--to-revision"), undo);
  BOOST_TEST(undo == printed({"rollout", "undo", "--help"}));
  BOOST_TEST(printed({"help", "status"}) == printed({"status", "--help"}));
  BOOST_TEST(printed({"help"}) == printed({"--help"}));
  BOOST_TEST(says(printed({"help"}), "help COMMAND [SUBCOMMAND]"));
  BOOST_TEST(says(printed({"--log-level", "debug", "help"}), "help COMMAND [SUBCOMMAND]"));
  BOOST_TEST(printed({"--log-level", "debug", "help", "status"}) == printed({"status", "--help"}));
  BOOST_TEST(printed({"--log-level=debug", "help", "status"}) == printed({"status", "--help"}));
  BOOST_TEST(undo == printed({"rollout", "help", "undo"}));
  BOOST_TEST(undo == printed({"rollout", "undo", "--to-revision", "--help"}));
  BOOST_TEST(printed({"uninstall", "help"}) == printed({"uninstall", "--help"}));
  BOOST_TEST(printed({"certs", "ca", "help"}) == printed({"certs", "ca", "--help"}));
  BOOST_TEST(printed({"diff", "--runtime", "--help"}) == printed({"diff", "--help"}));
  BOOST_TEST(read({"status", "help"}).status.kyma == "help");
  BOOST_TEST(says(printed({"completion", "bash"}), "help) words=\"webhook listen "));
  BOOST_TEST(says(printed({"completion", "bash"}), "completion) words=\"bash zsh fish "));
  BOOST_TEST(says(printed({"completion", "fish"}),
                  "'__fish_seen_subcommand_from help' -f -a 'webhook listen "));
}

BOOST_AUTO_TEST_CASE(help_of_a_program_without_commands_is_printed_where_a_value_is_due) {
  std::string dir;
  const std::vector<command> one{
      {.describe = [&dir](CLI::App& app) { app.add_option("--dir", dir); }}};
  for (const auto& line : {texts{"help", "--dir"}, texts{"--dir", "--help"}, texts{"help"}}) {
    const std::ostringstream out;
    auto* const before = std::cout.rdbuf(out.rdbuf());
    const bool runs = rw::test::command_lines::parse(line, one).runs;
    std::cout.rdbuf(before);
    BOOST_TEST(!runs);
    BOOST_TEST(says(out.str(), "--dir"));
    BOOST_TEST(dir == "");
  }
}

BOOST_AUTO_TEST_CASE(flag_is_no_value_of_a_flag) {
  BOOST_TEST(
      refusal({"diff", "--runtime", "--output", "json"}) ==
      "--runtime needs a value, and --output is a flag; a value that begins with -- is given "
      "as --runtime=VALUE\nRun with --help for more information.");
  BOOST_TEST(says(refusal({"status", "-o", "--watch"}), "-o needs a value"));
  BOOST_TEST(read({"status", "--reason=--x"}).status.reason == "--x");
}

BOOST_AUTO_TEST_CASE(command_of_another_program_is_named_with_it) {
  BOOST_TEST(refusal({"dev"}) ==
             "unknown command dev: it is one of another program: runtime-watcher-dev dev");
  rw::cli::settings all;
  const auto nothing = [](CLI::App&) {};
  const std::vector<command> none{{.name = "a", .describe = nothing},
                                  {.name = "b", .describe = nothing}};
  for (const auto& each : commands_of(all)) {
    const auto names_program = [&](const setting_error& error) {
      return says(error.what(), ": runtime-watcher " + each.name);
    };
    BOOST_CHECK_EXCEPTION(rw::test::command_lines::parse({each.name}, none), setting_error,
                          names_program);
  }
}

BOOST_AUTO_TEST_CASE(runtimes_are_arguments_of_doctor) {
  using names = std::vector<std::string>;
  BOOST_TEST((read({"doctor", "kcp-system/a", "b"}).doctor.runtimes == names{"a", "b"}));
  BOOST_TEST((read({"doctor", "--runtime", "kcp-system/a,b"}).doctor.runtimes == names{"a", "b"}));
  BOOST_TEST(refusal({"doctor", "a", "--runtime", "b"}) ==
             "RUNTIME and --runtime are the same: give one of them");
  const environment variable{{"RW_RUNTIME", "a"}};
  BOOST_TEST((read({"doctor"}).doctor.runtimes == names{"a"}));
  BOOST_TEST((read({"doctor", "b"}).doctor.runtimes == names{"b"}));
}

BOOST_AUTO_TEST_CASE(runtime_is_an_argument_of_status_and_diff_also_with_its_namespace) {
  BOOST_TEST(read({"status", "kcp-system/runtime-1"}).status.kyma == "runtime-1");
  BOOST_TEST(read({"diff", "kcp-system/runtime-1"}).diff.kyma == "runtime-1");
  BOOST_TEST(read({"diff", "--runtime", "runtime-1"}).diff.kyma == "runtime-1");
  BOOST_TEST(refusal({"diff"}) == "RUNTIME is required (or the flag --runtime)");
  BOOST_TEST(says(printed({"diff", "--help"}), "diff [OPTIONS] RUNTIME\n"));
  BOOST_TEST(says(printed({"status", "--help"}), "status [OPTIONS] [RUNTIME]\n"));
  BOOST_TEST(refusal({"diff", "a", "--runtime", "b"}) ==
             "RUNTIME and --runtime are the same: give one of them");
  const environment variable{{"RW_RUNTIME", "a"}};
  BOOST_TEST(read({"diff"}).diff.kyma == "a");
  BOOST_TEST(read({"diff", "b"}).diff.kyma == "b");
}

BOOST_AUTO_TEST_CASE(address_is_another_name_of_doctors_manager) {
  const auto given = read({"doctor", "--address", "127.0.0.1:8080"}).doctor.manager;
  BOOST_TEST((given && given->port == 8080));
}

BOOST_AUTO_TEST_CASE(user_to_impersonate_is_a_flag_of_the_commands_for_people) {
  const texts flags{"--as", "jane", "--as-group", "a,b", "--as-group", "c"};
  const auto given =
      read(with({"status", "--as=jane", "--as-group=a,b", "--as-group"}, {"c", "k"}));
  BOOST_TEST(given.status.kcp.as == "jane");
  BOOST_TEST(given.status.kcp.as_groups == (texts{"a,b", "c"}), boost::test_tools::per_element());
  BOOST_TEST(given.status.kyma == "k");
  for (const auto& command : {texts{"doctor"}, texts{"uninstall"}, texts{"rollout", "history"}}) {
    auto line = command;
    line.insert(line.end(), flags.begin(), flags.end());
    BOOST_TEST(refusal(line) == "", command.front());
  }
  BOOST_TEST(says(refusal({"manager", "--as=jane"}), "unknown flag --as"));
}

BOOST_AUTO_TEST_CASE(user_to_impersonate_replaces_that_of_the_kubeconfig) {
  const kubeconfig_file file(
      R"("as": "john", "as-uid": "7", "as-groups": ["a"], "as-user-extra": {"k": ["v"]})");
  const auto own = load_kcp_config({.kubeconfig = file.name});
  BOOST_TEST(own.impersonate_user == "john");
  BOOST_TEST(own.impersonate_uid == "7");
  const auto other = load_kcp_config({.kubeconfig = file.name, .as = "jane"});
  BOOST_TEST(other.impersonate_user == "jane");
  BOOST_TEST(other.impersonate_uid == "");
  BOOST_TEST(other.impersonate_groups.empty());
  BOOST_TEST(other.impersonate_extra.empty());
  const auto grouped = load_kcp_config({.kubeconfig = file.name, .as_groups = {"b"}});
  BOOST_TEST(grouped.impersonate_user == "john");
  BOOST_TEST(grouped.impersonate_groups == texts{"b"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(group_to_impersonate_is_rejected_without_a_user) {
  const kubeconfig_file file("");
  const auto names_flags = [](const setting_error& error) {
    return says(error.what(), "--as-group needs --as");
  };
  BOOST_CHECK_EXCEPTION(load_kcp_config({.kubeconfig = file.name, .as_groups = {"b"}}),
                        setting_error, names_flags);
}

BOOST_AUTO_TEST_CASE(version_has_the_commit_and_its_time) {
  const std::string revision = source_revision;
  const std::string time = source_time;
  const auto line = printed({"version"});
  BOOST_TEST(line == printed({"--version"}));
  BOOST_TEST(line.starts_with("program " + version_text()), line);
  BOOST_TEST(says(line, revision), line);
  BOOST_TEST(says(line, time), line);
  const auto document = boost::json::parse(printed({"version", "-o", "json"}));
  const auto& fields = document.at("clientVersion").as_object();
  BOOST_TEST(version_text().starts_with(fields.at("gitVersion").as_string().c_str() + 1));
  BOOST_TEST(fields.contains("gitCommit") == !revision.empty());
  BOOST_TEST(fields.contains("gitCommitDate") == !time.empty());
  const auto yaml = printed({"version", "--output=yaml"});
  BOOST_TEST(yaml.starts_with("clientVersion:\n  major: \"0\"\n"), yaml);
  BOOST_TEST(says(refusal({"version", "-o", "xml"}), "--output"));
}

BOOST_AUTO_TEST_SUITE_END()
