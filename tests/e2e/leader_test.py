"""At most one manager writes, whatever happens to the one that leads: two processes (lease_writer.cpp) and a real API
server, whose own record of all versions of the Lease and of the object written decides.

Environment: RW_LEASE_WRITER, the program (default: build/tests/e2e/lease_writer of this checkout); RW_E2E_ROUNDS, how
often a leader is frozen (3); RW_E2E_NO_FENCE=1 takes the fence away, which this test is then to notice.
"""

import datetime
import json
import os
import signal
import threading

import control_plane
import harness
from harness import Process, wait_until

WRITER = os.environ.get("RW_LEASE_WRITER") or str(harness.ROOT / "build" / "tests" / "e2e" / "lease_writer")
ROUNDS = int(os.environ.get("RW_E2E_ROUNDS", "3"))
LEASE_SECONDS = 3  # as lease_writer.cpp has it
COUNTER = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class Versions:
    """Every version of one object, as a watch tells them: (version, object), in their order."""

    def __init__(self, plane, collection, name, since):
        self.seen = []
        self.ended = None
        self._client = plane.client()
        path = f"{collection}?watch=true&fieldSelector=metadata.name={name}&resourceVersion={since}"
        self._answer = self._client.stream(path)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            for line in self._answer:
                event = json.loads(line)
                if event["type"] not in ("ADDED", "MODIFIED"):
                    raise AssertionError(f"the watch says {line[:300]}")
                self.seen.append((int(event["object"]["metadata"]["resourceVersion"]), event["object"]))
            self.ended = "the watch ended"
        except Exception as error:  # told by who waits for a version
            self.ended = self.ended or repr(error)

    def close(self):
        """After the API server has ended, which ends the watch."""
        self._thread.join(10)
        self._answer.close()
        self._client.close()

    def all(self):
        if self.ended:
            raise AssertionError(self.ended)
        return list(self.seen)


class Writer(Process):
    def __init__(self, plane, identity):
        self.identity = identity
        self.said = []
        options = ["--no-fence"] if os.environ.get("RW_E2E_NO_FENCE") else []
        super().__init__(identity, [WRITER, plane.folder / "kubeconfig", identity, *options],
                         on_line=lambda at, line: self.said.append({"at": at, **json.loads(line)}))

    def events(self, *kinds):
        return [said for said in list(self.said) if said["event"] in kinds]


def micro_time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


class Leader(harness.TestCase):
    def setUp(self):
        self.watches = []
        self.addCleanup(lambda: [watch.close() for watch in self.watches])  # after the processes
        super().setUp()
        self.assertTrue(os.access(WRITER, os.X_OK), f"{WRITER} is not there; build it first")
        self.plane = control_plane.ControlPlane(self)
        client = self.plane.client()
        self.addCleanup(client.close)
        made = client.request("POST", COUNTER, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "counter"}})
        since = made["metadata"]["resourceVersion"]
        self.leases = Versions(self.plane, LEASES, "writer", since)
        self.counters = Versions(self.plane, COUNTER, "counter", since)
        self.watches += [self.leases, self.counters]
        self.writers = []

    def new_writer(self):
        writer = self.start(Writer(self.plane, f"writer-{len(self.writers) + 1}"))
        self.writers.append(writer)
        return writer

    # --- what the API server has recorded

    def holders(self):
        """(version, holder, spec) of the Lease, one for each time that the holder changed."""
        changes = []
        for version, lease in self.leases.all():
            holder = lease["spec"].get("holderIdentity") or ""
            if not changes or changes[-1][1] != holder:
                changes.append((version, holder, lease["spec"]))
        return changes

    def writes(self):
        """(version, writer) of each write."""
        return [(version, counter["data"]["writer"]) for version, counter in self.counters.all()]

    def wait_writes(self, writer, count=5):
        """Waits until this process has written that often from now on."""
        before = len(self.counters.all())
        def enough():
            self.assertTrue(writer.running(), writer.tail())
            return sum(name == writer.identity for _, name in self.writes()[before:]) >= count
        wait_until(enough, 60, lambda: f"{writer.identity} writes; {self.holders()[-3:]}\n{writer.tail()}")

    def wait_leader(self):
        """The process that wrote last, and the other one."""
        wait_until(self.writes, 60, lambda: "somebody writes" + "".join("\n" + w.tail() for w in self.writers))
        last = self.writes()[-1][1]
        running = [w for w in self.writers if w.running()]
        leader = next(w for w in running if w.identity == last)
        return leader, next(w for w in running if w is not leader)

    def check(self):
        """Every write was made while its writer held the Lease, and nobody took the Lease too early.

        Versions of all objects come from one counter (etcd's revision), so they can be compared.
        """
        told = {int(said["version"]) for w in self.writers for said in w.events("wrote")}
        # What a writer says and what the watch says are read by two threads.
        wait_until(lambda: told <= {version for version, _ in self.writes()}, 10, "the watch has all writes", every=0.02)
        writes = self.writes()
        holders = self.holders()
        at = -1
        for version, writer in writes:
            while at + 1 < len(holders) and holders[at + 1][0] < version:
                at += 1
            self.assertGreaterEqual(at, 0, f"{writer} wrote version {version} before there was a Lease")
            since, holder, _ = holders[at]
            self.assertEqual(writer, holder, f"{writer} wrote version {version}, {holder!r} has held the Lease since {since}")
        leases = [lease["spec"] for _, lease in self.leases.all()]
        for before, after in zip(leases, leases[1:]):
            if before.get("holderIdentity") and before["holderIdentity"] != after.get("holderIdentity") and after.get("holderIdentity"):
                idle = (micro_time(after["acquireTime"]) - micro_time(before["renewTime"])).total_seconds()
                self.assertGreaterEqual(idle, LEASE_SECONDS, "a lease was taken before it was over")
        return len(holders), len(writes)

    # --- what happens to leaders

    def freeze(self):
        """Stops the leader until the other has led for a while, and lets it go on."""
        leader, other = self.wait_leader()
        count = len(leader.events("wrote"))
        wait_until(lambda: len(leader.events("wrote")) > count, 60, lambda: f"a write is answered:\n{leader.tail()}", every=0.001)
        heard = len(leader.said)
        leader.send(signal.SIGSTOP)
        try:
            self.wait_writes(other)
        finally:
            leader.send(signal.SIGCONT)
        wait_until(lambda: any(said["event"] in ("fenced", "over") for said in leader.said[heard:]), 60,
                   lambda: f"{leader.identity} finds that it leads no more:\n{leader.tail()}")
        self.wait_writes(other, 25)
        wait_until(lambda: len(leader.events("over")) == len(leader.events("leading")), 60,
                   lambda: f"{leader.identity} ends its term:\n{leader.tail()}")
        return sum(said["event"] == "fenced" for said in leader.said[heard:])

    def test_only_who_holds_the_lease_writes(self):
        self.new_writer()
        self.wait_writes(self.writers[0])
        self.new_writer()
        fenced = [self.freeze() for _ in range(ROUNDS)]
        self.check()

        leader, other = self.wait_leader()
        leader.send(signal.SIGTERM)
        self.assertEqual(leader.wait(30), 0, leader.tail())
        self.wait_writes(other)
        self.assertEqual([holder for _, holder, _ in self.holders()][-3:], [leader.identity, "", other.identity],
                         "who ends in order gives the Lease back")
        self.check()

        heir = self.new_writer()
        self.wait_writes(other)
        other.send(signal.SIGKILL)
        self.wait_writes(heir)
        self.assertEqual([holder for _, holder, _ in self.holders()][-2:], [other.identity, heir.identity])
        handovers, writes = self.check()
        self.note(f"{writes} writes, {handovers} holders; after each thaw {fenced} writes were held back")


if __name__ == "__main__":
    control_plane.assets()
    harness.main()
