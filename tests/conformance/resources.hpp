#pragma once

#include "rw/k8s/objects/names.hpp"

#include "json.hpp"
#include <string>

namespace rw::conformance {

inline const k8s::resource_type config_maps{{"", "v1", "ConfigMap"}, "configmaps", true};
inline const k8s::resource_type secrets{{"", "v1", "Secret"}, "secrets", true};
inline const k8s::resource_type pods{{"", "v1", "Pod"}, "pods", true};
inline const k8s::resource_type services{{"", "v1", "Service"}, "services", true};
inline const k8s::resource_type events{{"", "v1", "Event"}, "events", true};
inline const k8s::resource_type namespaces{{"", "v1", "Namespace"}, "namespaces", false};
inline const k8s::resource_type deployments{{"apps", "v1", "Deployment"}, "deployments", true};
inline const k8s::resource_type leases{{"coordination.k8s.io", "v1", "Lease"}, "leases", true};
inline const k8s::resource_type cluster_roles{
    {"rbac.authorization.k8s.io", "v1", "ClusterRole"}, "clusterroles", false};
inline const k8s::resource_type crds{
    {"apiextensions.k8s.io", "v1", "CustomResourceDefinition"}, "customresourcedefinitions", false};
inline const k8s::resource_type webhook_configurations{
    {"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"},
    "validatingwebhookconfigurations",
    false};

/// An object of that type with a name, and otherwise as `rest`.
json object(const k8s::resource_type& type, std::string_view name,
            json rest = boost::json::object());

/// A ConfigMap with this data and these labels.
json config_map(std::string_view name, json data = nullptr, json labels = nullptr);

/// A Pod of one container.
json simple_pod(std::string_view name);

/// A Deployment of two containers, `one` and `two`.
json deployment(std::string_view name);

/// A CustomResourceDefinition of one version, v1; its kind is the group's only one. `schema` is
/// that of the whole object.
json definition(const std::string& group, const std::string& kind, const std::string& plural,
                json schema);

/// The type that such a definition makes.
k8s::resource_type custom_type(const json& crd);

}  // namespace rw::conformance
