"""The root CA is rotated every second, 60 times, with random delays wherever there is a step, while manager replicas are
killed, stopped and held up at random and one runtime is out of reach for a while: every TLS handshake between runtimes
and gateway, and between the runtimes' API servers and their webhooks, succeeds, and no event is lost.

The same without the gate that the gateway's certificate has to pass must fail, or else the first test proves nothing.

RW_E2E_SEED and RW_E2E_ROTATIONS change the disturbances and how many rotations there are.
"""

import base64
import json
import os
import random
import re
import signal
import threading
import time
import urllib.request

import harness
from api import collection, kymas
from dev import CONFIGURATION, SECRET, WATCHER, Dev, webhooks_of
from harness import BINARY, Process, free_port, metric_sum, pause, wait_until
from wires import Wires

ROTATIONS = int(os.environ.get("RW_E2E_ROTATIONS", "60"))
RUNTIMES = [f"runtime-{i}" for i in range(1, 7)]
AWAY = "runtime-3"  # the one that is out of reach for a while
REPLICAS = 2
PATIENCE = 60
CERTIFICATE_FAULTS = ("client_ca", "no_certificate", "server_refused", "protocol")
ROOT = collection("secrets", "istio-system") + "/klm-watcher"
GATEWAY = collection("secrets", "istio-system") + "/klm-istio-gateway"


class Replica:
    """A manager at one address, over all its restarts."""

    def __init__(self, test, number, port, kubeconfig, options):
        self._test, self._number, self.port = test, number, port
        self._kubeconfig, self._options = kubeconfig, options
        self.runs = []

    def start(self):
        self.runs.append(self._test.start(Process(f"manager-{self._number}.{len(self.runs)}", [
            BINARY, "manager", "--allow-local-runtimes", "--log-level", "debug", "--kubeconfig", self._kubeconfig,
            "--listen-address", f"127.0.0.1:{self.port}", "--metrics-address", "127.0.0.1:0", "--pin-san",
            "--lease-duration", "3s", "--renew-deadline", "1500ms", "--retry-period", "300ms", "--drain-timeout", "4s",
            "--ca-gateway-settles", "0s", "--ca-propagation", "100ms", "--ca-excuse-after", "5m", *self._options])))

    @property
    def current(self):
        return self.runs[-1]

    def led(self):
        return sum(bool(run.records(msg="this replica leads")) for run in self.runs)


class Writer(threading.Thread):
    """Changes ever new objects on a runtime: each of them has to be heard of."""

    def __init__(self, dev, runtime, dice, every):
        super().__init__(daemon=True)
        self._api, self._dice, self._every = dev.skr(runtime), dice, every
        self.runtime = runtime
        self.written = {}  # name -> when its creation was answered
        self.failure = None
        self._end = threading.Event()

    def run(self):
        try:
            while not self._end.is_set():
                name = f"change-{len(self.written)}"
                self._api.request("POST", kymas("kyma-system"), {
                    "apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Kyma",
                    "metadata": {"name": name, "labels": {"operator.kyma-project.io/watched-by": "kyma"}},
                    "spec": {"channel": "fast"}})
                self.written[name] = time.monotonic()
                self._end.wait(self._dice.uniform(0.5, 1.5) * self._every)
        except Exception as e:  # told by `finish`
            self.failure = e

    def finish(self):
        self._end.set()
        self.join(40)
        if self.failure:
            raise self.failure


class CaRotation(harness.TestCase):
    def begin(self, rotations, options):
        seed = int(os.environ.get("RW_E2E_SEED") or random.SystemRandom().randrange(1_000_000))
        self.note(f"RW_E2E_SEED={seed}")
        self.dice = random.Random(seed)
        self.rotations = rotations
        backends = [free_port() for _ in range(REPLICAS)]
        self.dev = self.start(Dev(
            self.folder / "dev", len(RUNTIMES), "--bare", "--no-manager", "--rotate-root-every", "1s", "--rotations",
            rotations, "--issuer-delay", "60ms", "--gateway-idle", "100ms",
            *(a for port in backends for a in ("--backend", f"127.0.0.1:{port}"))))
        self.dev.wait_up()
        self.kcp = self.dev.kcp()
        self.wires = Wires(self.dev.wait_listening("api-server"), 0.02, random.Random(seed))
        self.addCleanup(self.wires.close)
        kubeconfig = self.folder / "kcp-by-wire.yaml"
        kubeconfig.write_text(self.by_wire((self.dev.folder / "kcp.yaml").read_text(), self.wires.add()))
        self.replicas = [Replica(self, i + 1, port, kubeconfig, options) for i, port in enumerate(backends)]
        for replica in self.replicas:
            replica.start()
        self.kcp.apply(WATCHER, self.dev.manifest("watcher"))
        self.ports = {}
        self.skrs = {name: self.dev.skr(name) for name in RUNTIMES}
        for name in RUNTIMES:
            self.add_runtime(name)

    def by_wire(self, kubeconfig, port):
        return re.sub(r"(https://[^:/]+):\d+", rf"\g<1>:{port}", kubeconfig)

    def add_runtime(self, name):
        """Its Kyma, and access to it by a wire of its own."""
        self.ports[name] = self.wires.add()
        config = self.by_wire((self.dev.folder / f"skr-{name}.yaml").read_text(), self.ports[name])
        self.kcp.apply(f"{collection('secrets', 'kcp-system')}/kubeconfig-{name}", {
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": f"kubeconfig-{name}", "namespace": "kcp-system",
                         "labels": {"operator.kyma-project.io/kyma-name": name}},
            "data": {"config": base64.b64encode(config.encode()).decode()}})
        self.kcp.apply(f"{kymas('kcp-system')}/{name}", self.dev.manifest(f"kyma-{name}"))

    def tails(self):
        return "\n".join(p.tail(15) for p in [self.dev, *(r.current for r in self.replicas)])

    def until(self, condition, what, timeout=PATIENCE):
        return wait_until(condition, timeout, lambda: f"{what}:\n{self.tails()}", every=0.05)

    def rotated(self):
        """Roots that took the place of another."""
        return max((r["rotations"] for r in self.dev.records(msg="dev issuer: new root")), default=0)

    def install(self):
        for name, skr in self.skrs.items():
            self.until(lambda: webhooks_of(skr) == ["kyma"], f"the watcher is installed on {name}")

    def torment(self):
        """Disturbs the replicas at random until the last rotation; one runtime is away in the middle."""
        begun, away, back = time.monotonic(), None, None
        last = {"kill": 0, "restart": 0, "hold": 0}
        while self.rotated() < self.rotations:
            done = self.rotated() / self.rotations
            if away is None and done > 0.3:
                self.wires.cut(self.ports[AWAY])
                away = time.monotonic()
            if away is not None and back is None and done > 0.55:
                self.wires.mend(self.ports[AWAY])
                back = time.monotonic()
            if time.monotonic() - begun > 3 * self.rotations + 60:
                self.fail(f"only {self.rotated()} rotations:\n{self.tails()}")
            self.keep_running()
            self.disturb(self.dice.choice(self.replicas), last)
            pause(self.dice.uniform(1.5, 5))
        if back is None:
            self.wires.mend(self.ports[AWAY])
        self.note(f"{self.rotated()} rotations in {time.monotonic() - begun:.0f} s; {last}; one runtime away for "
                  f"{(back or time.monotonic()) - (away or time.monotonic()):.0f} s")

    def disturb(self, replica, count):
        what = self.dice.choice(("kill", "restart", "hold"))
        count[what] += 1
        if what == "hold":
            replica.current.send(signal.SIGSTOP)
            pause(self.dice.uniform(0.5, 4.5))  # the lease lasts 3 s
            replica.current.send(signal.SIGCONT)
            return
        if what == "kill":
            replica.current.kill()
        else:
            code = replica.current.terminate()
            # 1: it had lost the lease; by the signal itself: it had just been started.
            self.assertIn(code, (0, 1, -signal.SIGTERM), replica.current.tail())
        pause(self.dice.uniform(0, 1.5))
        replica.start()

    def keep_running(self):
        """One that lost the lease has ended, and is started anew, as a Deployment does."""
        for replica in self.replicas:
            if not replica.current.running():
                self.assertEqual(replica.current.popen.returncode, 1, replica.current.tail())
                replica.start()

    def settled(self):
        """Everything is at the newest root: the gateway, the certificates, and what lies on the runtimes."""
        self.keep_running()
        newest = self.kcp.get(ROOT)["data"]["tls.crt"]
        if self.kcp.get(GATEWAY)["data"]["tls.crt"] != newest:
            return False
        pem = base64.b64decode(newest).decode()
        for name, skr in self.skrs.items():
            issued = self.kcp.get(f"{collection('secrets', 'istio-system')}/{name}-webhook-tls")["data"]
            there = skr.get(SECRET)["data"]
            trusted = [base64.b64decode(w["clientConfig"]["caBundle"]).decode() for w in skr.get(CONFIGURATION)["webhooks"]]
            if issued["ca.crt"] != newest or there["tls.crt"] != issued["tls.crt"]:
                return False
            if not all(pem in text for text in (base64.b64decode(there["ca.crt"]).decode(), *trusted)):
                return False
        return True

    def metric(self, page, name, **labels):
        port = self.dev.wait_listening(page)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return metric_sum(answer.read().decode(), name, **labels) or 0

    def failed_handshakes(self):
        """By whom they were counted: nobody knows all of them."""
        found = {f"gateway, {reason}": self.metric("dev-admin", "rw_dev_gateway_failed_handshakes_total", reason=reason)
                 for reason in CERTIFICATE_FAULTS}
        found["webhook to gateway"] = self.metric("webhook-admin", "rw_http_client_connect_errors_total", client="kcp")
        found["API server to webhook"] = self.metric("dev-admin", "rw_http_client_connect_errors_total", client="webhook")
        found["webhook"] = self.metric("webhook-admin", "rw_http_rejected_total", server="webhook", reason="handshake")
        return {who: int(count) for who, count in found.items() if count}

    def missing(self, writers):
        """All (runtime, object) of which the listener of no replica took an event, or a resync of the runtime after it."""
        events, resyncs = set(), {}
        for replica in self.replicas:
            for run in replica.runs:
                for arrival, text in list(run.log):
                    if '"event received"' in text:
                        record = json.loads(text)
                        events.add((record["runtime_id"], record["name"]))
                    elif '"resync received"' in text:
                        runtime = json.loads(text)["runtime_id"]
                        resyncs[runtime] = max(resyncs.get(runtime, 0), arrival)
        return {(w.runtime, name) for w in writers for name, at in w.written.items()
                if (w.runtime, name) not in events and resyncs.get(w.runtime, 0) < at}

    def test_rotations_never_break_trust_and_lose_no_event(self):
        self.begin(ROTATIONS, ("--ca-grace-period", "0s"))
        self.install()
        writers = [Writer(self.dev, name, random.Random(name), 0.2) for name in RUNTIMES]
        for writer in writers:
            writer.start()
        self.torment()
        self.until(self.settled, "everything comes to the newest root")
        for writer in writers:
            writer.finish()
        written = sum(len(w.written) for w in writers)
        missing = lambda: self.missing(writers)
        wait_until(lambda: not missing(), 30, lambda: f"events of {len(missing())} objects of {written}, such as "
                   f"{sorted(missing())[:5]}:\n{self.tails()}", every=0.5)

        leaders = sum(replica.led() for replica in self.replicas)
        served = {r["fingerprint"] for r in self.dev.records(msg="gateway: certificate in use")}
        handshakes = int(self.metric("dev-admin", "rw_dev_gateway_handshakes_total"))
        self.note(f"{written} events, {handshakes} handshakes with the gateway, which served {len(served)} certificates; "
                  f"{leaders} times somebody began to lead")
        self.assertEqual(self.failed_handshakes(), {})
        self.assertEqual(self.metric("dev-admin", "rw_devserver_webhook_calls_total", result="ignored"), 0)
        for outcome in ("rejected", "abandoned"):
            self.assertEqual(self.metric("webhook-admin", "rw_dispatch_events_total", outcome=outcome), 0, outcome)
        self.assertEqual(self.rotated(), ROTATIONS)
        # How often the gate opens in between is a matter of luck, and of the machine.
        self.assertGreater(handshakes, 2 * ROTATIONS)
        self.assertGreater(len(served), 1)
        self.assertGreater(leaders, 1)

    def test_without_the_gate_handshakes_fail(self):
        self.begin(20, ("--ca-grace-period", "0s", "--ca-switch-by-time-only"))
        self.install()
        writers = [Writer(self.dev, name, random.Random(name), 0.2) for name in RUNTIMES]
        for writer in writers:
            writer.start()
        self.wires.cut(self.ports[AWAY])
        def refused():
            self.keep_running()
            return self.failed_handshakes().get("gateway, server_refused")
        self.until(refused, "a runtime refuses the gateway's certificate")
        self.note(f"without the gate: {self.failed_handshakes()} after {self.rotated()} rotations")
        for writer in writers:
            writer.finish()


if __name__ == "__main__":
    harness.main()
