#include "rw/core/metrics_snapshot.hpp"

#include <algorithm>
#include <cmath>

namespace rw::core {
namespace {

bool has_labels(const prometheus::ClientMetric& series, const labels& with) {
  return std::ranges::all_of(with, [&](const auto& wanted) {
    return std::ranges::any_of(series.label, [&](const auto& label) {
      return label.name == wanted.first && label.value == wanted.second;
    });
  });
}

}  // namespace

const prometheus::MetricFamily* metrics_snapshot::find(std::string_view name) const {
  const auto at = std::ranges::find(families_, name, &prometheus::MetricFamily::name);
  return at == families_.end() ? nullptr : &*at;
}

double metrics_snapshot::sum(std::string_view name, const labels& with) const {
  double out = 0;
  const auto* const family = find(name);
  if (family == nullptr) return out;
  for (const auto& series : family->metric) {
    if (has_labels(series, with)) out += series.counter.value + series.gauge.value;
  }
  return out;
}

metrics_snapshot::distribution metrics_snapshot::histogram(std::string_view name) const {
  distribution out;
  const auto* const family = find(name);
  if (family == nullptr) return out;
  for (const auto& series : family->metric) {
    const auto& buckets = series.histogram.bucket;
    out.counts.resize(std::max(out.counts.size(), buckets.size()));
    out.bounds.clear();
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      out.counts[i] += static_cast<double>(buckets[i].cumulative_count);
      if (!std::isinf(buckets[i].upper_bound)) out.bounds.push_back(buckets[i].upper_bound);
    }
    out.sum += series.histogram.sample_sum;
  }
  return out;
}

}  // namespace rw::core
