#pragma once

#include <chrono>
#include <string>

namespace rw::k8s::devserver {

/// A time as metav1.Time writes it: RFC 3339, UTC, whole seconds.
std::string timestamp(std::chrono::system_clock::time_point when);

/// Reads one; `time_point()` if it is none.
std::chrono::system_clock::time_point parse_timestamp(const std::string& text);

}  // namespace rw::k8s::devserver
