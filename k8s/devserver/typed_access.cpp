#include "rw/k8s/devserver/typed_access.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <utility>

namespace rw::k8s::devserver {

namespace json = boost::json;

const schema* items_of(const schema* type) {
  return type != nullptr ? type->items() : nullptr;
}

bool declares(const schema* type, std::string_view field) {
  return type != nullptr && type->declares(field);
}

bool granular(const json::value& value, const schema* type) {
  return value.is_object() && (type == nullptr || !type->atomic_object());
}

bool associative(const schema* type) {
  return type != nullptr && type->merge() != list_type::atomic;
}
bool associative(const json::value& value, const schema* type) {
  return value.is_array() && associative(type);
}

std::string field_element(std::string_view name) {
  return "f:" + std::string(name);
}

std::optional<std::string> item_element(const json::value& item, const schema& list,
                                        std::string* error) {
  const auto fail = [error](std::string reason) -> std::optional<std::string> {
    if (error != nullptr) *error = std::move(reason);
    return std::nullopt;
  };
  if (list.merge() == list_type::set) {
    if (item.is_object() || item.is_array()) {
      return fail("associative list without keys has an element that's a map or a list");
    }
    if (item.is_null()) {
      return fail("associative list without keys has an element that's an explicit null");
    }
    return "v:" + json::serialize(item);
  }
  if (!item.is_object()) {
    return fail("associative list with keys may not have non-map elements");
  }
  std::map<std::string_view, const json::value*> keys;
  json::value defaults;
  for (const auto& name : list.list_map_keys()) {
    const auto* value = item.get_object().if_contains(name);
    if (value == nullptr) {
      if (defaults.is_null()) {
        defaults.emplace_object();
        if (list.items() != nullptr) list.items()->fill_defaults(defaults);
      }
      value = defaults.get_object().if_contains(name);
    }
    if (value == nullptr) {
      return fail("associative list with keys has an element that omits key field \"" + name +
                  "\" (and doesn't have default value)");
    }
    keys.emplace(name, value);
  }
  std::string text = "k:{";
  for (const auto& [name, value] : keys) {
    if (text.back() != '{') text += ',';
    text += json::serialize(json::string(name)) + ":" + json::serialize(*value);
  }
  return text + "}";
}

items_by_element index_items(const json::value* list, const schema& type) {
  items_by_element found;
  if (list == nullptr || !list->is_array()) return found;
  const auto& all = list->get_array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto element = item_element(all[i], type);
    found.emplace(element ? std::move(*element) : "i:" + std::to_string(i), &all[i]);
  }
  return found;
}

const json::value* find_item(const items_by_element& among, const json::value& item,
                             const schema& list) {
  if (among.empty()) return nullptr;
  const auto element = item_element(item, list);
  const auto found = element ? among.find(*element) : among.end();
  return found != among.end() ? found->second : nullptr;
}

bool is_hollow(const json::value* value) {
  return value == nullptr || value->is_null() ||
         (value->is_object() && value->get_object().empty()) ||
         (value->is_array() && value->get_array().empty());
}

}  // namespace rw::k8s::devserver
