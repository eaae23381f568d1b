#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rw::admission {

/// Levels that `json_equal` goes down. Texts that are deeper are different.
inline constexpr std::size_t max_compare_depth = 512;

/// True if two JSON texts (RFC 8259) mean the same value: the order of names in objects, the
/// spelling of strings (escapes) and of numbers (1, 1.0, 10e-1; -0 and 0) do not matter; the order
/// of arrays does. Of duplicate names the last counts. Numbers are compared as the decimals they
/// spell, without rounding: 9007199254740993 is not 9007199254740992, whatever a double makes of
/// them.
///
/// Equal bytes are equal without further ado. Otherwise a text that is malformed, or that is deeper
/// than `max_compare_depth`, differs from everything: an event too many is better than one lost.
/// Safe with hostile input; takes time about linear in the length of the texts.
bool json_equal(std::string_view a, std::string_view b);

/// Appends the one spelling that all JSON numbers of the same value share: `0`, or an optional `-`,
/// the digits without zeros at either end, `e`, and the power of ten that they are multiplied with.
/// `number` is a JSON number (RFC 8259, section 6) whose exponent fits in 32 bits.
void append_canonical_number(std::string& out, std::string_view number);

}  // namespace rw::admission
