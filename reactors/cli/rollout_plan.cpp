#include "rw/reactors/cli/rollout_plan.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"
#include "rw/reactors/cli/rollout_text.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"
#include "rw/reactors/runtime_rollout/steps.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace rw::cli {
namespace {

namespace json = boost::json;
using runtime_rollout::member;
using runtime_rollout::placed_step;

/// The steps of the content that is rolled out, or of the next one. What the manager's flags say is
/// known from the status alone.
std::vector<placed_step> steps_of(const json::value& rollout) {
  const auto state = runtime_rollout::read_state(rollout);
  const bool by_flags = k8s::find(rollout, {"spec", "steps"}) == nullptr &&
                        k8s::find(rollout, {"spec", "canaries"}) == nullptr;
  std::vector<placed_step> out;
  if (by_flags && !state.steps.empty()) {
    out = state.steps;
  } else {
    for (auto& each : runtime_rollout::read_spec(rollout, {}).with.steps) {
      out.push_back({std::move(each)});
    }
  }
  const auto by_runtimes = [](const placed_step& each) { return each.of.runtimes; };
  const bool placed = state.at != runtime_rollout::phase::completed &&
                      std::ranges::equal(out, state.steps, {}, by_runtimes, by_runtimes);
  for (std::size_t i = 0; i < out.size(); ++i) out[i].below = placed ? state.steps[i].below : 0;
  return out;
}

}  // namespace

bool takes_part(const json::value& bootstrapper, const bootstrapper_sources& usual) {
  if (k8s::find_string(bootstrapper, {"status", "mode"}) != "direct") return false;
  bootstrapper::diagnostics unused;
  return bootstrapper::shares_content(bootstrapper::read_resource(bootstrapper, usual, unused),
                                      usual);
}

std::string plan_of(const json::value& rollout, const json::array& runtimes) {
  auto steps = steps_of(rollout);
  std::vector<runtime_rollout::step> wanted;
  for (const auto& each : steps) wanted.push_back(each.of);
  const auto selectors = runtime_rollout::selectors_of(wanted);
  std::vector<member> members;
  for (const auto& each : runtimes) {
    const auto* const labels = k8s::find(each, {"metadata", "labels"});
    members.push_back({.position = runtime_rollout::position_of(k8s::uid_of(each)),
                       .labelled = runtime_rollout::first_match(selectors, labels)});
  }
  runtime_rollout::raise(steps, members);
  std::vector<std::tuple<std::size_t, std::uint32_t, std::string>> order;
  for (std::size_t i = 0; i < members.size(); ++i) {
    order.emplace_back(runtime_rollout::step_of(steps, members[i]), members[i].position,
                       k8s::key_of(runtimes[i]).name);
  }
  std::ranges::sort(order);
  std::map<std::size_t, std::size_t> counts;  // by step
  for (const auto& each : order) ++counts[std::get<0>(each)];
  const auto of_all = " of " + std::to_string(members.size());
  std::vector<std::vector<std::string>> rows{{"STEP", "SELECTED-BY", "RUNTIMES", "NAME"}};
  for (const auto& [step, position, name] : order) {
    const bool last = step == steps.size();
    rows.push_back({std::to_string(step + 1), last ? "others" : steps[step].of.runtimes,
                    std::to_string(counts[step]) + of_all, name});
  }
  return in_columns(rollout, rows);
}

}  // namespace rw::cli
