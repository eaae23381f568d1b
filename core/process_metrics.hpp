#pragma once

#include "rw/core/metrics.hpp"

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace rw::core {

/// What every Prometheus client library says of its process (Prometheus, "Writing client
/// libraries", "Process metrics"): `process_cpu_seconds_total`, `process_open_fds`,
/// `process_max_fds`, `process_virtual_memory_bytes`, `process_resident_memory_bytes` and
/// `process_start_time_seconds`, as of now, from /proc (proc(5)). Leaves out what cannot be read.
/// Thread-safe.
std::vector<prometheus::MetricFamily> process_metrics();

/// Renders all metrics of the registry and those of the process, each with the labels `common` too,
/// which no metric has of itself.
std::string expose_with_process(const metrics& registry, exposition format, const labels& common);

}  // namespace rw::core
