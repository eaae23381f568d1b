#pragma once

#include "rw/reactors/shared/event_json.hpp"

#include <optional>
#include <string_view>

namespace rw::listener {

/// What a request is for, by its path.
struct route {
  bool batch = false;
  bool heartbeats = false;  ///< only: the path of their own component
};

/// Parses `/v2/<component>/event` and `/events`, with a query or without; and
/// `/v2/<of_heartbeats>/event`, unless `of_heartbeats` is empty. Returns nothing for another path.
std::optional<route> find_route(std::string_view target, std::string_view component,
                                std::string_view of_heartbeats) noexcept;

}  // namespace rw::listener
