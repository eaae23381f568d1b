#pragma once

#include "rw/k8s/devserver/admission.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace rw::k8s::devserver::test {

namespace json = boost::json;

/// A write of a ConfigMap that a webhook may be told of.
inline admission_attributes config_map(std::string operation = "CREATE") {
  admission_attributes write;
  write.type = {{"", "v1", "ConfigMap"}, "configmaps", true};
  write.key = {"default", "w1"};
  const auto object = json::parse(R"({"kind":"ConfigMap","apiVersion":"v1",
      "metadata":{"name":"w1","namespace":"default","labels":{"w":"1"}},"data":{"a":"b"}})");
  if (operation != "DELETE") write.object = object;
  if (operation != "CREATE") write.old_object = object;
  write.operation = std::move(operation);
  write.namespace_labels = json::parse(R"({"team":"a"})");
  write.user = "e2e-admin";
  write.groups = {"system:masters", "system:authenticated"};
  return write;
}

inline admission_attributes of(std::string group, std::string plural,
                               std::string subresource = "") {
  auto write = config_map("UPDATE");
  write.type.gvk.group = std::move(group);
  write.type.plural = std::move(plural);
  write.subresource = std::move(subresource);
  return write;
}

inline json::object rule(std::string_view resource, std::string_view scope = "*") {
  return {{"apiGroups", boost::json::array{"*"}},
          {"apiVersions", boost::json::array{"*"}},
          {"operations", boost::json::array{"*"}},
          {"resources", boost::json::array{resource}},
          {"scope", scope}};
}

inline json::object hook(json::object more = {}) {
  json::object made = {{"name", "h.example.com"},
                       {"admissionReviewVersions", boost::json::array{"v1"}},
                       {"sideEffects", "None"},
                       {"rules", json::array{rule("*")}}};
  for (auto& one : more) made[one.key()] = std::move(one.value());
  return made;
}

}  // namespace rw::k8s::devserver::test
