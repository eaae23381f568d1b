#include "rw/reactors/shared/state_counts.hpp"

#include <utility>

namespace rw {

state_counts::state_counts(core::metrics& registry, std::string prefix,
                           std::initializer_list<std::string_view> known)
    : registry_(registry), prefix_(std::move(prefix)) {
  for (const auto state : known) publish(total_of(state));
}

state_counts::total& state_counts::total_of(std::string_view state) {
  auto& out = totals_[std::string(state)];
  if (out.counted != nullptr) return out;
  const core::labels with{{"state", std::string(state)}};
  out.counted =
      &core::make_gauge(registry_, prefix_ + "_runtimes", "Number of runtimes in each state", with);
  out.oldest =
      &core::make_gauge(registry_, prefix_ + "_state_since_timestamp_seconds",
                        "Unix time at which the longest wait in each state began; 0: none", with);
  return out;
}

void state_counts::add(const entry& to) {
  auto& total = total_of(to.state);
  ++total.count;
  if (to.since) total.waiting.insert(*to.since);
  publish(total);
}

void state_counts::remove(const entry& from) {
  auto& total = total_of(from.state);
  --total.count;
  if (from.since) total.waiting.erase(total.waiting.find(*from.since));
  publish(total);
}

void state_counts::publish(const total& of) {
  std::chrono::duration<double> oldest{};
  if (!of.waiting.empty()) oldest = of.waiting.begin()->time_since_epoch();
  of.counted->Set(static_cast<double>(of.count));
  of.oldest->Set(oldest.count());
}

bool state_counts::set(const k8s::object_key& key, std::string_view state,
                       std::optional<time_point> since) {
  const auto [found, is_new] = entries_.try_emplace(key);
  auto& known = found->second;
  const bool same = known.state == state;
  if (!is_new) remove(known);
  if (since && known.since) since = known.since;
  known = {std::string(state), since};
  add(known);
  return !same;
}

void state_counts::forget(const k8s::object_key& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  remove(found->second);
  entries_.erase(found);
}

std::string_view state_counts::state(const k8s::object_key& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? std::string_view() : found->second.state;
}

std::size_t state_counts::count(std::string_view state) const {
  const auto found = totals_.find(state);
  return found == totals_.end() ? 0 : found->second.count;
}

}  // namespace rw
