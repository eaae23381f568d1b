#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <string>

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

/// Upper bounds for latencies on a network, in seconds: 50 us to 10 s.
const std::vector<double>& latency_bounds();

/// Renders all metrics in the Prometheus text exposition format, version 0.0.4.
std::string expose(const metrics& registry);

}  // namespace rw::core
