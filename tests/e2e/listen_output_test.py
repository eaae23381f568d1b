"""`listen` in front of a reader that stalls: it goes on answering, asks senders to come again when its queue is full, and
every accepted event is written or reported as not written."""

import http.client
import json
import signal
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import harness
from harness import BINARY, Pki, wait_until

COMPONENT = "lifecycle-manager"
BATCH = 512


class Stalled:
    """A listener whose standard output nobody reads until `read` is called."""

    def __init__(self, folder, pki, *options):
        self.pki = pki
        self.header = self.header_of("runtime-1")
        self.errors = open(folder / "stderr.log", "w+")
        self.popen = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", BINARY, "listen", "--address", "127.0.0.1:0", "--metrics-address",
             "127.0.0.1:0", "--component", COMPONENT, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors)
        self.lines = []
        self.reader = None
        self.sent = 0
        self.accepted = set()
        self.port, self.admin = self.listening("listener"), self.listening("admin")

    def header_of(self, runtime):
        certificate, _ = self.pki.issue("client", runtime, cn=runtime, san=None)
        return "Cert=" + urllib.parse.quote(certificate.read_text(), safe="")

    def records(self, msg):
        with open(self.errors.name) as log:
            found = [json.loads(line) for line in log if line.startswith("{") and line.endswith("}\n")]
        return [record for record in found if record["msg"] == msg]

    def listening(self, server):
        def look():
            return [r for r in self.records("listening") if r["server"] == server]
        return int(wait_until(look, 20, f"{server} listens")[0]["address"].rpartition(":")[2])

    def send(self, count, header=None):
        """Sends a batch of new objects of runtime-1, unless another header names the runtime; returns the status, the header
        Retry-After and how long the answer took."""
        names = [f"object-{self.sent + i}" for i in range(count)]
        self.sent += count
        events = [{"watched": {"Namespace": "load", "Name": name},
                   "watchedGvk": {"group": "", "version": "v1", "kind": "ConfigMap"}} for name in names]
        begun = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("POST", f"/v2/{COMPONENT}/events", json.dumps(events),
                           {"x-forwarded-client-cert": header or self.header})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        failed = {element["index"] for element in json.loads(body)} if answer.status == 207 else set()
        if answer.status in (200, 207):
            self.accepted |= {name for i, name in enumerate(names) if i not in failed}
        return answer.status, answer.getheader("Retry-After"), time.monotonic() - begun

    def resync(self, reason):
        """Returns the status and the header of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("POST", f"/v2/{COMPONENT}/events", "[]", {"x-forwarded-client-cert": self.header, "watch-resync": reason})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status, answer.getheader("watch-resync")

    def fill(self):
        """Sends until the listener asks to come again."""
        for _ in range(100):
            status, again, took = self.send(BATCH)
            if status != 200:
                return status, again, took
        raise AssertionError("it takes events without end")

    def healthy_within(self):
        begun = time.monotonic()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/healthz", timeout=5) as answer:
            assert answer.status == 200
        return time.monotonic() - begun

    def read(self):
        def run():
            for line in self.popen.stdout:
                self.lines.append(line)
        self.reader = threading.Thread(target=run, daemon=True)
        self.reader.start()

    def written(self):
        """The names of all whole lines, once the process has ended."""
        self.reader.join(10)
        return {json.loads(line)["watched"]["name"] for line in self.lines if line.endswith(b"\n")}

    def kill(self):
        self.popen.kill()
        self.popen.wait()
        if self.reader:
            self.reader.join(10)
        self.popen.stdout.close()
        self.errors.close()

    def tail(self):
        with open(self.errors.name) as log:
            return log.read()[-2000:]


class ListenOutput(harness.TestCase):
    def listener(self, *options):
        return self.start(Stalled(self.folder, Pki(self.folder / "pki"), *options))

    def test_full_queue_answers_503_and_health_checks_go_on(self):
        listener = self.listener()
        status, again, took = listener.fill()
        self.assertIn(status, (207, 503))
        self.assertEqual(again, "1")
        # The process may take what its pipe has room for, once more.
        wait_until(lambda: listener.send(1)[:2] == (207, "1"), 10, "the queue is full again")
        self.assertLess(took, 3)
        self.note(f"{len(listener.accepted)} events accepted; refused after {took:.2f} s; "
                  f"/healthz within {1000 * listener.healthy_within():.0f} ms")
        self.assertLess(listener.healthy_within(), 1)
        listener.read()
        wait_until(lambda: listener.send(1)[0] == 200, 10, "events are taken again")
        listener.popen.send_signal(signal.SIGTERM)
        self.assertEqual(listener.popen.wait(10), 0, listener.tail())
        self.assertEqual(listener.written(), listener.accepted)

    def test_runtime_that_floods_is_refused_and_another_never(self):
        listener = self.listener()
        other = listener.header_of("runtime-2")
        refused, stop = [], threading.Event()
        def flood():
            while not stop.is_set():
                refused.append(listener.send(BATCH)[:2])
        flooding = [threading.Thread(target=flood) for _ in range(4)]
        for each in flooding:
            each.start()
        try:
            wait_until(lambda: (207, "1") in refused, 30, "the share of the runtime that floods is full")
            self.assertEqual({listener.send(1, other)[:2] for _ in range(200)}, {(200, None)})
        finally:
            stop.set()
            for each in flooding:
                each.join()
        self.note(f"{len(refused)} batches of the runtime that floods")
        listener.read()
        listener.popen.send_signal(signal.SIGTERM)
        self.assertEqual(listener.popen.wait(30), 0, listener.tail())
        self.assertEqual(listener.written(), listener.accepted)

    def test_unwritten_events_are_reported_within_the_drain_time(self):
        listener = self.listener("--drain-timeout", "2s")
        listener.fill()
        asked = time.monotonic()
        listener.popen.send_signal(signal.SIGTERM)
        code = listener.popen.wait(10)
        ended = time.monotonic() - asked
        reported = listener.records("events not written to standard output")
        listener.read()
        written = listener.written()
        self.note(f"ended with {code} after {ended:.1f} s: {len(written)} written, {reported}")
        self.assertEqual(code, 1)
        self.assertLess(ended, 3)
        self.assertTrue(written <= listener.accepted)
        self.assertEqual(len(reported), 1, listener.tail())
        self.assertEqual(reported[0]["events"] + len(written), len(listener.accepted))

    def test_reader_that_goes_on_while_draining_gets_everything(self):
        listener = self.listener("--drain-timeout", "20s")
        listener.fill()
        listener.popen.send_signal(signal.SIGTERM)
        wait_until(lambda: listener.records("stopping: no new events"), 5, "it stops")
        listener.read()
        self.assertEqual(listener.popen.wait(15), 0, listener.tail())
        self.assertEqual(listener.written(), listener.accepted)

    def test_resyncs_are_lines_while_the_queue_is_full_for_events(self):
        listener = self.listener("--resyncs")
        listener.fill()
        for reason in ("watch-back", "started", "dropped", "of-a-later-version"):
            self.assertEqual(listener.resync(reason), (200, "taken"))
        self.assertEqual(listener.resync("Dropped"), (400, None))
        listener.read()
        listener.popen.send_signal(signal.SIGTERM)
        self.assertEqual(listener.popen.wait(30), 0, listener.tail())
        listener.reader.join(10)
        lines = [json.loads(line) for line in listener.lines]
        resyncs = [line for line in lines if "resync" in line]
        # The output stalls: how many are taken before is not known.
        self.assertIn([line["resync"] for line in resyncs], (["dropped"], ["watch-back", "dropped"]))
        self.assertEqual(resyncs[0], {"component": COMPONENT, "runtimeId": "runtime-1", "resync": resyncs[0]["resync"]})
        self.assertEqual({line["watched"]["name"] for line in lines if "watched" in line}, listener.accepted)

    def test_resync_is_not_taken_without_the_flag(self):
        listener = self.listener()
        self.assertEqual(listener.resync("dropped"), (404, None))

    def test_reader_that_has_gone_ends_the_process_with_an_error(self):
        listener = self.listener()
        listener.popen.stdout.close()
        listener.send(1)
        self.assertEqual(listener.popen.wait(10), 1)
        told = wait_until(lambda: listener.records("events not written to standard output"), 5, listener.tail)
        self.assertIn("cannot write events to standard output", listener.tail())
        self.assertEqual(told[0]["events"], len(listener.accepted))


if __name__ == "__main__":
    harness.main()
