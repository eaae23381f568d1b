// The words of `runtime-watcher rollout`.

#include "rw/reactors/cli/rollout_text.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

namespace rw::rollout_text_test {
BOOST_AUTO_TEST_SUITE(rollout_text)

namespace json = boost::json;
using namespace rw::cli;
using runtime_rollout::phase;
using runtime_rollout::rollout_decision;
using enum rollout_report::outcome;

namespace {

const auto start = *k8s::parse_rfc3339("2026-11-21T09:00:00Z");

/// A RuntimeRollout with the status that the controller would write.
json::value with_status(rollout_decision decided, json::value spec = json::object()) {
  auto out = runtime_rollout::make_rollout("bootstrapper");
  for (const auto& [name, value] : spec.as_object()) out.at("spec").as_object()[name] = value;
  out.at("metadata").as_object()["generation"] = 2;
  out.as_object()["status"] = *runtime_rollout::next_status(out, decided, {}, start);
  return out;
}

rollout_decision at(phase of, std::size_t updated, std::size_t aside = 0) {
  rollout_decision out;
  out.next.content = "0123456789abcdef0123456789abcdef";
  out.next.at = of;
  out.next.sources = {{"ConfigMap", "rt-bootstrapper-config", "20"}};
  out.now = {.total = 5, .updated = updated, .ready = updated, .aside = aside};
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(status_has_the_words_of_kubectl) {
  const auto check = [](const json::value& rollout, rollout_report::outcome is,
                        std::string_view line) {
    const auto report = report_of(rollout, {});
    BOOST_TEST((report.is == is), line);
    BOOST_TEST(report.line == line);
  };
  check(with_status(at(phase::completed, 5)), done,
        "rollout \"bootstrapper\" successfully rolled out");
  check(with_status(at(phase::completed, 5), {{"paused", true}}), done,
        "rollout \"bootstrapper\" successfully rolled out; it is paused for what comes next");
  auto accepted = at(phase::completed, 5);
  accepted.now.failed = 2;
  check(with_status(accepted), done,
        "rollout \"bootstrapper\" successfully rolled out; accepted: 2 that failed");
  check(with_status(at(phase::waves, 3)), waiting,
        "Waiting for rollout \"bootstrapper\" to finish: 3 of 5 runtimes have been updated...");
  check(with_status(at(phase::completed, 3, 2)), failed,
        "rollout \"bootstrapper\" is partial: 3 of 5 runtimes have been updated, 2 set aside");
  auto fails = at(phase::completed, 3, 1);
  fails.now.failed = 1;
  fails.message = "skr-1: crashes";
  check(with_status(fails), failed,
        "rollout \"bootstrapper\" is partial: 3 of 5 runtimes have been updated, 1 set aside, "
        "1 failed: skr-1: crashes");
  auto catches_up = at(phase::completed, 3, 1);
  catches_up.now.updating = 1;
  catches_up.catches_up = true;
  check(with_status(catches_up), waiting,
        "Waiting for rollout \"bootstrapper\" to finish: 3 of 5 runtimes have been updated, those "
        "that respond and did not get the content in their turn get it now, each within 5 "
        "minutes...");
  auto stalled = at(phase::paused, 1);
  stalled.next.reason = "CanaryFailed";
  stalled.message = "skr-1: crashes";
  check(with_status(stalled), failed,
        "rollout \"bootstrapper\" is stalled, CanaryFailed; 1 of 5 runtimes have been updated: "
        "skr-1: crashes");
  auto in_step = at(phase::waves, 3);
  in_step.next.steps = {{.of = {.runtimes = "1"}}, {.of = {.runtimes = "50%"}}};
  in_step.next.step = 1;
  check(with_status(in_step), waiting,
        "Waiting for rollout \"bootstrapper\" to finish: step 2 of 2 (50%), 3 of 5 runtimes have "
        "been updated...");
  in_step.next.step = 2;
  check(with_status(in_step), waiting,
        "Waiting for rollout \"bootstrapper\" to finish: 3 of 5 runtimes have been updated...");
  auto paused = at(phase::paused, 1);
  paused.next.reason = "ByHand";
  check(with_status(paused, {{"paused", true}}), waiting,
        "Waiting for rollout \"bootstrapper\" to finish: 1 of 5 runtimes have been updated; it is "
        "paused...");
}

BOOST_AUTO_TEST_CASE(status_names_the_next_step_where_it_failed) {
  auto stalled = at(phase::paused, 1);
  stalled.next.reason = "CanaryFailed";
  const auto rollout = with_status(stalled);
  BOOST_TEST(report_of(rollout, {}).next == fault_of_rollout(rollout)->next);
  BOOST_TEST(report_of(rollout, {}).next.ends_with("runtime-watcher rollout resume bootstrapper"));
  BOOST_TEST(report_of(with_status(at(phase::completed, 3, 2)), {}).next ==
             "see the messages: runtime-watcher status -o wide");
  BOOST_TEST(report_of(with_status(at(phase::waves, 3)), {}).next.empty());
}

BOOST_AUTO_TEST_CASE(status_names_the_sources_that_are_invalid) {
  const std::string invalid = "; 18 RuntimeBootstrappers are not Compatible: Invalid: not JSON";
  auto decided = at(phase::canary, 0);
  decided.now.total = 0;
  decided.message = "no runtime takes part";
  BOOST_TEST(report_of(with_status(decided), {}, invalid).line ==
             "Waiting for rollout \"bootstrapper\" to finish: 0 of 0 runtimes have been updated: "
             "no runtime takes part; 18 RuntimeBootstrappers are not "
             "Compatible: Invalid: not JSON...");
  decided.next.at = phase::completed;
  BOOST_TEST(report_of(with_status(decided), {}, invalid).line ==
             "rollout \"bootstrapper\" successfully rolled out; no runtime takes part" + invalid);
}

BOOST_AUTO_TEST_CASE(held_note_has_the_commands_that_resume_and_follow_the_sources) {
  BOOST_TEST(held_note(with_status(at(phase::completed, 5))).empty());
  BOOST_TEST(held_note(with_status(at(phase::completed, 5), {{"paused", true}})) ==
             ", and paused for what comes next (runtime-watcher rollout resume bootstrapper)");
  const auto pinned = with_status(at(phase::completed, 5), {{"revision", "0123456789abcdef0"}});
  BOOST_TEST(
      held_note(pinned) ==
      ", and its revision is pinned (runtime-watcher rollout undo bootstrapper --to-sources)");
  BOOST_TEST(report_of(pinned, {}).line ==
             "rollout \"bootstrapper\" successfully rolled out; revision 0123456789abcdef is "
             "pinned: newer "
             "sources will not be rolled out, until runtime-watcher rollout undo bootstrapper "
             "--to-sources");
}

BOOST_AUTO_TEST_CASE(absent_rollout_is_told_with_what_creates_it) {
  BOOST_TEST(when_created("") == "the manager creates it while it leads");
  BOOST_TEST(when_created("watcher") ==
             "the manager creates it while it leads, without --shadow and --rollout-none");
  BOOST_TEST(when_created("bootstrapper") ==
             "the manager creates it while it leads, its --bootstrapper-mode is not off, and it "
             "has no --rollout-none");
}

BOOST_AUTO_TEST_CASE(status_waits_for_the_spec_and_for_the_sources) {
  auto rollout = with_status(at(phase::completed, 5));
  const auto is = [&](const char* source) {
    return report_of(rollout, {*parse_source_version(source)}).is;
  };
  BOOST_TEST((is("ConfigMap/rt-bootstrapper-config=20") == done));
  BOOST_TEST((is("ConfigMap/rt-bootstrapper-config=9") == done));
  BOOST_TEST((is("ConfigMap/rt-bootstrapper-config=21") == waiting));
  BOOST_TEST((is("ConfigMap/rt-bootstrapper-config=x") == waiting));
  BOOST_TEST((is("ConfigMap/other=20") == waiting));
  rollout.at("metadata").as_object()["generation"] = 3;
  BOOST_TEST((report_of(rollout, {}).is == waiting));
  for (const auto* const wrong : {"", "a", "a/b", "/b=1", "a/=1", "a/b=", "a=b/c"}) {
    BOOST_TEST(!parse_source_version(wrong).has_value(), wrong);
  }
}

BOOST_AUTO_TEST_CASE(pause_and_resume_are_refused_where_they_change_nothing) {
  std::string error;
  const auto running = with_status(at(phase::waves, 1));
  BOOST_TEST((pause_change(running, error) == json::value{{"spec", {{"paused", true}}}}));
  BOOST_TEST(error.empty());
  BOOST_TEST(resume_change(running, "1", error).is_null());
  BOOST_TEST(error == "runtimerollouts.operator.kyma-project.io \"bootstrapper\" is not paused");
  error.clear();
  auto by_hand = at(phase::paused, 1);
  by_hand.next.reason = "ByHand";
  const auto paused = with_status(by_hand, {{"paused", true}});
  BOOST_TEST(pause_change(paused, error).is_null());
  BOOST_TEST(error ==
             "runtimerollouts.operator.kyma-project.io \"bootstrapper\" is already paused");
  error.clear();
  BOOST_TEST((resume_change(paused, "1", error) == json::value{{"spec", {{"paused", false}}}}));
  auto failures = at(phase::paused, 1);
  failures.next.reason = "FailureBudgetExhausted";
  BOOST_TEST((resume_change(with_status(failures, {{"paused", true}}), "1", error) ==
              json::value{{"spec", {{"paused", false}, {"resume", "1"}}}}));
  BOOST_TEST((resume_change(with_status(failures), "1", error) ==
              json::value{{"spec", {{"resume", "1"}}}}));
  BOOST_TEST(error.empty());
}

BOOST_AUTO_TEST_CASE(promotion_ends_the_bake_of_the_present_step_once) {
  auto decided = at(phase::waves, 1);
  decided.next.steps = {{.of = {.runtimes = "1"}, .below = 7}, {.of = {.runtimes = "50%"}}};
  decided.next.step = 1;
  decided.next.promoted = "1";
  const json::object promoted_once{{"promote", "1"}};
  const auto fails = [](const json::value& rollout, const std::string& with) {
    std::string error;
    BOOST_TEST(promote_change(rollout, "2", error).is_null());
    BOOST_TEST(error == with);
  };
  std::string error;
  BOOST_TEST((promote_change(with_status(decided, promoted_once), "2", error) ==
              json::value{{"spec", {{"promote", "2"}}}}));
  BOOST_TEST(error.empty(), error);
  const std::string name = "runtimerollouts.operator.kyma-project.io \"bootstrapper\"";
  const auto already = "the bake of step 2 of " + name + " has been ended already";
  fails(with_status(decided, {{"promote", "asked, not yet done"}}), already);
  const auto resume = ": resume it first: runtime-watcher rollout resume bootstrapper";
  fails(with_status(decided, {{"promote", "1"}, {"paused", true}}), name + " is paused" + resume);
  auto stopped = decided;
  stopped.next.at = phase::paused;
  stopped.next.reason = "CanaryFailed";
  fails(with_status(stopped, promoted_once), name + " is paused (CanaryFailed)" + resume);
  stopped.next.reason = "PrometheusNotConfigured";
  fails(with_status(stopped, promoted_once),
        name +
            " is paused (PrometheusNotConfigured): runtime-watcher explain "
            "PrometheusNotConfigured");
  decided.next.bake_ended = true;
  fails(with_status(decided, promoted_once), already);
  decided.next.step = 2;
  fails(with_status(decided, promoted_once), name + " is in no step");
}

BOOST_AUTO_TEST_CASE(undo_pins_a_revision_of_the_history) {
  auto decided = at(phase::waves, 1);
  decided.next.content = "cccc1";
  decided.next.history = {{.content = "aaaa1", .outcome = "Completed", .kept = true},
                          {.content = "bbbb1", .outcome = "Completed", .kept = true},
                          {.content = "bbbb2", .outcome = "Superseded", .kept = true},
                          {.content = "bbbb3", .outcome = "Completed"},
                          {.content = "d1", .outcome = "Completed", .kept = true},
                          {.content = "cccc1", .outcome = "Waves", .kept = true}};
  auto rollout = with_status(decided);
  const auto pins = [&](const char* revision, const char* content) {
    std::string error;
    BOOST_TEST(
        (undo_change(rollout, revision, error) == json::value{{"spec", {{"revision", content}}}}),
        revision);
    BOOST_TEST(error.empty(), error);
  };
  const auto fails = [&](const char* revision, const std::string& with) {
    std::string error;
    BOOST_TEST(undo_change(rollout, revision, error).is_null(), revision);
    BOOST_TEST(error == with);
  };
  pins("", "d1");
  pins("aaaa", "aaaa1");
  pins("bbbb2", "bbbb2");
  pins("d1", "d1");  // the whole
  fails("bbbb", "revision bbbb is not unique in history");
  fails("bbbb3", "the content of revision bbbb3 is not kept");
  fails("dddd",
        "unable to find specified revision dddd in history: see runtime-watcher rollout history "
        "bootstrapper");
  for (const std::string each : {"aaa", "ccc", "d", "x"}) {  // of the present content, too
    fails(each.c_str(), "revision " + each +
                            " is too short: revisions here are digests, of which at least 4 "
                            "characters are needed: see runtime-watcher rollout history "
                            "bootstrapper");
  }
  fails("3",
        "revision 3 is a number, as kubectl has them, and revisions here are digests, of which at "
        "least 4 characters are needed: see runtime-watcher rollout history bootstrapper");
  std::string error;
  BOOST_TEST((undo_change(rollout, "cccc", error) == json::object()));  // as kubectl's, no failure
  BOOST_TEST(error.empty(), error);
  decided.next.ahead = 1;
  rollout = with_status(decided);
  fails("", "KimWrites: another writer applies the sources, and would undo it; edit them");
  decided.next = {.content = "cccc1", .at = phase::waves};
  rollout = with_status(decided);
  fails("",
        "no rollout history found for runtimerollouts.operator.kyma-project.io \"bootstrapper\"");
  decided.next.history = {{.content = "cccc1", .outcome = "Completed", .kept = true}};
  rollout = with_status(decided);
  fails("",
        "no revision to go back to for runtimerollouts.operator.kyma-project.io \"bootstrapper\": "
        "its history has no other content that was rolled out and is kept");
}

BOOST_AUTO_TEST_CASE(history_is_a_table) {
  auto decided = at(phase::waves, 1);
  decided.next.history = {
      {"aaaaaaaaaaaaaaaaaaaa", "2026-11-21T09:00:00Z", "2026-11-21T09:01:00Z", "Completed", {}},
      {"bbbbbbbbbbbbbbbbbbbb", "2026-11-21T10:00:00Z", "", "Waves", decided.next.sources}};
  BOOST_TEST(history_of(with_status(decided)) ==
             "runtimerollout.operator.kyma-project.io/bootstrapper\n"
             "REVISION          BEGAN                 ENDED                 OUTCOME    SOURCES\n"
             "aaaaaaaaaaaaaaaa  2026-11-21T09:00:00Z  2026-11-21T09:01:00Z  Completed  <none>\n"
             "bbbbbbbbbbbbbbbb  2026-11-21T10:00:00Z  <none>                Waves      "
             "ConfigMap/rt-bootstrapper-config=20\n");
  const auto document = history_document(with_status(decided));
  BOOST_TEST(document.at("name") == "bootstrapper");
  BOOST_TEST(document.at("history").at(1).at("content") == "bbbbbbbbbbbbbbbbbbbb");
}

BOOST_AUTO_TEST_CASE(status_is_one_document_with_its_outcome) {
  auto decided = at(phase::completed, 3, 2);
  decided.next.history = {{.content = "aa1", .outcome = "Partial"}};
  const auto rollout = with_status(decided);
  const auto document = report_document(rollout, report_of(rollout, {}));
  BOOST_TEST(document.at("name") == "bootstrapper");
  BOOST_TEST(document.at("outcome") == "failed");
  BOOST_TEST(document.at("message").as_string().starts_with("rollout \"bootstrapper\" is partial"));
  BOOST_TEST(document.at("fix") == "see the messages: runtime-watcher status -o wide");
  BOOST_TEST(document.at("status").at("updated") == 3);
  BOOST_TEST(!document.at("status").as_object().contains("history"));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::rollout_text_test
