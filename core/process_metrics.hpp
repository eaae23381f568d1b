#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace rw::core {

/// What every Prometheus client library says of its process (Prometheus, "Writing client
/// libraries", "Process metrics"): `process_cpu_seconds_total`, `process_open_fds`,
/// `process_max_fds`, `process_virtual_memory_bytes`, `process_resident_memory_bytes` and
/// `process_start_time_seconds`, as of now, from /proc (proc(5)). Leaves out what cannot be read.
/// Thread-safe.
std::vector<prometheus::MetricFamily> process_metrics();

}  // namespace rw::core
