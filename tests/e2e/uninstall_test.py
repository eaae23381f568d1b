"""`runtime-watcher uninstall` after a manager: what it takes away, what it leaves, and that it may be interrupted."""

import http.server
import json
import socket
import threading

import harness
import landscape
from harness import BINARY, ROOT, Process, runtime_watcher, wait_until
from landscape import encoded

FINALIZER = "operator.kyma-project.io/runtime-watcher"
WEBHOOKS = ("validatingwebhookconfigurations", "skr-webhook")


class Hostile(http.server.BaseHTTPRequestHandler):
    """A tenant's API server, which rejects everything with text for the operator's terminal."""

    protocol_version = "HTTP/1.1"
    TEXT = "\x1b[2J\x1b]0;owned\x07no\r\nKyma r0: released\n\x9b1A"

    def reject(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": self.TEXT, "message": self.TEXT,
                           "code": 403, "details": {"causes": [{"reason": self.TEXT, "message": self.TEXT}]}}).encode()
        self.send_response(403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = reject

    def log_message(self, *_):
        pass


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
                                     "labels": {"kyma-project.io/runtime-id": f"r-{name}"},
                                     "annotations": {"skr-domain": f"{name}.example.com"}},
                        "spec": {"channel": "regular"}})
        if server:
            kubeconfig = {"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": server}}],
                          "contexts": [{"name": "c", "context": {"cluster": "c"}}]}
            self.kcp.apply({"apiVersion": "v1", "kind": "Secret", "data": {"config": encoded(json.dumps(kubeconfig))},
                            "metadata": {"name": f"kubeconfig-{name}", "namespace": "kcp-system",
                                         "labels": {"operator.kyma-project.io/kyma-name": name}}})

    def run_it(self, *options):
        return runtime_watcher("uninstall", "--kubeconfig", self.kcp.kubeconfig, *options, timeout=60)

    def owners(self, kind, name, ns=None):
        """Who manages fields of an object on the runtime."""
        shown = self.skr.kubectl("get", kind, name, *(["-n", ns] if ns else []), "-o", "json", "--show-managed-fields")
        return {each["manager"] for each in json.loads(shown)["metadata"]["managedFields"] if "subresource" not in each}

    def finalizers(self, kind, name):
        return self.kcp.get(kind, name, "kcp-system")["metadata"].get("finalizers", [])

    def test_uninstall_removes_everything_and_goes_on_where_it_was_interrupted(self):
        for i in range(20):
            self.add_other(f"gone-{i}")
        self.add_other("silent", f"https://127.0.0.1:{self.silent.getsockname()[1]}")

        kept = self.run_it("--lease-timeout", "1s")
        self.assertEqual(kept.returncode, 1, kept.stdout)
        self.assertRegex(kept.stderr, r"waited in vain for the Lease kcp-system/runtime-watcher-manager, which \S+ holds: a manager that runs keeps "
                                      r"it(?s:.*)\n  fix: stop the manager, .*: kubectl --kubeconfig \S+ -n kcp-system scale "
                                      r"deployment/runtime-watcher-manager --replicas=0\n")
        tried = self.run_it("--dry-run", "--runtime-timeout", "2s")
        self.assertRegex(tried.stdout, "before anything is changed it will wait for the Lease kcp-system/runtime-watcher-manager, which .* holds")
        self.assertEqual((tried.returncode, tried.stderr), (3, ""))
        self.assertIn("Kyma kyma-1: would be released\n", tried.stdout)
        self.assertIn("Kyma gone-3: would be released; its runtime is left as it is, as KCP has no kubeconfig of it\n", tried.stdout)
        self.assertIn("Kyma silent: left: ", tried.stdout)
        self.assertIn("21 Kymas would be released, 1 left", tried.stdout)
        self.assertEqual(self.finalizers("kyma", "gone-0"), [FINALIZER])
        self.assertIsNotNone(self.skr.get(*WEBHOOKS))

        # As long as a manager leads it would put everything back.
        said = []
        first = self.start(Process("uninstall", [BINARY, "uninstall", "--kubeconfig", self.kcp.kubeconfig, "--runtime-timeout", "5m"],
                                   on_line=lambda _, line: said.append(line.decode())))
        wait_until(lambda: any("waiting for the Lease kcp-system/runtime-watcher-manager, which " in line for line in said), 20,
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
        self.assertEqual((last.returncode, last.stderr), (0, ""))
        self.assertNotIn("waiting", last.stdout, "nobody holds the Lease")
        self.note(last.stdout)
        for kind, name, ns in (("virtualservices.networking.istio.io", "kyma", "kcp-system"),
                               ("virtualservices.networking.istio.io", "runtime-watcher-heartbeats", "kcp-system"),
                               ("secret", "klm-istio-gateway", "istio-system"),
                               ("endpointslices", "runtime-watcher-manager-events", "kcp-system"),
                               ("leases", "runtime-watcher-manager", "kcp-system")):
            self.assertIsNone(self.kcp.get(kind, name, ns), name)
        self.assertIsNotNone(self.kcp.get("secret", "klm-watcher", "istio-system"))
        self.assertEqual(self.kcp.get("watcher", "kyma", "kcp-system")["status"]["state"], "Processing", "it has no VirtualService")
        self.kcp.kubectl("delete", "kyma", "--all", "-n", "kcp-system", "--timeout=20s")
        self.kcp.kubectl("delete", "watcher", "kyma", "-n", "kcp-system", "--timeout=20s")
        nothing = self.run_it()
        self.assertEqual((nothing.returncode, nothing.stdout), (0, "no Kyma has this manager's finalizer: there is none to release\n"))

    def test_text_of_a_runtime_reaches_neither_the_terminal_nor_events_raw(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        self.add_other("hostile", f"http://127.0.0.1:{server.server_address[1]}")

        def told():
            events = self.kcp.get("events", ns="kcp-system")["items"]
            return [e for e in events if e["involvedObject"]["name"] == "hostile" and "released" in e.get("message", "")]
        events = wait_until(told, 30, "the rejection is an Event of the Kyma", every=0.1)
        listed = runtime_watcher("status", "--address", f"127.0.0.1:{self.manager.admin}", "--name", "hostile", "-o", "wide")
        checked = runtime_watcher("doctor", "--kubeconfig", self.kcp.kubeconfig, "--runtime", "hostile")
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        removed = self.run_it("--runtime-timeout", "5s")
        texts = [listed.stdout, checked.stdout, removed.stdout, removed.stderr]
        for text in [*texts, *(each["message"] + each["reason"] for each in events)]:
            self.assertNotRegex(text, "[^ -~\n]", text)
        for text in (checked.stdout, removed.stdout, *(each["message"] for each in events)):
            self.assertIn("Kyma r0: released", text)
            self.assertNotRegex(text, "(?m)^Kyma r0", text)

    def test_uninstall_leaves_to_lifecycle_manager_what_that_needs(self):
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        before = self.skr.get(*WEBHOOKS)
        done = self.run_it("--keep-runtimes")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.finalizers("kyma", "kyma-1"), [])
        after = self.skr.get(*WEBHOOKS)
        self.assertEqual(after["webhooks"], landscape.webhooks_of_watchers(before))
        self.assertEqual(len(before["webhooks"]), len(after["webhooks"]) + 1, "the probe's is away")
        self.assertEqual(self.owners(*WEBHOOKS) & {"runtime-watcher", "lifecycle-manager"}, {"lifecycle-manager"})
        # What lifecycle-manager does not want any more goes, as where it has installed all of it.
        mine = {**after["webhooks"][0], "name": "kcp-system.other.operator.kyma-project.io"}
        self.skr.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=lifecycle-manager", "-f", "-",
                         stdin={"apiVersion": after["apiVersion"], "kind": after["kind"],
                                "metadata": {"name": "skr-webhook"}, "webhooks": [mine]})
        self.assertEqual([w["name"] for w in self.skr.get(*WEBHOOKS)["webhooks"]], [mine["name"]])
        self.assertIsNone(self.kcp.get("endpointslices", "runtime-watcher-manager-events", "kcp-system"))
        # Nor does it take away without that option what runtimes of other Kymas need.
        refused = self.run_it()
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn("1 other Kyma has certificates", refused.stderr)
        for kind, name, ns in (("certificates.cert-manager.io", "kyma-1-webhook-tls", "istio-system"),
                               ("virtualservices.networking.istio.io", "kyma", "kcp-system"),
                               ("secret", "klm-istio-gateway", "istio-system")):
            self.assertIsNotNone(self.kcp.get(kind, name, ns), name)
        self.assertEqual(self.finalizers("watcher", "kyma"), ["operator.kyma-project.io/watcher"])


if __name__ == "__main__":
    harness.main()
