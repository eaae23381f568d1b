#include "resources.hpp"

namespace rw::conformance {

json object(const k8s::resource_type& type, std::string_view name, json rest) {
  auto made = std::move(rest);
  made.as_object()["apiVersion"] = type.gvk.api_version();
  made.as_object()["kind"] = type.gvk.kind;
  return with(std::move(made), "/metadata/name", name);
}

json config_map(std::string_view name, json data, json labels) {
  auto made = object(config_maps, name);
  if (!data.is_null()) made.as_object()["data"] = std::move(data);
  if (!labels.is_null()) made = with(std::move(made), "/metadata/labels", std::move(labels));
  return made;
}

json simple_pod(std::string_view name) {
  return object(
      pods, name,
      {{"spec", {{"containers", boost::json::array{{{"name", "c"}, {"image", "i:1"}}}}}}});
}

json deployment(std::string_view name) {
  return object(deployments, name, parse(R"({
    "spec": {
      "selector": {"matchLabels": {"app": "a"}},
      "template": {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [
          {"name": "one", "image": "one:1", "args": ["x", "y"],
           "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
          {"name": "two", "image": "two:1"}]}}}})"));
}

json definition(const std::string& group, const std::string& kind, const std::string& plural,
                json schema) {
  return object(crds, plural + "." + group,
                {{"spec",
                  {{"group", group},
                   {"scope", "Namespaced"},
                   {"names", {{"kind", kind}, {"plural", plural}}},
                   {"versions",
                    boost::json::array{{{"name", "v1"},
                                        {"served", true},
                                        {"storage", true},
                                        {"schema", {{"openAPIV3Schema", std::move(schema)}}}}}}}}});
}

k8s::resource_type custom_type(const json& crd) {
  return {
      {text(crd, "/spec/group"), text(crd, "/spec/versions/0/name"), text(crd, "/spec/names/kind")},
      text(crd, "/spec/names/plural"),
      text(crd, "/spec/scope") == "Namespaced"};
}

}  // namespace rw::conformance
