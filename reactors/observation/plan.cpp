#include "rw/reactors/observation/plan.hpp"

#include <algorithm>

namespace rw::observation {

bool is_same_resource(const managed_watch& watch, const managed_watch& as) {
  return watch.manager == as.manager && watch.watched.group == as.watched.group &&
         watch.watched.plural == as.watched.plural;
}

bool observation_plan::has(const managed_watch& watch) const {
  return std::ranges::any_of(resources, [&](const auto& each) {
    return std::ranges::find(each.watches, watch) != each.watches.end();
  });
}

bool observation_plan::has_manager(std::string_view manager) const {
  const auto is_of = [&](const managed_watch& each) { return each.manager == manager; };
  return std::ranges::any_of(unobserved, is_of, &unobserved_watch::watch) ||
         std::ranges::any_of(
             resources, [&](const auto& each) { return std::ranges::any_of(each.watches, is_of); });
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
