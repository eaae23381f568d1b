// The reactor on an embedded API server, on a clock that only the test moves.

#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/config_sync/landscape.hpp"
#include <chrono>
#include <string>

BOOST_AUTO_TEST_SUITE(config_sync)

using namespace rw;
using namespace std::chrono_literals;
using rw::config_sync::sync_options;
using rw::config_sync::test::landscape;

constexpr auto mark = force_reconciliation_mark;

BOOST_FIXTURE_TEST_CASE(the_first_start_marks_nobody_and_writes_to_no_runtime, landscape) {
  const auto before = version("r1");
  begin();
  BOOST_TEST(marks() == 0);
  BOOST_TEST(version("r1") == before);
  BOOST_TEST(standing("current") == 2);
  BOOST_TEST(k8s::find_string(record(), {"data", "since"}) == "ever");
}

BOOST_FIXTURE_TEST_CASE(a_change_before_the_first_state_is_recorded_is_signalled, landscape) {
  start();
  pass(500ms);  // what there is is known by now, and has not been still for long enough
  BOOST_TEST(!find_record().has_value());
  put(source::pull_secret, "v2");
  settle_down();
  BOOST_TEST(marks() == 2);
  BOOST_TEST(is_marked("r1"));
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

BOOST_FIXTURE_TEST_CASE(who_was_left_when_a_process_ended_is_marked_once_for_all_since, landscape) {
  begin();
  put(source::config, "v2");
  pass(1s);
  stop();  // before anybody was marked
  begin();
  stop();
  BOOST_TEST(marks() == 2);
  for (const auto* name : {"r1", "r2"}) take(name);
  annotate("r1", {{signalled_annotation, "1 older"}});
  put(source::config, "v3");
  begin();
  BOOST_TEST(marks() == 4);
  take("r1");
  settle_down();
  BOOST_TEST(marks() == 4);
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

BOOST_AUTO_TEST_SUITE_END()
