#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rw::core {

struct host_port {
  std::string host;  ///< name or address; an IPv6 address without its brackets
  std::uint16_t port = 0;
};

/// Returns "host:port", with an IPv6 address in brackets (RFC 3986, section 3.2.2).
std::string to_string(const host_port& address);

/// Returns a host as certificates name it: without the dot at the end of an absolute name, and an
/// IPv4 address that is mapped to IPv6 (RFC 4291, section 2.5.5.2) as such.
std::string normal_host(std::string_view host);

/// Parses "host:port", "10.0.0.1:443" and "[fd00::1]:443"; the host is a `normal_host`. Returns
/// nothing for other text.
std::optional<host_port> parse_host_port(std::string_view text);

/// Parses a port from 0 to 65535. Returns nothing for other text.
std::optional<std::uint16_t> parse_port(std::string_view text);

/// Parses numbers with the units h, m, s and ms, as Go's time.ParseDuration writes them: "250ms",
/// "1h30m", "1.5s"; "0" needs no unit. Truncates to milliseconds. Returns nothing for other text,
/// negative durations included.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace rw::core
