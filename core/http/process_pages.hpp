#pragma once

#include "rw/core/http/message.hpp"
#include "rw/core/metrics.hpp"

#include <functional>
#include <string>

namespace rw::http {

/// Answers what monitoring and kubelet ask of every process, with GET or HEAD:
///
///     /metrics            in Prometheus' text format, or OpenMetrics where it is asked for
///     /healthz, /livez    200 while the process responds
///     /readyz             200, or 503 with what `not_ready` returns, if that is not empty
///
/// Each metric has the labels `common` too. Another method is rejected (405). Returns false, with
/// nothing answered, for another path.
bool show_process(const core::metrics& metrics, const std::function<std::string()>& not_ready,
                  const request& from, response& into, const core::labels& common = {});

}  // namespace rw::http
