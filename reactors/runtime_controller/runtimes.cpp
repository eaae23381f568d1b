#include "rw/reactors/runtime_controller/runtimes.hpp"

#include <algorithm>
#include <utility>

namespace rw {
namespace {

/// A crashing pod starts again and again: that is not another state.
bool is_starting(runtime_state now, status_reason reason) {
  using enum status_reason;
  return now == runtime_state::not_ready &&
         (reason == pod_not_ready || reason == no_pods || reason == container_creating ||
          reason == pod_initializing || reason == pod_restarted);
}

/// True unless it is of a container that ran, which starts again and again: the others are over
/// once pods start.
bool is_over_when_starting(status_reason reason) {
  using enum status_reason;
  return is_progress(reason) || reason == failed_create || reason == progress_deadline_exceeded ||
         reason == unschedulable;
}

}  // namespace

runtimes::runtimes(core::metrics& registry, const std::string& prefix, const std::string& subject)
    : unhealthy_gauge_(core::make_gauge(registry, prefix + "_unhealthy_runtimes",
                                        "Number of runtimes that did not respond in time")) {
  for (std::size_t i = 0; i < gauges_.size(); ++i) {
    gauges_[i] = &core::make_gauge(
        registry, prefix + "_runtimes", "Number of runtimes by the state of their " + subject,
        {{"state", std::string(to_string(static_cast<runtime_state>(i)))}});
  }
}

void runtimes::move(std::optional<runtime_state> from, std::optional<runtime_state> to) {
  const auto change = [this](runtime_state of, int by) {
    const auto at = static_cast<std::size_t>(of);
    counts_[at] += static_cast<std::size_t>(by);
    gauges_[at]->Set(static_cast<double>(counts_[at]));
  };
  if (from) change(*from, -1);
  if (to) change(*to, 1);
}

bool runtimes::set(const k8s::object_key& key, status now, bool changed) {
  auto& known = records_[key].last;
  const bool same = known.state == now.state;
  if (same) now.since = known.since;
  const bool as_before = same && known.reason == now.reason && known.cause == now.cause;
  if (as_before || (same && is_starting(*now.state, now.reason))) {
    // It goes on to start; after a container has failed the reason of that stays.
    if (as_before || is_over_when_starting(known.reason)) known = std::move(now);
    return false;
  }
  const bool first = !known.state;
  move(known.state, now.state);
  known = std::move(now);
  return !first || changed || known.state != runtime_state::installed;
}

const runtimes::status* runtimes::find(const k8s::object_key& key) const {
  const auto found = records_.find(key);
  return found == records_.end() ? nullptr : &found->second.last;
}

unsigned runtimes::inspected(const k8s::object_key& key, bool starting) {
  auto& count = records_[key].inspections;
  return std::exchange(count, starting ? count + 1 : 0);
}

bool runtimes::unhealthy(const k8s::object_key& key) const {
  return !error(key).empty();
}

const std::string& runtimes::error(const k8s::object_key& key) const {
  static const std::string none;
  const auto found = records_.find(key);
  return found == records_.end() ? none : found->second.error;
}

void runtimes::set_unhealthy(const k8s::object_key& key, std::string error) {
  auto& known = records_[key];
  if (known.error.empty()) ++unhealthy_;
  ++known.failures;
  known.error = error.empty() ? "it did not respond" : std::move(error);
  unhealthy_gauge_.Set(static_cast<double>(unhealthy_));
}

core::duration runtimes::probe_timeout(const k8s::object_key& key, core::duration first,
                                       core::duration most) const {
  const auto found = records_.find(key);
  const auto failures = found == records_.end() ? 0 : found->second.failures;
  auto out = first;
  for (unsigned i = 1; i < failures && out < most; ++i) out *= 2;
  return std::min(out, std::max(first, most));
}

void runtimes::set_healthy(const k8s::object_key& key) {
  const auto found = records_.find(key);
  if (found == records_.end() || found->second.error.empty()) return;
  found->second.error.clear();
  found->second.failures = 0;
  unhealthy_gauge_.Set(static_cast<double>(--unhealthy_));
}

core::duration runtimes::turn(double rate, core::duration most) const {
  const std::chrono::duration<double> longest = most;
  // Without a rate each has its turn as late as may be.
  const auto pause = rate > 0 ? static_cast<double>(unhealthy_) / rate : longest.count();
  return std::chrono::duration_cast<core::duration>(
      std::chrono::duration<double>(std::min(pause, longest.count())));
}

void runtimes::forget(const k8s::object_key& key) {
  const auto found = records_.find(key);
  if (found == records_.end()) return;
  set_healthy(key);
  move(found->second.last.state, std::nullopt);
  records_.erase(found);
}

}  // namespace rw
