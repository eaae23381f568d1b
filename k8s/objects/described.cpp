#include "rw/k8s/objects/described.hpp"

#include "rw/core/text.hpp"

namespace rw::k8s::described_detail {

namespace json = boost::json;

bool fail(std::string& error, std::string_view text) {
  error = ": " + std::string(text);
  return false;
}

void prepend_field(std::string& error, std::string_view name) {
  error.insert(0, "." + std::string(name));
}

void prepend_index(std::string& error, std::size_t at) {
  error.insert(0, "[" + std::to_string(at) + "]");
}

std::string path_text(std::string error) {
  const auto begin = error.find_first_not_of(".: ");
  return begin == std::string::npos ? error : error.substr(begin);
}

bool read(const value& from, bool& into, std::string& error) {
  if (!from.is_bool()) return fail(error, "not true or false");
  into = from.get_bool();
  return true;
}

bool read(const value& from, std::string& into, std::string& error) {
  if (!from.is_string()) return fail(error, "not a text");
  into = from.get_string();
  return true;
}

bool read(const value& from, time& into, std::string& error) {
  const auto parsed =
      parse_rfc3339(from.is_string() ? std::string_view(from.get_string()) : std::string_view());
  if (!parsed) return fail(error, "not a time of RFC 3339");
  into = *parsed;
  return true;
}

bool read(const value& from, object_meta& into, std::string&) {
  const value object{{"metadata", from}};
  const auto key = key_of(object);
  into.ns = key.ns;
  into.name = key.name;
  into.uid = uid_of(object);
  into.resource_version = resource_version_of(object);
  into.generation = generation_of(object);
  into.being_deleted = is_being_deleted(object);
  into.owners = owners_of(object);
  std::string ignored;
  for (const auto& [name, map] :
       {std::pair("labels", &into.labels), std::pair("annotations", &into.annotations)}) {
    if (const auto* const found = find(from, {name})) read(*found, *map, ignored);
  }
  if (const auto* const found = find(from, {"finalizers"})) read(*found, into.finalizers, ignored);
  return true;
}

value write(const object_meta& from) {
  value object{{"metadata", json::object()}};
  auto& out = object.get_object()["metadata"].get_object();
  if (!from.ns.empty()) out.emplace("namespace", from.ns);
  out.emplace("name", from.name);
  if (!from.labels.empty()) out.emplace("labels", write(from.labels));
  if (!from.annotations.empty()) out.emplace("annotations", write(from.annotations));
  if (!from.finalizers.empty()) out.emplace("finalizers", write(from.finalizers));
  for (const auto& owner : from.owners) set_owner(object, owner);
  return object.get_object()["metadata"];
}

value definition(const resource_type& type, json::object schema, bool has_status) {
  json::object version{{"name", type.gvk.version},
                       {"served", true},
                       {"storage", true},
                       {"schema", {{"openAPIV3Schema", std::move(schema)}}}};
  if (has_status) version.emplace("subresources", json::object{{"status", json::object()}});
  return {{"apiVersion", "apiextensions.k8s.io/v1"},
          {"kind", "CustomResourceDefinition"},
          {"metadata", {{"name", to_string(type)}}},
          {"spec",
           {{"group", type.gvk.group},
            {"scope", type.namespaced ? "Namespaced" : "Cluster"},
            {"names",
             {{"kind", type.gvk.kind},
              {"listKind", type.gvk.kind + "List"},
              {"plural", type.plural},
              {"singular", core::lower(type.gvk.kind)}}},
            {"versions", json::array{std::move(version)}}}}};
}

}  // namespace rw::k8s::described_detail
