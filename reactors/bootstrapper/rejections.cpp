#include "reactors/bootstrapper/rejections.hpp"

#include <algorithm>

namespace rw::bootstrapper {
namespace {

constexpr core::duration rejection_retry = std::chrono::minutes(10);
constexpr core::duration unknown_kind_base = std::chrono::seconds(2);

}  // namespace

void rejections::skip(const k8s::object_key& key, time_point now, sync_state& state) const {
  const auto found = entries_.find(key);
  for (std::size_t i = 0; found != entries_.end() && i < all_units.size(); ++i) {
    if (now < found->second[i].due) state.units[i].skipped = found->second[i].revision;
  }
}

void rejections::update(const k8s::object_key& key, time_point now, const sync_state& state) {
  for (const auto of : all_units) {
    const auto& unit = state.at(of);
    if (!unit.rejected && !entries_.contains(key)) continue;
    auto& known = entries_[key][static_cast<std::size_t>(of)];
    if (!unit.rejected || known.revision.digest != unit.desired) known = {};
    // A revision before its time was not tried.
    if (!unit.rejected || unit.desired.empty() || now < known.due) continue;
    const auto doubled = unknown_kind_base * (1U << std::min(known.times, 10U));
    const bool unknown = unit.rejected->why == rejection::reason::unknown_kind;
    known.revision = {unit.desired, *unit.rejected};
    known.due = now + (unknown ? std::min(doubled, rejection_retry) : rejection_retry);
    ++known.times;
  }
}

std::optional<rejections::time_point> rejections::due(const k8s::object_key& key) const {
  std::optional<time_point> out;
  const auto found = entries_.find(key);
  if (found == entries_.end()) return out;
  for (const auto& each : found->second) {
    if (each.revision.digest.empty()) continue;
    out = out ? std::min(*out, each.due) : each.due;
  }
  return out;
}

}  // namespace rw::bootstrapper
