#include "rw/k8s/devserver/schema.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/json/value.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// The merge behaviour of a field of a built-in type. Fields without a row are free-form: objects
/// are merged field by field, lists are replaced.
enum class shape : std::uint8_t {
  object,          ///< of a type that has rows of its own; always present
  atomic_object,   ///< one unit for server-side apply
  list_map,        ///< items are identified by their keys; the first is also the patch merge key
  list_set,        ///< primitives that are merged as a set
  list_map_apply,  ///< as list_map, but a strategic merge patch replaces the list
  list_set_apply,
  text,  ///< with a default value: `of`
};
using enum shape;

struct row {
  std::string_view type;
  std::string_view field;
  shape is;
  std::string_view of = {};                 ///< type of the object or of the items
  std::array<std::string_view, 2> by = {};  ///< keys of list_map
};

// In addition, `metadata` is an ObjectMeta everywhere. From the x-kubernetes-* fields of the
// OpenAPI document of Kubernetes 1.20 (/openapi/v2), and for newer fields, of the API reference.
constexpr row rows[] = {
    {"ObjectMeta", "finalizers", list_set},
    {"ObjectMeta", "ownerReferences", list_map, {}, {"uid"}},

    {"Pod", "spec", object, "PodSpec"},
    {"Pod", "status", object, "PodStatus"},
    {"PodTemplate", "template", object, "PodTemplateSpec"},
    {"PodTemplateSpec", "spec", object, "PodSpec"},
    {"PodSpec", "containers", list_map, "Container", {"name"}},
    {"PodSpec", "initContainers", list_map, "Container", {"name"}},
    {"PodSpec", "ephemeralContainers", list_map, "Container", {"name"}},
    {"PodSpec", "volumes", list_map, "Volume", {"name"}},
    {"PodSpec", "hostAliases", list_map, {}, {"ip"}},
    {"PodSpec", "imagePullSecrets", list_map, {}, {"name"}},
    {"PodSpec", "resourceClaims", list_map, {}, {"name"}},
    {"PodSpec", "schedulingGates", list_map, {}, {"name"}},
    {"PodSpec",
     "topologySpreadConstraints",
     list_map,
     "TopologySpreadConstraint",
     {"topologyKey", "whenUnsatisfiable"}},
    {"TopologySpreadConstraint", "labelSelector", atomic_object},
    {"Container", "env", list_map, {}, {"name"}},
    {"Container", "ports", list_map, "Port", {"containerPort", "protocol"}},
    {"Port", "protocol", text, "TCP"},
    {"Container", "resources", object, "ResourceRequirements"},
    {"Container", "volumeDevices", list_map, {}, {"devicePath"}},
    {"Container", "volumeMounts", list_map, {}, {"mountPath"}},
    {"ResourceRequirements", "claims", list_map_apply, {}, {"name"}},
    {"PodStatus", "conditions", list_map, {}, {"type"}},
    {"PodStatus", "podIPs", list_map, {}, {"ip"}},

    {"Deployment", "spec", object, "WorkloadSpec"},
    {"Deployment", "status", object, "ConditionsStatus"},
    {"ReplicaSet", "spec", object, "WorkloadSpec"},
    {"ReplicaSet", "status", object, "ConditionsStatus"},
    {"StatefulSet", "spec", object, "WorkloadSpec"},
    {"StatefulSet", "status", object, "ConditionsStatus"},
    {"DaemonSet", "spec", object, "WorkloadSpec"},
    {"DaemonSet", "status", object, "ConditionsStatus"},
    {"Job", "spec", object, "WorkloadSpec"},
    {"Job", "status", object, "ConditionsStatus"},
    {"CronJob", "spec", object, "CronJobSpec"},
    {"CronJobSpec", "jobTemplate", object, "JobTemplateSpec"},
    {"JobTemplateSpec", "spec", object, "WorkloadSpec"},
    {"ReplicationController", "spec", object, "ReplicationControllerSpec"},
    {"ReplicationController", "status", object, "ConditionsStatus"},
    {"ReplicationControllerSpec", "template", object, "PodTemplateSpec"},
    {"WorkloadSpec", "selector", atomic_object},
    {"WorkloadSpec", "strategy", object, "Strategy"},
    {"WorkloadSpec", "updateStrategy", object, "Strategy"},
    {"WorkloadSpec", "template", object, "PodTemplateSpec"},
    {"ConditionsStatus", "conditions", list_map, {}, {"type"}},

    {"Service", "spec", object, "ServiceSpec"},
    {"Service", "status", object, "ConditionsStatus"},
    {"ServiceSpec", "ports", list_map, "Port", {"port", "protocol"}},
    {"ServiceAccount", "secrets", list_map, {}, {"name"}},
    {"Namespace", "status", object, "ConditionsStatus"},
    {"ComponentStatus", "conditions", list_map, {}, {"type"}},
    {"PersistentVolumeClaim", "spec", object, "SelectorSpec"},
    {"PersistentVolumeClaim", "status", object, "ConditionsStatus"},
    {"Node", "spec", object, "NodeSpec"},
    {"Node", "status", object, "NodeStatus"},
    {"NodeSpec", "podCIDRs", list_set},
    {"NodeStatus", "addresses", list_map, {}, {"type"}},
    {"NodeStatus", "conditions", list_map, {}, {"type"}},

    {"ValidatingWebhookConfiguration", "webhooks", list_map, "Webhook", {"name"}},
    {"MutatingWebhookConfiguration", "webhooks", list_map, "Webhook", {"name"}},
    {"Webhook", "namespaceSelector", atomic_object},
    {"Webhook", "objectSelector", atomic_object},
    {"Webhook", "matchConditions", list_map, {}, {"name"}},

    {"NetworkPolicy", "spec", object, "NetworkPolicySpec"},
    {"NetworkPolicySpec", "podSelector", atomic_object},
    {"PodDisruptionBudget", "spec", object, "SelectorSpec"},
    {"PodDisruptionBudget", "status", object, "ConditionsStatus"},
    {"SelectorSpec", "selector", atomic_object},
    {"CSINode", "spec", object, "CSINodeSpec"},
    {"CSINodeSpec", "drivers", list_map, {}, {"name"}},
    {"CSIDriver", "spec", object, "CSIDriverSpec"},
    {"CSIDriverSpec", "volumeLifecycleModes", list_set_apply},
    {"APIService", "status", object, "ConditionsStatus"},
    {"CertificateSigningRequest", "status", object, "AppliedConditionsStatus"},
    {"FlowSchema", "status", object, "AppliedConditionsStatus"},
    {"PriorityLevelConfiguration", "status", object, "AppliedConditionsStatus"},
    {"AppliedConditionsStatus", "conditions", list_map_apply, {}, {"type"}},
};

/// A type without rows: free-form, except for the API's convention of fixed names in objects.
class free_form : public schema {
 public:
  const schema* property(std::string_view) const override { return this; }
  bool declares(std::string_view) const override { return true; }
  const schema* items() const override { return nullptr; }
  list_type merge() const override { return list_type::atomic; }
  const std::vector<std::string>& list_map_keys() const override { return keys_; }
  bool atomic_object() const override { return false; }
  std::string_view patch_merge_key() const override { return {}; }
  bool patch_merges() const override { return false; }

  void fill_defaults(json::value&) const override {}
  void validate(const json::value&, const std::string&, std::vector<cause>&) const override {}

  /// No field is unknown, but null means absent, as for JSON decoded into a type.
  void prune(json::value& object, std::vector<std::string>&) const override { drop_nulls(object); }

 protected:
  std::vector<std::string> keys_;

 private:
  static void drop_nulls(json::value& value) {
    if (value.is_array()) {
      for (auto& one : value.get_array()) drop_nulls(one);
    } else if (value.is_object()) {
      auto& fields = value.get_object();
      for (auto at = fields.begin(); at != fields.end();) {
        if (at->value().is_null()) {
          at = fields.stable_erase(at);
        } else {
          drop_nulls(at++->value());
        }
      }
    }
  }
};

const free_form anything;

/// A type, or a field of one.
class node final : public free_form {
 public:
  explicit node(const row* of = nullptr) : row_(of) {
    if (row_ == nullptr) return;
    for (const auto key : row_->by) {
      if (!key.empty()) keys_.emplace_back(key);
    }
  }

  void add_field(std::string_view name, std::unique_ptr<node> field) {
    fields_.emplace(name, std::move(field));
  }
  /// The type that the field is, or that its items are.
  void refer_to(const schema* type) { type_ = type; }

  const schema* property(std::string_view name) const override {
    if (is(object)) return type_->property(name);
    const auto found = fields_.find(name);
    return found != fields_.end() ? found->second.get() : &anything;
  }
  const schema* items() const override { return is(object) ? nullptr : type_; }
  bool always_present(std::string_view name) const override {
    if (is(object)) return type_->always_present(name);
    const auto found = fields_.find(name);
    return found != fields_.end() && (found->second->is(object) || name == "containers");
  }

  list_type merge() const override {
    if (is(list_map) || is(list_map_apply)) return list_type::map;
    return is(list_set) || is(list_set_apply) ? list_type::set : list_type::atomic;
  }
  const std::vector<std::string>& list_map_keys() const override { return keys_; }
  bool atomic_object() const override { return is(shape::atomic_object); }
  std::string_view patch_merge_key() const override {
    return is(list_map) ? std::string_view(keys_.front()) : std::string_view();
  }
  bool patch_merges() const override { return is(list_map) || is(list_set); }

  void fill_defaults(json::value& value) const override {
    if (value.is_array() && type_ != nullptr) {
      for (auto& item : value.get_array()) type_->fill_defaults(item);
    }
    if (!value.is_object()) return;
    if (is(object)) return type_->fill_defaults(value);
    for (const auto& [name, field] : fields_) {
      if (field->is(text)) {
        value.get_object().emplace(name, field->row_->of);
      } else if (auto* const found = value.get_object().if_contains(name)) {
        field->fill_defaults(*found);
      }
    }
  }

 private:
  bool is(shape what) const noexcept { return row_ != nullptr && row_->is == what; }

  const row* row_;
  const schema* type_ = nullptr;
  std::map<std::string_view, std::unique_ptr<node>> fields_;
};

/// All types of the table, by name; every kind without rows has the empty name.
using types = std::map<std::string_view, node>;

constexpr row metadata_row = {"", "metadata", object, "ObjectMeta"};

types link() {
  types all;
  all[""];
  for (const auto& one : rows) all[one.type];
  for (auto& [name, type] : all) {
    auto metadata = std::make_unique<node>(&metadata_row);
    metadata->refer_to(&all["ObjectMeta"]);
    type.add_field("metadata", std::move(metadata));
  }
  for (const auto& one : rows) {
    auto field = std::make_unique<node>(&one);
    const auto of = all.find(one.of);
    const bool has_rows = !one.of.empty() && of != all.end();
    if (has_rows) {
      field->refer_to(&of->second);
    } else if (one.is == object || one.is == list_map || one.is == list_map_apply) {
      field->refer_to(&anything);
    }
    all[one.type].add_field(one.field, std::move(field));
  }
  return all;
}

/// Groups whose kinds are built in, in addition to all below k8s.io.
constexpr std::string_view built_in_groups[] = {"",      "apps",       "autoscaling",
                                                "batch", "extensions", "policy"};

bool is_built_in(std::string_view group) {
  return std::ranges::find(built_in_groups, group) != std::end(built_in_groups) ||
         group.ends_with(".k8s.io");
}

}  // namespace

std::shared_ptr<const schema> builtin_schema(std::string_view api_version, std::string_view kind) {
  static const auto all = std::make_shared<const types>(link());
  group_version_kind gvk;
  const bool known = parse_api_version(api_version, gvk) && is_built_in(gvk.group);
  auto found = all->find(known ? kind : std::string_view());
  if (found == all->end()) found = all->find("");
  return {all, &found->second};
}

}  // namespace rw::k8s::devserver
