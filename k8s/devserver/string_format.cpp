#include "rw/k8s/devserver/schema_node.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <re2/re2.h>
#include <string>
#include <utility>

// The formats of strings that kube-apiserver checks (apiextensions: supported formats, as
// go-openapi/strfmt reads them), without rare ones such as isbn and creditcard.

namespace rw::k8s::devserver {
namespace {

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Returns true if the text has digits where the shape has 0, and is otherwise the same.
bool has_shape(std::string_view text, std::string_view shape) {
  return std::ranges::equal(
      text, shape, [](char c, char wanted) { return wanted == '0' ? is_digit(c) : c == wanted; });
}

int number(std::string_view digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

bool is_date(std::string_view text) {
  if (!has_shape(text, "0000-00-00")) return false;
  const auto year = number(text.substr(0, 4));
  const auto month = number(text.substr(5, 2));
  const auto day = number(text.substr(8, 2));
  if (month < 1 || month > 12 || day < 1) return false;
  constexpr std::array<int, 12> days{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= days[static_cast<std::size_t>(month - 1)] + (month == 2 && leap ? 1 : 0);
}

/// RFC 3339, section 5.6.
bool is_date_time(std::string_view text) {
  if (text.size() < 19 || !is_date(text.substr(0, 10)) || (text[10] != 'T' && text[10] != 't')) {
    return false;
  }
  const auto time = text.substr(11, 8);
  if (!has_shape(time, "00:00:00") || number(time.substr(0, 2)) > 23 ||
      number(time.substr(3, 2)) > 59 || number(time.substr(6, 2)) > 59) {
    return false;
  }
  auto rest = text.substr(19);
  if (rest.starts_with('.')) {
    const auto end = std::ranges::find_if_not(rest.substr(1), is_digit) - rest.begin();
    if (end == 1) return false;
    rest.remove_prefix(static_cast<std::size_t>(end));
  }
  if (rest == "Z" || rest == "z") return true;
  return has_shape(rest, "+00:00") || has_shape(rest, "-00:00");
}

/// Accepts Go's durations ("1h5m", "-1.5s"), and a number with a unit's name ("3 days").
bool is_duration(std::string_view text) {
  static const RE2 go("[-+]?(0|((\\d+\\.?\\d*|\\.\\d+)(ns|us|µs|μs|ms|s|m|h))+)");
  static const RE2 named(
      "\\d+\\s*(ns|us|µs|ms|s|m|h|d|w|nanos?(econds?)?|micros?(econds?)?|"
      "millis?(econds?)?|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|weeks?)");
  const re2::StringPiece piece(text.data(), text.size());
  return RE2::FullMatch(piece, go) || RE2::FullMatch(piece, named);
}

/// Accepts Base64 with padding (RFC 4648, section 4).
bool is_byte(std::string_view text) {
  std::string kept;
  std::ranges::copy_if(text, std::back_inserter(kept),
                       [](char c) { return c != '\r' && c != '\n'; });
  if (kept.size() % 4 != 0) return false;
  const auto end = std::min(kept.find('='), kept.size());
  if (kept.size() - end > 2 || kept.find_first_not_of('=', end) != std::string::npos) return false;
  return std::all_of(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(end),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '+' || c == '/'; });
}

template <char version>
bool is_uuid(std::string_view text) {
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = text[i] == '-' && (i == 8 || i == 13 || i == 18 || i == 23);
    if (!dash && !is_hex(text[i])) return false;
    if (!dash) digits += text[i];
  }
  return digits.size() == 32 && (version == '0' || digits[12] == version);
}

bool is_email(std::string_view text) {
  const auto at = text.rfind('@');
  return at != std::string_view::npos && at > 0 && at + 1 < text.size() &&
         text.find_first_of(" \t\r\n<>,;") == std::string_view::npos;
}

bool is_address(int family, std::string_view text) {
  std::array<unsigned char, 16> bytes{};
  return inet_pton(family, std::string(text).c_str(), bytes.data()) == 1;
}
bool is_ipv4(std::string_view text) {
  return is_address(AF_INET, text);
}
bool is_ipv6(std::string_view text) {
  return is_address(AF_INET6, text);
}

bool is_cidr(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const auto length = text.substr(slash + 1);
  if (length.empty() || length.size() > 3 || !std::ranges::all_of(length, is_digit)) return false;
  const auto address = text.substr(0, slash);
  return (is_ipv4(address) && number(length) <= 32) || (is_ipv6(address) && number(length) <= 128);
}

bool is_mac(std::string_view text) {
  if (text.size() != 17 && text.size() != 23) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i % 3 == 2 ? text[i] != text[2] : !is_hex(text[i])) return false;
  }
  return text[2] == ':' || text[2] == '-';
}

/// RFC 1123, section 2.1, and RFC 1034, section 3.1.
bool is_hostname(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  while (!text.empty()) {
    const auto end = std::min(text.find('.'), text.size());
    const auto label = text.substr(0, end);
    if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-' ||
        !std::ranges::all_of(label,
                             [](char c) { return is_letter(c) || is_digit(c) || c == '-'; })) {
      return false;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

/// Accepts an absolute URI, or an absolute path (RFC 3986).
bool is_uri(std::string_view text) {
  if (text.starts_with('/')) return true;
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || !is_letter(text[0])) return false;
  const auto scheme = text.substr(0, colon);
  return std::ranges::all_of(scheme,
                             [](char c) {
                               return is_letter(c) || is_digit(c) || c == '+' || c == '-' ||
                                      c == '.';
                             }) &&
         text.find_first_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

format_check find_format(std::string_view name) noexcept {
  static constexpr std::pair<std::string_view, format_check> known[] = {
      {"date-time", is_date_time}, {"datetime", is_date_time},
      {"date", is_date},           {"duration", is_duration},
      {"byte", is_byte},           {"uuid", is_uuid<'0'>},
      {"uuid3", is_uuid<'3'>},     {"uuid4", is_uuid<'4'>},
      {"uuid5", is_uuid<'5'>},     {"email", is_email},
      {"ipv4", is_ipv4},           {"ipv6", is_ipv6},
      {"cidr", is_cidr},           {"mac", is_mac},
      {"hostname", is_hostname},   {"uri", is_uri}};
  const auto* const found =
      std::ranges::find(known, name, [](const auto& format) { return format.first; });
  return found != std::end(known) ? found->second : nullptr;
}

}  // namespace rw::k8s::devserver
