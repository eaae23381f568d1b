#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace rw::k8s {

/// Parses a time of RFC 3339 (section 5.6), such as "2026-11-21T09:00:00Z",
/// "2026-11-21T10:00:00.25+01:00": metav1.Time and MicroTime. Truncates to microseconds. Returns
/// nothing for other text, and for years before 1970 or after 2200.
std::optional<std::chrono::system_clock::time_point> parse_rfc3339(std::string_view text);

}  // namespace rw::k8s
