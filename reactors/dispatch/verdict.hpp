#pragma once

#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rw::dispatch {

/// What becomes of an event after an answer from upstream.
enum class verdict : std::uint8_t {
  delivered,  ///< 2xx: it is in the receiver's channel
  retry,      ///< the receiver or the way to it may recover: 401, 403, 404, 408, 429, 3xx, 5xx
  rejected,   ///< the receiver will never take it: 400, 405, 413 and any other 4xx
};

verdict judge(unsigned status) noexcept;

/// `Retry-After` in its form of seconds (RFC 9110, section 10.2.3), at most five minutes. The form
/// of a date, which needs synchronous clocks, is not heeded.
std::chrono::seconds retry_after(std::string_view header) noexcept;

}  // namespace rw::dispatch
