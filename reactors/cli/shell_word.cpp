#include "rw/reactors/cli/shell_word.hpp"

#include <algorithm>

namespace rw::cli {
namespace {

constexpr std::string_view harmless =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@/=,";

bool is_plain(char c) {
  return c >= ' ' && c <= '~';
}

/// "'it'\''s'".
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// "$'it\'s'" (POSIX.1-2024, XCU 2.2.4).
std::string dollar_quoted(std::string_view text) {
  std::string out = "$'";
  for (const char c : text) {
    if (is_plain(c)) {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '\\';
    for (const unsigned shift : {6U, 3U, 0U}) out += static_cast<char>('0' + (byte >> shift & 7U));
  }
  return out + "'";
}

}  // namespace

std::string shell_word(std::string_view text) {
  if (!text.empty() && text.find_first_not_of(harmless) == text.npos) return std::string(text);
  return std::ranges::all_of(text, is_plain) ? quoted(text) : dollar_quoted(text);
}

}  // namespace rw::cli
