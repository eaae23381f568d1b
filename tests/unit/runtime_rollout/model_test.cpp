// Random histories of a roll-out keep to its promises.

#include "rw/reactors/runtime_rollout/decision.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime_rollout/fleet.hpp"
#include <algorithm>
#include <random>
#include <set>
#include <string>

namespace rw::runtime_rollout_test {
BOOST_AUTO_TEST_SUITE(model)

namespace {

/// Runtimes of which a part is not well, contents of which a part is bad, and a person.
class history {
 public:
  explicit history(unsigned seed) : random_(seed), of_(5 + below(60)) {
    of_.with.max_unavailable = {1 + below(20), below(2) == 0};
    of_.with.failure_budget = {below(6), below(2) == 0};
    of_.with.canaries_by_label = below(4) == 0;
    std::size_t i = 0;
    for (auto& [key, each] : of_.all) {
      each.selected = i++ % 9 == 3;
      if (below(12) == 0) each.is = health::failed;
      if (below(12) == 0) each.is = health::unreachable;
    }
  }

  void run() {
    for (int i = 0; i < 400; ++i) {
      step();
      check();
    }
    // A good content, a person who resumes, and time: then all that can have it has it.
    supersede(false);
    of_.request.paused = false;
    of_.decide();
    for (int i = 0; i < 2000 && of_.state.at != phase::completed; ++i) {
      if (of_.state.stopped()) of_.request.resume = std::to_string(++resumes_);
      take_some(2);
      of_.now += 30s;
      for (auto& [key, each] : of_.all) {
        if (each.updated() && each.is == health::progressing) become(each, health::ready);
      }
      of_.decide();
    }
    BOOST_TEST((of_.state.at == phase::completed));
    bad_ = false;
    take_some(1);
    for (const auto& [key, each] : of_.all) {
      const bool well = each.is == health::ready;
      BOOST_TEST((!well || each.updated()));
    }
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }

  void become(runtime_rollout::runtime_facts& one, health is) {
    if (one.is != is) one.since = of_.now;
    one.is = is;
  }

  void supersede(bool bad) {
    bad_ = bad;
    const auto content = "c" + std::to_string(++contents_);
    of_.request.content = content;
    of_.request.at_once = below(10) == 0;
    for (auto& [key, each] : of_.all) {
      each.wanted = content;
      each.admitted.reset();
      each.rejected = false;
      each.ahead = false;
      if (of_.state.at == phase::completed) each.completed = of_.state.content;
    }
  }

  void take_some(unsigned one_of) {
    for (const auto& key : of_.last.admitted) {
      auto& each = of_.all.at(key);
      if (each.updated() || each.is == health::unreachable || below(one_of) != 0) continue;
      if (bad_ && below(8) == 0) {
        each.rejected = true;
        continue;
      }
      of_.take(key, bad_ && below(2) == 0 ? health::failed : health::progressing);
    }
  }

  void step() {
    of_.now += std::chrono::seconds(below(40));
    switch (below(8)) {
      case 0:
        if (below(12) == 0) supersede(below(2) == 0);
        break;
      case 1:
        of_.request.paused = below(6) == 0;
        break;
      case 2:
        if (below(4) == 0) of_.request.resume = std::to_string(++resumes_);
        break;
      case 3: {
        auto at = of_.all.begin();
        std::advance(at, below(static_cast<unsigned>(of_.all.size())));
        become(at->second, static_cast<health>(below(4)));
        break;
      }
      default:
        take_some(3);
        for (auto& [key, each] : of_.all) {
          if (each.updated() && each.is == health::progressing && below(3) == 0) {
            become(each, health::ready);
          }
        }
    }
  }

  bool is_canary(const std::string& key) const {
    const auto& chosen = of_.state.canaries;
    return chosen.empty() ? of_.all.at(key).selected : chosen.contains(key);
  }

  void check() {
    std::set<std::string> before;
    for (const auto& [key, each] : of_.all) {
      if (each.admitted || each.updated()) before.insert(key);
    }
    const auto phase_before = of_.state;
    of_.decide();
    const auto& now = of_.last;
    std::size_t added = 0;
    std::size_t others = 0;  // that are no canaries
    for (const auto& key : now.admitted) {
      if (before.contains(key)) continue;
      ++added;
      if (!is_canary(key)) ++others;
    }
    const bool free = now.next.at == phase::completed || of_.request.at_once;
    if (now.next.at == phase::paused) BOOST_TEST((added == 0 || of_.request.at_once));
    if (free) return;
    if (now.next.at != phase::waves) BOOST_TEST(others == 0U);
    // Never more than allowed.
    auto allowed = std::max<std::size_t>(of_.with.max_unavailable.of(of_.all.size(), 1), 1);
    if (!now.next.canaries.empty() && now.next.at == phase::canary) {
      allowed = std::max(allowed, now.next.canaries.size());
    }
    const auto failed = now.now.failed - std::min(now.now.failed, now.next.accepted);
    if (added > 0) BOOST_TEST(now.now.updating + added + failed <= std::max(allowed, failed + 1));
    // Never past the canaries while one is not well, unless a person said so.
    if (others > 0) {
      std::size_t ill = 0;
      for (const auto& [key, each] : of_.all) {
        if (!is_canary(key) || each.is == health::unreachable) continue;
        if (!each.updated() || each.is != health::ready) ++ill;
      }
      BOOST_TEST(ill <= now.next.accepted);
    }
    // The budget pauses, and only a person or another content ends that.
    const auto budget = of_.with.failure_budget.of(of_.all.size(), 2);
    if (now.now.failed > now.next.accepted + budget) BOOST_TEST(now.next.stopped());
    if (phase_before.stopped() && phase_before.content == now.next.content &&
        phase_before.resumed == now.next.resumed) {
      BOOST_TEST(now.next.stopped());
    }
  }

  std::mt19937 random_;
  fleet of_;
  bool bad_ = false;
  unsigned contents_ = 0;
  unsigned resumes_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(random_histories_keep_the_promises) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      history(seed).run();
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_rollout_test
