#pragma once

#include "rw/core/json/token_index.hpp"

#include <boost/json/storage_ptr.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rw::admission {

/// Maximum depth of `json_equal`. Deeper texts count as different.
inline constexpr std::size_t max_compare_depth = 512;

/// Returns true if two JSON texts (RFC 8259) have the same value: the order of names in objects,
/// the spelling of strings (escapes) and of numbers (1, 1.0, 10e-1; -0 and 0) do not matter; the
/// order of arrays does. Of duplicate names the last counts. Numbers are compared as decimals,
/// without rounding: 9007199254740993 is not 9007199254740992, although a double cannot tell them
/// apart.
///
/// Equal bytes are equal without parsing. Otherwise a text that is malformed, or deeper than
/// `max_compare_depth`, differs from everything: a superfluous event is better than a lost one.
/// Safe with hostile input; takes time about linear in the length of the texts.
bool json_equal(std::string_view a, std::string_view b);

/// Appends the canonical spelling of a JSON number's value: `0`, or an optional `-`, the digits
/// without zeros at either end, `e`, and the power of ten that multiplies them. `number` is a JSON
/// number (RFC 8259, section 6) whose exponent fits in 32 bits.
void append_canonical_number(std::string& out, std::string_view number);

/// Parses a JSON text (RFC 8259, whole and strict) into a DOM without rounding: a number becomes a
/// string of the byte 0xFF, which no string of a JSON text contains, and the number's canonical
/// spelling. So `==` on such DOMs compares values as json_equal does. Of duplicate names the last
/// wins.
///
/// `error` is one of boost::json::error; `error::too_deep` beyond `max_depth` levels.
boost::json::value parse_exact(std::string_view text, std::size_t max_depth,
                               boost::json::storage_ptr storage, boost::system::error_code& error);

/// Returns the text of a JSON string in such a DOM, null for other values.
const boost::json::string* exact_string(const boost::json::value& value) noexcept;

/// Relation of two values, by the rules of json_equal.
enum class relation : std::uint8_t { equal, different, unclear };

/// Compares two values, given as tokens of validated JSON, up to the first difference. Returns
/// `different` only if neither spelling, nor the order of names, nor a duplicate name can explain
/// it.
relation compare_tokens(const core::token_list& tokens, const std::uint32_t* a,
                        const std::uint32_t* a_end, const std::uint32_t* b,
                        const std::uint32_t* b_end);

}  // namespace rw::admission
