#pragma once

#include <cstdint>
#include <string_view>

namespace rw {

/// State of a reactor's component on a runtime.
enum class runtime_state : std::uint8_t { installed, not_ready, failed, unreachable };
std::string_view to_string(runtime_state of) noexcept;

/// What KCP knows of the way of events from a runtime.
enum class liveness : std::uint8_t {
  unknown,   ///< waits for the first heartbeat
  live,      ///< heartbeats arrive and report no error
  degraded,  ///< heartbeats arrive and report an error
  silent,    ///< no heartbeat arrives
};
std::string_view to_string(liveness of) noexcept;

}  // namespace rw
