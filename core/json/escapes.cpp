#include "rw/core/json/escapes.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace rw::core {
namespace {

/// Returns the value of four hexadecimal digits, negative if they are not. Stops at the first other
/// character, and so at the zero after the text.
int hex4(const char* p) noexcept {
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = p[i];
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9') {
      value = value * 16 + (c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + (lower - 'a' + 10);
    } else {
      return -1;
    }
  }
  return value;
}

/// Returns the length of the escape that begins at `p`, 0 if it is none.
std::size_t escape_length(const char* p) noexcept {
  switch (p[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
      return 2;
    case 'u':
      break;
    default:
      return 0;
  }
  const int unit = hex4(p + 2);
  if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF)) return 0;
  if (unit < 0xD800 || unit > 0xDBFF) return 6;
  if (p[6] != '\\' || p[7] != 'u') return 0;
  const int low = hex4(p + 8);
  return low >= 0xDC00 && low <= 0xDFFF ? 12 : 0;
}

/// Returns what a backslash and this character stand for.
char unescaped(char c) noexcept {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return c;
  }
}

int code_point(int high, int low) noexcept {
  return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

void append_utf8(std::string& out, int point) {
  const auto add = [&](int byte) { out += static_cast<char>(byte); };
  const auto rest = [&](int shift) { add(0x80 | ((point >> shift) & 0x3F)); };
  if (point < 0x80) return add(point);
  if (point < 0x800) {
    add(0xC0 | (point >> 6));
    return rest(0);
  }
  if (point < 0x10000) {
    add(0xE0 | (point >> 12));
  } else {
    add(0xF0 | (point >> 18));
    rest(12);
  }
  rest(6);
  rest(0);
}

/// Returns true if the backslash at `p` belongs to the escape that ended at `checked`, or begins a
/// valid escape, and sets `checked` to the end of that.
bool check_escape(const char* p, const char*& checked) noexcept {
  if (p < checked) return true;
  if (p[1] == '"') {  // nearly all, without a call
    checked = p + 2;
    return true;
  }
  const auto length = escape_length(p);
  checked = p + length;
  return length != 0;
}

#ifdef __SSE2__
/// Returns one bit for each of 64 bytes: set for a backslash.
std::uint64_t backslashes(const char* p) noexcept {
  const __m128i wanted = _mm_set1_epi8('\\');
  __m128i found[4];
  for (int i = 0; i < 4; ++i) {
    found[i] = _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + i), wanted);
  }
  const __m128i any =
      _mm_or_si128(_mm_or_si128(found[0], found[1]), _mm_or_si128(found[2], found[3]));
  if (_mm_movemask_epi8(any) == 0) return 0;
  std::uint64_t mask = 0;
  for (int i = 0; i < 4; ++i) {
    mask |= std::uint64_t{static_cast<std::uint16_t>(_mm_movemask_epi8(found[i]))} << (16 * i);
  }
  return mask;
}
#endif

}  // namespace

bool escapes_are_valid(std::string_view text) noexcept {
  const char* p = text.data();
  const char* const end = p + text.size();
  // End of the last escape: it covers the backslashes before, such as the second of two.
  const char* checked = p;
#ifdef __SSE2__
  // Escapes come in clusters (JSON within JSON), where a memchr for each would cost more.
  for (; end - p >= 64; p += 64) {
    for (auto mask = backslashes(p); mask != 0; mask &= mask - 1) {
      if (!check_escape(p + std::countr_zero(mask), checked)) return false;
    }
  }
#endif
  for (; p < end; ++p) {
    p = static_cast<const char*>(std::memchr(p, '\\', static_cast<std::size_t>(end - p)));
    if (p == nullptr) return true;
    if (!check_escape(p, checked)) return false;
  }
  return true;
}

void append_unescaped(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto escape = std::min(text.find('\\', at), text.size());
    out.append(text, at, escape - at);
    at = escape;
    if (at == text.size()) return;
    const char* const p = text.data() + at;
    const auto length = escape_length(p);
    if (p[1] == 'u') {
      append_utf8(out, length == 12 ? code_point(hex4(p + 2), hex4(p + 8)) : hex4(p + 2));
    } else {
      out += unescaped(p[1]);
    }
    at += length;
  }
}

}  // namespace rw::core
