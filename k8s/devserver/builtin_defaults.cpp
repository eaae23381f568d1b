#include "rw/k8s/devserver/builtin_defaults.hpp"

#include "rw/k8s/devserver/json_access.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// The defaults of built-in kinds, by Go type. Source: the Kubernetes API reference ("Defaults to
// ..."), and answers of kube-apiserver 1.34 (tests/conformance/replay_test.cpp).

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

struct row {
  std::string_view type;
  std::string_view field;
  std::string_view value;       ///< JSON
  std::string_view given = {};  ///< only if this field ...
  std::string_view among = {};  ///< ... has one of these values, separated by blanks
};

constexpr row rows[] = {
    {"core/v1.PodSpec", "restartPolicy", R"("Always")"},
    {"core/v1.PodSpec", "terminationGracePeriodSeconds", "30"},
    {"core/v1.PodSpec", "dnsPolicy", R"("ClusterFirst")"},
    {"core/v1.PodSpec", "securityContext", "{}"},
    {"core/v1.PodSpec", "schedulerName", R"("default-scheduler")"},
    {"core/v1.PodStatus", "phase", R"("Pending")"},
    {"core/v1.EndpointPort", "protocol", R"("TCP")"},
    {"core/v1.Container", "terminationMessagePath", R"("/dev/termination-log")"},
    {"core/v1.Container", "terminationMessagePolicy", R"("File")"},
    {"core/v1.EphemeralContainerCommon", "terminationMessagePath", R"("/dev/termination-log")"},
    {"core/v1.EphemeralContainerCommon", "terminationMessagePolicy", R"("File")"},
    {"core/v1.ObjectFieldSelector", "apiVersion", R"("v1")"},
    {"core/v1.Probe", "timeoutSeconds", "1"},
    {"core/v1.Probe", "periodSeconds", "10"},
    {"core/v1.Probe", "successThreshold", "1"},
    {"core/v1.Probe", "failureThreshold", "3"},
    {"core/v1.HTTPGetAction", "path", R"("/")"},
    {"core/v1.HTTPGetAction", "scheme", R"("HTTP")"},
    {"core/v1.GRPCAction", "service", R"("")"},
    {"core/v1.HostPathVolumeSource", "type", R"("")"},
    {"core/v1.SecretVolumeSource", "defaultMode", "420"},
    {"core/v1.ConfigMapVolumeSource", "defaultMode", "420"},
    {"core/v1.DownwardAPIVolumeSource", "defaultMode", "420"},
    {"core/v1.ProjectedVolumeSource", "defaultMode", "420"},
    {"core/v1.ServiceAccountTokenProjection", "expirationSeconds", "3600"},

    {"core/v1.ReplicationControllerSpec", "replicas", "1"},
    {"apps/v1.ReplicaSetSpec", "replicas", "1"},
    {"apps/v1.DeploymentSpec", "replicas", "1"},
    {"apps/v1.DeploymentSpec", "revisionHistoryLimit", "10"},
    {"apps/v1.DeploymentSpec", "progressDeadlineSeconds", "600"},
    {"apps/v1.DeploymentStrategy", "type", R"("RollingUpdate")"},
    {"apps/v1.DeploymentStrategy", "rollingUpdate", "{}", "type", "RollingUpdate"},
    {"apps/v1.RollingUpdateDeployment", "maxUnavailable", R"("25%")"},
    {"apps/v1.RollingUpdateDeployment", "maxSurge", R"("25%")"},
    {"apps/v1.StatefulSetSpec", "replicas", "1"},
    {"apps/v1.StatefulSetSpec", "podManagementPolicy", R"("OrderedReady")"},
    {"apps/v1.StatefulSetSpec", "revisionHistoryLimit", "10"},
    {"apps/v1.StatefulSetSpec", "persistentVolumeClaimRetentionPolicy",
     R"({"whenDeleted":"Retain","whenScaled":"Retain"})"},
    {"apps/v1.StatefulSetUpdateStrategy", "type", R"("RollingUpdate")"},
    {"apps/v1.StatefulSetUpdateStrategy", "rollingUpdate", "{}", "type", "RollingUpdate"},
    {"apps/v1.RollingUpdateStatefulSetStrategy", "partition", "0"},
    {"apps/v1.DaemonSetSpec", "revisionHistoryLimit", "10"},
    {"apps/v1.DaemonSetUpdateStrategy", "type", R"("RollingUpdate")"},
    {"apps/v1.DaemonSetUpdateStrategy", "rollingUpdate", "{}", "type", "RollingUpdate"},
    {"apps/v1.RollingUpdateDaemonSet", "maxUnavailable", "1"},
    {"apps/v1.RollingUpdateDaemonSet", "maxSurge", "0"},

    {"batch/v1.CronJobSpec", "concurrencyPolicy", R"("Allow")"},
    {"batch/v1.CronJobSpec", "suspend", "false"},
    {"batch/v1.CronJobSpec", "successfulJobsHistoryLimit", "3"},
    {"batch/v1.CronJobSpec", "failedJobsHistoryLimit", "1"},

    {"core/v1.ServiceSpec", "type", R"("ClusterIP")"},
    {"core/v1.ServiceSpec", "sessionAffinity", R"("None")"},
    {"core/v1.ServiceSpec", "sessionAffinityConfig", R"({"clientIP":{"timeoutSeconds":10800}})",
     "sessionAffinity", "ClientIP"},
    {"core/v1.ServiceSpec", "internalTrafficPolicy", R"("Cluster")", "type",
     "ClusterIP NodePort LoadBalancer"},
    {"core/v1.ServiceSpec", "externalTrafficPolicy", R"("Cluster")", "type",
     "NodePort LoadBalancer"},
    {"core/v1.ServiceSpec", "allocateLoadBalancerNodePorts", "true", "type", "LoadBalancer"},

    {"core/v1.PersistentVolumeSpec", "persistentVolumeReclaimPolicy", R"("Retain")"},
    {"core/v1.PersistentVolumeSpec", "volumeMode", R"("Filesystem")"},
    {"core/v1.PersistentVolumeStatus", "phase", R"("Pending")"},
    {"core/v1.PersistentVolumeClaimSpec", "volumeMode", R"("Filesystem")"},
    {"core/v1.PersistentVolumeClaimStatus", "phase", R"("Pending")"},
    {"core/v1.Secret", "type", R"("Opaque")"},
    {"storage/v1.CSIDriverSpec", "attachRequired", "true"},
    {"storage/v1.CSIDriverSpec", "podInfoOnMount", "false"},
    {"storage/v1.CSIDriverSpec", "storageCapacity", "false"},
    {"storage/v1.CSIDriverSpec", "requiresRepublish", "false"},
    {"storage/v1.CSIDriverSpec", "seLinuxMount", "false"},
    {"storage/v1.CSIDriverSpec", "fsGroupPolicy", R"("ReadWriteOnceWithFSType")"},
    {"storage/v1.CSIDriverSpec", "volumeLifecycleModes", R"(["Persistent"])"},
    {"storage/v1.StorageClass", "reclaimPolicy", R"("Delete")"},
    {"storage/v1.StorageClass", "volumeBindingMode", R"("Immediate")"},
    {"networking/v1.NetworkPolicyPort", "protocol", R"("TCP")"},
    {"discovery/v1.EndpointPort", "name", R"("")"},
    {"discovery/v1.EndpointPort", "protocol", R"("TCP")"},
    {"scheduling/v1.PriorityClass", "preemptionPolicy", R"("PreemptLowerPriority")"},
    {"autoscaling/v2.HorizontalPodAutoscalerSpec", "minReplicas", "1"},
    {"autoscaling/v2.HorizontalPodAutoscalerSpec", "metrics",
     R"([{"type":"Resource","resource":{"name":"cpu",)"
     R"("target":{"type":"Utilization","averageUtilization":80}}}])"},
    {"rbac/v1.RoleRef", "apiGroup", R"("rbac.authorization.k8s.io")"},
    {"rbac/v1.Subject", "apiGroup", R"("rbac.authorization.k8s.io")", "kind", "User Group"},

    {"admissionregistration/v1.ValidatingWebhook", "failurePolicy", R"("Fail")"},
    {"admissionregistration/v1.ValidatingWebhook", "matchPolicy", R"("Equivalent")"},
    {"admissionregistration/v1.ValidatingWebhook", "timeoutSeconds", "10"},
    {"admissionregistration/v1.ValidatingWebhook", "namespaceSelector", "{}"},
    {"admissionregistration/v1.ValidatingWebhook", "objectSelector", "{}"},
    {"admissionregistration/v1.MutatingWebhook", "failurePolicy", R"("Fail")"},
    {"admissionregistration/v1.MutatingWebhook", "matchPolicy", R"("Equivalent")"},
    {"admissionregistration/v1.MutatingWebhook", "timeoutSeconds", "10"},
    {"admissionregistration/v1.MutatingWebhook", "namespaceSelector", "{}"},
    {"admissionregistration/v1.MutatingWebhook", "objectSelector", "{}"},
    {"admissionregistration/v1.MutatingWebhook", "reinvocationPolicy", R"("Never")"},
    {"admissionregistration/v1.Rule", "scope", R"("*")"},
    {"admissionregistration/v1.ServiceReference", "port", "443"},
};

bool holds(const row& row, const json::object& object) {
  if (row.given.empty()) return true;
  const auto* const value = object.if_contains(row.given);
  if (value == nullptr || !value->is_string()) return false;
  for (auto rest = row.among; !rest.empty();) {
    const auto end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == view(value->get_string())) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

/// A reference with capitals in its path can't be parsed: it has no tag then.
bool is_parsable(std::string_view image) {
  const auto slash = image.find('/');
  const auto host = slash == std::string_view::npos ? std::string_view() : image.substr(0, slash);
  if (host == "localhost" || host.find_first_of(".:") != std::string_view::npos) {
    image.remove_prefix(slash + 1);
  }
  const auto path = image.substr(0, image.find_first_of(":@"));
  return std::ranges::none_of(path, [](char c) { return c >= 'A' && c <= 'Z'; });
}

/// A tag other than `latest` is taken for one that never changes.
void default_pull_policy(json::object& container) {
  const auto* const field = container.if_contains("image");
  const std::string image(field != nullptr && field->is_string() ? view(field->get_string()) : "");
  const auto colon = image.find(':', image.rfind('/') + 1);
  const bool moves = !image.empty() && is_parsable(image) && image.find('@') == std::string::npos &&
                     (colon == std::string::npos || image.substr(colon) == ":latest");
  set_default(container, "imagePullPolicy", moves ? "Always" : "IfNotPresent");
}

void default_target_port(json::object& port) {
  if (const auto* const number = port.if_contains("port")) {
    set_default(port, "targetPort", json::value(*number));
  }
}

/// A volume that names no source is empty.
void default_volume(json::object& volume) {
  if (volume.size() == (volume.contains("name") ? 1u : 0u)) volume["emptyDir"].emplace_object();
}

/// The older field has the same value, and is read where the newer one is not there.
void default_service_account(json::object& spec) {
  if (const auto* const name = spec.if_contains("serviceAccountName")) {
    spec["serviceAccount"] = json::value(*name);
  } else if (const auto* const older = spec.if_contains("serviceAccount")) {
    spec["serviceAccountName"] = json::value(*older);
  }
}

void default_policy_types(json::object& spec) {
  json::array types{"Ingress"};
  if (spec.contains("egress")) types.emplace_back("Egress");
  set_default(spec, "policyTypes", std::move(types));
}

void default_job(json::object& spec) {
  if (!spec.contains("completions") && !spec.contains("parallelism")) spec["completions"] = 1;
  set_default(spec, "parallelism", 1);
  set_default(spec, "backoffLimit", 6);
  set_default(spec, "completionMode", "NonIndexed");
  set_default(spec, "suspend", false);
  set_default(spec, "manualSelector", false);
  set_default(spec, "podReplacementPolicy",
              spec.contains("podFailurePolicy") ? "Failed" : "TerminatingOrFailed");
}

/// A Job has the labels of its template if it has none. One of a CronJob gets its defaults when it
/// is made.
void default_whole_job(json::object& job) {
  default_job(object_in(job, "spec"));
  const auto* const found = find(job["spec"], {"template", "metadata", "labels"});
  auto& metadata = object_in(job, "metadata");
  if (found == nullptr || !found->is_object() || found->get_object().empty()) return;
  const auto labels = found->get_object();
  if (object_in(metadata, "labels").empty()) metadata["labels"] = labels;
}

/// What a container may use is what it asks for, unless it says otherwise.
void default_requests(json::object& pod) {
  for (const auto* field : {"containers", "initContainers"}) {
    auto* const list = object_in(pod, "spec").if_contains(field);
    if (list == nullptr || !list->is_array()) continue;
    for (auto& entry : list->get_array()) {
      const auto* const limits = find(entry, {"resources", "limits"});
      if (limits == nullptr || !limits->is_object()) continue;
      const auto copy = limits->get_object();
      auto& requests = object_in(object_in(entry.as_object(), "resources"), "requests");
      for (const auto& [name, value] : copy) requests.emplace(name, value);
    }
  }
}

/// Kubernetes, "Pod Quality of Service Classes". Of cpu and memory alone, and never changed.
void default_qos_class(json::object& pod) {
  if (object_in(pod, "status").contains("qosClass")) return;
  bool any = false;
  bool guaranteed = true;
  for (const auto* field : {"containers", "initContainers"}) {
    for (const auto& entry : array_at(pod["spec"], {field})) {
      for (const auto* name : {"cpu", "memory"}) {
        const auto* const limit = find(entry, {"resources", "limits", name});
        const auto* const request = find(entry, {"resources", "requests", name});
        any = any || limit != nullptr || request != nullptr;
        guaranteed = guaranteed && limit != nullptr && request != nullptr && *limit == *request;
      }
    }
  }
  object_in(pod, "status")["qosClass"] = !any         ? "BestEffort"
                                         : guaranteed ? "Guaranteed"
                                                      : "Burstable";
}

/// Of Pods; templates of Pods do not have it.
void default_links(json::object& pod) {
  set_default(object_in(pod, "spec"), "enableServiceLinks", true);
}

/// Limits are the default of limits, and those that of requests.
void default_limits(json::object& item) {
  const auto* const type = item.if_contains("type");
  if (type == nullptr || *type != "Container") return;
  const auto copy = [&](std::string_view from, std::string_view to) {
    const auto* const source = item.if_contains(from);
    if (source == nullptr || !source->is_object()) return;
    const auto values = source->get_object();
    auto& into = object_in(item, to);
    for (const auto& [name, value] : values) into.emplace(name, value);
  };
  copy("max", "default");
  copy("default", "defaultRequest");
  copy("min", "defaultRequest");
}

/// Claims in a StatefulSet name their kind.
void default_claim_templates(json::object& spec) {
  auto* const claims = spec.if_contains("volumeClaimTemplates");
  if (claims == nullptr || !claims->is_array()) return;
  for (auto& claim : claims->get_array()) {
    if (!claim.is_object()) continue;
    set_default(claim.get_object(), "kind", "PersistentVolumeClaim");
    set_default(claim.get_object(), "apiVersion", "v1");
  }
}

/// The labels of its template are those of a ReplicationController, and its selector.
void default_controller(json::object& object) {
  object_in(object, "spec");
  const auto* const found = find(object["spec"], {"template", "metadata", "labels"});
  if (found == nullptr || !found->is_object() || found->get_object().empty()) return;
  const auto labels = found->get_object();
  for (auto* const of : {&object_in(object, "spec"), &object_in(object, "metadata")}) {
    auto& into = object_in(*of, of->contains("template") ? "selector" : "labels");
    if (into.empty()) into = labels;
  }
}

struct rule {
  std::string_view type;
  void (*apply)(json::object&);
};

constexpr rule rules[] = {
    {"core/v1.Container", &default_pull_policy},
    {"core/v1.EphemeralContainerCommon", &default_pull_policy},
    {"core/v1.ServicePort", &default_target_port},
    {"core/v1.Volume", &default_volume},
    {"core/v1.PodSpec", &default_service_account},
    {"core/v1.Pod", &default_requests},
    {"core/v1.Pod", &default_qos_class},
    {"core/v1.Pod", &default_links},
    {"core/v1.LimitRangeItem", &default_limits},
    {"networking/v1.NetworkPolicySpec", &default_policy_types},
    {"batch/v1.Job", &default_whole_job},
    {"apps/v1.StatefulSetSpec", &default_claim_templates},
    {"core/v1.ReplicationController", &default_controller},
};

struct field_default {
  const row* of;
  std::string_view name;
  json::value value;
  bool empty_is_none;  ///< a text that is no pointer
};

/// Returns true for a field whose empty text is the same as none.
bool is_plain_text(const builtin_type& type, std::string_view name) {
  const auto fields = fields_of(type);
  const auto found = std::ranges::find(fields, name, &builtin_field::name);
  return found != fields.end() && found->type == go_type::text && found->in == holder::single &&
         (found->traits & trait::pointer) == 0;
}

struct type_defaults {
  std::vector<field_default> fields;
  std::vector<void (*)(json::object&)> rules;
};

/// The defaults of each type of the table, by its index.
std::vector<type_defaults> collect() {
  std::vector<type_defaults> all(builtin_types().size());
  std::map<std::string, std::size_t> index;
  for (const auto& type : builtin_types()) {
    const auto at = static_cast<std::size_t>(&type - builtin_types().data());
    index[std::string(type.group) + "." + std::string(type.name)] = at;
    for (const auto& field : fields_of(type)) {
      // An empty text is no value of its own.
      if (field.by_default.empty() || field.by_default == "\"\"") continue;
      all[at].fields.push_back(
          {nullptr, field.name, json::parse(field.by_default), is_plain_text(type, field.name)});
    }
  }
  for (const auto& row : rows) {
    const auto at = index.at(std::string(row.type));
    all[at].fields.push_back(
        {&row, row.field, json::parse(row.value), is_plain_text(builtin_types()[at], row.field)});
  }
  for (const auto& rule : rules) all[index.at(std::string(rule.type))].rules.push_back(rule.apply);
  return all;
}

}  // namespace

void apply_defaults(const builtin_type& type, json::object& object) {
  static const auto all = collect();
  const auto& here = all[static_cast<std::size_t>(&type - builtin_types().data())];
  for (const auto& field : here.fields) {
    if (field.of != nullptr && !holds(*field.of, object)) continue;
    const auto [at, added] = object.emplace(field.name, field.value);
    if (!added && field.empty_is_none && at->value() == "") at->value() = field.value;
  }
  for (const auto rule : here.rules) rule(object);
}

}  // namespace rw::k8s::devserver
