#pragma once

#include <string>
#include <string_view>

namespace rw::core {

/// Appends the canonical spelling of a JSON number's value: `0`, or an optional `-`, the digits
/// without zeros at either end, `e`, and the power of ten that multiplies them. `number` is a JSON
/// number (RFC 8259, section 6) whose exponent fits in 32 bits.
void append_canonical_number(std::string& out, std::string_view number);

}  // namespace rw::core
