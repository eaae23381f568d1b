#include "reactors/dev/manifests.hpp"

#include "core/json_text.hpp"
#include "k8s/objects/base64.hpp"
#include "reactors/shared/bootstrapper_mode.hpp"

namespace rw::dev {

/// Made by the build (built_in.cmake).
extern const char* const built_in_definitions;
extern const char* const built_in_watcher;
extern const char* const built_in_bootstrapper_sources;

std::string definitions() {
  return built_in_definitions;
}

std::string sample_watcher() {
  return built_in_watcher;
}

std::string kcp_manifests(const std::string& host, std::uint16_t port) {
  return "apiVersion: v1\nkind: Namespace\nmetadata: {name: kcp-system}\n---\n"
         "apiVersion: v1\nkind: Namespace\nmetadata: {name: istio-system}\n---\n"
         "apiVersion: v1\nkind: Namespace\nmetadata: {name: runtime-watcher-system}\n---\n"
         "apiVersion: networking.istio.io/v1beta1\n"
         "kind: Gateway\n"
         "metadata:\n"
         "  name: klm-watcher\n"
         "  namespace: kcp-system\n"
         "  labels: {operator.kyma-project.io/watcher-gateway: default}\n"
         "spec:\n"
         "  selector: {istio: ingressgateway}\n"
         "  servers:\n"
         "    - hosts: [" +
         host +
         "]\n"
         "      port: {name: https, number: " +
         std::to_string(port) +
         ", protocol: HTTPS}\n"
         "      tls: {mode: MUTUAL, credentialName: klm-istio-gateway}\n";
}

std::string runtime_manifests() {
  return "apiVersion: v1\nkind: Namespace\nmetadata: {name: kyma-system}\n---\n"
         "apiVersion: operator.kyma-project.io/v1beta2\n"
         "kind: Kyma\n"
         "metadata:\n"
         "  name: default\n"
         "  namespace: kyma-system\n"
         "  labels: {operator.kyma-project.io/watched-by: kyma}\n"
         "spec: {channel: regular}\n";
}

std::string kyma_manifest(const cluster& runtime) {
  return "apiVersion: operator.kyma-project.io/v1beta2\n"
         "kind: Kyma\n"
         "metadata:\n"
         "  name: " +
         runtime.name +
         "\n"
         "  namespace: kcp-system\n"
         "  labels: {kyma-project.io/runtime-id: " +
         runtime.name +
         "}\n"
         "  annotations: {skr-domain: " +
         runtime.name +
         ".example.com}\n"
         "spec: {channel: regular}\n";
}

std::string access_manifest(const cluster& runtime) {
  return "apiVersion: v1\n"
         "kind: Secret\n"
         "metadata:\n"
         "  name: kubeconfig-" +
         runtime.name +
         "\n"
         "  namespace: kcp-system\n"
         "  labels: {operator.kyma-project.io/kyma-name: " +
         runtime.name +
         "}\n"
         "data:\n"
         "  config: " +
         k8s::base64_encode(runtime.kubeconfig) + "\n";
}

std::string sample_bootstrapper_sources() {
  return built_in_bootstrapper_sources;
}

std::string trust_bundle_manifest(const std::string& certificates) {
  std::string out =
      "apiVersion: certificates.k8s.io/v1beta1\n"
      "kind: ClusterTrustBundle\n"
      "metadata: {name: " +
      bootstrapper_sources().trust_bundle + "}\nspec:\n  trustBundle: ";
  core::append_json_string(out, certificates);  // which YAML reads as well
  return out + "\n";
}

/// The spec has what Kyma Infrastructure Manager's own definition asks for.
std::string runtime_manifest(const cluster& runtime) {
  return "apiVersion: infrastructuremanager.kyma-project.io/v1\n"
         "kind: Runtime\n"
         "metadata:\n"
         "  name: " +
         runtime.name +
         "\n"
         "  namespace: kcp-system\n"
         "  labels:\n"
         "    operator.kyma-project.io/kyma-name: " +
         runtime.name + "\n    kyma-project.io/runtime-id: " + runtime.name +
         "\n"
         "spec:\n"
         "  security:\n"
         "    administrators: []\n"
         "    networking: {filter: {egress: {enabled: false}}}\n"
         "  shoot:\n"
         "    name: " +
         runtime.name +
         "\n"
         "    networking: {nodes: 10.0.0.0/16, pods: 10.1.0.0/16, services: 10.2.0.0/16}\n"
         "    platformRegion: cf-eu10\n"
         "    provider: {type: aws, workers: []}\n"
         "    purpose: development\n"
         "    region: eu-central-1\n"
         "    secretBindingName: none\n";
}

}  // namespace rw::dev
