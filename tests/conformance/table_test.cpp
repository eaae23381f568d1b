// Tables of built-in kinds, as kube-apiserver 1.32.13 makes them.

#include "sandbox.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(embedded_only)

using namespace rw;
using namespace rw::conformance;

BOOST_FIXTURE_TEST_CASE(table_has_the_columns_of_its_kind, sandbox) {
  const std::pair<std::string_view, std::string_view> all[] = {
      {"/api/v1/configmaps", "Name:string Data:string Age:string"},
      {"/api/v1/endpoints", "Name:string Endpoints:string Age:string"},
      {"/api/v1/events",
       "Last Seen:string Type:string Reason:string Object:string Subobject+:string Source+:string "
       "Message:string First Seen+:string Count+:string Name+:string"},
      {"/api/v1/limitranges", "Name:string Created At:date"},
      {"/api/v1/nodes",
       "Name:string Status:string Roles:string Age:string Version:string Internal-IP+:string "
       "External-IP+:string OS-Image+:string Kernel-Version+:string Container-Runtime+:string"},
      {"/api/v1/persistentvolumeclaims",
       "Name:string Status:string Volume:string Capacity:string Access Modes:string "
       "StorageClass:string VolumeAttributesClass:string Age:string VolumeMode+:string"},
      {"/api/v1/persistentvolumes",
       "Name:string Capacity:string Access Modes:string Reclaim Policy:string Status:string "
       "Claim:string StorageClass:string VolumeAttributesClass:string Reason:string Age:string "
       "VolumeMode+:string"},
      {"/api/v1/replicationcontrollers",
       "Name:string Desired:integer Current:integer Ready:integer Age:string Containers+:string "
       "Images+:string Selector+:string"},
      {"/api/v1/resourcequotas", "Name:string Age:string Request:string Limit:string"},
      {"/api/v1/secrets", "Name:string Type:string Data:string Age:string"},
      {"/api/v1/serviceaccounts", "Name:string Secrets:string Age:string"},
      {"/apis/apps/v1/deployments",
       "Name:string Ready:string Up-to-date:string Available:string Age:string Containers+:string "
       "Images+:string Selector+:string"},
      {"/apis/batch/v1/cronjobs",
       "Name:string Schedule:string Timezone:string Suspend:boolean Active:integer "
       "Last Schedule:string Age:string Containers+:string Images+:string Selector+:string"},
      {"/apis/batch/v1/jobs",
       "Name:string Status:string Completions:string Duration:string Age:string "
       "Containers+:string Images+:string Selector+:string"},
      {"/apis/autoscaling/v2/horizontalpodautoscalers",
       "Name:string Reference:string Targets:string MinPods:string MaxPods:string Replicas:string "
       "Age:string"},
      {"/apis/policy/v1/poddisruptionbudgets",
       "Name:string Min Available:string Max Unavailable:string Allowed Disruptions:integer "
       "Age:string"},
      {"/apis/networking.k8s.io/v1/ingressclasses",
       "Name:string Controller:string Parameters:string Age:string"},
      {"/apis/networking.k8s.io/v1/ingresses",
       "Name:string Class:string Hosts:string Address:string Ports:string Age:string"},
      {"/apis/networking.k8s.io/v1/networkpolicies", "Name:string Pod-Selector:string Age:string"},
      {"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       "Name:string Role:string Age:string Users+:string Groups+:string ServiceAccounts+:string"},
      {"/apis/rbac.authorization.k8s.io/v1/rolebindings",
       "Name:string Role:string Age:string Users+:string Groups+:string ServiceAccounts+:string"},
      {"/apis/rbac.authorization.k8s.io/v1/clusterroles", "Name:string Created At:date"},
      {"/apis/rbac.authorization.k8s.io/v1/roles", "Name:string Created At:date"},
      {"/apis/storage.k8s.io/v1/csidrivers",
       "Name:string AttachRequired:boolean PodInfoOnMount:boolean StorageCapacity:boolean "
       "TokenRequests:string RequiresRepublish:boolean Modes:string Age:string"},
      {"/apis/storage.k8s.io/v1/csinodes", "Name:string Drivers:integer Age:string"},
      {"/apis/storage.k8s.io/v1/storageclasses",
       "Name:string Provisioner:string ReclaimPolicy:string VolumeBindingMode:string "
       "AllowVolumeExpansion:string Age:string"},
      {"/apis/storage.k8s.io/v1/volumeattachments",
       "Name:string Attacher:string PV:string Node:string Attached:boolean Age:string"},
      {"/apis/scheduling.k8s.io/v1/priorityclasses",
       "Name:string Value:integer Global-Default:boolean Age:string PreemptionPolicy:string"},
      {"/apis/node.k8s.io/v1/runtimeclasses", "Name:string Handler:string Age:string"},
      {"/apis/discovery.k8s.io/v1/endpointslices",
       "Name:string AddressType:string Ports:string Endpoints:string Age:string"},
      {"/apis/events.k8s.io/v1/events",
       "Last Seen:string Type:string Reason:string Object:string Subobject+:string Source+:string "
       "Message:string First Seen+:string Count+:string Name+:string"},
      {"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "Name:string Created At:date"},
  };
  for (const auto& [at, columns] : all) {
    const auto got = parse(server
                               .http("GET", std::string(at) + "?limit=1", {},
                                     {{"accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}})
                               .body);
    std::string found;
    for (const auto& column : got.at("columnDefinitions").as_array()) {
      if (!found.empty()) found += ' ';
      found += text(column, "/name") + (text(column, "/priority") == "0" ? ":" : "+:") +
               text(column, "/type");
    }
    BOOST_TEST(found == columns, at);
  }
}

namespace {

struct shown {
  std::string_view path;
  std::string_view object;
  std::string_view cells;  ///< after the name, up to the age
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(cells_of_a_table_are_those_that_kubectl_shows, sandbox) {
  const shown all[] = {
      {"/api/v1/namespaces/NS/services",
       R"({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.7.7", "ports": [{"port": 80,
           "nodePort": 31993}]}})",
       R"(["LoadBalancer","10.0.7.7","<pending>","80:31993/TCP"])"},
      {"/api/v1/namespaces/NS/configmaps", R"({"data": {"a": "1"}, "binaryData": {"b": "eA=="}})",
       "[2]"},
      {"/api/v1/namespaces/NS/endpoints",
       R"({"subsets": [{"addresses": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.2"}], "ports": [
           {"port": 80}, {"port": 81}]}]})",
       R"(["1.1.1.1,1.1.1.2"])"},
      {"/api/v1/nodes",
       R"({"metadata": {"labels": {"node-role.kubernetes.io/master": ""}}, "spec":
           {"unschedulable": true}})",
       R"(["Unknown,SchedulingDisabled","<none>"])"},
      {"/api/v1/persistentvolumes",
       R"({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "hostPath":
           {"path": "/x"}, "claimRef": {"namespace": "n", "name": "c"}}})",
       R"(["1Gi","RWX","Retain","Pending","n/c","","<unset>",""])"},
      {"/apis/batch/v1/namespaces/NS/jobs",
       R"({"spec": {"completions": 2, "template": {"spec": {"restartPolicy": "Never", "containers":
           [{"name": "c", "image": "i"}]}}}})",
       R"(["Running","0/2",""])"},
      {"/apis/batch/v1/namespaces/NS/cronjobs",
       R"({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec":
           {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}}})",
       R"(["* * * * *","<none>","False",0,"<none>"])"},
      {"/apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers",
       R"({"spec": {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "d"}}})",
       R"(["Deployment/d","<unknown>","1",2,0])"},
      {"/apis/policy/v1/namespaces/NS/poddisruptionbudgets",
       R"({"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}}})",
       R"(["N/A","1",0])"},
      {"/apis/networking.k8s.io/v1/namespaces/NS/ingresses",
       R"({"spec": {"ingressClassName": "c", "tls": [{"hosts": ["h"]}], "defaultBackend":
           {"service": {"name": "s", "port": {"number": 80}}}}})",
       R"(["c","*","","80, 443"])"},
      {"/apis/networking.k8s.io/v1/namespaces/NS/networkpolicies",
       R"({"spec": {"podSelector": {"matchExpressions": [{"key": "k", "operator": "In", "values":
           ["x", "y"]}]}}})",
       R"x(["k in (x,y)"])x"},
      {"/apis/discovery.k8s.io/v1/namespaces/NS/endpointslices",
       R"({"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses":
           ["1.1.1.1"]}]})",
       R"(["IPv4","80","1.1.1.1"])"},
      {"/apis/storage.k8s.io/v1/storageclasses", R"({"provisioner": "p"})",
       R"(["p","Delete","Immediate",false])"},
      {"/apis/storage.k8s.io/v1/csidrivers", "{}",
       R"([true,false,false,"<unset>",false,"Persistent"])"},
      {"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       R"({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name":
           "r"}})",
       R"(["ClusterRole/r"])"},
  };
  for (const auto& [kind, object, cells] : all) {
    std::string at(kind);
    if (const auto slot = at.find("NS"); slot != at.npos) at.replace(slot, 2, ns);
    const auto name = server.unique("t");
    const auto made =
        server.http("POST", at, serialize(with(parse(object), "/metadata/name", name)));
    BOOST_TEST_REQUIRE(made.status == 201u, kind << ": " << made.body);
    const auto table = parse(server
                                 .http("GET", at + "/" + name, {},
                                       {{"accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}})
                                 .body);
    const auto& columns = table.at("columnDefinitions").as_array();
    boost::json::array found;
    for (std::size_t i = 1; i < columns.size() && text(columns[i], "/name") != "Age"; ++i) {
      found.push_back(table.at_pointer("/rows/0/cells").as_array().at(i));
    }
    BOOST_TEST(serialize(found) == cells, kind);
    server.http("DELETE", at + "/" + name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
