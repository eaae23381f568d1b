#include "rw/reactors/shared/cluster_state.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <algorithm>
#include <utility>

namespace rw {

std::string_view to_string(cluster_fault of) noexcept {
  constexpr std::string_view names[] = {"ours", "tenant", "issuer", "kcp"};
  return names[static_cast<std::size_t>(of)];
}

cluster_scope scope_of(const boost::json::value& kyma, const k8s::label_selector& only) {
  if (!only.matches(k8s::find(kyma, {"metadata", "labels"}))) return cluster_scope::unselected;
  return k8s::label(kyma, skip_label) == "true" ? cluster_scope::left_alone
                                                : cluster_scope::managed;
}

bool runtime_trust::trusts(const std::string& fingerprint) const noexcept {
  return std::ranges::find(authorities, fingerprint) != authorities.end();
}

std::optional<cluster_state::time_point> cluster_state::own_fault_since() const {
  if (!error || error->fault != cluster_fault::tenant) return std::nullopt;
  return error->since;
}

bool cluster_state::is_reporting() const noexcept {
  if (!is_mine() || is_outdated) return false;
  if (!error) return is_ready;
  return is_unreachable(error->reason) || (is_ready && error->reason != status_reason::contested);
}

void cluster_states::expect(const k8s::object_key& kyma) {
  if (entries_.try_emplace(kyma).second) notify();
}

void cluster_states::observed(const k8s::object_key& kyma, runtime_trust trust, time_point now,
                              bool is_loaded) {
  auto& entry = entries_[kyma];
  const bool same = entry.observed == trust;
  is_loaded = is_loaded || (same && entry.is_loaded);
  if (same && entry.is_loaded == is_loaded) return;
  if (!same) entry.since = now;
  entry.observed = std::move(trust);
  entry.is_loaded = is_loaded;
  notify();
}

void cluster_states::restore(const k8s::object_key& kyma, cluster_error own_fault) {
  auto& known = entries_[kyma].own_fault;
  if (known) return;
  known = own_fault;
  notify();
}

void cluster_states::set_outdated(const k8s::object_key& kyma, bool is_outdated) {
  if (const auto at = entries_.find(kyma); at != entries_.end()) {
    at->second.is_outdated = is_outdated;
  }
}

void cluster_states::set_scope(const k8s::object_key& kyma, cluster_scope scope) {
  // One that is managed and not known is not expected to have anything.
  if (scope == cluster_scope::managed && !entries_.contains(kyma)) return;
  auto& entry = entries_[kyma];
  if (entry.scope == scope) return;
  entry.scope = scope;
  if (scope == cluster_scope::unselected) entry.error = entry.own_fault = std::nullopt;
  notify();
}

void cluster_states::converged(const k8s::object_key& kyma, bool is_ready) {
  const auto at = entries_.find(kyma);
  if (at == entries_.end()) return;
  at->second.is_ready = is_ready;
  const auto own = std::exchange(at->second.own_fault, std::nullopt);
  const auto error = std::exchange(at->second.error, std::nullopt);
  if (own || error) notify();
}

void cluster_states::failing(const k8s::object_key& kyma, status_reason reason, cluster_fault fault,
                             time_point now) {
  auto& entry = entries_[kyma];
  const bool own = fault == cluster_fault::tenant;
  const auto& before = own ? entry.own_fault : entry.error;
  const bool lasts = before && before->fault == fault;
  const cluster_error error{reason, fault, lasts ? std::min(before->since, now) : now};
  if (entry.error == error) return;
  entry.error = error;
  if (own) entry.own_fault = error;
  notify();
}

void cluster_states::belongs_to(const k8s::object_key& kyma, const std::string& owner) {
  if (owner.empty() && !entries_.contains(kyma)) return;
  auto& entry = entries_[kyma];
  if (entry.owner == owner) return;
  entry = {};
  entry.owner = owner;
  notify();
}

void cluster_states::forget(const k8s::object_key& kyma) {
  if (entries_.erase(kyma) > 0) notify();
}

void cluster_states::complete() {
  if (std::exchange(complete_, true)) return;
  notify();
}

void cluster_states::reopen() {
  if (std::exchange(complete_, false)) notify();
}

const cluster_state* cluster_states::find(const k8s::object_key& kyma) const {
  const auto at = entries_.find(kyma);
  return at == entries_.end() ? nullptr : &at->second;
}

bool cluster_states::is_duplicate(const k8s::object_key& kyma) const {
  const auto* const state = find(kyma);
  return state != nullptr && !state->owner.empty();
}

void cluster_states::for_each(
    const std::function<void(const k8s::object_key&, const cluster_state&)>& visit) const {
  for (const auto& [kyma, entry] : entries_) visit(kyma, entry);
}

std::shared_ptr<void> cluster_states::subscribe(std::function<void()> changed) {
  auto listener = std::make_shared<std::function<void()>>(std::move(changed));
  listeners_.push_back(listener);
  return listener;
}

void cluster_states::notify() {
  std::erase_if(listeners_, [](const auto& listener) { return listener.expired(); });
  for (const auto& weak : listeners_) {
    if (const auto listener = weak.lock()) (*listener)();
  }
}

}  // namespace rw
