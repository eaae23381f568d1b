"""`runtime-watcher uninstall` after a manager: what it takes away, what it leaves, and that it may be interrupted."""

import json
import socket

import harness
import landscape
from harness import BINARY, ROOT, Process, runtime_watcher, wait_until
from landscape import encoded

FINALIZER = "operator.kyma-project.io/runtime-watcher"
WEBHOOKS = ("validatingwebhookconfigurations", "skr-webhook")


class Uninstall(landscape.Embedded, harness.TestCase):
    def setUp(self):
        super().setUp()
        self.silent = socket.create_server(("127.0.0.1", 0), backlog=64)  # a runtime that connects, and never answers
        self.addCleanup(self.silent.close)
        self.kcp.kubectl("apply", "-f", ROOT / "deploy" / "samples" / "watcher.yaml")
        self.add_kyma()
        self.issue()
        self.installed(["kyma"])
        self.kcp.until("endpointslices", "runtime-watcher-manager-events", "kcp-system", bool, "is there")
        self.kcp.until("watchers", "kyma", "kcp-system", lambda w: w.get("status", {}).get("state") == "Ready", "is Ready")

    def add_other(self, name, server=None):
        """A Kyma that a manager had to do with; its runtime is at that server, or there is no access to it any more."""
        self.kcp.apply({"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Kyma",
                        "metadata": {"name": name, "namespace": "kcp-system", "finalizers": [FINALIZER],
                                     "labels": {"kyma-project.io/runtime-id": f"r-{name}"}},
                        "spec": {"channel": "regular"}})
        if server:
            kubeconfig = {"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": server}}],
                          "contexts": [{"name": "c", "context": {"cluster": "c"}}]}
            self.kcp.apply({"apiVersion": "v1", "kind": "Secret", "data": {"config": encoded(json.dumps(kubeconfig))},
                            "metadata": {"name": f"kubeconfig-{name}", "namespace": "kcp-system",
                                         "labels": {"operator.kyma-project.io/kyma-name": name}}})

    def run_it(self, *options):
        return runtime_watcher("uninstall", "--kubeconfig", self.kcp.kubeconfig, *options, timeout=60)

    def finalizers(self, kind, name):
        return self.kcp.get(kind, name, "kcp-system")["metadata"].get("finalizers", [])

    def test_it_takes_everything_away_and_goes_on_where_it_was_interrupted(self):
        for i in range(20):
            self.add_other(f"gone-{i}")
        self.add_other("silent", f"https://127.0.0.1:{self.silent.getsockname()[1]}")

        tried = self.run_it("--dry-run", "--runtime-timeout", "2s")
        self.assertEqual(tried.returncode, 3, tried.stderr)
        self.assertIn("Kyma kyma-1: would be released", tried.stdout)
        self.assertIn("Kyma silent: left: ", tried.stdout)
        self.assertIn("21 Kymas would be released, 1 left", tried.stdout)
        self.assertEqual(self.finalizers("kyma", "gone-0"), [FINALIZER])
        self.assertIsNotNone(self.skr.get(*WEBHOOKS))

        # As long as a manager leads it would put everything back.
        said = []
        first = self.start(Process("uninstall", [BINARY, "uninstall", "--kubeconfig", self.kcp.kubeconfig, "--runtime-timeout", "5m"],
                                   on_line=lambda _, line: said.append(line.decode())))
        wait_until(lambda: any("waiting for the Lease kcp-system/runtime-watcher-manager" in line for line in said), 20,
                   lambda: f"it waits; {said}")
        self.assertEqual(self.finalizers("kyma", "gone-0"), [FINALIZER])
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        wait_until(lambda: any("[21/22]" in line for line in said), 60, lambda: f"all but one are done; {said} {first.tail()}")
        self.assertEqual(first.terminate(), 1, first.tail())
        self.assertIn("interrupted", first.tail())
        self.assertEqual(self.finalizers("kyma", "gone-7"), [])
        self.assertEqual(self.finalizers("kyma", "silent"), [FINALIZER])
        for what in (WEBHOOKS, ("deployment", "skr-webhook", "kyma-system"), ("secret", "skr-webhook-tls", "kyma-system")):
            self.assertIsNone(self.skr.get(*what), what)
        for kind in ("certificates.cert-manager.io", "secret"):
            self.assertIsNone(self.kcp.get(kind, "kyma-1-webhook-tls", "istio-system"))

        again = self.run_it("--runtime-timeout", "1s")
        self.assertEqual(again.returncode, 3, again.stderr)
        self.assertIn("[1/1] Kyma silent: left: ", again.stdout)
        self.assertEqual(self.finalizers("watcher", "kyma"), ["operator.kyma-project.io/watcher"])
        last = self.run_it("--runtime-timeout", "1s", "--force")
        self.assertEqual(last.returncode, 0, last.stderr)
        self.note(last.stdout)
        for kind, name, ns in (("virtualservices.networking.istio.io", "kyma", "kcp-system"),
                               ("virtualservices.networking.istio.io", "runtime-watcher-heartbeats", "kcp-system"),
                               ("secret", "klm-istio-gateway", "istio-system"),
                               ("endpointslices", "runtime-watcher-manager-events", "kcp-system"),
                               ("leases", "runtime-watcher-manager", "kcp-system")):
            self.assertIsNone(self.kcp.get(kind, name, ns), name)
        self.assertIsNotNone(self.kcp.get("secret", "klm-watcher", "istio-system"))
        self.kcp.kubectl("delete", "kyma", "--all", "-n", "kcp-system", "--timeout=20s")
        self.kcp.kubectl("delete", "watcher", "kyma", "-n", "kcp-system", "--timeout=20s")
        self.assertEqual(self.run_it().returncode, 0, "nothing is left to do")

    def test_it_leaves_to_lifecycle_manager_what_that_needs(self):
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        before = self.skr.get(*WEBHOOKS)
        done = self.run_it("--keep-runtimes")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.finalizers("kyma", "kyma-1"), [])
        self.assertEqual(self.skr.get(*WEBHOOKS), before)
        self.assertIsNone(self.kcp.get("endpointslices", "runtime-watcher-manager-events", "kcp-system"))
        # Nor does it take away without that option what runtimes of other Kymas need.
        refused = self.run_it()
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn("1 other Kymas have certificates", refused.stderr)
        for kind, name, ns in (("certificates.cert-manager.io", "kyma-1-webhook-tls", "istio-system"),
                               ("virtualservices.networking.istio.io", "kyma", "kcp-system"),
                               ("secret", "klm-istio-gateway", "istio-system")):
            self.assertIsNotNone(self.kcp.get(kind, name, ns), name)
        self.assertEqual(self.finalizers("watcher", "kyma"), ["operator.kyma-project.io/watcher"])


if __name__ == "__main__":
    harness.main()
