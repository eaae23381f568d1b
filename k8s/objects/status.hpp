#pragma once

#include "rw/core/http/message.hpp"
#include "rw/k8s/objects/failure.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace rw::k8s {

/// Returns the failure of a response other than 2xx: the API server's Status object (Kubernetes API
/// reference, "Status"), or the text of a proxy before it. `what` begins the message: "cannot get
/// configmaps default/a".
failure failure_of(const http::response& response, const std::string& attempt,
                   std::chrono::system_clock::time_point now);

/// Returns Retry-After (RFC 9110, section 10.2.3), seconds or a date, at most five
/// minutes; 0 if absent.
std::chrono::seconds retry_after(std::string_view field, std::chrono::system_clock::time_point now);

/// Parses the time of a Date field, in its preferred format (RFC 9110, section 5.6.7).
std::optional<std::chrono::system_clock::time_point> parse_http_date(std::string_view field);

/// Returns `text` for a message: its first line, at most 300 bytes, without control characters.
std::string quoted_line(std::string_view text);

}  // namespace rw::k8s
