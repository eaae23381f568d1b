#include "reactors/bootstrapper/drift_backoff.hpp"

#include <algorithm>

namespace rw::bootstrapper {

core::duration drift_backoff::wait_of(unsigned repairs) const {
  if (repairs == 0) return {};
  auto out = with_.base;
  for (unsigned i = 1; i < repairs && out < with_.limit; ++i) out *= 2;
  return std::min(out, with_.limit);
}

bool drift_backoff::is_over(const entry& row, time_point now) const {
  return now - row.last > std::max(2 * wait_of(row.repairs), with_.quiet);
}

core::duration drift_backoff::wait(const k8s::object_key& key, time_point now) const {
  const auto found = entries_.find(key);
  if (found == entries_.end() || is_over(found->second, now)) return {};
  return wait_of(found->second.repairs);
}

unsigned drift_backoff::repaired(const k8s::object_key& key, time_point now) {
  auto& one = entries_[key];
  if (is_over(one, now)) one.repairs = 0;
  one.last = now;
  return ++one.repairs;
}

}  // namespace rw::bootstrapper
