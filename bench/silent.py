#!/usr/bin/env python3
"""What the manager needs for many runtimes of which KCP hears nothing: its CPU alone, in per cent of a core, as the process
that deploy/manager runs, with drift watches and probes. Prints one line of JSON for each figure. Ends with 1 if one is over
the limit.

    bench/silent.py [--runtimes N] [--seconds N]

KCP is an embedded API server in one process, the runtimes' clusters are in another. First the webhooks send no heartbeats,
and no API server calls them; then the API servers hang; then they refuse connections, which the manager notices.
"""

import argparse
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from system import missed, say

from harness import pause, wait_until  # noqa: E402  (system.py says where they are)
from quiet_fleet import QuietFleet, get  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtimes", type=int, default=4000)
    parser.add_argument("--seconds", type=float, default=120, help="that each figure is measured for")
    parser.add_argument("--limit", type=float, default=15, help="of each figure")
    asked = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rw-bench-"))
    fleet = None
    try:
        fleet = QuietFleet(folder, asked.runtimes, apart=1)
        page = fleet.install(("--no-leader-elect",))
        manager = fleet.manager

        def measure(name, settled, what):
            wait_until(settled, 900, lambda: f"{name}: {get(page, '/runtimes?limit=1')}\n{manager.tail(5)}", every=1)
            pause(30)
            before, begun = manager.cpu_seconds(), time.monotonic()
            pause(asked.seconds)
            used = (manager.cpu_seconds() - before) / (time.monotonic() - begun)
            say(f"cpu_{name}", 100 * used, "%", what, limit=asked.limit, runtimes=asked.runtimes, mib=round(manager.rss() / 2**20))

        def states():
            shown = get(page, "/runtimes?limit=1")
            return shown["heartbeats"].get("silent", 0), shown["states"].get("unreachable", 0)

        begun = time.monotonic()
        measure("live", lambda: True, "all send heartbeats")
        fleet.silent = set(fleet.names)
        measure("silent", lambda: states()[0] == asked.runtimes, "no heartbeats, and no API server calls its webhook")
        fleet.runtimes_server.send(signal.SIGSTOP)
        measure("hanging", lambda: True, "the API servers hang")
        fleet.runtimes_server.kill()
        measure("lost", lambda: True, "the API servers have just begun to refuse connections")
        measure("refusing", lambda: states()[1] >= asked.runtimes * 0.9, "the API servers refuse connections")
        say("took", time.monotonic() - begun, "s")
    finally:
        if fleet:
            fleet.kill()
        shutil.rmtree(folder)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
