"""Image and manifests on a real node: kubelet and containerd run what a release has, in Pods that the Deployments of deploy/ make,
behind Services that kube-proxy keeps, with Secrets that kubelet brings.

One cluster of node.py is KCP and a runtime: the Kyma's kubeconfig leads back to it. Its issuer is landscape.Issuer; its DNS server,
gateway and recorder of events are those of node_peers.py. From the moment at which the watcher is installed, objects change 20
times a second, and the last change of each must come to the recorder.

    node_test.py Serving     the label `node`
    node_test.py Waiting     the label `node-long`: what takes kubelet and the node's grace their own time
"""

import json
import os
import pathlib
import re
import sys
import time

import charts
import harness
import landscape
import node
from harness import BINARY, ROOT, runtime_watcher, wait_until
from landscape import DOMAIN, MANAGER, RUNTIME, decoded, encoded
from node_peers import TRUSTED, DnsServer, GatewayController, Recorder, ServiceGateway, Writer

IMAGE = "localhost/runtime-watcher"
TAG = "node"
WEBHOOK = ("deployment", "skr-webhook", "kyma-system")
TLS = "skr-webhook-tls"  # the Secret of the webhook
EVENTS = "runtime-watcher-manager-events"  # the manager's Service
MANAGED = {"operator.kyma-project.io/managed-by": "kyma"}
WATCHED = {"operator.kyma-project.io/watched-by": "kyma"}
START = 120  # seconds in which pods become ready, however busy the machine is


def is_available(deployment):
    """What `kubectl rollout status` waits for."""
    status = deployment.get("status", {})
    replicas = deployment["spec"]["replicas"]
    return (status.get("observedGeneration", 0) >= deployment["metadata"]["generation"] and
            all(status.get(name, 0) == replicas for name in ("replicas", "updatedReplicas", "availableReplicas")))


def is_ready(pod):
    return "deletionTimestamp" not in pod["metadata"] and any(
        c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


class OnANode(landscape.Real):
    """A node with the manager as deploy/manager installs it, before the first runtime."""

    HOST = "listener.kcp.example.com"

    def start_clusters(self):
        self.node = node.Node(self)
        return [self.node.cluster, self.node.cluster]

    def gateway_port(self):
        return 443

    def prepare(self):
        layout = self.folder / "image"
        node.run(ROOT / "deploy" / "image" / "build.sh", "--binary", BINARY, "--output", layout, "--tag", TAG)
        self.node.add_image(layout, IMAGE)
        super().prepare()
        for name in ("kyma-system", Writer.NAMESPACE):
            self.kcp.kubectl("create", "namespace", name)
        for name in ("kube-system", "kyma-system", "kcp-system", "istio-system"):
            # The API server sets it from 1.21 on.
            self.kcp.kubectl("label", "namespace", name, f"kubernetes.io/metadata.name={name}")
        kubeconfig = self.kcp.kubeconfig
        self.dns = DnsServer(kubeconfig, {self.HOST: node.GATEWAY_ADDRESS})
        self.gateway = self.start(ServiceGateway(self.folder / "nginx"))
        self.gateway_controller = GatewayController(kubeconfig, self.gateway, self.port)
        self.recorder = self.start(Recorder(self.kcp))
        for thread in (self.gateway_controller, self.dns):
            self.addCleanup(thread.stop)
        self.addCleanup(self.explain_failure)

    def deploy_manager(self):
        self.set_image(f"{IMAGE}:{TAG}")

    def manifests(self):
        """deploy/manager with what its README says to set."""
        overlay = self.folder / "overlay"
        overlay.mkdir(exist_ok=True)
        deployment = (ROOT / "deploy" / "manager" / "deployment.yaml").read_text()
        arguments = re.findall(r"^ {12}- (\S+)$", deployment, flags=re.MULTILINE)
        values = {"--skr-image": self.skr_image, "--xfcc-trusted-proxies": TRUSTED}
        patches = [{"op": "replace", "path": f"/spec/template/spec/containers/0/args/{i}", "value": f"{name}={values[name]}"}
                   for i, name in enumerate(argument.split("=")[0] for argument in arguments) if name in values]
        self.assertEqual(len(patches), len(values), arguments)
        (overlay / "kustomization.yaml").write_text(json.dumps({
            "resources": [os.path.relpath(ROOT / "deploy" / "manager", overlay)],
            "images": [{"name": "runtime-watcher", "newName": IMAGE, "newTag": TAG}],
            "patches": [{"target": {"kind": "Deployment", "name": MANAGER}, "patch": json.dumps(patches)}]}))
        return overlay

    def set_image(self, image):
        """Gives the manager another image for the runtimes."""
        self.skr_image = image
        super().deploy_manager()

    def start_manager(self, *_, **__):
        """It runs by its Deployment."""
        self.until_available("deployment", MANAGER, "kcp-system")
        watcher = (ROOT / "deploy" / "samples" / "watcher.yaml").read_text()
        self.kcp.kubectl("apply", "-f", "-", stdin=watcher)
        recorder = watcher.replace("name: kyma\n", "name: recorder\n").replace("lifecycle-manager", "recorder").replace(
            f"name: {EVENTS}, port: 8082", f"name: recorder, port: {Recorder.PORT}")
        self.kcp.kubectl("apply", "-f", "-", stdin=recorder)
        for name in ("kyma", "recorder"):
            self.kcp.until("watchers", name, "kcp-system", lambda w: w["status"]["state"] == "Ready", "is Ready")
        wait_until(lambda: "recorder" in (self.gateway.folder / "nginx.conf").read_text(), 30,
                   lambda: f"the gateway has its routes:\n{self.gateway.tail()}", every=0.1)

    def explain(self, ns):
        """What kubelet and the containers say, for a failure."""
        pods = self.kcp.attempt("get", "pods", "-n", ns, "-o", "wide").stdout
        events = self.kcp.attempt("get", "events", "-n", ns, "--sort-by=.lastTimestamp").stdout.splitlines()[-12:]
        logs = [self.kcp.attempt("logs", "-n", ns, name, "--tail=15", *previous).stdout for name in re.findall(r"^(\S+-\S+)", pods, re.MULTILINE)
                for previous in ((), ("--previous",))]
        return "\n".join([pods, *events, *logs])

    def explain_failure(self):
        if self._failed():
            for ns in ("kcp-system", "kyma-system"):
                print(self.explain(ns), file=sys.stderr)

    def until_available(self, kind, name, ns):
        wait_until(lambda: is_available(self.kcp.get(kind, name, ns) or {"spec": {"replicas": 1}, "metadata": {"generation": 1}}), START,
                   lambda: f"{name} is available:\n{self.explain(ns)}", every=0.3)

    def pods(self, deployment):
        """Those of a Deployment that are not being deleted."""
        labels = ",".join(f"{k}={v}" for k, v in deployment["spec"]["selector"]["matchLabels"].items())
        found = json.loads(self.kcp.kubectl("get", "pods", "-n", deployment["metadata"]["namespace"], "-l", labels, "-o", "json"))
        return [pod for pod in found["items"] if "deletionTimestamp" not in pod["metadata"]]

    def webhook_pod(self):
        """The one ready pod of the webhook, once there is one alone."""
        def alone():
            pods = self.pods(self.skr.get(*WEBHOOK))
            return pods[0] if len(pods) == 1 and is_ready(pods[0]) else None
        return wait_until(alone, START, lambda: f"one pod of the webhook is ready:\n{self.explain('kyma-system')}", every=0.3)

    def change(self, name, channel="regular"):
        self.skr.apply({"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Kyma", "spec": {"channel": channel},
                        "metadata": {"name": name, "namespace": Writer.NAMESPACE, "labels": WATCHED}})

    def until_recorded(self, name, cause):
        """Waits until an event of the object of this name comes that cause() has caused; returns the seconds that it took."""
        began = time.monotonic()
        cause()
        wait_until(lambda: self.recorder.has(name, began), 30,
                   lambda: f"an event of {name} comes:\n{self.explain('kyma-system')}\n{self.gateway.record.read_text()[-2000:]}")
        return time.monotonic() - began

    def step(self, name, began):
        self.note(f"{name}: {time.monotonic() - began:.1f} s")


class Serving(charts.Helm, OnANode, harness.TestCase):
    def check_confinement(self, pod):
        """The pod is as the policy says, and its process as the manifest says."""
        self.assertEqual(pod["metadata"]["annotations"]["kubernetes.io/psp"], "restricted")
        [process] = self.node.processes_of(pod)
        status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
        self.assertEqual((set(status["Uid"].split()), set(status["Gid"].split())), ({"10001"}, {"30001"}))
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(status[capabilities], 16), 0, capabilities)
        mounts = [line.split() for line in (process / "mounts").read_text().splitlines()]
        self.assertTrue(next(options for _, to, _, options, *_ in mounts if to == "/").startswith("ro"))
        limits = pod["spec"]["containers"][0]["resources"]["limits"]
        self.assertEqual(limits, {"memory": "200Mi", "cpu": "100m"})

    def certificate(self, ns="kyma-system", name=RUNTIME):
        """What the issuer gives to a runtime, for an installation without manager."""
        return self.issuer.secret_for({"metadata": {"namespace": ns}, "spec": {
            "commonName": name, "secretName": TLS, "secretTemplate": {"labels": MANAGED},
            "dnsNames": [DOMAIN, f"skr-webhook.{ns}.svc", f"skr-webhook.{ns}.svc.cluster.local"]}})["data"]

    def check_chart(self):
        """deploy/helm/runtime-watcher-skr starts, is tested by `helm test`, and its watcher sends an event."""
        if not charts.HELM:
            self.note('skipped: the chart runtime-watcher-skr; RW_HELM="$(tests/provide-helm.sh)"')
            return
        began = time.monotonic()
        files = self.certificate()
        text = {key: decoded({"data": files}, key).decode() for key in files}
        where = ("--namespace", "kyma-system", "--kubeconfig", self.kcp.kubeconfig)
        self.helm("install", "watcher", charts.SKR_CHART, *where, "--wait", "--timeout", f"{START}s", values={
            "image": {"repository": IMAGE, "tag": TAG}, "kcpAddress": f"{self.HOST}:{self.port}", "webhookCA": text["ca.crt"],
            "tls": {"ca": text["ca.crt"], "cert": text["tls.crt"], "key": text["tls.key"]},
            "watches": [{"name": "recorder", "manager": "recorder", "group": "operator.kyma-project.io", "version": "*",
                         "resource": "kymas", "field": "spec", "matchLabels": WATCHED}]})
        self.check_confinement(self.webhook_pod())
        self.until_recorded("of-the-chart", lambda: self.change("of-the-chart"))
        self.assertIn("allowed", node.run(charts.HELM, "test", "watcher", *where, "--logs"))
        node.run(charts.HELM, "uninstall", "watcher", *where, "--wait")
        self.step("the chart's Pod was ready, and sent an event", began)

    def klm_objects(self):
        """What lifecycle-manager installs, as the contracts of the existing system say; its image is ours."""
        files = self.certificate()
        labels = {**MANAGED, "app": "skr-webhook"}
        meta = lambda name, **more: {"name": name, "namespace": "kyma-system", "labels": labels, **more}
        service = lambda name, port, to: {"apiVersion": "v1", "kind": "Service", "metadata": meta(name), "spec": {
            "selector": {"app": "skr-webhook"}, "ports": [{"name": "port", "port": port, "targetPort": to}]}}
        environment = {"WEBHOOK_PORT": "8443", "METRICS_PORT": "2112", "CA_CERT": "/etc/webhook/certs/ca.crt",
                       "TLS_CERT": "/etc/webhook/certs/tls.crt", "TLS_KEY": "/etc/webhook/certs/tls.key",
                       "KCP_ADDR": f"{self.HOST}:{self.port}", "KCP_CONTRACT": "v2", "GODEBUG": "fips140=only,tlsmlkem=0"}
        container = {"name": "server", "image": f"{IMAGE}:{TAG}", "env": [{"name": k, "value": v} for k, v in environment.items()],
                     "ports": [{"name": "webhook", "containerPort": 8443}, {"name": "metrics", "containerPort": 2112}],
                     "resources": {"requests": {"memory": "20Mi", "cpu": "0.01"}, "limits": {"memory": "200Mi", "cpu": "0.1"}},
                     "securityContext": {"allowPrivilegeEscalation": False, "privileged": False, "readOnlyRootFilesystem": True,
                                         "capabilities": {"drop": ["ALL"]}},
                     "volumeMounts": [{"name": "ssl", "mountPath": "/etc/webhook/certs", "readOnly": True}]}
        return [
            {"apiVersion": "v1", "kind": "Secret", "metadata": meta(TLS), "data": files},
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "skr-webhook-priority"}, "value": 1000000000},
            service("skr-webhook", 443, 8443), service("skr-webhook-metrics", 2112, 2112),
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("skr-webhook"), "spec": {
                "replicas": 1, "selector": {"matchLabels": {"app": "skr-webhook"}}, "template": {
                    "metadata": {"labels": {"app": "skr-webhook", "sidecar.istio.io/inject": "false",
                                            "operator.kyma-project.io/pod-restart-trigger": "1"}},
                    "spec": {"priorityClassName": "skr-webhook-priority", "containers": [container],
                             "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 30001,
                                                 "seccompProfile": {"type": "RuntimeDefault"}},
                             "volumes": [{"name": "ssl", "secret": {"secretName": TLS}}]}}}},
            {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
             "metadata": {"name": "skr-webhook", "labels": MANAGED},
             "webhooks": [{"name": "kcp-system.recorder.operator.kyma-project.io", "admissionReviewVersions": ["v1"],
                           "clientConfig": {"caBundle": files["ca.crt"], "service": {
                               "name": "skr-webhook", "namespace": "kyma-system", "path": "/validate/recorder"}},
                           "objectSelector": {"matchLabels": WATCHED}, "sideEffects": "NoneOnDryRun", "timeoutSeconds": 15,
                           "failurePolicy": "Ignore", "rules": [{
                               "apiGroups": ["operator.kyma-project.io"], "apiVersions": ["*"], "resources": ["kymas"],
                               "operations": ["CREATE", "UPDATE", "DELETE"]}]}]}]

    def check_klm(self):
        """The image is a drop-in for lifecycle-manager's, whose Deployment sets neither command nor arguments."""
        began = time.monotonic()
        objects = self.klm_objects()
        self.skr.apply(*objects)
        self.until_available(*WEBHOOK)
        self.check_confinement(self.webhook_pod())
        self.until_recorded("of-klm", lambda: self.change("of-klm"))
        self.until_recorded("of-klm", lambda: self.change("of-klm", "fast"))
        for each in reversed(objects):
            self.skr.kubectl("delete", "--wait", "-f", "-", stdin=each)
        self.step("the Pod of lifecycle-manager's Deployment was ready, and sent two events", began)

    def install(self):
        began = time.monotonic()
        self.add_kyma()
        self.issue()
        self.installed(["kyma", "recorder"])
        self.until_available(*WEBHOOK)
        self.check_confinement(self.webhook_pod())
        self.until_recorded("first", lambda: self.change("first"))
        self.step("the manager's watcher was ready, and sent an event", began)
        self.writer = Writer(self.skr.kubeconfig)
        self.addCleanup(self.writer.stop)

    def test_last_change_of_each_object_arrives_while_pods_are_replaced_and_killed(self):
        self.check_chart()
        self.check_klm()
        self.install()
        self.note(f"{self.writer.until_told(self.recorder)} objects")


if __name__ == "__main__":
    node.isolated(harness.main)
