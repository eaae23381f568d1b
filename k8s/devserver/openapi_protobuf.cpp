#include "rw/k8s/devserver/openapi_protobuf.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// A message being written (https://protobuf.dev/programming-guides/encoding/).
class wire_message {
 public:
  void add(unsigned number, std::string_view bytes) {
    varint((number << 3) | 2);
    varint(bytes.size());
    out_ += bytes;
  }
  void add(unsigned number, const wire_message& message) { add(number, message.out_); }
  void add(unsigned number, bool value) {
    varint(number << 3);
    varint(value ? 1 : 0);
  }
  /// Adds the text at that name, if there is one.
  void add_text(unsigned number, const json::object& of, std::string_view name) {
    const auto* const value = of.if_contains(name);
    if (value != nullptr && value->is_string()) add(number, std::string_view(value->get_string()));
  }
  std::string take() { return std::move(out_); }

 private:
  void varint(std::uint64_t value) {
    for (; value > 0x7F; value >>= 7) out_ += static_cast<char>((value & 0x7F) | 0x80);
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

/// NamedSchema and its like: name and value.
wire_message named(std::string_view name, const wire_message& value) {
  wire_message made;
  made.add(1, name);
  made.add(2, value);
  return made;
}

/// Any: YAML, of which JSON is a part.
wire_message any_of(const json::value& value) {
  wire_message made;
  made.add(2, json::serialize(value));
  return made;
}

void add_extensions(wire_message& into, unsigned number, const json::object& of) {
  for (const auto& [name, value] : of) {
    if (name.starts_with("x-")) into.add(number, named(name, any_of(value)));
  }
}

wire_message schema_of(const json::object& schema) {
  wire_message made;
  made.add_text(1, schema, "$ref");
  made.add_text(2, schema, "format");
  made.add_text(4, schema, "description");
  if (const auto* const value = schema.if_contains("default")) made.add(5, any_of(*value));
  if (const auto* const names = schema.if_contains("required")) {
    for (const auto& name : names->as_array()) made.add(19, std::string_view(name.as_string()));
  }
  if (const auto* const more = schema.if_contains("additionalProperties")) {
    wire_message item;
    item.add(1, schema_of(more->as_object()));
    made.add(21, item);
  }
  wire_message type;
  type.add_text(1, schema, "type");
  if (schema.contains("type")) made.add(22, type);
  if (const auto* const items = schema.if_contains("items")) {
    wire_message item;
    item.add(1, schema_of(items->as_object()));
    made.add(23, item);
  }
  if (const auto* const properties = schema.if_contains("properties")) {
    wire_message all;
    for (const auto& [name, value] : properties->as_object()) {
      all.add(1, named(name, schema_of(value.as_object())));
    }
    made.add(25, all);
  }
  add_extensions(made, 31, schema);
  return made;
}

/// ParametersItem, of a NonBodyParameter, of a QueryParameterSubSchema.
wire_message parameter_of(const json::object& parameter) {
  wire_message query;
  query.add_text(2, parameter, "in");
  query.add_text(4, parameter, "name");
  query.add_text(6, parameter, "type");
  query.add(20, true);  // uniqueItems
  wire_message plain;
  plain.add(3, query);
  wire_message item;
  item.add(2, plain);
  wire_message made;
  made.add(1, item);
  return made;
}

wire_message operation_of(const json::object& operation) {
  wire_message made;
  for (const auto& parameter : operation.at("parameters").as_array()) {
    made.add(8, parameter_of(parameter.as_object()));
  }
  wire_message responses;
  for (const auto& [code, value] : operation.at("responses").as_object()) {
    wire_message response;
    response.add_text(1, value.as_object(), "description");
    wire_message either;
    either.add(1, response);
    responses.add(1, named(code, either));
  }
  made.add(9, responses);
  add_extensions(made, 13, operation);
  return made;
}

}  // namespace

std::string openapi_to_protobuf(const json::object& document) {
  static constexpr std::pair<std::string_view, unsigned> methods[] = {
      {"put", 3}, {"post", 4}, {"patch", 8}};
  wire_message made;
  made.add_text(1, document, "swagger");
  wire_message info;
  info.add_text(1, document.at("info").as_object(), "title");
  info.add_text(2, document.at("info").as_object(), "version");
  made.add(2, info);
  wire_message paths;
  for (const auto& [path, operations] : document.at("paths").as_object()) {
    wire_message item;
    for (const auto& [name, number] : methods) {
      const auto* const operation = operations.as_object().if_contains(name);
      if (operation != nullptr) item.add(number, operation_of(operation->as_object()));
    }
    paths.add(2, named(path, item));
  }
  made.add(8, paths);
  wire_message definitions;
  for (const auto& [name, schema] : document.at("definitions").as_object()) {
    definitions.add(1, named(name, schema_of(schema.as_object())));
  }
  made.add(9, definitions);
  return made.take();
}

}  // namespace rw::k8s::devserver
