"""What was written to a runtime is in effect there when all pods say so, in place of a delay; otherwise the delay holds:
where no heartbeat comes, one of two pods does not report, or the heartbeats are those of an earlier version, also beside a
runtime that forges them. Kubelet is simulated: it takes a second.
"""

import base64
import hashlib
import http.client
import json
import ssl
import time
import urllib.request

import harness
from api import collection
from dev import DEPLOYMENT, SECRET, WATCHER, Dev, webhooks_of
from harness import BINARY, Process, free_port, metric_sum, wait_until

PODS = collection("pods", "kyma-system")
MAPS = collection("configmaps", "kyma-system")
ROOT = collection("secrets", "istio-system") + "/klm-watcher"
GATEWAY = collection("secrets", "istio-system") + "/klm-istio-gateway"
KUBELET = 1  # seconds
DELAY = 4  # seconds, of the manager; long beside kubelet, to be told apart
FIRST_EVENT, WEBHOOK = 3, 5  # seconds: what has to be shown


def watcher(name, manager, resource="configmaps"):
    return {"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Watcher",
            "metadata": {"name": name, "namespace": "kcp-system", "labels": {"operator.kyma-project.io/managed-by": manager}},
            "spec": {"manager": manager, "field": "spec",
                     "labelsToWatch": {"watched-by": name},
                     "resourceToWatch": {"group": "", "version": "v1", "resource": resource},
                     "serviceInfo": {"name": "klm-controller-manager-events", "namespace": "kcp-system", "port": 8082},
                     "gateway": {"selector": {"matchLabels": {"operator.kyma-project.io/watcher-gateway": "default"}}}}}


class Propagation(harness.TestCase):
    def begin(self, runtimes, *options):
        port = free_port()
        self.dev = self.start(Dev(self.folder / "dev", runtimes, "--bare", "--no-manager", "--backend", f"127.0.0.1:{port}",
                                  "--kubelet-delay", f"{KUBELET}s", "--ca-grace-period", "1s"))
        self.dev.wait_up()
        self.kcp = self.dev.kcp()
        self.manager = self.start(Process("manager", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", self.dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{port}",
            "--metrics-address", "127.0.0.1:0", "--pin-san", "--no-leader-elect", "--ca-grace-period", "1s",
            "--ca-gateway-settles", "0s", *options]))
        self.kcp.apply(WATCHER, self.dev.manifest("watcher"))
        self.skrs = {}
        for i in range(1, runtimes + 1):
            name = f"runtime-{i}"
            self.skrs[name] = self.dev.skr(name)
            self.dev.add_kyma(self.kcp, name)
        for name, skr in self.skrs.items():
            self.until(lambda: webhooks_of(skr) == ["kyma"], f"the watcher is installed on {name}")
            self.until(lambda: self.pods_of(skr), f"{name} has a pod")

    def until(self, condition, what, timeout=60):
        return wait_until(condition, timeout, lambda: f"{what}:\n{self.manager.tail(15)}\n{self.dev.tail(15)}", every=0.02)

    def pods_of(self, skr):
        return [pod["metadata"]["name"] for pod in skr.get(PODS)["items"]]

    def until_heard(self):
        """The first heartbeats are in the manager, so that what follows is about changes."""
        self.until(lambda: self.metric("rw_heartbeats_received_total", outcome="accepted") >= len(self.skrs), "heartbeats arrive")

    def metric(self, name, process=None, server="admin", **labels):
        port = (process or self.manager).wait_listening(server)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return metric_sum(answer.read().decode(), name, **labels) or 0

    def introduce(self, name, manager, *runtimes):
        """Seconds from a new Watcher until each runtime has its webhook."""
        path = collection("watchers", "kcp-system", "operator.kyma-project.io", "v1beta2") + f"/{name}"
        begun = time.monotonic()
        self.kcp.apply(path, watcher(name, manager))
        took = []
        for runtime in runtimes or self.skrs:
            self.until(lambda: name in webhooks_of(self.skrs[runtime]), f"{runtime} has the webhook of {name}", 120)
            took.append(time.monotonic() - begun)
        return took

    def add_pod(self, runtime):
        """One more of the Deployment's, as far as the runtime's API server knows. It runs nowhere."""
        template = self.skrs[runtime].get(DEPLOYMENT)["spec"]["template"]
        name = "skr-webhook-more"
        self.skrs[runtime].request("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
                                                  "metadata": {"name": name, "labels": template["metadata"]["labels"]}})
        return name

    def files(self, runtime):
        return {name: base64.b64decode(text) for name, text in self.skrs[runtime].get(SECRET)["data"].items()}

    def forge(self, sender, about, **content):
        """Sends a heartbeat with the certificate of one runtime, which says what the pods of another are to have loaded."""
        own, files = self.files(sender), self.files(about)
        folder = self.folder / f"forged-{sender}"
        folder.mkdir(exist_ok=True)
        for name, text in own.items():
            (folder / name).write_bytes(text)
        context = ssl.create_default_context(cafile=folder / "ca.crt")
        context.check_hostname = False
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        connection = http.client.HTTPSConnection("127.0.0.1", self.dev.wait_listening("gateway"), timeout=10, context=context)
        body = {"bootId": "forged", "intervalSeconds": 20, "source": "both",
                "managersDigest": hashlib.sha256(files["managers.json"]).hexdigest(), **content}
        connection.request("POST", "/v2/runtime-watcher/event", json.dumps(body),
                           {"Host": "localhost", "Content-Type": "application/vnd.runtime-watcher.heartbeat+json"})
        status = connection.getresponse().status
        connection.close()
        self.assertIn(status, (200, 204))

    def introduce_while(self, name, runtime, forge):
        """Likewise, while `forge` is called again and again from when the runtime has the managers' file on."""
        path = collection("watchers", "kcp-system", "operator.kyma-project.io", "v1beta2") + f"/{name}"
        begun = time.monotonic()
        self.kcp.apply(path, watcher(name, name))
        self.until(lambda: name.encode() in self.files(runtime)["managers.json"], f"{runtime} has the managers' file of {name}")
        def there():
            forge()
            return name in webhooks_of(self.skrs[runtime])
        wait_until(there, 60, lambda: f"{runtime} has the webhook of {name}:\n{self.manager.tail(15)}", every=0.3)
        return time.monotonic() - begun


class WithTheWord(Propagation):
    def test_new_watcher_waits_for_kubelet_alone(self):
        self.begin(2)  # with the defaults of the manager
        self.until_heard()
        for i, skr in enumerate(self.skrs.values()):
            skr.request("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap",
                                       "metadata": {"name": f"map-{i}", "labels": {"watched-by": "maps"}}})
        taken = lambda: self.metric("rw_resyncs_total", self.dev, "webhook-admin", outcome="taken")
        self.until(lambda: taken() >= 2, "the resyncs of the starts")
        before = taken()
        begun = time.monotonic()
        path = collection("watchers", "kcp-system", "operator.kyma-project.io", "v1beta2") + "/maps"
        self.kcp.apply(path, watcher("maps", "lifecycle-manager"))
        # In place of events of what exists.
        self.until(lambda: taken() > before, "the resync of the new Watcher")
        first = time.monotonic() - begun
        webhooks = [took for i in range(5) for took in self.introduce(f"new-{i}", f"manager-{i}")]
        self.note(f"kubelet {KUBELET} s: resync of a new Watcher after {first:.2f} s, webhook of a new manager after "
                  f"{min(webhooks):.2f} to {max(webhooks):.2f} s")
        self.assertLess(first, FIRST_EVENT)
        self.assertLess(max(webhooks), WEBHOOK)
        self.assertGreater(min(webhooks), KUBELET - 0.2, "the pods did not know the manager yet")
        for skr in self.skrs.values():
            annotations = skr.get(PODS)["items"][0]["metadata"].get("annotations", {})
            self.assertEqual(annotations.get("operator.kyma-project.io/secret-version"),
                             skr.get(SECRET)["metadata"]["resourceVersion"], "kubelet is told of the newest")

    def test_rotation_waits_for_the_api_servers_and_never_lacks_trust(self):
        self.begin(3, "--ca-api-server-propagation", "2s")
        self.until_heard()
        before = self.kcp.get(ROOT)["data"]["tls.crt"]
        begun = time.monotonic()
        self.kcp.delete(ROOT)
        def rotated():
            root = (self.kcp.get(ROOT) or {}).get("data", {}).get("tls.crt", before)
            return root != before and self.kcp.get(GATEWAY)["data"]["tls.crt"] == root
        wait_until(rotated, 60, lambda: f"the gateway serves with the new root:\n{self.manager.tail(15)}", every=0.1)
        took = time.monotonic() - begun
        self.note(f"CA rotation of 3 runtimes: {took:.1f} s")
        self.assertGreater(took, 2, "the API servers did not know the bundle yet")
        failed = {
            "gateway": sum(self.metric("rw_dev_gateway_failed_handshakes_total", self.dev, "dev-admin", reason=reason)
                           for reason in ("client_ca", "no_certificate", "server_refused", "protocol")),
            "webhook to gateway": self.metric("rw_http_client_connect_errors_total", self.dev, "webhook-admin", client="kcp"),
            "API server to webhook": self.metric("rw_http_client_connect_errors_total", self.dev, "dev-admin", client="webhook")}
        self.assertEqual({who: count for who, count in failed.items() if count}, {})


class WithoutTheWord(Propagation):
    def test_delay_holds_without_heartbeats(self):
        self.begin(1, "--ca-propagation", f"{DELAY}s", "--heartbeat-timeout", "0s")
        self.assertGreater(min(self.introduce("second", "second")), DELAY)

    def test_delay_holds_while_one_pod_of_two_does_not_speak(self):
        self.begin(2, "--ca-propagation", f"{DELAY}s")
        self.until_heard()
        pod = self.add_pod("runtime-1")
        self.assertGreater(min(self.introduce("missing", "missing", "runtime-1")), DELAY)
        self.assertLess(min(self.introduce("beside", "beside", "runtime-2")), DELAY - 1)
        # A heartbeat of an earlier version names no pod; one of another runtime speaks for that one only.
        self.assertGreater(self.introduce_while("old", "runtime-1", lambda: self.forge("runtime-1", "runtime-1")), DELAY)
        foreign = self.introduce_while("foreign", "runtime-1", lambda: self.forge("runtime-2", "runtime-1", pod=pod))
        self.assertGreater(foreign, DELAY)
        # The runtime itself may say what it likes: it shortens its own wait.
        own = self.introduce_while("own", "runtime-1", lambda: self.forge("runtime-1", "runtime-1", pod=pod))
        self.assertLess(own, DELAY - 1)


if __name__ == "__main__":
    harness.main()
