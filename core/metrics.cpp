#include "core/metrics.hpp"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <utility>

namespace rw::core {

counter& make_counter(metrics& registry, const std::string& name, const std::string& help,
                      const labels& with) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(with);
}

gauge& make_gauge(metrics& registry, const std::string& name, const std::string& help,
                  const labels& with) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(with);
}

histogram& make_histogram(metrics& registry, const std::string& name, const std::string& help,
                          const labels& with, const std::vector<double>& bounds) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(with, bounds);
}

histogram_tally::histogram_tally(metrics& registry, const std::string& name,
                                 const std::string& help, const labels& with,
                                 std::vector<double> bounds, double scale)
    : into_(make_histogram(registry, name, help, with, bounds)),
      scale_(scale),
      bounds_(std::move(bounds)),
      counts_(bounds_.size() + 1) {
  for (auto& bound : bounds_) bound *= scale_;
}

void histogram_tally::publish() {
  into_.ObserveMultiple(counts_, std::exchange(sum_, 0) / scale_);
  std::ranges::fill(counts_, 0);
}

const std::vector<double>& latency_bounds() {
  static const std::vector<double> bounds = {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                             0.005,   0.01,   0.025,   0.05,   0.1,   0.25,
                                             0.5,     1,      2.5,     5,      10};
  return bounds;
}

std::string expose(const metrics& registry) {
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

}  // namespace rw::core
