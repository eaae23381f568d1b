#include "core/config.hpp"

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

std::optional<host_port> parse_host_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  auto host = text.substr(0, colon);
  const auto port = parse_port(text.substr(colon + 1));
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!port || host.empty() || (!bracketed && host.find(':') != std::string_view::npos)) {
    return std::nullopt;
  }
  return host_port{std::string(host), *port};
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  if (text == "0") return std::chrono::milliseconds(0);
  if (text.empty()) return std::nullopt;
  double total = 0;
  while (!text.empty()) {
    double number = 0;
    if (text.front() == '-' || !parse_number(text, number)) return std::nullopt;
    const double unit = take_prefix(text, "ms")  ? 1
                        : take_prefix(text, "h") ? 3'600'000
                        : take_prefix(text, "m") ? 60'000
                        : take_prefix(text, "s") ? 1'000
                                                 : 0;
    total += number * unit;
    if (unit == 0 || !(total < 1e15)) return std::nullopt;
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(total));
}

}  // namespace rw::core
