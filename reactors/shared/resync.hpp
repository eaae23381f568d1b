#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rw {

/// Why an operator is to look at everything of a runtime once more. In order of gravity: of several
/// reasons the last one is told.
enum class resync_reason : std::uint8_t {
  started,          ///< the watcher's process started
  watcher_changed,  ///< a Watcher of the operator came, or was edited
  watch_back,       ///< a watch had to list again
  dropped,          ///< a change or a review found no room, or can no longer be decided
};

/// The reason on the wire, such as `watch-back`.
std::string_view to_string(resync_reason reason) noexcept;

/// Reads a reason. One that is not known, as of a later version, is `dropped`; returns nothing for
/// a text that is not 1 to 32 lower-case letters and '-'.
std::optional<resync_reason> parse_resync_reason(std::string_view text) noexcept;

/// Whether changes were lost.
constexpr bool is_loss(resync_reason reason) noexcept {
  return reason == resync_reason::dropped;
}

/// A resync is an empty batch of events with this request header, whose value is the reason. A
/// receiver that takes resyncs offers so with it in responses to events (`resync_offer`), and
/// responds to a resync with 2xx and `resync_taken` in it.
inline constexpr std::string_view resync_header = "watch-resync";
inline constexpr std::string_view resync_offer = "1";
inline constexpr std::string_view resync_taken = "taken";

}  // namespace rw
