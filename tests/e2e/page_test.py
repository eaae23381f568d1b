#!/usr/bin/env python3
"""The manager's page in headless Chromium: of a real manager (`dev`), and with states that a test makes up, such as 5,000
runtimes of which some are ill and hostile. RW_AXE names axe-core (tests/provide-axe.sh), which looks for barriers.
"""

import base64
import hashlib
import http.server
import json
import os
import pathlib
import re
import threading
import time
import unittest
import urllib.request

from browser import Browser, need_browser
from dev import CONFIGURATION, WATCHED, Dev
from harness import ROOT, TestCase, main, wait_until

need_browser()

from selenium.webdriver.common.keys import Keys  # noqa: E402

PAGE = ROOT / "reactors" / "admin" / "page.html"


def digest_of(element):
    content = re.search(f"<{element}>(.*?)</{element}>", PAGE.read_text(), re.DOTALL)[1]
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


# What the manager sends with the page.
POLICY = (f"default-src 'none'; script-src {digest_of('script')}; style-src {digest_of('style')}; connect-src 'self'; "
          "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
# What an expression below may use.
ROWS = "[...document.querySelectorAll('#rows .row')]"
CELLS = "[...document.querySelectorAll('#rows .row')].map((row) => [...row.children].map((cell) => cell.innerText))"
# The least contrast of texts with what is behind them (WCAG 2.1, 1.4.3), by the page's computed colours.
CONTRAST = """
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = (color) => parts(color).slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      if ((parts(color)[3] ?? 1) === 1) return color;
    }
    return "rgb(255, 255, 255)";
  };
  let least = [99, ""];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!own || !node.offsetParent || ["SCRIPT", "STYLE"].includes(node.tagName)) continue;
    const [light, dark] = [luminance(getComputedStyle(node).color), luminance(behind(node))].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < least[0]) least = [ratio, node.outerHTML.slice(0, 120)];
  }
  return least;
"""


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


class WithManager(PageTest):
    def check_transitions(self, page):
        """From its first state on, the latest transition of a runtime is into the condition that is told with it."""
        told = []
        def well():
            with urllib.request.urlopen(f"{page}runtimes?kyma=runtime-3", timeout=10) as answer:
                [row] = json.load(answer)["runtimes"]
            told.append(row["condition"])
            if row["condition"] != "unknown":  # which it is before it is looked at
                self.assertEqual(row["transitions"][0]["condition"], row["condition"])
            return row["condition"] == "well"
        wait_until(well, 60, lambda: f"it is well: {told[-3:]}", every=0.02)
        self.assertIn("underWay", told)

    def test_page_follows_a_change_on_a_runtime(self):
        dev = self.start(Dev(self.folder / "dev", 8, "--bootstrapper-mode", "direct")).wait_up()
        page = f"http://127.0.0.1:{dev.wait_listening('dev-admin')}/"
        self.check_transitions(page)
        self.open(page)
        self.browser.wait(f"{CELLS}.filter((cells) => cells[1] === '✓ installed' && cells[2] === '✓ live').length === 8",
                          "8 runtimes are live", timeout=40)
        self.assertEqual(self.names(), [f"runtime-{i}" for i in range(1, 9)])
        self.assertEqual(self.browser.run("return fetch('/').then((page) => page.headers.get('content-security-policy'))"), POLICY)
        self.assertIn(" · 8 runtimes", self.browser.text("#role"))
        self.assertEqual(self.browser.texts("#stages h3"), ["Runtimes", "Webhooks", "Gateway", "Listener", "Channel", "Queue", "Reconcile"])
        self.assertEqual(self.browser.text("#phases [aria-current]"), "settled")
        self.assertIn("watcher", self.browser.text("#rollouts"))

        rate = "parseFloat(document.querySelectorAll('#stages li')[6].querySelector('.value').innerText)"
        self.browser.wait(f"{rate} === 0", "the reconciles of the start are over", timeout=60)
        ended = self.browser.run("return latest.reconciles.total")
        requests = self.browser.run("return latest.listener.requests")
        dev.skr("runtime-3").patch(WATCHED, {"spec": {"channel": "fast"}})
        self.browser.wait("latest.listener.requests > arguments[0]", "the page counts the request", requests)
        # The event alone causes none, as drift watches are live from the start.
        dev.skr("runtime-3").delete(CONFIGURATION)
        self.browser.wait("latest.reconciles.total > arguments[0]", "the page counts the reconcile", ended)
        self.browser.wait(f"{rate} > 0", "the stage shows a rate")
        heard = self.browser.run("return rows.get('runtime-3').heard")
        self.browser.wait("rows.get('runtime-3').heard > arguments[0]", "the next heartbeat comes without a reload", heard, timeout=90)

        # Details of a runtime, by keyboard alone.
        self.browser.run("document.querySelector('#table').focus()")
        self.browser.press(Keys.HOME, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
        self.browser.wait("document.querySelector('#details').open", "Enter opens the details")
        self.browser.wait("document.querySelector('#details-body').innerText.includes('runtime id')", "they are read")
        self.assertRegex("\n".join(self.browser.texts(".events li")), r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: WatcherInstalled: ", "its events are shown")
        self.assertIn(" of the RuntimeBootstrapper: ", "".join(self.browser.texts(".events li")), "and those of what belongs to it")
        self.assertLessEqual(len(self.browser.run("return latest.warnings")), 2, "a start that goes well is nothing to warn of")
        self.assertEqual(self.browser.text("#details-title"), "runtime-3")
        self.browser.press(Keys.ESCAPE)
        self.browser.wait("!document.querySelector('#details').open", "Escape closes them")
        self.check_quiet()

        # It says so when the manager is gone.
        dev.kill()
        self.browser.wait("document.querySelector('#connection').innerText.includes('does not respond; last update')", "the loss is shown")
        self.browser.wait("document.body.classList.contains('stale')", "what is shown looks old")
        self.assertRegex(self.browser.text("#headline"), "^■ unknown: no leader: ")


class WithStates(PageTest):
    def serve(self, rows, **changes):
        server = self.start(MadeUp({**state_of(rows, **changes), "rows": rows}))
        self.open(server.address)
        return server

    def test_search_and_filters_narrow_the_table(self):
        rows = [row_of(i) for i in range(1, 41)]
        rows[6].update(heartbeat="silent", condition="ill", reason="NoHeartbeat", message="none for 60 s; look at the pod")
        self.serve(rows)
        self.assertEqual(self.names()[:3], ["runtime-7", "runtime-1", "runtime-2"], "the ill come first")
        self.assertEqual(self.browser.text("#headline"), "▲ degraded: 1 of 40 runtimes are ill")
        self.assertEqual(self.browser.text("#causes"),
                         "NoHeartbeat: 1: runtime-7\nmend NoHeartbeat\nruntime-watcher doctor --runtime runtime-7\nCopy command")
        self.assertEqual(self.browser.run("return document.title"), "(degraded) Runtime Watcher")
        self.browser.press("/")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "search")
        self.browser.press("look at")
        self.browser.wait("visible.length === 1", "the search goes through the reasons")
        self.assertEqual(self.browser.text("#shown"), "1 of 40 runtimes")
        self.browser.press(Keys.ESCAPE)
        self.browser.wait("visible.length === 40", "Escape clears the search")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "table")
        self.browser.click("#filters [data-value='heartbeat=silent']")
        self.browser.wait("visible.length === 1", "the filter leaves one")
        self.assertEqual(self.browser.run("return document.activeElement.getAttribute('aria-pressed')"), "true")
        self.browser.press(Keys.ENTER)
        self.browser.wait("visible.length === 40", "the filter is off again")
        self.check_quiet()

    def test_address_opens_a_runtime_and_narrows_the_table(self):
        rows = [row_of(i) for i in range(1, 41)]
        rows[6].update(heartbeat="silent", condition="ill", reason="NoHeartbeat")
        server = self.start(MadeUp({**state_of(rows), "rows": rows}))
        self.open(f"{server.address}#/runtime/runtime-7?heartbeat=silent&sort=-Lag")
        self.address = server.address
        self.browser.wait("document.querySelector('#details').open", "the link opens the details")
        self.assertEqual(self.browser.text("#details-title"), "runtime-7")
        self.assertEqual(self.names(), ["runtime-7"])
        self.assertEqual(self.browser.run("return document.querySelector('[aria-sort=descending]').innerText"), "Lag ▼")
        self.browser.press(Keys.ESCAPE)
        self.browser.wait("location.hash === '#/?heartbeat=silent&sort=-Lag'", "the address follows")
        self.browser.click("#filters [data-value='heartbeat=silent']")
        self.browser.run("document.querySelector('#search').focus()")
        self.browser.press("time-12")
        self.browser.wait("location.hash === '#/?search=time-12&sort=-Lag'", "what is searched is in the address")
        self.assertEqual(self.names(), ["runtime-12"])
        # A cause names its runtimes, which are links; the browser's way back closes them.
        self.browser.click("#causes a")
        self.browser.wait("document.querySelector('#details').open && location.hash === '#/runtime/runtime-7'", "the link of the cause opens it")
        self.browser.run("window.history.back()")
        self.browser.wait("!document.querySelector('#details').open && location.hash === '#/?search=time-12&sort=-Lag'", "and back")
        self.browser.wait("visible.length === 1 && visible[0].kyma === 'runtime-12'", "to what was searched")
        self.browser.run("location.hash = '#/runtime/%zz?sort=%'")
        self.browser.wait("document.querySelector('#details-title').innerText === '%zz'", "what is malformed does no harm")
        self.check_quiet()

    def serve_history(self, rows):
        server = MadeUp({**state_of(rows), "rows": rows})
        return self.start(server), self.give_history(server)

    @staticmethod
    def give_history(server):
        """Of a leader that has seen the last two hours, without ten minutes of them. Returns the last minute."""
        last = int(time.time()) // 60 * 60
        columns = ["at", "level", "well", "ill", "underWay", "unknown", "leftOut", "accepted", "delivered", "batches", "requests", "taken", "adds", "reconciles"]
        minutes = [[at, 2 if at == last - 3600 else 0, 39, 1, 0, 0, 0, *range(101, 108)] for at in range(last - 7200, last + 60, 60)
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

    def test_slider_shows_a_minute_of_the_last_day_and_the_address_names_it(self):
        server, last = self.serve_history([row_of(i) for i in range(1, 41)])
        self.open(server.address)
        self.browser.wait("!document.querySelector('#memory').hidden", "the history is read")
        self.assertRegex(self.browser.text("#since"), r"kept since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
        begin = float(self.browser.run("return document.querySelector('#strip .begin').getAttribute('x1')"))
        self.assertAlmostEqual(begin, 1440 - 121, delta=2)
        self.assertEqual(self.browser.run("return document.querySelectorAll('#strip rect.bad').length"), 1)
        self.assertEqual(self.browser.run("return document.querySelectorAll('#strip rect').length"), 4, "what is missing is a gap")
        choose = "const at = document.querySelector('#at'); at.value = arguments[0]; at.dispatchEvent(new Event('input'))"
        self.browser.run(choose, last - 3600)
        self.browser.wait("document.querySelector('#not-well a')", "the runtimes of then are read")
        self.assertIn(f"/history?at={last - 3600 + 59}", server.asked)
        self.assertTrue(self.browser.text("#moment").endswith(": outage"), self.browser.text("#moment"))
        self.assertRegex(self.browser.text("#not-well"), "^runtime-7 ill: NoHeartbeat, since ")
        for words in ("ill\n1", "events accepted in this minute\n101", "reconciles in this minute\n107", "roll-out watcher\nPaused: CanaryFailed"):
            self.assertIn(words, self.browser.text("#then-facts"))
        self.assertIsNone(self.browser.run("return document.querySelector('#stages').offsetParent"), "the present is not beside it")
        # A reload shows the same, and so does the link of a runtime of then.
        self.browser.wait(f"location.hash === '#/?at={last - 3600}'", "the address names it")
        self.browser.run("location.reload()")
        self.browser.wait("document.querySelector('#moment')?.innerText.endsWith(': outage')", "after a reload")
        self.browser.wait("document.querySelector('#not-well a')", "and the runtimes of then")
        self.browser.click("#not-well a")
        self.browser.wait(f"location.hash === '#/runtime/runtime-7?at={last - 3600}'", "its link names the minute")
        self.browser.wait("document.querySelector('.transitions .held')", "its transitions are shown")
        self.assertRegex(self.browser.text(".transitions .held"), r"ill: NoHeartbeat \(so it was at ")
        self.browser.press(Keys.ESCAPE)
        # What nobody has seen has no number; the keyboard moves the slider.
        self.browser.run(choose, last - 1500)
        self.browser.wait("document.querySelector('#moment').innerText.endsWith('no leader has seen this minute')", "a gap is one")
        self.assertIn("ill\n–", self.browser.text("#then-facts"))
        self.browser.run(choose, last - 3660)
        self.browser.run("document.querySelector('#at').focus()")
        self.browser.press(Keys.ARROW_RIGHT)
        self.browser.wait("document.querySelector('#moment').innerText.endsWith(': outage')", "a minute on")
        self.browser.click("#present")
        self.browser.wait("location.hash === '#/' && document.querySelector('#stages').offsetParent", "back to the present")
        self.check_quiet()

    def test_details_show_the_way_of_a_runtime_and_a_command_for_the_next_step(self):
        server, _ = self.serve_history([row_of(1, kyma="a")])
        self.open(f"{server.address}#/runtime/a")
        self.address = server.address
        self.browser.wait("document.querySelector('.way')", "the details are read")
        self.assertEqual(self.browser.texts(".way li"), ["✓ API server\n–", "✓ Webhook\n12 ms on average to the listener, by its own clock", "■ Gateway\n–",
                                                         "○ Listener\n–", "○ Reconcile\n–"])
        self.assertEqual(self.browser.text("#details .step code"), "runtime-watcher doctor --runtime a")
        self.assertIn("see the gateway", self.browser.text("#details .step"))
        self.browser.run("window.copied = []; Object.defineProperty(navigator, 'clipboard', {value: {writeText: (text) => copied.push(text)}})")
        self.browser.click("#details .step button")
        self.browser.wait("copied[0] === 'runtime-watcher doctor --runtime a'", "the command is copied")
        self.assertEqual(self.browser.text("#details .step button"), "Copied")
        self.assertEqual(self.browser.run("return quoted(arguments[0])", "a';b"), r"'a'\'';b'", "a name is no command")
        self.check_quiet()

    def test_details_show_the_latest_events_of_a_runtime_as_text(self):
        server = self.serve([row_of(1)])
        at = int(time.time()) // 60 * 60
        evil = "<img src=x onerror=alert(1)>"
        server.details = {"events": [
            {"at": at, "type": "Warning", "reason": "WatcherSilent", "message": evil, "about": "Kyma", "count": 3},
            {"at": at - 60, "type": "Normal", "reason": "BootstrapperInstalled", "message": "m", "about": "RuntimeBootstrapper"}]}
        self.browser.run("location.hash = '#/runtime/runtime-1'")
        self.browser.wait("document.querySelector('.events')", "the details are read")
        first, second = self.browser.texts(".events li")
        self.assertTrue(first.endswith(f": ▲ WatcherSilent (3 times): {evil}"), first)
        self.assertTrue(second.endswith(": BootstrapperInstalled of the RuntimeBootstrapper: m"), second)
        self.assertNotIn("[object Object]", self.browser.text("#details-body"))
        server.details = {}
        self.browser.press(Keys.ESCAPE)
        self.browser.wait("!document.querySelector('#details').open && !location.hash.includes('runtime-1')", "they are closed")
        self.browser.run("location.hash = '#/runtime/runtime-1'")
        self.browser.wait("document.querySelector('#details-body dl') && !document.querySelector('.events')", "without events there is no heading")
        self.check_quiet()

    def test_details_have_words(self):
        server = self.serve([row_of(1)])
        server.details = {"runtimeId": "id-1", "authorities": 2, "heartbeat": {"state": "live", "abandonedEvents": 3},
                          "notConverged": {"fault": "tenant"}}
        self.browser.run("location.hash = '#/runtime/runtime-1'")
        self.browser.wait("document.querySelector('#details dl')", "the details are read")
        text = self.browser.text("#details-body")
        for words in ("runtime id\nid-1", "CAs that it trusts\n2", "Heartbeats", "state\nlive", "abandoned events\n3", "whose fault\nthe runtime's"):
            self.assertIn(words, text)
        self.check_quiet()

    def test_columns_sort_both_ways(self):
        self.serve([row_of(i) for i in range(1, 101)])
        self.assertEqual(self.names()[8:11], ["runtime-9", "runtime-10", "runtime-11"], "numbers count")
        lag = "#heads [role=columnheader]:nth-child(6)"
        self.browser.click(f"{lag} button")
        self.assertEqual(self.browser.run(f"return document.querySelector('{lag}').getAttribute('aria-sort')"), "ascending")
        self.assertEqual(self.names()[0], "runtime-90")
        self.browser.press(Keys.ENTER)
        self.assertEqual(self.browser.run(f"return document.querySelector('{lag}').getAttribute('aria-sort')"), "descending")
        self.assertEqual(self.names()[0], "runtime-89")
        self.assertEqual(len(self.browser.run("return [...document.querySelectorAll('[aria-sort]:not([aria-sort=none])')]")), 1)
        self.check_quiet()

    def test_five_thousand_runtimes_stay_smooth(self):
        rows = [row_of(i) for i in range(1, 5001)]
        server = self.serve(rows)
        self.browser.wait("visible.length === 5000", "all are there")
        self.assertEqual(self.browser.run("return document.querySelector('#table').getAttribute('aria-rowcount')"), "5001")
        self.assertLess(self.browser.run(f"return {ROWS}.length"), 200, "only what is seen is in the document")
        self.browser.run("document.querySelector('#table').focus()")
        self.browser.press(Keys.END)
        self.browser.wait(f"{CELLS}.some((cells) => cells[0] === 'runtime-5000')", "End shows the last row")
        self.assertEqual(self.browser.run("return document.getElementById(document.querySelector('#table')"
                                          ".getAttribute('aria-activedescendant')).getAttribute('aria-rowindex')"), "5001")
        # 250 rows a second, while the table scrolls: the frames between must come.
        self.browser.run("""
          window.gaps = []; let last = performance.now(); let step = 0;
          const frame = (time) => { gaps.push(time - last); last = time;
            document.querySelector('#table').scrollTop = (++step * 97) % 130000; requestAnimationFrame(frame); };
          requestAnimationFrame(frame);""")
        for second in range(6):
            changed = [row_of(i, lag=500 + second) for i in range(1 + second * 250, 251 + second * 250)]
            rows[second * 250:(second + 1) * 250] = changed
            server.send("update", {**state_of(rows), "rows": changed, "gone": []})
            self.browser.wait("rows.get(arguments[0]).lag === arguments[1]", "the update is taken", changed[0]["kyma"], 500 + second)
            self.browser.wait("gaps.length > arguments[0]", "frames come", 30 * (second + 1))
        gaps = sorted(self.browser.run("return gaps"))
        self.note(f"{len(gaps)} frames, median {gaps[len(gaps) // 2]:.0f} ms, longest {gaps[-1]:.0f} ms")
        self.assertLess(gaps[len(gaps) // 2], 100)
        self.assertLess(sum(gap > 250 for gap in gaps), len(gaps) / 20, "frames are rarely late")
        server.send("update", {**state_of(rows[:-1]), "rows": [], "gone": ["runtime-5000"]})
        self.browser.wait("visible.length === 4999", "a runtime that is gone goes")
        self.check_quiet()

    def test_texts_of_runtimes_are_shown_as_text(self):
        evil = "<img src=x onerror=window.owned=1><script>window.owned=1</script>"
        rows = [row_of(1, kyma="a", id=evil, reason=evil, message=evil, version=evil, content=evil, probeReason=evil,
                       heartbeat=evil, state=evil)]
        self.serve(rows, conditions=[{"type": evil, "reason": evil, "message": evil}], states={evil: 1}, heartbeats={evil: 1},
                   rotation={"phase": evil, "missing": 1, "waiting": evil}, notReady=[evil],
                   rollouts=[{"component": evil, "phase": evil, "reason": evil, "message": evil, "counts": {evil: 1}}],
                   warnings=[{"time": evil, "level": evil, "msg": evil, evil: evil}])
        self.browser.wait(f"{CELLS}[0]?.at(-1).includes('<script>')", "it is text")
        self.assertEqual(self.browser.run("return [window.owned ?? null, document.querySelectorAll('main img, main script').length]"), [None, 0])
        self.check_quiet()

    def test_full_state_replaces_all_rows(self):
        server = self.serve([row_of(i) for i in range(1, 6)])
        self.assertEqual(len(self.names()), 5)
        server.send("full", {**state_of([]), "rows": []})
        self.browser.wait("document.querySelectorAll('#rows .row').length === 0", "no row is left")
        self.assertEqual(self.browser.text("#shown"), "0 runtimes")
        self.assertEqual(self.browser.text("#headline"), "✓ well: 0 of 0 runtimes are ill")

    def test_unknown_states_are_not_well(self):
        rows = [row_of(i, state="unknown", heartbeat="unknown", condition="unknown") for i in range(1, 6)]
        unknown = {"level": "unknown", "message": "unknown: 5 are not looked at yet", "unknown": 5, "causes": []}
        server = self.serve(rows, states={"unknown": 5}, heartbeats={"unknown": 5}, verdict=unknown)
        self.assertEqual(self.browser.text("#headline"), "■ unknown: 5 are not looked at yet")
        self.assertEqual(self.browser.texts("#stages .level")[0], "○ not reported")
        unknown["message"] = "unknown: no leader: this replica does not lead"
        server.send("update", {**state_of(rows, verdict=unknown), "rows": [], "gone": []})
        self.browser.wait("document.querySelector('#headline').innerText === arguments[0]", "it says so", f"■ {unknown['message']}")

    def test_landscape_that_is_well_with_ill_runtimes_is_amber_and_names_them(self):
        rows = [row_of(1, condition="ill", reason="EventsWait"), row_of(2)]
        cause = {"reason": "EventsWait", "count": 1, "runtimes": ["runtime-1"], "next": "see it", "message": "klm does not accept them"}
        verdict = {"level": "well", "message": "well: 1 of 2 runtimes are ill (50 %): runtime-1", "ill": 1, "causes": [cause]}
        server = self.serve(rows, verdict=verdict)
        self.assertEqual(self.browser.text("#headline"), f"▲ {verdict['message']}")
        self.assertEqual(self.browser.run("return document.querySelector('#verdict').className"), "card warning")
        self.assertEqual(self.browser.texts("#stages .level")[0], "▲ 1 ill")
        self.assertTrue(self.browser.texts("#causes li")[0].startswith("EventsWait: 1: runtime-1: klm does not accept them"))
        server.send("update", {**state_of(rows, verdict={**verdict, "ill": 0, "causes": []}), "rows": [], "gone": []})
        self.browser.wait("document.querySelector('#verdict').className === 'card ok'", "it is green without any")

    def test_page_of_a_replica_that_no_longer_leads_names_the_leader(self):
        server = self.serve([row_of(1)])
        server.leader = "this replica does not lead, pod manager-2 does: kubectl -n kcp-system port-forward pod/manager-2 8080"
        server.fill(True)
        self.browser.wait("document.querySelector('#connection').innerText.includes(arguments[0])", "it says who leads", server.leader)

    def test_verdict_without_a_recent_word_of_the_leader_is_unknown(self):
        self.serve([row_of(1)])
        self.assertEqual(self.browser.text("#headline"), "✓ well: 0 of 1 runtimes are ill")
        self.browser.run("const real = Date.now; Date.now = () => real() + 61000; showVerdict()")
        self.assertEqual(self.browser.text("#headline"), "■ unknown: no leader: its last word is 61 s old")
        self.assertEqual(self.browser.run("return document.title"), "(unknown) Runtime Watcher")

    def test_hidden_page_takes_no_place_of_a_viewer(self):
        self.serve([row_of(1)])
        self.browser.run("Object.defineProperty(document, 'hidden', {value: true, configurable: true}); onVisibility()")
        self.assertEqual(self.browser.run("return source.readyState"), 2)
        self.browser.run("Object.defineProperty(document, 'hidden', {value: false}); onVisibility()")
        self.browser.wait("source.readyState === 1", "it is connected again")

    def test_members_that_are_omitted_are_unknown(self):
        full = state_of([row_of(1)])
        optional = [name for name in full if name not in ("now", "version", "total", "states")]
        for omitted in [*([name] for name in optional), optional]:
            with self.subTest(omitted=omitted):
                self.browser.open("about:blank")
                self.browser.origins()
                server = self.start(MadeUp({**{k: v for k, v in full.items() if k not in omitted}, "rows": [row_of(1), {"kyma": "b"}]}))
                self.open(server.address)
                self.browser.wait(f"{CELLS}.length === 2", "the table is shown")
                self.assertNotRegex(self.browser.text("body"), r"NaN|undefined|Invalid")
                if "heartbeats" in omitted:
                    self.assertEqual(self.browser.texts("#stages .level")[0], "○ not reported")
                self.check_quiet()
        self.assertEqual(set(self.browser.texts("#stages .level")), {"○ not reported"})
        self.assertEqual({text.split()[0] for text in self.browser.texts("#stages .value")}, {"–"})

    def test_unusual_values_are_readable(self):
        past = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
        self.serve([row_of(1)], channel={"size": 0, "capacity": 0}, warnings=[{"level": "warning", "msg": "no time"}],
                   rollouts=[{"component": "watcher"}], certificates={"earliest": 1000, "earliestRuntime": "runtime-1", "expiring": 1},
                   rotation={"phase": "distributing", "missing": 1, "deadline": past, "next": past})
        self.assertNotRegex(self.browser.text("body"), r"NaN|undefined|Invalid|expired left|in expired")
        self.assertIn("expired (runtime-1)", self.browser.text("#rotation"))
        self.check_quiet()

    def test_page_connects_again_when_a_place_for_a_viewer_is_free(self):
        server = self.serve([row_of(1)])
        self.browser.run("""window.announced = [];
          new MutationObserver(() => announced.push(document.querySelector('#announced').innerText))
            .observe(document.querySelector('#announced'), {childList: true, characterData: true, subtree: true});""")
        server.fill(True)
        self.browser.wait("/serves no more viewers; last update [2-9] s ago/.test(document.querySelector('#connection').innerText)",
                          "the reason is shown, and the age of the state")
        self.assertTrue(self.browser.run("return document.body.classList.contains('stale')"))
        server.fill(False)
        self.browser.wait("document.querySelector('#connection').innerText === '● live'", "it connects again")
        self.assertFalse(self.browser.run("return document.body.classList.contains('stale')"))
        announced = self.browser.run("return announced")
        self.assertEqual(len(announced), len(set(announced)), "announced at a change, not each second")
        self.assertEqual(announced[-1], "live")
        self.assertFalse(self.browser.run("return document.querySelector('#connection').closest('[role=status], [aria-live]') !== null"))

    def test_details_are_those_of_the_runtime_in_the_title(self):
        server = self.serve([row_of(1), row_of(2)])
        server.held["runtime-1"] = threading.Event()
        self.browser.run("""const read = window.fetch; window.ended = 0;
          window.fetch = (...all) => read(...all).finally(() => setTimeout(() => ++ended, 50));""")
        self.browser.run("document.querySelector('#table').focus()")
        self.browser.press(Keys.HOME, Keys.ENTER, Keys.ESCAPE, Keys.ARROW_DOWN, Keys.ENTER)
        self.browser.wait("ended === 1", "the details of the second are read")
        server.held["runtime-1"].set()
        self.browser.wait("ended === 2", "those of the first come late")
        self.assertEqual(self.browser.text("#details-title"), "runtime-2")
        self.assertIn("runtime-2", self.browser.text("#details-body"))
        self.check_quiet()

    def test_states_catch_the_eye(self):
        rows = [row_of(i) for i in range(1, 21)]
        self.serve(rows, notReady=["not in step with KCP: kymas"],
                   verdict={"level": "degraded", "message": "degraded: 20 of 20 runtimes are well", "causes": [
                       {"reason": "RolloutPaused", "message": "the roll-out of watcher is paused (CanaryFailed): runtime-3 crashes", "next": "resume"}]},
                   events={**state_of(rows)["events"], "oldestMilliseconds": 90000, "holding": 3},
                   channel={"taken": 9, "size": 4000, "capacity": 4096},
                   rotation={"phase": "distributing", "missing": 2, "waiting": "2 runtimes", "deadline": "2031-01-01T00:00:00Z"},
                   rollouts=[{"component": "watcher", "phase": "Paused", "reason": "CanaryFailed", "message": "runtime-3 crashes",
                              "counts": {"total": 20, "ready": 1, "failed": 1}}])
        self.assertEqual(self.browser.texts("#stages .level")[1], "■ events wait")
        self.assertEqual(self.browser.texts("#stages .level")[4], "■ full")
        self.assertIn("the roll-out of watcher is paused (CanaryFailed): runtime-3 crashes", self.browser.text("#causes"))
        self.assertIn("not in step", self.browser.text("#notices"))
        self.assertIn("waiting for runtimes", self.browser.text("#phases [aria-current]"))
        self.check_quiet()

    def test_colour_schemes_have_contrast(self):
        rows = [row_of(i) for i in range(1, 21)]
        rows[2].update(heartbeat="silent", reason="NoHeartbeat", probeReason="GatewayUnreachable", state="failed", condition="ill")
        rows[3].update(heartbeat="degraded", state="not_ready", condition="ill")
        colours = set()
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            self.serve(rows, conditions=[{"type": "StandsBack", "reason": "Shadow", "message": "nothing is written"}],
                       warnings=[{"time": "2026-11-23T18:32:42.814Z", "level": "error", "msg": "m", "a": 1}])
            self.browser.run("document.querySelector('#table').focus()")
            self.browser.press(Keys.HOME)
            least, where = self.browser.run(CONTRAST)
            self.assertGreaterEqual(least, 4.5, f"{scheme}: {where}")
            colours.add(self.browser.run("return getComputedStyle(document.body).backgroundColor"))
            self.check_quiet()
        self.assertEqual(len(colours), 2)
        self.browser.click("#theme")
        self.browser.click("#theme")
        self.assertEqual(self.browser.text("#theme"), "Colours: dark")

    @unittest.skipUnless(os.environ.get("RW_AXE"), "RW_AXE does not name axe-core (tests/provide-axe.sh)")
    def test_axe_finds_no_barrier(self):
        rows = [row_of(i) for i in range(1, 21)]
        rows[2].update(heartbeat="silent", reason="NoHeartbeat", probeReason="GatewayUnreachable", state="failed", condition="ill")
        server = self.serve(rows, conditions=[{"type": "StandsBack", "reason": "Shadow", "message": "nothing is written"}],
                            warnings=[{"time": "2026-11-23T18:32:42.814Z", "level": "error", "msg": "m"}],
                            rollouts=[{"component": "watcher", "phase": "Paused", "counts": {"total": 20, "ready": 1}}])
        self.give_history(server)
        self.browser.run("readMemory()")
        self.browser.wait("!document.querySelector('#memory').hidden", "the history is shown")
        self.browser.run(pathlib.Path(os.environ["RW_AXE"]).read_text())
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            for place in ("page", "past", "dialog"):
                if place == "past":
                    self.browser.run("chooseMoment(minuteNow() - 3600)")
                    self.browser.wait("document.querySelector('#not-well a')", "the past is shown")
                if place == "dialog":
                    self.browser.run("chooseMoment(Infinity)")
                    self.browser.run("document.querySelector('#table').focus()")
                    self.browser.press(Keys.HOME, Keys.ENTER)
                    self.browser.wait("document.querySelector('#details dl')", "the details are shown")
                found = self.browser.run("""return axe.run(document, {resultTypes: ['violations']}).then(({violations}) => violations
                  .filter(({impact}) => ['serious', 'critical'].includes(impact))
                  .map(({id, nodes}) => [id, ...nodes.map(({html}) => html.slice(0, 200))]))""")
                self.assertEqual(found, [], f"{place}, {scheme}")
            self.browser.press(Keys.ESCAPE)
            self.browser.run("document.querySelector('#details-body').replaceChildren()")

    def test_page_fits_narrow_windows(self):
        self.serve([row_of(i) for i in range(1, 21)])
        self.addCleanup(self.browser.driver.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})
        for width in (1600, 1280, 800, 420):
            self.browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                                {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
            self.browser.wait("document.documentElement.scrollWidth <= innerWidth", f"nothing is cut off at {width} pixels")
        self.assertTrue(self.browser.run("""const search = document.querySelector('#search'), context = document.createElement('canvas').getContext('2d');
          context.font = getComputedStyle(search).font;
          return context.measureText(search.placeholder).width < search.clientWidth - 20"""), "the search's placeholder fits")


class PolicyTest(TestCase):
    def test_page_needs_nothing_but_itself(self):
        text = PAGE.read_text()
        self.assertEqual((text.count("<script"), text.count("<style")), (1, 1))
        self.assertEqual(re.findall(r"https?://(?!www\.w3\.org/2000/svg)[^\s\"']+", text), [])
        self.assertEqual(re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b| style=| on\w+=\"", text), [])


if __name__ == "__main__":
    main()
