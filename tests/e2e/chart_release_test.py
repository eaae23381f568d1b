"""Releases of the charts on a real API server: an upgrade from a chart that had its definitions in crds/, a rollback, an uninstall,
another release that adopts what is left, and `helm test`.

The server may be older than the Kubernetes that the charts demand (its Chart.yaml is changed for that), and without
policy/v1, so one replica is installed. It has no nodes: the test plays the kubelet of the Pods of `helm test`, and runs what
they would run.

Needs helm (RW_HELM), kubectl and KUBEBUILDER_ASSETS.
"""

import http.server
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import tarfile
import threading
import types

import control_plane
import harness
from charts import CHART, HELM, SKR_CHART, SKR_VALUES, VALUES, Helm, merged
from harness import Pki, Process, Webhook, until_established, wait_until
from kubectl import KUBECTL
from landscape import MANAGER, Cluster
from pods import Container, Image, objects_in, own_network, pod_of

BEFORE = pathlib.Path(__file__).parent / "data" / "charts" / "crds-as-a-folder.tgz"
WATCHERS = "watchers.operator.kyma-project.io"
STATE = "runtime-watcher-system"
ONE = merged(VALUES, {"replicas": 1})


class Releases(Helm, harness.TestCase):
    def setUp(self):
        super().setUp()
        owner = types.SimpleNamespace(folder=self.folder, start=self.start)
        self.plane = control_plane.ControlPlane(owner)
        self.kubeconfig = self.plane.kubeconfig_with_authority(self.folder / "kubeconfig")
        self.cluster = Cluster(self.kubeconfig, self.folder / "cache")
        for ns in ("kcp-system", "istio-system", "kyma-system"):
            self.cluster.kubectl("create", "namespace", ns)
        with tarfile.open(BEFORE) as archive:
            archive.extractall(self.folder)
        (self.folder / "runtime-watcher").rename(self.folder / "before")
        for name, chart in (("now", CHART), ("skr", SKR_CHART)):
            shutil.copytree(chart, self.folder / name)
        for name in ("before", "now", "skr"):
            file = self.folder / name / "Chart.yaml"
            file.write_text(re.sub(r"(?m)^kubeVersion: .*\n", "", file.read_text()))

    def release(self, command, release, chart, *options, values=ONE, ns="kcp-system", fails=False):
        return self.helm(command, release, self.folder / chart, "--namespace", ns, "--kubeconfig", self.kubeconfig, "--timeout", "60s",
                         *options, values=values, fails=fails)

    def plain(self, *arguments, ns="kcp-system"):
        done = subprocess.run([HELM, *map(str, arguments), "--namespace", ns, "--kubeconfig", self.kubeconfig], text=True,
                              capture_output=True, timeout=90)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def keep_something(self):
        """What an uninstall must not take: a Watcher, and a last valid content."""
        until_established(self.plane.kubectl, WATCHERS)
        self.cluster.kubectl("apply", "-f", harness.ROOT / "deploy" / "samples" / "watcher.yaml")
        self.cluster.kubectl("create", "secret", "generic", "content", "-n", STATE, "--from-literal=revision=1")

    def kept(self):
        self.assertIsNotNone(self.cluster.get("secret", "content", STATE))
        self.assertEqual(len(self.cluster.get("watchers", None, "kcp-system")["items"]), 1)
        self.assertNotIn("deletionTimestamp", self.cluster.get("namespace", STATE)["metadata"])
        self.assertNotIn("deletionTimestamp", self.cluster.get("crd", WATCHERS)["metadata"])

    def description(self):
        """Of the definition: a text that an upgrade changes."""
        versions = self.cluster.get("crd", WATCHERS)["spec"]["versions"]
        return versions[0]["schema"]["openAPIV3Schema"].get("description")

    def change_description(self, text):
        file = next((self.folder / "now" / "definitions").glob("*_watchers.yaml"))
        content = re.sub(r"(?m)^( +)openAPIV3Schema:\n(?: +description: changed.*\n)?", rf"\1openAPIV3Schema:\n\1  description: {text}\n",
                         file.read_text())
        file.write_text(content)

    def test_upgrade_from_definitions_in_a_folder_rollback_uninstall_and_adoption(self):
        before = {"gateway": VALUES["gateway"], "replicas": 1}
        self.release("install", "first", "before", values=before)
        self.keep_something()
        error = self.release("upgrade", "first", "now", fails=True)
        self.assertIn("CustomResourceDefinition", error)
        self.assertIn("ownership", error, "definitions without a release are not taken by themselves")
        self.change_description("changed once")
        self.release("upgrade", "first", "now", "--take-ownership")
        self.assertEqual(self.description(), "changed once")
        self.change_description("changed twice")
        self.release("upgrade", "first", "now")
        self.assertEqual(self.description(), "changed twice")
        self.kept()
        self.plain("rollback", "first", "2")
        self.assertEqual(self.description(), "changed once")
        self.kept()
        self.plain("uninstall", "first")
        self.assertIsNone(self.cluster.get("deployment", MANAGER, "kcp-system"))
        self.assertIsNone(self.cluster.get("clusterrole", MANAGER))
        self.kept()
        self.assertIn("ownership", self.release("install", "second", "now", fails=True))
        self.release("install", "second", "now", "--take-ownership")
        self.assertEqual(self.description(), "changed twice")
        for kind, name in (("namespace", STATE), ("crd", WATCHERS)):
            annotations = self.cluster.get(kind, name)["metadata"]["annotations"]
            self.assertEqual(annotations["meta.helm.sh/release-name"], "second")
        self.plain("uninstall", "second")
        self.kept()

    def test_rollback_to_definitions_in_a_folder_keeps_them(self):
        self.release("install", "first", "before", values={"gateway": VALUES["gateway"], "replicas": 1})
        self.keep_something()
        self.release("upgrade", "first", "now", "--take-ownership")
        self.plain("rollback", "first", "1")
        self.kept()

    def test_definitions_go_with_the_release_where_they_are_not_kept(self):
        self.release("install", "first", "now", values=merged(ONE, {"crds": {"keep": False}}))
        self.plain("uninstall", "first")
        wait_until(lambda: self.cluster.get("crd", WATCHERS) is None, 30, "the definition is gone")

    def test_helm_test_ends_as_its_pod_does(self):
        self.release("install", "first", "now")
        for phase, code in (("Succeeded", 0), ("Failed", 1)):
            process = self.start(Process("helm", [HELM, "test", "first", "--namespace", "kcp-system", "--kubeconfig", self.kubeconfig,
                                                  "--timeout", "60s"]))
            pod = f"/api/v1/namespaces/kcp-system/pods/{MANAGER}-test"
            client = self.plane.client()
            self.addCleanup(client.close)
            def begun():
                found = self.cluster.get("pod", f"{MANAGER}-test", "kcp-system")
                return found and found.get("status", {}).get("phase") == "Pending" and "deletionTimestamp" not in found["metadata"]
            wait_until(begun, 30, "the Pod of the test is there")
            client.patch(pod + "/status", {"status": {"phase": phase}})
            self.assertEqual(process.wait(60), code, process.tail())

    def test_helm_test_prints_the_log_of_its_pod_once(self):
        """Helm asks for the log of a Pod with the name of each object that is a hook `test`, whatever its kind. The Pod's objects
        are there from the installation to the uninstall."""
        kubelet = self.kubelet("what the Pod has found\n")
        for chart, values, ns, name, beside in (
                ("now", ONE, "kcp-system", f"{MANAGER}-test", (("clusterrole", None), ("clusterrolebinding", None), ("role", "istio-system"),
                                                               ("rolebinding", "istio-system"), ("role", "kcp-system"))),
                ("skr", SKR_VALUES, "kyma-system", "skr-webhook-test", (("configmap", "kyma-system"), ("networkpolicy", "kyma-system")))):
            self.release("install", "release", chart, values=values, ns=ns)
            process = self.start(Process("helm", [HELM, "test", "release", "--namespace", ns, "--kubeconfig", self.kubeconfig, "--timeout", "60s",
                                                  "--logs"]))
            wait_until(lambda: self.cluster.get("pod", name, ns), 30, "the Pod of the test is there")
            client = self.plane.client()
            self.addCleanup(client.close)
            client.request("POST", f"/api/v1/namespaces/{ns}/pods/{name}/binding", {
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": kubelet}})
            client.patch(f"/api/v1/namespaces/{ns}/pods/{name}/status", {"status": {"phase": "Succeeded"}})
            self.assertEqual(process.wait(60), 0, process.tail())
            said = [line for _, line in process.log]
            self.assertEqual([line for line in said if line.startswith(("POD LOGS", "what the Pod"))], [f"POD LOGS: {name}", "what the Pod has found"])
            for kind, at in beside:
                self.assertIsNotNone(self.cluster.get(kind, name, *[at] * bool(at)), kind)
            self.plain("uninstall", "release", ns=ns)
            for kind, at in beside:
                self.assertIsNone(self.cluster.get(kind, name, *[at] * bool(at)), kind)

    def kubelet(self, text):
        """A node whose kubelet answers each request for a log with `text`. Returns its name."""
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass
        certificate, key = Pki(self.folder / "kubelet").issue("webhook", "kubelet", san="dns:localhost")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        client = self.plane.client()
        self.addCleanup(client.close)
        client.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}})
        client.patch("/api/v1/nodes/node/status", {"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": server.server_address[1]}}}})
        return "node"

    def pod_of_the_test(self, chart, values=None):
        """The Pod of `helm test`, and the objects that the chart makes for it."""
        text = self.rendered(values, chart, "--show-only", f"templates/tests/{'doctor' if chart == CHART else 'review'}.yaml")
        found = objects_in(text)
        [pod] = [each for (kind, _), each in found.items() if kind == "Pod"]
        return pod_of(pod), found

    def account_of_the_manager(self):
        """A kubeconfig of the manager's ServiceAccount, with all rights that the release has given it."""
        client = self.plane.client()
        self.addCleanup(client.close)
        answer = client.request("POST", f"/api/v1/namespaces/kcp-system/serviceaccounts/{MANAGER}/token",
                                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        config = json.loads(self.kubeconfig.read_text())
        token = answer["status"]["token"]
        harness.secret_texts.add(token)
        config["users"][0]["user"] = {"token": token}
        account = self.folder / "account"
        account.write_text(json.dumps(config))
        # A real API server knows of a grant a moment after it was written; this is the last.
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                  "spec": {"user": f"system:serviceaccount:kcp-system:{MANAGER}",
                           "resourceAttributes": {"namespace": "istio-system", "verb": "list", "resource": "secrets"}}}
        wait_until(lambda: client.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"],
                   10, "the account has its rights", every=0.1)
        return account

    def test_manager_may_run_the_test_of_its_chart(self):
        """A server without a Gateway and a leader has defects; but none is that the account may not look."""
        self.cluster.kubectl("apply", "-f", harness.ROOT / "deploy" / "dev")
        self.release("install", "first", "now")
        pod, found = self.pod_of_the_test(CHART)
        doctor = self.start(Container(self, Image(self.folder), pod, objects=found, kubeconfig=self.account_of_the_manager()))
        self.assertEqual(doctor.wait(60), 3, doctor.tail())
        said = "\n".join(line for _, line in doctor.log)
        self.assertIn("no manager runs", said)
        self.assertNotRegex(said, "(?i)forbidden")

    def test_helm_test_says_of_manager_and_heartbeats_whether_they_are_proven(self):
        """Without the admin token the account may not ask the manager, and its Pod says so; with it the Pod asks."""
        self.cluster.kubectl("apply", "-f", harness.ROOT / "deploy" / "dev")
        values = {"adminToken": {"secretName": "admin"}}
        self.release("install", "first", "now", values=merged(ONE, values))
        account, image, token = self.account_of_the_manager(), Image(self.folder), {"admin-token": {"token": "e2e-admin-token"}}
        harness.secret_texts.add("e2e-admin-token")
        deployment = pod_of(objects_in(self.rendered(values, CHART))["Deployment", MANAGER])
        manager = self.start(Container(self, image, deployment, volumes=token, pod={"status.podIP": "10.245.0.9"}, kubeconfig=account))
        wait_until(lambda: (self.cluster.get("lease", MANAGER, "kcp-system") or {}).get("spec", {}).get("holderIdentity"), 30,
                   lambda: f"the manager leads:\n{manager.tail()}")
        for each, state in (({}, "not proven"), (values, "proven")):
            pod, found = self.pod_of_the_test(CHART, each)
            doctor = self.start(Container(self, image, pod, objects=found, volumes=token, kubeconfig=account,
                                          hosts={f"{MANAGER}-metrics.kcp-system.svc": "127.0.0.1"}))
            doctor.wait(60)
            said = "\n".join(line for _, line in doctor.log)
            for check in ("manager", "heartbeats"):
                self.assertRegex(said, rf"(?m)^{state} +{check} ")
            self.assertRegex(said, r"(?m)^\d+ checks: \d+ proven, \d+ failed, \d+ not proven$")

    def test_review_of_the_chart_of_a_runtime_is_answered_and_makes_no_event(self):
        pki = Pki(self.folder / "pki")
        certificate, key = pki.issue("webhook", "skr", san="dns:skr-webhook.kyma-system.svc")
        webhook = self.start(Webhook(certificate, key, pki.ca, "127.0.0.1:1", env={"WEBHOOK_PORT": "443"}))  # as the Service
        pod, found = self.pod_of_the_test(SKR_CHART, {"webhookCA": pki.ca.read_text()})
        replay = self.start(Container(self, Image(self.folder), pod, objects=found, hosts={"skr-webhook.kyma-system.svc": "127.0.0.1"}))
        self.assertEqual(replay.wait(30), 0, replay.tail())
        self.assertEqual(webhook.metric("watcher_admission_request_total"), 1)
        self.assertFalse(webhook.metric("rw_dispatch_manager_events"))


if __name__ == "__main__":
    if not HELM or not KUBECTL:
        harness.skip("there is no helm (RW_HELM) or no kubectl")
    if not os.environ.get("KUBEBUILDER_ASSETS"):
        harness.skip("KUBEBUILDER_ASSETS names no real API server")
    own_network()
    harness.main()
