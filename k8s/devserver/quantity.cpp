#include "rw/k8s/devserver/quantity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace rw::k8s::devserver {
namespace {

__extension__ using wide = __int128;  // clang and gcc

enum class format : std::uint8_t { decimal, binary, exponent };

/// A number of nanounits, and the family of its suffix.
struct amount {
  wide nanos = 0;
  format as = format::decimal;
};

constexpr wide nano = 1'000'000'000;
/// Kubernetes caps quantities at 2^63-1 units.
constexpr wide most = (wide{1} << 63) * nano - nano;

constexpr std::array<std::string_view, 10> decimal_suffixes{"n", "u", "m", "",  "k",
                                                            "M", "G", "T", "P", "E"};
constexpr std::array<std::string_view, 6> binary_suffixes{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

std::string digits_of(wide value) {
  std::string text;
  for (; value > 0; value /= 10) text += static_cast<char>('0' + static_cast<int>(value % 10));
  std::ranges::reverse(text);
  return text.empty() ? "0" : text;
}

/// The suffix as powers of 2 and 10.
struct scale {
  unsigned twos = 0;
  int tens = 0;
  format as = format::decimal;
};

std::optional<scale> parse_suffix(std::string_view text) {
  const auto* const binary = std::ranges::find(binary_suffixes, text);
  if (binary != binary_suffixes.end()) {
    return scale{static_cast<unsigned>(10 * (binary - binary_suffixes.begin() + 1)), 0,
                 format::binary};
  }
  const auto* const decimal = std::ranges::find(decimal_suffixes, text);
  if (decimal != decimal_suffixes.end()) {
    return scale{0, static_cast<int>(3 * (decimal - decimal_suffixes.begin())) - 9};
  }
  if (!text.starts_with('e') && !text.starts_with('E')) return std::nullopt;
  text.remove_prefix(text.size() > 1 && text[1] == '+' ? 2 : 1);
  int tens = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), tens);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return scale{0, std::clamp(tens, -30, 30), format::exponent};
}

/// Scales, rounding up what is finer than a nanounit.
wide scaled(wide value, int tens) {
  for (; tens > 0 && value <= most; --tens) value *= 10;
  bool rest = false;
  for (; tens < 0; ++tens) {
    rest |= value % 10 != 0;
    value /= 10;
  }
  return std::min(value + (rest ? 1 : 0), most);
}

std::optional<amount> parse(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  wide value = 0;
  int tens = 9;
  bool point = false;
  std::size_t digits = 0;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !point) {
      point = true;
      continue;
    }
    if (text[at] < '0' || text[at] > '9') break;
    ++digits;
    if (value > most) continue;
    value = value * 10 + (text[at] - '0');
    if (point) --tens;
  }
  const auto suffix = parse_suffix(text.substr(at));
  if (digits == 0 || !suffix) return std::nullopt;
  for (auto twos = suffix->twos; twos > 0 && value <= most; --twos) value *= 2;
  value = scaled(value, tens + suffix->tens);
  return amount{negative ? -value : value, suffix->as};
}

std::string printed(amount of) {
  const std::string sign = of.nanos < 0 ? "-" : "";
  const wide value = of.nanos < 0 ? -of.nanos : of.nanos;
  if (value == 0) return "0";
  if (of.as == format::binary && value % nano == 0 && value >= 1024 * nano) {
    wide units = value / nano;
    std::size_t power = 0;
    for (; units % 1024 == 0 && power < binary_suffixes.size(); ++power) units /= 1024;
    return sign + digits_of(units) + (power > 0 ? std::string(binary_suffixes[power - 1]) : "");
  }
  wide units = value;
  std::size_t power = 0;
  for (; units % 1000 == 0 && power + 1 < decimal_suffixes.size(); ++power) units /= 1000;
  if (of.as != format::exponent)
    return sign + digits_of(units) + std::string(decimal_suffixes[power]);
  const int tens = 3 * static_cast<int>(power) - 9;
  return sign + digits_of(units) + (tens != 0 ? "e" + std::to_string(tens) : "");
}

}  // namespace

std::optional<std::string> canonical_quantity(std::string_view text, bool whole_millis) {
  auto value = parse(text);
  if (!value) return std::nullopt;
  constexpr wide milli = nano / 1000;
  if (whole_millis && value->nanos > 0) {
    value->nanos = std::min((value->nanos + milli - 1) / milli * milli, most);
  }
  auto made = printed(*value);
  // A sign stays where nothing else is to be changed.
  if (text.starts_with('+') && made == text.substr(1)) return std::string(text);
  return made;
}

int compare_quantities(std::string_view a, std::string_view b) {
  const auto left = parse(a).value_or(amount{}).nanos;
  const auto right = parse(b).value_or(amount{}).nanos;
  return left < right ? -1 : left > right ? 1 : 0;
}

}  // namespace rw::k8s::devserver
