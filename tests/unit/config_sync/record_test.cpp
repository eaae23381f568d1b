#include "reactors/config_sync/record.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/config_sync/samples.hpp"

BOOST_AUTO_TEST_SUITE(record)

using namespace rw;
using namespace rw::config_sync;
using namespace rw::config_sync::test;
using namespace std::chrono_literals;
namespace json = boost::json;

BOOST_AUTO_TEST_CASE(a_target_is_read_as_it_was_written) {
  for (const auto& one : {target{{1, "c1"}, std::nullopt}, target{{9, "c9"}, day0 + 3s}}) {
    const auto again = read_record(write_record(one, nullptr));
    BOOST_REQUIRE(again);
    BOOST_TEST((*again == one));
  }
}

BOOST_AUTO_TEST_CASE(a_record_is_written_at_the_version_that_was_read) {
  const json::value before = {{"metadata", {{"resourceVersion", "7"}}}};
  const auto made = write_record({{1, "c1"}, std::nullopt}, before);
  BOOST_TEST(k8s::resource_version_of(made) == "7");
  BOOST_TEST(
      (k8s::key_of(made) == k8s::object_key{std::string(kcp_namespace), std::string(record_name)}));
  BOOST_TEST(k8s::resource_version_of(write_record({{1, "c1"}, {}}, nullptr)).empty());
}

BOOST_AUTO_TEST_CASE(a_record_that_says_nothing_is_none) {
  BOOST_TEST(!read_record(nullptr));
  const auto good = write_record({{4, "c4"}, day0}, nullptr);
  BOOST_TEST(read_record(good).has_value());
  for (const auto* member : {"number", "digest", "since"}) {
    auto bad = good;
    bad.at("data").as_object().erase(member);
    BOOST_TEST(!read_record(bad), member);
  }
  for (const auto* number : {"", "x", "4 ", "-4"}) {
    auto bad = good;
    bad.at("data").as_object()["number"] = number;
    BOOST_TEST(!read_record(bad), number);
  }
}

BOOST_AUTO_TEST_CASE(the_next_state_has_a_number_of_its_own_and_is_not_dated_back) {
  const auto next = next_target({{4, "c4"}, day0}, "c5", day0 + 1500ms);
  BOOST_TEST((next == target{{5, "c5"}, day0 + 2s}));
}

BOOST_AUTO_TEST_CASE(at_the_very_first_start_what_there_is_counts_since_ever) {
  BOOST_TEST((recover_target({}, "c", day0) == target{{1, "c"}, std::nullopt}));
}

BOOST_AUTO_TEST_CASE(a_lost_record_is_made_up_from_what_runtimes_say) {
  const std::vector<std::string> said{"4 b annotation", "none", "5 c annotation,label", "5 c",
                                      "garbage",        "2 a"};
  BOOST_TEST((recover_target(said, "c", day0) == target{{5, "c"}, day0}));
  BOOST_TEST((recover_target(said, "d", day0) == target{{6, "d"}, day0}));
  // Something was signalled once, so this is no first start.
  BOOST_TEST((recover_target({"none"}, "c", day0) == target{{1, "c"}, day0}));
}

BOOST_AUTO_TEST_SUITE_END()
