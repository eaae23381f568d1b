// What a RuntimeRollout says.

#include "rw/reactors/runtime_rollout/resource.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/wire_version.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/runtime_rollout/fleet.hpp"
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace rw::runtime_rollout_test {
BOOST_AUTO_TEST_SUITE(resource)

namespace json = boost::json;
using runtime_rollout::read_spec;

namespace {

json::value with_spec(json::value spec) {
  auto out = runtime_rollout::make_rollout("bootstrapper");
  for (auto& [name, value] : spec.as_object()) out.at("spec").as_object()[name] = value;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(spec_overrides_the_defaults) {
  const auto usual = read_spec(runtime_rollout::make_rollout("bootstrapper"), {});
  BOOST_TEST((usual.with.steps == std::vector{runtime_rollout::step{"1%", 10s}}));
  BOOST_TEST(usual.with.canaries_at_once);
  BOOST_TEST((usual.with.failure_budget == runtime_rollout::share{2, true}));
  BOOST_TEST(!usual.paused);
  const auto own = read_spec(with_spec({{"canaries", 3},
                                        {"maxUnavailable", "25%"},
                                        {"failureBudget", 0},
                                        {"paused", true},
                                        {"resume", "now"}}),
                             {});
  BOOST_TEST(own.with.steps.at(0).runtimes == "3");
  BOOST_TEST((own.with.max_unavailable == runtime_rollout::share{25, true}));
  BOOST_TEST((own.with.failure_budget == runtime_rollout::share{0, false}));
  BOOST_TEST(own.paused);
  BOOST_TEST(own.resume == "now");
  BOOST_TEST(own.invalid.empty());
}

BOOST_AUTO_TEST_CASE(canaries_can_be_a_label_selector) {
  const auto spec = read_spec(with_spec({{"canaries", "plan in (trial, free)"}}), {});
  BOOST_TEST(!spec.with.canaries_at_once);
  const json::value trial{{"plan", "trial"}};
  const auto selectors = runtime_rollout::selectors_of(spec.with.steps);
  BOOST_TEST((runtime_rollout::first_match(selectors, &trial) == std::size_t{0}));
  BOOST_TEST(!runtime_rollout::first_match(selectors, nullptr).has_value());
  BOOST_TEST(runtime_rollout::is_canaries("a=b"));
  BOOST_TEST(!runtime_rollout::is_canaries(""));
  BOOST_TEST(!runtime_rollout::is_canaries("a in b"));
}

BOOST_AUTO_TEST_CASE(field_that_cannot_be_used_is_named_and_the_default_stands) {
  const auto spec =
      read_spec(with_spec({{"canaries", "=="}, {"maxUnavailable", "many"}}), {.canaries = "7"});
  BOOST_TEST(spec.with.steps.at(0).runtimes == "7");
  BOOST_TEST((spec.with.max_unavailable == runtime_rollout::share{10, true}));
  BOOST_TEST(spec.invalid ==
             "spec.maxUnavailable can't be used: many; spec.canaries can't be used: ==");
}

BOOST_AUTO_TEST_CASE(steps_of_the_spec_take_the_place_of_canaries) {
  const auto steps = [](json::value all) { return with_spec({{"steps", std::move(all)}}); };
  const auto spec = read_spec(steps({{{"runtimes", 1}},
                                     {{"runtimes", "plan=trial"}, {"bake", "1h30m"}},
                                     {{"runtimes", "50%"},
                                      {"bake", "0"},
                                      {"verify", {{"query", "sum(up == 0)"}, {"threshold", 0}}}}}),
                              {.soak = 7s});
  BOOST_TEST(spec.invalid == "");
  BOOST_TEST(!spec.with.canaries_at_once);
  using runtime_rollout::step;
  BOOST_TEST((spec.with.steps ==
              std::vector{step{"1", 7s}, step{"plan=trial", 90min},
                          step{"50%", 0s, runtime_rollout::verification{"sum(up == 0)", 0}}}));
  for (const auto& wrong :
       {json::value{{"runtimes", 0}}, json::value{{"bake", "1h"}}, json::value{{"runtimes", "a b"}},
        json::value{{"runtimes", 1}, {"bake", "soon"}}, json::value{{"runtimes", 1}, {"bake", 5}},
        json::value{{"runtimes", 1}, {"verify", {{"query", "up"}}}},
        json::value{{"runtimes", 1}, {"verify", {{"threshold", 1}}}}}) {
    const auto refused = read_spec(steps(json::array{{{"runtimes", 2}}, wrong}), {.soak = 7s});
    BOOST_TEST(refused.invalid == "spec.steps can't be used: " + json::serialize(wrong));
    BOOST_TEST((refused.with.steps == std::vector{step{"1%", 7s}}));
  }
}

BOOST_AUTO_TEST_CASE(state_survives_in_the_status) {
  runtime_rollout::rollout_decision decided;
  decided.next = {
      .content = "abc",
      .completed = "ab",
      .at = phase::paused,
      .reason = "CanaryFailed",
      .steps = {{{"1%", 250ms}, 17},
                {{"plan=trial", 1h, runtime_rollout::verification{"up", 0.015}}, 0},
                {{"100%", 0s, runtime_rollout::verification{"up", 2}}, 4294967296}},
      .step = 1,
      .bake_ended = true,
      .promoted = "p",
      .verification = "step 1: 0 is at most 1",
      .settled = start,
      .accepted = 3,
      .resumed = "1",
      .ahead = 2,
      .sources = {{"ConfigMap", "a", "1"}, {"ClusterTrustBundle", "b", "2"}},
      .history = {{"ab", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "Completed"},
                  {"abc", "2026-01-02T00:00:00Z", "", "Paused", {{"ConfigMap", "a", "1"}}, true}}};
  decided.now = {.total = 9, .updated = 4, .ready = 3, .failed = 1};
  auto object = runtime_rollout::make_rollout("bootstrapper");
  const auto status = next_status(object, decided, {}, start);
  BOOST_TEST_REQUIRE(status.has_value());
  object.as_object()["status"] = *status;
  BOOST_TEST((runtime_rollout::read_state(object) == decided.next));
  BOOST_TEST(k8s::find_condition(object, "WavesBypassed")->status == "True");
  BOOST_TEST(!next_status(object, decided, {}, start + 1h).has_value());
  // The writer removes what the next status does not have.
  decided.next = {.content = "abc", .at = phase::completed};
  const auto next = next_status(object, decided, {}, start);
  BOOST_TEST_REQUIRE(next.has_value());
  BOOST_TEST(!next->as_object().contains("reason"));
  BOOST_TEST(!next->as_object().contains("steps"));
}

BOOST_AUTO_TEST_CASE(revision_is_pinned_if_it_is_kept_and_nobody_else_writes) {
  using runtime_rollout::decide_pin;
  runtime_rollout::state of{.content = "b",
                            .history = {{.content = "a", .kept = true}, {.content = "lost"}}};
  BOOST_TEST(decide_pin("", of).revision == "");
  BOOST_TEST(decide_pin("", of).refused == "");
  BOOST_TEST(decide_pin("a", of).revision == "a");
  BOOST_TEST(decide_pin("lost", of).refused == "NotKept");
  BOOST_TEST(decide_pin("c", of).refused == "NotInHistory");
  of.history.front().wire_version = wire_version;
  BOOST_TEST(decide_pin("a", of).revision == "a");
  for (const auto other : {oldest_wire_version - 2, wire_version + 1}) {  // 0: it has none
    of.history.front().wire_version = other;
    BOOST_TEST(decide_pin("a", of).refused == "UnsupportedWireVersion");
  }
  of.history.front().wire_version = 0;
  of.ahead = 1;
  BOOST_TEST(decide_pin("a", of).refused == "KimWrites");
  runtime_rollout::rollout_decision decided;
  decided.next = {.content = "a", .history = {{.content = "a", .kept = true}}};
  const auto object = with_spec({{"revision", "a"}});
  json::value shown{{"status", *next_status(object, decided, read_spec(object, {}), start,
                                            {{"ConfigMap", "c", "7"}})}};
  const auto pinned = k8s::find_condition(shown, "Pinned");
  BOOST_REQUIRE(pinned.has_value());
  BOOST_TEST(pinned->status == "True");
  BOOST_TEST(pinned->message ==
             "revision a is rolled out until spec.revision is taken away; newer: ConfigMap/c=7");
}

BOOST_AUTO_TEST_CASE(definition_keeps_each_field_of_a_status) {
  const auto files = test::documents_of("crds/operator.kyma-project.io_runtimerollouts.yaml");
  BOOST_REQUIRE(files.size() == 1U);
  const auto& schema = files.front().at("spec").at("versions").at(0).at("schema");
  const auto& known =
      schema.at("openAPIV3Schema").at("properties").at("status").at("properties").as_object();
  const auto fields = runtime_rollout::status_fields();
  for (const auto field : fields) BOOST_TEST(known.contains(field), field);
  runtime_rollout::rollout_decision decided;
  decided.message = decided.next.reason = decided.next.content = decided.next.completed = "a";
  decided.next.resumed = "1";
  decided.next.promoted = decided.next.verification = "a";
  decided.next.steps = {{}};
  decided.next.bake_ended = true;
  decided.next.settled = start;
  decided.next.sources = {{"ConfigMap", "a", "1"}};
  decided.next.history = {{.content = "a"}};
  const auto status =
      runtime_rollout::next_status(runtime_rollout::make_rollout("watcher"), decided, {}, start);
  for (const auto& [name, value] : status->as_object()) {
    BOOST_TEST((std::ranges::find(fields, std::string_view(name)) != fields.end()), name);
  }
}

/// As `kubectl wait`, kstatus (sigs.k8s.io/cli-utils), Flux and Argo CD judge it.
BOOST_AUTO_TEST_CASE(only_a_rollout_that_reached_all_runtimes_is_ready_and_completed) {
  const auto told = [](runtime_rollout::rollout_decision decided, std::string not_stored = {}) {
    auto object = runtime_rollout::make_rollout("bootstrapper");
    object.at("metadata").as_object()["generation"] = 3;
    decided.not_stored = std::move(not_stored);
    object.as_object()["status"] = *next_status(object, decided, {}, start);
    BOOST_TEST((runtime_rollout::read_state(object) == decided.next));
    std::string out(k8s::find_string(object, {"status", "phase"}));
    for (const auto* const type : {"Ready", "Reconciling", "Stalled"}) {
      const auto found = k8s::find_condition(object, type);
      BOOST_TEST_REQUIRE(found.has_value());
      BOOST_TEST(found->observed_generation == 3);
      BOOST_TEST(!found->message.empty());
      out += " " + found->status + "/" + found->reason;
    }
    return out;
  };
  const auto at = [](phase now, std::size_t updated, std::string reason = {}) {
    return runtime_rollout::rollout_decision{
        .next = {.content = "b", .at = now, .reason = std::move(reason)},
        .now = {.total = 20, .updated = updated, .ready = updated, .aside = 20 - updated}};
  };
  BOOST_TEST(told(at(phase::completed, 20)) ==
             "Completed True/Completed False/Completed False/Completed");
  BOOST_TEST(told(at(phase::completed, 5)) ==
             "Partial False/RuntimesAside False/RuntimesAside False/RuntimesAside");
  auto catches_up = at(phase::completed, 19);
  catches_up.now.aside = 0;
  catches_up.now.updating = 1;
  catches_up.catches_up = true;
  BOOST_TEST(told(catches_up) ==
             "Partial False/RuntimesUpdating True/RuntimesUpdating False/RuntimesUpdating");
  BOOST_TEST(told(at(phase::canary, 1)) == "Canary False/Canary True/Canary False/Canary");
  BOOST_TEST(told(at(phase::waves, 9)) == "Waves False/Waves True/Waves False/Waves");
  BOOST_TEST(told(at(phase::paused, 9, "ByHand")) ==
             "Paused False/ByHand True/ByHand False/ByHand");
  BOOST_TEST(told(at(phase::paused, 9, "CanaryFailed")) ==
             "Paused False/CanaryFailed False/CanaryFailed True/CanaryFailed");
  BOOST_TEST(told(at(phase::waves, 20), "no namespace") ==
             "Waves False/ContentNotStored False/ContentNotStored True/ContentNotStored");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_rollout_test
