#include "rw/reactors/shared/runtime_state.hpp"

#include <cstddef>

namespace rw {

std::string_view to_string(runtime_state of) noexcept {
  constexpr std::string_view names[] = {"installed", "not_ready", "failed", "unreachable"};
  return names[static_cast<std::size_t>(of)];
}

std::string_view to_string(liveness of) noexcept {
  constexpr std::string_view names[] = {"unknown", "live", "degraded", "silent"};
  return names[static_cast<std::size_t>(of)];
}

}  // namespace rw
