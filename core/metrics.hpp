#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rw::core {

/// Registry of all metrics of a process, or of a part that is embedded in a host. Passed in, never
/// global; thread-safe. The references that it returns live as long as it does.
using metrics = prometheus::Registry;
using counter = prometheus::Counter;
using gauge = prometheus::Gauge;
using histogram = prometheus::Histogram;
using labels = std::map<std::string, std::string>;

/// Finds or adds one time series. A name must always come with the same kind.
counter& make_counter(metrics& registry, const std::string& name, const std::string& help,
                      const labels& with = {});
gauge& make_gauge(metrics& registry, const std::string& name, const std::string& help,
                  const labels& with = {});
histogram& make_histogram(metrics& registry, const std::string& name, const std::string& help,
                          const labels& with, const std::vector<double>& bounds);

/// Observations of a histogram that are counted without a lock until they are published. Not
/// thread-safe.
class histogram_tally {
 public:
  /// As make_histogram. What is added is in units of 1/scale of the histogram's.
  histogram_tally(metrics& registry, const std::string& name, const std::string& help,
                  const labels& with, std::vector<double> bounds, double scale = 1);

  void add(double value) noexcept {
    std::size_t bucket = 0;
    while (bucket < bounds_.size() && value > bounds_[bucket]) ++bucket;
    ++counts_[bucket];
    sum_ += value;
  }
  void publish();

 private:
  histogram& into_;
  const double scale_;
  std::vector<double> bounds_;  ///< scaled
  std::vector<double> counts_;
  double sum_ = 0;
};

/// Upper bounds for latencies on a network, in seconds: 50 us to 10 s.
const std::vector<double>& latency_bounds();

/// The text formats in which Prometheus reads metrics.
enum class exposition {
  text,         ///< Prometheus text format 0.0.4
  openmetrics,  ///< OpenMetrics 1.0.0, without exemplars
};

/// Returns the format that an HTTP request asks for by its header Accept.
exposition exposition_for(std::string_view accept) noexcept;

/// Returns the media type of a format.
std::string_view media_type(exposition format) noexcept;

/// Renders all metrics of the registry.
std::string expose(const metrics& registry, exposition format = exposition::text);
/// Likewise, and those of the process (core/process_metrics.hpp).
std::string expose_with_process(const metrics& registry, exposition format);

}  // namespace rw::core
