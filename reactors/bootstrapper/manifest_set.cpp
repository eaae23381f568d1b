#include "reactors/bootstrapper/manifest_set.hpp"

#include "k8s/manifests.hpp"
#include "k8s/text.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/validation.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::find_string;

/// Removes what only the API server sets.
void strip_server_fields(json::value& object) {
  auto& all = object.as_object();
  all.erase("status");
  auto* const metadata = all["metadata"].if_object();
  if (metadata == nullptr) return;
  for (const auto* field : {"creationTimestamp", "deletionTimestamp", "generation", "managedFields",
                            "resourceVersion", "selfLink", "uid"}) {
    metadata->erase(field);
  }
}

/// "Deployment kyma-system/name", with the group where it is not Kubernetes' own.
std::string name_of(const json::value& object) {
  return std::string(find_string(object, {"kind"})) + " " + to_string(k8s::key_of(object));
}

/// Sets the namespace as the scope demands, for kinds that every cluster has; discovery decides
/// on others.
void set_namespace(json::value& object, std::string_view ns) {
  const auto type =
      k8s::well_known_type(find_string(object, {"apiVersion"}), find_string(object, {"kind"}));
  if (!type) return;
  auto& metadata = object.as_object()["metadata"].as_object();
  if (!type->namespaced) {
    metadata.erase("namespace");
  } else if (k8s::key_of(object).ns.empty()) {
    metadata["namespace"] = ns;
  }
}

/// Where only discovery knows the scope, no namespace counts as `ns`: two objects that differ in
/// this alone are one, whatever the scope is.
std::string identity_of(const json::value& object, std::string_view ns) {
  const auto version = find_string(object, {"apiVersion"});
  const auto slash = version.find('/');
  const auto group = slash == version.npos ? std::string_view() : version.substr(0, slash);
  auto key = k8s::key_of(object);
  const bool namespaced =
      !k8s::well_known_type(version, find_string(object, {"kind"})) || !key.ns.empty();
  if (namespaced && key.ns.empty()) key.ns = ns;
  return std::string(group) + "/" + std::string(find_string(object, {"kind"})) + " " +
         to_string(key);
}

bool is_deployment(const json::value& object, std::string_view ns) {
  const auto key = k8s::key_of(object);
  return find_string(object, {"apiVersion"}).starts_with("apps/") &&
         find_string(object, {"kind"}) == "Deployment" && key.name == deployment_name &&
         (key.ns == ns || key.ns.empty());
}

}  // namespace

std::string version_of(const json::value& deployment) {
  return std::string(k8s::label(deployment, version_label).value_or(std::string_view()));
}

std::vector<std::string> features_of(const json::value& deployment) {
  auto rest = k8s::annotation(deployment, features_annotation);
  if (!rest) return default_features();
  std::vector<std::string> out;
  while (!rest->empty()) {
    const auto end = std::min(rest->find(','), rest->size());
    const auto one = k8s::trimmed(rest->substr(0, end));
    if (!one.empty()) out.emplace_back(one);
    rest->remove_prefix(std::min(end + 1, rest->size()));
  }
  return out;
}

manifest_set parse_manifest_set(const std::string& text, std::string_view ns,
                                const field_path& path) {
  manifest_set out;
  out.features = default_features();
  auto all = k8s::parse_manifests(text, {.bytes = manifest_bytes});
  if (!all) {
    path.error(all.error().message());
    return out;
  }
  std::set<std::string> identities;
  const json::value* deployment = nullptr;
  for (auto& object : *all) {
    strip_server_fields(object);
    set_namespace(object, ns);
    if (!identities.insert(identity_of(object, ns)).second) {
      path.error(name_of(object) + " is defined twice");
    }
    if (is_deployment(object, ns)) deployment = &object;
  }
  if (deployment == nullptr) {
    path.error("there is no Deployment " + std::string(ns) + "/" + std::string(deployment_name));
  } else {
    out.version = version_of(*deployment);
    out.features = features_of(*deployment);
  }
  out.objects = std::move(*all);
  return out;
}

}  // namespace rw::bootstrapper
