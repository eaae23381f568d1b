#include "reactors/runtimes.hpp"

#include <algorithm>
#include <utility>

namespace rw {
namespace {

constexpr std::array states = {runtime_state::installed, runtime_state::not_ready,
                               runtime_state::failed, runtime_state::unreachable};

/// A pod that crashes is now and then only starting: that is no news.
bool is_only_starting(runtime_state now, std::string_view reason) {
  return now == runtime_state::not_ready &&
         (reason == "PodNotReady" || reason == "NoPods" || reason == "ContainerCreating" ||
          reason == "PodInitializing");
}

}  // namespace

std::string_view to_string(runtime_state of) noexcept {
  switch (of) {
    case runtime_state::installed:
      return "installed";
    case runtime_state::not_ready:
      return "not_ready";
    case runtime_state::failed:
      return "failed";
    case runtime_state::unreachable:
      return "unreachable";
  }
  return "";
}

runtimes::runtimes(core::metrics& registry, const std::string& prefix, const std::string& what)
    : sick_gauge_(core::make_gauge(registry, prefix + "_sick_runtimes",
                                   "Runtimes that did not answer when they were asked last")) {
  for (const auto one : states) {
    gauges_[static_cast<std::size_t>(one)] =
        &core::make_gauge(registry, prefix + "_runtimes", "Runtimes by the state of their " + what,
                          {{"state", std::string(to_string(one))}});
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

bool runtimes::set(const k8s::object_key& key, runtime_state now, const std::string& reason,
                   bool done) {
  auto& one = records_[key];
  if (one.state == now && (one.reason == reason || is_only_starting(now, reason))) return false;
  const bool first = !one.state;
  move(one.state, now);
  one.state = now;
  one.reason = reason;
  return !first || done || now != runtime_state::installed;
}

unsigned runtimes::look(const k8s::object_key& key, bool on_their_way) {
  auto& looks = records_[key].looks;
  const auto before = looks;
  looks = on_their_way ? looks + 1 : 0;
  return before;
}

bool runtimes::sick(const k8s::object_key& key) const {
  return !complaint(key).empty();
}

const std::string& runtimes::complaint(const k8s::object_key& key) const {
  static const std::string none;
  const auto found = records_.find(key);
  return found == records_.end() ? none : found->second.complaint;
}

void runtimes::set_sick(const k8s::object_key& key, std::string complaint) {
  auto& one = records_[key];
  if (one.complaint.empty()) ++sick_;
  ++one.silences;
  one.complaint = complaint.empty() ? "it did not answer" : std::move(complaint);
  publish_sick();
}

core::duration runtimes::patience(const k8s::object_key& key, core::duration first,
                                  core::duration most) const {
  const auto found = records_.find(key);
  const auto before = found == records_.end() ? 0 : found->second.silences;
  auto out = first;
  for (unsigned i = 1; i < before && out < most; ++i) out *= 2;
  return std::min(out, std::max(first, most));
}

void runtimes::set_healthy(const k8s::object_key& key) {
  const auto found = records_.find(key);
  if (found == records_.end() || found->second.complaint.empty()) return;
  found->second.complaint.clear();
  found->second.silences = 0;
  --sick_;
  publish_sick();
}

void runtimes::forget(const k8s::object_key& key) {
  const auto found = records_.find(key);
  if (found == records_.end()) return;
  set_healthy(key);
  move(found->second.state, std::nullopt);
  records_.erase(found);
}

void runtimes::publish_sick() {
  sick_gauge_.Set(static_cast<double>(sick_));
}

}  // namespace rw
