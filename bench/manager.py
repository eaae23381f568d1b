#!/usr/bin/env python3
"""What the manager needs for many runtimes that it writes to directly and watches: the real process with the arguments of
deploy/manager, KCP and all runtimes being clusters of an embedded API server in another process. Prints one line of JSON
for each figure, and how long `status` takes to show all. Ends with 1 if the memory of a watched runtime, or of all, or that
time is over its limit.

    bench/manager.py [--runtimes N] [--limit MIB]

Every runtime has a Runtime, a Kyma and a kubeconfig in KCP, and the bootstrapper and the parts of the watcher that need no
certificate on its cluster. There are no controllers: no Deployment becomes ready.
"""

import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time
import urllib.request

from system import missed, say

from api import Api  # noqa: E402  (system.py says where they are)
from harness import BINARY, DEV_BINARY, Pki, Process, metric_sum, pause, runtime_watcher, wait_until  # noqa: E402
from quiet_fleet import add_runtime, define, fill  # noqa: E402


def manage(name, kubeconfig, runtimes, *options):
    """The manager's resident memory in bytes, once all runtimes have what they are to have and are watched."""
    one = Process("manager", [
        BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", kubeconfig, "--skr-image=example.com/runtime-watcher:1", "--pin-san",
        "--listen-address=127.0.0.1:0", "--metrics-address=127.0.0.1:0", *options], env={**os.environ, "POD_IP": "10.99.0.1"})
    try:
        admin = one.wait_listening("admin")

        def metric(name, **labels):
            with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=30) as answer:
                return metric_sum(answer.read().decode(), name, **labels) or 0

        watched = ["rw_watcher_installer_watched_runtimes"]
        if "--bootstrapper-mode=direct" in options:
            watched.append("rw_bootstrapper_watched_runtimes")
        if "--no-watch-runtimes" in options:
            wait_until(lambda: metric("rw_watcher_installer_runtimes", state="not_ready") >= runtimes, 900,
                       lambda: f"all runtimes are visited:\n{one.tail()}", every=1)
        else:
            wait_until(lambda: all(metric(each) >= runtimes for each in watched), 900,
                       lambda: f"all runtimes are watched: {[metric(each) for each in watched]}\n{one.tail()}", every=1)
        took = time.monotonic() - one.started
        pause(60)  # what the first passes needed is given back, as far as it ever is
        rss = one.rss()
        say(f"resident_memory_{name}", rss / 2**20, "MiB", runtimes=runtimes, options=" ".join(options), seconds=round(took, 1),
            cpu_seconds=round(one.cpu_seconds(), 1))
        begun = time.monotonic()
        shown = runtime_watcher("status", "--address", f"127.0.0.1:{admin}").stdout
        say(f"status_{name}", time.monotonic() - begun, "s", "all runtimes as a table", limit=2)
        if len(shown.splitlines()) < runtimes:
            raise AssertionError(f"status shows {len(shown.splitlines())} lines for {runtimes} runtimes")
        if one.terminate(60) != 0:
            raise AssertionError(f"the manager ended badly:\n{one.tail()}")
        return rss
    finally:
        one.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtimes", type=int, default=5000)
    parser.add_argument("--limit", type=float, default=768, help="of the memory of all, in MiB")
    asked = parser.parse_args()
    names = [f"runtime-{i}" for i in range(asked.runtimes)]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rw-bench-"))
    server = None
    try:
        clusters = folder / "clusters"
        server = Process("api-server", [DEV_BINARY, "api-server", "--address", "127.0.0.1:0", "--dir", clusters,
                                        "--cluster", ",".join(["kcp", *names])])
        server.wait_listening("api-server", 120)
        kubeconfig = clusters / "kcp.kubeconfig"
        kcp = Api(kubeconfig)
        define(kcp)
        fill(kcp, Pki(folder / "pki"))
        for name in names:
            add_runtime(kcp, clusters, name)
        off = manage("unwatched", kubeconfig, asked.runtimes, "--bootstrapper-mode=off", "--no-watch-runtimes")
        manage("watched", kubeconfig, asked.runtimes, "--bootstrapper-mode=off")
        direct = manage("direct", kubeconfig, asked.runtimes, "--bootstrapper-mode=direct", "--create-runtime-bootstrappers")
        say("memory_of_a_runtime", (direct - off) / 1024 / asked.runtimes, "KiB",
            "mode off, and runtimes that are not watched", limit=60)
        say("memory_of_all", direct / 2**20, "MiB", "the limit in deploy/manager", limit=asked.limit)
    finally:
        if server:
            server.kill()
        shutil.rmtree(folder)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
