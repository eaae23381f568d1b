#!/usr/bin/env python3
"""What one manager costs, and how long it takes, with many runtimes in mode direct, each watched for drift and with a heartbeat
every minute: its memory and idle CPU, the installation everywhere, full passes for all that each runtime's resync asks for, as in
a roll-out of the watcher, a rotated pull Secret and a new CA everywhere, and a fail-over until another replica handles what a
runtime sends. Prints one line of JSON for each figure. Ends with 1 if a limit is
missed, with 77 where a process may not open as many files as that takes.

    bench/scale.py [--runtimes N] [--seconds S] [--no-rotations]

KCP is an embedded API server in one process, the runtimes' clusters are in others, of 5,000 at most; this script is the issuer, and
sends the heartbeats (tests/e2e/quiet_fleet.py). All of them share the machine's cores with the manager, so beside each time is the
CPU time that the manager took of it. The leader is killed, so a fail-over has the rest of its Lease (15 s) in it.
"""

import argparse
import base64
import concurrent.futures
import http.client
import json
import pathlib
import resource
import shutil
import sys
import tempfile
import time
import urllib.request

from system import missed, say

import bootstrapper_sources as sources  # noqa: E402  (system.py says where they are)
from api import Api, collection  # noqa: E402
from harness import SKIPPED, Pki, free_port, metric_sum, pause, wait_until  # noqa: E402
from landscape import encoded  # noqa: E402
from quiet_fleet import KCP, PERIOD, QuietFleet  # noqa: E402

MODE = ("--bootstrapper-mode=direct", "--create-runtime-bootstrappers",
        "--ca-gateway-settles=0s", "--ca-propagation=1s")  # else a new CA waits for three minutes, however few runtimes there are
DESCRIPTORS = 200_000  # a connection to each runtime, in the servers and in the manager


class Scale:
    def __init__(self, folder, runtimes):
        self.runtimes = runtimes
        self.folder = folder
        self.patience = 300 + runtimes * 0.3
        self.fleet = QuietFleet(folder, runtimes, apart=-(-runtimes // 5000))
        self.admin = None
        self.standby = None

    def close(self):
        if self.standby:
            self.standby.kill()
        self.fleet.kill()

    def metric(self, name, /, **labels):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=60) as answer:
            return metric_sum(answer.read().decode(), name, **labels) or 0

    def timed(self, name, action, good):
        manager = self.fleet.manager
        cpu, begun = manager.cpu_seconds() if manager else 0, time.monotonic()
        action()
        manager = self.fleet.manager
        wait_until(good, self.patience, lambda: f"{name}:\n{manager.tail(8)}", every=0.5)
        say(name, time.monotonic() - begun, "s", runtimes=self.runtimes, cpu_seconds=round(manager.cpu_seconds() - cpu, 1))

    def install(self):
        def start():
            self.admin = self.fleet.install(MODE, self.patience)
        watched = ("rw_watcher_installer_watched_runtimes", "rw_bootstrapper_watched_runtimes")
        self.timed("installed", start, lambda: min(map(self.metric, watched)) >= self.runtimes)

    def rest(self, seconds):
        manager = self.fleet.manager
        pause(60)  # what the first passes needed is given back, as far as it ever is
        cpu, begun = manager.cpu_seconds(), time.monotonic()
        pause(seconds)
        used = (manager.cpu_seconds() - cpu) / (time.monotonic() - begun)
        say("idle_cpu", 100 * used, "% of a core", runtimes=self.runtimes, heartbeats_a_second=self.runtimes / PERIOD)
        say("resident_memory", manager.rss() / 2**20, "MiB", runtimes=self.runtimes)
        say("memory_of_a_runtime", manager.rss() / 1024 / self.runtimes, "KiB", "all memory of the manager", runtimes=self.runtimes)

    def ask(self, connection, name, body, **headers):
        """Sends what a runtime's watcher does; returns the response."""
        connection.request("POST", "/v2/lifecycle-manager/events" if body == "[]" else "/v2/lifecycle-manager/event", body, {
            "Content-Type": "application/json", "X-Forwarded-Client-Cert": "Cert=" + self.fleet.certificates[name], **headers})
        answer = connection.getresponse()
        answer.read()
        return answer

    def resyncs(self):
        """All runtimes but one ask for a full pass at once; that one sends an event each 0.1 s."""
        busy, quiet = self.fleet.names[:-1], self.fleet.names[-1]
        event = json.dumps({"watched": {"Name": "o", "Namespace": "n"},
                            "watchedGvk": {"group": "g", "version": "v1", "kind": "Kind"}})
        own = http.client.HTTPConnection("127.0.0.1", self.fleet.port, timeout=30)
        def time_of_event():
            begun = time.monotonic()
            if self.ask(own, quiet, event).status // 100 != 2:
                raise AssertionError("an event is not taken")
            return time.monotonic() - begun
        def figures(count):
            taken = []
            for _ in range(count):
                taken.append(time_of_event())
                pause(0.1)
            return sorted(taken)[int(0.99 * len(taken))]
        idle = figures(50)
        controller = {"controller": "watcher-installer"}
        before, deepest, times = self.metric("controller_runtime_reconcile_total", **controller), 0, []
        def send(part):
            connection = http.client.HTTPConnection("127.0.0.1", self.fleet.port, timeout=30)
            for name in busy[part::4]:
                if self.ask(connection, name, "[]", **{"watch-resync": "started"}).headers.get("watch-resync") != "taken":
                    raise AssertionError(f"the resync of {name} is not taken")
        def send_all():
            with concurrent.futures.ThreadPoolExecutor(4) as threads:
                list(threads.map(send, range(4)))
        def done():
            nonlocal deepest
            times.extend(time_of_event() for _ in range(3))
            deepest = max(deepest, self.metric("workqueue_depth", name="watcher-installer"))
            return self.metric("controller_runtime_reconcile_total", **controller) >= before + len(busy)
        self.timed("resyncs", send_all, done)
        pause(10)
        passes = (self.metric("controller_runtime_reconcile_total", **controller) - before) / len(busy)
        say("passes_of_a_resync", passes, "", "of a runtime", runtimes=self.runtimes)
        say("queue_of_resyncs", deepest, "keys", "the most that were seen", runtimes=self.runtimes)
        say("event_beside_resyncs", 1000 * sorted(times)[int(0.99 * len(times))], "ms", "99th percentile, of another runtime",
            runtimes=self.runtimes, idle=round(1000 * idle, 2))

    def sampled(self, secret, good):
        """A function that says whether the data of this Secret are good on a hundred runtimes: to read all of them takes longer than
        a manager needs to write them."""
        left = self.fleet.names[::max(1, self.runtimes // 100)]
        def reached():
            while left:
                runtime = Api(self.fleet.folders[left[-1]] / f"{left[-1]}.kubeconfig")
                has = runtime.get(collection("secrets", "kyma-system") + f"/{secret}")["data"]
                runtime.close()
                if not good(has):
                    return False
                left.pop()
            return True
        return reached

    def rotate_credentials(self):
        wanted = sources.pull_secret("second")["data"]
        self.fleet.kcp.close()  # it connects again; a server closes what is idle
        before = self.metric("rw_bootstrapper_writes_total")
        def reached():
            return (self.metric("rw_bootstrapper_writes_total") >= before + self.runtimes
                    and self.metric("rw_bootstrapper_content", state="outdated") == 0)
        self.timed("credentials", lambda: self.fleet.kcp.apply(
            collection("secrets", KCP) + "/registry-credentials", sources.pull_secret("second")), reached)
        if not self.sampled("registry-credentials", lambda data: data == wanted)():
            raise AssertionError("a runtime that counts as current has the pull Secret from before")

    def rotate_authority(self):
        authority = Pki(self.folder / "next", "next")
        certificate, key = (encoded((authority.folder / name).read_bytes()) for name in ("ca.crt", "ca.key"))
        def missing():
            return self.metric("rw_gateway_secret_missing_runtimes")
        added = base64.b64decode(certificate)
        has_bundle = self.sampled("skr-webhook-tls", lambda data: added in base64.b64decode(data["ca.crt"]))
        def rotate():
            self.fleet.pki = authority
            self.fleet.kcp.patch(collection("secrets", "istio-system") + "/klm-watcher", {
                "data": {"tls.crt": certificate, "tls.key": key, "ca.crt": certificate}})
            wait_until(lambda: missing() > 0, 120, "runtimes lack the new CA", every=0.02)
        self.timed("authority_bundle", rotate, has_bundle)  # that a runtime has it is in no metric
        self.timed("authority_certificates", lambda: None, lambda: missing() == 0)

    def fail_over(self):
        listener = free_port()
        self.standby = self.fleet.start_manager(listener, MODE)
        self.standby.wait_listening("admin", 60)
        pause(30)
        def handled():
            connection = http.client.HTTPConnection("127.0.0.1", listener, timeout=5)
            try:
                return self.fleet.send_one(connection, self.fleet.names[-1])
            except OSError:
                return False
            finally:
                connection.close()
        if handled():
            raise AssertionError("a replica that does not lead has handled what a runtime sends")
        begun = time.monotonic()
        self.fleet.manager.kill()
        wait_until(handled, self.patience, lambda: f"another replica leads:\n{self.standby.tail(8)}", every=0.1)
        say("fail_over", time.monotonic() - begun, "s", "the Lease of the killed leader included", runtimes=self.runtimes,
            cpu_seconds=round(self.standby.cpu_seconds(), 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtimes", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=60, help="that the idle CPU is measured for")
    parser.add_argument("--no-rotations", action="store_true", help="leaves out the pull Secret and the CA")
    asked = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, max(most, DESCRIPTORS)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors < 1.1 * asked.runtimes + 1000:
        print(f"a manager of {asked.runtimes:,} runtimes has a connection to each, and a process may open {descriptors:,} files here "
              "(ulimit -Hn)", file=sys.stderr)
        return SKIPPED
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rw-bench-"))
    scale = None
    try:
        scale = Scale(folder, asked.runtimes)
        scale.install()
        scale.rest(asked.seconds)
        scale.resyncs()
        if not asked.no_rotations:
            scale.rotate_credentials()
            scale.rotate_authority()
        scale.fail_over()
    finally:
        if scale:
            scale.close()
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
