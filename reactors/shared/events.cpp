#include "rw/reactors/shared/events.hpp"

#include "rw/core/sip_hash.hpp"

#include <algorithm>
#include <array>

namespace rw {

bool names_fit(std::initializer_list<std::string_view> names) noexcept {
  return std::ranges::all_of(names, [](auto name) { return name.size() <= max_name; });
}

bool is_path_segment(std::string_view name) noexcept {
  static constexpr auto allowed = [] {
    std::array<bool, 256> table{};
    for (unsigned char c = 0; c < 128; ++c) {
      table[c] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '-' || c == '_' || c == '.';
    }
    return table;
  }();
  return !name.empty() && name.size() <= max_name && name != "." && name != ".." &&
         std::ranges::all_of(name, [](unsigned char c) { return allowed[c]; });
}

std::size_t watch_event_hash::operator()(const watch_event& event) const {
  return core::foreign_hash(event.watched.name, event.watched.ns, event.gvk.kind, event.gvk.group,
                            event.gvk.version, event.manager);
}

}  // namespace rw
