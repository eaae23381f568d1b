#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/k8s/objects/object.hpp"
#include "rw/k8s/objects/object_reader.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::test {

inline resource_type configmaps() {
  return {{"", "v1", "ConfigMap"}, "configmaps", true};
}

/// A ConfigMap as a watch tells it.
inline std::string configmap(std::string_view name, std::string_view version,
                             std::string_view uid = {}, std::string_view value = "x") {
  std::string text = R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":")";
  text.append(name).append(R"(","namespace":"default","uid":")");
  text.append(uid.empty() ? "u-" + std::string(name) : std::string(uid));
  text.append(R"(","resourceVersion":")").append(version);
  text.append(R"(","managedFields":[{"manager":"m"}]},"data":{"k":")").append(value);
  return text + R"("}})";
}

inline object configmap_object(std::string_view name, std::string_view version,
                               std::string_view uid = {}) {
  return object::from_text(configmap(name, version, uid));
}

inline std::string event(std::string_view type, std::string_view object) {
  std::string line = R"({"type":")";
  line.append(type).append(R"(","object":)").append(object);
  return line + "}\n";
}

inline std::string bookmark(std::string_view version, bool initial_events_end = false) {
  std::string object = R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":")";
  object.append(version).append(R"(","creationTimestamp":null)");
  if (initial_events_end) object += R"(,"annotations":{"k8s.io/initial-events-end":"true"})";
  return event("BOOKMARK", object + "}}");
}

inline std::string error_event(unsigned code, std::string_view reason) {
  return event("ERROR", R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
                        R"("message":"said so","reason":")" +
                            std::string(reason) + R"(","code":)" + std::to_string(code) + "}");
}

/// A page as a server of built-in resources writes it: the objects do not say their kind.
inline std::string list(std::string_view version, const std::vector<std::string>& objects,
                        std::string_view continue_token = {}) {
  std::string text = R"({"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":")";
  text.append(version);
  if (!continue_token.empty()) text.append(R"(","continue":")").append(continue_token);
  text += R"("},"items":[)";
  constexpr std::string_view naming = R"("kind":"ConfigMap","apiVersion":"v1",)";
  bool first = true;
  for (auto object : objects) {
    const auto at = object.find(naming);
    if (at != std::string::npos) object.erase(at, naming.size());
    if (!first) text += ',';
    first = false;
    text += object;
  }
  return text + "]}\n";
}

}  // namespace rw::k8s::test
