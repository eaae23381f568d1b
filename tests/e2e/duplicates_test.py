"""Two Kymas whose kubeconfigs name one cluster: the first that had it owns it, also beside an older one and for the next
manager. The other is DuplicateRuntime: the runtime's identity never alternates, and its deletion removes nothing. When the
owner is deleted, the other takes over without a moment without the watcher."""

import base64
import json

import harness
import landscape
from harness import runtime_watcher, wait_until
from landscape import DOMAIN, encoded

TLS = ("secret", "skr-webhook-tls", "kyma-system")
HOOKS = ("validatingwebhookconfigurations", "skr-webhook")
KCP = "kcp-system"
STATE = "runtime-watcher-system"
OTHER = "runtime-4712"


class Duplicates(landscape.Embedded, harness.TestCase):
    def add_other(self):
        self.kcp.apply({"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Kyma",
                        "metadata": {"name": "kyma-2", "namespace": KCP,
                                     "labels": {"kyma-project.io/runtime-id": OTHER},
                                     "annotations": {"skr-domain": DOMAIN}},
                        "spec": {"channel": "regular"}})

    def give_the_same_cluster(self):
        self.kcp.apply({"apiVersion": "v1", "kind": "Secret",
                        "metadata": {"name": f"kubeconfig-{OTHER}", "namespace": KCP,
                                     "labels": {"operator.kyma-project.io/kyma-name": "kyma-2"}},
                        "data": {"config": encoded(self.skr.kubeconfig.read_text())}})

    def row(self, kyma):
        shown = runtime_watcher("status", "--address", f"127.0.0.1:{self.manager.admin}", "-o", "json")
        rows = json.loads(shown.stdout)["runtimes"] if shown.returncode in (0, 3) else []
        return next((row for row in rows if row["kyma"] == kyma), {})

    def until_duplicate(self):
        wait_until(lambda: self.row("kyma-2").get("reason") == "DuplicateRuntime", landscape.PATIENCE,
                   lambda: f"kyma-2 is the duplicate: {self.row('kyma-2')}, {self.row('kyma-1')}")
        self.assertEqual(self.row("kyma-2")["message"], "also Kyma kyma-1")
        self.assertNotIn(self.row("kyma-1")["state"], ("failed", "unreachable"))

    def check_doctor(self):
        """It names the duplicate alone, with the same reason."""
        done = runtime_watcher("doctor", "--kubeconfig", self.kcp.kubeconfig, "--manager", f"127.0.0.1:{self.manager.admin}",
                               "-o", "json", timeout=60)
        found = [c["message"] for c in json.loads(done.stdout)["checks"] if c["check"] == "runtime" and c["message"].startswith("kyma-2")]
        self.assertEqual(found, ["kyma-2: DuplicateRuntime: also Kyma kyma-1"], done.stdout)
        self.assertNotIn("kyma-1: DuplicateRuntime", done.stdout)

    def check_diffs(self):
        """`diff` right after a fail-over: the new leader does not hand the cluster to the duplicate, and shows no write."""
        def told():
            shown = [runtime_watcher("diff", "--kubeconfig", self.kcp.kubeconfig, "--address", f"127.0.0.1:{self.manager.admin}",
                                     "--runtime", kyma, timeout=60) for kyma in ("kyma-2", "kyma-1")]
            for each in shown:
                self.assertNotIn("+++ next", each.stdout)
            self.assertNotIn("belongs to Kyma", shown[1].stdout)
            return "the cluster belongs to Kyma kyma-1: nothing is written" in shown[0].stdout and shown[1].returncode == 0
        wait_until(told, landscape.PATIENCE, lambda: f"the new leader compares both:\n{self.manager.tail()}", every=0.05)

    def recorded(self):
        return "".join(base64.b64decode(one["data"]["clusters"]).decode()
                       for one in self.kcp.get("secrets", ns=STATE)["items"]
                       if one["metadata"]["name"].startswith("cluster-state-"))

    def versions(self):
        return [self.skr.get(*each)["metadata"]["resourceVersion"] for each in (TLS, HOOKS)]

    def check_nothing_alternates(self):
        before = self.versions()
        passes = self.metric("controller_runtime_reconcile_total", controller="watcher-installer")
        for i in range(5):
            for kyma in ("kyma-1", "kyma-2"):
                self.kcp.kubectl("annotate", "kyma", kyma, "-n", KCP, f"look={i}", "--overwrite")
            wait_until(lambda: self.metric("controller_runtime_reconcile_total", controller="watcher-installer") >= passes + 2,
                       landscape.PATIENCE, "both are reconciled")
            passes = self.metric("controller_runtime_reconcile_total", controller="watcher-installer")
        self.assertEqual(self.versions(), before)

    def test_cluster_has_one_owner(self):
        self.kcp.kubectl("apply", "-f", landscape.ROOT / "deploy" / "samples" / "watcher.yaml")
        self.add_other()  # the older one, but without a kubeconfig
        created = self.kcp.get("kyma", "kyma-2", KCP)["metadata"]["creationTimestamp"]

        def later():
            self.kcp.kubectl("create", "configmap", "clock", "-n", KCP)
            now = self.kcp.get("configmap", "clock", KCP)["metadata"]["creationTimestamp"]
            self.kcp.kubectl("delete", "configmap", "clock", "-n", KCP)
            return now > created
        wait_until(later, 20, "KCP's clock has another second")
        self.add_kyma()
        self.issue()
        self.installed(["kyma"])
        uid = self.kcp.get("kyma", "kyma-1", KCP)["metadata"]["uid"]
        wait_until(lambda: uid in self.recorded(), landscape.PATIENCE, "the owner is recorded", every=0.2)
        identity = self.skr.get(*TLS)["data"]["tls.crt"]

        self.give_the_same_cluster()
        self.until_duplicate()
        self.check_doctor()
        self.check_nothing_alternates()
        self.assertIsNone(self.kcp.get("certificates.cert-manager.io", "kyma-2-webhook-tls", "istio-system"))

        # The next manager knows the owner, too.
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.manager = self.start_manager()
        self.check_diffs()
        self.until_duplicate()
        self.check_nothing_alternates()
        self.assertEqual(self.skr.get(*TLS)["data"]["tls.crt"], identity)

        # The deletion of the duplicate removes nothing.
        before = self.versions()
        self.kcp.kubectl("delete", "kyma", "kyma-2", "-n", KCP)
        self.kcp.until_gone("kyma", "kyma-2", KCP)
        self.assertEqual(self.versions(), before)

        # When the owner is deleted the other takes over what is there.
        self.add_other()
        self.until_duplicate()
        configuration = self.skr.get(*HOOKS)["metadata"]["uid"]
        self.kcp.kubectl("delete", "kyma", "kyma-1", "-n", KCP)
        self.kcp.until_gone("kyma", "kyma-1", KCP)
        wait_until(lambda: "WatcherReleased" in self.kcp.events_of("kyma-1", KCP), landscape.PATIENCE,
                   "an event tells of it", every=0.1)
        certificate = self.kcp.until("certificates.cert-manager.io", "kyma-2-webhook-tls", "istio-system",
                                     lambda c: c["spec"]["commonName"] == OTHER, "asks for the other's certificate")
        issued = self.issuer.secret_for(certificate)
        self.kcp.apply(issued)
        self.skr.until(*TLS, lambda s: s["data"]["tls.crt"] == issued["data"]["tls.crt"], "has the other's certificate")
        self.assertEqual(self.skr.get(*HOOKS)["metadata"]["uid"], configuration, "it was never away")


if __name__ == "__main__":
    harness.main()
