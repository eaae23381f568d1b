// Whose events were missed, by the heartbeats of one runtime.

#include "rw/reactors/shared/gap_detector.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(gap_detector)

using namespace rw;
using namespace std::chrono_literals;

namespace {

/// Heartbeats arrive when they are sent, or else with the previous one.
struct detector : rw::gap_detector {
  using rw::gap_detector::observe;
  missed_events observe(const heartbeat& next) {
    if (next.sent) arrival = core::time_point(next.sent->time_since_epoch());
    return observe(next, arrival);
  }
  core::time_point arrival = {};
};

constexpr auto live = watch_state::live;
constexpr auto listing = watch_state::catching_up;
constexpr auto unobserved = watch_state::unobserved;

watch_report one_watch(watch_state state) {
  return {.manager = "klm", .resource = "kymas", .field = "spec", .state = state};
}

/// A heartbeat of the previous version.
heartbeat observing(const std::string& boot, watch_state state, std::uint64_t lost = 0) {
  heartbeat one;
  one.boot_id = boot;
  one.source = state == unobserved ? "webhook" : "both";
  one.watches = {one_watch(state)};
  one.events.lost = lost;
  return one;
}

/// One letter for each heartbeat: a gap or none.
std::string gaps_of(const std::vector<heartbeat>& all) {
  detector under_test;
  std::string out;
  for (const auto& each : all) out += under_test.observe(each) ? 'G' : '.';
  return out;
}

constexpr int never = 1 << 20;

/// The heartbeats of one pod. Times are seconds of the runtime's clock.
struct pod {
  std::string boot;
  int started;
  int live_since = never;  ///< all of its watches
  std::string ledger = "missing";
  std::string series = boot;
  std::vector<manager_gaps> gaps = {};
  watch_state second = live;

  heartbeat at(int second_of) const {
    const std::chrono::system_clock::time_point epoch{1h};
    const bool is_live = live_since <= second_of;
    auto out = observing(boot, is_live ? live : listing);
    out.ledger = ledger;
    out.started = epoch + std::chrono::seconds(started);
    out.sent = epoch + std::chrono::seconds(second_of);
    out.gaps = {series, gaps};
    if (is_live) out.watches[0].live_since = epoch + std::chrono::seconds(live_since);
    out.watches.push_back(out.watches[0]);
    out.watches[1].resource = "secrets";
    if (second == unobserved) {
      out.watches[1].state = unobserved;
      out.watches[1].live_since.reset();
    }
    return out;
  }
};

std::string joined(const missed_events& found) {
  std::string out;
  for (const auto& each : found.managers) out += (each.empty() ? "*" : each) + " ";
  return out;
}

/// A process that has been live from 0, was heard at 0, and another one that starts at 1000.
struct replacement {
  detector under_test = {};
  pod former{.boot = "a", .started = -100, .live_since = -90, .ledger = "read"};
  pod next{.boot = "b", .started = 1000, .live_since = 1002};

  replacement() { BOOST_TEST(!under_test.observe(former.at(0))); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(gap_told_before_the_lists_are_complete_is_told_again_after_them) {
  replacement r;
  r.next.second = unobserved;
  BOOST_TEST(joined(r.under_test.observe(r.next.at(1100))) == "* ");
  BOOST_TEST(!r.under_test.observe(r.next.at(1120)));
  r.next.second = live;
  BOOST_TEST(joined(r.under_test.observe(r.next.at(1140))) == "* ");
  BOOST_TEST(!r.under_test.observe(r.next.at(1160)));
}

// --- the previous version ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(first_heartbeat_is_a_gap_only_after_lost_events) {
  BOOST_TEST(gaps_of({observing("a", unobserved)}) == ".");
  BOOST_TEST(gaps_of({observing("a", unobserved, 7), observing("a", unobserved, 7)}) == "G.");
}

BOOST_AUTO_TEST_CASE(lost_events_are_a_gap) {
  BOOST_TEST(gaps_of({observing("a", live), observing("a", live, 1), observing("a", live, 1)}) ==
             ".G.");
}

BOOST_AUTO_TEST_CASE(restart_is_a_gap_unless_all_resources_are_observed) {
  BOOST_TEST(gaps_of({observing("a", live), observing("b", live)}) == "..");
  BOOST_TEST(gaps_of({observing("a", live), observing("b", unobserved)}) == ".G");
  BOOST_TEST(gaps_of({observing("a", live), observing("b", listing), observing("b", live),
                      observing("b", unobserved)}) == "....");
}

BOOST_AUTO_TEST_CASE(restart_whose_lists_fail_is_a_gap) {
  BOOST_TEST(gaps_of({observing("a", live), observing("b", listing), observing("b", listing),
                      observing("b", unobserved), observing("b", unobserved)}) == "...G.");
}

BOOST_AUTO_TEST_CASE(pods_that_replace_each_other_are_no_new_gaps) {
  BOOST_TEST(gaps_of({observing("a", live, 3), observing("b", live), observing("a", live, 3),
                      observing("b", live), observing("a", live, 3)}) == "G....");
  BOOST_TEST(gaps_of({observing("a", live, 3), observing("b", live), observing("a", live, 4)}) ==
             "G.G");
}

BOOST_AUTO_TEST_CASE(heartbeat_of_the_previous_version_concerns_all_managers) {
  detector under_test;
  const auto missed = under_test.observe(observing("a", live, 1));
  BOOST_TEST(joined(missed) == "* ");
  BOOST_TEST(missed.concerns("klm"));
  BOOST_TEST(missed.message() == "the watcher has lost events (all operators)");
}

BOOST_AUTO_TEST_CASE(pod_beside_one_of_the_previous_version_needs_no_journal) {
  detector under_test;
  under_test.observe(observing("a", live), core::time_point(1h + 980s));
  pod next{.boot = "b", .started = 1000, .live_since = 1002};
  BOOST_TEST(!under_test.observe(next.at(1001)));
  BOOST_TEST(!under_test.observe(next.at(1006)));
  // Long after the update that is no excuse.
  pod later{.boot = "c", .started = 5000, .live_since = 5002};
  BOOST_TEST(!under_test.observe(later.at(5003)));
  BOOST_TEST(joined(under_test.observe(later.at(5043))) == "* ");
}

// --- counts --------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(gap_concerns_the_manager_whose_count_has_changed) {
  detector under_test;
  pod one{.boot = "a", .started = 0, .live_since = 0, .gaps = {{"kim", 2}}};
  BOOST_TEST(joined(under_test.observe(one.at(1))) == "kim ");
  BOOST_TEST(!under_test.observe(one.at(2)));
  one.gaps = {{"kim", 2}, {"klm", 1}};
  const auto missed = under_test.observe(one.at(3));
  BOOST_TEST(joined(missed) == "klm ");
  BOOST_TEST(missed.message() == "the watcher has lost events (operators: klm)");
  BOOST_TEST((missed.concerns("klm") && !missed.concerns("kim")));
  one.gaps = {{"", 1}, {"kim", 3}, {"klm", 1}};
  BOOST_TEST(joined(under_test.observe(one.at(4))) == "* ");
}

BOOST_AUTO_TEST_CASE(counts_are_compared_over_the_restarts_of_one_journal) {
  detector under_test;
  const std::vector<manager_gaps> counts{{"kim", 2}};
  const auto process = [&](const char* boot, const char* series) {
    return pod{.boot = boot,
               .started = 0,
               .live_since = 0,
               .ledger = "read",
               .series = series,
               .gaps = counts}
        .at(1);
  };
  BOOST_TEST(joined(under_test.observe(process("a", "s1"))) == "kim ");
  BOOST_TEST(!under_test.observe(process("b", "s1")));
  BOOST_TEST(joined(under_test.observe(process("c", "s2"))) == "kim ");
}

BOOST_AUTO_TEST_CASE(count_that_decreases_is_a_gap_since_the_journal_has_lost_its_end) {
  detector under_test;
  pod one{.boot = "a", .started = 0, .live_since = 0, .ledger = "read", .gaps = {{"kim", 5}}};
  under_test.observe(one.at(1));
  pod again = one;
  again.boot = "b";
  again.series = "a";
  again.gaps = {{"kim", 4}};
  BOOST_TEST(joined(under_test.observe(again.at(2))) == "kim ");
  again.gaps = {{"kim", 5}};
  BOOST_TEST(joined(under_test.observe(again.at(3))) == "kim ");
}

BOOST_AUTO_TEST_CASE(counts_beyond_those_remembered_concern_all_managers) {
  detector under_test;
  pod one{.boot = "a", .started = 0, .live_since = 0};
  for (int i = 100; i < 140; ++i) one.gaps.push_back({"m" + std::to_string(i), 1});
  BOOST_TEST(joined(under_test.observe(one.at(1))) == "* ");
  BOOST_TEST(!under_test.observe(one.at(2)));
  one.gaps[3].count = 2;
  BOOST_TEST(joined(under_test.observe(one.at(3))) == "m103 ");
  one.gaps[39].count = 2;
  BOOST_TEST(joined(under_test.observe(one.at(4))) == "* ");
}

BOOST_AUTO_TEST_CASE(message_is_bounded) {
  missed_events many{.managers = {}, .reason = "why"};
  for (int i = 0; i < 256; ++i) many.managers.push_back(std::string(253, 'm'));
  BOOST_TEST(many.message().size() < 512u);
  BOOST_TEST(many.message().ends_with(" and 255 more)"));
}

// --- starts --------------------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(restart_with_its_journal_is_no_gap, replacement) {
  next.ledger = "read";
  BOOST_TEST(!under_test.observe(next.at(1001)));
  BOOST_TEST(!under_test.observe(next.at(1006)));
}

BOOST_FIXTURE_TEST_CASE(replaced_pod_without_a_journal_is_a_gap_once_its_lists_are_complete,
                        replacement) {
  former.live_since = never;
  under_test.observe(former.at(950));
  BOOST_TEST(!under_test.observe(next.at(1001)));
  BOOST_TEST(joined(under_test.observe(next.at(1006))) == "* ");
  BOOST_TEST(!under_test.observe(next.at(1026)));
}

BOOST_FIXTURE_TEST_CASE(pod_whose_lists_were_not_complete_when_it_was_heard_may_cover,
                        replacement) {
  for (const bool was_live : {true, false}) {
    former.live_since = never;
    under_test = {};
    under_test.observe(former.at(0));
    under_test.observe(former.at(990));
    BOOST_TEST(!under_test.observe(next.at(1006)));
    if (was_live) former.live_since = 995;
    if (was_live) BOOST_TEST(!under_test.observe(former.at(1005)));
    BOOST_TEST(!under_test.observe(next.at(1042)));
    BOOST_TEST(joined(under_test.observe(next.at(1043))) == (was_live ? "" : "* "));
  }
}

BOOST_FIXTURE_TEST_CASE(replaced_pod_is_covered_by_one_that_was_live_until_its_lists_were_complete,
                        replacement) {
  BOOST_TEST(!under_test.observe(next.at(1001)));
  BOOST_TEST(!under_test.observe(next.at(1006)));    // waits for the other one
  BOOST_TEST(!under_test.observe(former.at(1003)));  // came late
  BOOST_TEST(!under_test.observe(next.at(1300)));
}

BOOST_AUTO_TEST_CASE(clocks_of_nodes_may_differ_and_be_set) {
  for (const auto& [former_clock, next_clock] : {std::pair{0h, -5h}, {-5h, 0h}, {0h, 5h}}) {
    for (const int end : {1001, 1003}) {
      detector under_test;
      const auto observe = [&](const pod& of, int at, std::chrono::hours clock) {
        auto claimed = of.at(at);
        for (auto* each : {&claimed.started, &claimed.sent, &claimed.watches[0].live_since,
                           &claimed.watches[1].live_since}) {
          if (*each) **each += clock;
        }
        return bool(under_test.observe(claimed, core::time_point(std::chrono::seconds(at))));
      };
      const pod former{.boot = "a", .started = -100, .live_since = -90};
      const pod next{.boot = "b", .started = 1000, .live_since = 1002};
      BOOST_TEST(!observe(former, 0, former_clock));
      bool gap = observe(former, end, former_clock);
      for (const int at : {1001, 1006, 1026, 1046}) gap = observe(next, at, next_clock) || gap;
      BOOST_TEST(gap == (end < 1002));
    }
  }
}

BOOST_AUTO_TEST_CASE(invented_times_are_harmless) {
  detector under_test;
  under_test.observe(pod{.boot = "a", .started = 0}.at(1));
  using time = std::chrono::system_clock::time_point;
  for (const auto& [started, sent] :
       {std::pair{time::min(), time::max()}, {time::max(), time::min()}}) {
    auto one = pod{.boot = "b", .started = 1000, .live_since = 1002}.at(1010);
    one.started = one.watches[0].live_since = started;
    one.sent = sent;
    under_test.observe(one, core::time_point(1010s));
  }
}

BOOST_FIXTURE_TEST_CASE(pod_with_a_longer_interval_is_waited_for, replacement) {
  const auto observe = [&](int at) {
    auto heartbeat = next.at(at);
    heartbeat.interval = 1s;
    return joined(under_test.observe(heartbeat));
  };
  for (int at = 1001; at < 1021; ++at) BOOST_TEST(observe(at) == "");
  BOOST_TEST(!under_test.observe(former.at(1020)));
  BOOST_TEST(observe(1043) == "");
}

BOOST_FIXTURE_TEST_CASE(pod_that_is_not_heard_again_covers_nothing, replacement) {
  BOOST_TEST(!under_test.observe(next.at(1001)));
  BOOST_TEST(!under_test.observe(next.at(1042)));
  BOOST_TEST(joined(under_test.observe(next.at(1043))) == "* ");
}

BOOST_FIXTURE_TEST_CASE(pod_whose_watch_was_interrupted_covers_nothing, replacement) {
  BOOST_TEST(!under_test.observe(next.at(1006)));
  former.live_since = 1001;
  BOOST_TEST(joined(under_test.observe(former.at(1010))) == "* ");
}

BOOST_FIXTURE_TEST_CASE(pod_with_other_watches_covers_nothing, replacement) {
  auto other = next.at(1006);
  other.watches[1].resource = "configmaps";
  under_test.observe(former.at(1005));
  BOOST_TEST(joined(under_test.observe(other)) == "* ");
}

BOOST_FIXTURE_TEST_CASE(pod_that_does_not_observe_all_is_covered_by_one_that_does, replacement) {
  next.second = unobserved;
  under_test.observe(former.at(1005));
  BOOST_TEST(!under_test.observe(next.at(1006)));
}

BOOST_FIXTURE_TEST_CASE(restart_that_does_not_observe_all_is_a_gap, replacement) {
  former.second = next.second = unobserved;
  next.ledger = "read";
  under_test.observe(former.at(1005));
  BOOST_TEST(joined(under_test.observe(next.at(1006))) == "* ");
}

BOOST_FIXTURE_TEST_CASE(restart_before_the_former_start_was_judged_does_not_hide_it, replacement) {
  former.live_since = never;
  under_test.observe(former.at(950));
  BOOST_TEST(!under_test.observe(next.at(1001)));
  pod again{.boot = "c", .started = 1002, .live_since = 1003, .ledger = "read", .series = "b"};
  BOOST_TEST(joined(under_test.observe(again.at(1004))) == "* ");
}

BOOST_FIXTURE_TEST_CASE(start_that_is_forgotten_undecided_is_a_gap, replacement) {
  BOOST_TEST(!under_test.observe(next.at(1006)));
  std::string found;
  for (int i = 0; i < 4; ++i) {
    pod other{.boot = "x" + std::to_string(i), .started = 1000};
    found += joined(under_test.observe(other.at(1001)));
  }
  BOOST_TEST(found == "* ");
}

BOOST_AUTO_TEST_CASE(pod_that_ran_before_the_first_heartbeat_is_no_start) {
  detector under_test;
  pod first{.boot = "a", .started = 0, .live_since = 50};
  pod second{.boot = "b", .started = 0, .live_since = 2, .second = unobserved};
  BOOST_TEST(!under_test.observe(first.at(1000)));
  BOOST_TEST(!under_test.observe(second.at(1010)));
}

/// Pods start, end and crash at any time, and heartbeats are lost.
BOOST_AUTO_TEST_CASE(time_without_a_live_pod_is_a_gap_in_every_history) {
  int checked = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int limit) {
      return static_cast<int>(random() % static_cast<unsigned>(limit));
    };
    std::vector<heartbeat> arrived;
    std::map<int, int> lives;  // from, to
    int start = 0;
    for (int i = 0; i < 8; ++i) {
      const pod one{
          .boot = "p" + std::to_string(i), .started = start, .live_since = start + 1 + below(9)};
      const int end = start + 10 + below(200);
      std::vector<int> beats{start + 1, std::min(one.live_since + below(5), end)};
      for (int at = beats.back() + 20; at < end; at += 20) beats.push_back(at);
      if (below(2) == 0) beats.push_back(end);
      for (const int at : beats) {
        if (i == 0 || below(6) > 0) arrived.push_back(one.at(at));
      }
      lives[one.live_since] = std::max(lives[one.live_since], end);
      start += 5 + below(120);
    }
    std::ranges::sort(arrived, {}, &heartbeat::sent);
    const auto second_of = [](const heartbeat& of) {
      return static_cast<int>((*of.sent - std::chrono::system_clock::time_point(1h)) / 1s);
    };
    const auto arrives = [&](int from, int to, bool is_live) {
      return std::ranges::any_of(arrived, [&](const heartbeat& each) {
        const int at = second_of(each);
        return from <= at && at <= to && (!is_live || each.watches[0].state == live);
      });
    };
    detector under_test;
    std::vector<int> gaps;
    for (const auto& each : arrived) {
      if (under_test.observe(each)) gaps.push_back(second_of(each));
    }
    int until = lives.begin()->second;
    for (const auto& [from, to] : lives) {
      const bool is_known =
          arrives(from, from + 60, true) && arrives(from + 100, from + 150, false);
      if (from > until && is_known) {
        ++checked;
        const bool is_told =
            std::ranges::any_of(gaps, [&](int at) { return until < at && at <= from + 150; });
        BOOST_TEST(is_told,
                   "history " << seed << ": none was live from " << until << " to " << from);
      }
      until = std::max(until, to);
    }
  }
  BOOST_TEST(checked > 1000);
}

/// Two pods are replaced one after the other, each before the former one ends.
BOOST_AUTO_TEST_CASE(roll_out_over_a_hundred_runtimes_with_two_pods_makes_no_gap) {
  int gaps = 0;
  for (int runtime = 0; runtime < 100; ++runtime) {
    const int lists = runtime % 7;  // how long they take
    const int phase = runtime % 20;
    const pod a1{.boot = "a1", .started = -5000, .live_since = -4000};
    const pod a2{.boot = "a2", .started = -4900, .live_since = -4800};
    const pod b1{.boot = "b1", .started = 1000, .live_since = 1000 + lists};
    const pod b2{.boot = "b2", .started = 1005, .live_since = 1005 + lists};
    std::vector<heartbeat> all;
    const auto runs = [&](const pod& one, int from, int last) {
      for (int at = from; at < last; at += 20) all.push_back(one.at(at));
      all.push_back(one.at(last));  // at its end
    };
    runs(a1, phase, 1010);
    runs(a2, 10 + phase, 1017);
    runs(b1, 1001, 1001);
    runs(b1, 1006, 2000);  // after a change of the watches
    runs(b2, 1006, 1006);
    runs(b2, 1011, 2000);
    std::ranges::sort(all, {}, &heartbeat::sent);
    detector under_test;
    for (const auto& each : all) gaps += under_test.observe(each) ? 1 : 0;
  }
  BOOST_TEST(gaps == 0);
}

BOOST_AUTO_TEST_SUITE_END()
