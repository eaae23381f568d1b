#include "rw/k8s/devserver/openapi.hpp"

#include "rw/core/hash.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <map>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

json::object kind_of(const served_resource& of) {
  return {{"group", of.of->group}, {"version", of.version->name}, {"kind", of.of->kind}};
}

json::value parameter(std::string_view name, std::string_view type) {
  return {{"name", name}, {"in", "query"}, {"schema", {{"type", type}, {"uniqueItems", true}}}};
}

/// Describes one writing operation on the resource.
json::value operation(const served_resource& of, std::string_view action,
                      std::string_view media_type) {
  return {{"x-kubernetes-action", action},
          {"x-kubernetes-group-version-kind", kind_of(of)},
          {"parameters",
           {parameter("dryRun", "string"), parameter("fieldManager", "string"),
            parameter("fieldValidation", "string"), parameter("force", "boolean")}},
          {"requestBody", {{"content", {{media_type, {{"schema", {{"type", "object"}}}}}}}}},
          {"responses", {{"200", {{"description", "OK"}}}}}};
}

std::string schema_name(const served_resource& of) {
  auto group = of.of->group.empty() ? std::string("core") : of.of->group;
  return group + "." + of.version->name + "." + of.of->kind;
}

json::object schema_object(const served_resource& of) {
  json::object schema;
  if (of.version->open_api.is_object()) {
    schema = of.version->open_api.get_object();
  } else {
    schema["type"] = "object";
    schema["description"] = of.of->kind + " of " + of.api_version();
    schema["x-kubernetes-preserve-unknown-fields"] = true;
  }
  auto& properties = schema["properties"];
  if (!properties.is_object()) properties = json::object();
  for (const auto* name : {"apiVersion", "kind"}) {
    auto& property = properties.get_object()[name];
    if (property.is_null()) property = json::object{{"type", "string"}};
  }
  auto& metadata = properties.get_object()["metadata"];
  if (metadata.is_null()) metadata = json::object{{"type", "object"}};
  schema["x-kubernetes-group-version-kind"] = json::array{kind_of(of)};
  return schema;
}

std::optional<json::value> describe_group(const cluster& in, std::string_view group,
                                          std::string_view version) {
  json::object paths;
  json::object schemas;
  in.kinds.for_each([&](const std::shared_ptr<const resource>& kind) {
    const served_resource of{kind, kind->group == group ? kind->find(version) : nullptr};
    if (!of) return;
    auto path = (group.empty() ? "/api/" : "/apis/" + kind->group + "/") + of.version->name;
    path += (kind->namespaced ? "/namespaces/{namespace}/" : "/") + kind->plural;
    paths[path] = json::object{{"post", operation(of, "post", "application/json")}};
    paths[path + "/{name}"] =
        json::object{{"patch", operation(of, "patch", "application/merge-patch+json")},
                     {"put", operation(of, "put", "application/json")}};
    schemas[schema_name(of)] = schema_object(of);
  });
  if (paths.empty()) return {};
  return json::value{{"openapi", "3.0.0"},
                     {"info", {{"title", "Kubernetes"}, {"version", "v1.32.0"}}},
                     {"paths", std::move(paths)},
                     {"components", {{"schemas", std::move(schemas)}}}};
}

json::value describe_index(const cluster& in) {
  json::object paths;
  in.kinds.for_each([&](const std::shared_ptr<const resource>& kind) {
    for (const auto& version : kind->versions) {
      const auto name = (kind->group.empty() ? "api/" : "apis/" + kind->group + "/") + version.name;
      if (!version.served || paths.contains(name)) continue;
      // Clients cache by the hash, which must change with the document.
      const auto document = describe_group(in, kind->group, version.name);
      const auto hash = core::string_hash().add(json::serialize(*document)).value();
      paths[name] = json::object{
          {"serverRelativeURL", "/openapi/v3/" + name + "?hash=" + std::to_string(hash)}};
    }
  });
  return {{"paths", std::move(paths)}};
}

}  // namespace

std::optional<json::value> describe_openapi(const cluster& in,
                                            const std::vector<std::string>& path) {
  if (path.size() < 2 || path[0] != "openapi" || path[1] != "v3") return {};
  if (path.size() == 2) return describe_index(in);
  if (path.size() == 4 && path[2] == "api") return describe_group(in, "", path[3]);
  if (path.size() == 5 && path[2] == "apis") return describe_group(in, path[3], path[4]);
  return {};
}

}  // namespace rw::k8s::devserver
