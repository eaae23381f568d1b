// What heartbeats report as dropped.

#include "rw/reactors/heartbeat/losses.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(losses)

using namespace rw;
using namespace rw::heartbeats;
using namespace std::chrono_literals;

namespace {

const core::time_point listening{1h};

struct runtime {
  loss_counter under_test;
  core::time_point now = listening + 10min;

  /// Names and number of losses; `age` of the process.
  std::string receive(std::string boot, std::vector<operator_losses> all,
                      std::chrono::seconds age = 1min) {
    heartbeat content;
    content.boot_id = std::move(boot);
    content.sent = std::chrono::system_clock::from_time_t(1'800'000'000);
    content.started = *content.sent - age;
    content.losses = std::move(all);
    return receive(content);
  }
  std::string receive(const heartbeat& content) {
    const auto lost = under_test.receive(content, now, listening);
    std::string out;
    for (const auto& each : lost.managers) out += "'" + each + "' ";
    return out + std::to_string(lost.count);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(growth_of_a_process_is_reported_once, runtime) {
  BOOST_TEST(receive("b1", {}) == "0");
  BOOST_TEST(receive("b1", {{"klm", 2}}) == "'klm' 2");
  BOOST_TEST(receive("b1", {{"klm", 2}}) == "0");
  BOOST_TEST(receive("b1", {{"klm", 3}, {"kim", 4}}) == "'kim' 'klm' 5");
  BOOST_TEST(receive("b1", {{"klm", 1}, {"kim", 4}}) == "0", "an older heartbeat");
  BOOST_TEST(receive("b1", {{"klm", 3}, {"kim", 4}}) == "0");
  BOOST_TEST(receive("b1", {{"", 1}, {"klm", 3}, {"kim", 4}}) == "'' 1");
}

BOOST_FIXTURE_TEST_CASE(process_that_began_after_the_leader_counts_from_zero, runtime) {
  BOOST_TEST(receive("b1", {{"klm", 2}}, 599s) == "'klm' 2");
  BOOST_TEST(receive("b2", {{"klm", 2}}, 600s) == "0", "it began as the leader did");
  BOOST_TEST(receive("b2", {{"klm", 3}}, 600s) == "'klm' 1");
  BOOST_TEST(receive("b3", {{"klm", 2}}, -1s) == "'klm' 2", "any age but an older one");
}

BOOST_FIXTURE_TEST_CASE(process_that_does_not_say_when_it_began_is_a_baseline, runtime) {
  heartbeat content;
  content.boot_id = "b1";
  content.losses = {{"klm", 2}};
  BOOST_TEST(receive(content) == "0");
  content.losses.front().count = 4;
  BOOST_TEST(receive(content) == "'klm' 2");
}

BOOST_FIXTURE_TEST_CASE(age_of_a_process_may_be_any, runtime) {
  heartbeat content;
  content.losses = {{"klm", 1}};
  content.started = std::chrono::system_clock::time_point::min();
  content.sent = std::chrono::system_clock::time_point::max();
  BOOST_TEST(receive(content) == "0");
  std::swap(content.started, content.sent);
  content.boot_id = "b2";
  BOOST_TEST(receive(content) == "'klm' 1");
}

BOOST_FIXTURE_TEST_CASE(losses_are_not_reported_before_the_leader_listens, runtime) {
  heartbeat content;
  content.sent = content.started = std::chrono::system_clock::from_time_t(1'800'000'000);
  content.losses = {{"klm", 1}};
  BOOST_TEST(!under_test.receive(content, now, core::time_point::max()));
}

BOOST_FIXTURE_TEST_CASE(processes_are_forgotten_in_the_order_in_which_they_were_heard, runtime) {
  for (std::size_t i = 0; i < loss_counter::max_processes; ++i) {
    BOOST_TEST(receive("b" + std::to_string(i), {{"klm", 1}}) == "'klm' 1");
  }
  BOOST_TEST(receive("b0", {{"klm", 1}}) == "0");
  BOOST_TEST(receive("other", {{"klm", 1}}) == "'klm' 1");
  BOOST_TEST(receive("b0", {{"klm", 1}}) == "0");
  BOOST_TEST(receive("b2", {{"klm", 1}}) == "0");
  BOOST_TEST(receive("b1", {{"klm", 1}}) == "'klm' 1", "it was forgotten");
}

BOOST_FIXTURE_TEST_CASE(operators_beyond_the_limit_are_one, runtime) {
  std::vector<operator_losses> all;
  for (std::size_t i = 0; i < loss_counter::max_operators; ++i) {
    all.push_back({std::to_string(10 + i), 1});
  }
  receive("b1", all);
  all.push_back({"x", 1});
  BOOST_TEST(receive("b1", all) == "'' 1");
  all.push_back({"y", 1});
  BOOST_TEST(receive("b1", all) == "'' 1");
  all.back().count = 5;
  BOOST_TEST(receive("b1", all) == "'' 4");
}

BOOST_FIXTURE_TEST_CASE(growth_is_bounded, runtime) {
  BOOST_TEST(receive("b1", {{"klm", ~std::uint64_t{0}}}) == "'klm' 1000");
}

BOOST_AUTO_TEST_CASE(message_names_operators_within_a_limit) {
  const std::string text = "the watcher dropped events, and tells these operators to resync: ";
  BOOST_TEST((reported_losses{{"kim", "klm"}, 2}.message() == text + "kim, klm"));
  BOOST_TEST((reported_losses{{"", "klm"}, 2}.message() == text + "others, klm"));
  reported_losses many{std::vector<std::string>(64, std::string(100, 'n')), 64};
  BOOST_TEST(many.message().ends_with(" and 62 more"));
  many.managers.assign(64, std::string(253, 'n'));
  BOOST_TEST(many.message().size() <= 512U);
}

BOOST_AUTO_TEST_SUITE_END()
