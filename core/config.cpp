#include "rw/core/config.hpp"

#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/address_v6.hpp>

#include <algorithm>
#include <charconv>

namespace rw::core {
namespace {

template <class Number>
bool parse_number(std::string_view& text, Number& into) {
  const auto end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, into);
  if (parsed.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  return true;
}

/// Accepts digits with at most one point among them; std::from_chars alone also takes exponents,
/// signs, "inf" and "nan".
bool parse_decimal(std::string_view& text, double& into) {
  auto digits = text.substr(0, text.find_first_not_of("0123456789."));
  const auto length = digits.size();
  if (!parse_number(digits, into) || !digits.empty()) return false;
  text.remove_prefix(length);
  return true;
}

/// Checks the characters of a name or an IPv4 address or, between brackets, of an IPv6 address
/// (with the zone of RFC 4007).
bool is_host(std::string_view text, bool bracketed) {
  const auto allowed = [&](char c) {
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return alphanumeric || c == '.' || c == '-' || c == '_' ||
           (bracketed && (c == ':' || c == '%'));
  };
  const bool colon = text.find(':') != std::string_view::npos;
  return !text.empty() && colon == bracketed && std::ranges::all_of(text, allowed);
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  if (!parse_number(text, port) || !text.empty()) return std::nullopt;
  return port;
}

std::string to_string(const host_port& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::string normal_host(std::string_view host) {
  if (host.size() > 1 && host.ends_with('.')) host.remove_suffix(1);
  if (host.find(':') == std::string_view::npos) return std::string(host);
  namespace ip = boost::asio::ip;
  boost::system::error_code error;
  const auto address = ip::make_address_v6(std::string(host), error);
  if (error || !address.is_v4_mapped()) return std::string(host);
  return ip::make_address_v4(ip::v4_mapped, address).to_string();
}

std::optional<host_port> parse_host_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  auto host = text.substr(0, colon);
  const auto port = parse_port(text.substr(colon + 1));
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!port || !is_host(host, bracketed)) return std::nullopt;
  return host_port{normal_host(host), *port};
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  if (text == "0") return std::chrono::milliseconds(0);
  if (text.empty()) return std::nullopt;
  double total = 0;
  while (!text.empty()) {
    double number = 0;
    if (!parse_decimal(text, number)) return std::nullopt;
    const double unit = take_prefix(text, "ms")  ? 1
                        : take_prefix(text, "h") ? 3'600'000
                        : take_prefix(text, "m") ? 60'000
                        : take_prefix(text, "s") ? 1'000
                                                 : 0;
    total += number * unit;
    if (unit == 0 || !(total < 1e12)) return std::nullopt;
  }
  // Rounds: 1.001 s is slightly less than 1001 ms in binary.
  return std::chrono::milliseconds(static_cast<std::int64_t>(total + 1e-6));
}

}  // namespace rw::core
