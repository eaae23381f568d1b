"""The manager signals changes of the runtimes' configuration: every Runtime is marked exactly as configured, suspended
ones are not, a Runtime on which Kyma Infrastructure Manager (KIM) fails is marked again, and nothing is lost when the
manager is killed.

The same tests on the embedded API server and, where KUBEBUILDER_ASSETS names one, on a real one with the true schema of
RW_TEST_CRDS. This script plays KIM, in its order: it takes the mark off, then reads the sources.
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
from harness import BINARY, DEV_BINARY, ROOT, Process, metric_sum, pause, wait_until
from kubectl import KUBECTL
from landscape import RUNTIME_SPEC

PATIENCE = 60
MARK = "operator.kyma-project.io/force-patch-reconciliation"
SUSPEND = "operator.kyma-project.io/suspend-patch-reconciliation"
MODE = "operator.kyma-project.io/bootstrapper-mode"
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

    def request(self, method, path, body=None, content_type="application/json", retry=True):
        """The decoded answer; None where there is no such object. 429, which a server answers while the storage of a new
        CustomResourceDefinition is initializing, is tried again."""
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
            if error.code == 429 and retry:
                pause(0.1)
                return self.request(method, path, body, content_type)
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


def labels(runtime):
    return runtime["metadata"].get("labels") or {}


def is_marked(runtime):
    return annotations(runtime).get(MARK) == "true"


class Story:
    """The tests; a subclass starts the control plane."""

    sources = ()

    def setUp(self):
        super().setUp()
        if not KUBECTL:
            self.skipTest("there is no kubectl")
        self.kcp = self.start_cluster()
        self.kcp.kubectl("create", "-f", self.definition())
        self.kcp.kubectl("create", "namespace", KCP)
        self.api = Api(self.kcp)
        wait_until(lambda: self.api.get(RUNTIMES), PATIENCE, "Runtimes are served", every=0.05)
        for path in self.sources:
            self.api.put(path, "first")

    def start_manager(self, *options, settle="200ms"):
        self.manager = self.start(Process("manager", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", self.kcp.kubeconfig, "--listen-address", "127.0.0.1:0", "--metrics-address",
            "127.0.0.1:0", "--no-leader-elect", "--bootstrapper-mode", "signal", "--signal-settle", settle, "--signal-quiet", "300ms",
            "--signal-retry", "1s", *options]))
        self.admin = self.manager.wait_listening("admin")
        self.settled()

    def metric(self, name, **labels):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=10) as answer:
            return metric_sum(answer.read().decode(), name, **labels) or 0

    def settled(self):
        """Waits until every Runtime has been compared with the sources as they are."""
        def done():
            return (self.metric("rw_config_sync_revision") > 0 and self.count("outdated") == 0
                    and self.metric("rw_config_sync_runtimes") == len(self.runtimes()))
        wait_until(done, PATIENCE, lambda: f"all Runtimes were compared:\n{self.manager.tail()}", every=0.05)

    def count(self, state):
        return self.metric("rw_config_sync_runtimes", state=state)

    def until_count(self, state, number):
        wait_until(lambda: self.count(state) == number, PATIENCE, lambda: f"{number} Runtimes are {state}:\n{self.manager.tail()}",
                   every=0.05)

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
        """As KIM takes a mark."""
        self.api.merge(f"{RUNTIMES}/{name}", {"metadata": {"annotations": {MARK: None}}})

    def set_state(self, name, state):
        self.api.merge(f"{RUNTIMES}/{name}/status", {"status": {"state": state}})

    def watcher_marks(self, name):
        """As KIM's own watcher does: it applies the whole Runtime, by force."""
        found = self.runtime(name)
        found["metadata"].pop("managedFields")
        found["metadata"].setdefault("annotations", {})[MARK] = "true"
        self.api.request("PATCH", f"{RUNTIMES}/{name}?fieldManager=config-watcher&force=true", found,
                         "application/apply-patch+yaml")

    def until_marked(self, *names):
        def all_marked():
            found = self.runtimes()
            return all(is_marked(found[name]) for name in names)
        wait_until(all_marked, PATIENCE, lambda: f"{names} are marked:\n{self.manager.tail()}", every=0.05)

    def until_revision(self, number):
        wait_until(lambda: self.metric("rw_config_sync_revision") >= number, PATIENCE,
                   lambda: f"the change is noticed:\n{self.manager.tail()}", every=0.05)
        self.settled()

    def test_change_marks_every_runtime_and_no_suspended_one(self):
        self.add_runtimes("r1", "r2", "r3")
        self.api.merge(f"{RUNTIMES}/r3", {"metadata": {"annotations": {SUSPEND: "true"}}})
        untouched = {name: r["metadata"]["resourceVersion"] for name, r in self.runtimes().items()}
        self.start_manager()
        # A first start has nothing to compare with, marks none and says so.
        self.assertEqual({name: r["metadata"]["resourceVersion"] for name, r in self.runtimes().items()}, untouched)
        wait_until(lambda: "--signal-all-once" in self.manager.tail(), PATIENCE, "the manager says so", every=0.05)

        expected = 0
        for path in self.sources:
            for change in (lambda: self.api.put(path, "second"), lambda: self.api.delete(path), lambda: self.api.put(path, "third")):
                revision = self.metric("rw_config_sync_revision")
                change()
                self.until_revision(revision + 1)
                self.until_marked("r1", "r2")
                expected += 2
                for name in ("r1", "r2"):
                    found = self.runtime(name)
                    self.assertNotIn(MARK, labels(found))
                    self.assertEqual(found["spec"], RUNTIME_SPEC)
                    manager = next(m for m in found["metadata"]["managedFields"] if m["manager"] == FIELD_MANAGER)
                    self.assertEqual(manager["operation"], "Apply")
                    fields = manager["fieldsV1"]["f:metadata"]["f:annotations"]
                    self.assertEqual({f for f in fields if f != "."}, {f"f:{MARK}", f"f:{SIGNALLED}"})
                    self.take(name)
                self.until_count("current", 2)
                self.assertEqual(self.metric("rw_config_sync_marks_total"), expected, path)
        self.assertEqual(self.runtime("r3")["metadata"]["resourceVersion"], untouched["r3"])

        self.api.merge(f"{RUNTIMES}/r3", {"metadata": {"annotations": {SUSPEND: None}}})
        self.until_marked("r3")
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())

    def test_runtimes_are_all_marked_once_where_that_is_requested(self):
        self.add_runtimes("r1", "r2")
        for _ in range(2):
            self.start_manager("--signal-all-once")
            self.until_count("marked", 2)
            self.manager.kill()
        for name in ("r1", "r2"):
            self.take(name)
        self.start_manager("--signal-all-once")
        self.until_count("current", 2)
        self.assertEqual(self.metric("rw_config_sync_marks_total"), 0)

    def test_mark_is_a_label_where_that_is_configured(self):
        self.add_runtimes("r1")
        self.start_manager("--signal-by", "label")
        self.api.put(CONFIG, "second")
        self.until_count("marked", 1)
        self.assertEqual(labels(self.runtime("r1")).get(MARK), "true")
        self.assertFalse(is_marked(self.runtime("r1")))

    def test_runtime_on_which_kim_fails_is_marked_again(self):
        self.add_runtimes("r1")
        self.start_manager()
        self.api.put(CONFIG, "second")
        self.until_marked("r1")
        self.take("r1")
        self.set_state("r1", "Failed")
        self.until_marked("r1")
        # A mark is counted when its answer arrives, and can be read before.
        wait_until(lambda: self.metric("rw_config_sync_marks_total", reason="retry"), PATIENCE,
                   lambda: f"the mark is counted:\n{self.manager.tail()}", every=0.05)
        self.assertEqual(self.metric("rw_config_sync_marks_total", reason="retry"), 1)
        self.take("r1")
        self.set_state("r1", "Pending")
        self.until_count("in_progress", 1)
        self.set_state("r1", "Ready")
        self.until_count("current", 1)

    def test_label_that_kims_watcher_owns_keeps_no_runtime_from_being_marked(self):
        self.add_runtimes("r1")
        self.api.merge(f"{RUNTIMES}/r1", {"metadata": {"labels": {MARK: "true"}}})
        self.start_manager()
        self.watcher_marks("r1")
        self.take("r1")
        self.api.put(CONFIG, "second")
        self.until_marked("r1")

    def test_mark_of_kims_watcher_covers_the_change(self):
        self.add_runtimes("r1")
        self.start_manager(settle="2s")
        self.api.put(CONFIG, "second")
        self.watcher_marks("r1")
        self.until_revision(2)
        self.until_count("marked", 1)
        self.take("r1")
        self.until_count("current", 1)
        self.assertEqual(self.metric("rw_config_sync_marks_total"), 0)
        self.assertFalse(is_marked(self.runtime("r1")))
        self.assertTrue(annotations(self.runtime("r1"))[SIGNALLED].startswith("2 "))

    def test_mark_in_mode_direct_is_counted_with_its_age(self):
        self.add_runtimes("r1")
        self.start_manager()
        self.api.merge(f"{RUNTIMES}/r1", {"metadata": {"annotations": {MODE: "direct", MARK: "true"}}})
        self.until_count("direct_marked", 1)
        self.assertGreater(self.metric("rw_config_sync_state_since_timestamp_seconds", state="direct_marked"), 0)
        self.take("r1")
        self.until_count("direct", 1)

    def test_change_while_a_mark_is_there_survives_a_restart(self):
        self.add_runtimes("r1", "r2")
        self.start_manager()
        self.api.put(CONFIG, "second")
        self.until_marked("r1", "r2")
        self.manager.kill()
        self.take("r1")
        self.api.put(CONFIG, "third")
        self.start_manager()
        self.until_marked("r1")
        self.until_revision(3)
        wait_until(lambda: all(annotations(r)[SIGNALLED].startswith("3 ") for r in self.runtimes().values()), PATIENCE,
                   "the marks cover the change", every=0.05)
        for name in ("r1", "r2"):
            self.take(name)
        self.until_count("current", 2)
        self.manager.kill()
        before = {name: r["metadata"]["resourceVersion"] for name, r in self.runtimes().items()}
        self.start_manager()
        self.until_count("current", 2)
        self.assertEqual({name: r["metadata"]["resourceVersion"] for name, r in self.runtimes().items()}, before)
        self.assertEqual(self.metric("rw_config_sync_marks_total"), 0)

    def test_changes_survive_managers_killed_and_marks_taken_at_any_moment(self):
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
                    self.take(name)
                    changed = mine.random() < 0.3
                    if changed:
                        self.set_state(name, "Pending")
                    stop.wait(mine.random() * 0.1)
                    if mine.random() < 0.1:
                        self.set_state(name, "Failed")
                        continue
                    read = content()
                    stop.wait(mine.random() * 0.1)
                    configured[name] = read
                    self.set_state(name, "Ready")
            except Exception as error:  # reported by the test
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

    def test_objects_of_a_new_definition_wait_for_their_storage(self):
        self.kcp.kubectl("create", "-f", "-", stdin=control_plane.widget_crd())
        with self.assertRaisesRegex(AssertionError, r"429 .*storage is \(re\)initializing"):
            self.api.request("GET", "/apis/example.com/v1/widgets", retry=False)
        self.assertEqual(self.api.get("/apis/example.com/v1/widgets")["items"], [])

    def definition(self):
        return ROOT / "deploy" / "dev" / "infrastructuremanager.kyma-project.io_runtimes.yaml"

    def start_cluster(self):
        folder = self.folder / "clusters"
        server = self.start(Process("api-server", [DEV_BINARY, "api-server", "--address", "127.0.0.1:0", "--dir", folder,
                                                   "--cluster", "kcp", "--storage-delay", "1s"]))
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
