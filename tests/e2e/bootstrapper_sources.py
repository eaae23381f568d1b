"""The sources in KCP that runtimes get the Runtime Bootstrapper from, good and broken."""

import json
import re

from landscape import encoded

CONFIG = "rt-bootstrapper-config"
MANIFESTS = "runtime-bootstrapper-manifests"
PULL_SECRET = "registry-credentials"
TRUST_BUNDLE = "rt-bootstrapper-trust-bundle"
DEPLOYMENT = "rt-bootstrapper-controller-manager"
# The kind, for API servers that do not have it (KEP-3257). The API server asks for the annotation in its own groups.
TRUST_BUNDLES = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "clustertrustbundles.certificates.k8s.io",
                 "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}},
    "spec": {"group": "certificates.k8s.io", "scope": "Cluster",
             "names": {"kind": "ClusterTrustBundle", "plural": "clustertrustbundles", "singular": "clustertrustbundle"},
             "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object", "properties": {"spec": {"type": "object", "properties": {
                     "signerName": {"type": "string"}, "trustBundle": {"type": "string"}}}}}}}]}}
FEATURE = "rt-cfg.kyma-project.io/"

BROKEN_DOCUMENT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: broken, namespace: kyma-system\n"
UNKNOWN_KIND = "apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: nothing, namespace: kyma-system}\n"
# Text with lines that look like the end of a document.
BLOCK_SCALAR = """apiVersion: v1
kind: ConfigMap
metadata: {name: rt-bootstrapper-script, namespace: kyma-system}
data:
  script: |
    first
    ---
    kind: Nothing
    ---
    last
"""
BLOCK_TEXT = "first\n---\nkind: Nothing\n---\nlast\n"
EXTRA = """apiVersion: v1
kind: ConfigMap
metadata: {name: rt-bootstrapper-extra, namespace: kyma-system}
data: {a: "1"}
"""


def too_large():
    """A ConfigMap of more than the 1 MiB that an API server takes, in a text that another one can hold: by an alias."""
    return ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rt-bootstrapper-large, namespace: kyma-system}\n"
            f"data:\n  first: &text \"{'x' * (550 << 10)}\"\n  second: *text\n")


def manifests(version, *more):
    """The bootstrapper as a Deployment, ServiceAccount, Service and webhook configuration. Nothing serves the webhook, so it is
    not for the creation of pods."""
    return "---\n".join([f"""apiVersion: apps/v1
kind: Deployment
metadata:
  name: {DEPLOYMENT}
  namespace: kyma-system
  labels: {{app.kubernetes.io/version: "{version}"}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: rt-bootstrapper}}}}
  template:
    metadata: {{labels: {{app: rt-bootstrapper}}}}
    spec:
      serviceAccountName: rt-bootstrapper
      containers: [{{name: manager, image: "example.com/rt-bootstrapper:{version}"}}]
""", """apiVersion: v1
kind: ServiceAccount
metadata: {name: rt-bootstrapper, namespace: kyma-system}
""", """apiVersion: v1
kind: Service
metadata: {name: rt-bootstrapper-webhook-service, namespace: kyma-system}
spec:
  selector: {app: rt-bootstrapper}
  ports: [{port: 443, targetPort: 9443, protocol: TCP}]
""", """apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: rt-bootstrapper}
webhooks:
  - name: pods.rt-bootstrapper.kyma-project.io
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Ignore
    clientConfig: {service: {name: rt-bootstrapper-webhook-service, namespace: kyma-system, path: /mutate}}
    rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods/eviction], operations: [CREATE]}]
""", *more])


def with_webhook(text, url, ca):
    """The same manifests with the webhook at an address where it is served, for the creation of pods."""
    served = f'clientConfig: {{url: "{url}", caBundle: {encoded(ca)}}}'
    return re.sub(r"clientConfig: .*", served, text).replace("pods/eviction", "pods")


def configuration(bundle, registry="registry.example.com", features=("alter-img-registry", "add-img-pull-secret")):
    config = {"overrides": {"europe-docker.pkg.dev": registry}, "availableFeatures": [FEATURE + each for each in features],
              "namespaceFeatures": {"kyma-system": [FEATURE + "alter-img-registry"]}}
    if bundle:
        config["clusterTrustBundle"] = {"name": TRUST_BUNDLE, "volumeName": "certs", "volumeMountPath": "/etc/ssl/certs",
                                        "certWritePath": "ca.pem"}
    return json.dumps(config)


def config_map(name, data, ns="kcp-system"):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": ns}, "data": data}


def configuration_source(text, ns="kcp-system"):
    return config_map(CONFIG, {f"{CONFIG}.json": text}, ns)


def manifests_source(text):
    return config_map(MANIFESTS, {"manifests.yaml": text})


def pull_secret(password, ns="kcp-system", kind="kubernetes.io/dockerconfigjson"):
    auths = json.dumps({"auths": {"registry.example.com": {"username": "kyma", "password": password}}})
    return {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": {"name": PULL_SECRET, "namespace": ns},
            "data": {".dockerconfigjson": encoded(auths)}}


def trust_bundle(pem):
    return {"apiVersion": "certificates.k8s.io/v1beta1", "kind": "ClusterTrustBundle", "metadata": {"name": TRUST_BUNDLE},
            "spec": {"trustBundle": pem}}
