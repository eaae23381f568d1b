#include "rw/k8s/devserver/json_access.hpp"

#include <boost/json/parse.hpp>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// Schemas in CustomResourceDefinitions nest deeply; deeper JSON is an attack on the stack.
constexpr std::size_t deepest_json = 256;

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

json::object& object_in(json::object& of, std::string_view field) {
  auto& value = of[field];
  if (!value.is_object()) value = json::object();
  return value.get_object();
}

void set_default(json::object& of, std::string_view field, json::value initial) {
  auto& value = of[field];
  if (value.is_null()) value = std::move(initial);
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
