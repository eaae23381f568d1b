#include "rw/core/json/token_walk.hpp"

#include <array>
#include <bit>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace rw::core {
namespace {

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

constexpr auto scalar_ends = [] {
  std::array<bool, 256> table{};
  for (const char c : {' ', '\n', '\r', '\t', ',', ']', '}'})
    table[static_cast<unsigned char>(c)] = true;
  return table;
}();

bool ends_scalar(char c) noexcept {
  return scalar_ends[static_cast<unsigned char>(c)];
}

bool is_number(const char* text) noexcept {
  const char* p = text;
  if (*p == '-') ++p;
  if (!is_digit(*p)) return false;
  if (*p == '0') {
    ++p;
  } else {
    while (is_digit(*p)) ++p;
  }
  if (*p == '.') {
    ++p;
    if (!is_digit(*p)) return false;
    while (is_digit(*p)) ++p;
  }
  if (*p == 'e' || *p == 'E') {
    ++p;
    if (*p == '+' || *p == '-') ++p;
    const char* exponent = p;
    while (is_digit(*p)) ++p;
    if (p == exponent || p - exponent > 4) return false;
  }
  return ends_scalar(*p) && p - text <= 64;
}

/// Stops at the first other character, and so at the zero after the text.
template <std::size_t N>
bool is_word(const char* text, const char (&word)[N]) noexcept {
  for (std::size_t i = 0; i + 1 < N; ++i) {
    if (text[i] != word[i]) return false;
  }
  return ends_scalar(text[N - 1]);
}

/// Returns the value of four hexadecimal digits, negative if they are not. Stops at the first other
/// character, and so at the zero after the text.
int hex4(const char* p) noexcept {
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = p[i];
    const char lower = static_cast<char>(c | 0x20);
    if (is_digit(c)) {
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
  if (p[1] == '"') return 2;
  switch (p[1]) {
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

/// Returns true if the backslash at `p` belongs to the escape that ended at `checked`, or begins a
/// valid escape, and sets `checked` to the end of that.
bool check_escape(const char* p, const char*& checked) noexcept {
  if (p < checked) return true;
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

bool token_walk::scalar(const char* text) const noexcept {
  switch (*text) {
    case 't':
      return is_word(text, "true");
    case 'f':
      return is_word(text, "false");
    case 'n':
      return is_word(text, "null");
    default:
      return is_number(text);
  }
}

bool token_walk::skip() noexcept {
  const std::size_t most = max_depth_ - open_;
  const char* const text = tokens_.text;
  const std::uint32_t* at = position_;
  std::size_t depth = 0;

value:
  switch (const char* const token = text + *at; *token) {
    case '"':
      ++at;
      break;
    case '{':
      if (depth == most) return false;
      is_object_[depth++] = true;
      if (text[*++at] != '}') goto key;
      ++at;
      --depth;
      break;
    case '[':
      if (depth == most) return false;
      is_object_[depth++] = false;
      if (text[*++at] != ']') goto value;
      ++at;
      --depth;
      break;
    default:
      if (!scalar(token)) return false;
      ++at;
  }
  for (; depth > 0; --depth) {
    const char c = text[*at++];
    if (c == ',') {
      if (is_object_[depth - 1]) goto key;
      goto value;
    }
    if (c != (is_object_[depth - 1] ? '}' : ']')) return false;
  }
  position_ = at;
  return true;

key:
  if (text[*at] != '"' || text[at[1]] != ':') return false;
  at += 2;
  goto value;
}

}  // namespace rw::core
