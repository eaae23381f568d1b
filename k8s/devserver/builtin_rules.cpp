#include "rw/k8s/devserver/builtin_rules.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/devserver/builtin_content.hpp"
#include "rw/k8s/devserver/definitions.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/object_meta.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/label_selector.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

void default_namespace(json::object& object) {
  auto& metadata = object_in(object, "metadata");
  object_in(metadata, "labels")["kubernetes.io/metadata.name"] = metadata["name"];
}

/// Stores plain text (stringData) as base64, like the rest.
void default_secret(json::object& object) {
  set_default(object, "type", "Opaque");
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

void default_service(json::object& object) {
  auto& spec = object_in(object, "spec");
  set_default(spec, "type", "ClusterIP");
  set_default(spec, "sessionAffinity", "None");
  if (spec.at("type") != "ExternalName") set_default(spec, "internalTrafficPolicy", "Cluster");
  auto* ports = spec.if_contains("ports");
  if (ports == nullptr || !ports->is_array()) return;
  for (auto& one : ports->get_array()) {
    auto* port = one.if_object();
    if (port == nullptr) continue;
    set_default(*port, "protocol", "TCP");
    if (const auto* number = port->if_contains("port")) {
      set_default(*port, "targetPort", json::value(*number));
    }
  }
}

void default_replicas(json::object& object) {
  set_default(object_in(object, "spec"), "replicas", 1);
}

void default_deployment(json::object& object) {
  default_replicas(object);
  auto& spec = object_in(object, "spec");
  set_default(spec, "revisionHistoryLimit", 10);
  set_default(spec, "progressDeadlineSeconds", 600);
  auto& strategy = object_in(spec, "strategy");
  set_default(strategy, "type", "RollingUpdate");
  if (strategy.at("type") != "RollingUpdate") return;
  auto& rolling = object_in(strategy, "rollingUpdate");
  set_default(rolling, "maxUnavailable", "25%");
  set_default(rolling, "maxSurge", "25%");
}

void default_pod(json::object& object) {
  auto& spec = object_in(object, "spec");
  set_default(spec, "restartPolicy", "Always");
  set_default(spec, "terminationGracePeriodSeconds", 30);
  set_default(spec, "dnsPolicy", "ClusterFirst");
  set_default(object_in(object, "status"), "phase", "Pending");
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

void default_webhooks(json::object& object) {
  auto* hooks = object.if_contains("webhooks");
  if (hooks == nullptr || !hooks->is_array()) return;
  for (auto& one : hooks->get_array()) {
    auto* hook = one.if_object();
    if (hook == nullptr) continue;
    set_default(*hook, "failurePolicy", "Fail");
    set_default(*hook, "matchPolicy", "Equivalent");
    set_default(*hook, "timeoutSeconds", 10);
    object_in(*hook, "namespaceSelector");
    object_in(*hook, "objectSelector");
    auto* rules = hook->if_contains("rules");
    if (rules != nullptr && rules->is_array()) {
      for (auto& rule : rules->get_array()) {
        if (rule.is_object()) set_default(rule.get_object(), "scope", "*");
      }
    }
    auto* service = find(one, {"clientConfig", "service"});
    if (service != nullptr && service->is_object()) {
      set_default(service->get_object(), "port", 443);
    }
  }
}

struct defaults {
  std::string_view storage_key;
  void (*fill)(json::object&);
};

constexpr std::array all_defaults{
    defaults{"namespaces", &default_namespace},
    defaults{"secrets", &default_secret},
    defaults{"services", &default_service},
    defaults{"pods", &default_pod},
    defaults{"replicationcontrollers", &default_replicas},
    defaults{"deployments.apps", &default_deployment},
    defaults{"replicasets.apps", &default_replicas},
    defaults{"statefulsets.apps", &default_replicas},
    defaults{definitions_key, &default_definition},
    defaults{"validatingwebhookconfigurations.admissionregistration.k8s.io", &default_webhooks},
    defaults{"mutatingwebhookconfigurations.admissionregistration.k8s.io", &default_webhooks},
};

std::vector<std::string> taken_addresses(const cluster& in) {
  std::vector<std::string> taken{"10.96.0.1"};
  const auto services = in.objects.find("services");
  if (services) {
    services->visit({}, [&](const record_ptr& one) {
      taken.emplace_back(find_string(one->parse(), {"spec", "clusterIP"}));
      return true;
    });
  }
  return taken;
}

/// Returns an address of 10.96.0.0/16 that no other Service of the cluster has.
std::string free_address(const cluster& in) {
  const auto taken = taken_addresses(in);
  for (unsigned i = 2; i < 65534; ++i) {
    auto address = "10.96." + std::to_string(i >> 8) + "." + std::to_string(i & 255);
    if (std::find(taken.begin(), taken.end(), address) == taken.end()) return address;
  }
  return {};
}

void give_address(const cluster& in, json::value& object) {
  if (find_string(object, {"spec", "type"}) == "ExternalName") return;
  auto& spec = object_in(object.as_object(), "spec");
  if (find_string(object, {"spec", "clusterIP"}).empty()) {
    spec["clusterIP"] = json::string(free_address(in));
  }
  set_default(spec, "clusterIPs", json::array{spec.at("clusterIP")});
}

void check_service(const json::value& before, const json::value& object,
                   std::vector<cause>& found) {
  const auto* ports = find(object, {"spec", "ports"});
  const auto address = find_string(object, {"spec", "clusterIP"});
  const bool needs_ports =
      find_string(object, {"spec", "type"}) != "ExternalName" && address != "None";
  if (needs_ports && (ports == nullptr || !ports->is_array() || ports->get_array().empty())) {
    require(found, "spec.ports");
  }
  const auto had = find_string(before, {"spec", "clusterIP"});
  if (!had.empty() && find_string(object, {"spec", "type"}) != "ExternalName" && address != had) {
    found.push_back({"spec.clusterIP", "FieldValueInvalid",
                     "Invalid value: \"" + std::string(address) + "\": field is immutable"});
  }
}

void check_workload(const json::value& before, const json::value& object,
                    std::vector<cause>& found) {
  const auto* selector = find(object, {"spec", "selector"});
  if (selector == nullptr || selector->is_null()) {
    require(found, "spec.selector");
    return;
  }
  const auto* had = find(before, {"spec", "selector"});
  if (had != nullptr && *had != *selector) {
    found.push_back({"spec.selector", "FieldValueInvalid",
                     "Invalid value: " + json::serialize(*selector) + ": field is immutable"});
  }
  const auto* labels = find(object, {"spec", "template", "metadata", "labels"});
  const auto matches = label_selector::from_json(*selector);
  if (matches.has_value() && !matches->matches(labels)) {
    found.push_back(
        {"spec.template.metadata.labels", "FieldValueInvalid",
         "Invalid value: " + (labels == nullptr ? std::string("null") : json::serialize(*labels)) +
             ": `selector` does not match template `labels`"});
  }
}

void check_pod(const json::value&, const json::value& object, std::vector<cause>& found) {
  const auto* containers = find(object, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array() || containers->get_array().empty()) {
    require(found, "spec.containers");
  }
}

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
    check{"statefulsets.apps", &check_workload},
};

}  // namespace

void require(std::vector<cause>& found, const std::string& field) {
  found.push_back({field, "FieldValueRequired", "Required value"});
}

void fill_builtin_defaults(const resource& of, json::value& object) {
  for (const auto& one : all_defaults) {
    if (one.storage_key == of.storage_key) one.fill(object.as_object());
  }
}

void begin_builtin_life(const cluster& in, const resource& of, json::value& object) {
  if (of.storage_key == "namespaces") {
    object_in(object.as_object(), "spec")["finalizers"] = json::array{"kubernetes"};
    object_in(object.as_object(), "status")["phase"] = "Active";
  } else if (of.storage_key == "services") {
    give_address(in, object);
  } else if (of.storage_key == definitions_key) {
    set_finalizers(object, {std::string(definition_finalizer)});
  }
}

bool has_room_for(const cluster& in, const resource& of, const json::value& object) {
  if (of.storage_key != "services") return true;
  const auto address = find_string(object, {"spec", "clusterIP"});
  const auto taken = taken_addresses(in);
  return address.empty() || address == "None" || std::ranges::find(taken, address) == taken.end();
}

void settle_builtin(const cluster& in, const resource& of, json::value& object,
                    const std::string& now) {
  if (of.storage_key == definitions_key) establish_definition(in.kinds, object, now);
}

void check_builtin(const resource& of, const json::value& before, const json::value& object,
                   std::vector<cause>& found) {
  for (const auto& one : all_checks) {
    if (one.storage_key == of.storage_key) one.find(before, object, found);
  }
}

}  // namespace rw::k8s::devserver
