#include "rw/reactors/shared/watcher_set.hpp"

#include "rw/reactors/shared/managers_file.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(watcher_set)

using rw::choose_watchers;
using rw::most_watchers;
using rw::watcher_candidate;

namespace {

watcher_candidate candidate(std::size_t i, bool accepted) {
  watcher_candidate out;
  out.desired.key = {"kcp-system", "w" + std::to_string(i)};
  out.desired.uid = "u" + std::to_string(i);
  out.desired.manager = "m" + std::to_string(i);
  out.desired.watched = {"operator.kyma-project.io", "*", "kymas"};
  if (accepted) out.accepted = out.desired;
  out.desired.created = std::chrono::system_clock::time_point(std::chrono::seconds(i));
  return out;
}

std::vector<watcher_candidate> candidates(std::size_t count, bool accepted) {
  std::vector<watcher_candidate> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(candidate(i, accepted));
  return out;
}

/// Adds labels of that many bytes.
void enlarge(rw::watcher& one, std::size_t bytes) {
  for (std::size_t i = 0; bytes > 0; ++i) {
    const auto length = std::min<std::size_t>(bytes, 60);
    one.labels["l" + std::to_string(i)] = std::string(length, 'x');
    bytes -= length;
  }
}

const rw::watcher* found(const rw::watcher_choice& in, std::size_t i) {
  const auto at = std::ranges::find(in.in_force, "w" + std::to_string(i),
                                    [](const auto& one) { return one.key.name; });
  return at == in.in_force.end() ? nullptr : &*at;
}

}  // namespace

BOOST_AUTO_TEST_CASE(youngest_is_refused_and_the_others_stay) {
  auto all = candidates(most_watchers + 1, false);
  std::ranges::shuffle(all, std::minstd_rand(7));
  const auto choice = choose_watchers(all);
  BOOST_TEST(choice.in_force.size() == most_watchers);
  BOOST_TEST_REQUIRE(choice.refused.size() == 1U);
  BOOST_TEST(choice.refused.begin()->first.name == "w" + std::to_string(most_watchers));
  BOOST_TEST(choice.refused.begin()->second ==
             "there are 200 Watchers in force, and no more than 200 fit on a runtime");
}

BOOST_AUTO_TEST_CASE(accepted_watcher_stays_beside_older_ones) {
  auto all = candidates(most_watchers, true);
  all.push_back(candidate(most_watchers, false));
  all.back().desired.created = {};  // the oldest
  const auto choice = choose_watchers(all);
  BOOST_TEST(choice.in_force.size() == most_watchers);
  BOOST_TEST(choice.refused.contains({"kcp-system", "w200"}));
  all.front() = candidate(500, false);  // one is deleted, and another comes
  const auto next = choose_watchers(all);
  BOOST_TEST(!next.refused.contains({"kcp-system", "w200"}));
  BOOST_TEST(next.refused.contains({"kcp-system", "w500"}));
}

BOOST_AUTO_TEST_CASE(more_than_the_limit_stay_where_they_were_accepted) {
  const auto choice = choose_watchers(candidates(most_watchers + 50, true));
  BOOST_TEST(choice.in_force.size() == most_watchers + 50);
  BOOST_TEST(choice.refused.empty());
}

BOOST_AUTO_TEST_CASE(edit_that_does_not_fit_leaves_the_accepted_content) {
  auto all = candidates(100, true);
  enlarge(all[50].desired, rw::managers_file_bytes);
  enlarge(all[60].desired, 1000);
  const auto choice = choose_watchers(all);
  BOOST_TEST(choice.in_force.size() == 100U);
  BOOST_TEST_REQUIRE(choice.refused.size() == 1U);
  BOOST_TEST(choice.refused.begin()->second.starts_with("with it the managers' file"));
  BOOST_TEST(found(choice, 50)->labels.empty());
  BOOST_TEST(!found(choice, 60)->labels.empty());
}

BOOST_AUTO_TEST_CASE(chosen_ones_fit_the_managers_file_whatever_is_asked_for) {
  std::minstd_rand random(11);
  for (int round = 0; round < 50; ++round) {
    auto all = candidates(most_watchers + 20, false);
    for (auto& one : all) {
      if (random() % 2 == 0) one.accepted = one.desired;
      if (random() % 3 == 0) enlarge(one.desired, random() % 9000);
    }
    const auto choice = choose_watchers(all);
    std::vector<rw::managed_watch> watches;
    for (const auto& one : choice.in_force) watches.push_back(rw::watch_of(one));
    BOOST_TEST(rw::fits_managers_file(rw::known_managers(watches)));
    for (const auto& one : all) {
      const bool refused = choice.refused.contains(one.desired.key);
      const auto* const now = found(choice, std::stoul(one.desired.key.name.substr(1)));
      BOOST_TEST((now != nullptr) == (one.accepted.has_value() || !refused));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
