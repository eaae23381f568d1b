#!/usr/bin/env python3
"""What 30 ill runtimes of 1,000 cost the others: how long it takes until the watcher is on all healthy runtimes, and until a
rotation of the CA has reached them and the gateway serves with the new one, with and without the ill ones, in turns. And
whether `runtime-watcher status` names each of the ill with its reason. Prints one line of JSON for each figure. Ends with 1
if a limit is missed.

    bench/fleet.py [--runtimes N] [--ill N] [--rounds N]

The clusters, the issuer and the gateway are those of `runtime-watcher-dev dev`; the manager is a process of its own. The ill
ones come first: API servers that hang, refuse, or have an expired certificate, kubeconfigs that are garbage or missing, and
Kymas without a domain.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import statistics
import sys
import tempfile
import time
import urllib.request

from system import Unhealthy, missed, say, waited_for_cpu

from api import collection, kymas  # noqa: E402  (system.py says where they are)
from dev import WATCHER, Dev  # noqa: E402
from harness import BINARY, Process, free_port, metric_sum, runtime_watcher, wait_until  # noqa: E402

ROOT_SECRET = collection("secrets", "istio-system") + "/klm-watcher"
GATEWAY_SECRET = collection("secrets", "istio-system") + "/klm-istio-gateway"
DEADLINE = 60  # seconds, of the rotation
# What `status` must say of each kind, in its turn: a state, and words of the reason or the message.
ILLNESSES = (("unreachable", "in time"), ("unreachable", "refused"), ("unreachable", "expired"), ("failed", "kubeconfig"),
             ("failed", "gives access"), ("failed", "skr-domain"))


def add(kcp, one, name, illness, configs):
    """The kubeconfig and the Kyma of a runtime; `illness` is an index of ILLNESSES, or None."""
    access, kyma = one.manifest(f"access-{name}"), one.manifest(f"kyma-{name}")
    if illness is not None and illness < len(configs):
        # A cluster of its own: one that two Kymas name is refused for that (DuplicateRuntime).
        config = re.sub(r"https://127\.0\.0\.1:\d+", rf"\g<0>/{name}", configs[illness])
        access = re.sub(r"config: .*", f"config: {base64.b64encode(config.encode()).decode()}", access)
    if illness != 4:
        kcp.apply(f"{collection('secrets', 'kcp-system')}/kubeconfig-{name}", access)
    if illness == 5:
        kyma = re.sub(r".*skr-domain.*\n", "", kyma)
    kcp.apply(f"{kymas('kcp-system')}/{name}", kyma)


class Fleet:
    """The system with some runtimes, of which the first are ill."""

    def __init__(self, folder, runtimes, ill, configs):
        backend = free_port()
        folder.mkdir(parents=True)
        self.ill = {f"runtime-{i + 1}": i % len(ILLNESSES) for i in range(ill)}
        self.healthy = [f"runtime-{i + 1}" for i in range(ill, runtimes)]
        self.dev = Dev(folder / "dev", runtimes, "--bare", "--no-manager", "--backend", f"127.0.0.1:{backend}")
        self.dev.wait_up(120)
        self.kcp = self.dev.kcp()
        self.manager = Process("manager", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", folder / "dev" / "kcp.yaml", "--listen-address", f"127.0.0.1:{backend}",
            "--metrics-address", "127.0.0.1:0", "--pin-san", "--ca-gateway-settles=0s", "--ca-grace-period=1s",
            "--ca-propagation=1s", f"--ca-switch-limit={DEADLINE}s", "--skr-image=example.com/runtime-watcher:1"],
            env={**os.environ, "POD_IP": "10.99.0.1"})
        self.admin = self.manager.wait_listening("admin")
        self.configs = configs

    def close(self):
        self.manager.kill()
        self.dev.kill()

    def page(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=30) as answer:
            return answer.read().decode()

    def metric(self, name, **labels):
        return metric_sum(self.page("/metrics"), name, **labels) or 0

    def timed(self, action, good, timeout, what):
        """Seconds until it is good, without the time that the processes stood in a run queue."""
        pids = (self.manager.popen.pid, self.dev.popen.pid)
        waited, began = sum(map(waited_for_cpu, pids)), time.monotonic()
        action()
        wait_until(good, timeout, lambda: f"{what}:\n{self.manager.tail(8)}", every=0.3)
        return time.monotonic() - began - (sum(map(waited_for_cpu, pids)) - waited)

    def installs(self):
        self.kcp.apply(WATCHER, self.dev.manifest("watcher"))
        def add_all():
            for name, illness in self.ill.items():
                add(self.kcp, self.dev, name, illness, self.configs)
            for name in self.healthy:
                add(self.kcp, self.dev, name, None, self.configs)
        def installed():
            return self.metric("rw_watcher_installer_runtimes", state="installed") >= len(self.healthy)
        return self.timed(add_all, installed, 300, "the watcher is on all healthy runtimes")

    def rotates(self):
        """Seconds until all healthy runtimes have what the new CA demands, and until the gateway serves with it."""
        begun = []
        before = self.kcp.get(GATEWAY_SECRET)["data"]["tls.crt"]
        def distributed():
            if not begun and self.kcp.get(GATEWAY_SECRET)["metadata"]["annotations"] == annotations:
                return False
            begun.append(True)
            rows = {row["kyma"].rpartition("/")[2]: row for row in json.loads(self.page("/runtimes?limit=5000"))["runtimes"]}
            return not any(rows[name].get("rotation") for name in self.healthy)
        annotations = self.kcp.get(GATEWAY_SECRET)["metadata"]["annotations"]
        started = time.monotonic()
        took = self.timed(lambda: self.kcp.delete(ROOT_SECRET), distributed, 120, "the new CA is on all healthy runtimes")
        wait_until(lambda: self.kcp.get(GATEWAY_SECRET)["data"]["tls.crt"] != before, DEADLINE + 30,
                   lambda: f"the gateway serves with the new CA:\n{self.manager.tail(8)}", every=0.1)
        return took, time.monotonic() - started

    def named(self):
        """The ill ones that `status` names with their reason."""
        done = runtime_watcher("status", "--address", f"127.0.0.1:{self.admin}", "--output", "json")
        rows = {row["kyma"].rpartition("/")[2]: row for row in json.loads(done.stdout)["runtimes"]}
        def is_told(name, illness):
            state, words = ILLNESSES[illness]
            row = rows[name]
            return row["state"] == state and words in f"{row.get('reason')} {row.get('message')}"
        for name, illness in self.ill.items():
            if not is_told(name, illness):
                print(f"{name}: {rows[name]}", file=sys.stderr)
        return sum(is_told(*each) for each in self.ill.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtimes", type=int, default=1000)
    parser.add_argument("--ill", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rw-bench-"))
    times = {kind: [] for kind in ("well", "ill")}
    try:
        configs = Unhealthy(folder / "unhealthy").kubeconfigs
        for i in range(asked.rounds):
            for kind, runtimes, ill in (("well", asked.runtimes - asked.ill, 0), ("ill", asked.runtimes, asked.ill)):
                fleet = Fleet(folder / f"{kind}-{i}", runtimes, ill, configs)
                try:
                    installed = fleet.installs()
                    rotated, served = fleet.rotates()
                    times[kind].append((installed, rotated))
                    say(f"rotation_ended_{kind}", served, "s", "the deadline", limit=DEADLINE + 5)
                    if ill:
                        say("ill_not_named", ill - fleet.named(), "runtimes", "status, with its reason", limit=0)
                finally:
                    fleet.close()
        medians = {kind: [statistics.median(each) for each in zip(*all_of_it)] for kind, all_of_it in times.items()}
        for n, what in enumerate(("installation", "rotation")):
            well, ill = (medians[kind][n] for kind in ("well", "ill"))
            say(f"{what}_of_the_healthy", ill, "s", "the same without ill ones beside them", peer_value=well, ratio_limit=1.1,
                ill=asked.ill, rounds=asked.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
