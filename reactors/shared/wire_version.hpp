#pragma once

namespace rw {

/// Version of what this manager and the watcher on a runtime tell each other: the managers' file
/// (managers_file.hpp) and heartbeats (heartbeat.hpp). Raised by a change that one side of the
/// version before can't read.
inline constexpr int wire_version = 1;
/// Of a watcher that this manager understands, and that understands it.
inline constexpr int oldest_wire_version = 1;

constexpr bool is_supported_wire_version(int version) noexcept {
  return version >= oldest_wire_version && version <= wire_version;
}

}  // namespace rw
