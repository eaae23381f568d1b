"""The recorded AdmissionReviews of deploy/samples cause exactly the events that the table there says."""

import json
import re
import ssl
import urllib.request

import harness
from harness import ROOT, EventLog, Listener, Pki, Webhook, wait_until

SAMPLES = ROOT / "deploy" / "samples"
MANAGER = "lifecycle-manager"


def table():
    """(file, event as "Kind namespace/name" or "none") of each row."""
    rows = re.findall(r"^\| (\d+-\S+) \|.*\| ([^|]+) \|$", (SAMPLES / "README.md").read_text(), flags=re.MULTILINE)
    return [(name, event.strip()) for name, event in rows]


class Samples(harness.TestCase):
    def post(self, name):
        request = urllib.request.Request(f"https://localhost:{self.webhook.port}/validate/{MANAGER}",
                                         (SAMPLES / name).read_bytes(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10, context=self.trust) as answer:
            return json.load(answer)

    def test_each_review_is_allowed_and_causes_its_event(self):
        rows = table()
        self.assertEqual({name for name, _ in rows}, {path.name for path in SAMPLES.glob("*.json")})
        pki = Pki(self.folder / "pki")
        self.trust = ssl.create_default_context(cafile=pki.ca)
        events = EventLog()
        listener = self.start(Listener(events, MANAGER, tls=pki.issue("server", "gateway"), client_ca=pki.ca))
        certificate, key = pki.issue("webhook", "webhook", cn="runtime-1")
        self.webhook = self.start(Webhook(certificate, key, pki.ca, f"localhost:{listener.port}")).ready()
        expected = []
        for name, event in rows:
            answer = self.post(name)
            self.assertTrue(answer["response"]["allowed"], name)
            if event != "none":
                expected.append(event)
            wait_until(lambda: len(events.lines) >= len(expected), 10, f"the event of {name}")
        self.assertEqual(self.webhook.terminate(), 0)
        self.assertEqual(listener.terminate(), 0)
        came = [f"{e['gvk']['kind']} {e['watched']['namespace']}/{e['watched']['name']}" for e in events.events()]
        self.assertEqual(came, expected)


if __name__ == "__main__":
    harness.main()
