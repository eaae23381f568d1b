"""Each object in KCP that the manager reads is deleted, garbled, doubled and restored in turn, and each of its rights is
taken away. TABLE says what each may stop, and under which reason `status` and `doctor` name it. Meanwhile what is damaged on the other runtimes is repaired, nothing is removed or
shrunk on any runtime, and the fault is named once; after the repair all has converged within 60 s, without a restart."""

import json
import os
import re
import subprocess
import time
import types
from pathlib import Path

import control_plane
import harness
import landscape
from api import Api, collection
from audit import Audit
from harness import BINARY, ROOT, Process, runtime_watcher, until_established, wait_until
from landscape import Cluster, encoded

CONVERGED = 60  # seconds after a repair
BY_LISTS = 200  # where lists alone show changes: the third comes a minute and a half after the first
PARTS = 8  # of the cases, of which a run plays one unless it is told otherwise
KCP, ISTIO, STATE, SKR = "kcp-system", "istio-system", "runtime-watcher-system", "kyma-system"
KYMAS = ("kyma-1", "kyma-2")
HOOKS = ("validatingwebhookconfigurations", "skr-webhook", None)
TLS = ("secret", "skr-webhook-tls", SKR)
INSTALLED = (HOOKS, TLS, ("deployment", "skr-webhook", SKR), ("service", "skr-webhook", SKR))
DAMAGED = encoded("damaged")


def garbled(*path, to=DAMAGED):
    """The object with another value at the path."""
    def change(found):
        at = found
        for name in path[:-1]:
            at = at[name]
        at[path[-1]] = to
        return found
    return change


def two_hosts(gateway):
    gateway["spec"]["servers"][0]["hosts"] = ["one.example.com", "two.example.com"]
    return gateway


# Name of the case; the object; "delete", "double" or what garbles it; what it stops, by how that is named: "condition REASON" (an
# input of all runtimes is not read; they keep the last valid one), "rotation REASON" (rotations), "watcher REASON" (changes of
# that Watcher), "rollouts REASON" (new content), "kyma-1 REASON" (this runtime's reconcile, no other's), or None: nothing; the
# manager or the issuer puts it right.
GATEWAY = ("gateways.networking.istio.io", "klm-watcher", KCP)
GATEWAY_SECRET = ("secret", "klm-istio-gateway", ISTIO)
ROOT_SECRET = ("secret", "klm-watcher", ISTIO)
WATCHER = ("watchers.operator.kyma-project.io", "kyma", KCP)
ROUTE = ("virtualservices.networking.istio.io", "kyma", KCP)
KYMA = ("kymas.operator.kyma-project.io", "kyma-1", KCP)
ACCESS = ("secret", "kubeconfig-kyma-1", KCP)
CERTIFICATE = ("certificates.cert-manager.io", "kyma-1-webhook-tls", ISTIO)
CERTIFICATE_SECRET = ("secret", "kyma-1-webhook-tls", ISTIO)
ROLLOUT = ("runtimerollouts.operator.kyma-project.io", "watcher", KCP)
LEASE = ("lease", "runtime-watcher-manager", KCP)
ROLLOUTS = ("customresourcedefinition", "runtimerollouts.operator.kyma-project.io", None)
DEFINITIONS = (("watchers.operator.kyma-project.io", WATCHER), ("kymas.operator.kyma-project.io", KYMA))
SLICE = ("endpointslice", "runtime-watcher-manager-events", KCP)
RECORDS = ("secret", "cluster-state-", STATE)

TABLE = [
    ("Gateway deleted", GATEWAY, "delete", "condition GatewayInvalid"),
    ("Gateway with two hosts", GATEWAY, two_hosts, "condition GatewayInvalid"),
    ("Gateway without servers", GATEWAY, garbled("spec", "servers", to=[]), "condition GatewayInvalid"),
    ("gateway's Secret deleted", GATEWAY_SECRET, "delete", None),
    ("gateway's CA bundle garbled", GATEWAY_SECRET, garbled("data", "ca.crt"), None),
    ("gateway's certificate garbled", GATEWAY_SECRET, garbled("data", "tls.crt"), None),
    ("root CA deleted", ROOT_SECRET, "delete", "rotation RootSecretUnusable"),
    ("root CA garbled", ROOT_SECRET, garbled("data", "tls.crt"), "rotation RootSecretUnusable"),
    ("Watcher garbled", WATCHER, garbled("spec", "manager", to="../kyma"), "watcher Invalid"),
    ("VirtualService deleted", ROUTE, "delete", None),
    ("VirtualService garbled", ROUTE, garbled("spec", "hosts", to=["evil.example.com"]), None),
    ("last valid Watcher garbled", ROUTE, garbled("metadata", "annotations", to={"operator.kyma-project.io/last-valid-watcher": "{"}), None),
    ("Kyma without its domain", KYMA, garbled("metadata", "annotations", to={}), "kyma-1 CertificateInvalid"),
    ("Kyma without its runtime id", KYMA, garbled("metadata", "labels", to={}), "kyma-1 CertificateInvalid"),
    ("runtime id of another Kyma", KYMA, garbled("metadata", "labels", to={"kyma-project.io/runtime-id": "id-of-kyma-2"}), "kyma-1 DuplicateRuntime"),
    ("kubeconfig deleted", ACCESS, "delete", "kyma-1 AccessMissing"),
    ("kubeconfig garbled", ACCESS, garbled("data", "config"), "kyma-1 AccessMissing"),
    ("kubeconfig without its key", ACCESS, garbled("data", to={}), "kyma-1 AccessMissing"),
    ("two kubeconfigs", ACCESS, "double", "kyma-1 AccessMissing"),
    ("Certificate deleted", CERTIFICATE, "delete", None),
    ("Certificate garbled", CERTIFICATE, garbled("spec", "commonName", to="nobody"), None),
    ("certificate's Secret deleted", CERTIFICATE_SECRET, "delete", None),
    ("certificate garbled", CERTIFICATE_SECRET, garbled("data", "tls.crt"), None),
    ("key garbled", CERTIFICATE_SECRET, garbled("data", "tls.key"), None),
    ("RuntimeRollout deleted", ROLLOUT, "delete", None),
    ("definition of RuntimeRollouts deleted", ROLLOUTS, "delete", "rollouts KindNotServed"),
    ("Lease deleted", LEASE, "delete", None),
    ("Lease garbled", LEASE, garbled("metadata", "annotations", to={}), None),
    ("EndpointSlice deleted", SLICE, "delete", None),
    ("EndpointSlice garbled", SLICE, garbled("endpoints", to=[]), None),
    ("records deleted", RECORDS, "delete", None),
    ("records garbled", RECORDS, garbled("data", to={"clusters": DAMAGED}), None),
    ("rolled-out content deleted", ("secret", "watcher-content-", STATE), "delete", None),
    ("rolled-out content garbled", ("secret", "watcher-content-", STATE), garbled("data", to={}), None),
]


# What the manager reads all the time.
READ = {"watchers", "gateways", "virtualservices", "kymas", "certificates"}
# A runtime that is damaged too often in a row is repaired later each time.
WITH_DAMAGE = ("Gateway deleted", "root CA deleted", "Watcher garbled", "kubeconfig deleted")
# Of the objects that the manager writes, in which it stores what it reads later.
KEPT_ANNOTATIONS = ("operator.kyma-project.io/last-valid-watcher", "operator.kyma-project.io/runtime-watcher-settings")


def chosen(cases, name_of):
    """Those of RW_E2E_CASE, a part of a name, or those of RW_E2E_PART: "all", or one of PARTS, which is the commit's by default."""
    only = os.environ.get("RW_E2E_CASE")
    if only:
        return [case for case in cases if only in name_of(case)]
    part = os.environ.get("RW_E2E_PART")
    if part is None:
        head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], text=True, capture_output=True).stdout.strip()
        part = str(int(head or "0", 16) % PARTS)
    print(f"RW_E2E_PART={part} of {PARTS}", flush=True)
    return cases if part == "all" else cases[int(part)::PARTS]


def restorable(found):
    """Without what the API server adds."""
    for name in ("resourceVersion", "uid", "creationTimestamp", "managedFields", "generation", "selfLink"):
        found["metadata"].pop(name, None)
    found.pop("status", None)
    return found


class Chaos:
    """The tests."""

    OPTIONS = ("--heartbeat-timeout", "0", "--rollout-canary-soak=1s")
    ISSUES = True  # certificates

    def runtime(self, kyma):
        return self.runtimes[KYMAS.index(kyma)]

    def add(self, kyma):
        self.kcp.apply({"apiVersion": "v1", "kind": "Secret",
                        "metadata": {"name": f"kubeconfig-{kyma}", "namespace": KCP, "labels": {"operator.kyma-project.io/kyma-name": kyma}},
                        "data": {"config": encoded(self.runtime(kyma).kubeconfig.read_text())}})
        self.kcp.apply({"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Kyma",
                        "metadata": {"name": kyma, "namespace": KCP, "labels": {"kyma-project.io/runtime-id": f"id-of-{kyma}"},
                                     "annotations": {"skr-domain": f"{kyma}.example.com"}},
                        "spec": {"channel": "regular"}})

    def act(self):
        """What cert-manager and the runtimes' controllers do."""
        for kyma in KYMAS:
            certificate = self.kcp.get("certificates.cert-manager.io", f"{kyma}-webhook-tls", ISTIO)
            if certificate and certificate["spec"]["commonName"] == f"id-of-{kyma}":
                secret = self.kcp.get("secret", f"{kyma}-webhook-tls", ISTIO)
                if self.ISSUES and (secret is None or DAMAGED in secret["data"].values()):
                    self.kcp.attempt("delete", "secret", f"{kyma}-webhook-tls", "-n", ISTIO)
                    self.kcp.apply(self.issuer.secret_for(certificate))
            deployment = self.runtime(kyma).get("deployment", "skr-webhook", SKR)
            if deployment and not deployment.get("status", {}).get("readyReplicas"):
                status = {"observedGeneration": deployment["metadata"]["generation"], "replicas": 1, "readyReplicas": 1,
                          "updatedReplicas": 1, "availableReplicas": 1}
                api = Api(self.runtime(kyma).kubeconfig)
                api.patch(collection("deployments", SKR, "apps") + "/skr-webhook/status", {"status": status})
                api.close()

    def shown(self):
        done = runtime_watcher("status", "--address", f"127.0.0.1:{self.manager.admin}", "-o", "json")
        return json.loads(done.stdout) if done.returncode in (0, 3) else {"runtimes": [], "conditions": [done.stderr], "rotation": {}}

    def is_well(self):
        self.act()
        self.check_nothing_shrinks()
        self.assertTrue(self.manager.running(), self.manager.tail())
        self.latest = self.shown()
        rows = {row["kyma"]: row for row in self.latest["runtimes"]}
        well = all(rows.get(kyma, {}).get("state") == "installed" and not rows[kyma].get("reason") for kyma in KYMAS)
        watcher = self.kcp.get(*WATCHER)
        ready = watcher is not None and watcher.get("status", {}).get("state") == "Ready"
        return well and ready and not self.latest["conditions"] and self.latest["rotation"].get("phase") == "settled"

    def examine(self, what, reason=None, about=None):
        """`doctor` names the fault once, as `status` does, and calls nothing FAILED that is in order."""
        done = runtime_watcher("doctor", "--kubeconfig", self.kcp.kubeconfig, "--manager", f"127.0.0.1:{self.manager.admin}", "-o", "json",
                               timeout=60)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        failed = [each for each in json.loads(done.stdout)["checks"] if each["state"] == "failed"]
        # How many runtimes are in order is a count, and no other fault.
        faults = [each for each in failed if not (each["check"] == "runtimes" and about)]
        self.assertEqual([each.get("reason") for each in faults], [reason] if reason else [], f"{what}: {failed}")
        if not reason:
            return
        for each in faults:
            self.assertIn(reason, each["message"], what)
            self.assertTrue(about is None or each["message"].startswith(about + ":"), f"{what}: {each}")
        shown = runtime_watcher("status", "--address", f"127.0.0.1:{self.manager.admin}").stdout
        # Once among the runtimes, if it is one's, and once in the verdict.
        self.assertEqual(len(re.findall(rf"(?m)^(?!  ).*\b{reason}\b", shown)), 1 if about else 0, f"{what}: {shown}")
        self.assertEqual(len(re.findall(rf"(?m)^  {reason}: ", shown)), 1, f"{what}: {shown}")

    def examine_rights(self, what, of):
        """`doctor` names what is missing, each right once, and calls nothing else FAILED, but the Lease that can't be renewed."""
        done = runtime_watcher("doctor", "--kubeconfig", self.kcp.kubeconfig, "-o", "json", timeout=60)
        failed = [each for each in json.loads(done.stdout)["checks"] if each["state"] == "failed"]
        lacks = [each["message"] for each in failed if each.get("reason") == "RightsMissing"]
        self.assertTrue(lacks and len(lacks) == len(set(lacks)), f"{what}: {failed}")
        others = {each["check"] for each in failed} - {"rights"}
        self.assertLessEqual(others, {"leader"} if "leases" in of else set(), f"{what}: {failed}")

    def until_well(self, what):
        wait_until(self.is_well, CONVERGED, lambda: f"{what}: all has converged: {self.latest}\n{self.manager.tail()}", every=0.3)

    def snapshot(self, kyma):
        """What must not be less later."""
        found = {each[:2]: self.runtime(kyma).get(*each) for each in INSTALLED}
        there = {key for key, value in found.items() if value is not None}
        hooks = {w["name"] for w in (found[HOOKS[:2]] or {}).get("webhooks") or []}
        data = (found[TLS[:2]] or {}).get("data", {})
        return there | hooks | {("ca", part) for part in landscape.decoded({"data": data}, "ca.crt").decode().split("-----BEGIN")} | {
            ("entry", name) for name in data}

    def check_nothing_shrinks(self):
        for kyma in self.unshrunk:
            self.assertLessEqual(self.unshrunk[kyma] - self.damage.get(kyma, set()), self.snapshot(kyma), kyma)

    def damage_runtime(self, kyma):
        """Somebody deletes the Service on the runtime."""
        self.damage[kyma] = {("service", "skr-webhook")}
        self.runtime(kyma).kubectl("delete", "service", "skr-webhook", "-n", SKR)

    def until_repaired(self, kyma, what):
        def repaired():
            self.act()
            self.check_nothing_shrinks()
            return self.runtime(kyma).get("service", "skr-webhook", SKR)
        wait_until(repaired, CONVERGED, lambda: f"{what}: {kyma} is repaired: {self.shown()}", every=0.2)
        del self.damage[kyma]

    def until_named(self, named, what):
        """In one place, with one reason."""
        kind, _, reason = named.rpartition(" ")
        def names():
            self.check_nothing_shrinks()
            shown = self.shown()
            rows = [row for row in shown["runtimes"] if row.get("reason")]
            if kind == "condition":
                return [c["reason"] for c in shown["conditions"]] == [reason] and not rows
            if kind == "rotation":
                return shown["rotation"].get("reason") == reason and not rows and not shown["conditions"]
            if kind == "rollouts":
                return [(c["type"], c["reason"]) for c in shown["conditions"]] == [("RolloutClosed", reason)] and not rows
            if kind == "watcher":
                conditions = (self.kcp.get(*WATCHER).get("status") or {}).get("conditions") or []
                named_there = any(c["reason"] == reason for c in conditions)
                return named_there and [c["reason"] for c in shown["conditions"]] == [reason] and not rows
            return [(row["kyma"], row["reason"]) for row in rows] == [("kyma-1", reason)] and not shown["conditions"]
        wait_until(names, 90 if kind == "rollouts" else 20, lambda: f"{what}: it is named {named}: {self.shown()}\n{self.manager.tail()}", every=0.2)

    def objects_of(self, kind, name, ns):
        """Those whose names begin so, if the name ends with a hyphen."""
        if not name.endswith("-"):
            return [self.kcp.get(kind, name, ns)]
        found = [each for each in self.kcp.get(kind, None, ns)["items"] if each["metadata"]["name"].startswith(name)]
        self.assertTrue(found, name)
        return found

    def break_object(self, kind, found, how):
        name, ns = found["metadata"]["name"], found["metadata"].get("namespace")
        if how == "delete":
            self.kcp.kubectl("delete", kind, name, *(["-n", ns] if ns else []), "--wait=false")
        elif how == "double":
            copy = restorable(json.loads(json.dumps(found)))
            copy["metadata"]["name"] += "-copy"
            self.kcp.apply(copy)
        else:
            # A leader renews its Lease meanwhile, and no write of one is unconditional.
            for _ in range(20):
                done = self.kcp.attempt("replace", "-f", "-", stdin=how(json.loads(json.dumps(found))))
                if "(Conflict)" not in done.stderr:
                    break
                found = self.kcp.get(kind, name, ns)
            if done.returncode != 0:
                self.assertRegex(done.stderr, "(?i)invalid|validat", "the true schema rejects it, and nothing else does")
                return False
        return True

    def restore_object(self, kind, found, how):
        name, ns = found["metadata"]["name"], found["metadata"].get("namespace")
        if how == "double":
            self.kcp.kubectl("delete", kind, name + "-copy", "-n", ns)
            return
        live = self.kcp.get(kind, name, ns)
        whole = restorable(json.loads(json.dumps(found)))
        if live is None:
            done = self.kcp.attempt("create", "-f", "-", stdin=whole)
            if done.returncode != 0:
                self.assertIn("exists", done.stderr, "the manager was faster")
            return
        whole["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        done = self.kcp.attempt("replace", "-f", "-", stdin=whole)
        if done.returncode != 0:
            self.restore_object(kind, found, how)  # the manager wrote it meanwhile

    def until_whole(self, where, kept, what):
        """By itself. A certificate is another one then."""
        def part(found):
            if found is None or where == CERTIFICATE_SECRET:
                return found and DAMAGED not in found["data"].values()
            return [found.get(name) for name in ("spec", "data", "endpoints")], [
                found["metadata"].get("annotations", {}).get(name) for name in KEPT_ANNOTATIONS]
        if where == LEASE:
            kept = {**kept, "spec": None}
        def look():
            self.act()
            self.check_nothing_shrinks()
            found = self.kcp.get(where[0], kept["metadata"]["name"], where[2])
            if found and where == LEASE:
                found["spec"] = None  # it is renewed all the time
            return found and (part(found) if where == CERTIFICATE_SECRET else part(found) == part(kept))
        wait_until(look, CONVERGED, lambda: f"{what}: it is put right, as it was: {kept}: {self.kcp.get(where[0], kept['metadata']['name'], where[2])}", every=0.3)

    def install(self):
        self.unshrunk, self.damage = {}, {}
        self.kcp.kubectl("apply", "-f", ROOT / "deploy" / "samples" / "watcher.yaml")
        for kyma in KYMAS:
            self.add(kyma)
        self.until_well("at the beginning")
        wait_until(lambda: any(each["metadata"]["name"].startswith(RECORDS[1]) for each in self.kcp.get("secret", None, STATE)["items"]),
                   30, "records are kept", every=0.3)
        self.unshrunk = {kyma: self.snapshot(kyma) for kyma in KYMAS}

    def until_records_name_no_fault(self, what):
        """They are written up to ten seconds after what they say: a fault of the case before may still stand there."""
        def fault_free():
            records = [landscape.decoded(each, "clusters").decode() for each in self.objects_of(*RECORDS)]
            return all(len(line.split()) == 2 for record in records for line in record.splitlines())
        wait_until(fault_free, 30, f"{what}: the records name no fault", every=0.3)

    def play(self, what, where, how, named):
        if where == RECORDS:
            self.until_records_name_no_fault(what)
        kept = self.objects_of(*where)
        broken = [self.break_object(where[0], each, how) for each in kept]
        if not all(broken):
            return
        try:
            if named:
                self.until_named(named, what)
            else:
                for each in kept:
                    self.until_whole(where, each, what)
            about, _, reason = (named or "").rpartition(" ")
            if named:
                self.examine(what, reason, about if about in KYMAS else None)
            if what in WITH_DAMAGE:
                self.damage_runtime("kyma-2")
                self.until_repaired("kyma-2", what)
        finally:
            if named:
                for each in kept:
                    self.restore_object(where[0], each, how)
        self.until_well(what)
        if not named:
            self.examine(what)

    def test_definitions(self):
        """Whoever deletes a definition deletes all objects of it. No runtime loses anything; with both back all converges."""
        self.install()
        for name, (kind, _, ns) in chosen(DEFINITIONS, lambda case: f"definition of {case[0]}"):
            with self.subTest(name):
                definition = self.kcp.get("customresourcedefinition", name)
                objects = self.kcp.get(kind, None, ns)["items"]
                self.kcp.kubectl("delete", "customresourcedefinition", name, "--wait=false")
                def named():
                    self.check_nothing_shrinks()
                    return [c["reason"] for c in self.shown()["conditions"]] == ["KindNotServed"]
                wait_until(named, CONVERGED, lambda: f"{name}: {self.shown()}\n{self.manager.tail()}", every=0.3)
                self.examine(name, "KindNotServed")
                wait_until(lambda: self.kcp.get("customresourcedefinition", name) is None, 30, f"{name} is deleted", every=0.3)
                self.kcp.kubectl("create", "-f", "-", stdin=restorable(definition))
                until_established(self.kcp.kubectl, name)
                for each in objects:
                    each["metadata"].pop("finalizers", None)
                    self.kcp.kubectl("create", "-f", "-", stdin=restorable(each))
                self.until_well(name)
                self.examine(name)

    def test_issuer_that_is_down(self):
        """The runtime keeps its certificate, and works: installed, with a REASON. What is left alone beside it is no fault."""
        self.install()
        self.kcp.kubectl("label", "kyma", "kyma-2", "-n", KCP, "operator.kyma-project.io/skip-reconciliation=true")
        self.ISSUES = False
        self.kcp.kubectl("delete", "secret", "kyma-1-webhook-tls", "-n", ISTIO)
        rows = {}
        def shown():
            self.act()
            self.check_nothing_shrinks()
            rows.update({row["kyma"]: (row["state"], row.get("reason")) for row in self.shown()["runtimes"]})
            return rows.get("kyma-1") == ("installed", "CertificatePending") and rows["kyma-2"][1] == "LeftAlone"
        wait_until(shown, 30, lambda: f"it is shown: {rows}\n{self.manager.tail()}", every=0.3)
        self.examine("issuer down")
        done = runtime_watcher("doctor", "--kubeconfig", self.kcp.kubeconfig, "--manager", f"127.0.0.1:{self.manager.admin}", "-o", "json",
                               timeout=60)
        named = [each for each in json.loads(done.stdout)["checks"] if each.get("reason") == "CertificatePending"]
        self.assertEqual([(each["check"], each["state"], each["message"].split(":")[0]) for each in named],
                         [("manager", "not_proven", "kyma-1")])
        self.ISSUES = True
        self.kcp.kubectl("label", "kyma", "kyma-2", "-n", KCP, "operator.kyma-project.io/skip-reconciliation-")
        self.until_well("issuer back")

    def test_damaged_objects_are_named_and_removed_from_no_runtime(self):
        self.install()
        self.examine("at the beginning")
        for case in chosen(TABLE, lambda case: case[0]):
            with self.subTest(case[0]):
                self.play(*case)
        self.assertEqual(len(self.manager.records(msg="this replica leads")), 1, "without a restart")


def start_embedded(test, *names):
    folder = test.folder / "clusters"
    server = test.start(Process("api-server", [Path(BINARY).parent / "kube-devserver", "--address=127.0.0.1:0", "--dir", folder,
                                               "--cluster", ",".join(names)]))
    server.wait_listening("api-server")
    return [Cluster(folder / f"{name}.kubeconfig", test.folder / f"cache-{name}") for name in names]


class Embedded(Chaos, landscape.Landscape, harness.TestCase):
    manager_kubeconfig = landscape.Embedded.manager_kubeconfig
    definitions = landscape.Embedded.definitions

    def start_clusters(self):
        kcp, *self.runtimes = start_embedded(self, "kcp", "skr-1", "skr-2")
        return kcp, self.runtimes[0]

    def control(self, operation, body=None, method="POST"):
        """Of all clusters, as k8s/devserver/README.md lists it."""
        for cluster in (self.kcp, *self.runtimes):
            api = Api(cluster.kubeconfig)
            api.request(method, f"/devserver/{operation}", body)
            api.close()

    def test_changes_arrive_by_lists_where_watches_end_politely(self):
        """A front end ends each watch at once and without an error, in KCP and on the runtimes: nothing fails, and nothing comes."""
        self.install()
        self.control("faults", [{"verbs": ["watch"], "events": 0, "ends": True}], "PUT")
        self.control("disconnect")
        def named():
            return [each["reason"] for each in self.shown()["conditions"]] == ["EndsWithoutEvents"]
        wait_until(named, CONVERGED, lambda: f"it is named: {self.shown()}\n{self.manager.tail()}", every=0.5)
        begun = time.monotonic()
        self.kcp.kubectl("delete", ROUTE[0], ROUTE[1], "-n", ROUTE[2])
        self.damage_runtime("kyma-1")
        def repaired():
            self.act()
            return self.kcp.get(*ROUTE) and self.runtime("kyma-1").get("service", "skr-webhook", SKR)
        wait_until(repaired, BY_LISTS, lambda: f"both are repaired: {self.shown()}\n{self.manager.tail()}", every=0.5)
        self.note(f"repaired {time.monotonic() - begun:.0f} s after the damage")
        self.control("faults", method="DELETE")
        wait_until(self.is_well, BY_LISTS, lambda: f"all has converged: {self.latest}\n{self.manager.tail()}", every=0.5)
        self.examine("watches last again")


class Real(Chaos, landscape.Real, harness.TestCase):
    """KCP is real, and the manager its ServiceAccount. The runtimes are embedded."""

    def start_clusters(self):
        self.runtimes = start_embedded(self, "skr-1", "skr-2")
        owner = types.SimpleNamespace(folder=self.folder / "kcp", start=self.start)
        owner.folder.mkdir()
        audit = Audit(owner.folder, KCP, landscape.MANAGER)
        plane = control_plane.ControlPlane(owner, options=audit.options)
        kubeconfig = plane.kubeconfig_with_authority(owner.folder / "kubeconfig")
        return Cluster(kubeconfig, owner.folder / "cache", audit), self.runtimes[0]

    def roles(self):
        for kind, ns in (("clusterrole", None), *(("role", each) for each in (KCP, ISTIO, STATE))):
            for role in self.kcp.get(kind, None, ns)["items"]:
                if role["metadata"]["name"].startswith(landscape.MANAGER):
                    yield kind, ns, role

    def test_missing_rights_are_named_and_remove_nothing(self):
        """A manager that starts without a right removes nothing, and needs no restart to get it back."""
        self.install()
        cases = [(f"{rule['verbs']} {rule['resources']} in {ns}", kind, ns, role, i)
                 for kind, ns, role in self.roles() for i, rule in enumerate(role["rules"])]
        for what, kind, ns, role, i in chosen(cases, lambda case: case[0]):
            with self.subTest(what):
                self.play_right(kind, ns, role, i, what)

    def play_right(self, kind, ns, role, number, what):
        name = role["metadata"]["name"]
        place = ["-n", ns] if ns else []
        def set_rules(rules):
            self.kcp.kubectl("patch", kind, name, *place, "--type=merge", "-p", json.dumps({"rules": rules}))
        set_rules([rule for i, rule in enumerate(role["rules"]) if i != number])
        try:
            self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
            self.manager = self.start_manager(*self.OPTIONS)
            self.runtime("kyma-2").kubectl("annotate", "deployment", "skr-webhook", "-n", SKR, f"seen-{self.port}=x", "--overwrite")
            end = time.monotonic() + 4
            needed = "list" in role["rules"][number]["verbs"]
            def passed():
                self.check_nothing_shrinks()
                if not needed or time.monotonic() < end:
                    return time.monotonic() > end
                named = any(c["reason"] == "RightsMissing" for c in self.shown()["conditions"])
                return "forbidden" in self.manager.tail(400) and (named or not READ.intersection(role["rules"][number]["resources"]))
            # What is stored and no longer used is collected a minute after the start.
            wait_until(passed, 120, lambda: f"{what}: it is named, and nothing shrinks: {self.manager.tail()}", every=0.3)
            self.examine_rights(what, role["rules"][number]["resources"])
        finally:
            set_rules(role["rules"])
        self.until_well(what)


if __name__ == "__main__":
    harness.main()
