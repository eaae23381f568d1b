"""What breaks the way of events on a runtime is named in KCP, with its stage and the next step, and the name goes with the
breakage. Each breakage has a runtime of its own; the others stay live. The manager does not watch the runtimes, or it would
repair most breakages at once.
"""

import base64
import json
import subprocess
import time
import urllib.request

import harness
from api import collection
from dev import CONFIGURATION, DEPLOYMENT, SECRET, Dev
from harness import BINARY, Process, lasting_port, wait_until

PATIENCE = 60  # seconds until a breakage is named
REPAIR = 60
# When a runtime is silent its installation is checked, which repairs what the manager applies: not before the test has looked.
SILENT = "50s"


def encoded(text):
    return base64.b64encode(text.encode()).decode()


class Breakages(harness.TestCase):
    def setUp(self):
        super().setUp()
        port = lasting_port()
        names = list(self.breakages())
        self.dev = self.start(Dev(self.folder / "dev", len(names) + 2, "--no-manager", "--backend", f"127.0.0.1:{port}")).wait_up()
        self.manager = self.start(Process("manager", [
            BINARY, "manager", "--kubeconfig", self.dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{port}",
            "--metrics-address", "127.0.0.1:0", "--no-watch-runtimes", "--no-leader-elect", "--ca-propagation", "1s",
            "--heartbeat-timeout", SILENT, "--probe-interval", "2s"]))
        self.admin = self.manager.wait_listening("admin")
        self.kcp = self.dev.kcp()
        self.runtime_of = {name: f"runtime-{i + 1}" for i, name in enumerate(names)}
        self.well = {f"runtime-{i}" for i in range(len(names) + 1, len(names) + 3)}

    def breakages(self):
        """name -> (breaks, repairs, reason, stage)"""
        return {
            "configuration deleted": (self.delete_configuration, self.repaired_by_apply, "WebhookNotCalled", "webhook"),
            "bundle wrong": (self.replace_bundle, self.repaired_by_apply, "CaBundleWrong", "webhook"),
            "selector wrong": (self.replace_selector, self.repaired_by_apply, "WebhookNotCalled", "webhook"),
            "pod away": (self.delete_pod, self.repaired_by_apply, "ServiceMissing", "webhook"),
            "certificate foreign": (self.replace_certificate, self.repaired_by_apply, "GatewayUnreachable", "gateway"),
            "address wrong": (self.replace_address, self.repaired_by_apply, "GatewayUnreachable", "gateway"),
            "gateway's CA foreign": (self.replace_gateway_ca, self.repaired_by_apply, "GatewayUnreachable", "gateway"),
            "access revoked": (self.revoke_access, self.grant_access, "AccessRejected", "runtime"),
        }

    # --- breakages: each gets the runtime's name and a connection to it -------------------

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

    def delete_pod(self, _, skr):
        skr.delete(DEPLOYMENT)

    def replace_address(self, _, skr):
        deployment = skr.get(DEPLOYMENT)
        for variable in deployment["spec"]["template"]["spec"]["containers"][0]["env"]:
            if variable["name"] == "KCP_ADDR":
                variable["value"] = f"localhost:{lasting_port()}"
        skr.patch(DEPLOYMENT, {"spec": {"template": deployment["spec"]["template"]}})

    def replace_certificate(self, _, skr):
        self.foreign_ca()
        folder = self.folder / "foreign"
        subprocess.run([BINARY, "certs", "webhook", "--dir", folder, "--name", "own", "--cn", "runtime-0", "--san",
                        "dns:skr-webhook.kyma-system.svc"], check=True, timeout=30)
        skr.patch(SECRET, {"data": {f"tls.{e}": encoded((folder / f"own.{e}").read_text()) for e in ("crt", "key")}})

    def replace_gateway_ca(self, _, skr):
        skr.patch(SECRET, {"data": {"ca.crt": encoded(self.foreign_ca())}})

    def access(self, runtime):
        return collection("secrets", "kcp-system") + f"/kubeconfig-{runtime}"

    def revoke_access(self, runtime, _):
        secret = self.kcp.get(self.access(runtime))
        text = base64.b64decode(secret["data"]["config"]).decode()
        self.granted = secret["data"]["config"]
        revoked = "\n".join(line.split("token:")[0] + "token: revoked" if "token:" in line else line for line in text.split("\n"))
        self.assertNotEqual(revoked, text)
        self.kcp.patch(self.access(runtime), {"data": {"config": encoded(revoked)}})

    def grant_access(self, runtime):
        self.kcp.patch(self.access(runtime), {"data": {"config": self.granted}})

    def repaired_by_apply(self, runtime):
        """The manager applies everything again when the Kyma changes."""
        kyma = collection("kymas", "kcp-system", "operator.kyma-project.io", "v1beta2") + f"/{runtime}"
        self.kcp.patch(kyma, {"metadata": {"annotations": {"repair": str(time.monotonic_ns())}}})

    def foreign_ca(self):
        folder = self.folder / "foreign"
        if not folder.exists():
            subprocess.run([BINARY, "certs", "ca", "--dir", folder], check=True, timeout=30)
        return (folder / "ca.crt").read_text()

    # --- what KCP says ------------------------------------------------------------------

    def runtimes(self):
        shown = subprocess.run([BINARY, "status", "--address", f"127.0.0.1:{self.admin}", "-o", "json"],
                               capture_output=True, text=True, timeout=10)
        return {each["kyma"]: each for each in json.loads(shown.stdout)["runtimes"]}

    def heartbeat(self, runtime):
        return self.runtimes().get(runtime, {}).get("heartbeat", {})

    def proved(self, runtimes):
        shown = self.runtimes()
        def complete(runtime):
            found = shown.get(runtime, {}).get("heartbeat", {})
            return found.get("state") == "live" and found.get("probe", {}).get("stage") in ("heartbeat", "complete")
        return all(map(complete, runtimes))

    def test_each_breakage_is_named_and_cleared(self):
        everyone = self.well | set(self.runtime_of.values())
        wait_until(lambda: self.proved(everyone), PATIENCE, lambda: f"all are proved: {self.runtimes()}", every=0.5)
        proofs = self.manager_metric("rw_probe_seconds_count")
        wait_until(lambda: self.manager_metric("rw_probe_seconds_count") > proofs, PATIENCE, "a heartbeat names a probe", every=0.5)
        began, named = time.monotonic(), {}
        for name, (breaks, *_) in self.breakages().items():
            breaks(self.runtime_of[name], self.dev.skr(self.runtime_of[name]))
        def look():
            shown = self.runtimes()
            for name, (_, _, reason, stage) in self.breakages().items():
                found = shown[self.runtime_of[name]]
                told = found.get("heartbeat", {})
                by_probe = told.get("reason") == reason and told["probe"]["stage"] == stage and ": see " in told["message"]
                by_installer = reason == "AccessRejected" and found["state"] in ("unreachable", "failed")
                if by_probe or by_installer:
                    named.setdefault(name, time.monotonic() - began)
            return len(named) == len(self.breakages())
        wait_until(look, PATIENCE, lambda: f"not named: { {n: self.runtimes()[self.runtime_of[n]] for n in set(self.breakages()) - set(named)} }", every=0.2)
        for name, after in named.items():
            self.note(f"{name}: named after {after:.1f} s")
            if self.runtimes()[self.runtime_of[name]].get("heartbeat", {}).get("reason"):
                self.assertIn(self.heartbeat(self.runtime_of[name])["state"], ("degraded", "silent"))
        self.assertTrue(self.proved(self.well), f"the others stay live: {self.runtimes()}")
        began = time.monotonic()
        for name, (_, repairs, *_) in self.breakages().items():
            repairs(self.runtime_of[name])
        wait_until(lambda: self.proved(everyone), REPAIR, lambda: f"all are well again: {self.runtimes()}", every=0.5)
        self.note(f"cleared after {time.monotonic() - began:.1f} s")

    def manager_metric(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=10) as page:
            return harness.metric_sum(page.read().decode(), name) or 0


if __name__ == "__main__":
    harness.main()
