#pragma once

#include "rw/core/metrics.hpp"

#include <prometheus/metric_family.h>

#include <string_view>
#include <vector>

namespace rw::core {

/// The values of a registry at one moment, found by name: for a page that shows some of them. A
/// value; reads nothing after its construction.
class metrics_snapshot {
 public:
  /// The observations of a histogram, of all series together.
  struct distribution {
    std::vector<double> bounds = {};  ///< without the infinite one
    std::vector<double> counts = {};  ///< cumulative; the last one is the number of all
    double sum = 0;
  };

  explicit metrics_snapshot(const metrics& registry) : families_(registry.Collect()) {}

  /// Returns the sum of the counters or gauges of that name that have all these labels; 0 if there
  /// are none.
  double sum(std::string_view name, const labels& with = {}) const;
  /// Returns the histograms of that name as one; empty if there are none. All have the same bounds.
  distribution histogram(std::string_view name) const;

 private:
  const prometheus::MetricFamily* find(std::string_view name) const;

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace rw::core
