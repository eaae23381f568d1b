#!/usr/bin/env python3
"""How fast a rotated pull Secret comes to many runtimes while some of them hang, with the whole system in one process
(`runtime-watcher-dev dev`): written directly, and beside it signalled to a simulated Kyma Infrastructure Manager. Prints one
line of JSON for each figure, as bench/system.py does. And what a manifest does that crashes. Ends with 1 if a limit is
missed.

    bench/rollout.py [--runtimes N] [--hanging N] [--workers N] [--duration SECONDS] [--only direct,signal,crash,versions]
                     [--previous BINARY] [--rounds N]

The limits: a pull Secret that is written directly is on 99 % of the runtimes within 10 s; a manifest that crashes comes to
the canaries only, and the roll-out says so within 30 s. CPU is that of the process: all clusters, the manager
and the simulated machines of all runtimes included; `undisturbed` is the time without that in which the process stood in
a run queue because others used the machine.

`versions` measures the manager alone, as a process of its own, with the clusters of one run: this one and, in turns, the
`runtime-watcher` of an earlier version (--previous). Each takes over, and the pull Secret is rotated. The limit: with
this one it takes 1.2 times as long at most.
"""

import argparse
import math
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time
import urllib.request

from system import dev, missed, say, wait_installed, waited_for_cpu, when

from api import Api, collection  # noqa: E402
from dev import Dev, rotate_pull_secret  # noqa: E402  (system.py says where it is)
from harness import BINARY, Process, free_port, metric_sum, pause, wait_until  # noqa: E402

SOURCES = ("configuration", "pull Secret", "trust bundle")


def wait_in_step(one, healthy, timeout):
    """Until the healthy runtimes have what KCP holds."""
    def in_step():
        return all(len(one.have(source)) >= healthy for source in SOURCES)
    wait_until(in_step, timeout, lambda: f"{healthy} runtimes are in step:\n{one.tail()}", every=0.2)


def measure(folder, mode, runtimes, hanging, limit, timeout, *options):
    """Rotates the pull Secret of runtimes that are in step, and tells when it was on 99 % of them."""
    healthy, enough = runtimes - hanging, math.ceil(0.99 * runtimes)
    with dev(folder, runtimes, "--bootstrapper-mode", mode, "--hanging-runtimes", hanging, *options) as one:
        one.wait_up(300)
        wait_installed(one, healthy, 300)
        wait_in_step(one, healthy, 300)
        if mode == "direct":
            wait_until(lambda: one.metric("rw_bootstrapper_runtimes", state="installed") >= healthy, 300,
                       "all bootstrappers are ready", every=0.2)
        pause(2)  # what follows an installation is not what is measured
        say(f"{mode}_in_step", time.monotonic() - one.started, "s", "exec of the process", runtimes=runtimes, hanging=hanging,
            cpu_seconds=round(one.cpu_seconds(), 2))
        start, cpu, waited, sent = len(one.rollout), one.cpu_seconds(), waited_for_cpu(one.popen.pid), time.time()
        rotate_pull_secret(one.kcp(), "second")
        def arrived():
            return [told for told in one.rollout[start:] if told["source"] == "pull Secret" and told["have"] >= enough]
        def on_time():
            return arrived() or time.time() - sent > timeout
        wait_until(on_time, timeout + 10, "the changed pull Secret arrives", every=0.02)
        waited, cpu = waited_for_cpu(one.popen.pid) - waited, one.cpu_seconds() - cpu
        have = len(one.have("pull Secret", start))
        if have < enough:
            missed.append(f"{mode}_99_percent")
            say(f"{mode}_99_percent_missed", have, "runtimes that have it", f"{enough} within {timeout} s")
            return
        took = when(arrived()[0]) - sent
        half = [told for told in one.rollout[start:] if told["source"] == "pull Secret" and 2 * told["have"] >= runtimes]
        say(f"{mode}_99_percent", took, "s", "the client's request", limit=limit, runtimes=runtimes, hanging=hanging,
            half=round(when(half[0]) - sent, 3), undisturbed=round(took - waited, 2), cpu_seconds=round(cpu, 2))
        say(f"{mode}_resident_memory", one.rss() / 2**20, "MiB", runtimes=runtimes)


MANIFESTS = collection("configmaps", "kcp-system") + "/runtime-bootstrapper-manifests"
ROLLOUT = collection("runtimerollouts", "kcp-system", "operator.kyma-project.io", "v1alpha1") + "/bootstrapper"
DEPLOYMENT = collection("deployments", "kyma-system", "apps") + "/rt-bootstrapper-controller-manager"


def runtimes_with_image(one, tag, names):
    """Asks each runtime itself."""
    found = []
    for name in names:
        api = Api(one.folder / f"skr-{name}.yaml")
        try:
            deployment = api.get(DEPLOYMENT)
        finally:
            api.close()
        if deployment and deployment["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":" + tag):
            found.append(name)
    return found


def set_image_tag(kcp, before, after):
    text = kcp.get(MANIFESTS)["data"]["manifests.yaml"]
    kcp.patch(MANIFESTS, {"data": {"manifests.yaml": text.replace(f"rt-bootstrapper:{before}", f"rt-bootstrapper:{after}")}})


def measure_crash(folder, runtimes, hanging):
    """A manifest that crashes among many runtimes, and the one that mends it."""
    healthy, canaries = runtimes - hanging, max(runtimes // 100, 2)
    names = [f"runtime-{i + 1}" for i in range(healthy)]
    with dev(folder, runtimes, "--bootstrapper-mode", "direct", "--hanging-runtimes", hanging) as one:
        one.wait_up(300)
        kcp = one.kcp()
        def status():
            return (kcp.get(ROLLOUT) or {}).get("status", {})
        def completed():
            now = status()
            return now.get("phase") in ("Completed", "Partial") and now["ready"] >= healthy
        wait_until(completed, 300, lambda: f"all have the first content: {status()}\n{one.tail()}", every=0.2)
        say("rollout_first", time.monotonic() - one.started, "s", "exec of the process", runtimes=runtimes, hanging=hanging)
        start, sent = len(one.phases), time.time()
        set_image_tag(kcp, "1.0.0", "crash")
        def paused():
            return [told for told in one.phases[start:] if told["phase"] == "Paused"]
        wait_until(paused, 60, lambda: f"the roll-out is paused: {status()}\n{one.tail()}", every=0.02)
        say("crash_told", when(paused()[0]) - sent, "s", "the client's request", limit=30, runtimes=runtimes, hanging=hanging)
        pause(10)  # in which nothing more must happen
        crashing = runtimes_with_image(one, "crash", names)
        say("crash_reached", len(crashing), "runtimes", "the canaries", limit=canaries, runtimes=runtimes)
        if not crashing:
            missed.append("crash_reached")
        sent = time.time()
        set_image_tag(kcp, "crash", "2.0.0")
        wait_until(lambda: completed() and status()["updated"] >= healthy and len(one.phases) > start + 2, 300,
                   lambda: f"all have the mended content: {status()}\n{one.tail()}", every=0.2)
        say("mended_everywhere", time.time() - sent, "s", "the client's request", runtimes=runtimes, hanging=hanging)
        if len(runtimes_with_image(one, "2.0.0", names)) != healthy:
            missed.append("mended_everywhere")


WRITES = ("create", "update", "patch", "apply", "delete")


class Manager:
    """Of some version, beside the clusters of `one`."""

    def __init__(self, one, binary, port):
        self.process = Process("manager", [
            binary, "manager", "--allow-local-runtimes", "--kubeconfig", one.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{port}",
            "--metrics-address", "127.0.0.1:0", "--pin-san", "--bootstrapper-mode=direct", "--create-runtime-bootstrappers",
            "--rollout-canary-soak=1s"], env={**os.environ, "POD_IP": "10.99.0.1"})
        self.admin = self.process.wait_listening("admin")

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=30) as answer:
            return answer.read().decode()

    def installed(self):
        return metric_sum(self.metrics(), "rw_bootstrapper_runtimes", state="installed") or 0

    def writes(self):
        """To KCP, of any object: statuses, stored contents, Events and the Lease."""
        page = self.metrics()
        return sum(metric_sum(page, "rw_kube_requests_total", client="kcp", verb=verb) or 0 for verb in WRITES)

    def wait_quiet(self):
        """Until it writes nothing but its Lease."""
        last, since = self.writes(), time.monotonic()
        def quiet():
            nonlocal last, since
            now = self.writes()
            if now > last + 2:
                last, since = now, time.monotonic()
            return time.monotonic() - since > 5
        wait_until(quiet, 300, lambda: f"nothing is written:\n{self.process.tail(8)}", every=0.5)


def measure_versions(folder, runtimes, hanging, binaries, rounds):
    """A rotated pull Secret with each version of the manager in turn, on the same clusters."""
    healthy, enough = runtimes - hanging, math.ceil(0.99 * runtimes)
    took = {name: [] for name in binaries}
    port = free_port()
    folder.mkdir(parents=True)
    one = Dev(folder / "dev", runtimes, "--no-manager", "--backend", f"127.0.0.1:{port}", "--bootstrapper-mode", "direct",
              "--hanging-runtimes", hanging)
    try:
        one.wait_up(300)
        for turn in range(rounds):
            for name, binary in binaries.items():
                manager = Manager(one, binary, port)
                try:
                    wait_until(lambda: manager.installed() >= healthy, 300,
                               lambda: f"all bootstrappers are ready, {manager.installed()}:\n{manager.process.tail(8)}", every=0.5)
                    manager.wait_quiet()
                    start, writes, cpu = len(one.rollout), manager.writes(), manager.process.cpu_seconds()
                    sent = time.time()
                    rotate_pull_secret(one.kcp(), f"{name} {turn}")
                    def arrived():
                        return [told for told in one.rollout[start:] if told["source"] == "pull Secret" and told["have"] >= enough]
                    wait_until(arrived, 120, lambda: f"the pull Secret arrives:\n{manager.process.tail(8)}", every=0.02)
                    seconds = when(arrived()[0]) - sent
                    manager.wait_quiet()
                    took[name].append(seconds)
                    say(f"rotated_{name}", seconds, "s", "the client's request", runtimes=runtimes, hanging=hanging,
                        cpu_seconds=round(manager.process.cpu_seconds() - cpu, 2),
                        kcp_writes_for_each_runtime=round((manager.writes() - writes) / healthy, 2))
                    if manager.process.terminate(60) != 0:
                        raise AssertionError(f"the manager ended badly:\n{manager.process.tail()}")
                finally:
                    manager.process.kill()
    finally:
        one.kill()  # with heartbeats that no manager took
    if "previous" in took:
        say("rotated_against_previous", statistics.median(took["present"]) / statistics.median(took["previous"]), "times",
            "the previous version, medians", limit=1.2, rounds=rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtimes", type=int, default=1000)
    parser.add_argument("--hanging", type=int, default=10)
    parser.add_argument("--workers", type=int, default=25, help="of the simulated Kyma Infrastructure Manager")
    parser.add_argument("--duration", type=float, default=2, help="seconds that it works on one runtime")
    parser.add_argument("--only", default="direct,signal,crash")
    parser.add_argument("--previous", help="runtime-watcher of an earlier version, for `versions`")
    parser.add_argument("--rounds", type=int, default=3, help="of `versions`")
    options = parser.parse_args()
    only = options.only.split(",")
    if options.runtimes - options.hanging < math.ceil(0.99 * options.runtimes):
        parser.error("99 % can't be reached while more than 1 % hang")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="runtime-watcher-bench-"))
    try:
        if "direct" in only:
            measure(folder / "direct", "direct", options.runtimes, options.hanging, 10, 60)
        if "crash" in only:
            measure_crash(folder / "crash", options.runtimes, options.hanging)
        if "versions" in only:
            binaries = {"present": BINARY, **({"previous": options.previous} if options.previous else {})}
            measure_versions(folder / "versions", options.runtimes, options.hanging, binaries, options.rounds)
        if "signal" in only:
            # Its own time, three times that, and a minute for those that hang.
            whole = options.runtimes * options.duration / options.workers
            measure(folder / "signal", "signal", options.runtimes, options.hanging, None, 3 * whole + 60,
                    "--kim-workers", options.workers, "--kim-duration", f"{round(options.duration * 1000)}ms")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if missed:
        print("bench/rollout.py: limits missed: " + ", ".join(missed), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
