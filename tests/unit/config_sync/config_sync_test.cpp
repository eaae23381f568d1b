// The reactor on an embedded API server, on a clock that only the test moves.

#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/config_sync/cluster.hpp"
#include <chrono>
#include <string>

BOOST_AUTO_TEST_SUITE(config_sync)

using namespace rw;
using namespace std::chrono_literals;
using rw::config_sync::sync_options;
using rw::config_sync::test::cluster;
namespace json = boost::json;

namespace {

constexpr auto mark = force_reconciliation_mark;

/// Two Runtimes that are older than what is changed later, and all sources.
struct landscape : cluster {
  explicit landscape(sync_options options = {}) : cluster(std::move(options)) {
    for (const auto which : all_sources) put(which, "v1");
    add_runtime("r1");
    add_runtime("r2");
    pass(1h);
  }

  void begin() {
    start();
    settle_down();
  }
  /// Whatever was noticed has been signalled.
  void settle_down() { pass(15s); }
  void take(const std::string& name) {
    change(name, {{"annotations", {{mark, nullptr}}}, {"labels", {{mark, nullptr}}}});
  }
  bool is_marked(const std::string& name) { return carries_mark(runtime(name)); }
  std::string noted(const std::string& name) {
    return std::string(k8s::annotation(runtime(name), signalled_annotation).value_or("nothing"));
  }
  std::string version(const std::string& name) {
    return std::string(k8s::resource_version_of(runtime(name)));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(the_first_start_marks_nobody_and_writes_to_no_runtime, landscape) {
  const auto before = version("r1");
  begin();
  BOOST_TEST(marks() == 0);
  BOOST_TEST(version("r1") == before);
  BOOST_TEST(standing("current") == 2);
  BOOST_TEST(k8s::find_string(record(), {"data", "since"}) == "ever");
}

BOOST_FIXTURE_TEST_CASE(each_change_of_each_source_marks_every_runtime_once, landscape) {
  begin();
  double expected = 0;
  const auto marks_all = [&](std::string_view what) {
    settle_down();
    expected += 2;
    BOOST_TEST(marks() == expected, what);
    for (const auto* name : {"r1", "r2"}) {
      const auto seen = runtime(name);
      BOOST_TEST(k8s::annotation(seen, mark).value_or("") == "true", what);
      BOOST_TEST(k8s::label(seen, mark).value_or("") == "true", what);
      take(name);
    }
    settle_down();
    BOOST_TEST(marks() == expected, what);
    BOOST_TEST(standing("current") == 2);
  };
  for (const auto which : all_sources) {
    put(which, "v2");
    marks_all("update");
    remove(which);
    marks_all("delete");
    put(which, "v2");
    marks_all("create");
  }
}

BOOST_FIXTURE_TEST_CASE(what_is_no_content_is_no_change, landscape) {
  begin();
  for (const auto which : all_sources) {
    touch(which, "yes");
    put(which, "v1");
  }
  settle_down();
  BOOST_TEST(marks() == 0);
}

BOOST_FIXTURE_TEST_CASE(changes_that_belong_together_become_one_mark, landscape) {
  begin();
  for (const auto which : all_sources) {
    put(which, "v2");
    pass(1s);
  }
  settle_down();
  BOOST_TEST(marks() == 2);
}

BOOST_FIXTURE_TEST_CASE(changes_without_end_are_signalled_and_the_last_one_again, landscape) {
  begin();
  for (int i = 0; i < 40; ++i) {
    put(source::config, "w" + std::to_string(i));
    pass(1s);
  }
  BOOST_TEST(marks() == 2);
  settle_down();
  const auto before = noted("r1");
  BOOST_TEST(marks() == 2);
  take("r1");
  settle_down();
  BOOST_TEST(noted("r1") != before);
  BOOST_TEST(marks() == 3);
  BOOST_TEST(k8s::find_string(record(), {"data", "digest"}).find('~') == std::string_view::npos);
}

BOOST_FIXTURE_TEST_CASE(a_change_beside_a_mark_is_signalled_when_that_is_gone, landscape) {
  begin();
  put(source::config, "v2");
  settle_down();
  const auto first = noted("r1");
  put(source::config, "v3");
  settle_down();
  // The mark stands for what it was set for.
  BOOST_TEST(noted("r1") == first);
  BOOST_TEST(marks() == 2);
  BOOST_TEST(standing("pending") == 2);
  take("r1");
  settle_down();
  BOOST_TEST(marks() == 3);
  BOOST_TEST(is_marked("r1"));
  BOOST_TEST(noted("r1") != first);
}

BOOST_FIXTURE_TEST_CASE(a_change_that_is_taken_back_is_signalled_too, landscape) {
  begin();
  put(source::config, "v2");
  settle_down();
  put(source::config, "v1");
  settle_down();
  for (const auto* name : {"r1", "r2"}) take(name);
  settle_down();
  BOOST_TEST(marks() == 4);
}

BOOST_FIXTURE_TEST_CASE(a_restart_signals_what_changed_meanwhile_and_nothing_else, landscape) {
  begin();
  put(source::pull_secret, "v2");
  settle_down();
  for (const auto* name : {"r1", "r2"}) take(name);
  stop();
  begin();
  BOOST_TEST(marks() == 2);
  stop();
  remove(source::trust_bundle);
  begin();
  BOOST_TEST(marks() == 4);
}

BOOST_FIXTURE_TEST_CASE(a_restart_in_the_middle_marks_those_who_were_left, landscape) {
  // The second Runtime can't be written before the restart.
  faults([](const std::string& verb, const std::string& path) {
    k8s::devserver::fault wrong;
    if (verb == "patch" && path.ends_with("/r2")) wrong.status = 500;
    return wrong;
  });
  begin();
  put(source::config, "v2");
  settle_down();
  BOOST_TEST(is_marked("r1"));
  BOOST_TEST(!is_marked("r2"));
  stop();
  faults({});
  take("r1");
  begin();
  BOOST_TEST(!is_marked("r1"));
  BOOST_TEST(is_marked("r2"));
  BOOST_TEST(marks() == 2);
}

BOOST_FIXTURE_TEST_CASE(a_failure_on_one_runtime_costs_the_others_nothing, landscape) {
  faults([](const std::string& verb, const std::string& path) {
    k8s::devserver::fault wrong;
    if (verb == "patch" && path.ends_with("/r1")) wrong.status = 403;
    return wrong;
  });
  begin();
  put(source::config, "v2");
  settle_down();
  BOOST_TEST(is_marked("r2"));
  BOOST_TEST(!is_marked("r1"));
  BOOST_TEST(standing("behind") == 1);
  BOOST_TEST(metric("rw_controller_failing_keys{controller=\"config-sync\"}") == 1);
  BOOST_TEST(has_event("r1", "ConfigurationNotSignalled"));
  faults({});
  pass(3min);
  BOOST_TEST(is_marked("r1"));
  BOOST_TEST(metric("rw_controller_failing_keys{controller=\"config-sync\"}") == 0);
}

BOOST_FIXTURE_TEST_CASE(nobody_is_marked_before_the_change_is_recorded, landscape) {
  begin();
  faults([](const std::string& verb, const std::string& path) {
    k8s::devserver::fault wrong;
    if (verb == "update" && path.ends_with("signalled-configuration")) wrong.status = 500;
    return wrong;
  });
  put(source::config, "v2");
  pass(1min);
  BOOST_TEST(marks() == 0);
  faults({});
  pass(1min);
  BOOST_TEST(marks() == 2);
}

BOOST_FIXTURE_TEST_CASE(a_lost_record_is_made_up_from_the_runtimes, landscape) {
  begin();
  put(source::config, "v2");
  settle_down();
  for (const auto* name : {"r1", "r2"}) take(name);
  stop();
  remove_record();
  begin();
  BOOST_TEST(marks() == 2);
  stop();
  remove_record();
  put(source::config, "v3");
  begin();
  BOOST_TEST(marks() == 4);
}

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
