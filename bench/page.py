#!/usr/bin/env python3
"""What the manager's page costs: a real manager process with many installed runtimes (tests/e2e/quiet_fleet.py), each of which sends
a heartbeat every minute. Compares the manager's CPU time without viewers and with some, and prints what one viewer receives.
Prints one line of JSON for each figure. Ends with 1 if a figure is over its limit.

    bench/page.py [--runtimes N] [--viewers N] [--seconds S]
"""

import argparse
import http.client
import json
import pathlib
import shutil
import sys
import tempfile
import threading
import time

from system import missed, say

from harness import pause, wait_until  # noqa: E402  (system.py says where they are)
from quiet_fleet import QuietFleet  # noqa: E402


class Viewer(threading.Thread):
    """Reads the page's events as a browser does, and keeps the size of each and its arrival."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.connection.request("GET", "/live")
        self.answer = self.connection.getresponse()
        if self.answer.status != 200:
            raise AssertionError(f"/live answers {self.answer.status}")
        self.events = []  # (arrival, name, size, number of rows)
        self.start()

    def run(self):
        name = ""
        try:
            for line in self.answer:
                if line.startswith(b"event: "):
                    name = line[7:].strip().decode()
                elif line.startswith(b"data: "):
                    self.events.append((time.monotonic(), name, len(line), len(json.loads(line[6:])["rows"])))
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass  # closed

    def close(self):
        self.connection.sock.close()


def measure(manager, seconds):
    """The share of a core that the manager uses."""
    cpu, begun = manager.cpu_seconds(), time.monotonic()
    pause(seconds)
    return (manager.cpu_seconds() - cpu) / (time.monotonic() - begun)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtimes", type=int, default=5000)
    parser.add_argument("--viewers", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=40, help="of each measurement")
    asked = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rw-bench-"))
    fleet = None
    try:
        fleet = QuietFleet(folder, asked.runtimes)
        begun = time.monotonic()
        port = fleet.install()
        manager = fleet.manager
        say("installed", time.monotonic() - begun, "s", runtimes=asked.runtimes, rss_mib=round(manager.rss() / 2**20, 1))
        pause(30)
        rounds = []
        for _ in range(2):
            idle = measure(manager, asked.seconds)
            viewers = [Viewer(port) for _ in range(asked.viewers)]
            wait_until(lambda: all(v.events for v in viewers), 30, "each viewer has the first event")
            first = [v.events[0] for v in viewers]
            begun = {v: len(v.events) for v in viewers}
            watched = measure(manager, asked.seconds)
            received = [event for v in viewers for event in v.events[begun[v]:]]
            for v in viewers:
                v.close()
            rounds.append((watched - idle, idle, watched))
            pause(3)
        cost, idle, watched = min(rounds)
        say("page_cpu", 100 * cost, "% of a core", f"{asked.viewers} viewers; {100 * idle:.2f} without, {100 * watched:.2f} with",
            limit=1)
        say("first_event", first[0][2] / 1024, "KiB", rows=first[0][3])
        say("update", sum(e[2] for e in received) / max(1, len(received)) / 1024, "KiB",
            rows=round(sum(e[3] for e in received) / max(1, len(received)), 1),
            a_second=round(len(received) / asked.viewers / asked.seconds, 2))
        if manager.terminate(60) != 0:
            raise AssertionError(f"the manager ended badly:\n{manager.tail()}")
    finally:
        if fleet:
            fleet.kill()
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
