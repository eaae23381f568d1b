#pragma once

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/desired_set.hpp"
#include "rw/reactors/bootstrapper/validation.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace rw::bootstrapper_test {

namespace json = boost::json;

inline const k8s::object_key deployment_key{"kyma-system", "rt-bootstrapper-controller-manager"};
inline const std::string bundle_name = "rt-bootstrapper.example.com:ctb:1";

inline std::string ca_pem(const std::string& name = "btp",
                          std::chrono::seconds validity = std::chrono::hours(24 * 365),
                          std::chrono::seconds age = std::chrono::minutes(1)) {
  return tls::issuer::create({.common_name = name,
                              .not_before = std::chrono::system_clock::now() - age,
                              .validity = validity})
      .value()
      .certificate_pem();
}

inline json::value config_map(std::string text,
                              const std::string& name = "rt-bootstrapper-config") {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name}, {"namespace", "kcp-system"}}},
          {"data", {{bootstrapper::configuration_key, std::move(text)}}}};
}

inline std::string good_configuration(const std::string& registry = "registry.example.com") {
  return R"({"overrides": {"europe-docker.pkg.dev": ")" + registry + R"("},
  "clusterTrustBundle": {"name": ")" +
         bundle_name + R"(", "volumeName": "certs",
    "volumeMountPath": "/etc/ssl/certs", "certWritePath": "ca.pem"},
  "availableFeatures": ["rt-cfg.kyma-project.io/alter-img-registry",
    "rt-cfg.kyma-project.io/add-img-pull-secret"],
  "namespaceFeatures": {"kyma-system": ["rt-cfg.kyma-project.io/alter-img-registry"],
    "istio-system": ["rt-cfg.kyma-project.io/all"]}})";
}

inline json::value pull_secret(const std::string& password = "secret") {
  json::value out{{"apiVersion", "v1"},
                  {"kind", "Secret"},
                  {"metadata", {{"name", "registry-credentials"}, {"namespace", "kcp-system"}}},
                  {"type", bootstrapper::pull_secret_type}};
  k8s::set_secret_data(out, bootstrapper::pull_secret_key,
                       R"({"auths": {"registry.example.com": {"username": "kyma", "password": ")" +
                           password + R"("}}})");
  return out;
}

inline json::value trust_bundle(std::string pem) {
  return {{"apiVersion", "certificates.k8s.io/v1beta1"},
          {"kind", "ClusterTrustBundle"},
          {"metadata", {{"name", bundle_name}}},
          {"spec",
           {{"signerName", "rt-bootstrapper.example.com/ctb"}, {"trustBundle", std::move(pem)}}}};
}

/// The bootstrapper as a ServiceAccount, Service, Deployment and webhook configuration; `more` is
/// appended. Nothing serves the webhook, so it is not for the creation of pods.
inline std::string manifests(const std::string& version = "1.0.0", const std::string& more = {}) {
  return R"(apiVersion: apps/v1
kind: Deployment
metadata:
  name: rt-bootstrapper-controller-manager
  namespace: kyma-system
  labels: {app.kubernetes.io/version: ")" +
         version + R"("}
spec:
  replicas: 1
  selector: {matchLabels: {app: rt-bootstrapper}}
  template:
    metadata: {labels: {app: rt-bootstrapper}}
    spec:
      serviceAccountName: rt-bootstrapper
      containers: [{name: manager, image: "example.com/rt-bootstrapper:)" +
         version + R"("}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: rt-bootstrapper, namespace: kyma-system, creationTimestamp: null}
---
apiVersion: v1
kind: Service
metadata: {name: rt-bootstrapper-webhook-service, namespace: kyma-system}
spec:
  selector: {app: rt-bootstrapper}
  ports: [{port: 443, targetPort: 9443, protocol: TCP}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: rt-bootstrapper}
webhooks:
  - name: pods.rt-bootstrapper.kyma-project.io
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Ignore
    clientConfig: {service: {name: rt-bootstrapper-webhook-service, namespace: kyma-system, path: /mutate}}
    rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods/eviction], operations: [CREATE]}]
)" + more;
}

inline json::value manifests_source(const std::string& text) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", "runtime-bootstrapper-manifests"}, {"namespace", "kcp-system"}}},
          {"data", {{"manifests.yaml", text}}}};
}

using bootstrapper::source_kind;

/// All sources, valid.
inline bootstrapper::render_input good_sources(const std::string& pem,
                                               const std::string& version = "1.0.0") {
  bootstrapper::render_input out;
  out.at(source_kind::trust_bundle) = {"ClusterTrustBundle " + bundle_name, trust_bundle(pem)};
  out.at(source_kind::pull_secret) = {"Secret kcp-system/registry-credentials", pull_secret()};
  out.at(source_kind::config) = {"ConfigMap kcp-system/rt-bootstrapper-config",
                                 config_map(good_configuration())};
  out.at(source_kind::manifests) = {"ConfigMap kcp-system/runtime-bootstrapper-manifests",
                                    manifests_source(manifests(version))};
  return out;
}

}  // namespace rw::bootstrapper_test
