#include "rw/reactors/shared/rollout.hpp"

#include <algorithm>
#include <utility>

namespace rw {

bool runtime_trust::trusts(const std::string& fingerprint) const noexcept {
  return std::ranges::find(authorities, fingerprint) != authorities.end();
}

void rollout_tracker::expect(const k8s::object_key& kyma) {
  const bool added = entries_.try_emplace(kyma).second;
  if (added) notify();
}

void rollout_tracker::observed(const k8s::object_key& kyma, runtime_trust trust, time_point now) {
  auto& entry = entries_[kyma];
  const bool same = entry.observed == trust;
  if (same && !entry.unreachable_since) return;
  if (!same) entry.since = now;
  entry.observed = std::move(trust);
  entry.unreachable_since.reset();
  notify();
}

void rollout_tracker::reached(const k8s::object_key& kyma) {
  const auto at = entries_.find(kyma);
  if (at == entries_.end() || !at->second.unreachable_since) return;
  at->second.unreachable_since.reset();
  notify();
}

void rollout_tracker::unreachable(const k8s::object_key& kyma, time_point since) {
  auto& entry = entries_[kyma];
  if (entry.unreachable_since) return;
  entry.unreachable_since = since;
  notify();
}

void rollout_tracker::forget(const k8s::object_key& kyma) {
  if (entries_.erase(kyma) > 0) notify();
}

void rollout_tracker::complete() {
  if (std::exchange(complete_, true)) return;
  notify();
}

const rollout_tracker::entry* rollout_tracker::find(const k8s::object_key& kyma) const {
  const auto at = entries_.find(kyma);
  return at == entries_.end() ? nullptr : &at->second;
}

void rollout_tracker::for_each(
    const std::function<void(const k8s::object_key&, const entry&)>& each) const {
  for (const auto& [kyma, entry] : entries_) each(kyma, entry);
}

std::shared_ptr<void> rollout_tracker::subscribe(std::function<void()> changed) {
  auto listener = std::make_shared<std::function<void()>>(std::move(changed));
  listeners_.push_back(listener);
  return listener;
}

void rollout_tracker::notify() {
  std::erase_if(listeners_, [](const auto& one) { return one.expired(); });
  for (const auto& one : listeners_) {
    if (const auto listener = one.lock()) (*listener)();
  }
}

}  // namespace rw
