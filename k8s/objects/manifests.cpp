#include "rw/k8s/objects/manifests.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/k8s/objects/yaml.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/throw_exception.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

namespace rw::k8s {
namespace {

namespace json = boost::json;

using wrong = yaml_type_error;

void check(const json::value& object, const yaml_node& at) {
  if (!object.is_object()) throw wrong(at, "is no object");
  for (const auto* field : {"apiVersion", "kind"}) {
    if (find_string(object, {field}).empty()) {
      throw wrong(at, std::string(field) + " is missing or no string");
    }
  }
}

void check_name(const json::value& object, const yaml_node& at) {
  check(object, at);
  if (!find_string(object, {"metadata", "name"}).empty()) return;
  throw wrong(at, "metadata.name is missing or no string");
}

void add(json::value object, const yaml_node& at, std::vector<json::value>& into) {
  check(object, at);
  if (find_string(object, {"kind"}) != "List" || find_string(object, {"apiVersion"}) != "v1") {
    check_name(object, at);
    into.push_back(std::move(object));
    return;
  }
  auto* const items = object.as_object().if_contains("items");
  if (items == nullptr || !items->is_array()) throw wrong(at, "a List without items");
  for (auto& item : items->as_array()) {
    check_name(item, at);
    into.push_back(std::move(item));
  }
}

/// A kind, its rank in the order of application and, if every API server has it, its resource.
struct ranked {
  std::string_view group;
  std::string_view kind;
  int rank;
  std::string_view version = {};
  std::string_view plural = {};
  bool namespaced = true;
};
constexpr std::string_view rbac = "rbac.authorization.k8s.io";
constexpr int custom_rank = 80;
constexpr std::array ranks = {
    ranked{"", "Namespace", 0, "v1", "namespaces", false},
    ranked{"apiextensions.k8s.io", "CustomResourceDefinition", 10, "v1",
           "customresourcedefinitions", false},
    ranked{"scheduling.k8s.io", "PriorityClass", 20, "v1", "priorityclasses", false},
    ranked{"storage.k8s.io", "StorageClass", 20},
    ranked{"", "ResourceQuota", 20, "v1", "resourcequotas"},
    ranked{"", "LimitRange", 20, "v1", "limitranges"},
    ranked{"networking.k8s.io", "NetworkPolicy", 20, "v1", "networkpolicies"},
    ranked{"", "ServiceAccount", 30, "v1", "serviceaccounts"},
    ranked{"", "Secret", 35, "v1", "secrets"},
    ranked{"", "ConfigMap", 35, "v1", "configmaps"},
    ranked{"certificates.k8s.io", "ClusterTrustBundle", 35},
    ranked{"", "PersistentVolume", 35, "v1", "persistentvolumes", false},
    ranked{"", "PersistentVolumeClaim", 36, "v1", "persistentvolumeclaims"},
    ranked{rbac, "ClusterRole", 40, "v1", "clusterroles", false},
    ranked{rbac, "Role", 40, "v1", "roles"},
    ranked{rbac, "ClusterRoleBinding", 45, "v1", "clusterrolebindings", false},
    ranked{rbac, "RoleBinding", 45, "v1", "rolebindings"},
    ranked{"", "Service", 50, "v1", "services"},
    ranked{"apps", "DaemonSet", 60, "v1", "daemonsets"},
    ranked{"apps", "Deployment", 60, "v1", "deployments"},
    ranked{"apps", "StatefulSet", 60, "v1", "statefulsets"},
    ranked{"apps", "ReplicaSet", 60, "v1", "replicasets"},
    ranked{"batch", "Job", 60, "v1", "jobs"},
    ranked{"batch", "CronJob", 60},
    ranked{"", "Pod", 60, "v1", "pods"},
    ranked{"policy", "PodDisruptionBudget", 70},
    ranked{"autoscaling", "HorizontalPodAutoscaler", 70},
    ranked{"networking.k8s.io", "Ingress", 70, "v1", "ingresses"},
    ranked{"apiregistration.k8s.io", "APIService", 70},
    ranked{"admissionregistration.k8s.io", "MutatingWebhookConfiguration", 90, "v1",
           "mutatingwebhookconfigurations", false},
    ranked{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", 90, "v1",
           "validatingwebhookconfigurations", false},
};

const ranked* find_kind(std::string_view api_version, std::string_view kind) noexcept {
  const auto slash = api_version.find('/');
  const auto group =
      slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
  const auto* const found = std::ranges::find_if(
      ranks, [&](const ranked& entry) { return entry.kind == kind && entry.group == group; });
  return found == ranks.end() ? nullptr : found;
}

}  // namespace

std::string manifest_error::message() const {
  std::string out;
  if (document > 0) out += "document " + std::to_string(document);
  if (line > 0) out += (out.empty() ? "line " : ", line ") + std::to_string(line);
  return out.empty() ? text : out + ": " + text;
}

void throw_exception_from_error(const manifest_error& defect,
                                const boost::source_location& location) {
  boost::throw_exception(std::runtime_error(defect.message()), location);
}

manifest_result<std::vector<json::value>> parse_manifests(const std::string& text,
                                                          manifest_limits limits) {
  if (text.size() > limits.bytes) {
    return manifest_error{.text = "is larger than " + std::to_string(limits.bytes) + " bytes"};
  }
  std::vector<json::value> out;
  std::size_t document = 0;
  try {
    const yaml_stream documents(text, limits.values);
    yaml_reader all(limits.values, text.size());
    for (const auto* node : documents.documents()) {
      ++document;
      if (node == nullptr) continue;
      auto value = all.read(*node);
      if (!value.is_null()) add(std::move(value), *node, out);
    }
  } catch (const wrong& e) {
    return manifest_error{document, e.line, e.what()};
  } catch (const yaml_error& e) {
    return manifest_error{e.document, e.line, e.what()};
  }
  return out;
}

int apply_rank(std::string_view api_version, std::string_view kind) noexcept {
  const auto* const known = find_kind(api_version, kind);
  return known != nullptr ? known->rank : custom_rank;
}

std::optional<resource_type> well_known_type(std::string_view api_version, std::string_view kind) {
  const auto* const known = find_kind(api_version, kind);
  if (known == nullptr || known->plural.empty()) return {};
  resource_type out{{{}, {}, std::string(kind)}, std::string(known->plural), known->namespaced};
  if (!parse_api_version(api_version, out.gvk) || out.gvk.version != known->version) return {};
  return out;
}

void sort_for_apply(std::vector<json::value>& objects) {
  std::vector<std::pair<int, std::size_t>> order;
  for (const auto& object : objects) {
    const auto rank =
        apply_rank(find_string(object, {"apiVersion"}), find_string(object, {"kind"}));
    order.emplace_back(rank, order.size());
  }
  std::ranges::sort(order);
  std::vector<json::value> sorted;
  for (const auto& [rank, at] : order) sorted.push_back(std::move(objects[at]));
  objects = std::move(sorted);
}

}  // namespace rw::k8s
