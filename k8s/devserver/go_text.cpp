#include "rw/k8s/devserver/go_text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// How one of Go's verbs prints.
struct style {
  bool source;  ///< "%#v"
  std::string_view nothing;
  std::string_view list_opens;
  std::string_view list_closes;
  std::string_view map_opens;
  std::string_view map_closes;
  std::string_view between;
};

constexpr style plain{false, "<nil>", "[", "]", "map[", "]", " "};
constexpr style source{
    true, "interface {}(nil)", "[]interface {}{", "}", "map[string]interface {}{", "}", ", "};

void append(std::string& out, const json::value& value, const style& as) {
  bool first = true;
  const auto separate = [&] {
    if (!first) out += as.between;
    first = false;
  };
  if (value.is_null()) {
    out += as.nothing;
  } else if (value.is_string() && !as.source) {
    out += std::string_view(value.get_string());
  } else if (value.is_double()) {
    out += go_number(value.get_double());
  } else if (value.is_array()) {
    out += as.list_opens;
    for (const auto& entry : value.get_array()) {
      separate();
      append(out, entry, as);
    }
    out += as.list_closes;
  } else if (value.is_object()) {
    std::map<std::string_view, const json::value*> sorted;
    for (const auto& [name, member] : value.get_object()) sorted.emplace(name, &member);
    out += as.map_opens;
    for (const auto& [name, member] : sorted) {
      separate();
      out += as.source ? json::serialize(json::string(name)) : std::string(name);
      out += ':';
      append(out, *member, as);
    }
    out += as.map_closes;
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

std::string go_text(const json::value& value) {
  std::string out;
  append(out, value, plain);
  return out;
}

std::string go_value(const json::value& value) {
  if (value.is_null()) return "null";
  std::string out;
  append(out, value, source);
  return out;
}

std::string go_number(double number) {
  const auto size = std::abs(number);
  const bool exponent = size != 0 && (size < 1e-4 || size >= 1e21);
  std::array<char, 64> text{};
  const auto done =
      std::to_chars(text.data(), text.data() + text.size(), number,
                    exponent ? std::chars_format::scientific : std::chars_format::fixed);
  return {text.data(), done.ptr};
}

}  // namespace rw::k8s::devserver
