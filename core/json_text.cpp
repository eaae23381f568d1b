#include "rw/core/json_text.hpp"

#include <array>
#include <bit>
#include <cstddef>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace rw::core {
namespace {

constexpr auto plain = [] {
  std::array<bool, 256> table{};
  for (unsigned c = 0x20; c < 0x80; ++c) table[c] = c != '"' && c != '\\';
  return table;
}();

/// Number of bytes at the beginning of `text` that stand for themselves: ASCII but controls, the
/// quotation mark and the backslash.
std::size_t plain_length(std::string_view text) {
  std::size_t length = 0;
#ifdef __SSE2__
  for (; text.size() - length >= 16; length += 16) {
    const auto bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + length));
    // Signed: bytes from 0x80 on are less than a space, too.
    const auto escaped = _mm_or_si128(_mm_cmplt_epi8(bytes, _mm_set1_epi8(' ')),
                                      _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                                   _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(escaped));
    if (mask != 0) return length + static_cast<std::size_t>(std::countr_zero(mask));
  }
#endif
  while (length < text.size() && plain[static_cast<unsigned char>(text[length])]) ++length;
  return length;
}

void append_control(std::string& out, unsigned char c) {
  static constexpr char hex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += hex[c >> 4];
      out += hex[c & 15];
  }
}

/// Returns the length of the well-formed UTF-8 sequence that `text` begins with, 0 if there is none
/// (RFC 3629: no overlong form, no surrogate, nothing past U+10FFFF).
std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto lead = byte(0);
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const auto second = byte(1);
  const bool wrong = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                     (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return wrong ? 0 : length;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto length = plain_length(text);
    out.append(text.substr(0, length));
    text.remove_prefix(length);
    if (text.empty()) break;
    const auto c = static_cast<unsigned char>(text.front());
    std::size_t used = 1;
    if (c < 0x80) {
      append_control(out, c);
    } else if (used = utf8_length(text); used > 0) {
      out.append(text.substr(0, used));
    } else {
      out += "\xEF\xBF\xBD";
      used = 1;
    }
    text.remove_prefix(used);
  }
  out += '"';
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const bool is_ascii = static_cast<unsigned char>(text.front()) < 0x80;
    const auto length = is_ascii ? 1 : utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace rw::core
