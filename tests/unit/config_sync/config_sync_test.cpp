// The reactor on an embedded API server, on a clock that only the test moves.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/config_sync/test_env.hpp"
#include <chrono>
#include <string>
#include <utility>

BOOST_AUTO_TEST_SUITE(config_sync)

using namespace rw;
using namespace std::chrono_literals;
using rw::config_sync::sync_options;
using rw::config_sync::test::landscape;
using rw::dev::kim_options;
using rw::dev::kim_outcome;

namespace {

constexpr auto mark = force_reconciliation_mark;
const std::string mode(bootstrapper_mode_annotation);

k8s::devserver::fault failing(const std::string& verb, const std::string& path,
                              std::string_view on_verb, std::string_view suffix, unsigned status) {
  k8s::devserver::fault out;
  if (verb == on_verb && path.ends_with(suffix)) out.status = status;
  return out;
}

}  // namespace

// --- changes of the sources --------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(sources_are_compared_once_every_source_is_known, landscape) {
  bool broken = true;
  faults([&broken](const std::string&, const std::string& path) {
    k8s::devserver::fault out;
    if (broken && path.find("clustertrustbundles") != std::string::npos) out.status = 500;
    return out;
  });
  start();
  pass(2min);
  const auto absent = call(api("kcp").get(
      config_maps_type(), {std::string(kcp_namespace), std::string(rw::config_sync::record_name)}));
  BOOST_TEST(absent.has_error());
  broken = false;
  pass(2min);
  BOOST_TEST(k8s::find_string(record(), {"data", "number"}) == "1");
}

BOOST_FIXTURE_TEST_CASE(first_start_marks_none_and_says_so, landscape) {
  const auto before = version("r1");
  begin();
  BOOST_TEST(marks() == 0);
  BOOST_TEST(version("r1") == before);
  BOOST_TEST(count("current") == 2);
  BOOST_TEST(k8s::find_string(record(), {"data", "since"}) == "ever");
  BOOST_TEST(lines("--signal-all-once marks each of them once") > 0);
}

BOOST_FIXTURE_TEST_CASE(runtimes_are_all_signalled_once_where_that_is_requested, landscape) {
  begin();
  stop();
  for (int i = 0; i < 2; ++i) {
    start({.signal_all_once = true});
    debounce();
    BOOST_TEST(marks() == 2);
    for (const auto* name : {"r1", "r2"}) take(name);
    quiet();
    stop();
  }
}

BOOST_FIXTURE_TEST_CASE(change_of_a_source_marks_every_runtime_once, landscape) {
  begin();
  double expected = 0;
  const auto marks_all = [&](std::string_view what) {
    debounce();
    expected += 2;
    BOOST_TEST(marks() == expected, what);
    for (const auto* name : {"r1", "r2"}) {
      const auto found = runtime(name);
      BOOST_TEST(k8s::annotation(found, mark) == "true", what);
      BOOST_TEST(!k8s::has_label(found, mark), what);
      take(name);
    }
    debounce();
    BOOST_TEST(count("in_progress") == 2);
    quiet();
    BOOST_TEST(marks() == expected, what);
    BOOST_TEST(count("current") == 2);
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

BOOST_FIXTURE_TEST_CASE(metadata_alone_is_no_change, landscape) {
  begin();
  for (const auto which : all_sources) {
    touch(which, "yes");
    put(which, "v1");
  }
  debounce();
  BOOST_TEST(marks() == 0);
}

BOOST_FIXTURE_TEST_CASE(changes_close_together_become_one_mark, landscape) {
  begin();
  for (const auto which : all_sources) {
    put(which, "v2");
    pass(1s);
  }
  debounce();
  BOOST_TEST(marks() == 2);
}

BOOST_FIXTURE_TEST_CASE(changes_without_end_are_signalled_now_and_then, landscape) {
  begin();
  for (int i = 0; i < 100; ++i) {
    put(source::config, "w" + std::to_string(i));
    if (is_marked("r1")) take("r1");
    pass(1s);
  }
  BOOST_TEST(marks() == 3 + 1);
  debounce();
  take("r1");
  quiet();
  BOOST_TEST(count("current") == 1);
}

BOOST_FIXTURE_TEST_CASE(change_that_is_undone_is_signalled_too, landscape) {
  begin();
  put(source::config, "v2");
  pass(500ms);  // KIM may have read it
  put(source::config, "v1");
  debounce();
  BOOST_TEST(marks() == 2);
}

BOOST_FIXTURE_TEST_CASE(change_that_is_undone_while_no_replica_leads_is_signalled, landscape) {
  begin();
  put(source::config, "v2");
  pass(500ms);
  stop();
  put(source::config, "v1");
  begin();
  BOOST_TEST(marks() == 2);
}

// --- what a mark covers ------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(mark_that_is_there_at_a_change_covers_it, landscape) {
  begin();
  put(source::config, "v2");
  debounce();
  put(source::config, "v3");
  debounce();
  BOOST_TEST(count("marked") == 2);
  for (const auto* name : {"r1", "r2"}) take(name);
  quiet();
  BOOST_TEST(!is_marked("r1"));
  BOOST_TEST(count("current") == 2);
  BOOST_TEST(noted("r1").starts_with("3 "));
  stop();
  begin();
  quiet();
  BOOST_TEST(!is_marked("r1"));
}

BOOST_FIXTURE_TEST_CASE(mark_of_another_client_covers_a_change, landscape) {
  begin();
  annotate("r1", {{mark, "true"}});
  put(source::config, "v2");
  debounce();
  BOOST_TEST(noted("r1").starts_with("2 "));
  take("r1");
  quiet();
  BOOST_TEST(!is_marked("r1"));
  BOOST_TEST(count("current") == 1);
  BOOST_TEST(count("marked") == 1);
}

BOOST_FIXTURE_TEST_CASE(change_after_the_mark_went_is_signalled, landscape) {
  begin();
  put(source::config, "v2");
  debounce();
  take("r1");
  set_state("r1", "Pending");
  put(source::config, "v3");
  debounce();
  BOOST_TEST(is_marked("r1"));
  BOOST_TEST(noted("r1").starts_with("3 "));
}

// --- what KIM makes of it ----------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(runtime_on_which_kim_fails_is_marked_again, landscape) {
  begin();
  put(source::config, "v2");
  debounce();
  for (const auto* name : {"r1", "r2"}) take(name);
  set_state("r1", "Failed");
  pass(1min);
  BOOST_TEST(count("failed") == 1);
  BOOST_TEST(metric("rw_config_sync_state_since_timestamp_seconds{state=\"failed\"}") > 0);
  BOOST_TEST(call(has_event("r1", "ConfigurationFailed")));
  BOOST_TEST(!is_marked("r1"));
  // The backoff survives a restart.
  stop();
  start();
  pass(1min);
  BOOST_TEST(!is_marked("r1"));
  pass(4min);
  BOOST_TEST(is_marked("r1"));
  BOOST_TEST(marks("retry") == 1);
  take("r1");
  pass(8min);
  BOOST_TEST(!is_marked("r1"));
  set_state("r1", "Ready");
  quiet();
  BOOST_TEST(count("current") == 2);
  BOOST_TEST(marks("retry") == 1);
}

BOOST_FIXTURE_TEST_CASE(runtime_that_fails_after_the_quiet_time_is_shown_and_marked_again,
                        landscape) {
  begin();
  put(source::config, "v2");
  debounce();
  for (const auto* name : {"r1", "r2"}) take(name);
  quiet();
  BOOST_TEST(count("current") == 2);
  set_state("r1", "Failed");
  pass(1min);
  BOOST_TEST(count("failed") == 1);
  BOOST_TEST(age("failed") == 60);
  BOOST_TEST(call(has_event("r1", "ConfigurationFailed")));
  BOOST_TEST(!is_marked("r1"));
  pass(4min);
  BOOST_TEST(is_marked("r1"));
  BOOST_TEST(marks("retry") == 1);
  take("r1");
  set_state("r1", "Ready");
  quiet();
  BOOST_TEST(count("current") == 2);
}

BOOST_FIXTURE_TEST_CASE(runtime_waits_since_it_was_marked_and_not_since_the_last_change,
                        landscape) {
  begin();
  put(source::config, "v2");
  pass(5s);
  BOOST_TEST(age("marked") <= 5);
  BOOST_TEST(age("marked") >= 4);
  pass(10s);
  for (const auto* name : {"r1", "r2"}) take(name);
  quiet();
  pass(10h);
  annotate("r1", {{mark, "true"}});
  pass(60s);
  BOOST_TEST(age("marked") == 60);
  // Another leader cannot know better, but does not count r2 as waiting.
  stop();
  start();
  pass(30s);
  BOOST_TEST(count("current") == 1);
  BOOST_TEST(count("marked") == 1);
  BOOST_TEST(age("marked") == 30);
}

BOOST_FIXTURE_TEST_CASE(next_leader_knows_since_when_a_failing_runtime_waits, landscape) {
  begin();
  put(source::config, "v2");
  debounce();
  for (const auto* name : {"r1", "r2"}) take(name);
  set_state("r1", "Failed");
  pass(10min);
  take("r1");
  pass(2min);
  BOOST_TEST(count("failed") == 1);
  const auto before = age("failed");
  BOOST_TEST(before > 720);
  stop();
  start();
  pass(10s);
  BOOST_TEST(count("failed") == 1);
  BOOST_TEST(age("failed") > before - 10);
  BOOST_TEST(age("failed") < before + 20);
}

BOOST_FIXTURE_TEST_CASE(kim_configures_what_it_is_told_to, landscape) {
  start_kim({});
  begin();
  put(source::config, "v2");
  debounce();
  for (const auto* name : {"r1", "r2"}) BOOST_TEST(configured(name) == content());
  quiet();
  BOOST_TEST(count("current") == 2);
  BOOST_TEST(kim().reconciles() == 2U);
}

BOOST_FIXTURE_TEST_CASE(kim_that_fails_after_the_mark_is_told_again, landscape) {
  int failures = 0;
  kim_options with;
  with.outcome = [&](const std::string& name) {
    const bool fails = name == "r1" && failures < 2;
    if (fails) ++failures;
    return fails ? kim_outcome::fails_after : kim_outcome::changed;
  };
  start_kim(std::move(with));
  begin();
  put(source::config, "v2");
  pass(1min);
  BOOST_TEST(count("failed") == 1);
  BOOST_TEST(count("current") == 1);
  BOOST_TEST(configured("r1") != content());
  pass(1h);
  BOOST_TEST(configured("r1") == content());
  BOOST_TEST(count("current") == 2);
  BOOST_TEST(marks("retry") == 2);
  BOOST_TEST(kim().reconciles() == 4U);
}

BOOST_FIXTURE_TEST_CASE(kims_own_watcher_beside_us_causes_no_second_reconcile, landscape) {
  kim_options with;
  with.config_watcher = true;
  start_kim(std::move(with));
  begin();
  const int changes = 5;
  for (int i = 0; i < changes; ++i) {
    put(source::config, "w" + std::to_string(i));
    pass(1min);
    for (const auto* name : {"r1", "r2"}) BOOST_TEST(configured(name) == content());
  }
  quiet();
  BOOST_TEST(kim().reconciles() == 2U * changes);
  BOOST_TEST(marks() == 0);
  BOOST_TEST(count("current") == 2);
  // What it does not react to is ours.
  remove(source::config);
  pass(1min);
  BOOST_TEST(configured("r1") == content());
  BOOST_TEST(kim().reconciles() == 2U * (changes + 1));
  stop();
  begin();
  quiet();
  BOOST_TEST(kim().reconciles() == 2U * (changes + 1));
}

// F2
BOOST_FIXTURE_TEST_CASE(label_that_kims_watcher_co_owns_keeps_no_runtime_from_being_marked,
                        landscape) {
  boost::json::object labels;
  labels[mark] = "true";
  change("r1", {{"labels", std::move(labels)}});
  kim_options with;
  with.config_watcher = true;
  start_kim(std::move(with));
  begin();
  put(source::config, "v2");  // from now on the watcher owns the label as well
  pass(1min);
  kim().options().config_watcher = false;
  put(source::config, "v3");
  pass(1min);
  BOOST_TEST(configured("r1") == content());
  BOOST_TEST(k8s::label(runtime("r1"), mark) == "true");
  quiet();
  BOOST_TEST(count("current") == 2);
}

// --- restarts and failures ---------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(restart_signals_what_changed_meanwhile_and_nothing_else, landscape) {
  begin();
  put(source::pull_secret, "v2");
  debounce();
  for (const auto* name : {"r1", "r2"}) take(name);
  stop();
  begin();
  quiet();
  BOOST_TEST(marks() == 2);
  BOOST_TEST(count("current") == 2);
  stop();
  remove(source::trust_bundle);
  begin();
  BOOST_TEST(marks() == 4);
}

BOOST_FIXTURE_TEST_CASE(restart_in_the_middle_marks_those_that_were_left, landscape) {
  faults([](const std::string& verb, const std::string& path) {
    return failing(verb, path, "patch", "/r2", 500);
  });
  begin();
  put(source::config, "v2");
  debounce();
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

BOOST_FIXTURE_TEST_CASE(failure_on_one_runtime_does_not_delay_the_others, landscape) {
  faults([](const std::string& verb, const std::string& path) {
    return failing(verb, path, "patch", "/r1", 403);
  });
  begin();
  put(source::config, "v2");
  debounce();
  BOOST_TEST(is_marked("r2"));
  BOOST_TEST(!is_marked("r1"));
  BOOST_TEST(count("outdated") == 1);
  BOOST_TEST(metric("rw_controller_failing_keys{controller=\"config-sync\"}") == 1);
  BOOST_TEST(call(has_event("r1", "ConfigurationNotSignalled")));
  faults({});
  pass(3min);
  BOOST_TEST(is_marked("r1"));
  BOOST_TEST(metric("rw_controller_failing_keys{controller=\"config-sync\"}") == 0);
}

BOOST_FIXTURE_TEST_CASE(no_runtime_is_marked_before_the_change_is_recorded, landscape) {
  begin();
  faults([](const std::string& verb, const std::string& path) {
    return failing(verb, path, "update", "signalled-configuration", 500);
  });
  put(source::config, "v2");
  pass(1min);
  BOOST_TEST(marks() == 0);
  faults({});
  pass(1min);
  BOOST_TEST(marks() == 2);
}

BOOST_FIXTURE_TEST_CASE(lost_record_has_signalled_runtimes_marked_once_more, landscape) {
  begin();
  put(source::config, "v2");
  debounce();
  for (const auto* name : {"r1", "r2"}) take(name);
  stop();
  remove_record();
  begin();
  BOOST_TEST(marks() == 4);
  for (const auto* name : {"r1", "r2"}) take(name);
  stop();
  remove_record();
  put(source::config, "v3");
  begin();
  BOOST_TEST(marks() == 6);
}

BOOST_FIXTURE_TEST_CASE(lost_record_has_runtimes_marked_that_were_never_signalled, landscape) {
  begin();
  put(source::config, "v2");
  debounce();
  for (const auto* name : {"r1", "r2"}) take(name);
  pass(1h);
  add_runtime("r3");  // KIM configured it when it was created
  pass(1h);
  BOOST_TEST(!is_marked("r3"));
  stop();
  remove_record();
  put(source::config, "v3");
  begin();
  BOOST_TEST(is_marked("r3"));
  for (const auto* name : {"r1", "r2", "r3"}) take(name);
  quiet();
  BOOST_TEST(count("current") == 3);
}

BOOST_FIXTURE_TEST_CASE(lost_record_is_noticed_by_a_runtime_in_mode_direct, landscape) {
  annotate("r1", {{bootstrapper_mode_annotation, "direct"}});
  begin();
  BOOST_TEST(noted("r1") == signalled_nothing);
  stop();
  remove_record();
  put(source::config, "v2");
  begin();
  BOOST_TEST(is_marked("r2"));
}

// --- single Runtimes ---------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(suspended_runtime_is_marked_when_its_suspension_ends, landscape) {
  begin();
  annotate("r1", {{suspend_reconciliation_annotation, "true"}});
  put(source::config, "v2");
  debounce();
  BOOST_TEST(!is_marked("r1"));
  BOOST_TEST(is_marked("r2"));
  BOOST_TEST(count("suspended") == 1);
  annotate("r1", {{suspend_reconciliation_annotation, nullptr}});
  debounce();
  BOOST_TEST(is_marked("r1"));
}

BOOST_AUTO_TEST_CASE(mark_is_a_label_where_that_is_configured) {
  landscape here({.form = mark_form::label});
  here.begin();
  here.annotate("r1", {{mark, "true"}});
  here.put(source::config, "v2");
  here.debounce();
  for (const auto* name : {"r1", "r2"}) {
    BOOST_TEST(carries_mark(here.runtime(name), mark_form::label));
  }
  BOOST_TEST(!here.is_marked("r2"));
}

// F3
BOOST_FIXTURE_TEST_CASE(runtime_in_mode_direct_with_a_mark_is_counted_with_its_age, landscape) {
  begin();
  put(source::config, "v2");
  debounce();
  for (const auto* name : {"r1", "r2"}) annotate(name, {{mode, "direct"}});
  debounce();
  // A mark of ours is withdrawn, another client's is not.
  BOOST_TEST(!is_marked("r1"));
  BOOST_TEST(noted("r1") == "none");
  annotate("r1", {{mark, "true"}});
  pass(1h);
  BOOST_TEST(is_marked("r1"));
  BOOST_TEST(count("direct_marked") == 1);
  BOOST_TEST(count("direct") == 1);
  const auto since =
      metric("rw_config_sync_state_since_timestamp_seconds{state=\"direct_marked\"}");
  const std::chrono::duration<double> now = clock.wall().time_since_epoch();
  BOOST_TEST(now.count() - since > 3500);
  take("r1");
  debounce();
  BOOST_TEST(count("direct") == 2);
}

BOOST_FIXTURE_TEST_CASE(runtime_that_returns_from_direct_is_marked, landscape) {
  begin();
  put(source::config, "v2");
  debounce();
  for (const auto* name : {"r1", "r2"}) annotate(name, {{mode, "direct"}});
  debounce();
  BOOST_TEST(marks() == 2);
  annotate("r1", {{mode, "shadow"}});
  annotate("r2", {{mode, nullptr}});
  debounce();
  BOOST_TEST(marks() == 4);
  BOOST_TEST(noted("r1").starts_with("2 "));
}

BOOST_FIXTURE_TEST_CASE(unknown_mode_is_reported_and_the_runtime_left_alone, landscape) {
  begin();
  annotate("r1", {{mode, "signals"}});
  put(source::config, "v2");
  debounce();
  BOOST_TEST(!is_marked("r1"));
  BOOST_TEST(count("unmanaged") == 1);
  BOOST_TEST(call(has_event("r1", "BootstrapperModeUnknown")));
  annotate("r1", {{mode, "signal"}});
  debounce();
  BOOST_TEST(is_marked("r1"));
}

BOOST_FIXTURE_TEST_CASE(new_runtime_is_marked_only_for_what_it_may_have_missed, landscape) {
  begin();
  put(source::config, "v2");
  debounce();
  add_runtime("r3");  // KIM may have configured it with the old content
  pass(10min);
  add_runtime("r4");
  debounce();
  BOOST_TEST(is_marked("r3"));
  BOOST_TEST(!is_marked("r4"));
  put(source::config, "v3");
  debounce();
  BOOST_TEST(is_marked("r4"));
}

/// The first request to mark r1 takes its time; what the test does meanwhile comes first.
struct slow_mark : landscape {
  slow_mark() {
    faults([this](const std::string& verb, const std::string& path) {
      k8s::devserver::fault out;
      const bool is_it = verb == "patch" && path.ends_with("/r1") && armed;
      if (is_it && !std::exchange(under_way, true)) out.latency = 10s;
      return out;
    });
    begin();
    armed = true;
    put(source::config, "v2");
    eventually([&] { return under_way; }, "r1 is about to be marked");
  }
  bool armed = false;
  bool under_way = false;
};

BOOST_FIXTURE_TEST_CASE(late_mark_does_not_reach_a_suspended_runtime, slow_mark) {
  annotate("r1", {{suspend_reconciliation_annotation, "true"}});
  pass(5min);
  BOOST_TEST(!is_marked("r1"));
  BOOST_TEST(metric("rw_config_sync_conflicts_total") == 1);
}

BOOST_FIXTURE_TEST_CASE(late_mark_does_not_create_a_deleted_runtime_again, slow_mark) {
  remove_runtime("r1");
  pass(5min);
  const auto found = call(api("kcp").get(runtimes_type(), {std::string(kcp_namespace), "r1"}));
  BOOST_TEST(found.has_error());
  BOOST_TEST(count("marked") == 1);
}

BOOST_AUTO_TEST_SUITE_END()
