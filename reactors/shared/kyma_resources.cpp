#include "rw/reactors/shared/kyma_resources.hpp"

namespace rw {

const k8s::resource_type& watchers_type() {
  static const k8s::resource_type type{{"operator.kyma-project.io", "v1beta2", "Watcher"},
                                       "watchers"};
  return type;
}

const k8s::resource_type& kymas_type() {
  static const k8s::resource_type type{{"operator.kyma-project.io", "v1beta2", "Kyma"}, "kymas"};
  return type;
}

const k8s::resource_type& gateways_type() {
  static const k8s::resource_type type{{"networking.istio.io", "v1beta1", "Gateway"}, "gateways"};
  return type;
}

const k8s::resource_type& virtual_services_type() {
  static const k8s::resource_type type{{"networking.istio.io", "v1beta1", "VirtualService"},
                                       "virtualservices"};
  return type;
}

const k8s::resource_type& runtimes_type() {
  static const k8s::resource_type type{{"infrastructuremanager.kyma-project.io", "v1", "Runtime"},
                                       "runtimes"};
  return type;
}

const k8s::resource_type& secrets_type() {
  static const k8s::resource_type type{{"", "v1", "Secret"}, "secrets"};
  return type;
}

const k8s::resource_type& config_maps_type() {
  static const k8s::resource_type type{{"", "v1", "ConfigMap"}, "configmaps"};
  return type;
}

const k8s::resource_type& namespaces_type() {
  static const k8s::resource_type type{{"", "v1", "Namespace"}, "namespaces", false};
  return type;
}

}  // namespace rw
