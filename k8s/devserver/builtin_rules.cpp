#include "rw/k8s/devserver/builtin_rules.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/devserver/builtin_content.hpp"
#include "rw/k8s/devserver/definitions.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/network_checks.hpp"
#include "rw/k8s/devserver/object_meta.hpp"
#include "rw/k8s/devserver/pod_admission.hpp"
#include "rw/k8s/devserver/pod_checks.hpp"
#include "rw/k8s/devserver/quantity.hpp"
#include "rw/k8s/devserver/services.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/label_selector.hpp"
#include "rw/k8s/objects/qualified_name.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

void default_namespace(json::object& object) {
  auto& metadata = object_in(object, "metadata");
  object_in(metadata, "labels")["kubernetes.io/metadata.name"] = metadata["name"];
}

/// Stores plain text (stringData) as base64, like the rest.
void default_secret(json::object& object) {
  // Bytes that are null are empty.
  if (auto* const data = object.if_contains("data"); data != nullptr && data->is_object()) {
    for (auto& [name, value] : data->get_object()) {
      if (value.is_null()) value = "";
    }
  }
  auto* plain = object.if_contains("stringData");
  if (plain == nullptr) return;
  if (plain->is_object()) {
    auto& data = object_in(object, "data");
    plain = object.if_contains("stringData");
    for (const auto& [name, value] : plain->get_object()) {
      if (value.is_string()) data[name] = base64_encode(view(value.get_string()));
    }
  }
  object.erase("stringData");
}

void default_definition(json::object& object) {
  auto& spec = object_in(object, "spec");
  set_default(object_in(spec, "conversion"), "strategy", "None");
  auto& names = object_in(spec, "names");
  const auto* given = names.if_contains("kind");
  if (given == nullptr || !given->is_string()) return;
  std::string kind(view(given->get_string()));
  set_default(names, "listKind", json::string(kind + "List"));
  set_default(names, "singular", json::string(core::lower(kind)));
}

/// Adds a finalizer (admission plugin StorageObjectInUseProtection).
void protect(json::value& object, const std::string& finalizer) {
  auto names = finalizers_of(object);
  if (std::ranges::find(names, finalizer) == names.end()) names.push_back(finalizer);
  set_finalizers(object, names);
}

/// The generation of its template, which older clients read.
void number_template(const json::value& before, json::value& object) {
  constexpr std::string_view name = "deprecated.daemonset.template.generation";
  const auto* const was = find(before, {"spec", "template"});
  const auto* const is = find(object, {"spec", "template"});
  const std::string text(find_string(before, {"metadata", "annotations", name}));
  auto number = std::max(std::strtoll(text.c_str(), nullptr, 10), 1LL);
  if (was != nullptr && is != nullptr && *was != *is) ++number;
  auto& metadata = object_in(object.as_object(), "metadata");
  object_in(metadata, "annotations")[name] = std::to_string(number);
}

bool differs(const json::value& before, const json::value& object, std::string_view field) {
  const auto* const was = find(before, {field});
  const auto* const is = find(object, {field});
  return (was == nullptr) != (is == nullptr) || (was != nullptr && *was != *is);
}

/// Checks the rules of a Role or ClusterRole (Kubernetes, "pkg/apis/rbac/validation").
void check_role(const json::value&, const json::value& object, std::vector<cause>& found) {
  const auto& rules = array_at(object, {"rules"});
  const bool of_cluster = find_string(object, {"kind"}) == "ClusterRole";
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto at = "rules[" + std::to_string(i) + "].";
    const auto has = [&](std::string_view field) { return !array_at(rules[i], {field}).empty(); };
    if (!has("verbs")) {
      found.push_back({at + "verbs", "FieldValueRequired",
                       "Required value: verbs must contain at least one value"});
    }
    if (has("nonResourceURLs")) {
      if (!of_cluster) {
        found.push_back({at + "nonResourceURLs", "FieldValueInvalid",
                         "Invalid value: namespaced rules cannot apply to non-resource URLs"});
      }
      if (has("apiGroups") || has("resources") || has("resourceNames")) {
        found.push_back({at + "nonResourceURLs", "FieldValueInvalid",
                         "Invalid value: rules cannot apply to both regular resources and "
                         "non-resource URLs"});
      }
      continue;
    }
    if (!has("apiGroups")) {
      found.push_back({at + "apiGroups", "FieldValueRequired",
                       "Required value: resource rules must supply at least one api group"});
    }
    if (!has("resources")) {
      found.push_back({at + "resources", "FieldValueRequired",
                       "Required value: resource rules must supply at least one resource"});
    }
  }
}

/// A claim has the source of its data in the older field and in the newer one.
void copy_data_source(json::value& object) {
  auto& spec = object_in(object.as_object(), "spec");
  const auto* const older = spec.if_contains("dataSource");
  const auto* const newer = spec.if_contains("dataSourceRef");
  if (older != nullptr && newer == nullptr) {
    spec["dataSourceRef"] = json::value(*older);
  } else if (older == nullptr && newer != nullptr && find_string(*newer, {"namespace"}).empty()) {
    spec["dataSource"] = json::value(*newer);
  }
}

/// A new Node is not ready (admission plugin TaintNodesByCondition).
void taint_node(json::object& spec) {
  const json::value taint{{"key", "node.kubernetes.io/not-ready"}, {"effect", "NoSchedule"}};
  auto& taints = spec["taints"];
  if (!taints.is_array()) taints.emplace_array();
  if (std::ranges::count(taints.get_array(), taint) == 0) taints.get_array().push_back(taint);
}

void check_priority_class(const json::value& before, const json::value& object,
                          std::vector<cause>& found) {
  if (before.is_null() || !differs(before, object, "value")) return;
  found.push_back({"Value", "FieldValueForbidden", "Forbidden: may not be changed in an update."});
}

/// Checks an update: only the requests of a bound claim may change.
void check_volume_claim(const json::value& before, const json::value& object,
                        std::vector<cause>& found) {
  if (find(object, {"spec", "resources", "requests", "storage"}) == nullptr) {
    require(found, "spec.resources[storage]");
  } else if (const auto size = find_string(object, {"spec", "resources", "requests", "storage"});
             compare_quantities(size, "0") <= 0) {
    found.push_back(
        {"spec.resources[storage]", "FieldValueInvalid",
         "Invalid value: " + json::serialize(json::value(size)) + ": must be greater than zero"});
  }
  const auto& modes = array_at(object, {"spec", "accessModes"});
  if (modes.empty()) {
    found.push_back({"spec.accessModes", "FieldValueRequired",
                     "Required value: at least 1 access mode is required"});
  } else {
    for (const auto& mode : modes) {
      check_choice(found, "spec.accessModes", mode.is_string() ? view(mode.get_string()) : "",
                   {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"});
    }
  }
  for (const std::string field : {"storageClassName", "volumeAttributesClassName"}) {
    const auto name = find_string(object, {"spec", field});
    if (name.empty()) continue;
    for (const auto& error : dns_subdomain_errors(name)) {
      found.push_back({"spec." + field, "FieldValueInvalid",
                       "Invalid value: " + json::serialize(json::value(name)) + ": " + error});
    }
  }
  if (const auto mode = find_string(object, {"spec", "volumeMode"}); !mode.empty()) {
    check_choice(found, "spec.volumeMode", mode, {"Block", "Filesystem"});
  }
  if (before.is_null()) return;
  auto was = *find(before, {"spec"});
  auto is = *find(object, {"spec"});
  if (find_string(before, {"status", "phase"}) == "Bound") {
    for (auto* spec : {&was, &is}) object_in(spec->as_object(), "resources").erase("requests");
  }
  if (was == is) return;
  found.push_back({"spec", "FieldValueForbidden",
                   "Forbidden: spec is immutable after creation except resources.requests and "
                   "volumeAttributesClassName for bound claims"});
}

/// Checks a StorageClass (Kubernetes, "pkg/apis/storage/validation"), of which little may change.
void check_storage_class(const json::value& before, const json::value& object,
                         std::vector<cause>& found) {
  if (find_string(object, {"provisioner"}).empty()) require(found, "provisioner");
  if (before.is_null()) return;
  for (const std::string field : {"parameters", "provisioner", "reclaimPolicy"}) {
    if (!differs(before, object, field)) continue;
    found.push_back(
        {field, "FieldValueForbidden", "Forbidden: updates to " + field + " are forbidden."});
  }
  if (differs(before, object, "volumeBindingMode")) {
    found.push_back({"volumeBindingMode", "FieldValueInvalid",
                     "Invalid value: \"" + std::string(find_string(object, {"volumeBindingMode"})) +
                         "\": field is immutable"});
  }
}

struct defaults {
  std::string_view storage_key;
  void (*fill)(json::object&);
};

/// It stands for a number, which is 0 where a client leaves it out; number_template counts.
void default_daemon_set(json::object& object) {
  auto& annotations = object_in(object_in(object, "metadata"), "annotations");
  set_default(annotations, "deprecated.daemonset.template.generation", "0");
}

constexpr std::array all_defaults{
    defaults{"daemonsets.apps", &default_daemon_set},
    defaults{"namespaces", &default_namespace},
    defaults{"secrets", &default_secret},
    defaults{definitions_key, &default_definition},
};

struct check {
  std::string_view storage_key;
  void (*find)(const json::value& before, const json::value& object, std::vector<cause>& found);
};

constexpr std::array all_checks{
    check{definitions_key, &check_definition},
    check{"configmaps", &check_config_map},
    check{"secrets", &check_secret},
    check{"services", &check_service},
    check{"validatingwebhookconfigurations.admissionregistration.k8s.io", &check_webhooks},
    check{"mutatingwebhookconfigurations.admissionregistration.k8s.io", &check_webhooks},
    check{"pods", &check_pod},
    check{"deployments.apps", &check_workload},
    check{"replicasets.apps", &check_workload},
    check{"daemonsets.apps", &check_workload},
    check{"statefulsets.apps", &check_stateful_set},
    check{"jobs.batch", &check_job},
    check{"cronjobs.batch", &check_cron_job},
    check{"leases.coordination.k8s.io", &check_lease},
    check{"roles.rbac.authorization.k8s.io", &check_role},
    check{"clusterroles.rbac.authorization.k8s.io", &check_role},
    check{"ingresses.networking.k8s.io", &check_ingress},
    check{"networkpolicies.networking.k8s.io", &check_network_policy},
    check{"priorityclasses.scheduling.k8s.io", &check_priority_class},
    check{"persistentvolumeclaims", &check_volume_claim},
    check{"storageclasses.storage.k8s.io", &check_storage_class},
    check{"rolebindings.rbac.authorization.k8s.io", &check_role_binding},
    check{"clusterrolebindings.rbac.authorization.k8s.io", &check_role_binding},
};

}  // namespace

void require(std::vector<cause>& found, const std::string& field) {
  found.push_back({field, "FieldValueRequired", "Required value"});
}

void check_choice(std::vector<cause>& found, const std::string& field, std::string_view value,
                  std::initializer_list<std::string_view> supported) {
  if (std::ranges::find(supported, value) != supported.end()) return;
  std::string all;
  for (const auto candidate : supported) {
    if (!all.empty()) all += ", ";
    all += "\"" + std::string(candidate) + "\"";
  }
  found.push_back(
      {field, "FieldValueNotSupported",
       "Unsupported value: " + json::serialize(json::value(value)) + ": supported values: " + all});
}

void fill_builtin_defaults(const resource& of, json::value& object) {
  for (const auto& rule : all_defaults) {
    if (rule.storage_key == of.storage_key) rule.fill(object.as_object());
  }
}

void begin_builtin_life(const resource& of, json::value& object, const std::string& now) {
  if (of.storage_key == "namespaces") {
    object_in(object.as_object(), "spec")["finalizers"] = json::array{"kubernetes"};
    object_in(object.as_object(), "status")["phase"] = "Active";
  } else if (of.storage_key == "jobs.batch") {
    begin_job(object);
  } else if (of.storage_key == "daemonsets.apps") {
    number_template({}, object);
  } else if (of.storage_key == "persistentvolumes") {
    protect(object, "kubernetes.io/pv-protection");
    object_in(object.as_object(), "status")["lastPhaseTransitionTime"] = now;
  } else if (of.storage_key == "persistentvolumeclaims") {
    protect(object, "kubernetes.io/pvc-protection");
    copy_data_source(object);
  } else if (of.storage_key == "nodes") {
    taint_node(object_in(object.as_object(), "spec"));
  } else if (of.storage_key == definitions_key) {
    set_finalizers(object, {std::string(definition_finalizer)});
  }
}

outcome<void> allocate_builtin(const cluster& in, const resource& of, const json::value& before,
                               json::value& object) {
  if (of.storage_key == "services") return allocate_service(in, before, object);
  if (of.storage_key == "pods" && before.is_null()) return admit_pod(in, object);
  return {};
}

void carry_allocated(const resource& of, const json::value& before, json::value& object) {
  if (of.storage_key == "services") carry_service(before, object);
  if (of.storage_key == "pods") carry_admitted(before, object);
  if (of.storage_key == "daemonsets.apps") number_template(before, object);
  if (of.storage_key == "persistentvolumeclaims") copy_data_source(object);
}

bool has_room_for(const cluster& in, const resource& of, const json::value& object) {
  return of.storage_key != "services" || has_free_address(in, object);
}

void settle_builtin(const cluster& in, const resource& of, json::value& object,
                    const std::string& now) {
  if (of.storage_key == definitions_key) establish_definition(in.kinds, object, now);
}

void warn_of_builtin(const resource& of, const json::value& object,
                     std::vector<std::string>& warnings) {
  if (of.storage_key == "pods") {
    if (const auto* const spec = find(object, {"spec"})) warn_of_pod_spec(*spec, "spec", warnings);
  } else if (const auto* const spec = find(object, {"spec", "template", "spec"})) {
    warn_of_pod_spec(*spec, "spec.template.spec", warnings);
  } else if (const auto* const job =
                 find(object, {"spec", "jobTemplate", "spec", "template", "spec"})) {
    warn_of_pod_spec(*job, "spec.jobTemplate.spec.template.spec", warnings);
  }
}

void check_builtin(const resource& of, const json::value& before, const json::value& object,
                   std::vector<cause>& found) {
  for (const auto& check : all_checks) {
    if (check.storage_key == of.storage_key) check.find(before, object, found);
  }
}

}  // namespace rw::k8s::devserver
