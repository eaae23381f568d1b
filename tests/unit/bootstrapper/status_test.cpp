// The status of a RuntimeBootstrapper, and that it is only written when it changes.

#include "rw/reactors/bootstrapper/status.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(status)

namespace json = boost::json;
using bootstrapper::action;
using bootstrapper::digests_of;
using bootstrapper::facts_of;
using bootstrapper::rejection;
using bootstrapper::status_input;
using bootstrapper::unit;
using namespace std::chrono_literals;

namespace {

const std::chrono::system_clock::time_point noon{std::chrono::hours(24 * 365 * 56 + 12)};

json::value deployment(const std::string& version, int ready) {
  return {{"metadata", {{"generation", 2}, {"labels", {{"app.kubernetes.io/version", version}}}}},
          {"status",
           {{"observedGeneration", 2},
            {"replicas", 1},
            {"updatedReplicas", 1},
            {"readyReplicas", ready}}}};
}

/// Both units in place, the Deployment ready.
status_input in_place() {
  status_input out{.mode = bootstrapper_mode::direct, .decided = {.next = action::sync}};
  out.observed = true;
  out.state.units[0].desired = out.state.units[0].applied = "aa";
  out.state.units[1].desired = out.state.units[1].applied = "bb";
  out.state.units[1].version = "1.0.0";
  out.state.deployment = deployment("1.0.0", 1);
  out.state.objects = {{unit::bootstrapper, {"apps", "v1", "Deployment"}, {"kyma-system", "d"}},
                       {unit::bootstrapper, {"", "v1", "Namespace"}, {{}, "n"}}};
  return out;
}

status_input unobserved(action next, const std::string& reason, const std::string& message) {
  return {.mode = bootstrapper_mode::direct, .decided = {next, reason, message}};
}

json::value resource(json::value status = json::object()) {
  return {{"metadata", {{"name", "a"}, {"generation", 3}}}, {"status", std::move(status)}};
}

json::value next(const status_input& input, json::value before = json::object(),
                 std::chrono::system_clock::time_point now = noon) {
  const auto was = resource(std::move(before));
  auto out = bootstrapper::next_status(was, input, now);
  return out ? *out : was.at("status");
}

/// "True Ready".
std::string is(const json::value& status, const std::string& condition) {
  const auto found = k8s::find_condition(resource(status), condition);
  return found ? found->status + " " + found->reason : "none";
}

std::string text(const json::value& status, std::string_view name) {
  return std::string(k8s::find_string(status, {name}));
}

bootstrapper::revision with_contents(const std::string& digest) {
  bootstrapper::revision out{.digest = digest};
  out.contents[static_cast<std::size_t>(source::pull_secret)] =
      make_content(json::value("of " + digest));
  return out;
}

/// As a pass over a runtime leaves it.
json::value status_of(std::string_view state, std::string_view phase,
                      std::string_view message = {}) {
  json::object unit{{"name", "bootstrapper"},
                    {"phase", phase},
                    {"digest", "d1"},
                    {"desiredDigest", "d2"},
                    {"lastAppliedTime", "2026-11-22T10:00:00Z"}};
  if (!message.empty()) unit["message"] = message;
  return {{"status",
           {{"state", state},
            {"units", json::array{{{"name", "credentials"}, {"digest", "c"}}, std::move(unit)}},
            {"conditions", json::array{{{"type", "Ready"},
                                        {"status", "False"},
                                        {"lastTransitionTime", "2026-11-22T10:00:09Z"}},
                                       {{"type", "Installed"},
                                        {"status", "False"},
                                        {"message", "it crashes"},
                                        {"lastTransitionTime", "2026-11-22T10:00:05Z"}}}}}}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(version_of_a_runtime_is_bounded) {
  auto input = in_place();
  input.state.units[1].version = {};
  input.state.deployment = deployment(std::string(100'000, 'v'), 1);
  BOOST_TEST(text(next(input), "installedVersion") == std::string(63, 'v'));
}

BOOST_AUTO_TEST_CASE(runtime_whose_webhook_does_not_mutate_is_not_ready) {
  auto input = in_place();
  input.state.proof.error = "a Pod does not get the pull Secret";
  const auto status = next(input);
  BOOST_TEST(text(status, "state") == "InProgress");
  BOOST_TEST(is(status, "Installed") == "False NotMutating");
  BOOST_TEST(is(status, "Ready") == "False NotMutating");
  BOOST_TEST(is(status, "ConfigurationSynced") == "True Synced");
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") ==
             "False RuntimeBootstrapperInstallationInProgress");
  // A roll-out waits for it, and says why.
  const auto facts = facts_of(resource(status));
  BOOST_TEST((facts.health == content_health::progressing));
  BOOST_TEST(facts.error == input.state.proof.error);
}

BOOST_AUTO_TEST_CASE(runtime_says_why_it_is_not_known_whether_its_webhook_mutates) {
  auto input = in_place();
  input.state.proof.skipped = "no right";
  const auto status = next(input);
  BOOST_TEST(is(status, "Ready") == "True Ready");
  const auto installed = k8s::find_condition(resource(status), "Installed");
  BOOST_TEST(installed->message == "version 1.0.0; whether it mutates pods is not known: no right");
}

BOOST_AUTO_TEST_CASE(runtime_with_both_units_in_place_is_ready) {
  const auto status = next(in_place());
  BOOST_TEST(text(status, "state") == "Ready");
  BOOST_TEST(text(status, "installedVersion") == "1.0.0");
  BOOST_TEST(status.at("observedGeneration").as_int64() == 3);
  BOOST_TEST(is(status, "Ready") == "True Ready");
  BOOST_TEST(is(status, "Compatible") == "True Validated");
  BOOST_TEST(is(status, "ConfigurationSynced") == "True Synced");
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") == "True RuntimeBootstrapperConfigured");
  BOOST_TEST(is(status, "InStep") == "none");
  for (const auto& each : status.at("conditions").as_array()) {
    BOOST_TEST(text(each, "message") != "", text(each, "type"));
  }
  const auto state = bootstrapper::read_state(resource(status));
  BOOST_TEST((state.objects == in_place().state.objects));
  BOOST_TEST(state.units[0].in_place == "aa");
  BOOST_TEST(state.units[1].in_place == "bb");
}

BOOST_AUTO_TEST_CASE(status_is_not_written_when_nothing_changed) {
  const auto status = next(in_place());
  BOOST_TEST(!bootstrapper::next_status(resource(status), in_place(), noon + 1h).has_value());
  auto newer = in_place();
  newer.state.units[0].desired = newer.state.units[0].applied = "cc";
  const auto after = next(newer, status, noon + 1h);
  BOOST_TEST(text(after.at("units").at(0), "lastAppliedTime") == k8s::format_time(noon + 1h));
  BOOST_TEST(text(after.at("units").at(1), "lastAppliedTime") == k8s::format_time(noon));
}

BOOST_AUTO_TEST_CASE(installation_goes_through_its_states) {
  auto input = in_place();
  input.state.deployment = nullptr;
  BOOST_TEST(text(next(input), "state") == "NotStarted");
  input.state.deployment = deployment("1.0.0", 0);
  auto status = next(input);
  BOOST_TEST(text(status, "state") == "InProgress");
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") ==
             "False RuntimeBootstrapperInstallationInProgress");
  k8s::set_condition(input.state.deployment,
                     {"Progressing", "False", "ProgressDeadlineExceeded", "", 0}, noon);
  status = next(input);
  BOOST_TEST(text(status, "state") == "Failed");
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") ==
             "False RuntimeBootstrapperInstallationFailed");
  status = next(input, {{"installedVersion", "0.9.0"}});
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") == "False RuntimeBootstrapperUpgradeFailed");
  input.state.deployment = deployment("0.9.0", 1);
  status = next(input, {{"installedVersion", "0.9.0"}});
  BOOST_TEST(text(status, "state") == "UpgradeNeeded");
  BOOST_TEST(text(status, "installedVersion") == "0.9.0");
}

BOOST_AUTO_TEST_CASE(invalid_unit_keeps_its_last_good_revision_and_names_the_field) {
  const auto before = next(in_place());
  auto input = in_place();
  input.state.units[1].desired.clear();
  input.state.units[1].invalid = "ConfigMap a, data: is wrong";
  const auto status = next(input, before, noon + 1h);
  BOOST_TEST(text(status, "lastError") == "ConfigMap a, data: is wrong");
  BOOST_TEST(is(status, "Compatible") == "False Invalid");
  BOOST_TEST(is(status, "ConfigurationSynced") == "False LastGoodKept");
  BOOST_TEST(is(status, "Ready") == "False Rejected");
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") ==
             "False RuntimeBootstrapperConfigurationFailed");
  const auto& units = status.at("units");
  BOOST_TEST(text(units.at(0), "phase") == "Applied");
  BOOST_TEST(text(units.at(1), "phase") == "LastGood");
  BOOST_TEST(text(units.at(1), "digest") == "bb");
  BOOST_TEST(text(units.at(1), "message") == "ConfigMap a, data: is wrong");
  BOOST_TEST(!next(in_place(), status, noon + 2h).as_object().contains("lastError"));
}

BOOST_AUTO_TEST_CASE(rejections_are_told_apart_by_their_reason) {
  auto input = in_place();
  input.state.units[1].desired = "cc";
  for (const auto& [why, reason] :
       {std::pair{rejection::reason::rejected_by_runtime, "RejectedByRuntime"},
        std::pair{rejection::reason::unknown_kind, "UnknownKind"},
        std::pair{rejection::reason::foreign_object, "ForeignObject"}}) {
    input.state.units[1].rejected = {why, "x"};
    BOOST_TEST(is(next(input), "Compatible") == std::string("False ") + reason);
  }
}

BOOST_AUTO_TEST_CASE(half_applied_unit_is_applying) {
  auto input = in_place();
  input.state.units[1].applied = {};
  input.state.units[1].applying = "cc";
  input.state.units[1].failed = k8s::failure{.code = k8s::errc::timed_out, .message = "no answer"};
  const auto status = next(input);
  BOOST_TEST(is(status, "ConfigurationSynced") == "False Applying");
  const auto read = bootstrapper::read_state(resource(status));
  BOOST_TEST(read.at(unit::bootstrapper).in_place == "");
  BOOST_TEST(read.at(unit::bootstrapper).applying == "cc");
  // Nothing was written yet.
  input.state.units[1].applying = {};
  BOOST_TEST(is(next(input), "ConfigurationSynced") == "False NotApplied");
}

/// A repair of what is in place has no mark of its own, beside a newer one that is rejected.
BOOST_AUTO_TEST_CASE(repair_that_the_runtime_cut_short_is_not_a_write_of_the_newest) {
  auto rejecting = in_place();
  auto& before = rejecting.state.units[0];
  before.desired = "cc";
  before.rejected = {rejection::reason::rejected_by_runtime, "x"};
  auto cut = unobserved(action::sync, {}, {});
  cut.failed = "no answer";
  auto& of = cut.state.units[0];
  of.desired = "cc";
  of.changed = true;
  of.applying = "aa";
  of.applying_contents = digests_of(with_contents("aa").contents);
  const auto read =
      bootstrapper::read_state(resource(next(cut, next(rejecting)))).at(unit::credentials);
  BOOST_TEST(read.in_place == "");
  BOOST_TEST(read.applying == "aa");
  BOOST_TEST((read.applying_contents == digests_of(with_contents("aa").contents)));
}

BOOST_AUTO_TEST_CASE(unit_that_failed_before_its_first_write_rejects_nothing) {
  for (const std::string applied : {"", "bb"}) {
    auto input = in_place();
    auto& of = input.state.units[1];
    of.applied = applied;
    of.desired = "cc";
    of.failed = k8s::failure{.code = k8s::errc::timed_out, .message = "no answer"};
    const auto status = next(input);
    BOOST_TEST(k8s::find_condition(resource(status), "ConfigurationSynced")->message ==
               "bootstrapper: no answer");
    BOOST_TEST(facts_of(resource(status)).rejected == "");
    of.failed.reset();
    of.rejected = {rejection::reason::rejected_by_runtime, "x"};
    BOOST_TEST(facts_of(resource(next(input))).rejected == "cc");
  }
}

BOOST_AUTO_TEST_CASE(revision_is_recorded_before_it_is_written) {
  auto input = in_place();
  const auto has = with_contents("aa");
  input.state.units[0].contents = digests_of(has.contents);
  input.state.units[0].revisions = {std::make_shared<bootstrapper::revision>(has)};
  const auto before = resource(next(input));
  const auto& unit_before = before.at("status").at("units").at(0);
  BOOST_TEST(unit_before.at("contents") ==
             json::value({{"pullSecret", digest_of(json::value("of aa"))}}));
  BOOST_TEST(!unit_before.as_object().contains("desiredContents"));
  const auto read_after = [&](const std::string& digest) {
    auto status =
        bootstrapper::applying_status(before, unit::credentials, with_contents(digest), {});
    BOOST_TEST(text(status.at("units").at(0), "phase") == "Applying");
    return bootstrapper::read_state(resource(std::move(status))).at(unit::credentials);
  };
  BOOST_TEST(read_after("aa").in_place == "aa");  // new objects of the one in place
  const auto half = read_after("cc");
  BOOST_TEST(half.in_place == "");
  BOOST_TEST(half.applying == "cc");
  // What it had is known until the new one is in place.
  BOOST_TEST((half.contents == digests_of(has.contents)));
  BOOST_TEST((half.applying_contents == digests_of(with_contents("cc").contents)));
}

BOOST_AUTO_TEST_CASE(waiting_runtime_names_what_it_has_and_what_it_is_to_have) {
  auto input = in_place();
  auto& waiting = input.state.units[0];
  waiting.contents = digests_of(with_contents("aa").contents);
  waiting.withheld = std::make_shared<bootstrapper::revision>(with_contents("bb"));
  const auto unit = next(input).at("units").at(0);
  BOOST_TEST(text(unit, "phase") == "Waiting");
  BOOST_TEST(text(unit.at("contents"), "pullSecret") == digest_of(json::value("of aa")));
  BOOST_TEST(text(unit.at("desiredContents"), "pullSecret") == digest_of(json::value("of bb")));
}

BOOST_AUTO_TEST_CASE(waiting_runtime_whose_content_is_lost_is_not_said_to_be_in_place) {
  auto input = in_place();
  auto& waiting = input.state.units[0];
  waiting.withheld = std::make_shared<bootstrapper::revision>(with_contents("bb"));
  waiting.lost = true;
  const auto status = next(input);
  BOOST_TEST(is(status, "ConfigurationSynced") == "Unknown ContentLost");
  BOOST_TEST(is(status, "Ready") == "False ContentLost");
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") == "Unknown RuntimeBootstrapperStatusUnknown");
}

BOOST_AUTO_TEST_CASE(warnings_are_listed) {
  auto input = in_place();
  input.state.units[0].warnings = {"certificate 2 expired"};
  input.state.units[1].warnings = {"could not be dry-run"};
  const auto status = next(input);
  BOOST_TEST(status.at("warnings").as_array().size() == 2U);
  BOOST_TEST(is(status, "Ready") == "True Ready");
  BOOST_TEST(!next(in_place(), status).as_object().contains("warnings"));
  // Each once, whichever source it is of.
  input.state.units[1].warnings = {"can't be read", "can't be read", "can't be read"};
  BOOST_TEST(next(input).at("warnings").as_array().size() == 2U);
}

BOOST_AUTO_TEST_CASE(shadow_reports_what_would_be_written) {
  auto input = in_place();
  input.mode = bootstrapper_mode::shadow;
  input.state.units[1].differences = {"ConfigMap a/b: data.c"};
  auto status = next(input);
  BOOST_TEST(is(status, "InStep") == "False WouldWrite");
  BOOST_TEST(is(status, "ConfigurationSynced") == "False Shadow");
  BOOST_TEST(!status.as_object().contains("inventory"));
  // Also where both units are still in place from mode direct.
  BOOST_TEST(is(next(input, next(in_place())), "Ready") == "Unknown Shadow");
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") == "Unknown RuntimeBootstrapperStatusUnknown");
  input.state.units[1].differences.clear();
  status = next(input, status);
  BOOST_TEST(is(status, "InStep") == "True NothingToWrite");
  BOOST_TEST(is(next(in_place(), status), "InStep") == "none");
}

BOOST_AUTO_TEST_CASE(conditions_of_an_unobserved_runtime_are_not_true) {
  const auto before = next(in_place());
  auto input = unobserved(action::sync, {}, {});
  input.failed = "the runtime does not answer: x";
  auto status = next(input, before);
  BOOST_TEST(is(status, "Ready") == "Unknown RuntimeUnreachable");
  for (const auto* reason : {"NotInCharge", "RuntimeDeleting", "RuntimeNotFound", "NoAccess"}) {
    status = next(unobserved(action::wait, reason, "x"), before);
    BOOST_TEST(is(status, "Ready") == std::string("Unknown ") + reason);
    BOOST_TEST(is(status, "ConfigurationSynced") == std::string("Unknown ") + reason);
    BOOST_TEST(text(status, "state") == "Unknown");
    BOOST_TEST(is(status, "RuntimeBootstrapperReady") ==
               "Unknown RuntimeBootstrapperStatusUnknown");
  }
  status = next(unobserved(action::wait, "Suspended", "x"), before);
  BOOST_TEST(text(status, "state") == "Suspended");
  status = next(unobserved(action::reject, "Invalid", "spec: x"), before);
  BOOST_TEST(is(status, "Ready") == "False Invalid");
  BOOST_TEST(is(status, "ConfigurationSynced") == "Unknown Invalid");
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") ==
             "False RuntimeBootstrapperConfigurationFailed");
  status = next(unobserved(action::undeploy, "Deleting", {}), before);
  BOOST_TEST(text(status, "state") == "Deleting");
  // What is known to be on it stays known.
  BOOST_TEST(bootstrapper::read_state(resource(status)).objects.size() == 2U);
}

BOOST_AUTO_TEST_CASE(spec_is_read_with_its_defaults) {
  bootstrapper::diagnostics found;
  json::value object{{"metadata", {{"name", "a"}, {"namespace", "kcp-system"}}},
                     {"spec", {{"runtimeRef", {{"name", "a"}}}}}};
  auto view = bootstrapper::read_resource(object, {}, found);
  BOOST_TEST(found.errors.empty());
  BOOST_TEST(view.from.config == "rt-bootstrapper-config");
  BOOST_TEST(view.from.manifests == "runtime-bootstrapper-manifests");
  BOOST_TEST(view.from.pull_secret == "");
  object.at("spec") = {
      {"runtimeRef", {{"name", "b"}}}, {"manifests", {{"inline", "x"}}}, {"adopt", true}};
  view = bootstrapper::read_resource(object, {}, found);
  BOOST_TEST(view.from.manifests == "");
  BOOST_TEST(view.adopt);
  BOOST_TEST_REQUIRE(found.errors.size() == 1U);
  BOOST_TEST(found.errors[0] ==
             "spec.runtimeRef.name: is \"b\", but a RuntimeBootstrapper has the name of its "
             "Runtime");
}

BOOST_AUTO_TEST_CASE(health_is_what_the_status_of_the_runtime_says) {
  BOOST_TEST((facts_of(status_of("Ready", "Applied")).health == content_health::ready));
  BOOST_TEST((facts_of(status_of("InProgress", "Applied")).health == content_health::progressing));
  const auto failed = facts_of(status_of("Failed", "Applied"));
  BOOST_TEST((failed.health == content_health::failed));
  BOOST_TEST(failed.error == "it crashes");
  BOOST_TEST(*failed.in_place == "d1");
  BOOST_TEST(failed.rejected.empty());
  // Since it is so, or since the content came, if that was later.
  BOOST_TEST((failed.since->time_since_epoch() == 1795341605s));
}

BOOST_AUTO_TEST_CASE(runtime_that_was_not_looked_at_is_unreachable) {
  BOOST_TEST((facts_of({{"metadata", json::object()}}).health == content_health::unreachable));
  auto object = status_of("Unknown", "Applied");
  object.at("status").at("conditions").at(0).as_object()["status"] = "Unknown";
  const auto facts = facts_of(object);
  BOOST_TEST((facts.health == content_health::unreachable));
  BOOST_TEST((facts.since->time_since_epoch() == 1795341609s));
  BOOST_TEST(*facts.in_place == "d1");
}

BOOST_AUTO_TEST_CASE(content_is_rejected_where_another_one_is_kept_for_a_reason) {
  const auto rejected = facts_of(status_of("Ready", "LastGood", "unknown kind"));
  BOOST_TEST(rejected.rejected == "d2");
  BOOST_TEST(rejected.error == "unknown kind");
  BOOST_TEST(facts_of(status_of("Ready", "Waiting", "unknown kind")).rejected.empty());
  BOOST_TEST(facts_of(status_of("Ready", "Applying", "it timed out")).rejected.empty());
  // That it does not respond any longer mends nothing.
  auto silent = status_of("Unknown", "LastGood", "unknown kind");
  silent.at("status").at("conditions").at(0).as_object()["status"] = "Unknown";
  BOOST_TEST(facts_of(silent).rejected == "d2");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
