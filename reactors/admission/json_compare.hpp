#pragma once

#include "core/json/token_index.hpp"

#include <boost/json/storage_ptr.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
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

/// Parses a JSON text (RFC 8259, whole and strict) into a DOM that does not round: a number becomes
/// a string of the byte 0xFF, which no string out of a JSON text contains, and the number's
/// canonical spelling. So `==` on such DOMs compares values as json_equal promises. Of duplicate
/// names the last wins.
///
/// `error` is one of boost::json::error; `error::too_deep` beyond `max_depth` levels.
boost::json::value parse_exact(std::string_view text, std::size_t max_depth,
                               boost::json::storage_ptr storage, boost::system::error_code& error);

/// The text of a JSON string in such a DOM, null for anything else.
const boost::json::string* exact_string(const boost::json::value& value) noexcept;

/// How two values relate, as json_equal would have it.
enum class relation : std::uint8_t { equal, different, unclear };

/// Compares two values, given as tokens of validated JSON, up to the first difference. `different`
/// only if neither spelling, nor the order of names, nor a duplicate name can explain it.
relation compare_tokens(const core::token_list& tokens, const std::uint32_t* a,
                        const std::uint32_t* a_end, const std::uint32_t* b,
                        const std::uint32_t* b_end);

}  // namespace rw::admission
