#include "rw/k8s/devserver/openapi.hpp"

#include "rw/core/hash.hpp"
#include "rw/k8s/devserver/openapi_definitions.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <map>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// The patch that kubectl looks for, to learn what its parameters may be.
constexpr std::string_view patch_type = "application/merge-patch+json";

struct query_parameter {
  std::string_view name;
  std::string_view type;
};
constexpr query_parameter parameters[] = {{"dryRun", "string"},
                                          {"fieldManager", "string"},
                                          {"fieldValidation", "string"},
                                          {"force", "boolean"}};

json::object kind_of(const served_resource& of) {
  return {{"group", of.of->group}, {"version", of.version->name}, {"kind", of.of->kind}};
}

json::value parameter(const query_parameter& of, openapi_version as) {
  json::object made{{"name", of.name}, {"in", "query"}};
  json::object type{{"type", of.type}, {"uniqueItems", true}};
  if (as == openapi_version::v3) {
    made["schema"] = std::move(type);
  } else {
    made.insert(type.begin(), type.end());
  }
  return made;
}

/// Describes one writing operation on the resource.
json::object operation(const served_resource& of, std::string_view action,
                       std::string_view media_type, openapi_version as) {
  json::array query;
  for (const auto& each : parameters) query.push_back(parameter(each, as));
  json::object made{{"x-kubernetes-action", action},
                    {"x-kubernetes-group-version-kind", kind_of(of)},
                    {"parameters", std::move(query)},
                    {"responses", {{"200", {{"description", "OK"}}}}}};
  if (as == openapi_version::v3) {
    made["requestBody"] = {{"content", {{media_type, {{"schema", {{"type", "object"}}}}}}}};
  }
  return made;
}

void add_paths(json::object& paths, const served_resource& of, openapi_version as) {
  const auto& group = of.of->group;
  auto path = (group.empty() ? "/api/" : "/apis/" + group + "/") + of.version->name;
  path += (of.of->namespaced ? "/namespaces/{namespace}/" : "/") + of.of->plural;
  paths[path] = json::object{{"post", operation(of, "post", "application/json", as)}};
  paths[path + "/{name}"] = json::object{{"patch", operation(of, "patch", patch_type, as)},
                                         {"put", operation(of, "put", "application/json", as)}};
}

/// Returns the name of a custom resource: its group turned round.
std::string custom_name(const served_resource& of) {
  std::string name;
  for (std::string_view rest = of.of->group; !rest.empty();) {
    const auto dot = rest.rfind('.');
    name += std::string(rest.substr(dot == std::string_view::npos ? 0 : dot + 1)) + ".";
    rest = rest.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return name + of.version->name + "." + of.of->kind;
}

json::object custom_schema(const served_resource& of, openapi_version as) {
  json::object schema;
  if (of.version->open_api.is_object()) {
    const auto& written = of.version->open_api.get_object();
    schema = as == openapi_version::v2 ? to_openapi_v2(written) : written;
  } else {
    schema["type"] = "object";
    schema["x-kubernetes-preserve-unknown-fields"] = true;
  }
  if (as == openapi_version::v2 && schema.contains("x-kubernetes-preserve-unknown-fields")) {
    return schema;
  }
  auto& properties = schema["properties"];
  if (!properties.is_object()) properties = json::object();
  for (const auto* name : {"apiVersion", "kind"}) {
    auto& property = properties.get_object()[name];
    if (property.is_null()) property = json::object{{"type", "string"}};
  }
  auto& metadata = properties.get_object()["metadata"];
  if (metadata.is_null()) metadata = json::object{{"type", "object"}};
  return schema;
}

/// Adds the schema of the kind, with those of the types that it refers to.
void add_schemas(json::object& schemas, const served_resource& of, openapi_version as) {
  const auto* const type =
      of.of->custom ? nullptr : find_builtin_type(of.api_version(), of.of->kind);
  const auto name = type != nullptr ? definition_name(*type) : custom_name(of);
  if (type != nullptr) {
    define_type(schemas, *type, as);
    schemas[name].as_object()["description"] =
        of.of->kind + " of " + of.api_version() +
        ": names and types; https://kubernetes.io/docs/reference/kubernetes-api says what they "
        "mean";
  } else {
    schemas[name] = custom_schema(of, as);
  }
  // A type can be that of several kinds.
  auto& kinds = schemas[name].as_object()["x-kubernetes-group-version-kind"];
  if (!kinds.is_array()) kinds = json::array();
  kinds.get_array().push_back(kind_of(of));
}

json::object info() {
  return {{"title", "Kubernetes"}, {"version", "v1.32.0"}};
}

std::optional<json::value> describe_group(const cluster& in, std::string_view group,
                                          std::string_view version) {
  json::object paths;
  json::object schemas;
  in.kinds.for_each([&](const std::shared_ptr<const resource>& kind) {
    const served_resource of{kind, kind->group == group ? kind->find(version) : nullptr};
    if (!of) return;
    add_paths(paths, of, openapi_version::v3);
    add_schemas(schemas, of, openapi_version::v3);
  });
  if (paths.empty()) return {};
  return json::value{{"openapi", "3.0.0"},
                     {"info", info()},
                     {"paths", std::move(paths)},
                     {"components", {{"schemas", std::move(schemas)}}}};
}

/// Hashes what the document of a group version is made of, and can change: custom resources.
std::uint64_t document_hash(const cluster& in, std::string_view group, std::string_view version) {
  core::string_hash made;
  made.add(std::to_string(builtin_fields().size()));
  in.kinds.for_each([&](const std::shared_ptr<const resource>& kind) {
    const auto* const served = kind->group == group ? kind->find(version) : nullptr;
    if (served == nullptr) return;
    made.add(kind->plural).add(json::serialize(served->open_api));
  });
  return made.value();
}

json::value describe_index(const cluster& in) {
  json::object paths;
  in.kinds.for_each([&](const std::shared_ptr<const resource>& kind) {
    for (const auto& version : kind->versions) {
      const auto name = (kind->group.empty() ? "api/" : "apis/" + kind->group + "/") + version.name;
      if (!version.served || paths.contains(name)) continue;
      // Clients cache by the hash, which must change with the document.
      const auto hash = document_hash(in, kind->group, version.name);
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

json::object describe_openapi_v2(const cluster& in) {
  json::object paths;
  json::object definitions;
  in.kinds.for_each([&](const std::shared_ptr<const resource>& kind) {
    for (const auto& version : kind->versions) {
      const served_resource of{kind, &version};
      if (!version.served) continue;
      add_paths(paths, of, openapi_version::v2);
      add_schemas(definitions, of, openapi_version::v2);
    }
  });
  return {{"swagger", "2.0"},
          {"info", info()},
          {"paths", std::move(paths)},
          {"definitions", std::move(definitions)}};
}

}  // namespace rw::k8s::devserver
