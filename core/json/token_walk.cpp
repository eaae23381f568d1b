#include "rw/core/json/token_walk.hpp"

#include "rw/core/json/escapes.hpp"

#include <array>
#include <limits>

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

/// `end` is the end of the text.
bool ends_scalar(const char* p, const char* end) noexcept {
  return scalar_ends[static_cast<unsigned char>(*p)] || p == end;
}

bool is_number(const char* text, const char* end) noexcept {
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
    if (!is_digit(*p)) return false;
    std::int64_t exponent = 0;
    for (; is_digit(*p); ++p) {
      exponent = exponent * 10 + (*p - '0');
      if (exponent > std::numeric_limits<std::int32_t>::max()) return false;
    }
  }
  return ends_scalar(p, end);
}

/// Stops at the first other character, and so at the zero after the text.
template <std::size_t N>
bool is_word(const char* text, const char* end, const char (&word)[N]) noexcept {
  for (std::size_t i = 0; i + 1 < N; ++i) {
    if (text[i] != word[i]) return false;
  }
  return ends_scalar(text + N - 1, end);
}

}  // namespace

std::string_view reason(json_flaw flaw) noexcept {
  switch (flaw) {
    case json_flaw::none:
      return "is JSON";
    case json_flaw::malformed:
      return "is not JSON";
    case json_flaw::too_deep:
      return "nests too deep";
  }
  return "is not JSON";
}

json_flaw flaw_of(const token_list& tokens, std::size_t max_depth) noexcept {
  token_walk walk(tokens, max_depth);
  if (!walk.skip()) return walk.flaw();
  return walk.at_end() ? json_flaw::none : json_flaw::malformed;
}

bool token_walk::scalar(const char* text) const noexcept {
  const char* const end = tokens_.text + *tokens_.end;
  switch (*text) {
    case 't':
      return is_word(text, end, "true");
    case 'f':
      return is_word(text, end, "false");
    case 'n':
      return is_word(text, end, "null");
    default:
      return is_number(text, end);
  }
}

std::string_view token_walk::kept(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return text;
  append_unescaped(kept_.emplace_front(), text);
  return kept_.front();
}

std::string_view token_walk::resolved(std::string_view name) {
  if (name.find('\\') == std::string_view::npos) return name;
  name_.clear();
  append_unescaped(name_, name);
  return name_;
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
      if (depth == most) return fail(json_flaw::too_deep);
      is_object_[depth++] = true;
      if (text[*++at] != '}') goto key;
      ++at;
      --depth;
      break;
    case '[':
      if (depth == most) return fail(json_flaw::too_deep);
      is_object_[depth++] = false;
      if (text[*++at] != ']') goto value;
      ++at;
      --depth;
      break;
    default:
      if (!scalar(token)) return fail(json_flaw::malformed);
      ++at;
  }
  for (; depth > 0; --depth) {
    const char c = text[*at++];
    if (c == ',') {
      if (is_object_[depth - 1]) goto key;
      goto value;
    }
    if (c != (is_object_[depth - 1] ? '}' : ']')) return fail(json_flaw::malformed);
  }
  position_ = at;
  return true;

key:
  if (text[*at] != '"' || text[at[1]] != ':') return fail(json_flaw::malformed);
  at += 2;
  goto value;
}

}  // namespace rw::core
