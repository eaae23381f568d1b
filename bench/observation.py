#!/usr/bin/env python3
"""What observation costs the webhook: CPU of its process for each write, with SOURCE=both, against reviews alone, in turns on
the embedded API server; resident memory, idle, with 1,000 watched objects, and for each of 10,000
more. Prints one line of JSON for each figure. Ends with 1 if a limit is missed.

    bench/observation.py [--writes N] [--rounds N] [--before BINARY] [--instructions]

--before compares with another build of runtime-watcher, of an earlier commit, in the same turns. --instructions counts the
instructions of each write by valgrind in place of CPU time, which other load on the machine changes; one round does.
"""

import argparse
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import unittest

from system import missed, say  # (system.py makes the tests' modules known)

import observation_test  # noqa: E402
from harness import BINARY, EventLog, Listener, Webhook, wait_until  # noqa: E402
from observation_test import MANAGER, WIDGETS, widget  # noqa: E402

OBJECTS = 1000
MORE_OBJECTS = 10_000
THREADS = 8
OBSERVED = {"SOURCE": "both"}
WAYS = {"reviews alone": (BINARY, {"SOURCE": "webhook", "SETTLE": "0"}), "observed": (BINARY, OBSERVED)}


class Cost(observation_test.Embedded):
    writes = 4000
    rounds = 3
    instructions = False

    def webhook(self, listener, way):
        binary, settings = WAYS[way]
        settings = {"MANAGERS_FILE": str(self.managers), "KUBECONFIG": str(self.kubeconfig),
                    "WEBHOOK_PORT": str(self.webhook_port), **settings}
        return self.start(Webhook(*self.certificate, self.pki.ca, f"localhost:{listener.port}", env=settings, binary=binary))

    def listen(self, events):
        """Its resync tells what exists when a webhook starts, so that this costs no events."""
        self.events = events
        tls = self.pki.issue("server", "listener")
        return self.start(Listener(events, MANAGER, tls=tls, client_ca=self.pki.ca, options=["--resyncs"]))

    def settled(self, way):
        """A webhook that watches, with nothing to deliver."""
        webhook = self.webhook(self.listen(EventLog()), way)
        if way == "reviews alone":
            return webhook
        self.wait_live(webhook)
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 0, 60, "all are delivered")
        return webhook

    def create(self, first, last):
        def create(number, client):
            for i in range(first + number, last, THREADS):
                client.request("POST", WIDGETS, widget(f"object-{i}", 0))
        self.in_parallel(THREADS, create)

    def change(self, writes):
        self.round += 1
        start = len(self.events.lines)
        def change(number, client):
            for i in range(number, writes, THREADS):
                client.patch(f"{WIDGETS}/object-{i % OBJECTS}", {"spec": {"value": self.round * self.writes + i}})
        self.in_parallel(THREADS, change)
        changed = {f"object-{i}" for i in range(min(writes, OBJECTS))}
        wait_until(lambda: changed <= set(self.names(start)), 60, "all are told", every=0.1)

    def wait_delivered(self, webhook):
        wait_until(lambda: (webhook.metric("rw_dispatch_undelivered_events", state="known") or 0) == 0
                   and not webhook.metric("rw_observation_undelivered"), 60, "all are delivered")

    def cpu_of_a_write(self, way):
        webhook = self.settled(way)
        before = webhook.cpu_seconds()
        self.change(self.writes)
        self.wait_delivered(webhook)
        cost = 1e6 * (webhook.cpu_seconds() - before) / self.writes
        memory = webhook.rss() / 2**20
        webhook.terminate()
        return cost, memory

    def instructions_of_a_write(self, way):
        binary, settings = WAYS[way]
        counted = self.folder / f"counted-{way.replace(' ', '-')}"
        script, stripped = counted.with_suffix(".sh"), counted.with_suffix(".stripped")
        # Valgrind may not know the form of the debug information.
        subprocess.run(["strip", "--strip-debug", "-o", stripped, binary], check=True)
        script.write_text(f"#!/bin/sh\nexec valgrind --tool=callgrind --callgrind-out-file={shlex.quote(str(counted))} "
                          f'{shlex.quote(str(stripped))} "$@"\n')
        script.chmod(0o700)
        try:
            WAYS[way] = (str(script), {**settings, "CONFIRM_WAIT": "10s"})  # it is slow
            webhook = self.settled(way)
        finally:
            WAYS[way] = binary, settings
        def control(command):
            subprocess.run(["callgrind_control", command, str(webhook.popen.pid)], check=True, capture_output=True, timeout=30)
        delivered = lambda: webhook.metric("rw_dispatch_events_total", outcome="delivered")
        before = delivered()
        control("--zero")
        self.change(self.writes)
        control("--dump")  # before any page of metrics is rendered
        self.wait_delivered(webhook)
        self.note(f"{way}: {delivered() - before:.0f} events of {self.writes} writes")
        webhook.terminate(60)
        total = re.search(r"^(?:totals|summary): (\d+)", counted.with_name(counted.name + ".1").read_text(), re.MULTILINE)
        return int(total[1]) / self.writes

    def bytes_of_an_object(self, way, memory):
        """After a restart; `memory` with OBJECTS alone."""
        self.settled(way).terminate()
        webhook = self.settled(way)
        more = webhook.rss() - memory
        webhook.terminate()
        return more / MORE_OBJECTS

    def idle_memory(self, way):
        webhook = self.settled(way)
        memory = webhook.rss()
        webhook.terminate()
        return memory

    def measure(self):
        self.round = 0
        self.register()
        self.create(0, OBJECTS)
        observed = [way for way in WAYS if way != "reviews alone"]
        if self.instructions:
            counted = {way: self.instructions_of_a_write(way) for way in WAYS}
            self.compare("instructions_of_a_write", counted, "instructions")
            return
        costs, memory = {way: [] for way in WAYS}, {}
        for _ in range(self.rounds):
            for way in WAYS:
                cost, memory[way] = self.cpu_of_a_write(way)
                costs[way].append(cost)
        self.compare("cpu_of_a_write", {way: statistics.median(costs[way]) for way in WAYS}, "us of CPU", ratio_limit=1.3)
        self.compare("resident_memory_with_1000_objects", {way: memory[way] for way in observed}, "MiB")
        idle = {way: self.idle_memory(way) for way in observed}
        self.create(OBJECTS, OBJECTS + MORE_OBJECTS)
        self.compare("memory_of_an_object", {way: self.bytes_of_an_object(way, idle[way]) for way in observed}, "bytes")

    @staticmethod
    def compare(name, values, unit, **limits):
        """With reviews alone, and with the build before."""
        for way, value in values.items():
            if way == "observed" and "reviews alone" in values:
                say(f"{name}_observed", value, unit, "reviews alone", peer_value=values["reviews alone"], **limits)
            else:
                say(f"{name}_{way.replace(' ', '_')}", value, unit)
        if "before" in values:
            say(f"{name}_observed_now", values["observed"], unit, "before", peer_value=values["before"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writes", type=int, default=Cost.writes)
    parser.add_argument("--rounds", type=int, default=Cost.rounds)
    parser.add_argument("--before", metavar="BINARY", type=pathlib.Path)
    parser.add_argument("--instructions", action="store_true")
    arguments = parser.parse_args()
    Cost.writes, Cost.rounds, Cost.instructions = arguments.writes, arguments.rounds, arguments.instructions
    if arguments.before:
        WAYS["before"] = (str(arguments.before.resolve()), OBSERVED)
    done = unittest.TextTestRunner(verbosity=0).run(Cost("measure"))
    sys.exit(0 if done.wasSuccessful() and not missed else 1)
