#include "rw/core/text.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/object_meta.hpp"
#include "rw/k8s/devserver/table_cells.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;
using when = std::chrono::system_clock::time_point;
using path = std::initializer_list<std::string_view>;

// Kubernetes 1.32, printers/internalversion.
constexpr table_row rows[] = {
    {"", "Name|Age"},
    {"configmaps", "Name|Data=#.data+.binaryData|Age"},
    {"secrets", "Name|Type=.type|Data=#.data|Age"},
    {"namespaces", "Name|Status=.status.phase|Age"},
    {"serviceaccounts", "Name|Secrets=#.secrets|Age"},
    {"endpoints", "Name|Endpoints=3.subsets[*].addresses[*].ip!<none>|Age"},
    {"events",
     "Last Seen=~.series.lastObservedTime+.lastTimestamp+.firstTimestamp+.eventTime!<unknown>|"
     "Type=.type|Reason=.reason|Object=@event_object|Subobject+=.involvedObject.fieldPath|"
     "Source+=;.source.component+.source.host|Message=.message|"
     "First Seen+=~.firstTimestamp+.eventTime!<unknown>|Count+=.series.count+.count!0|"
     "Name+=.metadata.name"},
    {"limitranges roles.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io "
     "customresourcedefinitions.apiextensions.k8s.io",
     "Name|Created At:date"},
    {"nodes",
     "Name|Status=@node_status|Roles=.none!<none>|Age|Version=.status.nodeInfo.kubeletVersion|"
     "Internal-IP+=.status.addresses[?(@.type==\"InternalIP\")].address!<none>|"
     "External-IP+=.status.addresses[?(@.type==\"ExternalIP\")].address!<none>|"
     "OS-Image+=.status.nodeInfo.osImage!<unknown>|"
     "Kernel-Version+=.status.nodeInfo.kernelVersion!<unknown>|"
     "Container-Runtime+=.status.nodeInfo.containerRuntimeVersion!<unknown>"},
    {"persistentvolumeclaims",
     "Name|Status=@phase|Volume=.spec.volumeName|Capacity=.status.capacity.storage|"
     "Access Modes=^.status.accessModes[*]|StorageClass=.spec.storageClassName|"
     "VolumeAttributesClass=.spec.volumeAttributesClassName!<unset>|Age|"
     "VolumeMode+=.spec.volumeMode!<unset>"},
    {"persistentvolumes",
     "Name|Capacity=.spec.capacity.storage|Access Modes=^.spec.accessModes[*]|"
     "Reclaim Policy=.spec.persistentVolumeReclaimPolicy|Status=@phase|"
     "Claim=/.spec.claimRef.namespace+.spec.claimRef.name|StorageClass=.spec.storageClassName|"
     "VolumeAttributesClass=.spec.volumeAttributesClassName!<unset>|Reason=.status.reason|Age|"
     "VolumeMode+=.spec.volumeMode!<unset>"},
    {"pods",
     "Name|Ready=@pod_ready|Status=@phase|Restarts=@pod_restarts|Age|IP+=.status.podIP!<none>|"
     "Node+=.spec.nodeName!<none>|Nominated Node+=.status.nominatedNodeName!<none>|"
     "Readiness Gates+=@pod_gates"},
    {"replicationcontrollers replicasets.apps",
     "Name|Desired:integer=.spec.replicas|Current:integer=.status.replicas|"
     "Ready:integer=.status.readyReplicas|Age|Containers+|Images+|Selector+"},
    {"resourcequotas", "Name|Age|Request=.none|Limit=.none"},
    {"services",
     "Name|Type=.spec.type|Cluster-IP=.spec.clusterIP!<none>|External-IP=@external_address|"
     "Port(s)=@service_ports|Age|Selector+"},
    {"deployments.apps",
     "Name|Ready=%.status.readyReplicas+.spec.replicas|Up-to-date=.status.updatedReplicas!0|"
     "Available=.status.availableReplicas!0|Age|Containers+|Images+|Selector+"},
    {"statefulsets.apps",
     "Name|Ready=%.status.readyReplicas+.spec.replicas|Age|Containers+|Images+"},
    {"daemonsets.apps",
     "Name|Desired:integer=.status.desiredNumberScheduled|"
     "Current:integer=.status.currentNumberScheduled|Ready:integer=.status.numberReady|"
     "Up-to-date:integer=.status.updatedNumberScheduled|"
     "Available:integer=.status.numberAvailable|"
     "Node Selector==.spec.template.spec.nodeSelector!<none>|Age|Containers+|Images+|Selector+"},
    {"cronjobs.batch",
     "Name|Schedule=.spec.schedule|Timezone=.spec.timeZone!<none>|Suspend:boolean=@suspended|"
     "Active:integer=#.status.active|Last Schedule=~.status.lastScheduleTime!<none>|Age|"
     "Containers+=,.spec.jobTemplate.spec.template.spec.containers[*].name|"
     "Images+=,.spec.jobTemplate.spec.template.spec.containers[*].image|"
     "Selector+==.spec.jobTemplate.spec.selector!<none>"},
    {"jobs.batch",
     "Name|Status=.status.conditions[?(@.status==\"True\")].type!Running|"
     "Completions=%.status.succeeded+.spec.completions|Duration=~.status.startTime|Age|"
     "Containers+|Images+|Selector+"},
    {"horizontalpodautoscalers.autoscaling",
     "Name|Reference=/.spec.scaleTargetRef.kind+.spec.scaleTargetRef.name|"
     "Targets=.none!<unknown>|MinPods=,.spec.minReplicas!<unset>|MaxPods=.spec.maxReplicas|"
     "Replicas=.status.currentReplicas!0|Age"},
    {"poddisruptionbudgets.policy",
     "Name|Min Available=,.spec.minAvailable!N/A|Max Unavailable=,.spec.maxUnavailable!N/A|"
     "Allowed Disruptions:integer=.status.disruptionsAllowed|Age"},
    {"leases.coordination.k8s.io", "Name|Holder=.spec.holderIdentity|Age"},
    {"endpointslices.discovery.k8s.io",
     "Name|AddressType=.addressType|Ports=3.ports[*].port!<unset>|"
     "Endpoints=3.endpoints[*].addresses[*]!<unset>|Age"},
    {"ingressclasses.networking.k8s.io",
     "Name|Controller=.spec.controller|"
     "Parameters=/.spec.parameters.kind+.spec.parameters.name!<none>|Age"},
    {"ingresses.networking.k8s.io",
     "Name|Class=.spec.ingressClassName!<none>|Hosts=3.spec.rules[*].host!*|"
     "Address=,.status.loadBalancer.ingress[*].ip+.status.loadBalancer.ingress[*].hostname|"
     "Ports=@ingress_ports|Age"},
    {"networkpolicies.networking.k8s.io", "Name|Pod-Selector==.spec.podSelector!<none>|Age"},
    {"validatingwebhookconfigurations.admissionregistration.k8s.io "
     "mutatingwebhookconfigurations.admissionregistration.k8s.io",
     "Name|Webhooks:integer=#.webhooks|Age"},
    {"rolebindings.rbac.authorization.k8s.io clusterrolebindings.rbac.authorization.k8s.io",
     "Name|Role=/.roleRef.kind+.roleRef.name|Age|Users+=;.subjects[?(@.kind==\"User\")].name|"
     "Groups+=;.subjects[?(@.kind==\"Group\")].name|"
     "ServiceAccounts+=;.subjects[?(@.kind==\"ServiceAccount\")].name"},
    {"csidrivers.storage.k8s.io",
     "Name|AttachRequired:boolean=.spec.attachRequired|"
     "PodInfoOnMount:boolean=.spec.podInfoOnMount|StorageCapacity:boolean=.spec.storageCapacity|"
     "TokenRequests=,.spec.tokenRequests[*].audience!<unset>|"
     "RequiresRepublish:boolean=.spec.requiresRepublish|"
     "Modes=,.spec.volumeLifecycleModes[*]!<none>|Age"},
    {"csinodes.storage.k8s.io", "Name|Drivers:integer=#.spec.drivers|Age"},
    {"storageclasses.storage.k8s.io",
     "Name|Provisioner=.provisioner|ReclaimPolicy=.reclaimPolicy|"
     "VolumeBindingMode=.volumeBindingMode|AllowVolumeExpansion=.allowVolumeExpansion!false|Age"},
    {"volumeattachments.storage.k8s.io",
     "Name|Attacher=.spec.attacher|PV=.spec.source.persistentVolumeName|Node=.spec.nodeName|"
     "Attached:boolean=.status.attached|Age"},
    {"priorityclasses.scheduling.k8s.io",
     "Name|Value:integer=.value|Global-Default:boolean=.globalDefault|Age|"
     "PreemptionPolicy=.preemptionPolicy"},
    {"runtimeclasses.node.k8s.io", "Name|Handler=.handler|Age"},
};

json::string text_at(const json::value& object, path at) {
  return json::string(find_string(object, at));
}

std::int64_t number(const json::value& object, path at) {
  return integer_at(object, at).value_or(0);
}

json::string fraction(std::size_t of, std::size_t all) {
  return json::string(std::to_string(of) + "/" + std::to_string(all));
}

void add(json::string& list, std::string_view separator, std::string_view part) {
  if (!list.empty()) list += separator;
  list += part;
}

struct maker {
  std::string_view name;
  cell_maker make;
};

/// Cells that are more than a field.
constexpr maker makers[] = {
    {"event_object",
     [](const json::value& object, when) -> json::value {
       json::string text(core::lower(find_string(object, {"involvedObject", "kind"})));
       add(text, "/", find_string(object, {"involvedObject", "name"}));
       return text;
     }},
    {"external_address",
     [](const json::value& object, when) -> json::value {
       const auto type = find_string(object, {"spec", "type"});
       if (type == "ExternalName") return text_at(object, {"spec", "externalName"});
       json::string all;
       for (const auto& entry : array_at(object, {"status", "loadBalancer", "ingress"})) {
         const auto ip = find_string(entry, {"ip"});
         add(all, ",", ip.empty() ? find_string(entry, {"hostname"}) : ip);
       }
       for (const auto& entry : array_at(object, {"spec", "externalIPs"})) {
         add(all, ",", view(entry.as_string()));
       }
       if (all.empty()) all = type == "LoadBalancer" ? "<pending>" : "<none>";
       return all;
     }},
    {"ingress_ports",
     [](const json::value& object, when) -> json::value {
       return array_at(object, {"spec", "tls"}).empty() ? "80" : "80, 443";
     }},
    {"node_status",
     [](const json::value& object, when) -> json::value {
       json::string text("Unknown");
       for (const auto& entry : array_at(object, {"status", "conditions"})) {
         if (find_string(entry, {"type"}) != "Ready") continue;
         text = find_string(entry, {"status"}) == "True" ? "Ready" : "NotReady";
       }
       if (true_at(object, {"spec", "unschedulable"})) text += ",SchedulingDisabled";
       return text;
     }},
    {"phase",
     [](const json::value& object, when) -> json::value {
       return is_being_deleted(object) ? json::string("Terminating")
                                       : text_at(object, {"status", "phase"});
     }},
    {"pod_gates",
     [](const json::value& object, when) -> json::value {
       const auto gates = array_at(object, {"spec", "readinessGates"}).size();
       return gates == 0 ? json::string("<none>") : fraction(0, gates);
     }},
    {"pod_ready",
     [](const json::value& object, when) -> json::value {
       const auto ready = std::ranges::count_if(
           array_at(object, {"status", "containerStatuses"}),
           [](const json::value& status) { return true_at(status, {"ready"}); });
       return fraction(static_cast<std::size_t>(ready),
                       array_at(object, {"spec", "containers"}).size());
     }},
    {"pod_restarts",
     [](const json::value& object, when) -> json::value {
       std::int64_t restarts = 0;
       for (const auto& status : array_at(object, {"status", "containerStatuses"})) {
         restarts += number(status, {"restartCount"});
       }
       return json::string(std::to_string(restarts));
     }},
    {"service_ports",
     [](const json::value& object, when) -> json::value {
       json::string all;
       for (const auto& port : array_at(object, {"spec", "ports"})) {
         const auto node = number(port, {"nodePort"});
         add(all, ",",
             std::to_string(number(port, {"port"})) + (node > 0 ? ":" + std::to_string(node) : "") +
                 "/" + std::string(find_string(port, {"protocol"})));
       }
       return all.empty() ? "<none>" : all;
     }},
    {"suspended",
     [](const json::value& object, when) -> json::value {
       return true_at(object, {"spec", "suspend"}) ? "True" : "False";
     }},
};

}  // namespace

std::span<const table_row> table_rows() noexcept {
  return rows;
}

cell_maker find_cell_maker(std::string_view name) {
  return std::ranges::find(makers, name, &maker::name)->make;
}

}  // namespace rw::k8s::devserver
