#pragma once

#include "core/http/message.hpp"
#include "k8s/objects/failure.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace rw::k8s {

/// The failure that an answer other than 2xx tells: the API server's Status object (Kubernetes API
/// reference, "Status"), or what a proxy in front of it says in words. `what` begins the message:
/// "cannot get configmaps default/a".
failure failure_of(const http::response& answer, const std::string& what,
                   std::chrono::system_clock::time_point now);

/// Retry-After (RFC 9110, section 10.2.3), seconds or a date, at most a day; 0 where there is none.
std::chrono::seconds retry_after(std::string_view field, std::chrono::system_clock::time_point now);

/// Parses JSON with a bound on its depth; of a name that stands twice the last one counts. Without
/// a value `why` is a sentence's end.
std::optional<boost::json::value> parse_json(std::string_view text, std::string& why);

/// `text` for a message: its first line, at most 300 bytes, without control characters.
std::string quoted_line(std::string_view text);

}  // namespace rw::k8s
