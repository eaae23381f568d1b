#!/usr/bin/env python3
"""Whether one thread is enough for a webhook: what a write costs kube-apiserver and etcd, and what the review and the event of
that write cost the webhook, CPU of the processes in one run. Prints one line of JSON for each figure. Ends with 1 if a limit is
missed, and with 77 without a kube-apiserver (KUBEBUILDER_ASSETS).

    bench/api_server.py [--writes N] [--rounds N]
"""

import argparse
import statistics
import sys
import unittest

from system import missed, say  # (system.py makes the tests' modules known)

import control_plane  # noqa: E402
import harness  # noqa: E402
import observation_test  # noqa: E402
from harness import EventLog, wait_until  # noqa: E402
from observation_test import WIDGETS, widget  # noqa: E402

OBJECTS = 200
THREADS = 8


class Shares(observation_test.Observation, harness.TestCase):
    writes = 4000
    rounds = 5

    def start_server(self):
        self.plane = control_plane.ControlPlane(self)
        return self.plane.kubeconfig_with_authority(self.folder / "kubeconfig")

    def write(self, value):
        def write(number, client):
            for i in range(number, self.writes, THREADS):
                client.patch(f"{WIDGETS}/object-{i % OBJECTS}", {"spec": {"value": value + i}})
        self.in_parallel(THREADS, write)

    def measure(self):
        listener = self.listen(EventLog())
        webhook = self.run_webhook(listener, source="webhook", SETTLE="0")
        self.register()
        for i in range(OBJECTS):
            self.api.request("POST", WIDGETS, widget(f"object-{i}", 0))
        ours, theirs = [], []
        for i in range(self.rounds):
            before = webhook.cpu_seconds(), self.plane.cpu_seconds()
            self.write((i + 1) * self.writes)
            wait_until(lambda: not webhook.metric("rw_dispatch_undelivered_events", state="known"), 60, "all are delivered")
            ours.append(1e6 * (webhook.cpu_seconds() - before[0]) / self.writes)
            theirs.append(1e6 * (self.plane.cpu_seconds() - before[1]) / self.writes)
        webhook, plane = statistics.median(ours), statistics.median(theirs)
        say("webhook_cpu_of_a_write", webhook, "us of CPU", "kube-apiserver and etcd", peer_value=plane, ratio_limit=0.2)
        say("cores_that_fill_the_thread", plane / webhook, "cores", "of kube-apiserver and etcd, whose every write is reviewed")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writes", type=int, default=Shares.writes)
    parser.add_argument("--rounds", type=int, default=Shares.rounds)
    arguments = parser.parse_args()
    Shares.writes, Shares.rounds = arguments.writes, arguments.rounds
    control_plane.assets()
    done = unittest.TextTestRunner(verbosity=0).run(Shares("measure"))
    sys.exit(0 if done.wasSuccessful() and not missed else 1)
