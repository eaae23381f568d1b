// The state machine of one Runtime, and what is written for its decisions.

#include "rw/reactors/config_sync/runtime_signal.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include <map>
#include <string>

BOOST_AUTO_TEST_SUITE(runtime_signal)

using namespace rw;
using namespace rw::config_sync;
using namespace std::chrono_literals;
namespace json = boost::json;
using written = rw::config_sync::signal_write;
using rw::config_sync::signal_state;
using state = signal_state;

namespace {

const auto day0 =
    std::chrono::system_clock::time_point(std::chrono::sys_days(std::chrono::year(2026) / 3 / 1));
constexpr auto mark = force_reconciliation_mark;

/// One Runtime and the machine that follows it, at a time that the test moves. The target is the
/// third revision, which became visible at version 100.
struct followed {
  using texts = std::map<std::string_view, std::string_view>;

  explicit followed(std::string_view note = {}) { set(note); }

  void set(std::string_view note) {
    noted = note;
    if (!note.empty()) annotations[signalled_annotation] = noted;
  }
  void be_marked(std::uint64_t at) {
    version = at;
    annotations[mark] = "true";
  }
  void be_taken(std::uint64_t at) {
    version = at;
    annotations.erase(mark);
  }
  void be_marked_and_taken() {
    be_marked(110);
    check(state::marked);
    be_taken(120);
  }
  json::value object() const {
    json::value out = {{"metadata",
                        {{"name", "r1"},
                         {"namespace", kcp_namespace},
                         {"uid", "u-1"},
                         {"resourceVersion", std::to_string(version)},
                         {"creationTimestamp", k8s::format_time(created)}}},
                       {"status", {{"state", kim}}}};
    for (const auto& [name, value] : annotations) k8s::set_annotation(out, name, value);
    for (const auto& [name, value] : labels) k8s::set_label(out, name, value);
    return out;
  }
  signal_decision poll() {
    const auto seen = view_of(object(), mode, form);
    const signal_moment at{.now = now,
                           .wall = day0 + 24h + (now - core::time_point{}),
                           .timing = timing,
                           .to = to,
                           .visible_at = 100,
                           .due = due,
                           .due_in_series = {}};
    machine.observe(seen, version, at);
    return machine.poll(seen, at);
  }
  void check(state expected, written what = written::none) {
    const auto got = poll();
    BOOST_TEST(rw::config_sync::to_string(got.state) == rw::config_sync::to_string(expected));
    BOOST_TEST((got.write == what));
  }

  rw::config_sync::target to{{3, "c3"}, day0 + 12h};
  bootstrapper_mode mode = bootstrapper_mode::signal;
  mark_form form = mark_form::annotation;
  signal_timing timing = {};
  core::time_point due = {};
  core::time_point now = {};
  std::uint64_t version = 50;
  std::chrono::system_clock::time_point created = day0;
  std::string kim = "Ready";
  std::string noted;
  texts annotations;
  texts labels;
  signal_machine machine;
};

constexpr auto covered = "3 c3 1 2026-03-02T00:00:00Z";
constexpr auto before = "2 c2 1 2026-03-01T00:00:00Z";

}  // namespace

BOOST_AUTO_TEST_CASE(signal_is_read_as_it_was_written) {
  const rw::config_sync::signal one{{17, "abc"}, 4, day0};
  BOOST_TEST(rw::config_sync::to_string(one) == "17 abc 4 2026-03-01T00:00:00Z");
  BOOST_TEST((parse_signal(rw::config_sync::to_string(one)) == one));
  // As earlier releases wrote it.
  for (const auto* text : {"3 c3", "3 c3 annotation,label", "3 c3 label"}) {
    BOOST_TEST((parse_signal(text) == rw::config_sync::signal{{3, "c3"}}), text);
  }
  for (const auto* text : {"", "none", "3", "3 ", "x c3", "3x c3", "-1 c3", "3  c3"}) {
    BOOST_TEST(!parse_signal(text), text);
  }
}

BOOST_AUTO_TEST_CASE(runtime_with_another_signal_is_marked) {
  for (const auto* note : {before, "garbage", "1 c3"})
    followed(note).check(state::outdated, written::mark);
  const auto got = followed(before).poll();
  BOOST_TEST((got.as == rw::config_sync::signal{{3, "c3"}, 1, day0 + 24h}));
}

BOOST_AUTO_TEST_CASE(runtime_without_signal_is_marked_only_if_it_is_older_than_the_target) {
  followed one;
  one.check(state::outdated, written::mark);
  one.created = one.to.since.value() + 4min;
  one.check(state::outdated, written::mark);
  one.created = one.to.since.value() + 6min;
  one.check(state::current);
  one.created = day0;
  one.to.since.reset();
  one.check(state::current);
}

BOOST_AUTO_TEST_CASE(runtime_that_stays_ready_is_current_after_a_quiet_time) {
  followed one(covered);
  one.be_marked_and_taken();
  one.check(state::in_progress);
  BOOST_TEST((one.poll().recheck_at == one.now + 2min));
  one.now += 119s;
  one.check(state::in_progress);
  one.now += 1s;
  one.check(state::current);
}

BOOST_AUTO_TEST_CASE(runtime_that_fails_after_it_was_current_is_marked_again_with_a_backoff) {
  followed one(covered);
  one.check(state::in_progress);
  one.now += 2min;
  one.check(state::current);
  one.kim = "Pending";  // KIM is busy with something else
  one.check(state::current);
  one.now += 10h;
  one.kim = "Failed";
  one.check(state::failed);
  BOOST_TEST((one.poll().recheck_at == one.now + 5min));
  one.now += 5min;
  one.check(state::failed, written::mark);
  BOOST_TEST(one.poll().as.attempt == 2U);
  // As long as it is Failed, whatever the reason is.
  one.set("3 c3 30 2026-03-02T10:07:00Z");
  one.check(state::failed);
  BOOST_TEST((one.poll().recheck_at == one.now + 4h));
  // Another revision does not wait for it.
  one.to.of = {4, "c4"};
  one.check(state::outdated, written::mark);
  one.to.of = {3, "c3"};
  one.kim = "Ready";
  one.check(state::current);
}

BOOST_AUTO_TEST_CASE(runtime_whose_last_mark_is_old_is_current_when_it_is_seen_first) {
  followed one(covered);
  one.set("3 c3 1 2026-03-01T23:58:00Z");
  one.check(state::current);
  one.machine = {};
  one.kim = "Pending";
  one.check(state::in_progress);
}

BOOST_AUTO_TEST_CASE(runtime_that_was_pending_is_current_when_it_is_ready) {
  followed one(covered);
  one.be_marked_and_taken();
  one.kim = "Pending";
  one.check(state::in_progress);
  one.now += 50min;
  one.check(state::in_progress);
  one.kim = "Ready";
  one.check(state::current);
}

BOOST_AUTO_TEST_CASE(failed_runtime_is_marked_again_with_a_backoff) {
  followed one(covered);
  one.be_marked_and_taken();
  one.kim = "Failed";
  one.check(state::failed);
  BOOST_TEST((one.poll().recheck_at == one.now + 5min));
  one.now += 5min;
  one.check(state::failed, written::mark);
  BOOST_TEST((one.poll().as == rw::config_sync::signal{{3, "c3"}, 2, day0 + 24h + 5min}));
  one.set("3 c3 2 2026-03-02T00:05:00Z");
  BOOST_TEST((one.poll().recheck_at == one.now + 10min));
  one.set("3 c3 30 2026-03-02T00:05:00Z");
  BOOST_TEST((one.poll().recheck_at == one.now + 4h));
  // It recovers by itself: KIM has reconciled it after all.
  one.kim = "Pending";
  one.check(state::in_progress);
  one.kim = "Ready";
  one.check(state::current);
}

BOOST_AUTO_TEST_CASE(runtime_that_stays_pending_counts_as_failed_after_the_timeout) {
  followed one(covered);
  one.kim = "Pending";
  one.check(state::in_progress);
  BOOST_TEST((one.poll().recheck_at == one.now + 1h));
  one.now += 1h;
  one.check(state::failed, written::mark);
  one.now += 1h;
  one.check(state::failed, written::mark);
  one.kim = "Ready";
  one.check(state::current);
}

BOOST_AUTO_TEST_CASE(failed_runtime_whose_mark_stays_is_marked_again) {
  followed one(covered);
  one.kim = "Failed";
  one.be_marked(110);
  one.check(state::marked);
  one.now += 5min;
  one.check(state::marked, written::mark);
  one.kim = "Ready";  // KIM is busy
  one.check(state::marked);
  // Nor does it wait for ever where the mark is another client's.
  followed other(before);
  other.kim = "Failed";
  other.be_marked(110);
  other.check(state::marked, written::mark);
}

BOOST_AUTO_TEST_CASE(failed_runtime_is_marked_at_once_for_another_revision) {
  followed one(before);
  one.kim = "Failed";
  one.check(state::outdated, written::mark);
}

BOOST_AUTO_TEST_CASE(mark_that_is_there_after_the_change_covers_it) {
  followed one(before);
  one.be_marked(101);
  one.check(state::marked);
  one.be_taken(102);
  one.check(state::in_progress, written::note);
  BOOST_TEST((one.poll().as == rw::config_sync::signal{{3, "c3"}, 0, day0 + 24h}));
  one.set("3 c3 0 2026-03-02T00:00:00Z");
  one.now += 2min;
  one.check(state::current);
}

BOOST_AUTO_TEST_CASE(mark_that_may_be_older_than_the_change_covers_it_once_it_is_confirmed) {
  followed one(before);
  one.be_marked(99);
  one.check(state::marked, written::mark);
  // It went first.
  one.be_taken(105);
  one.check(state::outdated, written::mark);
}

BOOST_AUTO_TEST_CASE(change_after_the_mark_went_is_signalled_while_kim_works) {
  followed one(before);
  one.be_marked(90);
  one.poll();
  one.be_taken(95);
  one.kim = "Pending";
  one.check(state::outdated, written::mark);
}

// F2: KIM's config watcher co-owns whatever labels there were; KIM reads and removes none.
BOOST_AUTO_TEST_CASE(label_of_the_marks_name_is_no_mark) {
  followed one(before);
  one.labels[mark] = "true";
  one.check(state::outdated, written::mark);
  one.annotations[mark] = "false";
  one.check(state::outdated, written::mark);
  one.form = mark_form::label;
  one.version = 110;
  one.check(state::marked);
}

BOOST_AUTO_TEST_CASE(suspended_runtime_is_left_alone) {
  followed one(before);
  one.annotations[suspend_reconciliation_annotation] = "true";
  one.check(state::suspended);
  one.be_marked(110);
  one.check(state::suspended);
  one.be_taken(111);
  one.set(covered);
  one.kim = "Failed";
  one.now += 10h;
  one.check(state::suspended);
  one.kim = "Ready";
  one.check(state::current);
}

// F3: nobody else would tell.
BOOST_AUTO_TEST_CASE(mark_in_mode_direct_is_a_state_of_its_own) {
  followed one(before);
  one.mode = bootstrapper_mode::direct;
  one.check(state::direct, written::withdraw);
  one.set("none");
  one.check(state::direct);
  one.be_marked(110);
  one.check(state::direct_marked);
  // Back again: the mark of then does not count if it is gone.
  one.be_taken(111);
  one.mode = bootstrapper_mode::shadow;
  // KIM is to write after the last write of ours.
  one.check(state::outdated);
  BOOST_TEST((one.poll().recheck_at == one.now + 10s));
  one.now += 10s;
  one.check(state::outdated, written::mark);
}

BOOST_AUTO_TEST_CASE(off_and_deletion_leave_it_alone) {
  followed one(before);
  one.mode = bootstrapper_mode::off;
  one.check(state::unmanaged);
  auto object = followed(before).object();
  object.at("metadata").as_object()["deletionTimestamp"] = "2026-03-02T00:00:00Z";
  const auto seen = view_of(object, bootstrapper_mode::signal, mark_form::annotation);
  BOOST_TEST((seen.mode == bootstrapper_mode::off));
}

BOOST_AUTO_TEST_CASE(runtime_is_not_marked_too_often_while_the_sources_keep_changing) {
  followed one("2 c2 1 2026-03-02T00:00:00Z");
  one.due = one.now + 1h;
  one.check(state::outdated);
  BOOST_TEST((one.poll().recheck_at == one.now + 30s));
  one.now += 30s;
  one.check(state::outdated, written::mark);
  // But soon when they are still.
  one.now -= 20s;
  one.due = one.now;
  one.check(state::outdated, written::mark);
}

BOOST_AUTO_TEST_CASE(writes_hold_all_fields_of_ours_at_the_version_that_was_read) {
  const auto runtime = followed(before).object();
  const rw::config_sync::signal as{{3, "c3"}, 1, day0};
  const auto marked = render(runtime, written::mark, as, mark_form::annotation);
  const auto& metadata = marked.at("metadata").as_object();
  BOOST_TEST(marked.as_object().size() == 3U);
  BOOST_TEST(metadata.size() == 5U);
  BOOST_TEST(metadata.at("resourceVersion").as_string() == "50");
  BOOST_TEST(metadata.at("uid").as_string() == "u-1");
  BOOST_TEST(metadata.at("annotations").as_object().size() == 2U);
  BOOST_TEST(k8s::annotation(marked, signalled_annotation) == "3 c3 1 2026-03-01T00:00:00Z");
  BOOST_TEST(carries_mark(marked));
  const auto labelled = render(runtime, written::mark, as, mark_form::label);
  BOOST_TEST(!carries_mark(labelled));
  BOOST_TEST(carries_mark(labelled, mark_form::label));
  BOOST_TEST(!carries_mark(render(runtime, written::note, as, mark_form::annotation)));
  const auto withdrawn = render(runtime, written::withdraw, {}, mark_form::annotation);
  BOOST_TEST(!carries_mark(withdrawn));
  BOOST_TEST(k8s::annotation(withdrawn, signalled_annotation) == "none");
}

BOOST_AUTO_TEST_SUITE_END()
