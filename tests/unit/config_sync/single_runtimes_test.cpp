// What is particular about one Runtime: suspended, marked by somebody else, of a mode of its own,
// new or gone.

#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/config_sync/landscape.hpp"
#include <chrono>
#include <string>

BOOST_AUTO_TEST_SUITE(single_runtimes)

using namespace rw;
using namespace std::chrono_literals;
using rw::config_sync::sync_options;
using rw::config_sync::test::landscape;

constexpr auto mark = force_reconciliation_mark;

BOOST_FIXTURE_TEST_CASE(a_suspended_runtime_is_marked_when_its_suspension_ends, landscape) {
  begin();
  annotate("r1", {{suspend_reconciliation_annotation, "true"}});
  put(source::config, "v2");
  settle_down();
  BOOST_TEST(!is_marked("r1"));
  BOOST_TEST(is_marked("r2"));
  BOOST_TEST(standing("suspended") == 1);
  annotate("r1", {{suspend_reconciliation_annotation, nullptr}});
  settle_down();
  BOOST_TEST(is_marked("r1"));
}

BOOST_FIXTURE_TEST_CASE(somebody_elses_mark_is_waited_for, landscape) {
  begin();
  annotate("r1", {{mark, "true"}});
  put(source::config, "v2");
  settle_down();
  BOOST_TEST(noted("r1") == "nothing");
  BOOST_TEST(marks() == 1);
  take("r1");
  settle_down();
  BOOST_TEST(marks() == 2);
}

BOOST_FIXTURE_TEST_CASE(the_form_that_kim_does_not_know_goes_with_the_one_it_takes, landscape) {
  begin();
  put(source::config, "v2");
  settle_down();
  annotate("r1", {{mark, nullptr}});
  change("r2", {{"labels", {{mark, nullptr}}}});
  settle_down();
  for (const auto* name : {"r1", "r2"}) BOOST_TEST(!is_marked(name));
  BOOST_TEST(marks() == 2);
  put(source::config, "v3");
  settle_down();
  for (const auto* name : {"r1", "r2"}) {
    BOOST_TEST(k8s::annotation(runtime(name), mark).value_or("") == "true");
    BOOST_TEST(k8s::label(runtime(name), mark).value_or("") == "true");
  }
}

BOOST_AUTO_TEST_CASE(the_mark_is_set_as_configured) {
  landscape here({.forms = {.annotation = true}});
  here.begin();
  here.put(source::config, "v2");
  here.settle_down();
  BOOST_TEST(k8s::annotation(here.runtime("r1"), mark).value_or("") == "true");
  BOOST_TEST(!k8s::label(here.runtime("r1"), mark));
  here.take("r1");
  here.stop();
  here.put(source::config, "v3");
  here.start({.forms = {.label = true}});
  here.settle_down();
  BOOST_TEST(!k8s::annotation(here.runtime("r1"), mark));
  BOOST_TEST(k8s::label(here.runtime("r1"), mark).value_or("") == "true");
  // That one carries the mark of before.
  BOOST_TEST(k8s::annotation(here.runtime("r2"), mark).value_or("") == "true");
  BOOST_TEST(!k8s::label(here.runtime("r2"), mark));
}

BOOST_FIXTURE_TEST_CASE(a_runtime_is_handed_over_and_marked_when_it_comes_back, landscape) {
  begin();
  const auto mode = std::string(bootstrapper_mode_annotation);
  put(source::config, "v2");
  settle_down();
  take("r1");
  // The second one still carries its mark, which is KIM's to finish.
  for (const auto* name : {"r1", "r2"}) annotate(name, {{mode, "direct"}});
  settle_down();
  BOOST_TEST(is_handed_over(runtime("r1")));
  BOOST_TEST(!is_handed_over(runtime("r2")));
  put(source::config, "v3");
  settle_down();
  BOOST_TEST(marks() == 2);
  BOOST_TEST(standing("apart") == 2);
  take("r2");
  settle_down();
  BOOST_TEST(is_handed_over(runtime("r2")));
  annotate("r1", {{mode, "shadow"}});
  annotate("r2", {{mode, nullptr}});
  settle_down();
  BOOST_TEST(marks() == 4);
  BOOST_TEST(!is_handed_over(runtime("r1")));
}

BOOST_FIXTURE_TEST_CASE(a_mode_that_is_none_is_told_and_the_runtime_left_alone, landscape) {
  begin();
  const auto mode = std::string(bootstrapper_mode_annotation);
  annotate("r1", {{mode, "signals"}});
  put(source::config, "v2");
  settle_down();
  BOOST_TEST(!is_marked("r1"));
  BOOST_TEST(has_event("r1", "BootstrapperModeUnknown"));
  annotate("r1", {{mode, "signal"}});
  settle_down();
  BOOST_TEST(is_marked("r1"));
}

BOOST_FIXTURE_TEST_CASE(a_new_runtime_is_marked_only_for_what_it_may_have_missed, landscape) {
  begin();
  put(source::config, "v2");
  settle_down();
  add_runtime("r3");  // KIM may have made it with the old configuration
  pass(10min);
  add_runtime("r4");
  settle_down();
  BOOST_TEST(is_marked("r3"));
  BOOST_TEST(!is_marked("r4"));
  put(source::config, "v3");
  settle_down();
  BOOST_TEST(is_marked("r4"));
}

/// The first request to mark r1 takes its time to arrive; what the test does meanwhile comes first.
struct slow_mark : landscape {
  slow_mark() {
    faults([this](const std::string& verb, const std::string& path) {
      k8s::devserver::fault wrong;
      const bool is_it = verb == "patch" && path.ends_with("/r1") && armed;
      if (is_it && !std::exchange(on_its_way, true)) wrong.latency = 10s;
      return wrong;
    });
    begin();
    armed = true;
    put(source::config, "v2");
    eventually([&] { return on_its_way; }, "r1 is about to be marked");
  }
  bool armed = false;
  bool on_its_way = false;
};

BOOST_FIXTURE_TEST_CASE(a_mark_that_comes_late_does_not_reach_who_was_suspended, slow_mark) {
  annotate("r1", {{suspend_reconciliation_annotation, "true"}});
  pass(5min);
  BOOST_TEST(!is_marked("r1"));
  BOOST_TEST(metric("rw_config_sync_conflicts_total") == 1);
}

BOOST_FIXTURE_TEST_CASE(a_mark_that_comes_late_is_not_noted_beside_another_one, slow_mark) {
  annotate("r1", {{mark, "true"}});
  pass(5min);
  BOOST_TEST(noted("r1") == "nothing");
  take("r1");
  settle_down();
  BOOST_TEST(noted("r1").starts_with("2 "));
}

BOOST_FIXTURE_TEST_CASE(a_change_that_is_taken_back_at_once_is_signalled, landscape) {
  begin();
  put(source::config, "v2");
  pass(500ms);  // KIM may have read it
  put(source::config, "v1");
  settle_down();
  BOOST_TEST(marks() == 2);
}

BOOST_FIXTURE_TEST_CASE(a_change_that_is_taken_back_while_nobody_leads_is_signalled, landscape) {
  begin();
  put(source::config, "v2");
  pass(500ms);  // seen, and not told yet
  stop();
  put(source::config, "v1");
  begin();
  BOOST_TEST(marks() == 2);
}

BOOST_FIXTURE_TEST_CASE(a_runtime_that_is_gone_is_not_made_anew_by_a_mark, slow_mark) {
  remove_runtime("r1");
  pass(5min);
  const auto found = call(author().get(runtimes_type(), {std::string(kcp_namespace), "r1"}));
  BOOST_TEST(found.has_error());
  BOOST_TEST(standing("pending") == 1);
}

BOOST_AUTO_TEST_SUITE_END()
