#pragma once

#include <chrono>
#include <string>

namespace rw::k8s::devserver {

/// Formats a time as metav1.Time: RFC 3339, UTC, whole seconds.
std::string timestamp(std::chrono::system_clock::time_point when);

/// Parses such a time; returns `time_point()` for other text.
std::chrono::system_clock::time_point parse_timestamp(const std::string& text);

}  // namespace rw::k8s::devserver
