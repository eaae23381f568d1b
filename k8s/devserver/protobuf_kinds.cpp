#include "rw/k8s/devserver/protobuf.hpp"

#include <algorithm>

// Numbers and names of fields: the `generated.proto` files of k8s.io/api and k8s.io/apimachinery.

namespace rw::k8s::devserver {
namespace {

using enum wire_kind;

constexpr wire_field one(unsigned number, std::string_view name, wire_kind what) {
  return {number, name, what};
}
constexpr wire_field many(unsigned number, std::string_view name, wire_kind what) {
  return {number, name, what, true};
}
constexpr wire_field kept(unsigned number, std::string_view name, wire_kind what) {
  return {number, name, what, false, true};
}
constexpr wire_field one(unsigned number, std::string_view name, const wire_message& of) {
  return {number, name, message, false, false, &of};
}
constexpr wire_field many(unsigned number, std::string_view name, const wire_message& of) {
  return {number, name, message, true, false, &of};
}
constexpr wire_field kept(unsigned number, std::string_view name, const wire_message& of) {
  return {number, name, message, false, true, &of};
}

// --- meta/v1

constexpr wire_field owner_reference_fields[] = {one(1, "kind", text),
                                                 one(3, "name", text),
                                                 one(4, "uid", text),
                                                 one(5, "apiVersion", text),
                                                 kept(6, "controller", boolean),
                                                 kept(7, "blockOwnerDeletion", boolean)};
constexpr wire_message owner_reference{"OwnerReference", owner_reference_fields};

constexpr wire_field object_meta_fields[] = {one(1, "name", text),
                                             one(2, "generateName", text),
                                             one(3, "namespace", text),
                                             one(4, "selfLink", ignored),
                                             one(5, "uid", text),
                                             one(6, "resourceVersion", text),
                                             one(7, "generation", ignored),
                                             one(8, "creationTimestamp", ignored),
                                             one(9, "deletionTimestamp", ignored),
                                             one(10, "deletionGracePeriodSeconds", ignored),
                                             one(11, "labels", text_map),
                                             one(12, "annotations", text_map),
                                             many(13, "ownerReferences", owner_reference),
                                             many(14, "finalizers", text)};
constexpr wire_message object_meta{"ObjectMeta", object_meta_fields};

constexpr wire_field precondition_fields[] = {one(1, "uid", text), one(2, "resourceVersion", text)};
constexpr wire_message preconditions{"Preconditions", precondition_fields};
constexpr wire_field delete_options_fields[] = {
    kept(1, "gracePeriodSeconds", number), one(2, "preconditions", preconditions),
    kept(3, "orphanDependents", boolean), kept(4, "propagationPolicy", text),
    many(5, "dryRun", text)};
constexpr wire_message delete_options_message{"DeleteOptions", delete_options_fields};

constexpr wire_field requirement_fields[] = {one(1, "key", text), one(2, "operator", text),
                                             many(3, "values", text)};
constexpr wire_message requirement{"LabelSelectorRequirement", requirement_fields};
constexpr wire_field label_selector_fields[] = {one(1, "matchLabels", text_map),
                                                many(2, "matchExpressions", requirement)};
constexpr wire_message selector{"LabelSelector", label_selector_fields};

// --- core/v1

constexpr wire_field local_reference_fields[] = {one(1, "name", text)};
constexpr wire_message local_reference{"LocalObjectReference", local_reference_fields};
constexpr wire_field object_reference_fields[] = {
    one(1, "kind", text),     one(2, "namespace", text),  one(3, "name", text),
    one(4, "uid", text),      one(5, "apiVersion", text), one(6, "resourceVersion", text),
    one(7, "fieldPath", text)};
constexpr wire_message object_reference{"ObjectReference", object_reference_fields};

constexpr wire_field namespace_spec_fields[] = {many(1, "finalizers", text)};
constexpr wire_message namespace_spec{"NamespaceSpec", namespace_spec_fields};
constexpr wire_field namespace_fields[] = {
    one(1, "metadata", object_meta), one(2, "spec", namespace_spec), one(3, "status", ignored)};
constexpr wire_message namespace_object{"Namespace", namespace_fields};

constexpr wire_field config_map_fields[] = {
    one(1, "metadata", object_meta), one(2, "data", text_map), one(3, "binaryData", bytes_map),
    kept(4, "immutable", boolean)};
constexpr wire_message config_map{"ConfigMap", config_map_fields};

constexpr wire_field secret_fields[] = {one(1, "metadata", object_meta), one(2, "data", bytes_map),
                                        one(3, "type", text), one(4, "stringData", text_map),
                                        kept(5, "immutable", boolean)};
constexpr wire_message secret{"Secret", secret_fields};

constexpr wire_field service_account_fields[] = {
    one(1, "metadata", object_meta), many(2, "secrets", object_reference),
    many(3, "imagePullSecrets", local_reference), kept(4, "automountServiceAccountToken", boolean)};
constexpr wire_message service_account{"ServiceAccount", service_account_fields};

constexpr wire_field service_port_fields[] = {
    one(1, "name", text),       one(2, "protocol", text),
    one(3, "port", number),     one(4, "targetPort", int_or_string),
    one(5, "nodePort", number), kept(6, "appProtocol", text)};
constexpr wire_message service_port{"ServicePort", service_port_fields};
constexpr wire_field service_spec_fields[] = {one(7, "sessionAffinity", text),
                                              many(1, "ports", service_port),
                                              one(2, "selector", text_map),
                                              one(3, "clusterIP", text),
                                              one(4, "type", text),
                                              many(5, "externalIPs", text),
                                              one(8, "loadBalancerIP", text),
                                              many(9, "loadBalancerSourceRanges", text),
                                              one(10, "externalName", text),
                                              one(11, "externalTrafficPolicy", text),
                                              one(12, "healthCheckNodePort", number),
                                              one(13, "publishNotReadyAddresses", boolean),
                                              kept(17, "ipFamilyPolicy", text),
                                              many(18, "clusterIPs", text),
                                              many(19, "ipFamilies", text)};
constexpr wire_message service_spec{"ServiceSpec", service_spec_fields};
constexpr wire_field service_fields[] = {one(1, "metadata", object_meta),
                                         one(2, "spec", service_spec), one(3, "status", ignored)};
constexpr wire_message service{"Service", service_fields};

constexpr wire_field container_port_fields[] = {one(1, "name", text), one(2, "hostPort", number),
                                                one(3, "containerPort", number),
                                                one(4, "protocol", text), one(5, "hostIP", text)};
constexpr wire_message container_port{"ContainerPort", container_port_fields};
constexpr wire_field variable_fields[] = {one(1, "name", text), one(2, "value", text)};
constexpr wire_message variable{"EnvVar", variable_fields};
constexpr wire_field resources_fields[] = {one(1, "limits", quantity_map),
                                           one(2, "requests", quantity_map)};
constexpr wire_message resources{"ResourceRequirements", resources_fields};
constexpr wire_field container_fields[] = {one(1, "name", text),
                                           one(2, "image", text),
                                           many(3, "command", text),
                                           many(4, "args", text),
                                           one(5, "workingDir", text),
                                           many(6, "ports", container_port),
                                           many(7, "env", variable),
                                           kept(8, "resources", resources),
                                           one(13, "terminationMessagePath", text),
                                           one(14, "imagePullPolicy", text),
                                           one(16, "stdin", boolean),
                                           one(17, "stdinOnce", boolean),
                                           one(18, "tty", boolean),
                                           one(20, "terminationMessagePolicy", text)};
constexpr wire_message container{"Container", container_fields};
constexpr wire_field pod_spec_fields[] = {many(2, "containers", container),
                                          one(3, "restartPolicy", text),
                                          kept(4, "terminationGracePeriodSeconds", number),
                                          kept(5, "activeDeadlineSeconds", number),
                                          one(6, "dnsPolicy", text),
                                          one(7, "nodeSelector", text_map),
                                          one(8, "serviceAccountName", text),
                                          one(9, "serviceAccount", text),
                                          one(10, "nodeName", text),
                                          one(11, "hostNetwork", boolean),
                                          one(12, "hostPID", boolean),
                                          one(13, "hostIPC", boolean),
                                          many(15, "imagePullSecrets", local_reference),
                                          one(16, "hostname", text),
                                          one(17, "subdomain", text),
                                          one(19, "schedulerName", text),
                                          many(20, "initContainers", container),
                                          one(24, "priorityClassName", text)};
constexpr wire_message pod_spec{"PodSpec", pod_spec_fields};
constexpr wire_field pod_template_fields[] = {one(1, "metadata", object_meta),
                                              one(2, "spec", pod_spec)};
constexpr wire_message pod_template{"PodTemplateSpec", pod_template_fields};

// --- apps/v1

constexpr wire_field rolling_update_fields[] = {one(1, "maxUnavailable", int_or_string),
                                                one(2, "maxSurge", int_or_string)};
constexpr wire_message rolling_update{"RollingUpdateDeployment", rolling_update_fields};
constexpr wire_field strategy_fields[] = {one(1, "type", text),
                                          one(2, "rollingUpdate", rolling_update)};
constexpr wire_message strategy{"DeploymentStrategy", strategy_fields};
constexpr wire_field deployment_spec_fields[] = {
    kept(1, "replicas", number),       kept(2, "selector", selector),
    kept(3, "template", pod_template), one(4, "strategy", strategy),
    one(5, "minReadySeconds", number), kept(6, "revisionHistoryLimit", number),
    one(7, "paused", boolean),         kept(9, "progressDeadlineSeconds", number)};
constexpr wire_message deployment_spec{"DeploymentSpec", deployment_spec_fields};
constexpr wire_field deployment_fields[] = {
    one(1, "metadata", object_meta), one(2, "spec", deployment_spec), one(3, "status", ignored)};
constexpr wire_message deployment{"Deployment", deployment_fields};

// --- scheduling.k8s.io/v1

constexpr wire_field priority_class_fields[] = {
    one(1, "metadata", object_meta), kept(2, "value", number), one(3, "globalDefault", boolean),
    one(4, "description", text), kept(5, "preemptionPolicy", text)};
constexpr wire_message priority_class{"PriorityClass", priority_class_fields};

// --- rbac.authorization.k8s.io/v1

constexpr wire_field rule_fields[] = {many(1, "verbs", text), many(2, "apiGroups", text),
                                      many(3, "resources", text), many(4, "resourceNames", text),
                                      many(5, "nonResourceURLs", text)};
constexpr wire_message rule{"PolicyRule", rule_fields};
constexpr wire_field aggregation_fields[] = {many(1, "clusterRoleSelectors", selector)};
constexpr wire_message aggregation{"AggregationRule", aggregation_fields};
constexpr wire_field role_fields[] = {one(1, "metadata", object_meta), many(2, "rules", rule)};
constexpr wire_message role{"Role", role_fields};
constexpr wire_field cluster_role_fields[] = {one(1, "metadata", object_meta),
                                              many(2, "rules", rule),
                                              one(3, "aggregationRule", aggregation)};
constexpr wire_message cluster_role{"ClusterRole", cluster_role_fields};
constexpr wire_field subject_fields[] = {one(1, "kind", text), one(2, "apiGroup", text),
                                         one(3, "name", text), one(4, "namespace", text)};
constexpr wire_message subject_message{"Subject", subject_fields};
constexpr wire_field role_reference_fields[] = {one(1, "apiGroup", text), one(2, "kind", text),
                                                one(3, "name", text)};
constexpr wire_message role_reference{"RoleRef", role_reference_fields};
constexpr wire_field binding_fields[] = {one(1, "metadata", object_meta),
                                         many(2, "subjects", subject_message),
                                         one(3, "roleRef", role_reference)};
constexpr wire_message binding{"RoleBinding", binding_fields};

struct entry {
  std::string_view api_version;
  std::string_view kind;
  const wire_message& message;
};

constexpr entry kinds[] = {
    {"v1", "Namespace", namespace_object},
    {"v1", "ConfigMap", config_map},
    {"v1", "Secret", secret},
    {"v1", "ServiceAccount", service_account},
    {"v1", "Service", service},
    {"apps/v1", "Deployment", deployment},
    {"scheduling.k8s.io/v1", "PriorityClass", priority_class},
    {"rbac.authorization.k8s.io/v1", "Role", role},
    {"rbac.authorization.k8s.io/v1", "ClusterRole", cluster_role},
    {"rbac.authorization.k8s.io/v1", "RoleBinding", binding},
    {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", binding},
};

}  // namespace

const wire_message* find_wire_message(std::string_view api_version, std::string_view kind) {
  if (kind == delete_options_message.name) return &delete_options_message;  // of each group
  const auto* const found = std::ranges::find_if(
      kinds, [&](const entry& e) { return e.api_version == api_version && e.kind == kind; });
  return found == std::end(kinds) ? nullptr : &found->message;
}

}  // namespace rw::k8s::devserver
