"""Image and manifests on a real node: kubelet and containerd run what a release has, in Pods that the Deployments of deploy/ make,
behind Services that kube-proxy keeps, with Secrets that kubelet brings.

One cluster of node.py is KCP and a runtime: the Kyma's kubeconfig leads back to it. Its issuer is landscape.Issuer; its DNS server,
gateway and recorder of events are those of node_peers.py. From the moment at which the watcher is installed, objects change 20
times a second, and the last change of each, or a resync after it, must come to the recorder.

    node_test.py Serving     the label `node`
    node_test.py Waiting     the label `node-long`: what takes kubelet and the node's grace their own time
"""

import json
import os
import re
import signal
import socket
import ssl
import sys
import time

import charts
import harness
import landscape
import node
from api import Api, collection
from harness import BINARY, ROOT, pause, runtime_watcher, wait_until
from landscape import DOMAIN, MANAGER, RUNTIME, decoded
from node_peers import TRUSTED, DnsServer, GatewayController, Recorder, ServiceGateway, Writer
from pods import pod_of_lifecycle_manager

IMAGE = "localhost/runtime-watcher"
TAG = "node"
WEBHOOK = ("deployment", "skr-webhook", "kyma-system")
CRASHING = "localhost/crashing:1"
HUNGRY = "localhost/hungry:1"
ABSENT = "localhost/absent:1"
TLS = "skr-webhook-tls"  # the Secret of the webhook
ROLLOUT = ("runtimerollouts.operator.kyma-project.io", "watcher", "kcp-system")
LEASE = ("leases", MANAGER, "kcp-system")
PATH = "/v2/lifecycle-manager/event"  # of the manager's events, and of batches of them
EVENTS = "runtime-watcher-manager-events"  # the manager's Service
MANAGED = {"operator.kyma-project.io/managed-by": "kyma"}
WATCHED = {"operator.kyma-project.io/watched-by": "kyma"}
LEADERS = 30  # seconds from a leader's death until its successor has an event, of which 15 are the Lease
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

    HOST = "listener.kcp.test"
    ARGUMENTS = ()  # of the manager, beside those of its Deployment

    def start_clusters(self):
        self.node = node.Node(self)
        return [self.node.cluster, self.node.cluster]

    def gateway_port(self):
        return 443

    def prepare(self):
        layout = self.folder / "image"
        node.run(ROOT / "deploy" / "image" / "build.sh", "--binary", BINARY, "--output", layout, "--tag", TAG)
        self.node.add_image(layout, IMAGE)
        for name in ("kyma-system", Writer.NAMESPACE):
            self.kcp.kubectl("create", "namespace", name)
        super().prepare()
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
        file = ROOT / "deploy" / "manager" / "deployment.yaml"
        deployment = json.loads(self.kcp.kubectl("create", "--dry-run=client", "-o", "json", "-f", file))
        arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        values = {"--skr-image": self.skr_image, "--xfcc-trusted-proxies": TRUSTED}
        patches = [{"op": "replace", "path": f"/spec/template/spec/containers/0/args/{i}", "value": f"{name}={values[name]}"}
                   for i, name in enumerate(argument.split("=")[0] for argument in arguments) if name in values]
        self.assertEqual(len(patches), len(values), arguments)
        patches += [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": value} for value in self.ARGUMENTS]
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
        logs = [self.kcp.attempt("logs", "-n", ns, name, "--tail=15", *previous).stdout
                for name in re.findall(r"^(\S+-\S+)", pods, re.MULTILINE) for previous in ((), ("--previous",))]
        return "\n".join([pods, *events, *logs])

    def explain_failure(self):
        if self._failure():
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
        self.until_rolled_out()
        self.until_proven()
        self.step("`doctor` has proven all", began)

    def until_rolled_out(self):
        """A container that restarts before that counts against the content."""
        self.kcp.until(*ROLLOUT, lambda r: r["status"].get("phase") == "Completed", "is completed")

    def until_proven(self):
        """`doctor` finds nothing, by what the runtime's watcher reports, and heartbeats come."""
        last = {}
        def proven():
            for command in ("doctor", "status"):
                last[command] = runtime_watcher(command, "--kubeconfig", self.kcp.kubeconfig, timeout=60)
            return (not any(done.returncode for done in last.values()) and
                    re.search("^kyma-1 .* live ", last["status"].stdout, re.MULTILINE))
        wait_until(proven, START, lambda: "\n".join(f"{done.stdout}{done.stderr}" for done in last.values()), every=0.5)

    def step(self, name, began):
        self.note(f"{name}: {time.monotonic() - began:.1f} s")


class Serving(charts.Helm, OnANode, harness.TestCase):
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
        return [
            {"apiVersion": "v1", "kind": "Secret", "metadata": meta(TLS), "data": files},
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "skr-webhook-priority"},
             "value": 1000000000},
            service("skr-webhook", 443, 8443), service("skr-webhook-metrics", 2112, 2112),
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("skr-webhook"), "spec": {
                "replicas": 1, "selector": {"matchLabels": {"app": "skr-webhook"}}, "template": {
                    "metadata": {"labels": {"app": "skr-webhook", "sidecar.istio.io/inject": "false",
                                            "operator.kyma-project.io/pod-restart-trigger": "1"}},
                    "spec": pod_of_lifecycle_manager(f"{IMAGE}:{TAG}", f"{self.HOST}:{self.port}")}}},
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

    def until_restarted(self, pod):
        """Waits until the container of the pod runs again, in the same pod, and is ready."""
        count = lambda found: found["status"]["containerStatuses"][0]["restartCount"]
        def again():
            found = self.kcp.get("pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
            return found and count(found) > count(pod) and is_ready(found)
        wait_until(again, START, lambda: f"the container is ready again:\n{self.explain(pod['metadata']['namespace'])}", every=0.2)

    def check_ends_of_the_pod(self):
        """The webhook's pod is replaced, deleted and killed."""
        def restart():
            self.skr.kubectl("rollout", "restart", "deployment/skr-webhook", "-n", "kyma-system")
            self.until_available(*WEBHOOK)
        def delete():
            self.skr.kubectl("delete", "pod", self.webhook_pod()["metadata"]["name"], "-n", "kyma-system", "--wait=false")
            self.until_available(*WEBHOOK)
        def kill():
            pod = self.webhook_pod()
            self.node.kill_container(pod)
            self.until_restarted(pod)
        self.note(f"an event came {self.until_recorded('by-kubectl', lambda: self.change('by-kubectl')):.2f} s after kubectl began")
        for end in (restart, delete, kill):
            began = time.monotonic()
            end()
            told = self.writer.until_told(self.recorder)
            self.step(f"{end.__name__} of the webhook's pod: the last changes of {told}", began)

    def leader(self):
        """The pod that leads, once there is one."""
        def look():
            holder = self.kcp.get(*LEASE)["spec"].get("holderIdentity")
            return holder and self.kcp.get("pod", holder.rpartition("_")[0], "kcp-system")
        return wait_until(look, START, lambda: f"there is a leader:\n{self.explain('kcp-system')}", every=0.2)

    def check_leader_is_killed(self):
        """Its container starts again as a standby, at the address that the gateway keeps connections to, and another pod leads. Where
        that happens in another order, once more with new pods, which kubelet restarts without delay."""
        self.kcp.kubectl("scale", "deployment", MANAGER, "-n", "kcp-system", "--replicas=3")
        for _ in range(4):
            self.until_available("deployment", MANAGER, "kcp-system")
            if self.has_other_leader_after_kill():
                break
            self.kcp.kubectl("rollout", "restart", f"deployment/{MANAGER}", "-n", "kcp-system")
        else:
            self.fail("no other replica ever leads")
        self.kcp.kubectl("scale", "deployment", MANAGER, "-n", "kcp-system", "--replicas=2")
        self.writer.until_told(self.recorder)

    def accepted(self, since):
        """When the leader accepted events (Unix seconds), since then."""
        return [request["at"] for request in self.gateway.requests(PATH, since) if request["status"] == 200]

    def until_accepted(self, since, timeout=START):
        statuses = lambda: [request["status"] for request in self.gateway.requests(PATH, since)]
        wait_until(lambda: self.accepted(since), timeout,
                   lambda: f"a leader accepts events, not {statuses()[-20:]}:\n{self.explain('kcp-system')}", every=0.2)

    def check_manager_restarts(self):
        """As at an upgrade: its pods are replaced, one after the other."""
        self.until_accepted(time.time())
        began = time.time()
        self.kcp.kubectl("rollout", "restart", f"deployment/{MANAGER}", "-n", "kcp-system")
        self.until_available("deployment", MANAGER, "kcp-system")
        self.until_accepted(time.time())
        times = [began, *self.accepted(began)]
        longest = max(later - earlier for earlier, later in zip(times, times[1:]))
        self.note(f"restart of the manager: no event was accepted for {longest:.1f} s")
        self.assertLess(longest, LEADERS)
        self.writer.until_told(self.recorder)

    def has_other_leader_after_kill(self):
        pod = self.leader()
        self.until_accepted(time.time())
        killed = time.time()
        # Back at once, the container often wins the Lease itself: it sees the last renewal as soon as the others, which look every 2 to
        # 4.4 s. Back after 7 s, it does not, and the Lease lasts for 6 s more at least.
        self.node.kubelet.send(signal.SIGSTOP)
        try:
            self.node.kill_container(pod)
            pause(6)
        finally:
            self.node.kubelet.send(signal.SIGCONT)
        self.until_accepted(killed, LEADERS)
        statuses = lambda: [request["status"] for request in self.gateway.requests(PATH, killed)]
        first = self.accepted(killed)[0] - killed
        other = self.leader()["metadata"]["name"] != pod["metadata"]["name"]
        until_then = statuses()[:statuses().index(200)]
        self.note(f"killed the leader's container: {'another' if other else 'the same'} pod accepted an event {first:.1f} s later, "
                  f"after {until_then.count(503)} answers 503 and {len(until_then) - until_then.count(503)} others")
        self.assertLess(first, LEADERS)
        return other and 503 in until_then

    def until_named(self, *patterns):
        """Waits until `status` and `doctor` both say each of these; returns what `doctor` says."""
        last = {}
        def named():
            for command, options in (("status", ("-o", "wide")), ("doctor", ())):
                done = runtime_watcher(command, "--kubeconfig", self.kcp.kubeconfig, *options, timeout=60)
                self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)
                last[command] = done.stdout
            return all(re.search(pattern, text) for pattern in patterns for text in last.values())
        wait_until(named, START, lambda: f"both say {patterns}:\n{last}\n{self.explain('kyma-system')}", every=0.5)
        self.note(re.search(rf"FAILED .*{patterns[0]}.*\n.*fix: .*", last["doctor"])[0])
        return last["doctor"]

    def check_quota(self):
        """No pod may be created."""
        began = time.monotonic()
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-pods", "namespace": "kyma-system"},
                 "spec": {"hard": {"pods": "0"}}}
        self.skr.apply(quota)
        self.skr.until("resourcequota", "no-pods", "kyma-system", lambda q: "pods" in q.get("status", {}).get("hard", {}), "is in force")
        self.skr.kubectl("delete", "pod", "-l", "app=skr-webhook", "-n", "kyma-system", "--wait=false")
        told = self.until_named("exceeded quota: no-pods")
        command = re.search("fix: on the runtime: kubectl (.*?), and what the message names: a ResourceQuota", told)
        self.assertIn("exceeded quota: no-pods", self.skr.kubectl(*command[1].split()), "the next step shows the cause")
        self.skr.kubectl("delete", "resourcequota", "no-pods", "-n", "kyma-system")
        # The controller of ReplicaSets tries again at longer and longer intervals, and when one changes.
        self.skr.kubectl("rollout", "restart", "deployment/skr-webhook", "-n", "kyma-system")
        self.until_available(*WEBHOOK)
        self.writer.until_told(self.recorder)
        self.step("a quota without pods was named, and is away", began)

    def until_paused(self):
        self.kcp.until(*ROLLOUT, lambda r: r["status"].get("phase") == "Paused", "is paused")

    def check_images(self):
        """One that crashes, one that needs more memory than it may have, and one that is not there pause the roll-out; the pod before
        serves. Then the right one again."""
        pod = self.webhook_pod()
        self.node.add_program(CRASHING.partition(":")[0], r'int main(void) { write(2, "crashes on purpose\n", 19); return 3; }')
        self.node.add_program(HUNGRY.partition(":")[0], "#include <stdlib.h>\nint main(void) { for (;;) { volatile char* more = "
                              "malloc(1 << 20); for (int i = 0; i < 1 << 20; i += 4096) more[i] = 1; } }")
        for image, named in ((CRASHING, ("CrashLoopBackOff", "crashes on purpose")), (HUNGRY, ("OOMKilled", "ended with code 137")),
                             (ABSENT, ("ImagePullBackOff", ABSENT))):
            began = time.monotonic()
            self.set_image(image)
            self.until_available("deployment", MANAGER, "kcp-system")
            self.skr.until(*WEBHOOK, lambda d, image=image: d["spec"]["template"]["spec"]["containers"][0]["image"] == image, f"has {image}")
            self.until_paused()
            told = self.until_named(*named)
            self.assertIn("fix: correct the content, which supersedes it", told)
            self.assertTrue(is_ready(self.skr.get("pod", pod["metadata"]["name"], "kyma-system")))
            self.writer.until_told(self.recorder)
            self.step(f"{image} was named, and its roll-out is paused", began)
        began = time.monotonic()
        self.set_image(f"{IMAGE}:{TAG}")
        self.until_available("deployment", MANAGER, "kcp-system")
        self.until_rolled_out()
        self.until_available(*WEBHOOK)
        self.writer.until_told(self.recorder)
        self.step("the right image is back", began)

    def all_objects(self):
        """Kind, namespace and name of each, but for what the cluster itself makes, and the objects that change."""
        kinds = self.kcp.kubectl("api-resources", "--verbs=list", "-o", "name").split()
        passing = ("events", "pods", "endpoints", "endpointslices", "replicasets", "controllerrevisions")
        kinds = [kind for kind in kinds if kind.split(".")[0] not in passing]
        text = self.kcp.kubectl("get", ",".join(kinds), "-A", "--no-headers", "-o",
                                "custom-columns=KIND:.kind,NS:.metadata.namespace,NAME:.metadata.name")
        own = re.compile(rf".* {Writer.NAMESPACE} .*|ServiceAccount \S+ default|Secret \S+ default-token-\w+|"
                         r"ConfigMap \S+ kube-root-ca.crt")
        return {line for line in (" ".join(line.split()) for line in text.splitlines()) if not own.fullmatch(line)}

    def check_uninstall(self):
        """As deploy/manager/README.md says. Only what the user has made is left, and nothing holds that."""
        began = time.monotonic()
        self.writer.stop()
        self.kcp.kubectl("scale", "deployment", MANAGER, "-n", "kcp-system", "--replicas=0")
        done = runtime_watcher("uninstall", "--kubeconfig", self.kcp.kubeconfig, timeout=90)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.kcp.kubectl("delete", "-f", "-", stdin=self.manager_objects())
        self.kcp.kubectl("delete", "watcher", "kyma", "recorder", "-n", "kcp-system", "--timeout=30s")
        self.kcp.kubectl("delete", "kyma", "kyma-1", "-n", "kcp-system", "--timeout=30s")
        self.kcp.kubectl("delete", f"secret/kubeconfig-{RUNTIME}", "service/recorder", "-n", "kcp-system")
        left = lambda: self.all_objects() - self.before
        wait_until(lambda: not left(), 60, lambda: f"nothing is left: {sorted(left())}", every=0.5)
        slices = [s["metadata"]["name"] for s in self.kcp.get("endpointslices", ns="kcp-system")["items"]]
        self.assertNotIn(EVENTS, slices)
        self.step("uninstall has left nothing", began)

    def deploy_manager(self):
        self.before = self.all_objects()
        super().deploy_manager()

    def test_last_change_of_each_object_arrives_while_pods_are_replaced_and_killed(self):
        self.check_chart()
        self.check_klm()
        self.install()
        self.check_ends_of_the_pod()
        self.check_manager_restarts()
        self.check_leader_is_killed()
        self.check_quota()
        self.check_images()
        self.check_uninstall()
        self.note(f"{self.writer.count} changes, {self.writer.rate:.1f} a second")
        self.assertGreater(self.writer.rate, Writer.RATE / 2)


class Waiting(OnANode, harness.TestCase):
    """What takes minutes: kubelet is away for longer than the node's grace, and a CA rotation waits for kubelet to bring the Secrets
    in its own time, since the runtime's kubeconfig has no right to change pods. The grace of the rotation, 4 days, is the one time
    that is not the default."""

    ARGUMENTS = ("--ca-grace-period=10s",)
    AWAY = 120  # seconds
    RIGHTS = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["namespaces", "secrets", "configmaps", "services", "endpoints", "serviceaccounts", "events"],
         "verbs": ["*"]},
        {"apiGroups": ["admissionregistration.k8s.io", "apiextensions.k8s.io", "apps", "discovery.k8s.io", "networking.k8s.io",
                       "operator.kyma-project.io", "rbac.authorization.k8s.io", "scheduling.k8s.io"], "resources": ["*"], "verbs": ["*"]}]

    def add_access(self):
        self.kcp.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "runtime"},
                        "rules": self.RIGHTS})
        self.kcp.kubectl("create", "clusterrolebinding", "runtime", "--clusterrole=runtime", "--user=runtime")
        self.assertEqual(self.kcp.attempt("auth", "can-i", "patch", "pods", "--as=runtime", "-n", "kyma-system").stdout.strip(), "no")
        self.skr = landscape.Cluster(self.node.kubeconfig("runtime"), self.folder / "cache-runtime")
        super().add_access()
        self.skr = self.kcp

    def node_is_ready(self):
        conditions = self.kcp.get("node", node.NAME)["status"]["conditions"]
        return next(c["status"] for c in conditions if c["type"] == "Ready") == "True"

    def webhook_addresses(self):
        subsets = self.skr.get("endpoints", "skr-webhook", "kyma-system").get("subsets") or []
        return [address["ip"] for subset in subsets for address in subset.get("addresses") or []]

    def check_kubelet_is_away(self):
        """The pods run on, but the Services lead nowhere after the node's grace."""
        began = time.monotonic()
        self.node.kubelet.send(signal.SIGSTOP)
        try:
            wait_until(lambda: not self.node_is_ready() and not self.webhook_addresses(), self.AWAY,
                       "the node is not ready, and the Service of the webhook has no endpoints", every=0.5)
            self.step("kubelet was away, and the Services' endpoints were", began)
            self.writer.until_told(self.recorder)
            wait_until(lambda: time.monotonic() - began > self.AWAY, self.AWAY, "kubelet's time is over", every=0.5)
            told = self.writer.until_told(self.recorder)
        finally:
            self.node.kubelet.send(signal.SIGCONT)
        self.step(f"the last changes of {told} by watches alone", began)
        back = time.monotonic()
        wait_until(lambda: self.node_is_ready() and self.webhook_addresses(), START, "the node is ready again", every=0.5)
        self.writer.until_told(self.recorder)
        self.until_proven()
        self.step("kubelet was back, and `doctor` has proven all", back)

    def serves_by(self, authority):
        """Whether the webhook's certificate, as the API server sees it, is of this CA alone."""
        context = ssl.create_default_context(cadata=authority.decode())
        context.check_hostname = False
        address = self.skr.get("service", "skr-webhook", "kyma-system")["spec"]["clusterIP"]
        try:
            with socket.create_connection((address, 443), 5) as connection, context.wrap_socket(connection):
                return True
        except ssl.SSLError:
            return False

    def check_authority_changes(self):
        began = time.monotonic()
        since = time.time()
        self.issuer = landscape.Issuer(self.folder / "next-issuer", self.HOST)
        authority = (self.issuer.folder / "ca.crt").read_bytes()
        self.assertFalse(self.serves_by(authority))
        self.kcp.apply(self.issuer.root_secret)
        self.kcp.until("certificates.cert-manager.io", "kyma-1-webhook-tls", "istio-system",
                       lambda c: any(o["type"] == "Issuing" and o["status"] == "True" for o in c.get("status", {}).get("conditions", [])),
                       "is to be issued again")
        self.issue()
        api = Api(self.kcp.kubeconfig)
        api.patch(f"{collection('certificates', 'istio-system', 'cert-manager.io')}/kyma-1-webhook-tls/status", {"status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "Ready", "message": "up to date", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}})
        api.close()
        self.step("the runtime's certificate was issued again", began)
        longest = 400  # twice --ca-propagation and a minute for kubelet
        wait_until(lambda: self.serves_by(authority), longest, "the webhook serves with the new certificate", every=1)
        self.step("the webhook serves with it", began)
        switched = lambda: decoded(self.kcp.get("secret", "klm-istio-gateway", "istio-system"), "tls.crt") == authority
        shown = lambda: runtime_watcher("status", "--kubeconfig", self.kcp.kubeconfig).stdout
        wait_until(switched, longest, lambda: f"the gateway serves with the new CA:\n{shown()}", every=1)
        self.step("the gateway serves with the new CA", began)
        wait_until(lambda: (self.gateway.folder / "tls.crt").read_bytes() == authority, 10, "the gateway has loaded it")
        told = self.writer.until_told(self.recorder)
        self.until_proven()
        failed = [request for request in self.gateway.requests("/", since) if request["status"] != 200]
        self.assertEqual(failed, [], "no request failed")
        self.step(f"the last changes of {told}", began)

    def test_last_change_of_each_object_arrives_while_the_authority_changes_and_kubelet_is_away(self):
        self.install()
        self.check_authority_changes()
        self.check_kubelet_is_away()
        self.writer.stop()
        self.note(f"{self.writer.count} changes, {self.writer.rate:.1f} a second")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.argv.append("Serving")  # namespaces hold one node
    node.isolated(harness.main)
