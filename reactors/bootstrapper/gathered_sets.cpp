#include "reactors/bootstrapper/gathered_sets.hpp"

#include <algorithm>

namespace rw::bootstrapper {

gathered_sets::gathered_sets(core::metrics& registry)
    : gathered_(core::make_counter(registry, "rw_bootstrapper_gathered_total",
                                   "Times that sources were parsed and checked as a set")) {}

gathered_sets::pointer gathered_sets::find(const std::string& key) {
  const auto found = std::ranges::find(sets_, key, &std::pair<std::string, pointer>::first);
  if (found == sets_.end()) return nullptr;
  sets_.splice(sets_.begin(), sets_, found);
  return sets_.front().second;
}

gathered_sets::pointer gathered_sets::keep(std::string key, gathered_set made) {
  gathered_.Increment();
  sets_.emplace_front(std::move(key), std::make_shared<const gathered_set>(std::move(made)));
  if (sets_.size() > most) sets_.pop_back();
  return sets_.front().second;
}

}  // namespace rw::bootstrapper
