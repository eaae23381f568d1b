#pragma once

#include <string>
#include <string_view>

namespace rw::core {

/// Appends `text` as a JSON string (RFC 8259) with its quotes. Invalid UTF-8 becomes U+FFFD, so
/// that the output is always valid JSON.
void append_json_string(std::string& out, std::string_view text);

/// Returns true if the text is well-formed UTF-8 (RFC 3629).
bool is_utf8(std::string_view text) noexcept;

}  // namespace rw::core
