#pragma once

#include "rw/core/lifetime.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rw::core {

/// Returns the letter in lower case if it is one of ASCII.
constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

inline std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return lower(c); });
  return out;
}

/// True if the two are equal but for the case of ASCII letters.
inline bool iequals(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

/// Returns the bytes in hexadecimal, in lower case.
inline std::string hex(std::span<const unsigned char> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const auto byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

/// Returns the text without white space at either end.
inline std::string_view trimmed(std::string_view text RW_LIFETIMEBOUND) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Returns at most `limit` bytes from the front, and only whole characters (UTF-8, RFC 3629).
inline std::string_view first_bytes(std::string_view text RW_LIFETIMEBOUND, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0U) == 0x80U) --limit;
  return text.substr(0, limit);
}

/// Returns the text if it has at most `limit` bytes; else its beginning and its end with " ... "
/// between, `limit` bytes at most, and only whole characters (UTF-8, RFC 3629). For errors of
/// others, whose end often names the cause.
inline std::string middle_cut(std::string_view text, std::size_t limit) {
  constexpr std::string_view mark = " ... ";
  if (text.size() <= limit) return std::string(text);
  if (limit <= mark.size()) return std::string(first_bytes(text, limit));
  const auto kept = limit - mark.size();
  auto tail = text.substr(text.size() - (kept - kept / 2));
  while (!tail.empty() && (static_cast<unsigned char>(tail.front()) & 0xC0U) == 0x80U) {
    tail.remove_prefix(1);
  }
  return std::string(first_bytes(text, kept / 2)).append(mark).append(tail);
}

/// Returns the whole text as a decimal number; nothing if it is not a number, or does not fit.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool complete = error == std::errc() && end == text.data() + text.size();
  return complete ? std::optional(out) : std::nullopt;
}

/// Returns the text with a space for each tab and end of a line, and a `?` for each other character
/// that is not printable ASCII: nothing in it controls a terminal (U+0080 to U+009F would in UTF-8,
/// too), and each byte takes one column.
inline std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = (byte & 0xC0U) == 0x80U;  // a character of several bytes (RFC 3629)
    if (byte >= ' ' && byte <= '~') {
      out += c;
    } else if (c == '\t' || c == '\r' || c == '\n') {
      out += ' ';
    } else if (!continues) {
      out += '?';
    }
  }
  return out;
}

/// Returns true if `text` is valid in a header field: no control characters, which could end it and
/// begin another (RFC 9110, section 5.5).
inline bool is_field_value(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7F; });
}

}  // namespace rw::core
