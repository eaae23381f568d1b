#!/usr/bin/env python3
"""What observation and its journal cost the webhook: CPU of its process for each write, with SOURCE=both and a journal, against
reviews alone, in turns on the embedded API server; and resident memory, idle, with 1,000 watched objects. Prints one line of
JSON for each figure. Ends with 1 if a limit is missed.

    bench/observation.py [--writes N] [--rounds N]
"""

import argparse
import statistics
import sys
import unittest

from system import missed, say  # (system.py makes the tests' modules known)

import observation_test  # noqa: E402
from harness import EventLog, Webhook, wait_until  # noqa: E402
from observation_test import WIDGETS, widget  # noqa: E402

OBJECTS = 1000
THREADS = 8
WAYS = {"reviews alone": {"SOURCE": "webhook", "SETTLE": "0"}, "observed": {"SOURCE": "both"}}


class Cost(observation_test.Embedded):
    writes = 4000
    rounds = 3

    def webhook(self, listener, way):
        settings = {"MANAGERS_FILE": str(self.managers), "KUBECONFIG": str(self.kubeconfig), "WEBHOOK_PORT": str(self.webhook_port),
                    **WAYS[way]}
        if way == "observed":
            settings["LEDGER_FILE"] = str(self.ledger)
        return self.start(Webhook(*self.certificate, self.pki.ca, f"localhost:{listener.port}", env=settings))

    def cpu_of_a_write(self, way):
        events = EventLog()
        webhook = self.webhook(self.listen(events), way)
        if way == "observed":
            self.wait_live(webhook)
            wait_until(lambda: webhook.metric("rw_observation_undelivered") == 0, 30, "all are delivered")
        self.round += 1
        before = webhook.cpu_seconds()
        def change(number, client):
            for i in range(number, self.writes, THREADS):
                client.patch(f"{WIDGETS}/object-{i % OBJECTS}", {"spec": {"value": self.round * self.writes + i}})
        self.in_parallel(THREADS, change)
        wait_until(lambda: (webhook.metric("rw_dispatch_events", state="known") or 0) == 0, 30, "all are delivered")
        cost = 1e6 * (webhook.cpu_seconds() - before) / self.writes
        memory = webhook.rss() / 2**20 if way == "observed" else None
        webhook.terminate()
        return cost, memory

    def measure(self):
        self.round = 0
        self.register()
        def create(number, client):
            for i in range(number, OBJECTS, THREADS):
                client.request("POST", WIDGETS, widget(f"object-{i}", 0))
        self.in_parallel(THREADS, create)
        costs = {way: [] for way in WAYS}
        for _ in range(self.rounds):
            for way in WAYS:
                cost, memory = self.cpu_of_a_write(way)
                costs[way].append(cost)
        alone, observed = (statistics.median(costs[way]) for way in WAYS)
        say("write_without_observation", alone, "us of CPU")
        say("write_with_observation", observed, "us of CPU")
        say("cost_of_observation", observed / alone, "x", "reviews alone", 1.3)
        say("resident_memory_with_1000_objects", memory, "MiB", "after the load")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writes", type=int, default=Cost.writes)
    parser.add_argument("--rounds", type=int, default=Cost.rounds)
    Cost.writes, Cost.rounds = (lambda a: (a.writes, a.rounds))(parser.parse_args())
    done = unittest.TextTestRunner(verbosity=0).run(Cost("measure"))
    sys.exit(0 if done.wasSuccessful() and not missed else 1)
