#include "rw/reactors/config_sync/target.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(target)

using namespace rw;
using namespace rw::config_sync;
using namespace std::chrono_literals;
namespace json = boost::json;

namespace {

const auto day0 =
    std::chrono::system_clock::time_point(std::chrono::sys_days(std::chrono::year(2026) / 3 / 1));

using one = rw::config_sync::target;

}  // namespace

BOOST_AUTO_TEST_CASE(target_is_read_as_it_was_written) {
  for (const auto& each : {one{{1, "c1"}, std::nullopt}, one{{9, "c9"}, day0 + 3s}}) {
    const auto again = read_record(write_record(each, nullptr));
    BOOST_REQUIRE(again);
    BOOST_TEST((*again == each));
  }
}

BOOST_AUTO_TEST_CASE(record_is_written_at_the_version_that_was_read) {
  const json::value before = {{"metadata", {{"resourceVersion", "7"}}}};
  const auto record = write_record({{1, "c1"}, std::nullopt}, before);
  BOOST_TEST(k8s::resource_version_of(record) == "7");
  BOOST_TEST((k8s::key_of(record) ==
              k8s::object_key{std::string(kcp_namespace), std::string(record_name)}));
  BOOST_TEST(k8s::resource_version_of(write_record({{1, "c1"}, {}}, nullptr)).empty());
}

BOOST_AUTO_TEST_CASE(damaged_record_holds_no_target) {
  BOOST_TEST(!read_record(nullptr));
  const auto good = write_record({{4, "c4"}, day0}, nullptr);
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

BOOST_AUTO_TEST_CASE(recorded_target_stays_until_the_sources_change) {
  const one last{{4, "c4"}, day0};
  const auto now = day0 + 1500ms;
  BOOST_TEST((next_target({.recorded = last, .digest = "c4", .now = now}) == last));
  const one next{{5, "c5"}, day0 + 2s};  // not antedated
  BOOST_TEST((next_target({.recorded = last, .digest = "c5", .now = now}) == next));
  const one returned{{5, "c4"}, day0 + 2s};
  BOOST_TEST(
      (next_target({.recorded = last, .digest = "c4", .changed = true, .now = now}) == returned));
}

BOOST_AUTO_TEST_CASE(first_start_takes_the_sources_for_what_all_runtimes_have) {
  BOOST_TEST((next_target({.digest = "c", .now = day0}) == one{{1, "c"}, std::nullopt}));
  // A change before that could be recorded is a change.
  BOOST_TEST((next_target({.digest = "c", .changed = true, .now = day0}) == one{{2, "c"}, day0}));
}

BOOST_AUTO_TEST_CASE(lost_record_makes_a_revision_that_no_runtime_was_signalled) {
  BOOST_TEST(
      (next_target({.digest = "c", .last_signalled = 4, .now = day0}) == one{{5, "c"}, day0}));
  BOOST_TEST(
      (next_target({.digest = "c", .last_signalled = 0, .now = day0}) == one{{1, "c"}, day0}));
}

BOOST_AUTO_TEST_CASE(request_to_signal_all_counts_once_and_only_before_the_first_signal) {
  BOOST_TEST((next_target({.digest = "c", .all_once = true, .now = day0}) == one{{1, "c"}, day0}));
  const one first{{1, "c"}, std::nullopt};
  const one second{{2, "c"}, day0};
  BOOST_TEST(
      (next_target({.recorded = first, .digest = "c", .all_once = true, .now = day0}) == second));
  BOOST_TEST(
      (next_target({.recorded = second, .digest = "c", .all_once = true, .now = day0 + 1h}) ==
       second));
}

BOOST_AUTO_TEST_SUITE_END()
