#include "rw/reactors/runtime_controller/drift_backoff.hpp"

#include "rw/core/backoff.hpp"

#include <algorithm>

namespace rw {

core::duration drift_backoff::wait_of(const row& of) const {
  const auto wait = [this](unsigned times, core::duration limit) {
    return times == 0 ? core::duration::zero() : core::doubled(options_.base, limit, times - 1);
  };
  return std::max(wait(of.repairs, options_.limit),
                  wait(of.idle, std::min(options_.idle_limit, options_.limit)));
}

bool drift_backoff::is_over(const row& of, time_point now) const {
  return now - of.last > std::max(2 * wait_of(of), options_.quiet);
}

core::duration drift_backoff::wait(const k8s::object_key& key, time_point now) const {
  const auto found = rows_.find(key);
  if (found == rows_.end() || is_over(found->second, now)) return {};
  return wait_of(found->second);
}

unsigned drift_backoff::noted(const k8s::object_key& key, bool repaired, time_point now) {
  auto& known = rows_[key];
  if (is_over(known, now)) known = {};
  known.last = now;
  known.idle = repaired ? 0 : known.idle + 1;
  if (repaired) ++known.repairs;
  return known.repairs;
}

}  // namespace rw
