"""The manager signals changes of the runtimes' configuration: every Runtime is marked exactly as configured, suspended
ones are not, and nothing is lost when the manager ends in the middle.

The same tests on the embedded API server and, where KUBEBUILDER_ASSETS names one, on a real one with the true schema of
RW_TEST_CRDS. Kyma Infrastructure Manager is played by this script.
"""

import base64
import json
import os
import pathlib
import random
import ssl
import threading
import types
import unittest
import urllib.error
import urllib.request

import control_plane
import harness
import landscape
from harness import BINARY, ROOT, Process, metric_sum, pause, wait_until
from landscape import RUNTIME_SPEC

PATIENCE = 60
MARK = "operator.kyma-project.io/force-patch-reconciliation"
SUSPEND = "operator.kyma-project.io/suspend-patch-reconciliation"
SIGNALLED = "operator.kyma-project.io/signalled-configuration"
FIELD_MANAGER = "runtime-watcher-config-sync"
KCP = "kcp-system"
RUNTIMES = f"/apis/infrastructuremanager.kyma-project.io/v1/namespaces/{KCP}/runtimes"
CONFIG = f"/api/v1/namespaces/{KCP}/configmaps/rt-bootstrapper-config"
MANIFESTS = f"/api/v1/namespaces/{KCP}/configmaps/runtime-bootstrapper-manifests"
PULL_SECRET = f"/api/v1/namespaces/{KCP}/secrets/registry-credentials"
TRUST_BUNDLE = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles/rt-bootstrapper-trust-bundle"


class Api:
    """The API server that a kubeconfig leads to, with its token. May be shared between threads."""

    def __init__(self, cluster):
        config = json.loads(cluster.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
        self._url = config["clusters"][0]["cluster"]["server"]
        self._token = config["users"][0]["user"]["token"]
        self._tls = ssl._create_unverified_context()

    def request(self, method, path, body=None, content_type="application/json"):
        """The decoded answer; None where there is no such object."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, method=method, headers={
            "Content-Type": content_type, "Authorization": f"Bearer {self._token}"})
        try:
            with urllib.request.urlopen(request, timeout=30, context=self._tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            if error.code == 404:
                return None
            raise AssertionError(f"{method} {path}: {error.code} {text}") from None

    def get(self, path):
        return self.request("GET", path)

    def merge(self, path, change):
        return self.request("PATCH", path, change, "application/merge-patch+json")

    def put(self, path, content):
        """Creates or updates one of the watched objects, so that it holds `content`."""
        collection, _, name = path.rpartition("/")
        kind = {"configmaps": "ConfigMap", "secrets": "Secret"}.get(collection.rpartition("/")[2], "ClusterTrustBundle")
        made = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
        if kind == "ConfigMap":
            made["data"] = {"content": content}
        elif kind == "Secret":
            made["type"] = "kubernetes.io/dockerconfigjson"
            auths = json.dumps({"auths": {content: {}}}).encode()
            made["data"] = {".dockerconfigjson": base64.b64encode(auths).decode()}
        else:
            made["apiVersion"] = "certificates.k8s.io/v1beta1"
            made["spec"] = {"trustBundle": content}
        if self.get(path) is None:
            self.request("POST", collection, made)
        else:
            self.request("PUT", path, made)

    def delete(self, path):
        self.request("DELETE", path)


def annotations(runtime):
    return runtime["metadata"].get("annotations") or {}


def is_marked(runtime):
    labels = runtime["metadata"].get("labels") or {}
    return annotations(runtime).get(MARK) == "true" or labels.get(MARK) == "true"


class Story:
    """The tests; a subclass starts the control plane."""

    sources = ()

    def setUp(self):
        super().setUp()
        if not landscape.KUBECTL:
            self.skipTest("there is no kubectl")
        self.kcp = self.start_cluster()
        self.kcp.kubectl("create", "-f", self.definition())
        self.kcp.kubectl("create", "namespace", KCP)
        self.api = Api(self.kcp)
        wait_until(lambda: self.api.get(RUNTIMES), PATIENCE, "Runtimes are served", every=0.05)
        for path in self.sources:
            self.api.put(path, "first")

    def start_manager(self, *options):
        self.manager = self.start(Process("manager", [
            BINARY, "manager", "--kubeconfig", self.kcp.kubeconfig, "--listen-address", "127.0.0.1:0", "--metrics-address",
            "127.0.0.1:0", "--no-leader-elect", "--bootstrapper-mode", "signal", "--signal-settle", "200ms", *options]))
        self.admin = self.manager.wait_listening("admin")
        self.settled()

    def metric(self, name, **labels):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=10) as answer:
            return metric_sum(answer.read().decode(), name, **labels) or 0

    def settled(self):
        """Waits until every Runtime has been compared with the sources as they are."""
        def done():
            known = sum(self.metric("rw_config_sync_runtimes", standing=s) for s in ("current", "pending", "suspended", "apart"))
            return (self.metric("rw_config_sync_state") > 0 and known == len(self.runtimes())
                    and self.metric("rw_config_sync_runtimes", standing="behind") == 0)
        wait_until(done, PATIENCE, lambda: f"everybody was compared:\n{self.manager.tail()}", every=0.05)

    def add_runtimes(self, *names):
        for name in names:
            self.api.request("POST", RUNTIMES, {
                "apiVersion": "infrastructuremanager.kyma-project.io/v1", "kind": "Runtime",
                "metadata": {"name": name, "namespace": KCP}, "spec": RUNTIME_SPEC})

    def runtimes(self):
        return {item["metadata"]["name"]: item for item in self.api.get(RUNTIMES)["items"]}

    def runtime(self, name):
        return self.api.get(f"{RUNTIMES}/{name}")

    def take(self, name):
        """As Kyma Infrastructure Manager takes a mark: the annotation only."""
        self.api.merge(f"{RUNTIMES}/{name}", {"metadata": {"annotations": {MARK: None}}})

    def until_marked(self, *names):
        def all_marked():
            found = self.runtimes()
            return all(is_marked(found[name]) for name in names)
        wait_until(all_marked, PATIENCE, lambda: f"{names} are marked:\n{self.manager.tail()}", every=0.05)

    def until_state(self, number):
        wait_until(lambda: self.metric("rw_config_sync_state") >= number, PATIENCE,
                   lambda: f"the change is noticed:\n{self.manager.tail()}", every=0.05)
        self.settled()

    def test_each_change_marks_every_runtime_and_no_suspended_one(self):
        self.add_runtimes("r1", "r2", "r3")
        self.api.merge(f"{RUNTIMES}/r3", {"metadata": {"annotations": {SUSPEND: "true"}}})
        untouched = {name: r["metadata"]["resourceVersion"] for name, r in self.runtimes().items()}
        self.start_manager()
        # A first start has nothing to compare with, and marks nobody.
        self.assertEqual({name: r["metadata"]["resourceVersion"] for name, r in self.runtimes().items()}, untouched)

        expected = 0
        for path in self.sources:
            for change in (lambda: self.api.put(path, "second"), lambda: self.api.delete(path), lambda: self.api.put(path, "third")):
                state = self.metric("rw_config_sync_state")
                change()
                self.until_state(state + 1)
                self.until_marked("r1", "r2")
                expected += 2
                for name in ("r1", "r2"):
                    found = self.runtime(name)
                    self.assertEqual(annotations(found)[MARK], "true")
                    self.assertEqual(found["metadata"]["labels"][MARK], "true")
                    self.assertEqual(found["spec"], RUNTIME_SPEC)
                    manager = next(m for m in found["metadata"]["managedFields"] if m["manager"] == FIELD_MANAGER)
                    self.assertEqual(manager["operation"], "Apply")
                    fields = manager["fieldsV1"]["f:metadata"]["f:annotations"]
                    self.assertEqual({f for f in fields if f != "."}, {f"f:{MARK}", f"f:{SIGNALLED}"})
                    self.take(name)
                    wait_until(lambda: not is_marked(self.runtime(name)), PATIENCE, "the label goes with the annotation", every=0.05)
                self.settled()
                self.assertEqual(self.metric("rw_config_sync_marks_total"), expected, path)
        self.assertEqual(self.runtime("r3")["metadata"]["resourceVersion"], untouched["r3"])

        self.api.merge(f"{RUNTIMES}/r3", {"metadata": {"annotations": {SUSPEND: None}}})
        self.until_marked("r3")
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())

    def test_the_mark_is_set_in_the_form_that_is_configured(self):
        for form in ("annotation", "label"):
            self.add_runtimes(form)
            self.start_manager("--signal-by", form)
            self.api.put(CONFIG, f"for {form}")
            self.until_marked(form)
            found = self.runtime(form)
            self.assertEqual(annotations(found).get(MARK) == "true", form == "annotation")
            self.assertEqual((found["metadata"].get("labels") or {}).get(MARK) == "true", form == "label")
            self.manager.kill()
            self.api.delete(f"{RUNTIMES}/{form}")

    def test_a_change_beside_a_mark_survives_a_restart(self):
        self.add_runtimes("r1", "r2")
        self.start_manager()
        self.api.put(CONFIG, "second")
        self.until_marked("r1", "r2")
        first = annotations(self.runtime("r1"))[SIGNALLED]
        self.api.put(CONFIG, "third")
        self.until_state(self.metric("rw_config_sync_state"))
        self.manager.kill()
        # Nobody writes what the mark does not stand for; taken off, it is set again by the next process.
        self.assertEqual(annotations(self.runtime("r1"))[SIGNALLED], first)
        self.take("r1")
        self.start_manager()
        self.until_marked("r1")
        self.assertNotEqual(annotations(self.runtime("r1"))[SIGNALLED], first)
        self.assertEqual(annotations(self.runtime("r2"))[SIGNALLED], first)

        # All taken: one more restart has nothing to do.
        for name in ("r1", "r2"):
            self.take(name)
        self.until_marked("r2")
        self.take("r2")
        wait_until(lambda: not any(is_marked(r) for r in self.runtimes().values()), PATIENCE, "all marks are gone", every=0.05)
        self.settled()
        self.manager.kill()
        before = {name: r["metadata"]["resourceVersion"] for name, r in self.runtimes().items()}
        self.start_manager()
        self.assertEqual({name: r["metadata"]["resourceVersion"] for name, r in self.runtimes().items()}, before)
        self.assertEqual(self.metric("rw_config_sync_marks_total"), 0)

    def test_nothing_is_lost_while_managers_are_killed_and_marks_taken_at_any_moment(self):
        names = [f"r{i}" for i in range(12)]
        self.add_runtimes(*names)
        chance = random.Random(4711)
        configured, stop, failures = {}, threading.Event(), []

        def content():
            return json.dumps([(found or {}).get("data", (found or {}).get("spec")) for found in map(self.api.get, self.sources)])

        def kim(seed):
            mine = random.Random(seed)
            try:
                while not stop.is_set():
                    marked = [name for name, r in self.runtimes().items() if annotations(r).get(MARK) == "true"]
                    if not marked:
                        stop.wait(0.02)
                        continue
                    name = mine.choice(marked)
                    read = content()
                    stop.wait(mine.random() * 0.1)
                    if mine.random() < 0.5:
                        self.take(name)
                        configured[name] = read
                    else:
                        configured[name] = read
                        stop.wait(mine.random() * 0.1)
                        self.take(name)
            except Exception as error:  # told by the test
                failures.append(error)

        self.start_manager()
        worker = threading.Thread(target=kim, args=(1,), daemon=True)
        worker.start()
        self.addCleanup(lambda: (stop.set(), worker.join(10)))
        for turn in range(8):
            path = chance.choice(self.sources)
            if chance.random() < 0.3:
                self.api.delete(path)
            else:
                self.api.put(path, f"turn {turn}")
            pause(chance.random())  # so that it ends in another moment each time
            self.manager.kill()
            if chance.random() < 0.5:
                self.api.put(CONFIG, f"while away {turn}")
            self.start_manager()
        self.api.put(CONFIG, "the last")
        last = content()
        wait_until(lambda: failures or all(configured.get(name) == last for name in names), PATIENCE,
                   lambda: f"all have the last: {[n for n in names if configured.get(n) != last]}\n{self.manager.tail()}", every=0.1)
        self.assertEqual(failures, [])
        wait_until(lambda: not any(is_marked(r) for r in self.runtimes().values()), PATIENCE, "all marks are gone", every=0.1)


class Embedded(Story, harness.TestCase):
    sources = (CONFIG, MANIFESTS, PULL_SECRET, TRUST_BUNDLE)

    def definition(self):
        return ROOT / "deploy" / "dev" / "infrastructuremanager.kyma-project.io_runtimes.yaml"

    def start_cluster(self):
        if not control_plane.knows_openapi_v3(landscape.KUBECTL):
            self.skipTest(f"{landscape.KUBECTL} knows no OpenAPI v3, which is all that is served")
        folder = self.folder / "clusters"
        server = self.start(Process("api-server", [BINARY, "api-server", "--address", "127.0.0.1:0", "--dir", folder,
                                                   "--cluster", "kcp"]))
        server.wait_listening("api-server")
        return landscape.Cluster(folder / "kcp.kubeconfig", self.folder / "cache")


@unittest.skipUnless(os.environ.get("KUBEBUILDER_ASSETS"), "KUBEBUILDER_ASSETS names no real API server")
class Real(Story, harness.TestCase):
    """A kube-apiserver, which serves no ClusterTrustBundles: the others are signalled all the same."""

    sources = (CONFIG, MANIFESTS, PULL_SECRET)

    def definition(self):
        true = os.environ.get("RW_TEST_CRDS")
        folder = pathlib.Path(true) if true else ROOT / "deploy" / "dev"
        return folder / "infrastructuremanager.kyma-project.io_runtimes.yaml"

    def start_cluster(self):
        owner = types.SimpleNamespace(folder=self.folder, start=self.start)
        plane = control_plane.ControlPlane(owner)
        return landscape.Cluster(plane.folder / "kubeconfig", self.folder / "cache")

    def tearDown(self):
        told = [r for r in self.manager.records() if r.get("msg", "").startswith("ClusterTrustBundles are not served")]
        self.assertEqual(len(told), 1)
        super().tearDown()


if __name__ == "__main__":
    harness.main()
