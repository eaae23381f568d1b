#include "rw/reactors/observation/kept_objects.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <string>
#include <utility>

BOOST_AUTO_TEST_SUITE(kept_objects)

using namespace rw::observation;
using rw::managed_watch;

namespace {

const managed_watch specs{"klm", {"op", "v1", "kymas"}, "spec", {}};
const managed_watch edited{"klm", {"op", "*", "kymas"}, "spec", {{"l", "1"}}};
const managed_watch statuses{"klm", {"op", "v1", "kymas"}, "status", {}};
const managed_watch others{"other", {"op", "v1", "kymas"}, "spec", {}};
const managed_watch maps{"klm", {"", "v1", "configmaps"}, "spec", {}};

observation_plan plan_of(std::vector<managed_watch> watches) {
  return make_plan(rw::known_managers(std::move(watches)), false);
}

journal_content::objects known(std::uint32_t number, std::size_t count, bool inherited = false) {
  journal_content::objects made{.number = number, .inherited = inherited};
  for (std::size_t i = 0; i < count; ++i) made.states.emplace("ns/" + std::to_string(i), 10 + i);
  return made;
}

struct bench {
  rw::observation::kept_objects under_test{
      10, [this](const managed_watch& of, std::uint32_t number, bool lost) {
        dropped += of.field + std::to_string(number) + (lost ? "! " : " ");
      }};
  std::string dropped;
};

}  // namespace

BOOST_AUTO_TEST_CASE(watcher_that_comes_back_is_known_as_it_was) {
  bench b;
  b.under_test.keep(specs, known(3, 2));
  BOOST_TEST(!b.under_test.take(statuses));
  const auto back = b.under_test.take(specs);
  BOOST_REQUIRE(back.has_value());
  BOOST_TEST(back->states.at("ns/1") == 11U);
  BOOST_TEST(!b.under_test.take(specs));
}

BOOST_AUTO_TEST_CASE(new_watcher_inherits_of_those_of_its_manager_and_resource_that_are_gone) {
  bench b;
  for (const auto& each : {specs, statuses, others, maps}) b.under_test.keep(each, known(1, 1));
  const auto all = b.under_test.heritage_of(edited, plan_of({edited}));
  BOOST_TEST((all == std::vector{specs, statuses}));
  const auto some = b.under_test.heritage_of(edited, plan_of({edited, statuses}));
  BOOST_TEST((some == std::vector{specs}), "one that comes back has its own");
}

BOOST_AUTO_TEST_CASE(objects_are_inherited_once_and_their_states_are_not_known_then) {
  bench b;
  b.under_test.keep(specs, known(3, 2));
  const auto inherited = b.under_test.inherit(specs);
  BOOST_TEST(inherited.number == 3U);
  BOOST_TEST(inherited.states.size() == 2U);
  BOOST_TEST(b.under_test.heritage_of(edited, plan_of({edited})).empty());
  const auto back = b.under_test.take(specs);
  BOOST_TEST(back->inherited);
  BOOST_TEST(back->states.at("ns/1") == unknown_state);
  b.under_test.keep(specs, known(4, 2));
  BOOST_TEST(b.under_test.heritage_of(edited, plan_of({edited})).size() == 1U,
             "it was there again");
}

BOOST_AUTO_TEST_CASE(states_are_not_known_where_the_manager_has_other_watchers) {
  bench b;
  for (const auto& each : {specs, others}) b.under_test.keep(each, known(1, 2));
  std::string changed;
  const auto note = [&](const managed_watch& of, const auto&) { changed += of.manager + " "; };
  b.under_test.outdate(plan_of({maps}), note);
  b.under_test.outdate(plan_of({maps}), note);
  BOOST_TEST(changed == "klm ", "its reviews may tell of anything, once");
  BOOST_TEST(b.under_test.take(specs)->states.at("ns/1") == unknown_state);
  BOOST_TEST(b.under_test.take(others)->states.at("ns/1") == 11U);
}

BOOST_AUTO_TEST_CASE(watcher_without_objects_is_not_kept) {
  bench b;
  b.under_test.keep(specs, known(5, 0));
  BOOST_TEST(b.dropped == "spec5 ");
  BOOST_TEST(b.under_test.by_watch().empty());
}

BOOST_AUTO_TEST_CASE(inherited_objects_make_room_first) {
  bench b;
  b.under_test.keep(specs, known(1, 4));
  b.under_test.keep(statuses, known(2, 4));
  b.under_test.inherit(statuses);
  b.under_test.keep(others, known(3, 4));
  BOOST_TEST(b.dropped == "status2 ");
  b.under_test.keep(maps, known(4, 4));
  BOOST_TEST(b.dropped == "status2 spec4! ", "then what is new is not kept");
  BOOST_TEST(b.under_test.by_watch().size() == 2U);
}

BOOST_AUTO_TEST_CASE(journal_s_watchers_get_numbers_that_no_table_has) {
  bench b;
  b.under_test.restore({{specs, known(1, 1)}, {statuses, known(2, 1)}});
  for (const auto& [watch, objects] : b.under_test.by_watch()) {
    BOOST_TEST(objects.number >= 0x8000'0000U);
  }
  BOOST_TEST(
      (b.under_test.by_watch().at(specs).number != b.under_test.by_watch().at(statuses).number));
}

BOOST_AUTO_TEST_SUITE_END()
