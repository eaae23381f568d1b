#include "rw/reactors/shared/fleet_history.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "../manual_clock.hpp"
#include <random>

namespace rw::fleet_history_test {
BOOST_AUTO_TEST_SUITE(fleet_history)

using rw::fleet_history;
using namespace std::chrono_literals;

namespace {

/// A calendar at the beginning of a minute.
core::manual_clock made_clock() {
  return core::manual_clock(std::chrono::sys_seconds(1'800'000'000s));
}

fleet_sample sample(fleet_level level, std::uint32_t ill, std::uint64_t events) {
  fleet_sample out{.level = level};
  out.counts[static_cast<std::size_t>(runtime_condition::ill)] = ill;
  out.totals.fill(events);
  return out;
}

std::size_t ill_of(const fleet_minute& of) {
  return of.counts[static_cast<std::size_t>(runtime_condition::ill)];
}

/// As much of all as there can be, in numbers and texts that are as long as they can be.
fleet_history full_history(core::manual_clock& clock) {
  fleet_history out;
  std::uint64_t events = 0;
  for (std::size_t i = 0; i < fleet_history::max_minutes + 100; ++i) {
    auto each = sample(fleet_level::outage, 0, events += 0xffffffffU);
    each.counts.fill(0xffffffffU);
    out.record(clock.wall(), each);
    for (std::size_t subject = 0; subject < fleet_history::max_subjects; ++subject) {
      const std::string longest(200, static_cast<char>('a' + subject));
      out.change(clock.wall(), longest, longest + std::to_string(i),
                 std::to_string(i) + longest + longest);
    }
    clock.advance(1min);
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(minute_has_its_worst_level_its_last_counts_and_its_events) {
  auto clock = made_clock();
  fleet_history history;
  history.record(clock.wall(), sample(fleet_level::well, 0, 1000));
  BOOST_TEST(history.minutes().back().events[0] == 0U, "nothing before the first sample");
  clock.advance(5s);
  history.record(clock.wall(), sample(fleet_level::outage, 7, 1010));
  clock.advance(5s);
  history.record(clock.wall(), sample(fleet_level::unknown, 3, 1015));
  clock.advance(50s);
  history.record(clock.wall(), sample(fleet_level::unknown, 3, 1017));
  clock.advance(2min);
  history.record(clock.wall(), sample(fleet_level::well, 0, 4));  // a counter that began anew
  BOOST_REQUIRE_EQUAL(history.minutes().size(), 3U);
  const auto& first = history.minutes()[0];
  BOOST_TEST(first.level == fleet_level::outage);
  BOOST_TEST(ill_of(first) == 3U);
  BOOST_TEST(first.events[6] == 15U);
  BOOST_TEST(history.minutes()[1].level == fleet_level::unknown);
  BOOST_TEST(history.minutes()[1].events[0] == 2U);
  BOOST_TEST(history.minutes()[2].minute == first.minute + 3,
             "a minute without a sample is absent");
  BOOST_TEST(history.minutes()[2].events[0] == 0U);
}

BOOST_AUTO_TEST_CASE(day_is_kept_and_no_more) {
  auto clock = made_clock();
  auto history = full_history(clock);
  BOOST_REQUIRE_EQUAL(history.minutes().size(), fleet_history::max_minutes);
  BOOST_TEST(history.changes().size() == fleet_history::max_subjects);
  for (const auto& [subject, all] : history.changes()) {
    BOOST_TEST(all.size() == fleet_history::max_changes);
  }
  const auto encoded = history.encode();
  BOOST_TEST(encoded.size() <= fleet_history::max_encoded);
  BOOST_TEST((encoded.size() + 2) / 3 * 4 <= 511U << 10U, "in Base64, as a Secret has it");
  const auto decoded = fleet_history::decode(encoded);
  BOOST_REQUIRE(decoded);
  BOOST_TEST((decoded->minutes() == history.minutes()));
  BOOST_TEST((decoded->changes() == history.changes()));
  history.change(clock.wall(), "one more", "Completed", "");
  BOOST_TEST(history.changes().size() == fleet_history::max_subjects, "the oldest goes");
  BOOST_TEST(history.changes().contains("one more"));
  BOOST_TEST(decoded->encode() == encoded);
}

BOOST_AUTO_TEST_CASE(calendar_that_is_set_back_ends_what_was_in_its_future) {
  auto clock = made_clock();
  fleet_history history;
  history.record(clock.wall(), sample(fleet_level::well, 1, 0));
  clock.step_wall(48h);
  history.record(clock.wall(), sample(fleet_level::well, 2, 0));
  BOOST_TEST(history.minutes().size() == 1U, "the first is older than a day");
  clock.step_wall(-24h);
  history.record(clock.wall(), sample(fleet_level::well, 3, 0));
  BOOST_REQUIRE_EQUAL(history.minutes().size(), 1U);
  BOOST_TEST(ill_of(history.minutes()[0]) == 3U);
}

BOOST_AUTO_TEST_CASE(transitions_of_a_runtime_are_its_changes_the_last_64) {
  auto clock = made_clock();
  fleet_history history;
  history.transition(clock.wall(), "r", runtime_condition::unknown, status_reason::none);
  BOOST_TEST(history.transitions_of("r").empty(), "nothing is known of it yet");
  for (int i = 0; i < 200; ++i) {
    const auto condition = i / 2 % 2 == 0 ? runtime_condition::well : runtime_condition::ill;
    const auto reason = i / 2 % 2 == 0 ? status_reason::none : status_reason::no_heartbeat;
    history.transition(clock.wall(), "r", condition, reason);
    clock.advance(5s);
  }
  const auto all = history.transitions_of("r");
  BOOST_REQUIRE_EQUAL(all.size(), fleet_history::max_changes);
  BOOST_TEST((all.back().condition == runtime_condition::ill));
  BOOST_TEST(all.back().reason == status_reason::no_heartbeat);
  BOOST_TEST(all.back().at - all.front().at == 63U * 10);
  const auto shown = json_of(all);
  BOOST_TEST(shown.at(0).at("reason").as_string() == "NoHeartbeat", "the newest first");
  const auto time = k8s::parse_rfc3339(shown.at(0).at("time").as_string());
  BOOST_REQUIRE(time.has_value());
  BOOST_TEST(std::chrono::system_clock::to_time_t(*time) ==
             shown.at(0).at("at").to_number<std::time_t>());
}

BOOST_AUTO_TEST_CASE(runtimes_that_were_not_well_are_those_of_that_moment) {
  auto clock = made_clock();
  fleet_history history;
  const auto begin = clock.wall();
  const auto name_all = [&](runtime_condition a, runtime_condition b) {
    history.transition(clock.wall(), "a", a, status_reason::no_heartbeat);
    history.transition(clock.wall(), "b", b, status_reason::none);
  };
  name_all(runtime_condition::ill, runtime_condition::well);
  clock.advance(1min);
  name_all(runtime_condition::well, runtime_condition::under_way);
  clock.advance(1min);
  history.transition(clock.wall(), "a", runtime_condition::well, status_reason::none);
  clock.advance(10min);
  history.transition(clock.wall(), "a", runtime_condition::well, status_reason::none);
  const auto names = [&](auto at) {
    std::string out;
    for (const auto& [kyma, then] : history.not_well_at(at)) out += kyma;
    return out;
  };
  BOOST_TEST(names(begin - 1s) == "");
  BOOST_TEST(names(begin + 59s) == "a");
  BOOST_TEST(names(begin + 60s) == "b");
  BOOST_TEST(names(begin + 10min) == "", "b is gone");
  const auto shown = json_of(history, std::chrono::floor<std::chrono::seconds>(begin + 59s), 0);
  BOOST_TEST(shown.at("total").to_number<int>() == 1);
  BOOST_TEST(shown.at("runtimes").as_array().empty());
}

BOOST_AUTO_TEST_CASE(old_transitions_are_forgotten_but_the_one_that_still_holds) {
  auto clock = made_clock();
  fleet_history history;
  history.transition(clock.wall(), "gone", runtime_condition::ill, status_reason::no_heartbeat);
  history.transition(clock.wall(), "r", runtime_condition::ill, status_reason::no_heartbeat);
  clock.advance(1h);
  for (int hour = 0; hour < 30; ++hour) {
    history.transition(clock.wall(), "r", runtime_condition::well, status_reason::none);
    history.record(clock.wall(), sample(fleet_level::well, 0, 0));
    clock.advance(1h);
  }
  BOOST_TEST(history.transitions_of("gone").empty());
  BOOST_REQUIRE_EQUAL(history.transitions_of("r").size(), 1U);
  BOOST_TEST((history.transitions_of("r")[0].condition == runtime_condition::well));
}

BOOST_AUTO_TEST_CASE(next_leader_goes_on_where_the_earlier_one_ended) {
  auto clock = made_clock();
  fleet_history earlier;
  for (int i = 0; i < 10; ++i) {
    earlier.record(clock.wall(), sample(fleet_level::degraded, 5, 0));
    if (i == 3) earlier.change(clock.wall(), "watcher", "Completed", "");
    clock.advance(1min);
  }
  clock.advance(2min);  // without a leader
  fleet_history history;
  history.record(clock.wall(), sample(fleet_level::well, 0, 0));
  history.change(clock.wall(), "watcher", "Completed", "");
  history.change(clock.wall(), "watcher", "Paused", "CanaryFailed");
  history.restore(*fleet_history::decode(earlier.encode()), clock.wall());
  BOOST_REQUIRE_EQUAL(history.minutes().size(), 11U);
  BOOST_TEST(history.minutes()[10].minute - history.minutes()[9].minute == 3);
  const auto& changes = history.changes().at("watcher");
  BOOST_REQUIRE_EQUAL(changes.size(), 2U);
  BOOST_TEST((changes[0].at < changes[1].at - 5min), "the first is the earlier leader's");
  // A leader whose calendar is far ahead, or whose word is old, says nothing of this day.
  fleet_history late;
  late.restore(history, clock.wall() + 25h);
  BOOST_TEST(late.minutes().empty());
  fleet_history early;
  early.restore(history, clock.wall() - 1h);
  BOOST_TEST(early.minutes().empty());
  BOOST_TEST(early.changes().empty());
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_a_history_are_none) {
  auto clock = made_clock();
  fleet_history history;
  for (int i = 0; i < 5; ++i) {
    history.record(clock.wall(),
                   sample(fleet_level::degraded, 300, 1000U * static_cast<unsigned>(i)));
    history.change(clock.wall(), "watcher", "Progressing", std::to_string(i));
    clock.advance(1min);
  }
  const auto valid = history.encode();
  BOOST_REQUIRE(fleet_history::decode(valid));
  BOOST_TEST(!fleet_history::decode(""));
  BOOST_TEST(!fleet_history::decode("rw-history 2\n" + valid.substr(13)));
  BOOST_TEST(!fleet_history::decode(valid + '\0'), "nothing follows");
  BOOST_TEST(!fleet_history::decode(std::string(fleet_history::max_encoded + 1, 'x')));
  for (std::size_t i = 0; i < valid.size(); ++i)
    BOOST_TEST(!fleet_history::decode(valid.substr(0, i)));
  // Whatever it reads is bounded, and what it reads can be written and shown.
  std::mt19937 random(1);  // NOLINT: the same in each run
  for (int i = 0; i < 20000; ++i) {
    auto bytes = valid;
    for (auto changes = 1 + random() % 4; changes > 0; --changes) {
      bytes[13 + random() % (bytes.size() - 13)] = static_cast<char>(random());
    }
    if (i % 3 == 0) bytes.resize(13 + random() % (bytes.size() - 12));
    const auto read = fleet_history::decode(bytes);
    if (!read) continue;
    BOOST_REQUIRE(read->minutes().size() <= fleet_history::max_minutes);
    BOOST_REQUIRE(read->encode().size() <= fleet_history::max_encoded);
    fleet_history next;
    next.record(clock.wall(), sample(fleet_level::well, 0, 0));
    next.restore(*read, clock.wall());
    BOOST_REQUIRE(next.minutes().size() <= fleet_history::max_minutes);
    BOOST_REQUIRE(!boost::json::serialize(json_of(next)).empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::fleet_history_test
