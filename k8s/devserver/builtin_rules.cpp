#include "rw/k8s/devserver/builtin_rules.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/devserver/builtin_content.hpp"
#include "rw/k8s/devserver/definitions.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/object_meta.hpp"
#include "rw/k8s/devserver/pod_checks.hpp"
#include "rw/k8s/devserver/services.hpp"
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

struct defaults {
  std::string_view storage_key;
  void (*fill)(json::object&);
};

constexpr std::array all_defaults{
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
    check{"rolebindings.rbac.authorization.k8s.io", &check_role_binding},
    check{"clusterrolebindings.rbac.authorization.k8s.io", &check_role_binding},
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

void begin_builtin_life(const resource& of, json::value& object) {
  if (of.storage_key == "namespaces") {
    object_in(object.as_object(), "spec")["finalizers"] = json::array{"kubernetes"};
    object_in(object.as_object(), "status")["phase"] = "Active";
  } else if (of.storage_key == "jobs.batch") {
    begin_job(object);
  } else if (of.storage_key == definitions_key) {
    set_finalizers(object, {std::string(definition_finalizer)});
  }
}

outcome<void> allocate_builtin(const cluster& in, const resource& of, const json::value& before,
                               json::value& object) {
  return of.storage_key == "services" ? allocate_service(in, before, object) : outcome<void>();
}

void carry_allocated(const resource& of, const json::value& before, json::value& object) {
  if (of.storage_key == "services") carry_service(before, object);
}

bool has_room_for(const cluster& in, const resource& of, const json::value& object) {
  return of.storage_key != "services" || has_free_address(in, object);
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
