#include "reactors/bootstrapper/rejections.hpp"

#include <algorithm>

namespace rw::bootstrapper {
namespace {

constexpr core::duration rejection_retry = std::chrono::minutes(10);
constexpr core::duration unknown_kind_base = std::chrono::seconds(2);

}  // namespace

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
