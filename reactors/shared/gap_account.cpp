#include "rw/reactors/shared/gap_account.hpp"

#include "rw/reactors/shared/events.hpp"

#include <algorithm>

namespace rw {

std::map<std::string, gap_counts>::iterator gap_account::use(const std::string& manager) {
  const auto found = counts_.find(manager);
  if (found != counts_.end()) return found;
  // One entry is left for the empty name.
  const auto named = counts_.size() - counts_.count({});
  const bool fits = is_path_segment(manager) && named + 1 < max_managers;
  return counts_.try_emplace(fits ? manager : std::string()).first;
}

void gap_account::raise(const std::string& manager) {
  const auto of = use(manager);
  ++of->second.raised;
  ++raised_;
  if (on_change_) on_change_(of->first, of->second);
}

void gap_account::told(const std::string& manager, std::uint64_t raised) {
  const auto of = counts_.find(manager);
  if (of == counts_.end()) return;
  auto& counts = of->second;
  const auto before = counts.told;
  counts.told = std::max(counts.told, std::min(raised, counts.raised));
  if (counts.told != before && on_change_) on_change_(of->first, counts);
}

void gap_account::restore(const std::string& manager, const gap_counts& stored) {
  auto& counts = use(manager)->second;
  counts.raised += stored.raised;
  counts.told += std::min(stored.told, stored.raised);
}

}  // namespace rw
