#include "reactors/bootstrapper/drift_pace.hpp"

#include <algorithm>

namespace rw::bootstrapper {

core::duration drift_pace::wait_of(unsigned repairs) const {
  if (repairs == 0) return {};
  auto out = with_.base;
  for (unsigned i = 1; i < repairs && out < with_.limit; ++i) out *= 2;
  return std::min(out, with_.limit);
}

bool drift_pace::is_over(const entry& one, time_point now) const {
  return now - one.last > std::max(2 * wait_of(one.repairs), with_.quiet);
}

core::duration drift_pace::wait(const k8s::object_key& key, time_point now) const {
  const auto found = entries_.find(key);
  if (found == entries_.end() || is_over(found->second, now)) return {};
  return wait_of(found->second.repairs);
}

unsigned drift_pace::repaired(const k8s::object_key& key, time_point now) {
  auto& one = entries_[key];
  if (is_over(one, now)) one.repairs = 0;
  one.last = now;
  return ++one.repairs;
}

}  // namespace rw::bootstrapper
