#include "reactors/watcher_installer/runtimes.hpp"

#include <utility>

namespace rw::watcher_installer {
namespace {

constexpr std::array states = {state::installed, state::not_ready, state::failed,
                               state::unreachable};

/// A pod that crashes is now and then only starting: that is no news.
bool is_only_starting(state now, std::string_view reason) {
  return now == state::not_ready && (reason == "PodNotReady" || reason == "NoPods" ||
                                     reason == "ContainerCreating" || reason == "PodInitializing");
}

}  // namespace

std::string_view to_string(state of) noexcept {
  switch (of) {
    case state::installed:
      return "installed";
    case state::not_ready:
      return "not_ready";
    case state::failed:
      return "failed";
    case state::unreachable:
      return "unreachable";
  }
  return "";
}

runtimes::runtimes(core::metrics& registry)
    : sick_gauge_(core::make_gauge(registry, "rw_watcher_installer_sick_runtimes",
                                   "Runtimes that did not answer when they were asked last")) {
  for (const auto one : states) {
    gauges_[static_cast<std::size_t>(one)] = &core::make_gauge(
        registry, "rw_watcher_installer_runtimes", "Runtimes by the state of their watcher",
        {{"state", std::string(to_string(one))}});
  }
}

void runtimes::move(std::optional<state> from, std::optional<state> to) {
  const auto change = [this](state of, int by) {
    const auto at = static_cast<std::size_t>(of);
    counts_[at] += static_cast<std::size_t>(by);
    gauges_[at]->Set(static_cast<double>(counts_[at]));
  };
  if (from) change(*from, -1);
  if (to) change(*to, 1);
}

bool runtimes::set(const k8s::object_key& kyma, state now, const std::string& reason, bool done) {
  auto& one = records_[kyma];
  if (one.state == now && (one.reason == reason || is_only_starting(now, reason))) return false;
  const bool first = !one.state;
  move(one.state, now);
  one.state = now;
  one.reason = reason;
  return !first || done || now != state::installed;
}

unsigned runtimes::look(const k8s::object_key& kyma, bool on_their_way) {
  auto& looks = records_[kyma].looks;
  const auto before = looks;
  looks = on_their_way ? looks + 1 : 0;
  return before;
}

bool runtimes::sick(const k8s::object_key& kyma) const {
  return !complaint(kyma).empty();
}

const std::string& runtimes::complaint(const k8s::object_key& kyma) const {
  static const std::string none;
  const auto found = records_.find(kyma);
  return found == records_.end() ? none : found->second.complaint;
}

void runtimes::set_sick(const k8s::object_key& kyma, std::string complaint) {
  auto& one = records_[kyma];
  if (one.complaint.empty()) ++sick_;
  one.complaint = complaint.empty() ? "it did not answer" : std::move(complaint);
  publish_sick();
}

void runtimes::set_healthy(const k8s::object_key& kyma) {
  const auto found = records_.find(kyma);
  if (found == records_.end() || found->second.complaint.empty()) return;
  found->second.complaint.clear();
  --sick_;
  publish_sick();
}

void runtimes::forget(const k8s::object_key& kyma) {
  const auto found = records_.find(kyma);
  if (found == records_.end()) return;
  set_healthy(kyma);
  move(found->second.state, std::nullopt);
  records_.erase(found);
}

void runtimes::publish_sick() {
  sick_gauge_.Set(static_cast<double>(sick_));
}

}  // namespace rw::watcher_installer
