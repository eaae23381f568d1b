#include "rw/k8s/devserver/kinds.hpp"

#include "rw/core/text.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace rw::k8s::devserver {
namespace {

enum traits : unsigned {
  none = 0,
  cluster_scoped = 1,
  status = 2,
  scale = 4,
  generation = 8,
  in_all = 16,          // category "all"
  needs_version = 32,   // metadata.resourceVersion on updates
  gives_back = 64,      // the response to a delete is the object
  extensions = 128,     // category "api-extensions"
  review = 256,         // answered, not stored
  creates = 512,        // an update creates what is not there
  keeps_meta = 1024,    // a write of the status leaves the metadata,
  keeps_labels = 2048,  // the labels
  keeps_owners = 4096,  // or the ownerReferences
  read_only = 8192,
};

struct row {
  std::string_view group;
  std::string_view version;
  std::string_view plural;
  std::string_view kind = {};
  std::string_view short_names = {};  // separated by blanks
  unsigned traits = none;
  naming names = naming::subdomain;
};

using enum naming;

// Kubernetes API reference 1.32; groups in the order of its discovery. The rules of updates and
// deletes are the strategies of its registry.
constexpr std::array rows{
    row{"", "v1", "configmaps", "ConfigMap", "cm"},
    row{"", "v1", "endpoints", "Endpoints", "ep", creates},
    row{"", "v1", "events", "Event", "ev", creates},
    row{"", "v1", "limitranges", "LimitRange", "limits", creates},
    row{"", "v1", "namespaces", "Namespace", "ns", cluster_scoped | status | gives_back, label},
    row{"", "v1", "nodes", "Node", "no", cluster_scoped | status},
    row{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", status | gives_back},
    row{"", "v1", "persistentvolumes", "PersistentVolume", "pv",
        cluster_scoped | status | gives_back},
    row{"", "v1", "pods", "Pod", "po", status | keeps_owners | in_all | gives_back},
    row{"", "v1", "podtemplates", "PodTemplate", "", generation | creates},
    row{"", "v1", "replicationcontrollers", "ReplicationController", "rc",
        status | scale | generation | in_all},
    row{"", "v1", "resourcequotas", "ResourceQuota", "quota", status | gives_back},
    row{"", "v1", "secrets", "Secret", ""},
    row{"", "v1", "serviceaccounts", "ServiceAccount", "sa", gives_back},
    row{"", "v1", "services", "Service", "svc", status | in_all | gives_back | creates, label_1035},
    row{"events.k8s.io", "v1", "events", "Event", "", creates},
    row{"authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", "",
        cluster_scoped | review},
    row{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview", "", cluster_scoped | review},
    row{"authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", "",
        review},
    row{"authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", "",
        cluster_scoped | review},
    row{"authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", "",
        cluster_scoped | review},
    row{"authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", "",
        cluster_scoped | review},
    row{"apiregistration.k8s.io", "v1", "apiservices", "APIService", "",
        cluster_scoped | status | keeps_meta | read_only, path_segment},
    row{"apps", "v1", "controllerrevisions", "ControllerRevision", ""},
    row{"apps", "v1", "daemonsets", "DaemonSet", "ds", status | generation | in_all},
    row{"apps", "v1", "deployments", "Deployment", "deploy",
        status | keeps_labels | scale | generation | in_all},
    row{"apps", "v1", "replicasets", "ReplicaSet", "rs", status | scale | generation | in_all},
    row{"apps", "v1", "statefulsets", "StatefulSet", "sts", status | scale | generation | in_all},
    row{"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa",
        status | in_all},
    row{"batch", "v1", "cronjobs", "CronJob", "cj", status | generation | in_all},
    row{"batch", "v1", "jobs", "Job", "", status | generation | in_all},
    row{"certificates.k8s.io", "v1beta1", "clustertrustbundles", "ClusterTrustBundle", "",
        cluster_scoped, path_segment},
    row{"networking.k8s.io", "v1", "ingressclasses", "IngressClass", "",
        cluster_scoped | generation},
    row{"networking.k8s.io", "v1", "ingresses", "Ingress", "ing", status | generation},
    row{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", "netpol", generation},
    row{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", "pdb",
        status | generation | needs_version},
    row{"rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", "",
        cluster_scoped | creates, path_segment},
    row{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", "",
        cluster_scoped | creates, path_segment},
    row{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", "", creates,
        path_segment},
    row{"rbac.authorization.k8s.io", "v1", "roles", "Role", "", creates, path_segment},
    row{"storage.k8s.io", "v1", "csidrivers", "CSIDriver", "", cluster_scoped},
    row{"storage.k8s.io", "v1", "csinodes", "CSINode", "", cluster_scoped},
    row{"storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", ""},
    row{"storage.k8s.io", "v1", "storageclasses", "StorageClass", "sc",
        cluster_scoped | gives_back},
    row{"storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", "",
        cluster_scoped | status | keeps_meta},
    row{"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", "", cluster_scoped | creates},
    row{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration", "",
        cluster_scoped | generation | extensions | needs_version},
    row{"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration", "",
        cluster_scoped | generation | extensions | needs_version},
    row{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
        "crd crds", cluster_scoped | status | generation | extensions | needs_version},
    row{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", "pc",
        cluster_scoped | generation},
    row{"coordination.k8s.io", "v1", "leases", "Lease", "", needs_version | creates},
    row{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", "", generation},
    row{"flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", "",
        cluster_scoped | status | keeps_meta | generation},
    row{"flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations",
        "PriorityLevelConfiguration", "", cluster_scoped | status | keeps_meta | generation},
};

constexpr std::array unserved{
    row{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"},
    row{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings"},
    row{"autoscaling", "v1", "horizontalpodautoscalers"},
    row{"certificates.k8s.io", "v1", "certificatesigningrequests"},
};

constexpr std::array subresources{
    own_subresource{"namespaces", "finalize", "", "v1", "Namespace", "update"},
    own_subresource{"pods", "binding", "", "v1", "Binding", "create"},
    own_subresource{"pods", "ephemeralcontainers", "", "v1", "Pod", "get patch update"},
    own_subresource{"pods", "eviction", "policy", "v1", "Eviction", "create"},
    own_subresource{"serviceaccounts", "token", "authentication.k8s.io", "v1", "TokenRequest",
                    "create"},
};

std::shared_ptr<const resource> make(const row& from) {
  const auto has = [&](traits traits) { return (from.traits & traits) != 0; };
  auto made = std::make_shared<resource>();
  made->group = from.group;
  made->plural = from.plural;
  made->singular = core::lower(from.kind);
  made->kind = from.kind;
  made->list_kind = made->kind + "List";
  made->short_names = words(from.short_names);
  if (has(in_all)) made->categories.emplace_back("all");
  if (has(extensions)) made->categories.emplace_back("api-extensions");
  made->namespaced = !has(cluster_scoped);
  made->names = from.names;
  made->generation = has(generation);
  made->needs_version = has(needs_version);
  made->returns_deleted = has(gives_back);
  made->creates_on_update = has(creates);
  made->review = has(review);
  made->read_only = has(read_only);
  if (!has(keeps_meta)) made->status_keeps.clear();
  if (has(keeps_labels)) made->status_keeps = {"labels"};
  if (has(keeps_owners)) made->status_keeps = {"ownerReferences"};
  made->deletes_collections = from.plural != "namespaces" && !made->review;
  // Both groups' events are the same objects.
  made->storage_key = from.plural == "events" ? "events" : resource_name(from.plural, from.group);
  served_version version{std::string(from.version), true, has(status)};
  if (has(scale)) {
    version.scale = scale_paths{".spec.replicas", ".status.replicas", ".spec.selector"};
  }
  made->versions.push_back(std::move(version));
  return made;
}

}  // namespace

std::span<const own_subresource> own_subresources() noexcept {
  return subresources;
}

const own_subresource* find_subresource(std::string_view storage_key,
                                        std::string_view name) noexcept {
  const auto found = std::ranges::find_if(subresources, [&](const own_subresource& subresource) {
    return subresource.storage_key == storage_key && subresource.name == name;
  });
  return found != subresources.end() ? &*found : nullptr;
}

const served_version* resource::find(std::string_view version) const noexcept {
  for (const auto& served : versions) {
    if (served.name == version && served.served) return &served;
  }
  return nullptr;
}

std::string resource::stored_api_version() const {
  return api_version(versions[stored]);
}

const std::vector<std::shared_ptr<const resource>>& builtin_resources() {
  static const auto all = [] {
    std::vector<std::shared_ptr<const resource>> made;
    made.reserve(rows.size());
    for (const auto& row : rows) made.push_back(make(row));
    return made;
  }();
  return all;
}

std::shared_ptr<const resource> find_builtin(std::string_view group, std::string_view plural) {
  for (const auto& builtin_resource : builtin_resources()) {
    if (builtin_resource->plural == plural && builtin_resource->group == group)
      return builtin_resource;
  }
  return nullptr;
}

bool is_unserved(std::string_view group, std::string_view version,
                 std::string_view plural) noexcept {
  return std::ranges::any_of(unserved, [&](const row& row) {
    return row.group == group && row.version == version && row.plural == plural;
  });
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    result.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::string resource_name(std::string_view plural, std::string_view group) {
  std::string text(plural);
  if (!group.empty()) {
    text += '.';
    text += group;
  }
  return text;
}

}  // namespace rw::k8s::devserver
