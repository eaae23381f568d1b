// Histories of marks and of what they cost KIM (history_test.cpp is about what runtimes have).
//
// Random histories of the manager's part that configures runtimes, in all modes, beside a simulated
// KIM (reactors/dev/kim.hpp), on a clock that only the test moves: sources change, Runtimes are
// created, deleted, suspended, marked by hand and change their mode, KIM fails, is slow, is
// switched off and runs its own watcher or not, requests fail, the manager ends and begins again
// with another default. In the end every runtime has the newest content. Then, undisturbed, each
// history shows what one change costs, that a Runtime which counts as configured is so, and how
// often one on which KIM fails is marked.
//
// RW_SIGNAL_HISTORY_SEEDS is the number of histories, RW_SIGNAL_HISTORY_FIRST the first seed; a
// history that fails prints its seed and its end.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/journal.hpp"
#include "tests/unit/runtime_config/land.hpp"
#include <algorithm>
#include <array>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rw::runtime_config_test {
BOOST_AUTO_TEST_SUITE(signal_history)

using namespace std::chrono_literals;
using dev::kim_outcome;
using mode = bootstrapper_mode;

namespace {

constexpr std::array all_parts{&versions::config, &versions::pull_secret, &versions::trust_bundle,
                               &versions::manifests};

struct counts {
  double changes = 0;     ///< of a source, for each Runtime
  double marks = 0;       ///< of the manager
  double reconciles = 0;  ///< of KIM
  double calm_changes = 0;
  double calm_reconciles = 0;
  std::size_t restarts = 0;
  std::size_t switches = 0;  ///< of a mode
};

class story {
 public:
  explicit story(std::uint64_t seed) : land_(seed) {
    land_.settings.signal.timing.timeout = 20min;
    land_.settings.signal.timing.retry = 1min;
    land_.on_request = [this](const std::string&, const std::string& verb, const std::string&) {
      return fault(verb);
    };
    auto& kim = land_.kim->options();
    kim.config_watcher = chance_.likely(0.5);
    kim.outcome = [this](const std::string&) { return outcome(); };
    for (int i = 0; i < 4; ++i) add_runtime();
    land_.pass(8min);
    land_.begin(mode::signal);
    land_.pass(1min);
  }

  void run() {
    for (int phase = 0; phase < 3 && wrong.empty(); ++phase) {
      faulty_ = chance_.likely(0.7);
      land_.kim->options().work = chance_.likely(0.3) ? 8min : 40s;
      const auto end = land_.clock.now() + 5min;
      while (land_.clock.now() < end) {
        undisturbed([&] { happen(); });
        land_.pass(chance_.up_to(chance_.likely(0.1) ? 1min : 10s));
      }
      come_to_rest();
    }
    calm_change();
    late_failure();
    lasting_failure();
    rest();
    total.marks = land_.marks();
    total.reconciles = static_cast<double>(land_.kim->reconciles());
  }

  std::string wrong;  ///< empty: nothing
  counts total;
  std::string journal() const { return journal_.tail(); }

 private:
  k8s::devserver::fault fault(const std::string& verb) {
    k8s::devserver::fault out;
    if (!faulty_) return out;
    if (chance_.likely(0.1)) out.latency = std::chrono::milliseconds(chance_.draw(5000));
    if (chance_.likely(0.1)) {
      constexpr std::array statuses{409U, 429U, 500U, 503U, 504U};
      out.status = statuses.at(chance_.draw(statuses.size()));
    }
    out.drop = chance_.likely(0.05);
    if (verb == "watch" && chance_.likely(0.4)) {
      out.events = static_cast<unsigned>(chance_.draw(10));
    }
    return out;
  }

  kim_outcome outcome() {
    if (failing_) return kim_outcome::fails_after;
    const auto drawn = chance_.draw(100);
    if (drawn < 30) return kim_outcome::changed;
    if (!faulty_ || drawn < 80) return kim_outcome::unchanged;
    return drawn < 95 ? kim_outcome::fails_after : kim_outcome::fails_before;
  }

  /// The test's own requests meet no faults.
  template <class Action>
  void undisturbed(Action action) {
    const bool was = std::exchange(faulty_, false);
    action();
    faulty_ = was;
  }

  void happen() {
    const auto drawn = chance_.draw(100);
    if (drawn < 35) return change();
    if (drawn < 45) return stop_or_start();
    if (drawn < 48) return add_runtime();
    auto& kim = land_.kim->options();
    if (drawn < 54) {
      kim.config_watcher = !kim.config_watcher;
      return journal_.note(kim.config_watcher ? "KIM's watcher runs" : "KIM's watcher is off");
    }
    if (drawn < 57) {
      kim.held = !kim.held;
      return journal_.note(kim.held ? "KIM is away" : "KIM is back");
    }
    auto at = land_.modes.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(chance_.draw(land_.modes.size())));
    happen_to(std::string(at->first), drawn);
  }

  void happen_to(const std::string& name, std::uint64_t drawn) {
    if (drawn < 59) {
      if (land_.modes.size() < 3) return;
      journal_.note("removed " + name);
      suspended_.erase(name);
      removed_.insert(name);
      land_.remove_runtime(name);
    } else if (drawn < 67) {
      const bool now = suspended_.insert(name).second;
      if (!now) suspended_.erase(name);
      journal_.note(name + (now ? " suspended" : " resumed"));
      land_.annotate(name, suspend_reconciliation_annotation,
                     now ? json::value("true") : json::value());
    } else if (drawn < 86) {
      switch_mode(name);
    } else if (drawn < 91) {
      journal_.note("marked by hand: " + name);
      land_.annotate(name, force_reconciliation_mark, "true");
    } else {
      journal_.note("the spec changes: " + name);
      land_.finish(land_.merge(runtimes_type(), {std::string(kcp_namespace), name},
                               {{"spec", {{"seed", chance_.draw(1u << 30)}}}}));
    }
  }

  void switch_mode(const std::string& name) {
    constexpr std::array modes{mode::signal, mode::shadow, mode::direct, mode::direct, mode::off};
    std::optional<mode> to = modes.at(chance_.draw(modes.size()));
    if (chance_.likely(0.2)) to.reset();
    journal_.note(name + " becomes " + (to ? std::string(to_string(*to)) : "the default"));
    ++total.switches;
    land_.set_mode(name, to);
  }

  /// To something new, to something that was there before, or to nothing for a while.
  void change() {
    const auto which = all_parts.at(chance_.draw(all_parts.size()));
    const auto kind = chance_.draw(10);
    total.changes += static_cast<double>(land_.modes.size());
    if (kind == 9 && std::ranges::find(absent_, which) == absent_.end()) {
      absent_.push_back(which);
      journal_.note("a source is deleted");
      return land_.withdraw(which);
    }
    std::erase(absent_, which);
    newest_ = std::max(newest_, land_.now.*which) + (kind < 7 ? 1 : 0);
    land_.now.*which = kind < 7 ? newest_ : static_cast<int>(chance_.draw(3)) + 1;
    journal_.note("a source becomes " + std::to_string(land_.now.*which));
    land_.put(which);
  }
  void set_new(int versions::* which) {
    land_.now.*which = ++newest_;
    land_.put(which);
  }
  void restore_all() {
    for (const auto which : std::exchange(absent_, {})) land_.put(which);
  }

  void add_runtime() {
    const auto name = "r" + std::to_string(++last_runtime_);
    journal_.note("added " + name);
    land_.add_runtime(name);
  }

  void stop_or_start() {
    journal_.note(land_.is_running() ? "the manager ends" : "the manager begins");
    if (!land_.is_running()) return begin();
    ++total.restarts;
    land_.end();
    if (chance_.likely(0.3)) return;
    if (chance_.likely(0.5)) change();
    begin();
  }

  void begin() {
    if (chance_.likely(0.1) && land_.lose_record()) journal_.note("the record is lost");
    constexpr std::array defaults{mode::signal, mode::signal, mode::shadow, mode::direct};
    land_.begin(chance_.likely(0.7) ? land_.settings.mode
                                    : defaults.at(chance_.draw(defaults.size())));
  }

  // --- in the end ----------------------------------------------------------------------

  bool signalled(const std::string& name) const {
    return signals(land_.mode_of(name)) && !suspended_.contains(name);
  }
  bool direct(const std::string& name) const {
    return land_.mode_of(name) == mode::direct && !suspended_.contains(name);
  }

  void come_to_rest() {
    faulty_ = false;
    land_.kim->options().held = false;
    if (!land_.is_running()) begin();
    restore_all();
    land_.pass(1min);
    land_.set_all_ready();
    land_.pass(1h);
    journal_.note("at rest");
    check("at rest");
  }

  void check(const std::string& when) {
    for (const auto& [name, unused] : land_.modes) {
      if (!signalled(name) && !direct(name)) continue;
      const auto lacking = land_.lacks(name);
      if (lacking.empty()) continue;
      wrong += when + ": " + lacking + "; it is " + std::string(to_string(land_.mode_of(name))) +
               " " + boost::json::serialize(land_.runtime(name).at("metadata").at("annotations")) +
               "\n";
    }
    for (const auto& name : removed_) {
      if (land_.bootstrapper(name).is_object()) wrong += when + ": " + name + " is not released\n";
    }
    if (land_.waiting() != 0) wrong += when + ": Runtimes are counted as waiting\n";
  }

  /// A Runtime that counts as current has been configured, by one reconcile of KIM.
  void calm_change() {
    if (!wrong.empty()) return;
    auto& kim = land_.kim->options();
    kim.work = 40s;
    journal_.note("a calm change");
    double expected = 0;
    for (const auto& [name, unused] : land_.modes) {
      // KIM's own watcher marks those that are direct, too, if no mark is left on them.
      const bool is_marked = kim.config_watcher && !carries_mark(land_.runtime(name));
      expected += signalled(name) || (is_marked && !suspended_.contains(name)) ? 1 : 0;
    }
    const auto before = land_.kim->reconciles();
    set_new(&versions::config);
    land_.pass(10s);
    for (int i = 0; i < 300 && land_.waiting() > 0; ++i) land_.pass(2s);
    check("counted as current");
    land_.pass(5min);
    const auto told = static_cast<double>(land_.kim->reconciles() - before);
    if (told != expected) {
      wrong += std::to_string(told) + " reconciles of KIM for one change on " +
               std::to_string(expected) + " Runtimes\n";
    }
    total.calm_changes += expected;
    total.calm_reconciles += told;
  }

  /// KIM takes longer than the quiet time, and then fails.
  void late_failure() {
    if (!wrong.empty()) return;
    journal_.note("KIM fails late");
    auto& kim = land_.kim->options();
    kim.work = 9min;  // its simulation has a limit of 5 min for a reconcile
    failing_ = true;
    set_new(&versions::config);
    land_.pass(1min);
    failing_ = false;
    kim.work = 40s;
    land_.pass(40min);
    check("after KIM has failed late");
  }

  /// KIM fails on each try for half an hour: marks after 1, 3, 7 and 15 minutes.
  void lasting_failure() {
    if (!wrong.empty()) return;
    journal_.note("KIM fails");
    land_.kim->options().config_watcher = false;
    failing_ = true;
    double all = 0;
    for (const auto& [name, unused] : land_.modes) all += signalled(name) ? 1 : 0;
    const auto before = land_.marks();
    set_new(&versions::config);
    land_.pass(25min);
    const auto marks = land_.marks() - before;
    if (marks < 4 * all || marks > 6 * all) {
      wrong += std::to_string(marks) + " marks on " + std::to_string(all) +
               " Runtimes in 25 minutes of failure\n";
    }
    if (all > 0 && land_.count("failed") + land_.count("marked") + land_.count("in_progress") < all)
      wrong += "Runtimes on which KIM fails are not counted\n";
    failing_ = false;
    land_.pass(1h);
    check("after KIM has failed");
  }

  /// Nothing changes: nothing is written, nor by a manager that begins again.
  void rest() {
    const auto versions = [&] {
      std::string all;
      for (const auto& [name, unused] : land_.modes) {
        for (const auto& each :
             {land_.runtime(name), land_.bootstrapper(name), land_.deployment(name)}) {
          all += std::string(k8s::resource_version_of(each)) + ";";
        }
      }
      return all;
    };
    const auto before = versions();
    land_.end();
    land_.begin(land_.settings.mode);
    land_.pass(10min);
    if (wrong.empty() && versions() != before) {
      wrong += "something was written although nothing had changed\n";
    }
  }

  land land_;
  k8s::test::chance& chance_ = land_.chance;
  bool faulty_ = false;
  bool failing_ = false;
  k8s::test::journal journal_{land_.clock, 60};
  std::set<std::string> suspended_;
  std::set<std::string> removed_;
  std::vector<int versions::*> absent_;  ///< sources
  int newest_ = 1;
  int last_runtime_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(after_any_history_every_runtime_has_the_newest_content) {
  const auto first = k8s::test::from_environment("RW_SIGNAL_HISTORY_FIRST", 1);
  const auto seeds =
      k8s::test::from_environment("RW_SIGNAL_HISTORY_SEEDS", k8s::test::sanitized ? 1 : 4);
  counts all;
  for (auto seed = first; seed < first + seeds; ++seed) {
    story one(seed);
    one.run();
    BOOST_CHECK_MESSAGE(one.wrong.empty(), "RW_SIGNAL_HISTORY_SEEDS=1 RW_SIGNAL_HISTORY_FIRST="
                                               << seed << " went wrong\n"
                                               << one.wrong << "its end:\n"
                                               << one.journal());
    all.changes += one.total.changes;
    all.marks += one.total.marks;
    all.reconciles += one.total.reconciles;
    all.calm_changes += one.total.calm_changes;
    all.calm_reconciles += one.total.calm_reconciles;
    all.restarts += one.total.restarts;
    all.switches += one.total.switches;
  }
  std::cout << seeds << " histories, " << all.restarts << " restarts, " << all.switches
            << " changes of a mode: " << all.changes << " changes of a source on a Runtime, "
            << all.marks << " marks, " << all.reconciles << " reconciles of KIM; undisturbed, "
            << all.calm_reconciles / all.calm_changes << " reconciles for each change\n";
  BOOST_TEST(all.marks > 10.0 * static_cast<double>(seeds));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_config_test
