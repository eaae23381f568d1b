#include "rw/k8s/devserver/openapi_definitions.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

json::object typed(std::string_view type, std::string_view format = {}) {
  json::object made{{"type", type}};
  if (!format.empty()) made["format"] = format;
  return made;
}

json::object value_schema(const builtin_field& field, openapi_version as) {
  switch (field.type) {
    case go_type::text:
    case go_type::duration:
    case go_type::quantity:
      return typed("string");
    case go_type::boolean:
      return typed("boolean");
    case go_type::integer32:
      return typed("integer", "int32");
    case go_type::integer:
      return typed("integer", "int64");
    case go_type::number:
      return typed("number", "double");
    case go_type::bytes:
      return typed("string", "byte");
    case go_type::time:
    case go_type::micro_time:
      return typed("string", "date-time");
    case go_type::int_or_string:
      if (as == openapi_version::v2) return typed("string", "int-or-string");
      return {{"format", "int-or-string"}, {"oneOf", {typed("integer"), typed("string")}}};
    case go_type::texts:
      return {{"type", "array"}, {"items", typed("string")}};
    case go_type::object:
      return {{"$ref", (as == openapi_version::v2 ? "#/definitions/" : "#/components/schemas/") +
                           definition_name(builtin_types()[field.of])}};
    case go_type::raw:
      break;
  }
  return typed("object");
}

json::array name_list(std::string_view text) {
  json::array made;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    made.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return made;
}

/// Adds how server-side apply and strategic merge patches treat the field.
void describe_merging(json::object& into, const builtin_field& field) {
  const auto has = [&](trait::bits bits) { return (field.traits & bits) != 0; };
  if (has(trait::list_map)) {
    into["x-kubernetes-list-type"] = "map";
    into["x-kubernetes-list-map-keys"] = name_list(field.keys);
  } else if (has(trait::list_set)) {
    into["x-kubernetes-list-type"] = "set";
  } else if (field.in == holder::list) {
    into["x-kubernetes-list-type"] = "atomic";
  }
  if (field.in != holder::list && has(trait::atomic)) into["x-kubernetes-map-type"] = "atomic";
  std::string strategy = has(trait::patch_merges) ? "merge" : has(trait::replaces) ? "replace" : "";
  if (has(trait::retains_keys)) strategy += strategy.empty() ? "retainKeys" : ",retainKeys";
  if (!strategy.empty()) into["x-kubernetes-patch-strategy"] = strategy;
  if (!field.merge_key.empty()) into["x-kubernetes-patch-merge-key"] = field.merge_key;
}

json::object field_schema(const builtin_field& field, openapi_version as) {
  auto made = value_schema(field, as);
  if (field.in == holder::list) {
    made = {{"type", "array"}, {"items", std::move(made)}};
  } else if (field.in == holder::map) {
    made = {{"type", "object"}, {"additionalProperties", std::move(made)}};
  }
  json::object extensions;
  describe_merging(extensions, field);
  if (!field.by_default.empty()) extensions["default"] = json::parse(field.by_default);
  // Beside a reference, OpenAPI v3 has nothing.
  if (!extensions.empty() && as == openapi_version::v3 && made.contains("$ref")) {
    made = {{"allOf", json::array{std::move(made)}}};
  }
  for (auto& [name, value] : extensions) made[name] = std::move(value);
  return made;
}

void add_fields(json::object& properties, const builtin_type& type, openapi_version as) {
  for (const auto& field : fields_of(type)) {
    if (field.name.empty()) {
      add_fields(properties, builtin_types()[field.of], as);
    } else {
      properties[field.name] = field_schema(field, as);
    }
  }
}

void define_fields(json::object& into, const builtin_type& type, openapi_version as) {
  for (const auto& field : fields_of(type)) {
    if (field.type != go_type::object) continue;
    const auto& other = builtin_types()[field.of];
    if (field.name.empty()) {
      define_fields(into, other, as);
    } else {
      define_type(into, other, as);
    }
  }
}

}  // namespace

std::string definition_name(const builtin_type& type) {
  auto group = std::string(type.group);
  group.replace(group.find('/'), 1, ".");
  const std::string prefix = type.group == "meta/v1" ? "io.k8s.apimachinery.pkg.apis."
                             : type.group == "apiextensions/v1"
                                 ? "io.k8s.apiextensions-apiserver.pkg.apis."
                                 : "io.k8s.api.";
  return prefix + group + "." + std::string(type.name);
}

void define_type(json::object& into, const builtin_type& type, openapi_version as) {
  const auto name = definition_name(type);
  if (into.contains(name)) return;
  json::object properties;
  if ((type.traits & trait::resource) != 0) {
    properties["apiVersion"] = typed("string");
    properties["kind"] = typed("string");
  }
  add_fields(properties, type, as);
  json::object made{{"type", "object"}, {"properties", std::move(properties)}};
  if ((type.traits & trait::atomic) != 0) made["x-kubernetes-map-type"] = "atomic";
  into[name] = std::move(made);
  define_fields(into, type, as);
}

json::object to_openapi_v2(const json::object& schema) {
  const auto member = [&](std::string_view name) { return schema.if_contains(name); };
  const auto flag = [&](std::string_view name) {
    const auto* const value = member(name);
    return value != nullptr && value->is_bool() && value->get_bool();
  };
  json::object made;
  for (const auto& [name, value] : schema) {
    if (name == "description" || name.starts_with("x-kubernetes-")) made[name] = value;
  }
  made.erase("x-kubernetes-validations");
  // A null, or a text beside a number, has no type in OpenAPI v2; clients would reject it.
  if (flag("nullable") || flag("x-kubernetes-int-or-string")) return made;
  for (const auto* name : {"type", "format", "required"}) {
    if (const auto* const value = member(name)) made[name] = *value;
  }
  if (flag("x-kubernetes-preserve-unknown-fields")) {
    made.erase("required");
    return made;
  }
  if (const auto* const items = member("items"); items != nullptr && items->is_object()) {
    made["items"] = to_openapi_v2(items->get_object());
  }
  const auto* const more = member("additionalProperties");
  if (more != nullptr && more->is_object()) {
    made["additionalProperties"] = to_openapi_v2(more->get_object());
  }
  const auto* const properties = member("properties");
  if (properties != nullptr && properties->is_object()) {
    json::object fields;
    for (const auto& [name, value] : properties->get_object()) {
      if (value.is_object()) fields[name] = to_openapi_v2(value.get_object());
    }
    made["properties"] = std::move(fields);
  }
  return made;
}

}  // namespace rw::k8s::devserver
