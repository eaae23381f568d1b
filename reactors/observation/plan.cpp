#include "rw/reactors/observation/plan.hpp"

#include <algorithm>

namespace rw::observation {

bool plan::has(const managed_watch& watch) const {
  return std::ranges::any_of(resources, [&](const auto& each) {
    return std::ranges::find(each.watches, watch) != each.watches.end();
  });
}

plan make_plan(const known_managers& managers, bool secrets) {
  plan result;
  for (const auto& watch : managers.watches()) {
    const auto reason = unobserved_reason(watch, secrets);
    if (!reason.empty()) {
      result.others.push_back({watch, reason});
      continue;
    }
    const observed_resource own{watch.watched, watch.labels, {}};
    const auto at = std::ranges::find_if(
        result.resources, [&](const auto& each) { return each.same_selection(own); });
    auto& resource = at == result.resources.end() ? result.resources.emplace_back(own) : *at;
    resource.watches.push_back(watch);
  }
  return result;
}

}  // namespace rw::observation
