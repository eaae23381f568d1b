#!/usr/bin/env python3
"""What the manager needs for runtimes that are busy: its CPU alone, in per cent of a core, as the process that deploy/manager
runs, with drift watches and probes, while each runtime sends events without a pause. Prints one line of JSON for each figure.
Ends with 1 if one is over the limit.

    bench/busy.py [--runtimes N] [--rate N] [--seconds N]

KCP and the runtimes' clusters are embedded API servers in processes of their own. Events come as KCP's gateway hands them on.
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

from harness import metric_sum, pause  # noqa: E402  (system.py says where they are)
from quiet_fleet import QuietFleet  # noqa: E402

SETTLED = 90  # seconds until the last step of a new runtime's trust is done


def get_text(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    body = connection.getresponse().read().decode()
    connection.close()
    return body


def send_events(fleet, rate, sent, ended):
    """Each runtime's, evenly spread, over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", fleet.port, timeout=30)
    begun = time.monotonic()
    while not ended.is_set():
        name = fleet.names[sent[0] % len(fleet.names)]
        body = {"watched": {"Namespace": "kyma-system", "Name": f"kyma-{sent[0]}"},
                "watchedGvk": {"group": "operator.kyma-project.io", "version": "v1beta2", "kind": "Kyma"}}
        connection.request("POST", "/v2/lifecycle-manager/event", json.dumps(body), {
            "Content-Type": "application/json", "X-Forwarded-Client-Cert": "Cert=" + fleet.certificates[name]})
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise AssertionError(f"an event of {name} is rejected: {response.status}")
        sent[0] += 1
        ended.wait(max(0, begun + sent[0] / (rate * len(fleet.names)) - time.monotonic()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtimes", type=int, default=80)
    parser.add_argument("--rate", type=float, default=4, help="events of each runtime in a second")
    parser.add_argument("--seconds", type=float, default=60, help="that each figure is measured for")
    parser.add_argument("--limit", type=float, default=5, help="of the busy one")
    asked = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rw-bench-"))
    fleet, ended, failures = None, threading.Event(), []
    try:
        fleet = QuietFleet(folder, asked.runtimes, apart=1)
        page = fleet.install(("--no-leader-elect",))
        manager, sent = fleet.manager, [0]

        def metric(name, **labels):
            return metric_sum(get_text(page, "/metrics"), name, **labels) or 0

        def measure(name, what, **more):
            before, begun = manager.cpu_seconds(), time.monotonic()
            first, skipped = sent[0], metric("rw_watcher_installer_skipped_events_total")
            pause(asked.seconds)
            took = time.monotonic() - begun
            say(f"cpu_{name}", 100 * (manager.cpu_seconds() - before) / took, "%", what, runtimes=asked.runtimes,
                events_per_second=round((sent[0] - first) / took, 1),
                skipped_per_second=round((metric("rw_watcher_installer_skipped_events_total") - skipped) / took, 1), **more)

        pause(SETTLED)
        measure("quiet", "all send heartbeats, and no events")

        def send():
            try:
                send_events(fleet, asked.rate, sent, ended)
            except Exception as error:
                failures.append(error)

        threading.Thread(target=send, daemon=True).start()
        pause(2)
        measure("busy", "each runtime sends events", limit=asked.limit)
        if failures:
            raise failures[0]
    finally:
        ended.set()
        if fleet:
            fleet.kill()
        shutil.rmtree(folder)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
