#include "reactors/rollout.hpp"

#include <algorithm>
#include <utility>

namespace rw {

bool rollout_observation::trusts(const std::string& fingerprint) const noexcept {
  return std::ranges::find(authorities, fingerprint) != authorities.end();
}

rollout_observation observe_rollout(const tls::ca_bundle& webhooks, const tls::ca_bundle& secret,
                                    const tls::certificate& client) {
  rollout_observation seen;
  for (const auto& one : secret.authorities()) {
    if (webhooks.contains(one)) seen.authorities.push_back(one.fingerprint());
  }
  seen.client_not_before = client.not_before();
  const auto* issuer = secret.issuer_of(client);
  if (issuer == nullptr) issuer = webhooks.issuer_of(client);
  if (issuer != nullptr) seen.client_issuer = issuer->fingerprint();
  return seen;
}

void rollout_board::expect(const k8s::object_key& kyma) {
  const bool added = entries_.try_emplace(kyma).second;
  if (added) tell();
}

void rollout_board::observed(const k8s::object_key& kyma, rollout_observation seen) {
  auto& entry = entries_[kyma];
  const bool same = entry.seen == seen && !entry.unreachable_since;
  if (same) return;
  entry.seen = std::move(seen);
  entry.unreachable_since.reset();
  tell();
}

void rollout_board::reached(const k8s::object_key& kyma) {
  const auto at = entries_.find(kyma);
  if (at == entries_.end() || !at->second.unreachable_since) return;
  at->second.unreachable_since.reset();
  tell();
}

void rollout_board::unreachable(const k8s::object_key& kyma, time_point since) {
  auto& entry = entries_[kyma];
  if (entry.unreachable_since) return;
  entry.unreachable_since = since;
  tell();
}

void rollout_board::forget(const k8s::object_key& kyma) {
  if (entries_.erase(kyma) > 0) tell();
}

void rollout_board::complete() {
  if (std::exchange(complete_, true)) return;
  tell();
}

void rollout_board::clear() {
  entries_.clear();
  complete_ = false;
  tell();
}

const rollout_board::entry* rollout_board::find(const k8s::object_key& kyma) const {
  const auto at = entries_.find(kyma);
  return at == entries_.end() ? nullptr : &at->second;
}

void rollout_board::for_each(
    const std::function<void(const k8s::object_key&, const entry&)>& each) const {
  for (const auto& [kyma, entry] : entries_) each(kyma, entry);
}

std::shared_ptr<void> rollout_board::subscribe(std::function<void()> changed) {
  auto listener = std::make_shared<std::function<void()>>(std::move(changed));
  listeners_.push_back(listener);
  return listener;
}

void rollout_board::tell() {
  std::erase_if(listeners_, [](const auto& one) { return one.expired(); });
  for (const auto& one : listeners_) {
    if (const auto listener = one.lock()) (*listener)();
  }
}

}  // namespace rw
