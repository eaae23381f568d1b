#include "rw/reactors/dev/event_view.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include <chrono>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(event_view)

namespace core = rw::core;
using rw::dev::event_trace;
using rw::k8s::object_key;
using std::chrono::milliseconds;

namespace {

rw::watch_event change_of(const std::string& name) {
  return {.manager = "lifecycle-manager",
          .gvk = {"operator.kyma-project.io", "v1beta2", "Kyma"},
          .watched = {"kyma-system", name}};
}

rw::listener::received_event from(const std::string& runtime, const std::string& name) {
  return {.runtime_id = runtime, .event = change_of(name)};
}

/// A view, and what it told.
struct stage {
  explicit stage(bool to_reconcile = true)
      : view(clock, metrics, to_reconcile,
             [this](const event_trace& one) { told.push_back(one); }) {}

  core::manual_clock clock;
  core::metrics metrics;
  std::vector<event_trace> told;
  rw::dev::event_view view;
};

const object_key kyma{"kcp-system", "runtime-1"};

}  // namespace

BOOST_AUTO_TEST_CASE(trace_goes_from_the_change_to_the_reconcile) {
  stage s;
  s.view.changed("runtime-1", change_of("default"));
  s.clock.advance(milliseconds(3));
  s.view.on_event(from("runtime-1", "default"), {kyma});
  BOOST_TEST(s.told.empty());
  s.clock.advance(milliseconds(2));
  s.view.reconciling(kyma);
  BOOST_REQUIRE(s.told.size() == 1U);
  const auto& one = s.told.front();
  BOOST_TEST(one.runtime == "runtime-1");
  BOOST_TEST(one.kyma == "kcp-system/runtime-1");
  BOOST_TEST(one.reconciled);
  BOOST_TEST((one.heard == milliseconds(3)));
  BOOST_TEST((one.to_reconcile == milliseconds(5)));
}

BOOST_AUTO_TEST_CASE(changes_that_become_one_event_count_from_the_first) {
  stage s;
  s.view.changed("runtime-1", change_of("default"));
  s.clock.advance(milliseconds(10));
  s.view.changed("runtime-1", change_of("default"));
  s.view.on_event(from("runtime-1", "default"), {kyma});
  s.view.reconciling(kyma);
  BOOST_REQUIRE(s.told.size() == 1U);
  BOOST_TEST((s.told.front().to_reconcile == milliseconds(10)));
}

BOOST_AUTO_TEST_CASE(reconcile_ends_the_traces_of_its_kyma_only) {
  stage s;
  const object_key other{"kcp-system", "runtime-2"};
  s.view.on_event(from("runtime-1", "a"), {kyma});
  s.view.on_event(from("runtime-1", "b"), {kyma});
  s.view.on_event(from("runtime-2", "a"), {other});
  s.view.reconciling(kyma);
  BOOST_TEST(s.told.size() == 2U);
  s.view.reconciling(kyma);
  BOOST_TEST(s.told.size() == 2U);
  s.view.reconciling(other);
  BOOST_TEST(s.told.size() == 3U);
}

BOOST_AUTO_TEST_CASE(event_without_an_observed_change_has_no_times) {
  stage s;
  s.view.on_event(from("runtime-1", "default"), {kyma});
  s.view.reconciling(kyma);
  BOOST_REQUIRE(s.told.size() == 1U);
  BOOST_TEST(!s.told.front().heard.has_value());
  BOOST_TEST(!s.told.front().to_reconcile.has_value());
}

BOOST_AUTO_TEST_CASE(resync_is_told_with_its_reason) {
  stage s;
  s.view.on_event({.runtime_id = "runtime-1",
                   .event = {.manager = "lifecycle-manager", .gvk = {}, .watched = {}},
                   .resync = rw::resync_reason::started},
                  {kyma});
  s.view.reconciling(kyma);
  BOOST_REQUIRE(s.told.size() == 1U);
  const auto line = line_of(s.told.front(), s.clock.wall());
  BOOST_TEST(line.ends_with("runtime-1: any object may have changed (started) -> Kyma "
                            "kcp-system/runtime-1 reconciled"),
             line);
  const auto told = boost::json::parse(json_line_of(s.told.front(), s.clock.wall())).as_object();
  BOOST_TEST(told.at("resync").as_string() == "started");
  BOOST_TEST(told.at("runtime").as_string() == "runtime-1");
  BOOST_TEST(told.at("reconciledAfterMs").is_null());
}

BOOST_AUTO_TEST_CASE(event_without_a_kyma_is_reported_at_once) {
  stage s;
  s.view.on_event(from("runtime-9", "default"), {});
  BOOST_REQUIRE(s.told.size() == 1U);
  BOOST_TEST(!s.told.front().reconciled);
  const auto line = line_of(s.told.front(), s.clock.wall());
  BOOST_TEST(line.ends_with("runtime-9: Kyma kyma-system/default changed; no Kyma has this "
                            "runtime's id yet"),
             line);
}

BOOST_AUTO_TEST_CASE(without_a_manager_a_story_ends_with_the_change) {
  stage s(false);
  s.view.changed("runtime-1", change_of("default"));
  BOOST_REQUIRE(s.told.size() == 1U);
  const auto line = line_of(s.told.front(), s.clock.wall());
  BOOST_TEST(line.ends_with("runtime-1: Kyma kyma-system/default changed"), line);
}

BOOST_AUTO_TEST_CASE(view_drops_the_oldest_unreceived_events_and_counts_them) {
  stage s;
  for (std::size_t i = 0; i <= rw::dev::event_view::most; ++i) {
    s.view.changed("runtime-1", change_of(std::to_string(i)));
  }
  auto& forgotten = core::make_counter(s.metrics, "rw_dev_stories_forgotten_total",
                                       "Number of events whose trace was dropped before its end");
  BOOST_TEST(forgotten.Value() == 1.0);
  s.view.on_event(from("runtime-1", "0"), {kyma});
  s.view.on_event(from("runtime-1", "1"), {kyma});
  s.view.reconciling(kyma);
  BOOST_REQUIRE(s.told.size() == 2U);
  BOOST_TEST(!s.told[0].to_reconcile.has_value());
  BOOST_TEST(s.told[1].to_reconcile.has_value());
}

BOOST_AUTO_TEST_CASE(line_for_programs_is_json) {
  stage s;
  s.view.changed("runtime-1", change_of("a \"name\""));
  s.clock.advance(std::chrono::microseconds(1500));
  s.view.on_event(from("runtime-1", "a \"name\""), {kyma});
  s.view.reconciling(kyma);
  BOOST_REQUIRE(s.told.size() == 1U);
  const auto line = boost::json::parse(json_line_of(s.told.front(), s.clock.wall())).as_object();
  BOOST_TEST(line.at("name").as_string() == "a \"name\"");
  BOOST_TEST(line.at("kyma").as_string() == "kcp-system/runtime-1");
  BOOST_TEST(line.at("reconciled").as_bool());
  BOOST_TEST(line.at("reconciledAfterMs").as_double() == 1.5);
}

BOOST_AUTO_TEST_CASE(ended_traces_do_not_cause_drops) {
  stage s;
  for (int i = 0; i < 20'000; ++i) {
    s.clock.advance(milliseconds(1));
    s.view.changed("runtime-1", change_of("default"));
    s.view.on_event(from("runtime-1", "default"), {kyma});
    s.view.reconciling(kyma);
    BOOST_TEST_REQUIRE(s.told.size() == 1U);
    BOOST_TEST_REQUIRE(s.told.front().to_reconcile.has_value());
    s.told.clear();
  }
}

BOOST_AUTO_TEST_SUITE_END()
