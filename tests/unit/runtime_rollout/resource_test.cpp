// What a RuntimeRollout says, and what is read of RuntimeBootstrappers.

#include "reactors/runtime_rollout/resource.hpp"

#include "k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime_rollout/fleet.hpp"
#include <string>
#include <utility>

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

runtime_rollout::runtime_facts read_facts(const json::value& of, std::string wanted = "d2") {
  runtime_rollout::runtime_facts out{.wanted = std::move(wanted)};
  runtime_rollout::read_facts(of, out);
  return out;
}

/// As a pass over a runtime leaves it.
json::value bootstrapper(std::string_view state, std::string_view phase,
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

BOOST_AUTO_TEST_CASE(spec_overrides_the_defaults) {
  const auto usual = read_spec(runtime_rollout::make_rollout("bootstrapper"), {});
  BOOST_TEST((usual.with.canaries == runtime_rollout::share{1, true}));
  BOOST_TEST((usual.with.failure_budget == runtime_rollout::share{2, true}));
  BOOST_TEST(!usual.paused);
  const auto own = read_spec(with_spec({{"canaries", 3},
                                        {"maxUnavailable", "25%"},
                                        {"failureBudget", 0},
                                        {"paused", true},
                                        {"resume", "now"}}),
                             {});
  BOOST_TEST((own.with.canaries == runtime_rollout::share{3, false}));
  BOOST_TEST((own.with.max_unavailable == runtime_rollout::share{25, true}));
  BOOST_TEST((own.with.failure_budget == runtime_rollout::share{0, false}));
  BOOST_TEST(own.paused);
  BOOST_TEST(own.resume == "now");
  BOOST_TEST(own.invalid.empty());
}

BOOST_AUTO_TEST_CASE(canaries_can_be_a_label_selector) {
  const auto spec = read_spec(with_spec({{"canaries", "plan in (trial, free)"}}), {});
  BOOST_TEST(spec.with.canaries_by_label);
  const json::value trial{{"plan", "trial"}};
  BOOST_TEST(spec.canaries.matches(&trial));
  BOOST_TEST(!spec.canaries.matches(nullptr));
  BOOST_TEST(runtime_rollout::is_canaries("a=b"));
  BOOST_TEST(!runtime_rollout::is_canaries(""));
  BOOST_TEST(!runtime_rollout::is_canaries("a in b"));
}

BOOST_AUTO_TEST_CASE(field_that_cannot_be_used_is_named_and_the_default_stands) {
  const auto spec =
      read_spec(with_spec({{"canaries", "=="}, {"maxUnavailable", "many"}}), {.canaries = "7"});
  BOOST_TEST((spec.with.canaries == runtime_rollout::share{7, false}));
  BOOST_TEST((spec.with.max_unavailable == runtime_rollout::share{10, true}));
  BOOST_TEST(spec.invalid ==
             "spec.maxUnavailable can't be used: many; spec.canaries can't be used: ==; ");
}

BOOST_AUTO_TEST_CASE(state_survives_in_the_status) {
  runtime_rollout::decision decided;
  decided.next = {.content = "abc",
                  .at = phase::paused,
                  .reason = "CanaryFailed",
                  .canaries = {"r1", "r2"},
                  .accepted = 3,
                  .resumed = "1",
                  .ahead = 2};
  decided.now = {.total = 9, .updated = 4, .ready = 3, .failed = 1};
  auto object = runtime_rollout::make_rollout("bootstrapper");
  const auto status = next_status(object, decided, {}, start);
  BOOST_TEST_REQUIRE(status.has_value());
  object.as_object()["status"] = *status;
  BOOST_TEST((runtime_rollout::read_state(object) == decided.next));
  BOOST_TEST(k8s::find_condition(object, "WavesBypassed")->status == "True");
  BOOST_TEST(!next_status(object, decided, {}, start + 1h).has_value());
  // What does not hold any longer is removed by name.
  decided.next = {.content = "abc", .at = phase::completed};
  const auto next = next_status(object, decided, {}, start);
  BOOST_TEST_REQUIRE(next.has_value());
  BOOST_TEST(next->at("reason").is_null());
  BOOST_TEST(next->at("canaries").is_null());
}

BOOST_AUTO_TEST_CASE(health_is_what_the_status_of_the_runtime_says) {
  BOOST_TEST((read_facts(bootstrapper("Ready", "Applied")).is == health::ready));
  BOOST_TEST((read_facts(bootstrapper("InProgress", "Applied")).is == health::progressing));
  const auto failed = read_facts(bootstrapper("Failed", "Applied"));
  BOOST_TEST((failed.is == health::failed));
  BOOST_TEST(failed.error == "it crashes");
  BOOST_TEST(failed.in_place == "d1");
  BOOST_TEST(!failed.rejected);
  // Since it is so, or since the content came, if that was later.
  BOOST_TEST((failed.since.time_since_epoch() == 1795341605s));
}

BOOST_AUTO_TEST_CASE(runtime_that_was_not_looked_at_is_unreachable) {
  BOOST_TEST((read_facts({{"metadata", json::object()}}).is == health::unreachable));
  auto object = bootstrapper("Unknown", "Applied");
  object.at("status").at("conditions").at(0).as_object()["status"] = "Unknown";
  const auto facts = read_facts(object);
  BOOST_TEST((facts.is == health::unreachable));
  BOOST_TEST((facts.since.time_since_epoch() == 1795341609s));
  BOOST_TEST(facts.in_place == "d1");
}

BOOST_AUTO_TEST_CASE(content_is_rejected_where_another_one_is_kept_for_a_reason) {
  const auto rejected = read_facts(bootstrapper("Ready", "LastGood", "unknown kind"));
  BOOST_TEST(rejected.rejected);
  BOOST_TEST(rejected.error == "unknown kind");
  // Of another content the status says nothing.
  BOOST_TEST(!read_facts(bootstrapper("Ready", "LastGood", "unknown kind"), "d3").rejected);
  BOOST_TEST(!read_facts(bootstrapper("Ready", "Waiting", "unknown kind")).rejected);
  BOOST_TEST(!read_facts(bootstrapper("Ready", "Applying", "it timed out")).rejected);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_rollout_test
