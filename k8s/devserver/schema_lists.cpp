#include "rw/k8s/devserver/schema_findings.hpp"
#include "rw/k8s/devserver/schema_node.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <set>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

void check_map_key(const std::string& name, const schema_node& key, const schema_node& item,
                   const std::string& path, schema_findings& found) {
  if (key.type == value_type::object || key.type == value_type::array) {
    found.invalid(path + ".type", key.type == value_type::object ? "object" : "array",
                  "must be a scalar type if parent array's x-kubernetes-list-type is map");
  }
  if (key.nullable) {
    found.forbidden(path + ".nullable",
                    "this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
  }
  const bool is_required = item.rules != nullptr && std::ranges::find(item.rules->required, name) !=
                                                        item.rules->required.end();
  if (!is_required && !key.by_default) {
    found.required(
        path + ".default",
        "this property is in x-kubernetes-list-map-keys, so it must have a default or be a "
        "required property");
  }
}

void check_map_keys(const schema_node& made, const json::object& object, const std::string& path,
                    schema_findings& found) {
  const auto keys_path = path + ".x-kubernetes-list-map-keys";
  if (made.map_keys.empty()) {
    found.required(keys_path, "must not be empty if x-kubernetes-list-type is map");
  }
  const auto& item = *made.element;
  if (item.type != value_type::object) {
    found.invalid(path + ".items.type", json::value(text(object.at("items").as_object(), "type")),
                  "must be object if parent array's x-kubernetes-list-type is map");
    return;
  }
  const std::set<std::string> distinct(made.map_keys.begin(), made.map_keys.end());
  std::string shown;
  for (const auto& name : made.map_keys) {
    shown += (shown.empty() ? "" : ", ") + go_value(json::value(name));
  }
  shown = "Invalid value: []string{" + shown + "}: ";
  if (distinct.size() < made.map_keys.size()) {
    found.add(keys_path, "FieldValueInvalid", shown + "must not contain duplicate entries");
  }
  for (const auto& name : distinct) {
    const auto key = item.properties.find(name);
    if (key == item.properties.end()) {
      found.add(keys_path, "FieldValueInvalid",
                shown + "entries must all be names of item properties");
      return;
    }
    check_map_key(name, *key->second, item, path + ".items.properties[" + name + "]", found);
  }
}

}  // namespace

void read_list_type(schema_node& made, const json::object& object, const std::string& path,
                    schema_findings& found) {
  const auto* const type = member(object, "x-kubernetes-list-type");
  const auto* const keys = member(object, "x-kubernetes-list-map-keys");
  if (keys != nullptr && keys->is_array()) {
    for (const auto& key : keys->get_array()) {
      if (key.is_string()) made.map_keys.emplace_back(key.get_string());
    }
  }
  const auto name = text(object, "x-kubernetes-list-type");
  if (!made.map_keys.empty() && name != "map") {
    found.required(path + ".x-kubernetes-list-type",
                   "must be map if x-kubernetes-list-map-keys is non-empty");
  }
  if (type == nullptr) return;
  if (name != "atomic" && name != "set" && name != "map") {
    return found.not_supported(path + ".x-kubernetes-list-type", *type,
                               R"("atomic", "set", "map")");
  }
  if (made.type != value_type::array) {
    const auto* const given = member(object, "type");
    return found.invalid(path + ".type", given != nullptr ? *given : json::value(""),
                         "must be array if x-kubernetes-list-type is specified");
  }
  if (name == "set") made.list = list_type::set;
  if (name == "map") made.list = list_type::map;
  if (!made.of_items || made.element == nullptr || name == "atomic") return;
  const auto& item = *made.element;
  if (item.nullable) {
    found.forbidden(path + ".items.nullable",
                    "cannot be nullable when x-kubernetes-list-type is " + std::string(name));
  }
  if (name == "set" && item.type == value_type::object && !item.atomic) {
    found.invalid(path + ".items.x-kubernetes-map-type", "null",
                  "must be atomic as item of a list with x-kubernetes-list-type=set");
  }
  if (name == "map") check_map_keys(made, object, path, found);
}

}  // namespace rw::k8s::devserver
