// Random histories of the reactor beside a simulated KIM (reactors/cli/dev/kim.hpp), on a clock
// that only the test moves: sources change, Runtimes are created, deleted, suspended and change
// their mode, KIM fails, is slow, is switched off and runs its own watcher or not, requests fail,
// the reactor ends and begins again. In the end every runtime that is signalled was configured with
// the newest content. RW_CONFIG_SYNC_SEEDS is the number of histories (100; fewer under a
// sanitizer), RW_CONFIG_SYNC_FIRST the first seed; a history that fails prints its seed and its
// end.

#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/config_sync/test_env.hpp"
#include "tests/unit/k8s/chance.hpp"
#include "tests/unit/k8s/journal.hpp"
#include <array>
#include <iostream>
#include <map>
#include <string>
#include <utility>

BOOST_AUTO_TEST_SUITE(history)

using namespace rw;
using namespace rw::k8s::test;
using namespace std::chrono_literals;
using rw::cli::dev::kim_outcome;
using rw::config_sync::sync_options;
using rw::config_sync::test::test_env;

namespace {

struct counts {
  double changes = 0;  ///< of a source, for each Runtime
  double marks = 0;    ///< of the reactor
  double taken = 0;    ///< by KIM, whoever set them
  double reconciles = 0;
  std::size_t restarts = 0;
};

class story {
 public:
  explicit story(std::uint64_t seed)
      : chance_(seed),
        here_(sync_options{.timing = {.timeout = 20min, .retry = 1min, .retry_limit = 10min}}) {
    here_.faults([this](const std::string& verb, const std::string&) { return fault(verb); });
    for (const auto which : all_sources) {
      if (chance_.likely(0.8)) here_.put(which, "c0");
    }
    cli::dev::kim_options kim{.workers = 3, .patch = 2s, .wait = 3min, .work = 40s};
    kim.config_watcher = chance_.likely(0.5);
    kim.vary = [this](core::duration most) { return chance_.up_to(most); };
    kim.outcome = [this](const std::string&) { return outcome(); };
    here_.start_kim(std::move(kim));
    for (int i = 0; i < 4; ++i) add_runtime();
    here_.pass(5min);
    here_.start();
    here_.pass(1min);
  }

  void run() {
    for (int phase = 0; phase < 4 && wrong.empty(); ++phase) {
      faulty_ = chance_.likely(0.7);
      const auto end = here_.clock.now() + 5min;
      while (here_.clock.now() < end) {
        undisturbed([&] { happen(); });
        here_.pass(chance_.up_to(chance_.likely(0.1) ? 1min : 10s));
      }
      come_to_rest();
    }
    rest();
  }

  std::string wrong;  ///< empty: nothing
  counts total;
  std::string journal() const { return journal_.tail(); }

 private:
  struct life {
    bool suspended = false;
    std::string mode = "signal";
  };

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
    const auto drawn = chance_.draw(100);
    if (drawn < 30) return kim_outcome::changed;
    if (!faulty_ || drawn < 80) return kim_outcome::unchanged;
    return drawn < 95 ? kim_outcome::fails_after : kim_outcome::fails_before;
  }

  /// The author's own requests meet no faults.
  template <class Action>
  void undisturbed(Action action) {
    const bool was = std::exchange(faulty_, false);
    action();
    faulty_ = was;
  }

  void happen() {
    const auto drawn = chance_.draw(100);
    if (drawn < 35) return change(all_sources.at(chance_.draw(all_sources.size())));
    if (drawn < 45) return stop_or_start();
    if (drawn < 49) return add_runtime();
    if (drawn < 55) {
      auto& kim = here_.kim().options();
      kim.config_watcher = !kim.config_watcher;
      return journal_.note(kim.config_watcher ? "KIM's watcher runs" : "KIM's watcher is off");
    }
    if (drawn < 59) {
      auto& kim = here_.kim().options();
      kim.held = !kim.held;
      return journal_.note(kim.held ? "KIM is away" : "KIM is back");
    }
    if (lives_.empty()) return;
    auto at = lives_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(chance_.draw(lives_.size())));
    happen_to(at->first, at->second, drawn);
  }

  void happen_to(const std::string& name, life& one, std::uint64_t drawn) {
    if (drawn < 62) {
      if (lives_.size() < 3) return;
      journal_.note("removed " + name);
      here_.remove_runtime(name);
      lives_.erase(std::string(name));
    } else if (drawn < 72) {
      one.suspended = !one.suspended;
      journal_.note(name + (one.suspended ? " suspended" : " resumed"));
      annotate(name, suspend_reconciliation_annotation, one.suspended ? "true" : nullptr);
    } else if (drawn < 84) {
      constexpr std::array modes{"signal", "signal", "shadow", "direct", "off"};
      one.mode = modes.at(chance_.draw(modes.size()));
      journal_.note(name + " becomes " + one.mode);
      annotate(name, bootstrapper_mode_annotation, one.mode.c_str());
    } else if (drawn < 90) {
      journal_.note("marked by hand: " + name);
      annotate(name, force_reconciliation_mark, "true");
    } else {
      journal_.note("the spec changes: " + name);
      here_.ok(here_.api("kcp").patch(runtimes_type(), {std::string(kcp_namespace), name},
                                      k8s::patch_type::merge,
                                      {{"spec", {{"seed", chance_.draw(1u << 30)}}}}));
    }
  }

  void annotate(const std::string& name, std::string_view annotation, const char* to) {
    boost::json::object annotations;
    annotations[annotation] = to == nullptr ? boost::json::value() : boost::json::value(to);
    here_.annotate(name, annotations);
  }

  /// To something new, to something that was there before, or to nothing.
  void change(source which) {
    const auto kind = chance_.draw(10);
    const auto content = "c" + std::to_string(kind < 6 ? ++contents_ : chance_.draw(contents_ + 1));
    journal_.note(std::string(to_string(which)) + " becomes " + (kind > 8 ? "absent" : content));
    if (kind > 8) {
      here_.remove(which);
    } else {
      here_.put(which, content);
    }
    total.changes += static_cast<double>(lives_.size());
  }

  void add_runtime() {
    const auto name = "r" + std::to_string(++last_runtime_);
    journal_.note("added " + name);
    here_.add_runtime(name);
    lives_[name];
  }

  void stop_or_start() {
    journal_.note(here_.is_running() ? "the reactor ends" : "the reactor begins");
    if (!here_.is_running()) return here_.start();
    ++total.restarts;
    here_.stop();
    if (chance_.likely(0.7)) {
      if (chance_.likely(0.5)) change(source::config);
      here_.start();
    }
  }

  void come_to_rest() {
    faulty_ = false;
    here_.kim().options().held = false;
    if (!here_.is_running()) here_.start();
    here_.pass(1h);
    check();
  }

  void check() {
    const auto newest = here_.content();
    for (const auto& [name, one] : lives_) {
      const bool signalled = one.mode == "signal" || one.mode == "shadow";
      if (!signalled || one.suspended) continue;
      const auto runtime = here_.runtime(name);
      if (here_.configured(name) != newest) {
        wrong += name + " has " + here_.configured(name) + " and should have " + newest +
                 "; it says " + boost::json::serialize(runtime.at("metadata").at("annotations")) +
                 " " + boost::json::serialize(runtime.at("status")) + "\n";
      }
      if (carries_mark(runtime)) wrong += name + " still carries a mark\n";
    }
    double waiting = 0;
    for (const auto* state : {"outdated", "marked", "in_progress", "failed"}) {
      waiting += here_.count(state);
    }
    if (waiting != 0) wrong += std::to_string(waiting) + " Runtimes are counted as waiting\n";
  }

  /// Nothing changes: nothing is written, nor by a reactor that begins again.
  void rest() {
    const auto versions = [&] {
      std::string all;
      for (const auto& [name, one] : lives_) all += here_.version(name) + ";";
      return all + std::string(k8s::resource_version_of(here_.record()));
    };
    const auto before = versions();
    here_.stop();
    here_.start();
    here_.pass(10min);
    if (versions() != before) wrong += "something was written although nothing had changed\n";
    total.marks = here_.marks();
    total.taken = static_cast<double>(here_.kim().marks_taken());
    total.reconciles = static_cast<double>(here_.kim().reconciles());
  }

  chance chance_;
  bool faulty_ = false;
  test_env here_;
  k8s::test::journal journal_{here_.clock, 60};
  std::map<std::string, life> lives_;
  std::uint64_t contents_ = 0;
  int last_runtime_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(after_any_history_every_runtime_has_the_newest_content) {
  const auto first = from_environment("RW_CONFIG_SYNC_FIRST", 1);
  const auto seeds = from_environment("RW_CONFIG_SYNC_SEEDS", sanitized ? 10 : 100);
  counts all;
  for (auto seed = first; seed < first + seeds; ++seed) {
    story one(seed);
    one.run();
    BOOST_CHECK_MESSAGE(one.wrong.empty(),
                        "RW_CONFIG_SYNC_SEEDS=1 RW_CONFIG_SYNC_FIRST=" << seed << " went wrong\n"
                                                                       << one.wrong << "its end:\n"
                                                                       << one.journal());
    all.changes += one.total.changes;
    all.marks += one.total.marks;
    all.taken += one.total.taken;
    all.reconciles += one.total.reconciles;
    all.restarts += one.total.restarts;
  }
  std::cout << seeds << " histories, " << all.restarts << " restarts: " << all.changes
            << " changes of a source on a Runtime, " << all.marks << " marks, " << all.taken
            << " marks taken by KIM: " << all.taken / all.changes
            << " reconciles of KIM for each change; " << all.reconciles
            << " with those for other reasons\n";
  BOOST_TEST(all.marks > 10.0 * static_cast<double>(seeds));
}

BOOST_AUTO_TEST_SUITE_END()
