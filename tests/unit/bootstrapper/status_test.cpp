// What a RuntimeBootstrapper's status says, and that it is only written when that changes.

#include "reactors/bootstrapper/status.hpp"

#include "k8s/types.hpp"
#include "reactors/bootstrapper/progress.hpp"
#include "reactors/bootstrapper/resource.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(status)

namespace json = boost::json;
using bootstrapper::situation;
using bootstrapper::sync_report;
using namespace std::chrono_literals;

namespace {

const std::chrono::system_clock::time_point noon{std::chrono::hours(24 * 365 * 56 + 12)};
const std::string digest_a(64, 'a');
const std::string digest_b(64, 'b');

json::value deployment(const std::string& version, int ready) {
  return {{"metadata", {{"generation", 2}, {"labels", {{"app.kubernetes.io/version", version}}}}},
          {"status",
           {{"observedGeneration", 2},
            {"replicas", 1},
            {"updatedReplicas", 1},
            {"readyReplicas", ready}}}};
}

situation in_place() {
  situation out{.mode = bootstrapper_mode::direct};
  out.report = sync_report{.digest = digest_a,
                           .version = "1.0.0",
                           .wanted = digest_a,
                           .deployment = deployment("1.0.0", 1)};
  out.sources = {{bootstrapper::part::configuration, "ConfigMap kcp-system/a", "7", digest_b}};
  return out;
}

json::value resource(json::value status = json::object()) {
  return {{"metadata", {{"name", "a"}, {"generation", 3}}}, {"status", std::move(status)}};
}

json::value told(const situation& seen, json::value before = json::object(),
                 std::chrono::system_clock::time_point now = noon) {
  const auto was = resource(std::move(before));
  auto next = bootstrapper::next_status(was, seen, now);
  return next ? *next : was.at("status");
}

/// "True Ready".
std::string is(const json::value& status, const std::string& condition) {
  const auto found = k8s::find_condition(resource(status), condition);
  return found ? found->status + " " + found->reason : "none";
}

std::string text(const json::value& status, std::string_view name) {
  return std::string(k8s::find_string(status, {name}));
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_a_runtime_calls_its_version_is_bounded) {
  auto seen = in_place();
  seen.report->version = {};
  seen.report->deployment = deployment(std::string(100'000, 'v'), 1);
  const auto status = told(seen);
  BOOST_TEST(text(status, "installedVersion") == std::string(63, 'v'));
}

BOOST_AUTO_TEST_CASE(a_runtime_that_has_what_is_wanted_is_ready) {
  const auto status = told(in_place());
  BOOST_TEST(text(status, "state") == "Ready");
  BOOST_TEST(text(status, "installedVersion") == "1.0.0");
  BOOST_TEST(text(status, "digest") == digest_a.substr(0, 16));
  BOOST_TEST(status.at("observedGeneration").as_int64() == 3);
  BOOST_TEST(is(status, "Ready") == "True Ready");
  BOOST_TEST(is(status, "Compatible") == "True Validated");
  BOOST_TEST(is(status, "ConfigurationSynced") == "True Synced");
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") == "True RuntimeBootstrapperConfigured");
  BOOST_TEST(is(status, "InStep") == "none");
  for (const auto& one : status.at("conditions").as_array()) {
    BOOST_TEST(text(one, "message") != "", text(one, "type"));
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_written_when_nothing_changed) {
  const auto status = told(in_place());
  BOOST_TEST(!bootstrapper::next_status(resource(status), in_place(), noon + 1h).has_value());
  auto newer = in_place();
  newer.sources.front().resource_version = "8";
  const auto next = told(newer, status, noon + 1h);
  BOOST_TEST(text(next.at("resources").at(0), "lastSyncTime") == k8s::format_time(noon + 1h));
  BOOST_TEST(text(next, "lastSyncTime") == k8s::format_time(noon));
}

BOOST_AUTO_TEST_CASE(the_installation_goes_through_its_states) {
  auto seen = in_place();
  seen.report->deployment = nullptr;
  BOOST_TEST(text(told(seen), "state") == "NotStarted");
  seen.report->deployment = deployment("1.0.0", 0);
  auto status = told(seen);
  BOOST_TEST(text(status, "state") == "InProgress");
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") ==
             "False RuntimeBootstrapperInstallationInProgress");
  k8s::set_condition(seen.report->deployment,
                     {"Progressing", "False", "ProgressDeadlineExceeded", "", 0}, noon);
  status = told(seen);
  BOOST_TEST(text(status, "state") == "Failed");
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") ==
             "False RuntimeBootstrapperInstallationFailed");
  status = told(seen, {{"installedVersion", "0.9.0"}});
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") == "False RuntimeBootstrapperUpgradeFailed");
  seen.report->deployment = deployment("0.9.0", 1);
  status = told(seen, {{"installedVersion", "0.9.0"}});
  BOOST_TEST(text(status, "state") == "UpgradeNeeded");
  BOOST_TEST(text(status, "installedVersion") == "0.9.0");
}

BOOST_AUTO_TEST_CASE(what_is_refused_is_told_and_what_is_in_place_stays) {
  const auto before = told(in_place());
  auto seen = in_place();
  seen.report->wanted = {};
  seen.report->refused = seen.invalid = "Secret a, type: is wrong";
  const auto status = told(seen, before, noon + 1h);
  BOOST_TEST(text(status, "lastError") == "Secret a, type: is wrong");
  BOOST_TEST(is(status, "Compatible") == "False Invalid");
  BOOST_TEST(is(status, "ConfigurationSynced") == "False FormerSetKept");
  BOOST_TEST(is(status, "Ready") == "False Refused");
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") ==
             "False RuntimeBootstrapperConfigurationFailed");
  BOOST_TEST(text(status, "digest") == digest_a.substr(0, 16));
  BOOST_TEST(text(status, "lastSyncTime") == k8s::format_time(noon));
  BOOST_TEST(status.at("resources") == before.at("resources"));
  // And when it is mended.
  BOOST_TEST(!told(in_place(), status, noon + 2h).as_object().contains("lastError"));
}

BOOST_AUTO_TEST_CASE(what_the_runtime_refuses_is_told_apart_from_what_is_invalid) {
  auto seen = in_place();
  seen.report->wanted = digest_b;
  seen.report->refused = "the runtime would not take Deployment a/b";
  BOOST_TEST(is(told(seen), "Compatible") == "False RefusedByRuntime");
  seen.report->rolled_back = true;
  const auto status = told(seen, {{"installedVersion", "0.9.0"}});
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") == "False RuntimeBootstrapperUpgradeFailed");
}

BOOST_AUTO_TEST_CASE(shadow_tells_what_would_be_written) {
  auto seen = in_place();
  seen.mode = bootstrapper_mode::shadow;
  seen.report->digest = {};
  seen.report->differences = {"ConfigMap a/b: data.c"};
  auto status = told(seen);
  BOOST_TEST(is(status, "InStep") == "False WouldWrite");
  BOOST_TEST(is(status, "ConfigurationSynced") == "False Shadow");
  seen.report->differences.clear();
  status = told(seen, status);
  BOOST_TEST(is(status, "InStep") == "True NothingToWrite");
  BOOST_TEST(is(told(in_place(), status), "InStep") == "none");
}

BOOST_AUTO_TEST_CASE(a_runtime_that_does_not_answer_is_not_known) {
  const auto before = told(in_place());
  situation seen{.mode = bootstrapper_mode::direct, .failed = "the runtime does not answer: x"};
  auto status = told(seen, before);
  BOOST_TEST(is(status, "Ready") == "Unknown RuntimeUnreachable");
  BOOST_TEST(is(status, "RuntimeBootstrapperReady") == "Unknown RuntimeBootstrapperStatusUnknown");
  BOOST_TEST(text(status, "digest") == digest_a.substr(0, 16));
  seen.deleting = true;
  status = told(seen, before);
  BOOST_TEST(text(status, "state") == "Deleting");
}

BOOST_AUTO_TEST_CASE(a_spec_is_read_with_what_it_leaves_out) {
  bootstrapper::problems wrong;
  json::value object{{"metadata", {{"name", "a"}, {"namespace", "kcp-system"}}},
                     {"spec", {{"runtimeRef", {{"name", "r"}}}}}};
  auto view = bootstrapper::read_resource(object, {}, wrong);
  BOOST_TEST(wrong.empty());
  BOOST_TEST(view.configuration == "rt-bootstrapper-config");
  BOOST_TEST(view.manifests == "runtime-bootstrapper-manifests");
  BOOST_TEST(view.manifests_key == "manifests.yaml");
  BOOST_TEST(view.pull_secret == "");
  BOOST_TEST(view.to.pull_secret == "registry-credentials");
  BOOST_TEST(!view.remove_with_source);
  object.at("spec") = {{"runtimeRef", json::object()},
                       {"manifests", {{"inline", "x"}}},
                       {"target", {{"namespace", "Not"}}},
                       {"deletionPolicy", "remove"}};
  view = bootstrapper::read_resource(object, {}, wrong);
  BOOST_TEST(view.manifests == "");
  BOOST_TEST(view.inline_manifests == "x");
  BOOST_TEST(view.remove_with_source);
  BOOST_TEST_REQUIRE(wrong.size() == 2U);
  BOOST_TEST(wrong[0].message() == "spec.runtimeRef: names neither a Runtime nor a Kyma");
  BOOST_TEST(wrong[1].where == "spec.target.namespace");
}

BOOST_AUTO_TEST_CASE(progress_counts_who_has_it_and_since_when_the_last_one_waits) {
  core::metrics numbers;
  bootstrapper::progress all(numbers);
  const k8s::object_key a{"n", "a"};
  const k8s::object_key b{"n", "b"};
  all.expect(a, noon);
  all.expect(b, noon + 1s);
  BOOST_TEST(all.managed() == 2U);
  BOOST_TEST(all.currents() == 0U);
  all.current(a);
  BOOST_TEST((all.outdated_since() == noon + 1s));
  all.expect(a, noon + 2s);
  BOOST_TEST(all.currents() == 1U);
  all.outdated(b, noon + 3s);
  BOOST_TEST((all.outdated_since() == noon + 1s));
  all.leave(b);
  BOOST_TEST(all.managed() == 1U);
  BOOST_TEST(!all.outdated_since().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
