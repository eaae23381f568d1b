"""The manager beside lifecycle-manager, which this script plays: every second it applies what lifecycle-manager applies, as its
field manager, by force. The swap as deploy/manager/MIGRATION.md tells it: shadow, canary, all, and back again.
"""

import datetime
import json
import threading
import time
import urllib.error
import urllib.request

import harness
import landscape
from harness import ROOT, runtime_watcher, wait_until
from landscape import DOMAIN, PATIENCE, RUNTIME, decoded, encoded

LEASE = "893110f7.kyma-project.io"
HOOKS = ("validatingwebhookconfigurations", "skr-webhook", None)
DEPLOYMENT = ("deployment", "skr-webhook", "kyma-system")
TLS = ("secret", "skr-webhook-tls", "kyma-system")
IMAGE = "example.com/klm-watcher:2"
CERTIFICATE = ("certificates.cert-manager.io", "kyma-1-webhook-tls", "istio-system")


class Klm:
    """lifecycle-manager's part for watchers, and its Lease."""

    def __init__(self, kcp, skr, secret):
        self._kcp, self._skr, self._secret = kcp, skr, secret
        self.rounds = 0
        self.failure = None
        self._end = threading.Event()
        self.apply()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._end.wait(1):
            try:
                self.apply()
            except AssertionError as e:
                self.failure = e
                return

    def apply(self):
        by = ("apply", "--server-side", "--force-conflicts", "--validate=false",
              "--field-manager=lifecycle-manager", "-f", "-")
        self._kcp.kubectl(*by, stdin=self.lease("klm-1"))
        self._skr.kubectl(*by, stdin={"apiVersion": "v1", "kind": "List", "items": self.objects()})
        self.rounds += 1

    @staticmethod
    def lease(holder):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE, "namespace": "kcp-system"},
                "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": now}}

    def objects(self):
        labels = {"operator.kyma-project.io/managed-by": "kyma"}
        bundle = encoded(decoded(self._secret, "ca.crt"))
        return [
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": TLS[1], "namespace": TLS[2], "labels": labels},
             "data": self._secret["data"]},
            {"apiVersion": "apps/v1", "kind": "Deployment",
             "metadata": {"name": "skr-webhook", "namespace": "kyma-system", "labels": labels},
             "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "skr-webhook"}}, "template": {
                 "metadata": {"labels": {"app": "skr-webhook"}, "annotations": {"klm.example.com/only": "klm"}},
                 "spec": {"containers": [{"name": "server", "image": IMAGE}]}}}},
            {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
             "metadata": {"name": "skr-webhook", "labels": labels},
             "webhooks": [{"name": "kcp-system.kyma.operator.kyma-project.io", "admissionReviewVersions": ["v1"],
                           "clientConfig": {"caBundle": bundle, "service": {"name": "skr-webhook", "namespace": "kyma-system",
                                                                           "path": "/validate/lifecycle-manager"}},
                           "sideEffects": "NoneOnDryRun", "timeoutSeconds": 15, "failurePolicy": "Ignore",
                           "rules": [{"apiGroups": ["operator.kyma-project.io"], "apiVersions": ["*"], "resources": ["kymas"],
                                      "operations": ["CREATE", "UPDATE", "DELETE"], "scope": "*"}]}]}]

    def stop(self):
        self._end.set()
        self._thread.join(30)
        self._kcp.kubectl("apply", "--server-side", "--force-conflicts", "--validate=false",
                          "--field-manager=lifecycle-manager", "-f", "-", stdin=self.lease(""))
        if self.failure:
            raise self.failure


class Beside:
    OPTIONS = ("--lifecycle-manager-patience=4s",)

    def prepare(self):
        """As lifecycle-manager leaves a landscape: certificate, bundle, and the watcher on the runtime."""
        super().prepare()
        self.skr.kubectl("create", "namespace", "kyma-system")
        self.kcp.apply({"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
                        "metadata": {"name": CERTIFICATE[1], "namespace": CERTIFICATE[2]},
                        "spec": {"commonName": RUNTIME, "secretName": CERTIFICATE[1], "duration": "1440h0m0s",
                                 "renewBefore": "720h0m0s", "usages": ["digital signature", "key encipherment"],
                                 "dnsNames": [DOMAIN, "skr-webhook.kyma-system.svc.cluster.local", "skr-webhook.kyma-system.svc"],
                                 "privateKey": {"algorithm": "RSA", "size": 4096, "encoding": "PKCS1", "rotationPolicy": "Always"},
                                 "issuerRef": {"name": "klm-watcher-selfsigned", "kind": "Issuer"},
                                 "secretTemplate": {"labels": {"operator.kyma-project.io/purpose": "klm-watcher-cert-manager",
                                                               "operator.kyma-project.io/managed-by": "lifecycle-manager"}}}})
        self.secret = self.issuer.secret_for(self.kcp.get(*CERTIFICATE))
        self.kcp.apply(self.secret, {**self.issuer.root_secret, "metadata": {
            "name": "klm-istio-gateway", "namespace": "istio-system", "annotations": {"caAddedToBundleAt": "2024-01-01T00:00:00Z"}}})
        self.kcp.kubectl("apply", "-f", ROOT / "deploy" / "samples" / "watcher.yaml")
        self.add_kyma()
        self.klm = Klm(self.kcp, self.skr, self.secret)
        self.addCleanup(lambda: self.klm.stop())

    def status(self):
        done = runtime_watcher("status", "--address", f"127.0.0.1:{self.manager.admin}", "-o", "json")
        return json.loads(done.stdout) if done.returncode in (0, 3) else {"conditions": [], "runtimes": []}

    def until_status(self, good, what):
        wait_until(lambda: good(self.status()), PATIENCE, lambda: f"{what}: {self.status()}\n{self.manager.tail()}", every=0.2)
        return self.status()

    def until_rounds(self, count=3):
        until = self.klm.rounds + count
        wait_until(lambda: self.klm.rounds >= until or self.klm.failure, PATIENCE, "lifecycle-manager goes on")

    def versions(self):
        found = [(self.skr.get(*HOOKS)), self.skr.get(*DEPLOYMENT), self.skr.get(*TLS), self.kcp.get(*CERTIFICATE),
                 self.kcp.get("secret", CERTIFICATE[1], "istio-system"), self.kcp.get("secret", "klm-istio-gateway", "istio-system"),
                 self.kcp.get("kyma", "kyma-1", "kcp-system"), self.kcp.get("watcher", "kyma", "kcp-system")]
        return {f"{o['kind']} {o['metadata']['name']}": o["metadata"]["resourceVersion"] for o in found}

    def managers(self):
        text = self.skr.kubectl("get", HOOKS[0], HOOKS[1], "-o", "json", "--show-managed-fields")
        return {e["manager"] for e in json.loads(text)["metadata"]["managedFields"]}

    def image(self):
        return self.skr.get(*DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["image"]

    def check_shadow(self):
        """It stands back: says so, once, and what it would write; and changes nothing at all."""
        before = self.versions()
        self.until_status(lambda s: s["conditions"] and s["runtimes"] and s["runtimes"][0].get("wouldWrite"), "shadow")
        self.until_rounds()
        status = self.status()
        self.assertEqual([(c["type"], c["reason"]) for c in status["conditions"]], [("StandsBack", "LifecycleManagerRuns")])
        self.assertIn("Deployment skr-webhook", status["runtimes"][0]["wouldWrite"])
        self.assertEqual(self.metric("rw_manager_stands_back"), 1)
        self.assertEqual(self.versions(), before)
        self.assertIsNone(self.kcp.get("virtualservices.networking.istio.io", "kyma", "kcp-system"))
        self.kcp.until("events", None, "kcp-system", lambda all: any(e["reason"] == "StandsBack" for e in all["items"]), "says it")
        table = runtime_watcher("status", "--address", f"127.0.0.1:{self.manager.admin}")
        self.note(table.stdout)
        self.assertIn("StandsBack (LifecycleManagerRuns)", table.stdout)

    def test_managers_are_swapped_and_back(self):
        self.check_shadow()
        # lifecycle-manager ends, and so does this manager, to begin anew. First nothing is a canary.
        self.klm.stop()
        self.assertEqual(self.manager.wait(60), 1, self.manager.tail())
        before = self.versions()
        self.manager = self.start_manager("--only=canary=yes", *self.OPTIONS)
        wait_until(lambda: self.metric("leader_election_master_status"), PATIENCE, "it leads")
        wait_until(lambda: self.metric("controller_runtime_reconcile_total", controller="watcher-installer"), PATIENCE, "it has looked")
        for each in ("Deployment skr-webhook", "ValidatingWebhookConfiguration skr-webhook", "Kyma kyma-1"):
            self.assertEqual(self.versions()[each], before[each], each)
        self.kcp.kubectl("label", "kyma", "kyma-1", "-n", "kcp-system", "canary=yes")
        self.skr.until(*DEPLOYMENT, lambda d: d["spec"]["template"]["spec"]["containers"][0]["image"] ==
                       "example.com/runtime-watcher:1", "has the manager's image")
        wait_until(lambda: self.managers() == {"runtime-watcher"}, PATIENCE, lambda: f"it is its own: {self.managers()}")
        # What only lifecycle-manager wanted is gone; certificate, key and the gateway's stay as they were.
        self.assertNotIn("klm.example.com/only", self.skr.get(*DEPLOYMENT)["spec"]["template"]["metadata"].get("annotations", {}))
        self.assertEqual(self.skr.get(*TLS)["data"]["tls.crt"], self.secret["data"]["tls.crt"])
        for each in (f"Secret {CERTIFICATE[1]}", "Secret klm-istio-gateway"):
            self.assertEqual(self.versions()[each], before[each], each)
        self.assertNotIn("Issuing", json.dumps(self.kcp.get(*CERTIFICATE).get("status", {})))
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())

        # All, whatever runs. Then lifecycle-manager's part is started again: no fight.
        self.manager = self.start_manager("--take-over", *self.OPTIONS)
        self.until_status(lambda s: s["runtimes"] and s["runtimes"][0]["state"] in ("installed", "not_ready"), "installed")
        self.klm = Klm(self.kcp, self.skr, self.secret)
        self.kcp.kubectl("annotate", "kyma", "kyma-1", "-n", "kcp-system", "look=now")
        status = self.until_status(lambda s: s["conditions"], "is contested")
        self.assertEqual([(c["type"], c["reason"]) for c in status["conditions"]], [("Contested", "WrittenByOthers")])
        self.assertEqual(status["runtimes"][0]["reason"], "Contested", status)
        written = self.metric("rw_watcher_installer_writes_total")
        for i in range(3):
            self.kcp.kubectl("annotate", "kyma", "kyma-1", "-n", "kcp-system", f"look={i}", "--overwrite")
            self.until_rounds(2)
        self.assertEqual(self.metric("rw_watcher_installer_writes_total"), written)
        self.assertEqual(self.image(), IMAGE)

        # Back: the manager goes, and leaves to lifecycle-manager what that needs.
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        back = runtime_watcher("uninstall", "--kubeconfig", self.kcp.kubeconfig, "--keep-runtimes", timeout=60)
        self.assertEqual(back.returncode, 0, back.stderr)
        self.until_rounds()
        self.assertEqual(self.image(), IMAGE)
        self.assertEqual(self.skr.get(*HOOKS)["webhooks"][0]["timeoutSeconds"], 15)
        self.assertNotIn("finalizers", self.kcp.get("kyma", "kyma-1", "kcp-system")["metadata"])
        self.assertIsNotNone(self.kcp.get(*CERTIFICATE))
        self.assertIsNotNone(self.skr.get(*TLS))
        # Of whichever version KCP serves: 1.20 has v1beta1 alone.
        self.assertIsNone(self.kcp.get("endpointslices", "runtime-watcher-manager-events", "kcp-system"))


class Embedded(Beside, landscape.Embedded, harness.TestCase):
    pass


class Real(Beside, landscape.Real, harness.TestCase):
    def tearDown(self):
        self.kcp.audit.check_none_refused()
        super().tearDown()


class Abandoned(landscape.Embedded, harness.TestCase):
    """lifecycle-manager has crashed, or has been removed: its Lease stays."""

    PATIENCE_OF_MANAGER = 8
    OPTIONS = (f"--lifecycle-manager-patience={PATIENCE_OF_MANAGER}s",)
    holder = "klm-1"

    def prepare(self):
        super().prepare()
        lease = Klm.lease(self.holder)
        lease["spec"]["renewTime"] = f"{datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1):%Y-%m-%dT%H:%M:%S.%fZ}"
        self.kcp.apply(lease)

    def conditions(self):
        done = runtime_watcher("status", "--address", f"127.0.0.1:{self.manager.admin}", "-o", "json")
        shown = json.loads(done.stdout)
        return shown["leads"], [(c["type"], c["reason"]) for c in shown["conditions"]]

    def test_manager_takes_events_while_it_waits_for_the_lease(self):
        began = time.monotonic()
        wait_until(lambda: self.conditions() == (True, [("StandsBack", "LeaseNotAbandoned")]), PATIENCE,
                   lambda: f"the wait is named: {self.conditions()}")
        request = urllib.request.Request(f"http://127.0.0.1:{self.manager.listener}/v2/lifecycle-manager/event", b"{}")
        with self.assertRaises(urllib.error.HTTPError) as answer:
            urllib.request.urlopen(request, timeout=10)
        self.assertEqual(answer.exception.code, 401, "it asks for a certificate, and does not name another replica")
        text = runtime_watcher("doctor", "--kubeconfig", self.kcp.kubeconfig, "--manager", f"127.0.0.1:{self.manager.admin}").stdout
        self.assertIn("LeaseNotAbandoned", text)
        self.assertTrue(self.kcp.get("secret", "runtime-watcher-leader", "runtime-watcher-system"), "so status finds it")
        self.assertLess(time.monotonic() - began, self.PATIENCE_OF_MANAGER, "all of this was seen during the wait")
        wait_until(lambda: self.conditions() == (True, []), PATIENCE, lambda: f"it goes on: {self.conditions()}")

    def test_manager_that_takes_over_does_not_stand_back(self):
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.manager = self.start_manager("--take-over", *self.OPTIONS)
        wait_until(lambda: [r for r in self.manager.records() if "Lease is not renewed" in r["msg"]], PATIENCE, "it looks at the Lease")
        self.assertEqual(self.conditions(), (True, []))

    def test_released_lease_is_not_waited_for(self):
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.kcp.apply(Klm.lease(""))
        self.manager = self.start_manager(*self.OPTIONS)
        wait_until(lambda: self.kcp.get("secret", "klm-istio-gateway", "istio-system"), PATIENCE,
                   lambda: f"its term has begun:\n{self.manager.tail()}")
        self.assertFalse([r for r in self.manager.records() if "Lease is not renewed" in r["msg"]], self.manager.tail())


if __name__ == "__main__":
    harness.main()
