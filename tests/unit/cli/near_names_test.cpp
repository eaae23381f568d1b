#include "rw/reactors/cli/near_names.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(near_names)

using rw::cli::unknown_kyma;
using names = std::vector<std::string>;

BOOST_AUTO_TEST_CASE(
    names_are_near_by_their_beginning_or_one_change_in_three_letters_and_the_nearest_is_first) {
  const names known{"runtime-10", "runtime-2", "runtime-31", "other"};
  BOOST_TEST((rw::cli::near_names("runtmie-2", known) == names{"runtime-2"}));
  BOOST_TEST(
      (rw::cli::near_names("runtime-3", known) == names{"runtime-2", "runtime-31", "runtime-10"}));
  BOOST_TEST((rw::cli::near_names("othr", known) == names{"other"}));
  BOOST_TEST(rw::cli::near_names("otrh", known).empty());
  BOOST_TEST(rw::cli::near_names("nope", {"None"}).empty());
}

BOOST_AUTO_TEST_CASE(names_are_at_most_three) {
  const names known{"a1", "a2", "a3", "a4"};
  BOOST_TEST((rw::cli::near_names("a", known) == names{"a1", "a2", "a3"}));
}

BOOST_AUTO_TEST_CASE(unknown_kyma_is_named_with_those_that_there_are) {
  BOOST_TEST(unknown_kyma("nope", {}) == "there is no Kyma nope, nor any other");
  BOOST_TEST(unknown_kyma("nope", {"a", "b"}) == "there is no Kyma nope: there are a, b");
  BOOST_TEST(unknown_kyma("allpha", {"alpha", "beta"}) ==
             "there is no Kyma allpha; did you mean alpha?");
}

BOOST_AUTO_TEST_SUITE_END()
