#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/version.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/cli/command_lines.hpp"
#include <filesystem>
#include <fstream>
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
  check({"status", "--reason", "--kubconfig", "--heartbeet=live"}, "did you mean --heartbeat?");
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
  const auto value = refusal({"rollout", "--as", "kim", "status"});
  BOOST_TEST(!says(value, "unknown command"), value);
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
  BOOST_TEST(says(printed({"completion", "bash"}), "help) words=\"webhook listen "));
  BOOST_TEST(says(printed({"completion", "fish"}),
                  "'__fish_seen_subcommand_from help' -f -a 'webhook listen "));
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
