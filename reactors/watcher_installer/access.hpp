#pragma once

#include "rw/k8s/objects/object.hpp"
#include "rw/reactors/watcher_installer/render.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::watcher_installer {

/// Where the control plane takes events: the one host and the port of the one server of the
/// Gateway. `port` in place of the Gateway's, for clusters on one machine.
in_words<kcp_address> address_of(const k8s::object& gateway, std::string_view name,
                                 std::optional<std::uint16_t> port);

}  // namespace rw::watcher_installer
