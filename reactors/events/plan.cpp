#include "rw/reactors/events/plan.hpp"

#include <algorithm>

namespace rw::observation {

bool is_same_resource(const managed_watch& watch, const managed_watch& as) {
  return watch.manager == as.manager && watch.watched.group == as.watched.group &&
         watch.watched.plural == as.watched.plural;
}

observation_plan make_plan(const known_managers& managers, bool secrets) {
  observation_plan result;
  for (const auto& watch : managers.watches()) {
    const auto reason = unobserved_reason(watch, secrets);
    if (!reason.empty()) {
      result.unobserved.push_back({watch, reason});
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
