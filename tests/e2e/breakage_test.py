"""What breaks the way of events on a runtime is named in KCP, with its stage and the next step, and the name goes with the
breakage. Breakages of runtimes happen at the same time, each on a runtime of its own, and the others stay live; those of
KCP follow, each alone. The manager does not watch the runtimes, or it would repair most breakages at once.

RW_E2E_RUNTIMES=100 has that many runtimes, and lets the breakages happen one at a time.
"""

import base64
import json
import os
import random
import subprocess
import time
import urllib.parse
import urllib.request

import harness
from api import collection
from dev import CONFIGURATION, DEPLOYMENT, ROLLOUT, SECRET, Dev
from harness import BINARY, Process, free_port, wait_until
from wires import Wires

RUNTIMES = int(os.environ.get("RW_E2E_RUNTIMES", "0"))
PATIENCE = 60  # seconds until a breakage is named, and again until its name has gone
# When a runtime is silent its installation is checked, which repairs what the manager applies: not before the test has looked.
SILENT = "50s"
ROOT = collection("secrets", "istio-system") + "/klm-watcher"
ROUTES = collection("virtualservices", "kcp-system", "networking.istio.io", "v1beta1") + "/runtime-watcher-heartbeats"
SERVICE = collection("services", "kyma-system") + "/skr-webhook"
GUARD = collection("validatingwebhookconfigurations", group="admissionregistration.k8s.io") + "/guard"


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def decoded(secret, name):
    return base64.b64decode(secret["data"][name]).decode()


class Fleet(harness.TestCase):
    """Runtimes with simulated pods, and a manager of its own process behind a wire."""

    def start_fleet(self, count, probe_interval, leader_elect=False):
        backend, self.port = free_port(), free_port()
        self.wires = Wires(self.port, 0, random.Random(1))
        self.addCleanup(self.wires.close)
        self.wire = self.wires.add(backend)
        self.dev = self.start(Dev(self.folder / "dev", count, "--no-manager", "--backend", f"127.0.0.1:{backend}")).wait_up(PATIENCE + count)
        self.manager = self.start(Process("manager", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", self.dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{self.port}",
            "--metrics-address", "127.0.0.1:0", "--no-watch-runtimes", *([] if leader_elect else ["--no-leader-elect"]), "--ca-propagation", "1s",
            "--skr-manifests", harness.skr_manifests(self.folder / "skr", "20s"), "--heartbeat-timeout", SILENT,
            "--probe-interval", probe_interval, "--rollout-canary-soak", "1s"]))
        self.admin = self.manager.wait_listening("admin")
        self.kcp = self.dev.kcp()
        self.all = {f"runtime-{i}" for i in range(1, count + 1)}

    def wait_proved(self):
        wait_until(lambda: self.proved(self.all), PATIENCE + len(self.all), lambda: f"all are proved: {self.runtimes()}", every=0.5)
        # At the end of its first step the roll-out looks at some runtimes again, and the manager repairs what it finds there.
        rollout = lambda: self.kcp.get(ROLLOUT) or {}
        wait_until(lambda: rollout().get("status", {}).get("phase") == "Completed", PATIENCE,
                   lambda: f"the watcher is rolled out: {rollout()}", every=0.5)

    def runtimes(self):
        shown = subprocess.run([BINARY, "status", "--address", f"127.0.0.1:{self.admin}", "-o", "json"],
                               capture_output=True, text=True, timeout=10)
        # Nothing: the manager that has just started does not lead yet.
        return {each["kyma"]: each for each in json.loads(shown.stdout or '{"runtimes": []}')["runtimes"]}

    def proved(self, runtimes):
        shown = self.runtimes()
        def complete(runtime):
            found = shown.get(runtime, {}).get("heartbeat", {})
            return found.get("state") == "live" and found.get("probe", {}).get("stage") in ("heartbeat", "complete")
        return all(map(complete, runtimes))

    def manager_metric(self, name, **labels):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=10) as page:
            return harness.metric_sum(page.read().decode(), name, **labels) or 0


class Breakages(Fleet):
    def setUp(self):
        super().setUp()
        self.granted = {}
        local, common = self.local_breakages(), self.common_breakages()
        self.breakages = local | common
        self.start_fleet(max(RUNTIMES, len(local) + 2), "10s" if RUNTIMES else "2s")
        self.runtime_of = {name: f"runtime-{i + 1}" for i, name in enumerate(self.breakages)}
        self.local, self.common = list(local), list(common)

    # name -> (breaks, repairs, reason, stage). A failing call makes the manager check what is installed, so that it repairs
    # some of these by itself once they have been named.

    def local_breakages(self):
        return {
            "configuration deleted": (self.delete_configuration, self.apply_again, "WebhookNotCalled", "webhook"),
            "bundle wrong": (self.replace_bundle, self.apply_again, "CaBundleWrong", "webhook"),
            "selector wrong": (self.replace_selector, self.apply_again, "WebhookNotCalled", "webhook"),
            "no endpoints": (self.replace_service_selector, self.apply_again, "NoEndpoints", "webhook"),
            "pod away": (self.delete_pod, self.apply_again, "NoEndpoints", "webhook"),
            "certificate foreign": (self.replace_certificate, self.apply_again, "GatewayUnreachable", "gateway"),
            "certificate expired": (self.expire_certificate, self.apply_again, "CertificateExpired", "webhook"),
            "address wrong": (self.replace_address, self.apply_again, "GatewayUnreachable", "gateway"),
            "gateway's CA foreign": (self.replace_gateway_ca, self.apply_again, "GatewayUnreachable", "gateway"),
            "access revoked": (self.revoke_access, self.grant_access, "AccessRejected", "runtime"),
            "access deleted": (self.delete_access, self.restore_access, "AccessMissing", "runtime"),
            "access revoked, pod away": (self.revoke_access_and_delete_pod, self.grant_access, "AccessRejected", "silent"),
        }

    def common_breakages(self):
        return {
            "routes missing": (self.delete_routes, self.admit_routes, "RouteMissing", "gateway"),
            "listener down": (self.cut_listener, self.mend_listener, "ListenerUnavailable", "gateway"),
        }

    # --- breakages of a runtime: each gets its name and a connection to it ----------------

    def delete_configuration(self, _, skr):
        skr.delete(CONFIGURATION)

    def webhooks(self, skr, change):
        webhooks = skr.get(CONFIGURATION)["webhooks"]
        for each in webhooks:
            change(each)
        skr.patch(CONFIGURATION, {"webhooks": webhooks})

    def replace_bundle(self, _, skr):
        foreign = encoded(self.foreign_ca())
        self.webhooks(skr, lambda each: each["clientConfig"].update(caBundle=foreign))

    def replace_selector(self, _, skr):
        self.webhooks(skr, lambda each: each["objectSelector"].update(matchLabels={"nothing": "has-this"}))

    def replace_service_selector(self, _, skr):
        skr.patch(SERVICE, {"spec": {"selector": {"app": "nothing-has-this"}}})

    def delete_pod(self, _, skr):
        skr.delete(DEPLOYMENT)

    def replace_address(self, _, skr):
        deployment = skr.get(DEPLOYMENT)
        for variable in deployment["spec"]["template"]["spec"]["containers"][0]["env"]:
            if variable["name"] == "KCP_ADDR":
                variable["value"] = f"localhost:{free_port()}"
        skr.patch(DEPLOYMENT, {"spec": {"template": deployment["spec"]["template"]}})

    def replace_certificate(self, _, skr):
        self.foreign_ca()
        folder = self.folder / "foreign"
        subprocess.run([BINARY, "certs", "webhook", "--dir", folder, "--name", "own", "--cn", "runtime-0", "--san",
                        "dns:skr-webhook.kyma-system.svc"], check=True, timeout=30)
        # The API server is to accept it, or else that is what it would say.
        self.webhooks(skr, lambda each: each["clientConfig"].update(caBundle=encoded(self.foreign_ca())))
        self.replace_pair(skr, *((folder / name).read_text() for name in ("own.crt", "own.key")))

    def replace_pair(self, skr, certificate, key):
        skr.patch(SECRET, {"data": {"tls.crt": encoded(certificate), "tls.key": encoded(key)}})

    def expire_certificate(self, runtime, skr):
        """By the right CA, for the right names, until yesterday."""
        root = self.kcp.get(ROOT)
        certificate, key = harness.expired_certificate(runtime, [decoded(root, name).encode() for name in ("tls.crt", "tls.key")],
                                                       ["skr-webhook.kyma-system.svc"])
        self.replace_pair(skr, certificate.decode(), key.decode())
        # A new pod, since a connection that the API server keeps is good beyond the certificate's end.
        skr.patch(DEPLOYMENT, {"spec": {"template": {"metadata": {"annotations": {"restarted": str(time.monotonic_ns())}}}}})

    def replace_gateway_ca(self, _, skr):
        skr.patch(SECRET, {"data": {"ca.crt": encoded(self.foreign_ca())}})

    def access(self, runtime):
        return collection("secrets", "kcp-system") + f"/kubeconfig-{runtime}"

    def revoke_access(self, runtime, _):
        secret = self.kcp.get(self.access(runtime))
        text = decoded(secret, "config")
        self.granted[runtime] = secret["data"]["config"]
        revoked = "\n".join(line.split("token:")[0] + "token: revoked" if "token:" in line else line for line in text.split("\n"))
        self.assertNotEqual(revoked, text)
        self.kcp.patch(self.access(runtime), {"data": {"config": encoded(revoked)}})

    def grant_access(self, runtime):
        self.kcp.patch(self.access(runtime), {"data": {"config": self.granted[runtime]}})

    def delete_access(self, runtime, _):
        self.kcp.delete(self.access(runtime))

    def restore_access(self, runtime):
        self.kcp.apply(self.access(runtime), self.dev.manifest(f"access-{runtime}"))

    def revoke_access_and_delete_pod(self, runtime, skr):
        self.revoke_access(runtime, skr)
        self.delete_pod(runtime, skr)

    def apply_again(self, runtime):
        """The manager applies everything again when the Kyma changes."""
        kyma = collection("kymas", "kcp-system", "operator.kyma-project.io", "v1beta2") + f"/{runtime}"
        self.kcp.patch(kyma, {"metadata": {"annotations": {"repair": str(time.monotonic_ns())}}})

    def foreign_ca(self):
        folder = self.folder / "foreign"
        if not folder.exists():
            subprocess.run([BINARY, "certs", "ca", "--dir", folder], check=True, timeout=30)
        return (folder / "ca.crt").read_text()

    # --- breakages of KCP ------------------------------------------------------------------

    def delete_routes(self, *_):
        """As where Istio's own webhook is down: the manager can't write it again."""
        rule = {"apiGroups": ["networking.istio.io"], "apiVersions": ["*"], "resources": ["virtualservices"], "operations": ["CREATE", "UPDATE"]}
        self.kcp.apply(GUARD, json.dumps({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "guard"},
            "webhooks": [{"name": "guard.istio.example.com", "rules": [rule], "failurePolicy": "Fail", "sideEffects": "None",
                          "admissionReviewVersions": ["v1"], "clientConfig": {"url": f"https://127.0.0.1:{free_port()}/"}}]}))
        self.kcp.delete(ROUTES)

    def admit_routes(self, _):
        self.kcp.delete(GUARD)

    def cut_listener(self, *_):
        self.wires.cut(self.wire)

    def mend_listener(self, _):
        self.wires.mend(self.wire)

    # --- what KCP says ------------------------------------------------------------------

    def is_named(self, name, found):
        reason, stage = self.breakages[name][2:]
        told = found.get("heartbeat", {})
        if reason == "AccessRejected":
            # The watcher needs no access of the manager: it reports as long as it runs.
            states = ("silent",) if stage == "silent" else ("live", "degraded")
            return (found["state"], found.get("reason")) == ("unreachable", reason) and told.get("state") in states
        if reason == "AccessMissing":
            named = (found["state"], found.get("reason")) == ("failed", reason)
            self.assertTrue(not named or told["state"] in ("live", "degraded"), f"its heartbeats are known: {found}")
            return named
        by_probe = told.get("reason") == reason and told["probe"]["stage"] == stage and ": see " in told["message"]
        if by_probe:
            self.assertIn(told["state"], ("degraded", "silent"))
        return by_probe

    def show(self, names, others):
        """That each breakage is named while it is there, and the other runtimes stay live."""
        began, named = time.monotonic(), {}
        for name in names:
            runtime = self.runtime_of[name]
            self.breakages[name][0](runtime, self.dev.skr(runtime) if name in self.local else None)
        def look():
            shown = self.runtimes()
            for name in names:
                if name not in named and self.is_named(name, shown[self.runtime_of[name]]):
                    named[name] = time.monotonic() - began
            return len(named) == len(names)
        wait_until(look, PATIENCE, lambda: f"not named: { {n: self.runtimes()[self.runtime_of[n]] for n in set(names) - set(named)} }", every=0.2)
        self.assertTrue(self.proved(others), f"the others stay live: {self.runtimes()}")
        repaired = time.monotonic()
        for name in names:
            self.breakages[name][1](self.runtime_of[name])
        wait_until(lambda: self.proved(self.all), PATIENCE, lambda: f"all are well again: {self.runtimes()}", every=0.5)
        for name, after in named.items():
            self.note(f"{name}: named after {after:.1f} s, cleared {time.monotonic() - repaired:.1f} s after the repair")

    def post_losses(self, runtime, **losses):
        """As a pod that does not say when it began: what the gateway would forward."""
        certificate = urllib.parse.quote(decoded(self.dev.skr(runtime).get(SECRET), "tls.crt"), safe="")
        body = {"bootId": "lossy", "intervalSeconds": 20, "source": "both", "losses": {
            name.replace("_", "-"): count for name, count in losses.items()}}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v2/runtime-watcher/event", json.dumps(body).encode(),
            {"Content-Type": "application/vnd.runtime-watcher.heartbeat+json", "X-Forwarded-Client-Cert": f"Cert={certificate}"})
        with urllib.request.urlopen(request, timeout=10) as response:
            self.assertEqual(response.status, 200)

    def wait_missed(self, runtime, operators):
        def told():
            events = self.kcp.get(collection("events", "kcp-system"))["items"]
            return any((e["reason"], e["involvedObject"]["name"]) == ("EventsMissed", runtime)
                       and e["message"] == f"the watcher dropped events, and tells these operators to resync: {operators}" for e in events)
        wait_until(told, PATIENCE, f"the Kyma's event names {operators}", every=0.2)

    def show_losses(self):
        """Losses are told with the operators' names. What a process counted before it was first heard is known."""
        self.post_losses("runtime-1", kim=1)
        self.post_losses("runtime-1", kim=2)
        self.wait_missed("runtime-1", "kim")
        self.post_losses("runtime-1", kim=3, lifecycle_manager=2)
        self.wait_missed("runtime-1", "kim, lifecycle-manager")
        self.assertEqual(self.runtimes()["runtime-1"]["heartbeat"]["losses"], 4)
        self.assertEqual(self.manager_metric("rw_runtime_losses_total"), 1, "once in 10 minutes")

    def test_breakages_are_named_and_cleared(self):
        self.wait_proved()
        proofs = self.manager_metric("rw_probe_seconds_count")
        wait_until(lambda: self.manager_metric("rw_probe_seconds_count") > proofs, PATIENCE, "a heartbeat names a probe", every=0.5)
        self.show_losses()
        for names in [[name] for name in self.local] if RUNTIMES else [self.local]:
            self.show(names, self.all - {self.runtime_of[name] for name in names})
        for name in self.common:
            self.show([name], set())


if __name__ == "__main__":
    harness.main()
