"""The recorded AdmissionReviews of deploy/samples cause exactly the events that the table there says."""

import re

import harness
from harness import ROOT, EventLog, Listener, Pki, Webhook, runtime_watcher, wait_until

SAMPLES = ROOT / "deploy" / "samples"
MANAGER = "lifecycle-manager"


def table():
    """(file, event as "Kind namespace/name" or "none") of each row."""
    rows = re.findall(r"^\| (\d+-\S+) \|.*\| ([^|]+) \|$", (SAMPLES / "README.md").read_text(), flags=re.MULTILINE)
    return [(name, event.strip()) for name, event in rows]


class Samples(harness.TestCase):
    def replay(self, *files, path=f"/validate/{MANAGER}"):
        return runtime_watcher("replay", "--address", f"localhost:{self.webhook.port}", "--path", path, "--ca-cert", self.pki.ca, *files)

    def test_reviews_are_allowed_and_cause_their_events(self):
        rows = table()
        self.assertEqual({name for name, _ in rows}, {path.name for path in SAMPLES.glob("*.json")})
        pki = self.pki = Pki(self.folder / "pki")
        events = EventLog()
        listener = self.start(Listener(events, MANAGER, tls=pki.issue("server", "gateway"), client_ca=pki.ca))
        certificate, key = pki.issue("webhook", "webhook", cn="runtime-1")
        self.webhook = self.start(Webhook(certificate, key, pki.ca, f"localhost:{listener.port}")).ready()
        expected = []
        for name, event in rows:
            done = self.replay(SAMPLES / name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, rf"/{name}: allowed: [^(]+ \(\d+ us\)\n$")
            self.assertEqual("change accepted for delivery" in done.stdout, event != "none", "it says which review became an event")
            if event != "none":
                expected.append(event)
            wait_until(lambda: len(events.lines) >= len(expected), 10, f"the event of {name}")
        self.check_failures(rows)
        self.assertEqual(self.webhook.terminate(), 0)
        self.assertEqual(self.replay(SAMPLES / rows[0][0]).returncode, 1)
        self.assertEqual(listener.terminate(), 0)
        came = [f"{e['gvk']['kind']} {e['watched']['namespace']}/{e['watched']['name']}" for e in events.events()]
        self.assertEqual(came, expected)

    def check_failures(self, rows):
        """What is no review is not allowed, and the others are posted all the same."""
        other = self.folder / "other.json"
        other.write_text("{}")
        unchanged = SAMPLES / next(name for name, event in rows if event == "none")
        done = self.replay(other, unchanged)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stdout, r"other\.json: status 4\d\d \(\d+ us\)\n.*: allowed")
        self.assertEqual(self.replay(self.folder / "missing.json").returncode, 2)


if __name__ == "__main__":
    harness.main()
