#include "rw/core/json/canonical_number.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rw::core {
namespace {

bool is_nonzero_digit(char c) {
  return c >= '1' && c <= '9';
}

/// Parses the exponent after the `e`. A value beyond 32 bits stays far outside of them.
std::int64_t parse_exponent(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    value = std::min<std::int64_t>(value * 10 + (c - '0'), std::int64_t{1} << 40);
  }
  return negative ? -value : value;
}

/// Returns true for digits that are their canonical spelling but for the power of ten.
bool is_short(std::string_view number) noexcept {
  return is_nonzero_digit(number.front()) && is_nonzero_digit(number.back()) &&
         std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

void append_canonical_number(std::string& out, std::string_view number) {
  if (number == "0") {
    out += '0';
    return;
  }
  if (is_short(number)) {
    out.append(number).append("e0");
    return;
  }
  const bool negative = number.starts_with('-');
  if (negative) number.remove_prefix(1);
  const auto e = number.find_first_of("eE");
  const auto mantissa = number.substr(0, e);
  std::int64_t exponent = e == std::string_view::npos ? 0 : parse_exponent(number.substr(e + 1));

  const auto first = std::find_if(mantissa.begin(), mantissa.end(), is_nonzero_digit);
  if (first == mantissa.end()) {
    out += '0';
    return;
  }
  const auto last = mantissa.find_last_of("123456789");
  const auto point = std::min(mantissa.find('.'), mantissa.size());
  exponent += last < point ? static_cast<std::int64_t>(point - 1 - last)
                           : -static_cast<std::int64_t>(last - point);
  constexpr std::size_t long_number = 64;
  if (mantissa.size() > long_number) out.reserve(out.size() + mantissa.size() + 24);
  if (negative) out += '-';
  for (auto i = static_cast<std::size_t>(first - mantissa.begin()); i <= last; ++i) {
    if (mantissa[i] != '.') out += mantissa[i];
  }
  out += 'e';
  out += std::to_string(exponent);
}

}  // namespace rw::core
