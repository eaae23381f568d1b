"""Releases of the charts on a real API server: an upgrade from a chart that had its definitions in crds/, a rollback, an uninstall,
another release that adopts what is left, and `helm test`.

The server may be older than the Kubernetes that the charts demand (its Chart.yaml is changed for that), and without
policy/v1, so one replica is installed. It has no nodes: the test plays the kubelet of the Pods of `helm test`, and runs what
they would run.

Needs helm (RW_HELM), kubectl and KUBEBUILDER_ASSETS.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import types

import control_plane
import harness
from charts import CHART, HELM, SKR_CHART, SKR_VALUES, VALUES, Helm, documents, merged
from harness import Pki, Process, Webhook, until_established, wait_until
from landscape import KUBECTL, MANAGER, Cluster
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

    def pod_of_the_test(self, chart, values=None):
        """The Pod of `helm test`, with the objects that the chart makes for it, and those as a text without the Pod."""
        text = self.rendered(values, chart, "--show-only", f"templates/tests/{'doctor' if chart == CHART else 'review'}.yaml")
        found = objects_in(text)
        [pod] = [each for (kind, _), each in found.items() if kind == "Pod"]
        return pod_of(pod), found, "\n---\n".join(part for part in documents(text) if "kind: Pod\n" not in part)

    def test_manager_may_run_the_test_of_its_chart(self):
        """A server without a Gateway and a leader has defects; but none is that the account may not look."""
        self.cluster.kubectl("apply", "-f", harness.ROOT / "deploy" / "dev")
        self.release("install", "first", "now")
        client = self.plane.client()
        self.addCleanup(client.close)
        pod, found, text = self.pod_of_the_test(CHART)
        self.cluster.kubectl("apply", "-f", "-", stdin=text)
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
        doctor = self.start(Container(self, Image(self.folder), pod, objects=found, kubeconfig=account))
        self.assertEqual(doctor.wait(60), 3, doctor.tail())
        said = "\n".join(line for _, line in doctor.log)
        self.assertIn("no manager runs", said)
        self.assertNotRegex(said, "(?i)forbidden")

    def test_review_of_the_chart_of_a_runtime_is_answered_and_makes_no_event(self):
        pki = Pki(self.folder / "pki")
        certificate, key = pki.issue("webhook", "skr", san="dns:skr-webhook.kyma-system.svc")
        webhook = self.start(Webhook(certificate, key, pki.ca, "127.0.0.1:1", env={"WEBHOOK_PORT": "443"}))  # as the Service
        pod, found, _ = self.pod_of_the_test(SKR_CHART, {"webhookCA": pki.ca.read_text()})
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
