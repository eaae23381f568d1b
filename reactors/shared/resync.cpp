#include "rw/reactors/shared/resync.hpp"

#include <algorithm>
#include <array>

namespace rw {
namespace {

constexpr std::array<std::string_view, 4> resync_reason_names{"started", "watcher-changed",
                                                              "watch-back", "dropped"};
constexpr std::size_t max_resync_reason = 32;  // bytes on the wire

bool is_resync_token(std::string_view text) noexcept {
  return !text.empty() && text.size() <= max_resync_reason &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

}  // namespace

std::string_view to_string(resync_reason reason) noexcept {
  return resync_reason_names[static_cast<std::size_t>(reason)];
}

std::optional<resync_reason> parse_resync_reason(std::string_view text) noexcept {
  if (!is_resync_token(text)) return {};
  const auto* const found = std::ranges::find(resync_reason_names, text);
  if (found == resync_reason_names.end()) return resync_reason::dropped;
  return static_cast<resync_reason>(found - resync_reason_names.begin());
}

}  // namespace rw
