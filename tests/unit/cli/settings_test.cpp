#include <boost/test/unit_test.hpp>

#include "tests/unit/cli/command_lines.hpp"
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(settings)

namespace {

using namespace rw::cli;
using namespace rw::test::command_lines;

const std::vector<std::string> webhook = {"webhook",        "--ca-cert",  "ca.crt",
                                          "--tls-cert",     "tls.crt",    "--tls-key",
                                          "tls.key",        "--kcp-addr", "kcp.example.com:443",
                                          "--kcp-contract", "v2"};
const std::vector<std::string> listen = {"listen", "--address", "127.0.0.1:0", "--component",
                                         "klm"};

}  // namespace

BOOST_AUTO_TEST_CASE(settings_of_a_command_line_are_those_that_were_set_by_flag_or_variable) {
  const environment variables{{"RW_SKR_IMAGE", "registry.example.com/rw:1"}};
  rw::cli::settings to;
  const auto line = parse({"manager", "--xfcc-trusted-proxies=10.1.0.0/16,fd00::/8", "--pin-san"},
                          commands_of(to));
  BOOST_TEST(line.command == "manager");
  for (const auto* set : {"--skr-image=registry.example.com/rw:1", "--pin-san=true",
                          "--xfcc-trusted-proxies=10.1.0.0/16,fd00::/8"}) {
    BOOST_TEST((" " + line.settings + " ").find(std::string(" ") + set + " ") != std::string::npos,
               line.settings);
  }
  BOOST_TEST(line.settings.find("--lease-name") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(empty_value_is_a_value_and_not_the_next_flag) {
  const auto given = read({"doctor", "--kubeconfig", "k", "--service-account=", "--runtime=a"});
  BOOST_TEST(given.doctor.service_account.empty());
  BOOST_TEST(given.doctor.runtimes.size() == 1U);
  BOOST_TEST(says(refusal(with(webhook, {"--kcp-addr=", "--log-level=debug"})), "--kcp-addr"));
  BOOST_TEST(!says(refusal(with(webhook, {"--kcp-addr=", "--log-level=debug"})), "debug"));
}

BOOST_AUTO_TEST_CASE(webhook_takes_reviews_for_5_s_after_sigterm_by_default) {
  BOOST_TEST(read(webhook).webhook.shutdown_delay.count() == 5000);
  BOOST_TEST(read(with(webhook, {"--shutdown-delay", "0"})).webhook.shutdown_delay.count() == 0);
}

BOOST_AUTO_TEST_CASE(source_watch_is_read_as_both_with_one_warning) {
  const environment set({{"SOURCE", "watch"}});
  const auto given = read(webhook).webhook;
  BOOST_TEST(given.watches);
  BOOST_TEST(given.outdated == std::vector<std::string>{"SOURCE watch is read as both"},
             boost::test_tools::per_element());
  BOOST_TEST(!read(with(webhook, {"--source=webhook"})).webhook.watches);
  BOOST_TEST(read(with(webhook, {"--source=both"})).webhook.outdated.empty());
  const auto said = refusal(with(webhook, {"--source=reviews"}));
  BOOST_TEST(says(said, "--source: must be webhook or both"), said);
}

BOOST_AUTO_TEST_CASE(settings_of_earlier_versions_are_ignored_with_one_warning_each) {
  const environment set({{"LEDGER_FILE", "/var/lib/skr-webhook/ledger"}, {"EVENT_MAX_AGE", "?"}});
  const std::vector<std::string> said{
      "LEDGER_FILE is ignored: there is no journal, a restart sends a resync",
      "EVENT_MAX_AGE is ignored: events do not expire"};
  BOOST_TEST(read(webhook).webhook.outdated == said, boost::test_tools::per_element());
  const auto by_flag = read(with(webhook, {"--ledger-file=", "--event-max-age", "0"})).webhook;
  BOOST_REQUIRE(by_flag.outdated.size() == 2U);
  BOOST_TEST(says(by_flag.outdated[0], "--ledger-file is ignored"));
  BOOST_TEST(says(by_flag.outdated[1], "--event-max-age is ignored"));
}

BOOST_AUTO_TEST_CASE(settings_of_earlier_versions_are_neither_in_the_help_nor_completed) {
  const auto help = printed({"webhook", "--help"});
  for (const auto& text :
       {help, printed({"completion", "bash"}), printed({"completion", "fish"})}) {
    BOOST_TEST(says(text, "set-capacity"));
    BOOST_TEST(!says(text, "ledger-file"));
    BOOST_TEST(!says(text, "event-max-age"));
  }
}

BOOST_AUTO_TEST_CASE(lists_are_trimmed_where_blanks_follow_their_commas) {
  BOOST_TEST(refusal(with(listen, {"--xfcc-trusted-proxies", "10.0.0.0/8, fd00::/8 ,127.0.0.1"})) ==
             "");
  const auto manager = read({"manager", "--extra-dns-names", "a.example.com, b.example.com",
                             "--skr-pull-secret", " one , two"})
                           .manager;
  BOOST_TEST(
      (manager.extra_dns_names == std::vector<std::string>{"a.example.com", "b.example.com"}));
  BOOST_TEST((manager.skr_pull_secrets == std::vector<std::string>{"one", "two"}));
}

BOOST_AUTO_TEST_CASE(trusted_proxies_that_are_no_networks_are_refused_by_name) {
  for (const auto* command : {"listen", "manager"}) {
    const auto said = refusal(
        {command, command == std::string("listen") ? "--address" : "--listen-address",
         "127.0.0.1:0", "--component", "klm", "--xfcc-trusted-proxies", "10.0.0.0/8,nonsense"});
    BOOST_TEST(says(said, "--xfcc-trusted-proxies"), said);
    BOOST_TEST(says(said, "nonsense"), said);
  }
  const auto said = refusal(with(listen, {"--xfcc-trusted-proxies", " , "}));
  BOOST_TEST(says(said, "--xfcc-trusted-proxies"), said);
}

BOOST_AUTO_TEST_CASE(variable_is_named_where_its_value_is_rejected) {
  const auto check = [](const std::vector<std::string>& arguments, const char* variable,
                        const char* value, const std::string& flag) {
    const environment set({{variable, value}});
    const auto said = refusal(arguments);
    BOOST_TEST_CONTEXT(variable << "=" << value << ": " << said) {
      BOOST_TEST(says(said, variable));
      BOOST_TEST(!says(said, flag));
    }
  };
  check(webhook, "DRAIN_TIMEOUT", "soon", "--drain-timeout");
  check(webhook, "DRAIN_TIMEOUT", "-5s", "--drain-timeout");
  check(webhook, "CHANNEL_CAPACITY", "0", "--channel-capacity");
  check(webhook, "LOG_LEVEL", "loud", "--log-level");
  check(webhook, "BIND_ADDRESS", "localhost", "--bind-address");
  check({"listen", "--component", "klm"}, "LISTEN_ADDRESS", "nowhere", "--address");
  check(listen, "METRICS_ADDRESS", "0.0.0.0", "--metrics-address");
  check({"listen", "--address", "127.0.0.1:0"}, "COMPONENT", "a/b", "--component");
  check({"manager"}, "RW_RETRY_PERIOD", "9s", "--retry-period");
  check({"manager"}, "RW_LISTEN_ADDRESS", "localhost:80", "--listen-address");
}

BOOST_AUTO_TEST_CASE(flag_is_named_where_its_value_is_rejected_though_a_variable_is_set) {
  const environment set({{"DRAIN_TIMEOUT", "1s"}});
  const auto said = refusal(with(webhook, {"--drain-timeout=soon"}));
  BOOST_TEST(says(said, "--drain-timeout"), said);
  BOOST_TEST(!says(said, "DRAIN_TIMEOUT"), said);
}

BOOST_AUTO_TEST_CASE(short_flag_is_named_where_its_value_is_refused) {
  const std::vector<std::string> spaced{"status", "-o", "xml"};
  const std::vector<std::string> joined{"status", "-oxml"};
  for (const auto& arguments : {spaced, joined}) {
    const auto text = refusal(arguments);
    BOOST_TEST(says(text, "--output"), text);
    BOOST_TEST(!says(text, "RW_OUTPUT"), text);
  }
}

BOOST_AUTO_TEST_CASE(flags_of_the_existing_image_mean_the_webhook) {
  const environment required{{"CA_CERT", "ca.crt"},
                             {"TLS_CERT", "tls.crt"},
                             {"TLS_KEY", "tls.key"},
                             {"KCP_ADDR", "kcp.example.com:443"},
                             {"KCP_CONTRACT", "v2"}};
  using rw::core::log_level;
  const auto level_of = [](std::vector<std::string> arguments) {
    given to;
    const auto line = parse(std::move(arguments), commands_of(to));
    BOOST_TEST(line.command == "webhook");
    return line.log_level;
  };
  for (const auto* flag :
       {"-development", "--development", "-development=true", "--development=1"}) {
    BOOST_TEST((level_of({flag}) == log_level::debug), flag);
    BOOST_TEST((level_of({"webhook", flag}) == log_level::debug), flag);
  }
  BOOST_TEST((level_of({"-development=false", "--settle=1s"}) == log_level::info));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"-version"}, {"--version"}, {"webhook", "-version"}}) {
    given to;
    BOOST_TEST(!parse(arguments, commands_of(to)).runs);
  }
  BOOST_TEST(!refusal({"-development=maybe"}).empty());
  BOOST_TEST(!refusal({"-developments"}).empty());
  BOOST_TEST(!refusal({"manager", "-development"}).empty(), "it is the webhook's");
}

BOOST_AUTO_TEST_CASE(variable_of_a_service_is_ignored) {
  for (const auto* link : {"tcp://10.0.0.1:443", "udp://10.0.0.1:53", "sctp://[fd00::1]:9"}) {
    const environment linked{{"METRICS_PORT", link}, {"RW_KCP_PORT", link}};
    given to;
    const auto line = parse(webhook, commands_of(to));
    BOOST_TEST(line.service_links == std::vector<std::string>{"METRICS_PORT"}, link);
    BOOST_TEST(to.webhook.metrics_port == 2112u);
    BOOST_TEST(to.webhook.remarks.empty());
    BOOST_TEST(refusal({"manager", "--skr-image=x"}).find("RW_KCP_PORT") == std::string::npos);
  }
  const environment other{{"RW_KCP_PORT", "tcp://10.0.0.1"}};
  BOOST_TEST(says(refusal({"manager", "--skr-image=x"}), "RW_KCP_PORT"), "it is of no Service");
}

BOOST_AUTO_TEST_CASE(secrets_are_observed_by_flag_or_variable) {
  BOOST_TEST(!read(webhook).webhook.observe_secrets);
  BOOST_TEST(read(with(webhook, {"--observe-secrets"})).webhook.observe_secrets);
  for (const auto& [value, observed] : {std::pair("true", true), {"false", false}}) {
    const environment set{{"OBSERVE_SECRETS", value}};
    BOOST_TEST(read(webhook).webhook.observe_secrets == observed);
  }
}

BOOST_AUTO_TEST_CASE(resyncs_are_taken_by_flag_or_variable) {
  BOOST_TEST(!read(listen).listen.resyncs);
  BOOST_TEST(read(with(listen, {"--resyncs"})).listen.resyncs);
  const environment set{{"RESYNCS", "true"}};
  BOOST_TEST(read(listen).listen.resyncs);
}

BOOST_AUTO_TEST_CASE(servers_take_both_families_by_default) {
  const auto all = read({"manager", "--skr-image=x"});
  BOOST_TEST(all.webhook.bind_address == "::");
  BOOST_TEST(rw::core::to_string(all.manager.listening.address) == "[::]:8082");
  BOOST_TEST(rw::core::to_string(all.manager.metrics_address) == "[::]:8080");
}

BOOST_AUTO_TEST_CASE(unknown_command_is_named_with_the_one_that_was_meant) {
  BOOST_TEST(says(refusal({"stauts"}), "unknown command stauts; did you mean status?"));
  BOOST_TEST(says(refusal({"man", "--shadow"}), "did you mean manager?"));
  BOOST_TEST(says(refusal({"--log-level=debug", "docter"}), "did you mean doctor?"));
  BOOST_TEST(says(refusal({"something"}), "unknown command something: there are webhook, listen"));
}

BOOST_AUTO_TEST_CASE(commands_that_report_log_errors_alone_unless_told_otherwise) {
  BOOST_TEST((read({"status"}).log_level == rw::core::log_level::error));
  BOOST_TEST((read({"status", "--log-level", "debug"}).log_level == rw::core::log_level::debug));
  BOOST_TEST((read({"manager"}).log_level == rw::core::log_level::info));
}

BOOST_AUTO_TEST_CASE(command_named_by_a_later_argument_does_not_run) {
  const environment set({{"DRAIN_TIMEOUT", "soon"}, {"RW_RENEW_DEADLINE", "soon"}});
  BOOST_TEST(refusal({"certs", "webhook", "--name", "a"}) == "");
  BOOST_TEST(refusal({"status", "--name", "manager"}) == "");
}

BOOST_AUTO_TEST_CASE(variables_of_another_command_are_not_looked_at) {
  const environment set({{"COMPONENT", "a/b"}, {"LISTEN_ADDRESS", "tcp://10.0.0.1:80"}});
  BOOST_TEST(refusal(webhook) == "");
}

BOOST_AUTO_TEST_CASE(required_settings_are_named_all_at_once) {
  auto said = refusal({"webhook"});
  for (const auto* name : {"CA_CERT", "TLS_CERT", "TLS_KEY", "KCP_ADDR"}) {
    BOOST_TEST(says(said, name), said);
  }
  said = refusal({"listen"});
  BOOST_TEST(says(said, "LISTEN_ADDRESS is required (or the flag --address)"), said);
  BOOST_TEST(says(said, "COMPONENT is required (or the flag --component)"), said);
}

BOOST_AUTO_TEST_CASE(warn_is_taken_for_the_level_warning) {
  BOOST_TEST(
      (read(with(listen, {"--log-level", "warn"})).log_level == rw::core::log_level::warning));
  BOOST_TEST(
      (read(with(listen, {"--log-level", "warning"})).log_level == rw::core::log_level::warning));
}

BOOST_AUTO_TEST_CASE(component_that_is_no_path_segment_is_rejected) {
  for (const auto& component :
       {std::string(), std::string("a/b"), std::string("."), std::string(".."), std::string("a b"),
        std::string("a%2fb"), std::string("a?b"), std::string(254, 'a')}) {
    BOOST_TEST_CONTEXT(component) {
      BOOST_TEST(says(refusal({"listen", "--address", "127.0.0.1:0", "--component", component}),
                      "--component"));
      BOOST_TEST(says(refusal({"manager", "--component", component}), "--component"));
    }
  }
  BOOST_TEST(refusal(with({"listen", "--address", "127.0.0.1:0", "--component"},
                          {"lifecycle-manager_2.x"})) == "");
}

BOOST_AUTO_TEST_CASE(values_that_cannot_work_are_refused) {
  const auto check = [](std::vector<std::string> base, const std::string& flag,
                        const std::string& value) {
    const auto said = refusal(with(std::move(base), {flag + "=" + value}));
    BOOST_TEST(says(said, flag), flag << "=" << value << ": " << said);
  };
  for (const auto* value : {"kcp.example.com", "kcp.example.com:0", ":443", "kcp:65536", "a b:1"}) {
    check({"webhook", "--ca-cert", "a", "--tls-cert", "b", "--tls-key", "c"}, "--kcp-addr", value);
  }
  check(webhook, "--kcp-contract", "v3");
  check(webhook, "--admission-wait", "31s");
  check(webhook, "--heartbeat-interval", "999ms");
  check(webhook, "--heartbeat-interval", "61m");
  check(webhook, "--bind-address", "localhost");
  for (const auto* value : {"127.0.0.1", "localhost:80", ":80", "127.0.0.1:65536"}) {
    check({"listen", "--component", "klm"}, "--address", value);
    check(listen, "--metrics-address", value);
    check({"manager"}, "--listen-address", value);
    check({"manager"}, "--metrics-address", value);
  }
  check({"manager"}, "--kcp-port", "0");
  check({"manager"}, "--success-interval", "0");
  for (const auto* flag : {"--lease-namespace", "--lease-name", "--gateway-namespace", "--issuer",
                           "--issuer-namespace", "--skr-pull-secret", "--config-map-name"}) {
    check({"manager"}, flag, "No/Name");
    check({"manager"}, flag, "");
  }
  for (const auto* value : {"", "much", "200 Mi", "-1", "1.2.3"}) {
    check({"manager"}, "--skr-memory-limit", value);
    check({"manager"}, "--skr-cpu-limit", value);
  }
}

BOOST_AUTO_TEST_CASE(defaults_and_usual_values_are_taken) {
  const auto manager = read({"manager", "--skr-memory-limit", "128974848", "--skr-cpu-limit",
                             "100m", "--listen-address", "[::1]:0"})
                           .manager;
  BOOST_TEST(manager.skr_cpu_limit == "100m");
  BOOST_TEST((read(webhook).webhook.heartbeat_interval == std::chrono::minutes(1)));
  for (const auto* interval : {"0", "1s", "1h"}) {
    BOOST_TEST(refusal(with(webhook, {"--heartbeat-interval", interval})) == "", interval);
  }
  const environment set({{"COMPONENT", "klm"},
                         {"LISTEN_ADDRESS", "127.0.0.1:81"},
                         {"CLIENT_CA", "ca.crt"},
                         {"XFCC_TRUSTED_PROXIES", "10.0.0.1"}});
  BOOST_TEST(read({"listen"}).listen.listening.component == "klm");
}

BOOST_AUTO_TEST_CASE(pull_secret_and_trust_bundle_may_be_none_by_flag_or_variable) {
  const auto names = [](std::vector<std::string> more) {
    more.insert(more.begin(), "manager");
    const auto read_now = read(std::move(more));
    const auto& from = read_now.manager.runtime_config.direct.defaults;
    return from.pull_secret + "," + from.trust_bundle;
  };
  BOOST_TEST(names({}) == "registry-credentials,rt-bootstrapper-trust-bundle");
  BOOST_TEST(names({"--pull-secret-name=", "--trust-bundle-name="}) == ",");
  const environment empty({{"RW_PULL_SECRET_NAME", ""}, {"RW_TRUST_BUNDLE_NAME", ""}});
  BOOST_TEST(names({}) == ",");
  BOOST_TEST(names({"--trust-bundle-name=b"}) == ",b");
  for (const auto* flag : {"--pull-secret-name", "--trust-bundle-name"}) {
    BOOST_TEST(says(refusal({"manager", flag, "No/Name"}), flag));
  }
}

BOOST_AUTO_TEST_CASE(certificate_and_key_go_together_with_a_client_ca) {
  for (const auto& base : {listen, std::vector<std::string>{"manager"}}) {
    BOOST_TEST(says(refusal(with(base, {"--tls-cert", "a"})), "--tls-key"));
    BOOST_TEST(says(refusal(with(base, {"--tls-cert", "a", "--tls-key", "b"})), "--client-ca"));
    BOOST_TEST(refusal(with(base, {"--tls-cert", "a", "--tls-key", "b", "--client-ca", "c"})) ==
               "");
  }
}

BOOST_AUTO_TEST_SUITE_END()
