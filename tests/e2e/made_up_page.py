"""The manager's page in headless Chromium, served with states that a test makes up."""

import base64
import hashlib
import http.server
import json
import re
import threading
import time

from browser import Browser
from harness import ROOT, TestCase

PAGE = ROOT / "reactors" / "admin" / "page.html"


def digest_of(element):
    content = re.search(f"<{element}>(.*?)</{element}>", PAGE.read_text(), re.DOTALL)[1]
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


# What the manager sends with the page.
POLICY = (f"default-src 'none'; script-src {digest_of('script')}; style-src {digest_of('style')}; connect-src 'self'; "
          "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
# Expressions for the browser.
ROWS = "[...document.querySelectorAll('#rows .row')]"
CELLS = "[...document.querySelectorAll('#rows .row')].map((row) => [...row.children].map((cell) => cell.innerText))"


def row_of(index, **changes):
    now = int(time.time())
    return {"kyma": f"runtime-{index}", "id": f"id-{index}", "state": "installed", "since": now - 5000, "heartbeat": "live",
            "heard": now - index % 20, "probe": "complete", "lag": index % 90, "oldest": 0, "version": "0.1.0",
            "content": "0123456789abcdef", "certificate": now + 86400 * 30, "losses": 0, "condition": "well", **changes}


def verdict_of(rows):
    """As the leader judges them, in small."""
    ill = [row for row in rows if row.get("condition") == "ill"]
    level = "well" if not ill else "outage" if len(ill) > 0.05 * len(rows) else "degraded"
    causes = [{"reason": reason, "count": sum(row.get("reason") == reason for row in ill), "next": f"mend {reason}",
               "runtimes": [row["kyma"] for row in ill if row.get("reason") == reason][:5]} for reason in sorted({row.get("reason", "Other") for row in ill})]
    return {"level": level, "message": f"{level}: {len(ill)} of {len(rows)} runtimes are ill", "ill": len(ill), "causes": causes}


def state_of(rows, **changes):
    live = sum(row["heartbeat"] == "live" for row in rows)
    return {"now": int(time.time() * 1000), "version": "0.1.0", "conditions": [], "total": len(rows),
            "states": {"installed": len(rows)}, "heartbeats": {"live": live, "silent": len(rows) - live},
            "events": {"accepted": 10, "delivered": 10, "lost": 0, "rejected": 0, "notPersisted": 0, "resyncs": 0,
                       "holding": 0, "oldestMilliseconds": 0},
            "delivery": {"bounds": [0.001, 0.01, 0.1], "counts": [0, 0, 0, 0], "sum": 0},
            "listener": {"requests": 0, "errors": 0, "inflight": 0, "connections": 1}, "channel": {"taken": 0, "size": 0, "capacity": 4096},
            "queue": {"depth": 0, "adds": 0, "retries": 0, "longestSeconds": 0},
            "reconciles": {"total": 0, "errors": 0, "active": 0}, "rotation": {"phase": "settled", "missing": 0},
            "certificates": {"expiring": 0}, "rollouts": [], "warnings": [],
            "verdict": verdict_of(rows), **changes}


class MadeUp(http.server.ThreadingHTTPServer):
    """Serves the page as the manager does, and sends events that the test makes up."""

    daemon_threads = True

    def __init__(self, first):
        super().__init__(("127.0.0.1", 0), Answer)
        self.news = threading.Condition()
        self.events = [("full", first)]
        self.closed = False
        self.is_full = False  # rejects further viewers
        self.leader = ""  # what it responds as a replica that does not lead
        self.details = {}  # of each runtime, beyond its state
        self.history = {}
        self.not_well = {"total": 0, "runtimes": []}  # at any time of the history
        self.asked = []  # of the history
        self.held = {}  # by Kyma: set when its details may be sent
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}/"

    def fill(self, is_full):
        """Ends the viewers and rejects others, or no longer."""
        with self.news:
            self.is_full = is_full
            self.news.notify_all()

    def send(self, name, data):
        with self.news:
            self.events.append((name, data))
            self.news.notify_all()

    def kill(self):
        with self.news:
            self.closed = True
            self.news.notify_all()
        for each in self.held.values():
            each.set()
        self.shutdown()
        self.server_close()

    def tail(self):
        return f"  [made up] {len(self.events)} events"


class Answer(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send_response(421 if self.server.leader else 200)
        self.end_headers()

    def do_GET(self):
        if self.path == "/live":
            return self.send_events()
        if self.path == "/":
            return self.send(PAGE.read_bytes(), "text/html; charset=utf-8")
        if self.path.startswith("/history"):
            self.server.asked.append(self.path)
            return self.send(json.dumps(self.server.not_well if "?" in self.path else self.server.history).encode(), "application/json")
        if self.server.leader:
            return self.send(json.dumps({"leads": False, "message": self.server.leader}).encode(), "application/json", 421)
        kyma = self.path.partition("kyma=")[2]
        if kyma in self.server.held:
            self.server.held[kyma].wait(30)
        return self.send(json.dumps({"runtimes": [{"kyma": kyma, "state": "installed", **self.server.details}]}).encode(), "application/json")

    def send(self, body, kind, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def send_events(self):
        if self.server.is_full:
            self.send_response(421 if self.server.leader else 503)
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        sent = 0
        while not self.server.closed and not self.server.is_full:
            with self.server.news:
                self.server.news.wait_for(lambda: self.server.closed or self.server.is_full or len(self.server.events) > sent)
                events, sent = self.server.events[sent:], len(self.server.events)
            for name, data in events:
                self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())


def give_history(server):
    """Of a leader that has seen the last two hours, without ten minutes of them. Returns the last minute."""
    last = int(time.time()) // 60 * 60
    columns = ["at", "level", "well", "ill", "underWay", "unknown", "leftOut", "accepted", "delivered", "batches", "requests", "taken", "adds", "reconciles"]
    minutes = [[at, 2 if at == last - 3600 else 0, 39, int(at >= last - 4020), 0, 0, 0, *range(101, 108)] for at in range(last - 7200, last + 60, 60)
               if not last - 1800 <= at < last - 1200]
    server.history = {"since": last - 7200, "runtimesSince": last - 7200, "levels": ["well", "degraded", "outage", "unknown"], "columns": columns,
                      "minutes": minutes, "changes": [{"at": last - 5000, "subject": "roll-out watcher", "state": "Paused", "cause": "CanaryFailed"},
                                                      {"at": last - 600, "subject": "roll-out watcher", "state": "Completed"}]}
    server.not_well = {"runtimesSince": last - 7200, "total": 1, "runtimes": [
        {"kyma": "runtime-7", "condition": "ill", "reason": "NoHeartbeat", "at": last - 4000}]}
    server.details = {"nextStep": "see the gateway",
                      "heartbeat": {"state": "live", "deliveryMilliseconds": 12, "probe": {"stage": "gateway", "reason": "GatewayUnreachable"}},
                      "transitions": [{"at": last - 300, "condition": "well"}, {"at": last - 4000, "condition": "ill", "reason": "NoHeartbeat"}]}
    return last


class PageTest(TestCase):
    browser = None

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.kill)

    def setUp(self):
        super().setUp()
        self.browser.open("about:blank")
        self.browser.prefer("light")
        self.browser.console()
        self.browser.origins()

    def open(self, address):
        self.browser.open(address)
        self.address = address
        self.browser.wait("document.querySelector('#connection').innerText === '● live'", "the page is live")

    def check_quiet(self):
        """Nothing in the console, and no request to another origin."""
        self.assertEqual(self.browser.console(), [])
        self.assertEqual(self.browser.origins(), {self.address.rstrip("/")})

    def names(self):
        return self.browser.run(f"return {CELLS}.map((cells) => cells[0])")

    def serve(self, rows, **changes):
        server = self.start(MadeUp({**state_of(rows, **changes), "rows": rows}))
        self.open(server.address)
        return server
