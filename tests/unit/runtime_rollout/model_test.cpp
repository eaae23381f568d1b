// Random histories of a roll-out keep to its promises.

#include "rw/reactors/runtime_rollout/decision.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime_rollout/fleet.hpp"
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

namespace rw::runtime_rollout_test {
BOOST_AUTO_TEST_SUITE(model)

namespace {

bool is_down(const runtime_rollout::participant& of) {
  return !of.in_place.empty() && (of.is == health::failed || of.is == health::progressing);
}

/// Runtimes of which a part is not well, contents of which a part is bad, and a person.
class history {
 public:
  explicit history(unsigned seed) : random_(seed), of_(5 + below(60)) {
    of_.with.max_unavailable = {1 + below(20), below(2) == 0};
    of_.with.failure_budget = {below(6), below(2) == 0};
    make_steps();
    of_.verify = [this](std::size_t step) {
      const bool passed = below(100) < verify_;
      if (passed) verified_.insert(step);
      return runtime_rollout::verification_result{step, passed, "a text"};
    };
    std::size_t i = 0;
    for (auto& [key, each] : of_.all) {
      each.position = static_cast<std::uint32_t>(random_());
      if (i++ % 9 == 3) each.labelled = below(4);
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
      verify_ = 100;
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

  /// As the canaries are, or steps of a spec, some of which bake and are verified.
  void make_steps() {
    const auto kind = below(4);
    of_.with.canaries_at_once = kind == 0;
    if (kind == 0) return;
    of_.with.steps.clear();
    for (unsigned i = 0; i < kind; ++i) {
      auto& each = of_.with.steps.emplace_back();
      each.runtimes = below(4) == 0   ? "canary=true"
                      : below(2) == 0 ? std::to_string(1 + below(9))
                                      : std::to_string(1 + below(100)) + "%";
      each.bake = std::chrono::seconds(below(3) * 100);
      if (below(3) == 0) each.verify = {"up", 1};
    }
  }

  void become(runtime_rollout::participant& one, health is) {
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
        if (below(9) == 0) of_.request.promote = std::to_string(++promotions_);
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

  std::size_t step_of(const std::string& key) const {
    const auto& each = of_.all.at(key);
    return runtime_rollout::step_of(of_.state.steps, {each.position, each.labelled});
  }

  /// Since when the runtimes of each step have what they are waited for.
  void note_settled() {
    const auto size = of_.state.steps.size();
    for (std::size_t i = 0; i < size; ++i) {
      const bool all = std::ranges::all_of(of_.all, [&](const auto& entry) {
        const auto& [key, each] = entry;
        if (step_of(key) > i) return true;
        const bool fails =
            each.admitted && (each.rejected || of_.now >= *each.admitted + of_.with.silence);
        const bool waits = each.is == health::ready && !each.updated() && !fails;
        return !waits && !(each.updated() && each.is == health::progressing &&
                           of_.now < each.since + of_.with.silence);
      });
      if (all) settled_.try_emplace(i, of_.now);
    }
  }

  void check() {
    std::set<std::string> before;
    for (const auto& [key, each] : of_.all) {
      if (each.admitted || each.updated()) before.insert(key);
    }
    const auto phase_before = of_.state;
    if (phase_before.content != of_.request.content) {
      settled_.clear();
      verified_.clear();
      promoted_ = 0;
    }
    if (of_.request.promote != phase_before.promoted) promoted_ |= 1U << phase_before.step;
    const bool accepts = phase_before.stopped() && of_.request.resume != phase_before.resumed &&
                         phase_before.content == of_.request.content;
    if (accepts && phase_before.reason == "VerificationFailed") verified_.insert(phase_before.step);
    note_settled();
    of_.decide();
    note_settled();
    const auto& now = of_.last;
    std::size_t added = 0;
    std::size_t others = 0;  // that are no canaries
    for (const auto& key : now.admitted) {
      if (before.contains(key)) continue;
      ++added;
      if (step_of(key) > 0) ++others;
      later_ = std::max(later_, step_of(key));
    }
    const bool free = now.next.at == phase::completed || of_.request.at_once;
    if (now.next.at == phase::paused) BOOST_TEST((added == 0 || of_.request.at_once));
    if (free) return;
    if (now.next.at != phase::waves) BOOST_TEST(others == 0U);
    // Nobody of a later step before an earlier one has baked, and is verified.
    for (const auto& key : now.admitted) {
      if (before.contains(key) || is_down(of_.all.at(key))) continue;
      for (std::size_t i = 0; i < step_of(key); ++i) {
        const auto& step = of_.with.steps[i];
        if (step.verify) BOOST_TEST(verified_.contains(i));
        if (i == 0) continue;  // see the canaries below
        BOOST_TEST_REQUIRE(settled_.contains(i));
        if ((promoted_ >> i & 1U) == 0) BOOST_TEST((of_.now >= settled_.at(i) + step.bake));
      }
    }
    // Never more than allowed.
    auto allowed = std::max<std::size_t>(of_.with.max_unavailable.of(of_.all.size(), 1), 1);
    if (of_.with.canaries_at_once && now.next.at == phase::canary) {
      allowed = std::max<std::size_t>(allowed, 2);
    }
    const auto failed = now.now.failed - std::min(now.now.failed, now.next.accepted);
    std::size_t taken_down = 0;
    for (const auto& key : now.admitted) {
      if (!before.contains(key) && !is_down(of_.all.at(key))) ++taken_down;
    }
    if (taken_down > 1)
      BOOST_TEST(now.now.updating + taken_down + failed <= std::max(allowed, failed + 1));
    // Never past the canaries while one is not well, or has not been for its bake, unless a person
    // said so.
    if (others > 0 && !now.next.steps.empty()) {
      std::size_t ill = 0;
      for (const auto& [key, each] : of_.all) {
        if (step_of(key) > 0 || each.is == health::unreachable || !before.contains(key)) continue;
        if (!each.updated() || each.is != health::ready) ++ill;
      }
      BOOST_TEST(ill <= now.next.accepted);
      const auto baked = [&](const auto& entry) {
        const auto& [key, each] = entry;
        return step_of(key) == 0 && each.updated() &&
               of_.now >= each.since + of_.with.steps[0].bake;
      };
      const bool first = phase_before.step == 0 || phase_before.content != now.next.content;
      if (first && promoted_ % 2 == 0 && now.next.accepted == 0) {
        BOOST_TEST(std::ranges::any_of(of_.all, baked));
      }
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
  std::set<std::size_t> verified_;
  std::map<std::size_t, runtime_rollout::wall_time> settled_;
  unsigned promoted_ = 0;  ///< a bit for each step
  unsigned verify_ = 80;   ///< of 100 verifications so many pass
  unsigned contents_ = 0;
  unsigned resumes_ = 0;
  unsigned promotions_ = 0;
  std::size_t later_ = 0;  ///< the latest step of which one was admitted
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
