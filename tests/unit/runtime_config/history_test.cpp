// Random histories of the manager's part that configures runtimes, in all modes, beside a simulated
// KIM (reactors/dev/kim.hpp), on a clock that only the test moves. Sources change, break and go;
// manifests crash; a person pauses, resumes, sets steps and promotes; Runtimes come, go and change
// their mode; tenants edit and delete; KIM writes on its usual and its slow path; runtimes hang or
// can't run pods; requests fail, connections end, the calendar jumps, the namespace of the stored
// contents goes; the manager is killed at any request, or ends. After each stretch of it nothing is
// disturbed for a while, and then what promises.hpp says holds, with whatever is left as it is. In
// the end, with all put right, every runtime has the newest content, and nothing more is written.
//
// RW_CONFIG_HISTORY_SEEDS is the number of histories, RW_CONFIG_HISTORY_FIRST the first seed; a
// history that fails prints its seed and its end.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/samples.hpp"
#include "tests/unit/k8s/journal.hpp"
#include "tests/unit/runtime_config/promises.hpp"
#include <algorithm>
#include <array>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rw::runtime_config_test {
BOOST_AUTO_TEST_SUITE(history)

using namespace std::chrono_literals;
using dev::kim_outcome;
using mode = bootstrapper_mode;

namespace {

constexpr std::array all_sources{&versions::config, &versions::pull_secret, &versions::trust_bundle,
                                 &versions::manifests};
const k8s::object_key rollout_key{std::string(kcp_namespace), "bootstrapper"};
const k8s::object_key secret_key{std::string(skr_namespace), "registry-credentials"};
const k8s::object_key bundle_key{{}, bootstrapper_test::bundle_name};
const k8s::object_key config_key{std::string(skr_namespace), "rt-bootstrapper-config"};

struct counts {
  std::size_t kills = 0, restarts = 0, changes = 0, edits = 0, pauses = 0, checks = 0;
};

class story {
 public:
  /// All requests are added to `trace`, with their times; null: they are not.
  explicit story(std::uint64_t seed, std::vector<std::string>* trace = nullptr)
      : land_(seed), trace_(trace) {
    auto& settings = land_.settings;
    settings.rollout = {.canaries = "1",
                        .max_unavailable = {1 + static_cast<unsigned>(chance_.draw(2)), false},
                        .failure_budget = {1, false},
                        .soak = 10s};
    settings.direct.backoff_limit = 20s;
    settings.direct.ready_interval_limit = 10s;
    settings.signal.timing.timeout = 20min;
    settings.signal.timing.retry = 1min;
    land_.pass(3s);
    land_.parts = 3;
    land_.put(&versions::manifests);
    promises_.note_sources();
    land_.on_request = [this](const std::string& cluster, const std::string& verb,
                              const std::string& path) { return request(cluster, verb, path); };
    land_.on_kim = [this](const std::string& name, bool begins) {
      disturb(name);
      promises_.note_kim(name, begins);
    };
    auto& kim = land_.kim->options();
    kim.work = 10s;
    kim.config_watcher = chance_.likely(0.2);
    kim.outcome = [this](const std::string&) { return outcome(); };
    land_.kim->options().held = chance_.likely(0.5);
    const bool all_direct = chance_.likely(0.7);
    for (int i = 0; i < 3; ++i) add_runtime(all_direct || chance_.likely(0.6));
    land_.begin(mode::direct);
    go(40s);
  }

  void run() {
    const int stretches = 1 + static_cast<int>(chance_.draw(2));
    for (int stretch = 0; stretch < stretches && promises_.broken.empty(); ++stretch) {
      faulty_ = chance_.likely(0.5);
      const auto end = land_.clock.now() + 1min;
      while (land_.clock.now() < end) {
        undisturbed([&] { happen(); });
        go(chance_.up_to(10s));
      }
      rest();
    }
    if (promises_.broken.empty()) end_well();
    total.checks = promises_.checks;
  }

  std::string wrong() const { return promises_.broken; }
  counts total;
  std::string journal() const { return journal_.tail(); }

 private:
  // --- what happens to requests --------------------------------------------------------

  k8s::devserver::fault request(const std::string& cluster, const std::string& verb,
                                const std::string& path) {
    k8s::devserver::fault out;
    if (trace_ != nullptr) {
      trace_->push_back(std::to_string((land_.clock.now() - began_).count()) + " " + verb + " " +
                        cluster + path);
    }
    const bool writes = !test::reads(verb);
    if (writes && path.find("/deployments") != path.npos) {
      restarting_[cluster] = land_.clock.now();
    }
    if (mine_) {
      if (writes && cluster != "kcp") disturb(cluster);
      return out;
    }
    if (writes && fuse_ > 0 && --fuse_ == 0) {
      dead_ = true;
      ++total.kills;
      journal_.note("the manager is killed at " + verb + " " + cluster + path);
    }
    out.drop = dead_ || hung_.contains(cluster);
    if (writes && cluster != "kcp" && !out.drop) {
      promises_.note_write(cluster, path);
      last_write_ = land_.clock.now();
    }
    if (!faulty_ || out.drop) return out;
    if (chance_.likely(0.05)) out.latency = std::chrono::milliseconds(chance_.draw(5000));
    if (restarting_.contains(cluster)) {
      auto& changed = restarting_[cluster];
      changed = std::max<core::time_point>(changed, land_.clock.now() + out.latency);
    }
    if (chance_.likely(0.1)) {
      constexpr std::array statuses{409U, 429U, 500U, 503U, 504U};
      out.status = statuses.at(chance_.draw(statuses.size()));
    }
    // A write that the runtime refuses, as an admission plugin does: the unit is rejected as a
    // whole.
    if (writes && cluster != "kcp" && chance_.likely(0.02)) {
      out.status = 422;
      refusing_.insert(cluster);
    }
    out.drop = chance_.likely(0.05);
    if (verb == "watch" && chance_.likely(0.3)) {
      out.events = static_cast<unsigned>(chance_.draw(10));
    }
    return out;
  }

  kim_outcome outcome() {
    const auto drawn = chance_.draw(10);
    if (drawn < 3) return kim_outcome::changed;
    return !faulty_ || drawn < 8 ? kim_outcome::unchanged : kim_outcome::fails_after;
  }

  void disturb(const std::string& runtime) {
    promises_.excuse(runtime);
    disturbed_[runtime] = land_.clock.now();
  }

  /// The test's own requests meet no faults.
  template <class Action>
  void undisturbed(Action action) {
    const bool before = std::exchange(mine_, true);
    action();
    mine_ = before;
  }

  /// Lets time pass; pods start, and a manager that was killed is gone.
  void go(core::duration time) {
    const auto end = land_.clock.now() + time;
    do {
      land_.pass(std::min<core::duration>(end - land_.clock.now(), 5s));
      undisturbed([&] {
        if (dead_) {
          land_.end();
          dead_ = false;
          if (!chance_.likely(0.2)) begin();
        }
        look();
      });
    } while (land_.clock.now() < end);
  }

  void look() {
    std::erase_if(hung_, [&](const auto& name) { return !land_.modes.contains(name); });
    const auto hung = std::exchange(hung_, {});
    const auto before = disturbed_;
    promises_.observe();
    const auto now = land_.clock.now();
    for (const auto& [name, changed] : std::exchange(restarting_, {})) {
      if (!land_.modes.contains(name)) continue;
      if (!hung.contains(name)) land_.run_pods(name);
      if (hung.contains(name) || changed >= now) restarting_.emplace(name, changed);
    }
    disturbed_ = before;
    hung_ = hung;
  }

  // --- what happens --------------------------------------------------------------------

  void happen() {
    const auto drawn = chance_.draw(100);
    if (drawn < 25) return change();
    if (drawn < 35) return stop_or_start();
    if (drawn < 45) {
      fuse_ = 1 + chance_.draw(60);
      return;
    }
    if (drawn < 55) return steer();
    if (drawn < 57) return add_runtime(chance_.likely(0.8));
    if (drawn < 60) {
      auto& held = land_.kim->options().held;
      held = !held;
      return journal_.note(held ? "KIM is away" : "KIM is back");
    }
    if (drawn < 63) {
      const auto by = chance_.likely(0.5) ? 3600s : -3600s;
      journal_.note("the calendar jumps by " + std::to_string(by.count()) + " s");
      return land_.step_wall(by);
    }
    if (drawn < 65) return toggle_namespace();
    if (drawn < 68) {
      journal_.note("all connections end");
      return land_.server.drop_connections();
    }
    auto at = land_.modes.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(chance_.draw(land_.modes.size())));
    const bool frozen = drawn < 85 && !frozen_.empty() && chance_.likely(0.5);
    happen_to(frozen ? *frozen_.begin() : std::string(at->first), drawn);
  }

  void happen_to(const std::string& name, std::uint64_t drawn) {
    if (drawn < 85) return edit(name);
    disturb(name);
    if (drawn < 87) {
      if (land_.modes.size() < 3) return;
      journal_.note("removed " + name);
      suspended_.erase(name);
      frozen_.erase(name);
      promises_.forget(name);
      land_.remove_runtime(name);
    } else if (drawn < 89) {
      const bool suspend = suspended_.insert(name).second;
      if (!suspend) suspended_.erase(name);
      journal_.note(name + (suspend ? " suspended" : " resumed"));
      land_.annotate(name, suspend_reconciliation_annotation,
                     suspend ? json::value("true") : json::value());
    } else if (drawn < 92) {
      switch_mode(name);
    } else if (drawn < 95) {
      const bool hangs = hung_.insert(name).second;
      if (!hangs) hung_.erase(name);
      journal_.note(name + (hangs ? " is cut off" : " is back"));
    } else if (drawn < 97) {
      const bool ill = land_.ill.insert(name).second;
      if (!ill) land_.ill.erase(name);
      restarting_[name] = land_.clock.now();
      journal_.note(name + (ill ? " can't run pods" : " can run pods"));
    } else {
      journal_.note("marked by hand: " + name);
      land_.annotate(name, force_reconciliation_mark, "true");
    }
  }

  /// By a tenant, who may do everything there.
  void edit(const std::string& name) {
    ++total.edits;
    disturb(name);
    auto& api = land_.api(name);
    const bool thaws = frozen_.contains(name) && chance_.likely(0.5);
    const auto drawn = thaws ? 7 : chance_.draw(9);
    const auto merge = [&](const k8s::resource_type& type, const k8s::object_key& key,
                           json::value by) {
      // What somebody else made, or edited before it was ours, is not taken over.
      const auto found = land_.call(api.get(type, key));
      if (!found || k8s::label(*found, bootstrapper::synced_by_label).empty()) return;
      (void)land_.call(api.patch(type, key, k8s::patch_type::merge, std::move(by)));
    };
    journal_.note(name + ": edit " + std::to_string(drawn));
    if (drawn == 0) return (void)land_.call(api.remove(config_maps_type(), config_key));
    if (drawn == 1) {
      return merge(config_maps_type(), config_key,
                   {{"data", {{bootstrapper::configuration_key, "{}"}}}});
    }
    const k8s::object_key part{std::string(skr_namespace), "part-1"};
    if (drawn == 2) return (void)land_.call(api.remove(config_maps_type(), part));
    if (drawn == 3) return merge(config_maps_type(), part, {{"data", {{"version", "0"}}}});
    if (drawn == 4) {
      return (void)land_.call(api.remove(test::deployments, bootstrapper_test::deployment_key));
    }
    if (drawn == 5) return (void)land_.call(api.remove(test::bundles, bundle_key));
    if (drawn != 7 && !frozen_.contains(name)) {
      frozen_.insert(name);
      return merge(secrets_type(), secret_key, {{"immutable", true}});
    }
    frozen_.erase(name);
    promises_.note_lost_secret(name);
    (void)land_.call(api.remove(secrets_type(), secret_key));
  }

  void switch_mode(const std::string& name) {
    constexpr std::array modes{mode::signal, mode::shadow, mode::direct, mode::direct, mode::off};
    const auto to = modes.at(chance_.draw(modes.size()));
    journal_.note(name + " becomes " + std::string(to_string(to)));
    land_.set_mode(name, to);
  }

  /// What a person does with the roll-out.
  void steer() {
    if (land_.call(land_.api("kcp").get(runtime_rollout::runtime_rollouts_type(), rollout_key))
            .has_error()) {
      return;
    }
    const auto drawn = chance_.draw(6);
    json::object spec;
    if (drawn < 2) {
      paused_ = !paused_;
      ++total.pauses;
      spec["paused"] = paused_;
    } else if (drawn == 2) {
      steps_ = !steps_;
      spec["steps"] = steps_ ? some_steps() : json::value();
    } else if (drawn == 3) {
      // Who ends a bake has not waited for what it would have shown.
      spec["promote"] = std::to_string(++resumes_);
      promises_.note_resume();
    } else {
      spec["resume"] = std::to_string(++resumes_);
      promises_.note_resume();
    }
    journal_.note("spec of the roll-out: " + json::serialize(spec));
    set_rollout(std::move(spec));
  }
  /// One runtime, as without steps, then a part of the others.
  json::value some_steps() {
    const auto bake = [this] { return std::to_string(1 + chance_.draw(20)) + "s"; };
    json::array out{{{"runtimes", "1"}, {"bake", bake()}}};
    if (chance_.likely(0.5)) out.push_back({{"runtimes", "50%"}, {"bake", bake()}});
    return out;
  }
  void set_rollout(json::object spec) {
    land_.finish(land_.merge(runtime_rollout::runtime_rollouts_type(), rollout_key,
                             {{"spec", std::move(spec)}}));
  }

  /// To something new, to something that was there before, or to nothing for a while.
  void change() {
    ++total.changes;
    // A rotation is what a frozen Secret rejects.
    const bool rotates = !frozen_.empty() && chance_.likely(0.5);
    const auto which =
        rotates ? &versions::pull_secret : all_sources.at(chance_.draw(all_sources.size()));
    const auto kind = chance_.draw(10);
    const auto absent = std::ranges::find(promises_.missing, which);
    if (kind >= 8 && absent == promises_.missing.end()) {
      promises_.missing.push_back(which);
      promises_.note_sources();
      journal_.note(kind == 9 ? "a source is deleted" : "a source can't be read any more");
      return kind == 9 ? land_.withdraw(which) : land_.spoil(which);
    }
    if (absent != promises_.missing.end()) promises_.missing.erase(absent);
    // A pull Secret that was replaced never comes back.
    const bool newer = kind < 7 || which == &versions::pull_secret;
    if (newer) ++newest_;
    land_.now.*which = newer ? newest_ : static_cast<int>(chance_.draw(3)) + 1;
    if (which == &versions::manifests && newer && chance_.likely(0.4)) land_.bad.insert(newest_);
    put(which);
  }
  /// An older number may have been drawn that is greater than those given out.
  void put_new_manifests() {
    newest_ = std::max(newest_, land_.now.manifests) + 1;
    land_.now.manifests = newest_;
    put(&versions::manifests);
  }
  void put(int versions::* which) {
    const bool crash = which == &versions::manifests && land_.bad.contains(land_.now.*which);
    promises_.note_sources();
    land_.put(which);
    journal_.note(to_string(land_.now) + (crash ? ", which crash" : ""));
  }

  void add_runtime(bool direct) {
    const auto name = "r" + std::to_string(++last_runtime_);
    journal_.note("added " + name);
    undisturbed([&] {
      land_.add_runtime(name);
      disturb(name);
      if (!direct) land_.set_mode(name, mode::signal);
    });
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
    fuse_ = 0;
    land_.begin(mode::direct);
  }

  void toggle_namespace() {
    const auto& name = land_.settings.direct.state_namespace;
    namespace_missing_ = !namespace_missing_;
    const bool gone = namespace_missing_;
    journal_.note("the namespace of the contents " + std::string(gone ? "goes" : "is back"));
    if (!gone) return land_.finish(land_.define({}, {name}));
    contents_lost_ = true;
    land_.finish(land_.remove("kcp", namespaces_type(), {{}, name}));
  }

  // --- at rest -------------------------------------------------------------------------

  bool is_direct(const std::string& name) const {
    return land_.mode_of(name) == mode::direct && !suspended_.contains(name);
  }

  /// Nothing disturbs, and all stays as it is: paused, ill, or without what was deleted.
  void rest() {
    faulty_ = false;
    fuse_ = 0;
    const bool held = std::exchange(land_.kim->options().held, true);
    if (!land_.is_running()) begin();
    journal_.note("at rest");
    if (!hindered() && chance_.likely(0.3)) bake_meets_the_calendar();
    go(150s);
    undisturbed([&] { check(); });
    land_.kim->options().held = held;
  }

  /// Something keeps a roll-out from its end.
  bool hindered() const {
    return paused_ || !hung_.empty() || !land_.ill.empty() || !suspended_.empty() ||
           !refusing_.empty() || !promises_.missing.empty() ||
           land_.bad.contains(land_.now.manifests);
  }

  /// The calendar alone is set back in the midst of a roll-out, which still comes to its end.
  void bake_meets_the_calendar() {
    undisturbed([&] { put_new_manifests(); });
    go(chance_.up_to(20s));
    journal_.note("the calendar jumps back in a roll-out");
    undisturbed([&] { land_.step_wall(-3600s); });
  }

  void check() {
    std::set<std::string> well;
    const auto before = disturbed_;
    for (const auto& [name, unused] : land_.modes) {
      if (!is_direct(name) || hung_.contains(name)) continue;
      if (land_.clock.now() - before.at(name) < 2min) continue;
      const bool takes = !frozen_.contains(name) && !refusing_.contains(name);
      promises_.check(name, takes, contents_lost_ || refusing_.contains(name));
      well.insert(name);
    }
    promises_.check_rollout(well, !hindered());
    if (!promises_.broken.empty()) describe();
  }

  /// What is there, for whoever has to find out why.
  void describe() {
    promises_.fail("at " + to_string(land_.now));
    const auto text_of = [](const json::value& object) {
      std::string out;
      const auto* const all = k8s::find_array(object, {"status", "conditions"});
      for (const auto& each : all != nullptr ? *all : json::array()) {
        for (const auto* field : {"type", "status", "reason", "message"}) {
          out += " " + std::string(k8s::find_string(each, {field}));
        }
        out += ";";
      }
      return out;
    };
    for (const auto& [name, unused] : land_.modes) {
      promises_.fail(name + ", " + std::string(to_string(land_.mode_of(name))) + ", has " +
                     to_string(land_.content_of(name).at) + ":" +
                     text_of(land_.bootstrapper(name)));
    }
    const auto rollout =
        land_.call(land_.api("kcp").get(runtime_rollout::runtime_rollouts_type(), rollout_key));
    if (rollout) promises_.fail("the roll-out:" + text_of(*rollout));
  }

  void end_well() {
    journal_.note("all is put right");
    land_.kim->options().held = true;
    undisturbed([&] {
      hung_.clear();
      for (const auto& name : std::exchange(land_.ill, {})) restarting_[name] = land_.clock.now();
      for (const auto& name : std::exchange(frozen_, {})) {
        disturb(name);
        promises_.note_lost_secret(name);
        (void)land_.call(land_.api(name).remove(secrets_type(), secret_key));
      }
      if (namespace_missing_) toggle_namespace();
      refusing_.clear();  // it is tried again at a resync, and the manifests are new
      for (const auto which : std::exchange(promises_.missing, {})) put(which);
      put_new_manifests();
      if (!land_.is_running()) begin();
    });
    go(1min);
    undisturbed([&] {
      set_rollout({{"paused", false}, {"resume", std::to_string(++resumes_)}});
      promises_.note_resume();
    });
    std::string lacking;
    for (int i = 0; i < 60; ++i) {
      go(30s);
      undisturbed([&] { lacking = lacks(); });
      const bool quiet = land_.clock.now() - last_write_ > 2min;
      if (lacking.empty() && quiet && !promises_.rolls_out()) break;
    }
    if (!lacking.empty()) return promises_.fail("in the end " + lacking);
    contents_lost_ = false;
    undisturbed([&] { check(); });
    if (!chance_.likely(0.25)) return;
    std::string before;
    std::string after;
    undisturbed([&] { before = all_versions(); });
    go(11min);
    undisturbed([&] { after = all_versions(); });
    if (before != after) {
      promises_.fail("something was written although nothing changed\n" + before + "\n" + after);
    }
  }

  std::string all_versions() {
    std::string out;
    const auto add = [&](const std::string& cluster, const k8s::resource_type& type,
                         const k8s::selection& what) {
      const auto list = land_.call(land_.api(cluster).list(type, what));
      for (const auto& each : list ? list->at("items").as_array() : json::array()) {
        out += k8s::key_of(each).name + " " + std::string(k8s::resource_version_of(each)) + ";";
      }
    };
    add("kcp", runtime_rollout::runtime_rollouts_type(), {.ns = std::string(kcp_namespace)});
    for (const auto& [name, unused] : land_.modes) {
      if (!is_direct(name)) continue;
      out += std::string(k8s::resource_version_of(land_.bootstrapper(name))) + ";";
      for (const auto& type : {config_maps_type(), secrets_type(), test::deployments}) {
        add(name, type, {.ns = std::string(skr_namespace)});
      }
    }
    return out;
  }

  std::string lacks() {
    for (const auto& [name, unused] : land_.modes) {
      if (!is_direct(name)) continue;
      auto out = land_.lacks(name);
      if (out.empty()) continue;
      const auto resource = land_.bootstrapper(name);
      const auto* const status = k8s::find(resource, {"status"});
      return out + ": " + (status != nullptr ? json::serialize(*status) : "no status");
    }
    return {};
  }

  land land_;
  k8s::test::chance& chance_ = land_.chance;
  k8s::test::journal journal_{land_.clock, 60};
  promises promises_{land_};
  const core::time_point began_ = land_.clock.now();
  std::vector<std::string>* const trace_;
  bool faulty_ = false;
  bool mine_ = false;       ///< the requests are the test's own
  bool dead_ = false;       ///< the manager, which does not know it
  std::uint64_t fuse_ = 0;  ///< writes of the manager until it is killed; 0: it is not
  core::time_point last_write_{};
  std::map<std::string, core::time_point> disturbed_;
  std::set<std::string> suspended_;
  std::set<std::string> hung_;  ///< runtimes that nobody reaches
  /// Runtimes whose pods are to be looked at, and when their Deployments change.
  std::map<std::string, core::time_point> restarting_;
  std::set<std::string> refusing_;  ///< runtimes that have refused a write
  std::set<std::string> frozen_;    ///< runtimes whose pull Secret is immutable
  bool namespace_missing_ = false;  ///< that contents are stored in
  bool contents_lost_ = false;      ///< since all runtimes had the newest last
  bool paused_ = false;
  bool steps_ = false;  ///< the roll-out has its own
  int newest_ = 1;
  int resumes_ = 0;
  int last_runtime_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(units_are_one_revision_after_any_history) {
  const auto first = k8s::test::from_environment("RW_CONFIG_HISTORY_FIRST", 1);
  const auto seeds =
      k8s::test::from_environment("RW_CONFIG_HISTORY_SEEDS", k8s::test::sanitized ? 4 : 25);
  counts all;
  for (auto seed = first; seed < first + seeds; ++seed) {
    story one(seed);
    one.run();
    BOOST_CHECK_MESSAGE(one.wrong().empty(), "RW_CONFIG_HISTORY_SEEDS=1 RW_CONFIG_HISTORY_FIRST="
                                                 << seed << " went wrong\n"
                                                 << one.wrong() << "its end:\n"
                                                 << one.journal());
    if (!one.wrong().empty()) return;
    all.kills += one.total.kills;
    all.restarts += one.total.restarts;
    all.changes += one.total.changes;
    all.edits += one.total.edits;
    all.pauses += one.total.pauses;
    all.checks += one.total.checks;
  }
  std::cout << seeds << " histories: " << all.changes << " changes of a source, " << all.kills
            << " kills, " << all.restarts << " restarts, " << all.edits << " edits of tenants, "
            << all.pauses << " pauses, " << all.checks << " runtimes checked at rest\n";
  BOOST_TEST(all.checks > seeds);
}

BOOST_AUTO_TEST_CASE(history_of_a_seed_is_the_same_alone_and_in_a_row) {
  std::map<std::uint64_t, std::vector<std::string>> all;
  for (const std::uint64_t seed : {7, 3, 7, 11, 3}) {
    std::vector<std::string> trace;
    story(seed, &trace).run();
    BOOST_TEST(trace.size() > 500U);
    const auto& before = all.try_emplace(seed, trace).first->second;
    const auto [at, other] = std::ranges::mismatch(before, trace);
    const auto text_of = [](auto from, auto end) { return from == end ? "its end" : *from; };
    BOOST_CHECK_MESSAGE(before == trace, "seed " << seed << ", request " << at - before.begin()
                                                 << ": " << text_of(at, before.end()) << ", then "
                                                 << text_of(other, trace.end()));
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_config_test
