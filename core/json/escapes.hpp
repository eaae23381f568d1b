#pragma once

#include <string>
#include <string_view>

namespace rw::core {

/// Returns true if each backslash in a JSON text begins an escape (RFC 8259, section 7), and each
/// escaped surrogate has its other half. A zero, or white space, follows the text.
bool escapes_are_valid(std::string_view text) noexcept;

/// Appends the content of a JSON string, given without its quotes, whose escapes are valid.
void append_unescaped(std::string& out, std::string_view text);

}  // namespace rw::core
