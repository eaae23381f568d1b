#include "rw/k8s/devserver/json_access.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr double int64_end = 0x1p63;

/// Returns the integer that Go writes for a double of up to 20 digits: the fewest that identify it,
/// then zeros.
std::optional<std::uint64_t> shortest_integer(double number) {
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::scientific);
  std::string digits(text.data(), end.ptr);
  const auto exponent = digits.find('e');
  const auto size = std::stoul(digits.substr(exponent + 1)) + 1;
  digits.resize(exponent);
  std::erase(digits, '.');
  digits.resize(size, '0');
  std::uint64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec != std::errc()) return {};
  return value;
}

}  // namespace

json::value* find(json::value& from, std::initializer_list<std::string_view> path) noexcept {
  auto* at = &from;
  for (const auto name : path) {
    auto* object = at->if_object();
    if (object == nullptr) return nullptr;
    at = object->if_contains(name);
    if (at == nullptr) return nullptr;
  }
  return at;
}

std::string text_of(const json::object& of, std::string_view field) {
  const auto* const value = of.if_contains(field);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::optional<std::int64_t> integer_at(const json::value& from,
                                       std::initializer_list<std::string_view> path) noexcept {
  const auto* at = find(from, path);
  if (at == nullptr || !at->is_int64()) return {};
  return at->get_int64();
}

bool true_at(const json::value& from, std::initializer_list<std::string_view> path) noexcept {
  const auto* at = find(from, path);
  return at != nullptr && at->is_bool() && at->get_bool();
}

const json::array& array_at(const json::value& from,
                            std::initializer_list<std::string_view> path) noexcept {
  static const json::array none;
  const auto* const found = find(from, path);
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

json::object& object_in(json::object& of, std::string_view field) {
  auto& value = of[field];
  if (!value.is_object()) value = json::object();
  return value.get_object();
}

void set_default(json::object& of, std::string_view field, json::value initial) {
  auto& value = of[field];
  if (value.is_null()) value = std::move(initial);
}

bool normalize_numbers(json::value& value) {
  if (auto* const list = value.if_array()) return std::ranges::all_of(*list, normalize_numbers);
  if (auto* const object = value.if_object()) {
    return std::ranges::all_of(*object,
                               [](auto&& field) { return normalize_numbers(field.value()); });
  }
  if (!value.is_double() && !value.is_uint64()) return true;
  const auto number = value.to_number<double>();
  if (!std::isfinite(number)) return false;
  if (std::trunc(number) != number) return true;
  if (number >= -int64_end && number < int64_end) {
    value = static_cast<std::int64_t>(number);
  } else if (const auto integer = number > 0 ? shortest_integer(number) : std::nullopt) {
    value = *integer;
  } else {
    value = number;
  }
  return true;
}

std::optional<json::value> parse_json(std::string_view text, std::string& reason) {
  json::parse_options options;
  options.max_depth = deepest_json;
  boost::system::error_code error;
  auto value = json::parse({text.data(), text.size()}, error, {}, options);
  if (!error) return value;
  reason = error.message();
  return {};
}

}  // namespace rw::k8s::devserver
