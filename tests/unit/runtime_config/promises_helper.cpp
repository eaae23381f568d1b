#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/state.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/serialize.hpp>

#include "tests/unit/runtime_config/promises.hpp"
#include <algorithm>

namespace rw::runtime_config_test {

using bootstrapper::unit;

namespace {

constexpr int any = -1;

versions without_credentials(versions of) {
  of.pull_secret = 0;
  return of;
}

/// `of` may have `any`.
bool matches(const versions& of, const versions& found) {
  const auto same = [&](int versions::* which) {
    return of.*which == any || of.*which == found.*which;
  };
  return same(&versions::config) && same(&versions::trust_bundle) && same(&versions::manifests);
}

}  // namespace

void promises::fail(const std::string& text) {
  broken += text + "\n";
}

void promises::note_sources() {
  auto combination = without_credentials(land_.now);
  // One that no runtime has taken is not kept: an earlier one goes on.
  for (const auto which : missing) combination.*which = any;
  combinations_.insert(combination);
  if (std::exchange(manifests_, land_.now.manifests) == land_.now.manifests) return;
  excused_ = ahead_;
  exposed_.clear();
  resumes_ = 0;
}

void promises::note_write(const std::string& runtime, const std::string& path) {
  if (path.find("/deployments/") != path.npos || path.find("/secrets") != path.npos) {
    written_.insert(runtime);
  }
}

void promises::excuse(const std::string& runtime) {
  excused_.insert(runtime);
}

void promises::note_kim(const std::string& runtime, bool begins) {
  excuse(runtime);
  ahead_.insert(runtime);
  kim_.insert_or_assign(runtime, begins);
  // It copies whatever the source has.
  if (begins && land_.is_spoilt(&versions::pull_secret)) note_lost_secret(runtime);
}

void promises::forget(const std::string& runtime) {
  written_.erase(runtime);
  seen_.erase(runtime);
  bereft_.erase(runtime);
  excused_.insert(runtime);
}

/// A pull Secret that KIM has brought while no manager ran, and that others have taken from the
/// runtime since, is known to nobody: the last one that is known may take its place. Where a
/// manager has brought it, or has seen it in its source, it is stored.
void promises::forget_unknown_secret(const std::string& runtime, const versions& has) {
  auto& seen = seen_of(runtime).pull_secret;
  if (bereft_.erase(runtime) == 0 || has.pull_secret == seen) return;
  if (!land_.stores_pull_secret(seen)) seen = 0;
}

/// Pods start only after each look, so those that are new are not ready.
void promises::observe() {
  std::set<std::string> unready;
  for (const auto& name : std::exchange(written_, {})) {
    if (!land_.modes.contains(name)) continue;
    const auto has = land_.content_of(name).at;
    forget_unknown_secret(name, has);
    auto& before = seen_of(name);
    // KIM writes what its cache held when it began.
    if (kim_.contains(name) && has.pull_secret != 0) {
      before.pull_secret = std::min(before.pull_secret, has.pull_secret);
    }
    if (has.pull_secret != 0 && has.pull_secret < before.pull_secret) {
      fail(name + " got pull secret " + std::to_string(has.pull_secret) + " after " +
           std::to_string(before.pull_secret));
    }
    if (has.manifests != before.manifests && has.manifests == manifests_) {
      exposed_[without_credentials(has)].insert(name);
      // One whose pods crashed before was set aside, if for long, and then has no turn of its own.
      const bool crashed = land_.bad.contains(before.manifests) || land_.ill.contains(name);
      if (!crashed || !has_rolled_out()) unready.insert(name);
      if (land_.bad.contains(manifests_)) count_exposed();
    }
    const auto secret = std::max(before.pull_secret, has.pull_secret);
    before = has;
    before.pull_secret = secret;
  }
  std::erase_if(kim_, [](const auto& each) { return !each.second; });
  std::erase_if(ahead_, [this](const std::string& name) { return is_taken_over(name); });
  const auto allowed = land_.settings.rollout.max_unavailable.value + excused_.size();
  if (count_of(unready) > allowed) {
    fail("manifests " + std::to_string(manifests_) + " came to " + std::to_string(unready.size()) +
         " runtimes at once");
  }
}

/// What KIM has brought is its own until a manager has applied it.
bool promises::is_taken_over(const std::string& runtime) {
  if (!land_.modes.contains(runtime)) return true;
  if (without_credentials(seen_of(runtime)) != without_credentials(land_.now)) return false;
  return land_.mode_of(runtime) != bootstrapper_mode::direct || land_.names_newest(runtime);
}

std::size_t promises::count_of(const std::set<std::string>& runtimes) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      runtimes, [this](const std::string& name) { return !excused_.contains(name); }));
}

/// One canary of each content, and the next is another one where the first does not respond; then
/// one at a time; a person who goes on lets the budget fail once more.
void promises::count_exposed() {
  const auto budget = land_.settings.rollout.failure_budget.value + 1;
  for (const auto& [content, runtimes] : exposed_) {
    const auto count = count_of(runtimes);
    if (count <= 1 + resumes_ * budget + excused_.size()) continue;
    fail(to_string(content) + " has reached " + std::to_string(count) + " runtimes");
  }
}

void promises::check_digest(const std::string& runtime, const std::string& unit,
                            const std::string& digest, const versions& of) {
  const auto named = contents_by_digest_.try_emplace(unit + digest, of).first->second;
  if (named != of) {
    fail(runtime + ": the status says " + digest + ", which was " + to_string(named) +
         ", and it has " + to_string(of));
  }
  const auto& known = digests_.try_emplace(of, unit + digest).first->second;
  if (known != unit + digest) {
    fail(runtime + " has " + to_string(of) + ", which was " + known + ", and the status says " +
         unit + digest);
  }
}

void promises::check(const std::string& runtime, bool credentials, bool lost) {
  ++checks;
  const auto found = land_.content_of(runtime);
  const auto resource = land_.bootstrapper(runtime);
  if (!resource.is_object()) {
    return fail(runtime + " has no RuntimeBootstrapper: " +
                json::serialize(land_.runtime(runtime).at("metadata")));
  }
  const auto state = bootstrapper::read_state(resource);
  const auto has = without_credentials(found.at);
  const auto& of = state.at(unit::bootstrapper);
  if (!of.applying.empty()) fail(runtime + " says that it is written to");
  const bool nothing = found.whole && of.in_place.empty() && has == versions{0, 0, 0, 0};
  if (nothing) return;
  const auto ready = k8s::find_condition(resource, "Ready");
  // What KIM has left there stays where the sources are invalid, and nothing valid is stored; and
  // until the turn of a runtime where nothing has been written yet, since none is completed.
  const auto synced = k8s::find_condition(resource, "ConfigurationSynced");
  const bool untouched = synced && synced->reason == "WaitingForRollout" &&
                         std::ranges::none_of(state.objects, [](const auto& each) {
                           return each.of == unit::bootstrapper;
                         });
  const bool rejected = ready && ready->reason == "Rejected";
  const bool never_applied = of.in_place.empty() && (rejected || untouched);
  const bool told = (lost || never_applied) && (!ready || ready->status != "True");
  const auto is_known = [&](const versions& each) { return matches(each, has); };
  if (!told && (!found.whole || std::ranges::none_of(combinations_, is_known))) {
    return fail(runtime + " has a mixture: " + to_string(found.at) +
                (found.whole ? "" : ", and" + found.parts) + "\n" +
                json::serialize(resource.at("status")));
  }
  if (!told) check_digest(runtime, "bootstrapper ", of.in_place, has);
  // One that was deleted before this runtime has taken it is not kept: the one before goes on.
  forget_unknown_secret(runtime, found.at);
  const bool deleted = std::ranges::find(missing, &versions::pull_secret) != missing.end();
  const auto secret = deleted ? seen_of(runtime).pull_secret : land_.now.pull_secret;
  const bool newer = deleted && found.at.pull_secret > secret;
  const bool expected = credentials && (!told || (untouched && !lost));  // it waits for no turn
  if (expected && !newer && found.at.pull_secret != secret) {
    fail(runtime + " has pull secret " + std::to_string(found.at.pull_secret) + ", and not " +
         std::to_string(secret));
  }
  // Where it never had one, it gets what is stored. If nothing is, it says that it has none.
  if (deleted && expected && found.at.pull_secret == 0) check_without_secret(runtime);
  for (const auto which : missing) {
    const auto compatible = k8s::find_condition(resource, "Compatible");
    const bool optional = which == &versions::pull_secret || which == &versions::trust_bundle;
    if (optional && (!compatible || compatible->status != "False")) {
      fail(runtime + " does not say that a source is missing");
    }
  }
}

void promises::check_without_secret(const std::string& runtime) {
  const auto ready = k8s::find_condition(land_.bootstrapper(runtime), "Ready");
  if (!ready || ready->status != "False")
    fail(runtime + " does not say that it has no pull secret");
  for (int version = 1; version <= land_.now.pull_secret; ++version) {
    if (!land_.stores_pull_secret(version)) continue;
    fail(runtime + " has no pull secret, and " + std::to_string(version) + " is stored");
  }
}

std::string promises::rollout_phase() const {
  const auto got = land_.call(land_.api("kcp").get(runtime_rollout::runtime_rollouts_type(),
                                                   {std::string(kcp_namespace), "bootstrapper"}));
  return got ? std::string(k8s::find_string(*got, {"status", "phase"})) : std::string();
}

bool promises::rolls_out() const {
  const auto phase = rollout_phase();
  return phase == "Canary" || phase == "Waves";
}

bool promises::has_rolled_out() const {
  const auto phase = rollout_phase();
  return phase == "Completed" || phase == "Partial";
}

void promises::check_rollout(const std::set<std::string>& well, bool may_go_on) {
  const auto got = land_.call(land_.api("kcp").get(runtime_rollout::runtime_rollouts_type(),
                                                   {std::string(kcp_namespace), "bootstrapper"}));
  if (!got) return;
  const auto condition = [&](const char* type) {
    const auto found = k8s::find_condition(*got, type);
    return found ? found->status : std::string();
  };
  const auto phase = k8s::find_string(*got, {"status", "phase"});
  if (may_go_on && !well.empty() && (phase == "Canary" || phase == "Waves") &&
      condition("Stalled") != "True") {
    fail("the roll-out does not go on, and does not say why: " +
         json::serialize(got->at("status")));
  }
  if (condition("Ready") != "True" || !missing.empty() ||
      !k8s::find_string(*got, {"spec", "revision"}).empty()) {
    return;
  }
  for (const auto& name : well) {
    const auto has = without_credentials(land_.content_of(name).at);
    if (has != without_credentials(land_.now)) {
      fail("the roll-out is Ready, and " + name + " has " + to_string(has));
    }
  }
}

}  // namespace rw::runtime_config_test
