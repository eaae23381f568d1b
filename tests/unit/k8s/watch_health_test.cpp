// What a front end that ends watches politely leaves of the changes, and what it costs.

#include "rw/k8s/cache/watch_health.hpp"

#include "rw/k8s/cache/reflector.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

BOOST_AUTO_TEST_SUITE(watch_health)

using namespace rw::k8s;
using namespace std::chrono_literals;
using rw::core::duration;
using action = rw::k8s::reflector::action;

namespace {

constexpr int runtimes = 1'000;
constexpr duration simulated = 3h;
constexpr duration bookmark_interval = 1min;

/// A source of numbers for a seed (D. E. Knuth's MMIX generator).
rw::core::random_source numbers(std::uint64_t seed) {
  return [seed]() mutable {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return seed >> 16;
  };
}

/// When the resource of a runtime changes.
std::vector<duration> changes_of(std::uint64_t seed, duration mean) {
  auto next = numbers(seed);
  std::vector<duration> out;
  if (mean == duration::zero()) return out;
  for (duration at{0}; at < simulated;) {
    at += 1ms * (next() % (2 * static_cast<std::uint64_t>(mean / 1ms)));
    out.push_back(at);
  }
  return out;
}

/// How long a watch that begins then lasts. A front end that ends all of them at once lets nothing
/// through; others let pass what happens until then.
using front_end = duration (*)(duration begins);

struct course {
  std::vector<duration> lists;   ///< beyond the first
  std::vector<duration> delays;  ///< from a change until it is known
  duration suspect{0};
  int watches = 0;

  auto lists_between(duration from, duration to) const {
    return std::ranges::count_if(lists, [&](duration at) { return from <= at && at < to; });
  }
};

/// One informer's requests, each as the front end lets it be.
course run(std::uint64_t seed, front_end before, duration mean_change, bool streams) {
  const auto changes = changes_of(seed, mean_change);
  const auto version_at = [&](duration at) {
    return static_cast<std::size_t>(std::ranges::upper_bound(changes, at) - changes.begin());
  };
  course out;
  duration now{0};
  std::size_t known = 0;
  const auto learn = [&](std::size_t upto, duration at) {
    for (; known < upto; ++known) out.delays.push_back(at - std::min(at, changes[known]));
  };
  rw::k8s::reflector made({.streaming_list = streams}, numbers(seed ^ 0xabcdU));
  auto next = made.begin();
  if (next.type == action::kind::probe) next = made.version(1, 34);
  bool first = true;
  while (now < simulated) {
    const bool was_suspect = made.is_suspect();
    const auto began = now;
    auto trusted = duration::max();  // from then on
    if (next.type == action::kind::wait) {
      now += next.delay;
      next = made.waited(next.delay);
    } else if (next.type == action::kind::list) {
      if (!std::exchange(first, false)) out.lists.push_back(now);
      learn(version_at(now), now);
      next = made.listed(std::to_string(known + 1), "", 1, known + 1);
    } else if (next.anew && before(now) < 1s) {
      // A streaming list that the front end ends; the pages that follow are the first list.
      if (!first) out.lists.push_back(now);
      next = made.watch_ended(rw::k8s::reflector::watch_end::in_order, {}, 0s);
    } else {
      ++out.watches;
      if (next.anew) {
        if (!std::exchange(first, false)) out.lists.push_back(now);
        learn(version_at(now), now);
        made.event({.type = decoded_event::kind::bookmark,
                    .resource_version = std::to_string(known + 1),
                    .initial_events_end = true});
      }
      const auto lasts = std::min<duration>(before(now), next.watch.timeout);
      const auto ends = now + lasts;
      for (auto mark = now + bookmark_interval; lasts > 0s && now <= ends;) {
        const bool changed = known < changes.size() && changes[known] <= ends;
        const auto change = changed ? std::max(now, changes[known]) : duration::max();
        if (std::min(change, mark) > ends) break;
        now = std::min(change, mark);
        trusted = std::min(trusted, now);
        if (change <= mark) learn(known + 1, now);
        if (mark < change) mark += bookmark_interval;
        made.event(
            {.type = change <= mark ? decoded_event::kind::modified : decoded_event::kind::bookmark,
             .resource_version = std::to_string(known + 1)});
      }
      if (lasts >= 30s) trusted = std::min(trusted, began + 30s);
      now = ends;
      next = made.watch_ended(rw::k8s::reflector::watch_end::in_order, {}, lasts);
    }
    if (was_suspect) out.suspect += std::min(now, trusted) - began;
  }
  return out;
}

std::vector<course> run_all(front_end before, duration mean_change) {
  std::vector<course> out;
  for (std::uint64_t i = 0; i < runtimes; ++i) {
    out.push_back(run(i + 1, before, mean_change, i % 2 == 0));
  }
  return out;
}

/// The most lists of all runtimes in one second.
std::ptrdiff_t most_at_once(const std::vector<course>& of) {
  std::vector<duration> all;
  for (const auto& each : of) all.insert(all.end(), each.lists.begin(), each.lists.end());
  std::ranges::sort(all);
  std::ptrdiff_t most = 0;
  for (auto at = all.begin(); at != all.end(); ++at) {
    most = std::max(most, std::upper_bound(at, all.end(), *at + 1s) - at);
  }
  return most;
}

void check_cost(const std::vector<course>& of) {
  for (const auto& each : of) {
    BOOST_TEST(each.lists_between(0s, 5min) <= 4);  // beside the first
    for (auto hour = duration(65min); hour + 1h <= simulated; hour += 1min) {
      BOOST_TEST_REQUIRE(each.lists_between(hour, hour + 1h) <= 1);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(front_end_that_ends_watches_at_once_is_listed_ever_more_rarely) {
  const auto all = run_all([](duration) { return duration(0s); }, 0h);
  check_cost(all);
  for (const auto& each : all) {
    BOOST_TEST_REQUIRE(each.lists.size() >= 6U);
    // Suspect from the first watch on.
    BOOST_TEST_REQUIRE((each.suspect > simulated - 1min));
  }
  BOOST_TEST(most_at_once(all) < runtimes / 10);
}

BOOST_AUTO_TEST_CASE(changes_behind_it_come_with_a_list_at_the_latest) {
  const auto all = run_all([](duration) { return duration(0s); }, 1h);
  for (const auto& each : all) {
    BOOST_TEST_REQUIRE(each.lists_between(0s, 5min) <= 5);
    for (const auto delay : each.delays) BOOST_TEST_REQUIRE((delay <= 1h + 5min));
  }
}

BOOST_AUTO_TEST_CASE(front_end_with_an_idle_limit_of_ten_seconds_causes_no_lists_in_the_long_run) {
  const front_end idle_limit = [](duration) { return duration(10s); };
  check_cost(run_all(idle_limit, 0h));
  for (const auto& each : run_all(idle_limit, 1h)) {
    BOOST_TEST_REQUIRE(each.lists.size() <= 10U);
    // Watches work there, and bring what happened between two of them.
    for (const auto delay : each.delays) BOOST_TEST_REQUIRE((delay <= 30s));
  }
}

BOOST_AUTO_TEST_CASE(front_end_with_a_limit_of_forty_seconds_is_an_ordinary_one) {
  for (const auto& each : run_all([](duration) { return duration(40s); }, 1h)) {
    BOOST_TEST_REQUIRE(each.lists.empty());
    BOOST_TEST_REQUIRE((each.suspect == 0s));
  }
}

/// For half a minute it ends all watches at once.
BOOST_AUTO_TEST_CASE(front_end_that_restarts_causes_few_lists) {
  const auto all = run_all(
      [](duration begins) {
        const auto restart = duration(1h);
        if (begins < restart) return restart - begins;
        return begins < restart + 30s ? duration(0s) : duration(24h);
      },
      1h);
  std::ptrdiff_t lists = 0;
  for (const auto& each : all) lists += static_cast<std::ptrdiff_t>(each.lists.size());
  // Of those whose watch had only just begun.
  BOOST_TEST(lists < runtimes / 10);
  BOOST_TEST(most_at_once(all) < runtimes / 100);
  for (const auto& each : all) BOOST_TEST_REQUIRE((each.suspect < 2min));
}

BOOST_AUTO_TEST_CASE(list_that_changes_something_does_not_lengthen_the_wait) {
  rw::k8s::watch_health under_test;
  const auto wait_after = [&](bool changed) {
    under_test.listing();
    under_test.listed(changed);
    duration passed{0};
    for (; !under_test.may_list(); passed += 10s) under_test.paused(10s);
    return passed;
  };
  BOOST_TEST((wait_after(true) == 30s));
  BOOST_TEST((wait_after(false) == 60s));
  BOOST_TEST((wait_after(true) == 60s));
  BOOST_TEST((wait_after(false) == 120s));
  for (int i = 0; i < 10; ++i) wait_after(false);
  BOOST_TEST((wait_after(false) == 1h));
  // One that lasted ends it.
  under_test.listing();
  under_test.ended({.lasted = 30s});
  BOOST_TEST(under_test.may_list());
}

BOOST_AUTO_TEST_SUITE_END()
