#include "rw/reactors/observation/kept_objects.hpp"

#include <algorithm>
#include <utility>

namespace rw::observation {
namespace {

constexpr std::uint32_t first_number = 0x8000'0000;  ///< those of tables are less

}  // namespace

void kept_objects::restore(std::map<managed_watch, objects> watches) {
  watches_ = std::move(watches);
  auto number = first_number;
  for (auto& [watch, known] : watches_) known.number = number++;
}

void kept_objects::keep(const managed_watch& watch, objects known) {
  const bool is_empty = known.states.empty();
  watches_.insert_or_assign(watch, std::move(known));
  if (is_empty) return drop(watches_.find(watch));
  for (auto at = watches_.begin(); at != watches_.end() && size() > most_;) {
    const auto next = std::next(at);
    if (at->second.inherited) drop(at);
    at = next;
  }
  if (size() > most_) drop(watches_.find(watch));
}

void kept_objects::drop(std::map<managed_watch, objects>::iterator at) {
  const auto dropped = watches_.extract(at);
  const auto& known = dropped.mapped();
  on_drop_(dropped.key(), known.number, !known.inherited && !known.states.empty());
}

std::size_t kept_objects::size() const {
  std::size_t all = 0;
  for (const auto& [watch, known] : watches_) all += known.states.size();
  return all;
}

std::optional<kept_objects::objects> kept_objects::take(const managed_watch& watch) {
  auto known = watches_.extract(watch);
  if (known.empty()) return std::nullopt;
  return std::move(known.mapped());
}

std::vector<managed_watch> kept_objects::heritage_of(const managed_watch& watch,
                                                     const observation_plan& present) const {
  std::vector<managed_watch> result;
  for (const auto& [gone, known] : watches_) {
    const bool is_free = !known.inherited && is_same_resource(gone, watch);
    if (is_free && !present.has(gone)) result.push_back(gone);
  }
  return result;
}

kept_objects::objects kept_objects::inherit(const managed_watch& watch) {
  auto& known = watches_.at(watch);
  known.inherited = known.outdated = true;
  for (auto& [key, delivered] : known.states) delivered = unknown_state;
  auto result = known;
  known.states.erase("");  // the heir tells it
  return result;
}

void kept_objects::outdate(
    const observation_plan& present,
    const std::function<void(const managed_watch&, const objects&)>& changed) {
  for (auto& [watch, known] : watches_) {
    if (known.outdated || !present.has_manager(watch.manager)) continue;
    known.outdated = true;
    for (auto& [key, delivered] : known.states) delivered = unknown_state;
    changed(watch, known);
  }
}

}  // namespace rw::observation
