#include "rw/reactors/cli/explain.hpp"

#include "rw/reactors/shared/explanations.hpp"
#include "rw/reactors/shared/status_reason.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <iterator>
#include <stdexcept>
#include <string>

BOOST_AUTO_TEST_SUITE(explain)

namespace {

namespace json = boost::json;

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

std::string error_of(const std::string& word) {
  try {
    return rw::cli::explanation_text({.word = word});
  } catch (const std::runtime_error& e) {
    return e.what();
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(reason_has_meaning_causes_next_step_commands_and_link) {
  const auto text = rw::cli::explanation_text({.word = "EventsWait"});
  BOOST_TEST(text.starts_with("EventsWait: Runtimes\n"));
  BOOST_TEST(contains(text, "MEANING:\n  an operator has taken no event"));
  BOOST_TEST(contains(text, "USUAL CAUSES:\n  the operator is down"));
  BOOST_TEST(contains(text, "NEXT STEP:\n  see the operators"));
  BOOST_TEST(contains(text, "  runtime-watcher status --reason EventsWait -o wide\n"));
  BOOST_TEST(contains(text, "RUNBOOK:\n  deploy/runbook.md#eventswait\n"));
}

BOOST_AUTO_TEST_CASE(alert_has_its_expression_and_first_command) {
  const auto text = rw::cli::explanation_text({.word = "ManagerHasNoLeader"});
  BOOST_TEST(contains(text, "FIRES:\n  `leader_election_master_status"));
  BOOST_TEST(contains(text, "LOOK AT FIRST:\n  kubectl get lease"));
  BOOST_TEST(text.find("LOOK AT FIRST:") < text.find("NEXT STEP:"));
  BOOST_TEST(contains(text, "USUAL CAUSES:\n  the pods do not start; "));
}

BOOST_AUTO_TEST_CASE(reason_of_a_bootstrapper_is_looked_up_as_that_of_a_condition) {
  const auto text = rw::cli::explanation_text({.word = "Rejected"});
  BOOST_TEST(contains(text, R"({.status.conditions[?(@.reason=="Rejected")].message}{"\n"}{end}')"),
             text);
  BOOST_TEST(!contains(text, "kubectl get events"));
}

BOOST_AUTO_TEST_CASE(condition_types_and_phases_have_an_entry) {
  for (const auto* const word : {"Installed",
                                 "ConfigurationSynced",
                                 "Compatible",
                                 "InStep",
                                 "RuntimeBootstrapperReady",
                                 "Ready",
                                 "Reconciling",
                                 "Stalled",
                                 "Pinned",
                                 "Paused",
                                 "WavesBypassed",
                                 "VirtualService",
                                 "Applied",
                                 "LastGood",
                                 "Waiting",
                                 "Error",
                                 "Partial",
                                 "settled",
                                 "grace",
                                 "distributing",
                                 "well",
                                 "degraded",
                                 "outage",
                                 "complete"}) {
    BOOST_TEST(rw::explain(word) != nullptr, word);
  }
}

BOOST_AUTO_TEST_CASE(outage_is_of_more_than_one_runtime_or_all) {
  for (const std::string word : {"outage", "FleetOutage"}) {
    BOOST_TEST(contains(rw::cli::explanation_text({.word = word}), "and more than one, or all"),
               word);
  }
}

BOOST_AUTO_TEST_CASE(reasons_of_runtimes_have_their_entries_in_order) {
  for (std::size_t i = 1; i < std::size(rw::runtime_reasons); ++i) {
    const auto word = to_string(static_cast<rw::status_reason>(i));
    BOOST_TEST(rw::runtime_reasons[i].word == word);
    BOOST_TEST(rw::explain(word) == &rw::runtime_reasons[i]);
  }
  BOOST_TEST(rw::explain("GatewayUnreachable") == &std::end(rw::runtime_reasons)[-1]);
}

BOOST_AUTO_TEST_CASE(event_with_its_kind_before_the_reason_is_explained_as_the_reason) {
  BOOST_TEST(rw::explain("WatcherGatewayNotFound") == rw::explain("GatewayNotFound"));
  BOOST_TEST(rw::explain("RolloutCompleted") == rw::explain("Completed"));
  BOOST_TEST(rw::explain("RolloutPaused") != nullptr);
  BOOST_TEST(rw::explain("Watcher") == nullptr);
}

BOOST_AUTO_TEST_CASE(unknown_reason_fails_with_the_nearest_ones) {
  BOOST_TEST(error_of("EventWait") ==
             "there is no reason or alert EventWait; did you mean EventsWait?");
  BOOST_TEST(contains(error_of("Webhook"), "did you mean Webhook"));
  BOOST_TEST(error_of("nope") ==
             "there is no reason or alert nope: runtime-watcher explain lists them");
  BOOST_TEST(error_of("Nonsense") ==
             "there is no reason or alert Nonsense: runtime-watcher explain lists them");
}

BOOST_AUTO_TEST_CASE(list_has_each_reason_and_alert_in_one_line) {
  const auto text = rw::cli::explanation_text({});
  const auto all = json::parse(rw::cli::explanation_text({.format = "json"})).as_array();
  BOOST_TEST(all.size() > 200);
  for (const auto& each : all) {
    BOOST_TEST(contains(text, "\n  " + std::string(each.at("name").as_string()) + " "));
  }
  const auto entry = json::parse(rw::cli::explanation_text({.word = "NoPods", .format = "json"}));
  BOOST_TEST(entry.at("kind") == "reason");
  BOOST_TEST(entry.at("commands").at(1) == "runtime-watcher doctor");
}

BOOST_AUTO_TEST_SUITE_END()
