"""kubectl works against the embedded API server as it does against a real one: the same script runs on both (on the real
one where KUBEBUILDER_ASSETS names it).

RW_TEST_CRDS may name a folder with real custom resource definitions, which are applied as well. RW_E2E_KUBECTL names
another kubectl.
"""

import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import control_plane
import harness
from harness import DEV_BINARY, ROOT, Process, until_established, wait_until
from kubectl import KUBECTL, Kubectl

DATA = pathlib.Path(__file__).resolve().parent / "data"


class Owner:
    """Keeps the processes of a whole test class."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="runtime-watcher-e2e-"))
        self._processes = []

    def start(self, process):
        self._processes.append(process)
        return process

    def finish(self):
        for process in reversed(self._processes):
            process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Scenarios:
    """The tests, for a server that a subclass starts. Each has a namespace of its own."""

    _counter = 0

    @classmethod
    def setUpClass(cls):
        cls.owner = Owner()
        try:
            cls.kubeconfig = cls.start_server(cls.owner)
        except BaseException:
            cls.owner.finish()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.owner.finish()

    def setUp(self):
        Scenarios._counter += 1
        self.folder = self.owner.folder
        self.ns = f"kubectl-{Scenarios._counter}"
        self.use_namespace(None)
        self.kubectl("create", "namespace", self.ns)
        self.use_namespace(self.ns)

    def use_namespace(self, name):
        self.kubectl = Kubectl(self.kubeconfig, self.folder / "cache", namespace=name)
        self.attempt = self.kubectl.attempt

    def get(self, *what):
        return json.loads(self.kubectl("get", *what, "-o", "json"))

    def background(self, *arguments):
        lines = []
        process = Process("kubectl", self.kubectl.command(*arguments), on_line=lambda _, line: lines.append(line.decode().rstrip()))
        self.addCleanup(process.kill)
        return process, lines

    def verbs(self, output):
        """The last words of each line of what apply, create and delete print."""
        return [line.rpartition(" ")[2] for line in output.splitlines()]

    def changed_workload(self):
        """The manifests with one thing changed, one added and one left out of each of some objects."""
        text = (DATA / "workload.yaml").read_text()
        for old, new in (("example.com/watcher:1", "example.com/watcher:2"), ("    drop-me: soon\n", ""),
                         ("  drop-me: soon\n", "  come: in\n"), ("timeoutSeconds: 15", "timeoutSeconds: 5"),
                         ("            - name: WEBHOOK_PORT\n              value: \"8443\"\n",
                          "            - name: METRICS_PORT\n              value: \"2112\"\n"),
                         ("        - {port: 53, protocol: TCP}\n", ""), ("verbs: [get, create, update]", "verbs: [get]")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        return text

    # --- apply

    def test_apply_creates_then_changes_nothing_then_only_what_changed(self):
        created = self.verbs(self.kubectl("apply", "-f", DATA / "workload.yaml"))
        self.assertEqual(set(created) - {"unchanged"}, {"created"})  # cluster-scoped ones may be there
        again = self.verbs(self.kubectl("apply", "-f", DATA / "workload.yaml"))
        self.assertEqual(set(again), {"unchanged"}, again)
        self.kubectl("patch", "deployment", "watcher", "-p", '{"spec": {"replicas": 3}}')
        changed = self.kubectl("apply", "-f", "-", stdin=self.changed_workload())
        for what in ("deployment.apps/watcher configured", "configmap/watcher-config configured",
                     "networkpolicy.networking.k8s.io/watcher-to-dns configured", "secret/watcher-tls unchanged",
                     "service/watcher unchanged"):
            self.assertIn(what, changed)
        deployment = self.get("deployment", "watcher")
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual(container["image"], "example.com/watcher:2")
        self.assertEqual([e["name"] for e in container["env"]], ["KCP_ADDR", "METRICS_PORT"])
        self.assertEqual(deployment["spec"]["replicas"], 3, "what the manifest does not name stays")
        self.assertNotIn("drop-me", deployment["metadata"]["labels"])
        self.assertEqual(set(self.get("configmap", "watcher-config")["data"]), {"manifests.yaml", "come"})
        self.kubectl("apply", "-f", DATA / "workload.yaml")

    def test_server_side_apply_knows_its_managers(self):
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1", "l": "1"}}
        def apply(manager, data, *options):
            return self.attempt("apply", "--server-side", "--field-manager", manager, *options, "-f", "-",
                                stdin={**manifest, "data": data})
        self.assertIn("serverside-applied", apply("one", {"k": "1", "l": "1"}).stdout)
        refused = apply("two", {"k": "2"})
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('conflict with "one"', refused.stderr)
        self.assertIn(".data.k", refused.stderr)
        self.assertEqual(apply("two", {"k": "2"}, "--force-conflicts").returncode, 0)
        self.assertEqual(self.get("configmap", "a")["data"], {"k": "2", "l": "1"})
        self.assertEqual(apply("one", {}).returncode, 0)
        self.assertEqual(self.get("configmap", "a")["data"], {"k": "2"})
        workload = self.verbs(self.kubectl("apply", "--server-side", "--force-conflicts", "-f", DATA / "workload.yaml"))
        self.assertEqual(set(workload), {"serverside-applied"})

    def test_manifests_of_the_project_are_all_applied(self):
        served = self.kubectl("api-versions").split()
        # What kustomize and helm read is no object, the kinds of Prometheus Operator are not defined here, and Kubernetes
        # before 1.21 has no policy/v1.
        manifests = [p for p in sorted((ROOT / "deploy").rglob("*.yaml"))
                     if p.name != "kustomization.yaml" and not {"helm", "monitoring"} & set(p.parts) and ("policy/v1" in served or p.name != "disruption.yaml")]
        self.assertTrue(manifests)
        self.use_namespace(None)  # each manifest says where its objects are to be
        for name in sorted(set(re.findall(r"(?m)^ *namespace: *([\w-]+)$", "".join(m.read_text() for m in manifests)))):
            if self.attempt("get", "namespace", name).returncode != 0:
                self.kubectl("create", "namespace", name)
        for crds in ([p for p in manifests if "crds" in p.parts], [p for p in manifests if "crds" not in p.parts]):
            for manifest in crds:
                with self.subTest(manifest.name):
                    self.kubectl("apply", "-f", manifest)
                    # kubectl replaces the selector of a PodDisruptionBudget each time (its patchStrategy), from 1.21 on.
                    again = {"configured", "unchanged"} if manifest.name == "disruption.yaml" else {"unchanged"}
                    self.assertLessEqual(set(self.verbs(self.kubectl("apply", "-f", manifest))), again)
            until_established(self.kubectl, "--all")

    def test_real_custom_resource_definitions_are_applied(self):
        folder = os.environ.get("RW_TEST_CRDS")
        if not folder:
            self.skipTest("RW_TEST_CRDS names no folder")
        for manifest in sorted(pathlib.Path(folder).glob("*.yaml")):
            with self.subTest(manifest.name):
                self.kubectl("apply", "--server-side", "--force-conflicts", "-f", manifest)
        until_established(self.kubectl, "--all")
        self.assertIn("virtualservices.networking.istio.io", self.kubectl("get", "crd", "-o", "name"))

    def test_apply_prunes_what_is_left_out(self):
        both = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n, "labels": {"set": self.ns}}}
                for n in ("a", "b")]
        def apply(items):  # whether a List is well formed is asked for at /openapi/v2
            return self.kubectl("apply", "--prune", "-l", f"set={self.ns}",
                                *(["--prune-allowlist=core/v1/ConfigMap"] if self.kubectl.knows("apply", "--prune-allowlist")
                                  else ["--prune-whitelist=core/v1/ConfigMap"]),
                                "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})
        apply(both)
        self.assertIn("configmap/b pruned", apply(both[:1]))
        self.assertEqual(self.kubectl("get", "configmap", "-l", f"set={self.ns}", "-o", "name").split(), ["configmap/a"])

    # --- reading

    def make_widgets(self, *names):
        self.kubectl("apply", "-f", DATA / "widgets.yaml")
        until_established(self.kubectl, "widgets.e2e.example.com")
        widget = (DATA / "widget.yaml").read_text()
        for name in names:
            self.kubectl("apply", "-f", "-", stdin=widget.replace("name: first", f"name: {name}"))

    def test_get_shows_tables_and_other_forms(self):
        self.make_widgets("one", "two")
        table = self.kubectl("get", "widgets").splitlines()
        self.assertEqual(table[0].split(), ["NAME", "SIZE", "STATE", "AGE"])
        self.assertEqual(table[1].split()[:2], ["one", "1"])
        self.assertEqual(self.kubectl("get", "wdg", "-o", "name").split(),
                         ["widget.e2e.example.com/one", "widget.e2e.example.com/two"])
        self.assertIn("kind: Widget", self.kubectl("get", "widget", "one", "-o", "yaml"))
        self.assertEqual(self.kubectl("get", "widget/one", "-o", "jsonpath={.spec.color}"), "red")
        self.assertEqual(self.kubectl("get", "widget", "-o", "custom-columns=N:.metadata.name", "--no-headers").split(),
                         ["one", "two"])
        self.assertIn("app=widgets", self.kubectl("get", "widget", "--show-labels"))
        self.assertIn(self.ns, self.kubectl("get", "widget", "-A"))
        self.assertIn("widget.e2e.example.com/one", self.kubectl("get", "all"))
        missing = self.attempt("get", "widget", "none")
        self.assertIn('Error from server (NotFound): widgets.e2e.example.com "none" not found', missing.stderr)

    def test_get_selects_by_label_and_field_and_in_chunks(self):
        for n in range(5):
            self.kubectl("create", "configmap", f"c{n}", f"--from-literal=n={n}")
        self.kubectl("label", "configmap", "c1", "c2", "pick=yes")
        self.assertEqual(self.kubectl("get", "cm", "-l", "pick in (yes)", "-o", "name").split(),
                         ["configmap/c1", "configmap/c2"])
        self.assertEqual(self.kubectl("get", "cm", "--field-selector", "metadata.name=c3", "-o", "name").split(),
                         ["configmap/c3"])
        found = self.kubectl("get", "cm", "--chunk-size=2", "-o", "name").split()
        self.assertEqual(len([name for name in found if "/c" in name]), 5)

    def test_get_watches_what_happens(self):
        self.kubectl("create", "configmap", "before")
        watch, lines = self.background("get", "configmap", "-w", "--output-watch-events")
        wait_until(lambda: any("before" in line for line in lines), 20, lambda: f"the watch begins:\n{watch.tail()}")
        self.kubectl("create", "configmap", "a", "--from-literal=k=1")
        self.kubectl("label", "configmap", "a", "l=m")
        self.kubectl("delete", "configmap", "a")
        def told(name):
            return [line.split()[0] for line in lines if line.split()[1:2] == [name]]
        wait_until(lambda: "DELETED" in told("a"), 20, lambda: f"{lines}")
        self.assertEqual(told("a"), ["ADDED", "MODIFIED", "DELETED"])
        self.assertTrue(watch.running())

    def test_describe_and_events(self):
        self.kubectl("apply", "-f", DATA / "workload.yaml")
        self.assertIn("example.com/watcher:1", self.kubectl("describe", "deployment", "watcher"))
        self.assertIn("watcher-tls", self.kubectl("describe", "secret", "watcher-tls"))
        config = self.get("configmap", "watcher-config")
        self.kubectl("create", "-f", "-", stdin={
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "told", "namespace": self.ns},
            "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": self.ns, "name": "watcher-config",
                               "uid": config["metadata"]["uid"]},
            "reason": "Tried", "message": "it was tried", "type": "Normal", "count": 1,
            "firstTimestamp": "2024-02-29T12:00:00Z", "lastTimestamp": "2024-02-29T12:00:00Z",
            "source": {"component": "e2e"}})
        self.assertIn("it was tried", self.kubectl("get", "events"))
        self.assertIn("it was tried", self.kubectl("describe", "configmap", "watcher-config"))
        if self.attempt("events", "--help").returncode == 0 and "--for" in self.attempt("events", "--help").stdout:
            self.assertIn("it was tried", self.kubectl("events", "--for", "configmap/watcher-config"))

    # --- writing

    def test_patch_in_three_ways(self):
        self.kubectl("apply", "-f", DATA / "workload.yaml")
        self.kubectl("patch", "deployment", "watcher", "-p", json.dumps(
            {"spec": {"template": {"spec": {"containers": [{"name": "second", "image": "example.com/second:1"}]}}}}))
        self.kubectl("patch", "deployment", "watcher", "--type=json", "-p", json.dumps(
            [{"op": "replace", "path": "/spec/revisionHistoryLimit", "value": 7}]))
        self.kubectl("patch", "deployment", "watcher", "--type=merge", "-p", '{"spec": {"paused": true}}')
        spec = self.get("deployment", "watcher")["spec"]
        self.assertEqual(sorted(c["name"] for c in spec["template"]["spec"]["containers"]), ["second", "watcher"])
        self.assertEqual(spec["revisionHistoryLimit"], 7)
        self.assertTrue(spec["paused"])

    def test_label_annotate_and_set(self):
        self.kubectl("apply", "-f", DATA / "workload.yaml")
        self.kubectl("label", "deployment", "watcher", "l=m")
        refused = self.attempt("label", "deployment", "watcher", "l=n")
        self.assertIn("--overwrite is false", refused.stderr)
        self.kubectl("label", "deployment", "watcher", "l=n", "--overwrite")
        self.kubectl("annotate", "deployment", "watcher", "example.com/why=because")
        self.kubectl("set", "image", "deployment/watcher", "watcher=example.com/watcher:9")
        deployment = self.get("deployment", "watcher")
        self.assertEqual(deployment["metadata"]["labels"]["l"], "n")
        self.assertEqual(deployment["metadata"]["annotations"]["example.com/why"], "because")
        self.assertEqual(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "example.com/watcher:9")
        self.kubectl("label", "deployment", "watcher", "l-")
        self.assertNotIn("l", self.get("deployment", "watcher")["metadata"]["labels"])

    def test_scale(self):
        self.kubectl("apply", "-f", DATA / "workload.yaml")
        self.make_widgets("one")
        self.kubectl("scale", "deployment/watcher", "--replicas=2")
        self.kubectl("scale", "widget/one", "--replicas=4")
        self.assertEqual(self.get("deployment", "watcher")["spec"]["replicas"], 2)
        self.assertEqual(self.get("widget", "one")["spec"]["size"], 4)

    def test_create_replace_and_edit(self):
        self.kubectl("create", "configmap", "a", "--from-literal=k=1")
        refused = self.attempt("create", "configmap", "a")
        self.assertIn("already exists", refused.stderr)
        self.kubectl("create", "secret", "generic", "s", "--from-literal=password=secret")
        self.assertEqual(self.get("secret", "s")["data"]["password"], "c2VjcmV0")
        self.kubectl("create", "deployment", "d", "--image=example.com/d:1")
        self.kubectl("create", "serviceaccount", "robot")
        self.kubectl("create", "role", "r", "--verb=get", "--resource=configmaps")
        current = self.get("configmap", "a")
        current["data"] = {"k": "2"}
        self.kubectl("replace", "-f", "-", stdin=current)
        stale = self.attempt("replace", "-f", "-", stdin=current)
        self.assertIn("Conflict", stale.stderr)
        self.assertIn("dry run", self.kubectl("create", "configmap", "dry", "--dry-run=server"))
        self.assertNotEqual(self.attempt("get", "configmap", "dry").returncode, 0)
        self.kubectl("edit", "configmap", "a", env={"KUBE_EDITOR": "sed -i 's/k: \"2\"/k: \"3\"/'"})
        self.assertEqual(self.get("configmap", "a")["data"], {"k": "3"})

    def test_invalid_objects_are_rejected_before_or_by_the_server(self):
        self.make_widgets()
        for widget, word in (({"size": "large"}, "integer"), ({"size": -1}, "greater than or equal to 0"),
                             ({"color": "red"}, "size"), ({"size": 1, "color": "green"}, "supported values")):
            refused = self.attempt("create", "-f", "-", stdin={
                "apiVersion": "e2e.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": widget})
            self.assertNotEqual(refused.returncode, 0, widget)
            self.assertIn(word, refused.stderr)

    def test_diff_tells_what_would_change(self):
        if not shutil.which("diff"):
            self.skipTest("diff is not installed")
        self.kubectl("apply", "-f", DATA / "workload.yaml")
        same = self.attempt("diff", "-f", DATA / "workload.yaml")
        self.assertEqual((same.returncode, same.stdout), (0, ""), same.stderr)
        changed = self.attempt("diff", "-f", "-", stdin=self.changed_workload())
        self.assertEqual(changed.returncode, 1, changed.stderr)
        self.assertIn("+        image: example.com/watcher:2", changed.stdout)
        self.assertIn("example.com/watcher:1", self.kubectl("get", "deployment", "watcher", "-o", "yaml"))

    # --- deleting and waiting

    def test_delete_by_name_by_label_and_all(self):
        for name in ("a", "b", "c", "d"):
            self.kubectl("create", "configmap", name)
        self.assertIn('configmap "a" deleted', self.kubectl("delete", "configmap", "a"))
        self.kubectl("label", "configmap", "b", "l=m")
        self.kubectl("delete", "configmap", "-l", "l=m")
        self.assertNotEqual(self.attempt("get", "configmap", "b").returncode, 0)
        self.kubectl("delete", "configmap", "--all", "--now")
        self.assertEqual(self.kubectl("get", "configmap", "-o", "name").split(), [])
        self.kubectl("apply", "-f", DATA / "workload.yaml")
        self.assertEqual(set(self.verbs(self.kubectl("delete", "-f", DATA / "workload.yaml"))), {"deleted"})
        self.kubectl("delete", "--ignore-not-found", "-f", DATA / "workload.yaml")

    def test_delete_waits_for_finalizers(self):
        self.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "ConfigMap",
                                                 "metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
        waiting, _ = self.background("wait", "--for=delete", "configmap/a", "--timeout=30s")
        deleting, _ = self.background("delete", "configmap", "a")
        wait_until(lambda: "deletionTimestamp" in self.get("configmap", "a")["metadata"], 20, "the deletion begins")
        self.assertTrue(deleting.running() and waiting.running(), "both wait for the finalizer")
        self.kubectl("patch", "configmap", "a", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
        self.assertEqual(deleting.wait(20), 0, deleting.tail())
        self.assertEqual(waiting.wait(20), 0, waiting.tail())

    def test_wait_sees_conditions_and_values(self):
        self.make_widgets("one")
        waits = [self.background("wait", "--for=condition=Ready", "widget/one", "--timeout=30s")]
        if self.kubectl.knows("wait", "jsonpath="):
            waits.append(self.background("wait", "--for=jsonpath={.status.state}=Ready", "widget/one", "--timeout=30s"))
        widget = self.get("widget", "one")
        widget["status"] = {"state": "Ready", "conditions": [{"type": "Ready", "status": "True"}]}
        # What is raw is the whole path, also of a server that does not begin at "/".
        base = re.search(r"server: *\"?https://[^/\s\"]*([^\s\"]*)", pathlib.Path(self.kubeconfig).read_text())
        base = base[1].rstrip("/") if base else ""
        self.kubectl("replace", "--raw", f"{base}/apis/e2e.example.com/v1/namespaces/{self.ns}/widgets/one/status", "-f", "-",
                     stdin=widget)
        for waiting, _ in waits:
            self.assertEqual(waiting.wait(40), 0, waiting.tail())
        self.assertIn("Ready", self.kubectl("get", "widget", "one"))

    # --- discovery

    def test_api_resources_versions_and_explain(self):
        self.make_widgets()
        resources = self.kubectl("api-resources", "-o", "wide")
        for word in ("configmaps", "deployments", "widgets", "wdg", "Widget", "validatingwebhookconfigurations", "leases"):
            self.assertIn(word, resources)
        versions = self.kubectl("api-versions").split()
        for version in ("v1", "apps/v1", "e2e.example.com/v1", "coordination.k8s.io/v1"):
            self.assertIn(version, versions)
        def explained():
            done = self.attempt("explain", "widget.spec")
            return done.returncode == 0 and done.stdout
        text = wait_until(explained, 20, "the kind's schema is published", every=0.5)
        self.assertIn("What is wanted.", text)
        self.assertIn("How large the widget is to be.", text)
        self.assertRegex(self.kubectl("explain", "pod.spec.containers.ports.containerPort"), r"containerPort\W.*integer")
        self.assertIn("Server Version", self.kubectl("version"))

    def test_auth_can_i(self):
        self.assertEqual(self.kubectl("auth", "can-i", "create", "configmaps").strip(), "yes")


class OnTheEmbeddedServer(Scenarios, unittest.TestCase):
    @staticmethod
    def start_server(owner):
        if not os.access(DEV_BINARY, os.X_OK):
            raise AssertionError(f"{DEV_BINARY} is not there; build it first (cmake --build --preset release)")
        server = owner.start(Process("api-server", [DEV_BINARY, "api-server", "--address", "127.0.0.1:0",
                                                    "--dir", owner.folder, "--cluster", "kcp"]))
        server.wait_listening("api-server")
        return owner.folder / "kcp.kubeconfig"

    def test_namespace_goes_with_all_that_is_in_it(self):
        # A kube-apiserver alone has no namespace controller.
        self.kubectl("create", "namespace", "leaving")
        self.kubectl("create", "configmap", "a", "--namespace", "leaving")
        self.kubectl("delete", "namespace", "leaving", "--timeout=20s")
        self.assertNotEqual(self.attempt("get", "namespace", "leaving").returncode, 0)


@unittest.skipUnless(os.environ.get("KUBEBUILDER_ASSETS"), "KUBEBUILDER_ASSETS names no real API server")
class OnARealServer(Scenarios, unittest.TestCase):
    @staticmethod
    def start_server(owner):
        return control_plane.ControlPlane(owner).folder / "kubeconfig"


if __name__ == "__main__":
    if not KUBECTL:
        harness.skip("kubectl is not installed; deploy/install-packages.sh test")
    harness.main()
