#include "reactors/admission/json_compare.hpp"

#include "reactors/admission/exact_dom.hpp"

#include <boost/json/monotonic_resource.hpp>

#include <algorithm>
#include <cstdint>

namespace rw::admission {
namespace {

bool is_nonzero_digit(char c) {
  return c >= '1' && c <= '9';
}

/// The exponent behind the `e`. What does not fit in 32 bits stays far outside of them.
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

}  // namespace

void append_canonical_number(std::string& out, std::string_view number) {
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
  if (negative) out += '-';
  for (auto i = static_cast<std::size_t>(first - mantissa.begin()); i <= last; ++i) {
    if (mantissa[i] != '.') out += mantissa[i];
  }
  out += 'e';
  out += std::to_string(exponent);
}

bool json_equal(std::string_view a, std::string_view b) {
  if (a == b) return true;
  unsigned char memory[8192];
  boost::json::monotonic_resource resource(memory, sizeof memory);
  boost::system::error_code error;
  const auto left = parse_exact(a, max_compare_depth, &resource, error);
  if (error) return false;
  const auto right = parse_exact(b, max_compare_depth, &resource, error);
  if (error) return false;
  return left == right;
}

}  // namespace rw::admission
