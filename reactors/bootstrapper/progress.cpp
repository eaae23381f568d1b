#include "reactors/bootstrapper/progress.hpp"

#include <algorithm>

namespace rw::bootstrapper {
namespace {

constexpr core::duration rejection_retry = std::chrono::minutes(10);
constexpr core::duration unknown_kind_base = std::chrono::seconds(2);

}  // namespace

progress::progress(core::metrics& registry)
    : registry_(registry),
      managed_(core::make_gauge(registry, "rw_bootstrapper_managed_runtimes",
                                "Number of runtimes in mode direct")),
      current_(core::make_gauge(registry, "rw_bootstrapper_current_runtimes",
                                "Number of runtimes in mode direct with both units in place")),
      since_(
          core::make_gauge(registry, "rw_bootstrapper_outdated_since_seconds",
                           "Unix time since when the longest outdated runtime is so; 0: none is")),
      differing_(
          core::make_gauge(registry, "rw_bootstrapper_differing_runtimes",
                           "Number of runtimes in mode shadow where something would be written")) {}

void progress::expect(const k8s::object_key& key, time_point now) {
  if (!entries_.contains(key)) outdated(key, now);
}

void progress::outdated(const k8s::object_key& key, time_point now) {
  auto& since = entries_[key];
  if (!since) {
    since = now;
    waiting_.insert(now);
  }
  publish();
}

void progress::current(const k8s::object_key& key) {
  auto& since = entries_[key];
  if (since) waiting_.erase(waiting_.find(*since));
  since.reset();
  publish();
}

void progress::leave(const k8s::object_key& key) {
  if (!entries_.contains(key)) return;
  current(key);
  entries_.erase(key);
  publish();
}

void progress::differs(const k8s::object_key& key, bool does) {
  if (does) {
    differing_keys_.insert(key);
  } else {
    differing_keys_.erase(key);
  }
  publish();
}

bool progress::unmanaged(const k8s::object_key& key, const std::string& reason) {
  const auto change = [this](const std::string& of, double by) {
    if (of.empty()) return;
    core::make_gauge(registry_, "rw_bootstrapper_unmanaged_runtimes",
                     "Number of runtimes in mode direct that nothing is written to",
                     {{"reason", of}})
        .Increment(by);
  };
  const auto found = unmanaged_.find(key);
  const auto before = found == unmanaged_.end() ? std::string() : found->second;
  if (before == reason) return false;
  change(before, -1);
  change(reason, 1);
  if (reason.empty()) {
    unmanaged_.erase(key);
  } else {
    unmanaged_[key] = reason;
  }
  return true;
}

std::optional<progress::time_point> progress::outdated_since() const {
  if (waiting_.empty()) return std::nullopt;
  return *waiting_.begin();
}

void progress::publish() {
  managed_.Set(static_cast<double>(managed()));
  current_.Set(static_cast<double>(currents()));
  differing_.Set(static_cast<double>(differing_keys_.size()));
  const auto since = outdated_since();
  since_.Set(since ? std::chrono::duration<double>(since->time_since_epoch()).count() : 0);
}

std::array<rejected_revision, all_units.size()> rejections::current(const k8s::object_key& key,
                                                                    time_point now) const {
  std::array<rejected_revision, all_units.size()> out;
  const auto found = entries_.find(key);
  for (std::size_t i = 0; found != entries_.end() && i < out.size(); ++i) {
    if (now < found->second[i].due) out[i] = found->second[i].revision;
  }
  return out;
}

void rejections::update(const k8s::object_key& key, unit of, const std::string& desired,
                        const unit_report& report, time_point now) {
  if (!report.rejected && !entries_.contains(key)) return;
  auto& known = entries_[key][static_cast<std::size_t>(of)];
  if (!report.rejected || desired.empty()) {
    known = {};
    return;
  }
  if (known.revision.digest != desired) known = {};
  if (now < known.due) return;  // it was not tried
  const auto doubled = unknown_kind_base * (1U << std::min(known.times, 10U));
  const bool unknown = report.rejected->why == rejection::reason::unknown_kind;
  known.revision = {desired, *report.rejected};
  known.due = now + (unknown ? std::min(doubled, rejection_retry) : rejection_retry);
  ++known.times;
}

std::optional<rejections::time_point> rejections::due(const k8s::object_key& key) const {
  std::optional<time_point> out;
  const auto found = entries_.find(key);
  if (found == entries_.end()) return out;
  for (const auto& each : found->second) {
    if (each.revision.digest.empty()) continue;
    out = out ? std::min(*out, each.due) : each.due;
  }
  return out;
}

}  // namespace rw::bootstrapper
