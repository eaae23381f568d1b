// The verdict of the checks, and how the leader's differs.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/doctor_app.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using enum finding_state;

/// Checks of what the leader's conditions are about. Findings of the others are of the leader, of
/// runtimes, or of what this command may see.
constexpr std::array<std::string_view, 7> of_the_landscape{
    "bootstrappers", "certificates", "clock", "gateway", "kinds", "rights", "watchers"};

/// Whether a finding is a fault of the landscape. A condition that the leader names has a reason.
bool is_fault(const finding& of) {
  if (of.state != failed) return false;
  if (of.check == "manager") return of.runtime.empty() && !of.reason.empty();
  return std::ranges::find(of_the_landscape, of.check) != of_the_landscape.end();
}

std::string names_of(const std::set<std::string>& names) {
  return first_of({names.begin(), names.end()}, names.size());
}

}  // namespace

void doctor_app::note_rollout(const json::value& rollout) {
  if (auto fault = fault_of_rollout(rollout)) paused_.push_back(std::move(*fault));
}

void doctor_app::note_failed(judged_runtime runtime) {
  auto kyma = runtime.kyma;
  failed_.try_emplace(std::move(kyma), std::move(runtime));
}

fleet_verdict doctor_app::own_verdict() {
  if (no_leader_) return no_leader(*no_leader_);
  // What the leader alone has seen of a runtime counts as well.
  for (auto& runtime : judged_) {
    const auto found = failed_.find(runtime.kyma);
    if (found != failed_.end()) runtime = found->second;
  }
  auto faults = paused_;
  for (const auto& each : findings_) {
    if (!is_fault(each)) continue;
    faults.push_back({each.reason.empty() ? each.check : each.reason, each.message, each.remedy});
  }
  return settings_.runtimes.empty() ? judge_fleet(judged_, faults) : judge_named(judged_, faults);
}

/// Sets the verdict, and names what the leader judges differently.
asio::awaitable<void> doctor_app::compare_verdicts() {
  verdict_ = own_verdict();
  if (!settings_.runtimes.empty()) co_return;
  if (unasked_) {
    // As whoever asks the leader is told; what it would add to well is not known.
    if (verdict_.level == fleet_level::well) verdict_ = *unasked_;
    co_return;
  }
  const auto got = co_await manager_->ask("/runtimes?limit=5000&condition=ill");
  const auto leaders =
      got.error.empty() ? read_verdict(got.runtimes) : runtimes_client::verdict_without(got);
  if (leaders.level == fleet_level::unknown) {
    // Whoever asks the leader is told the same.
    if (!no_leader_) verdict_ = leaders;
    co_return;
  }
  std::set<std::string> only_leader;
  for (const auto& row : got.runtimes.at("runtimes").as_array()) {
    only_leader.emplace(k8s::find_string(row, {"kyma"}));
  }
  std::set<std::string> only_here;
  for (const auto& runtime : judged_) {
    const bool by_both = only_leader.contains(runtime.kyma);
    if (runtime.condition == runtime_condition::ill && !by_both) only_here.insert(runtime.kyma);
    if (runtime.condition == runtime_condition::ill && by_both) only_leader.erase(runtime.kyma);
  }
  if (leaders.level == verdict_.level && only_here.empty() && only_leader.empty()) co_return;
  std::string text = "the leader says " + std::string(to_string(leaders.level)) +
                     ", these checks say " + std::string(to_string(verdict_.level));
  if (!only_leader.empty()) text += "; ill by the leader alone: " + names_of(only_leader);
  if (!only_here.empty()) text += "; ill by these checks alone: " + names_of(only_here);
  if (!stands_back_.empty()) {
    text += "; the leader stands back, and judges no heartbeats: " + stands_back_;
    co_await report(not_proven, "verdict", std::move(text));
    co_return;
  }
  co_await report(not_proven, "verdict", std::move(text),
                  "repeat it: the leader looks at each runtime in turn, and heartbeats take up to "
                  "--heartbeat-timeout");
}

/// Whether a finding is of runtimes, of which so few fail that it is no failure of the landscape.
bool doctor_app::is_tolerated(const finding& of) const {
  if (of.runtime.empty() && of.check != "runtimes") return false;
  return static_cast<double>(failed_.size()) <=
         settings_.tolerate_percent / 100 *
             static_cast<double>(judge_fleet(judged_, {}).expected());
}

}  // namespace rw::cli
