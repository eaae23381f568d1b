#include "reactors/config_sync/signal.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/config_sync/samples.hpp"
#include <ostream>

namespace rw::config_sync {

static std::ostream& operator<<(std::ostream& out, step next) {
  return out << "step " << static_cast<int>(next);
}
static std::ostream& operator<<(std::ostream& out, standing how) {
  return out << to_string(how);
}

}  // namespace rw::config_sync

BOOST_AUTO_TEST_SUITE(signal)

using namespace rw;
using namespace rw::config_sync;
using namespace rw::config_sync::test;
using namespace std::chrono_literals;
namespace json = boost::json;

namespace {

constexpr mark_forms both{.annotation = true, .label = true};
constexpr mark_forms annotation{.annotation = true};

void check(const json::value& of, step next, standing how,
           bootstrapper_mode mode = bootstrapper_mode::signal) {
  const auto judged = judge(of, third(), mode, 5min);
  BOOST_TEST(judged.next == next);
  BOOST_TEST(judged.how == how);
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_signalled_is_read_as_it_was_written) {
  for (const auto forms : {mark_forms{}, annotation, mark_forms{.label = true}, both}) {
    const rw::config_sync::signal one{{17, "abc"}, forms};
    const auto again = parse_signal(rw::config_sync::to_string(one));
    BOOST_REQUIRE(again);
    BOOST_TEST((*again == one));
  }
  BOOST_TEST(rw::config_sync::to_string(rw::config_sync::signal{{3, "c3"}, both}) ==
             "3 c3 annotation,label");
  for (const auto* text : {"", "none", "3", "3 ", "x c3", "3x c3", "-1 c3", "3 c3 label,annotation",
                           "3 c3 annotation more", "3  c3"}) {
    BOOST_TEST(!parse_signal(text), text);
  }
}

BOOST_AUTO_TEST_CASE(a_runtime_that_was_told_of_the_state_is_current) {
  check(runtime({{noted, "3 c3 annotation,label"}}), step::nothing, standing::current);
  check(runtime({{noted, "3 c3"}}), step::nothing, standing::current);
}

BOOST_AUTO_TEST_CASE(a_runtime_that_was_told_of_another_state_is_marked) {
  check(runtime({{noted, "2 c2 annotation,label"}}), step::mark, standing::behind);
  check(runtime({{noted, "none"}}), step::mark, standing::behind);
  check(runtime({{noted, "garbage"}}), step::mark, standing::behind);
}

BOOST_AUTO_TEST_CASE(the_same_content_that_came_back_is_another_state) {
  check(runtime({{noted, "1 c3"}}), step::mark, standing::behind);
}

BOOST_AUTO_TEST_CASE(nothing_is_noted_beside_a_mark) {
  // Its own, whole, of an earlier state: KIM may have read the sources before they changed.
  check(runtime({{noted, "2 c2 annotation,label"}, {mark, "true"}}, {{mark, "true"}}),
        step::nothing, standing::pending);
  check(runtime({{noted, "2 c2 annotation"}, {mark, "true"}}), step::nothing, standing::pending);
  // Of this state, and not taken yet.
  check(runtime({{noted, "3 c3 annotation"}, {mark, "true"}}), step::nothing, standing::pending);
  // Somebody else's, in either form, whatever was noted.
  check(runtime({{mark, "true"}}), step::nothing, standing::pending);
  check(runtime({}, {{mark, "true"}}), step::nothing, standing::pending);
  check(runtime({{noted, "2 c2"}, {mark, "true"}}), step::nothing, standing::pending);
  check(runtime({{noted, "2 c2 annotation"}}, {{mark, "true"}}), step::nothing, standing::pending);
}

BOOST_AUTO_TEST_CASE(a_mark_of_another_value_is_none) {
  check(runtime({{noted, "2 c2"}, {mark, "false"}}, {{mark, ""}}), step::mark, standing::behind);
}

BOOST_AUTO_TEST_CASE(the_rest_of_a_mark_that_was_taken_is_tidied_up) {
  check(runtime({{noted, "3 c3 annotation,label"}}, {{mark, "true"}}), step::tidy,
        standing::pending);
  check(runtime({{noted, "2 c2 annotation,label"}, {mark, "true"}}), step::tidy, standing::pending);
}

BOOST_AUTO_TEST_CASE(a_runtime_that_was_never_told_has_the_first_state) {
  const target first{{1, "c1"}, std::nullopt};
  const auto judged = judge(runtime(), first, bootstrapper_mode::signal, 5min);
  BOOST_TEST(judged.next == step::nothing);
  BOOST_TEST(judged.how == standing::current);
}

BOOST_AUTO_TEST_CASE(a_runtime_that_was_never_told_has_what_there_was_when_it_was_made) {
  check(runtime(), step::mark, standing::behind);
  check(runtime({}, {}, *third().since), step::mark, standing::behind);
  check(runtime({}, {}, *third().since + 5min), step::mark, standing::behind);
  check(runtime({}, {}, *third().since + 5min + 1s), step::nothing, standing::current);
  auto undated = runtime();
  undated.at("metadata").as_object().erase("creationTimestamp");
  check(undated, step::mark, standing::behind);
}

BOOST_AUTO_TEST_CASE(a_suspended_runtime_is_not_touched) {
  const auto suspended = suspend_reconciliation_annotation;
  check(runtime({{noted, "2 c2"}, {suspended, "true"}}), step::nothing, standing::suspended);
  check(runtime({{noted, "2 c2 annotation"}, {mark, "true"}, {suspended, "true"}}), step::nothing,
        standing::suspended);
  check(runtime({{noted, "3 c3 annotation,label"}, {suspended, "true"}}, {{mark, "true"}}),
        step::nothing, standing::suspended);
  check(runtime({{noted, "3 c3"}, {suspended, "true"}}), step::nothing, standing::current);
  check(runtime({{noted, "2 c2"}, {suspended, "false"}}), step::mark, standing::behind);
  check(runtime({{noted, "2 c2"}, {suspended, "true"}}), step::nothing, standing::apart,
        bootstrapper_mode::direct);
}

BOOST_AUTO_TEST_CASE(only_modes_that_are_signalled_are_marked) {
  const auto behind = runtime({{noted, "2 c2"}});
  check(behind, step::mark, standing::behind, bootstrapper_mode::shadow);
  check(behind, step::nothing, standing::apart, bootstrapper_mode::off);
  check(behind, step::disown, standing::apart, bootstrapper_mode::direct);
}

BOOST_AUTO_TEST_CASE(what_somebody_else_writes_to_is_not_believed_to_be_current) {
  const auto direct = bootstrapper_mode::direct;
  check(runtime({{noted, "3 c3"}}), step::disown, standing::apart, direct);
  check(runtime(), step::disown, standing::apart, direct);
  check(runtime({{noted, "none"}}), step::nothing, standing::apart, direct);
  // A mark is KIM's to finish, the rest of one is not.
  check(runtime({{noted, "3 c3 annotation"}, {mark, "true"}}), step::nothing, standing::apart,
        direct);
  check(runtime({{mark, "true"}}), step::nothing, standing::apart, direct);
  check(runtime({{noted, "3 c3 annotation,label"}}, {{mark, "true"}}), step::disown,
        standing::apart, direct);
}

BOOST_AUTO_TEST_CASE(what_is_being_deleted_is_left_alone) {
  auto going = runtime({{noted, "2 c2"}});
  going.at("metadata").as_object()["deletionTimestamp"] = "2026-03-02T00:00:00Z";
  check(going, step::nothing, standing::apart);
}

BOOST_AUTO_TEST_CASE(a_mark_is_written_with_what_it_stands_for_and_only_on_what_was_judged) {
  const auto made = render(runtime({{noted, "2 c2"}, {"a", "b"}}), step::mark, third(), both);
  const auto& metadata = made.at("metadata").as_object();
  BOOST_TEST(made.as_object().size() == 3U);
  BOOST_TEST(metadata.size() == 6U);
  BOOST_TEST(metadata.at("resourceVersion").as_string() == "42");
  BOOST_TEST(metadata.at("uid").as_string() == "u-1");
  BOOST_TEST(metadata.at("annotations").as_object().size() == 2U);
  BOOST_TEST(k8s::annotation(made, noted).value() == "3 c3 annotation,label");
  BOOST_TEST(k8s::annotation(made, mark).value() == "true");
  BOOST_TEST(k8s::label(made, mark).value() == "true");

  const auto half = render(runtime(), step::mark, third(), annotation);
  BOOST_TEST(k8s::annotation(half, noted).value() == "3 c3 annotation");
  BOOST_TEST(k8s::annotation(half, mark).value() == "true");
  BOOST_TEST(!k8s::label(half, mark));
  const auto other = render(runtime(), step::mark, third(), {.label = true});
  BOOST_TEST(k8s::annotation(other, noted).value() == "3 c3 label");
  BOOST_TEST(!k8s::annotation(other, mark));
}

BOOST_AUTO_TEST_CASE(tidying_keeps_what_the_mark_stood_for) {
  const auto made = render(runtime({{noted, "2 c2 annotation,label"}}, {{mark, "true"}}),
                           step::tidy, third(), both);
  BOOST_TEST(k8s::annotation(made, noted).value() == "2 c2");
  BOOST_TEST(!carries_mark(made));
  const auto disowned = render(runtime({{noted, "2 c2"}}), step::disown, third(), both);
  BOOST_TEST(k8s::annotation(disowned, noted).value() == "none");
  BOOST_TEST(!carries_mark(disowned));
}

BOOST_AUTO_TEST_CASE(forms_have_names) {
  BOOST_TEST((parse_mark_forms("both") == both));
  BOOST_TEST((parse_mark_forms("annotation") == annotation));
  BOOST_TEST((parse_mark_forms("label") == mark_forms{.label = true}));
  BOOST_TEST(!parse_mark_forms("none"));
}

BOOST_AUTO_TEST_SUITE_END()
