#pragma once

#include <string>
#include <string_view>

namespace rw::core {

/// Appends `text` as a JSON string (RFC 8259) with its quotes. Bytes that are not UTF-8 become
/// U+FFFD, so that what is written is always valid JSON.
void append_json_string(std::string& out, std::string_view text);

}  // namespace rw::core
