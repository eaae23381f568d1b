// The numbers of gaps of each manager, over the restarts of a journal.

#include "rw/reactors/shared/gap_account.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(gap_account)

using rw::gap_counts;
using account = rw::gap_account;

namespace {

gap_counts counts_of(const account& of, const std::string& manager) {
  const auto found = of.counts().find(manager);
  return found == of.counts().end() ? gap_counts() : found->second;
}

bool has(const account& of, const std::string& manager, std::uint64_t raised, std::uint64_t told) {
  return counts_of(of, manager) == gap_counts{raised, told};
}

}  // namespace

BOOST_AUTO_TEST_CASE(gap_is_outstanding_until_its_manager_was_told) {
  account under_test("s1");
  under_test.raise("klm");
  under_test.raise("klm");
  under_test.raise("kim");
  BOOST_TEST(counts_of(under_test, "klm").outstanding());
  under_test.told("klm", 1);
  BOOST_TEST(has(under_test, "klm", 2, 1));
  under_test.told("klm", 2);
  BOOST_TEST(!counts_of(under_test, "klm").outstanding());
  BOOST_TEST(has(under_test, "kim", 1, 0));
  BOOST_TEST(under_test.raised() == 3u);
}

BOOST_AUTO_TEST_CASE(late_or_invented_numbers_change_nothing) {
  account under_test("s1");
  under_test.raise("klm");
  under_test.raise("klm");
  under_test.told("klm", 2);
  under_test.told("klm", 1);
  under_test.told("kim", 1);
  BOOST_TEST(has(under_test, "klm", 2, 2));
  BOOST_TEST(under_test.counts().size() == 1u);
  under_test.told("klm", 9);
  under_test.raise("klm");
  BOOST_TEST(counts_of(under_test, "klm").outstanding());
}

BOOST_AUTO_TEST_CASE(names_beyond_the_bound_count_for_all_managers) {
  account under_test("s1");
  for (int i = 0; i < 300; ++i) under_test.raise("m" + std::to_string(i));
  BOOST_TEST(under_test.counts().size() == account::max_managers);
  BOOST_TEST(counts_of(under_test, "").raised == 45u);
  BOOST_TEST(counts_of(under_test, "m254").raised == 1u);
  under_test.raise("m254");
  BOOST_TEST(counts_of(under_test, "m254").raised == 2u);
}

BOOST_AUTO_TEST_CASE(name_that_no_path_can_have_counts_for_all_managers) {
  account under_test("s1");
  for (const auto& name : {std::string(), std::string("a/b"), std::string(254, 'a')}) {
    under_test.raise(name);
  }
  BOOST_TEST(has(under_test, "", 3, 0));
  BOOST_TEST(under_test.counts().size() == 1u);
}

BOOST_AUTO_TEST_CASE(restored_series_continues) {
  account under_test("s1");
  under_test.raise("klm");  // before the journal was read
  under_test.restore_series("s0");
  under_test.restore("klm", {.raised = 5, .told = 5});
  under_test.restore("kim", {.raised = 2, .told = 1});
  BOOST_TEST(under_test.series() == "s0");
  BOOST_TEST(has(under_test, "klm", 6, 5));
  BOOST_TEST(has(under_test, "kim", 2, 1));
  BOOST_TEST(under_test.raised() == 1u);
}

BOOST_AUTO_TEST_CASE(observer_gets_each_change) {
  std::vector<std::string> changes;
  account under_test("s1", [&](const std::string& manager, const gap_counts& now) {
    changes.push_back(manager + " " + std::to_string(now.raised) + "/" + std::to_string(now.told));
  });
  under_test.restore("klm", {.raised = 1, .told = 0});
  under_test.raise("klm");
  under_test.told("klm", 2);
  under_test.told("klm", 2);
  under_test.raise("a b");
  const std::vector<std::string> expected{"klm 2/0", "klm 2/2", " 1/0"};
  BOOST_TEST(changes == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
