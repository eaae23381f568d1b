"""Events come of what is persisted: none is early, none is missing after an outage, a crash or lost reviews, and none is
sent for what did not change. On the embedded API server, and on a real one with etcd where KUBEBUILDER_ASSETS names it.

RW_E2E_KILLS and RW_E2E_SEED change the number of crashes and when they come.
"""

import base64
import collections
import hashlib
import http.server
import json
import os
import pathlib
import random
import signal
import ssl
import statistics
import threading
import time
import types

import control_plane
import harness
import load
from api import Api
from control_plane import widget_crd
from harness import DEV_BINARY, EventLog, Listener, Pki, Process, Webhook, free_port, pause, wait_until

MANAGER = "lifecycle-manager"
LABELS = {"operator.kyma-project.io/watched-by": "kyma"}
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
WATCHES = {"version": 1, "watches": [{"manager": MANAGER, "group": "example.com", "version": "*", "resource": "widgets",
                                      "field": "spec", "matchLabels": LABELS}]}
KILLS = int(os.environ.get("RW_E2E_KILLS", "20"))


def replace(path, content):
    """Atomically, as kubelet does."""
    temporary = path.with_suffix(".next")
    temporary.write_bytes(content)
    temporary.rename(path)


def widget(name, value, **labels):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"value": value},
            "metadata": {"name": name, "namespace": "default", "labels": {**LABELS, **labels}}}


def configuration(name, url, ca, labels, policy, timeout=5):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{"name": f"{name}.operator.kyma-project.io", "admissionReviewVersions": ["v1"],
                          "clientConfig": {"url": url, "caBundle": base64.b64encode(ca.read_bytes()).decode()},
                          "objectSelector": {"matchLabels": labels}, "sideEffects": "NoneOnDryRun",
                          "timeoutSeconds": timeout, "failurePolicy": policy,
                          "rules": [control_plane.rule("example.com", "*", "widgets")]}]}


class Readback(EventLog):
    """Reads the object at each event at once, as an operator does."""

    def __init__(self, connect):
        super().__init__()
        self._api = None
        self._connect = connect
        self.reads = {}  # name -> (arrival, value or None), the latest
        self.read = threading.Condition()

    def take(self, arrival, line):
        super().take(arrival, line)
        self._api = self._api or self._connect()
        name = json.loads(line)["watched"]["name"]
        try:
            value = self._api.request("GET", f"{WIDGETS}/{name}")["spec"]["value"]
        except AssertionError:
            value = None
        with self.read:
            self.reads.setdefault(name, []).append((arrival, value))
            self.read.notify_all()

    def first_read_since(self, name, when):
        """Of an event for the object; waits for it."""
        def found():
            return next((read for read in self.reads.get(name, []) if read[0] >= when), None)
        with self.read:
            if not self.read.wait_for(found, 20):
                raise AssertionError(f"no event for {name}")
            return found()


class Kcp(http.server.ThreadingHTTPServer):
    """Takes every event unless `status` is an error, or the object is one of `refuses`, and records heartbeats with their
    arrival. With `offers` all managers offer to take them."""

    daemon_threads = True

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = self.server.status
            if self.headers["Content-Type"] == "application/vnd.runtime-watcher.heartbeat+json":
                self.server.heartbeats.append((time.monotonic(), self.path, json.loads(body)))
            else:
                self.server.ages.append(int(self.headers["watch-event-age"]))
                name = json.loads(body)["watched"]["Name"]
                status = self.server.refuses.get(name, status)
                if status == 200:
                    self.server.names.append(name)
            self.send_response(status)
            if self.server.offers:
                self.send_header("watch-heartbeat", "1")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    def __init__(self, port, tls, client_ca):
        self.heartbeats = []  # (arrival, path, body)
        self.ages = []  # of requests with events
        self.names = []  # of objects whose events were taken
        self.offers = False
        self.status = 200
        self.refuses = {}  # names of objects, with the status that their events get
        super().__init__(("127.0.0.1", port), Kcp.Handler)
        self.port = self.server_address[1]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
        # The handshake belongs to the connection's thread, which a client that says nothing would otherwise hold up.
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()

    def latest(self):
        return self.heartbeats[-1][2]


class Observation:
    """The tests."""

    def setUp(self):
        super().setUp()
        self.kubeconfig = self.start_server()
        self.pki = Pki(self.folder / "pki")
        self.managers = self.folder / "managers.json"
        self.managers.write_text(json.dumps(WATCHES))
        self.ledger = self.folder / "ledger"
        self.certificate = self.pki.issue("webhook", "webhook", cn="runtime-1")
        self.webhook_port = free_port()
        self.api = self.connect()
        if not self.served():
            self.api.request("POST", DEFINITIONS, widget_crd())
        wait_until(lambda: self.served(), 30, "widgets are served")

    def connect(self):
        client = Api(self.kubeconfig)
        self.addCleanup(client.close)
        return client

    def served(self, path=WIDGETS):
        try:
            return self.api.get(path)
        except AssertionError:
            return None

    def listen(self, events):
        self.events = events
        tls = self.pki.issue("server", "listener")
        return self.start(Listener(events, MANAGER, tls=tls, client_ca=self.pki.ca))

    def run_kcp(self, port=0):
        kcp = Kcp(port, self.pki.issue("server", "kcp"), self.pki.ca)
        self.addCleanup(kcp.stop)
        return kcp

    def run_webhook(self, listener, source="both", live=True, **env):
        webhook = self.start(Webhook(
            *self.certificate, self.pki.ca, f"localhost:{listener.port}",
            env={"MANAGERS_FILE": str(self.managers), "LEDGER_FILE": str(self.ledger), "SOURCE": source,
                 "KUBECONFIG": str(self.kubeconfig), "WEBHOOK_PORT": str(self.webhook_port), **env}))
        if live and source != "webhook":
            self.wait_live(webhook)
        return webhook

    def wait_live(self, webhook):
        wait_until(lambda: webhook.records(msg="resource observed"), 30, lambda: f"widgets are watched:\n{webhook.tail()}")

    def register(self, policy="Ignore", timeout=5):
        self.api.request("POST", CONFIGURATIONS, configuration(
            "skr-webhook", f"https://127.0.0.1:{self.webhook_port}/validate/{MANAGER}", self.pki.ca, LABELS, policy, timeout))

    def wait_called(self, webhook):
        """The API server takes a moment to call a new webhook."""
        def called():
            name = f"probe-{time.monotonic_ns()}"
            self.api.request("POST", WIDGETS, widget(name, 0))
            return webhook.metric("watcher_admission_request_total")
        wait_until(called, 30, "the API server calls the webhook")

    def names(self, start=0):
        return [json.loads(line)["watched"]["name"] for _, line in self.events.lines[start:]]

    def in_parallel(self, threads, work):
        """Calls work(thread, client) in so many threads."""
        failures = []
        def run(number, client):
            try:
                work(number, client)
            except BaseException as error:
                failures.append(repr(error))
        running = [threading.Thread(target=run, args=(n, self.connect())) for n in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        self.assertEqual(failures[:3], [])

    # --- never early ---------------------------------------------------------------------

    def read_back(self, source, writes, threads):
        """Writes, and returns how many were read back stale at their first event."""
        listener = self.listen(Readback(self.connect))
        webhook = self.run_webhook(listener, source)
        self.register()
        self.wait_called(webhook)
        stale, delays = [], []
        def write(number, client):
            for i in range(writes // threads):
                name = f"{number}-{i // 2}"
                begun = time.monotonic()
                if i % 2 == 0:
                    client.request("POST", WIDGETS, widget(name, 0))
                else:
                    client.patch(f"{WIDGETS}/{name}", {"spec": {"value": 1}})
                answered = time.monotonic()
                arrival, value = self.events.first_read_since(name, begun)
                delays.append(arrival - answered)
                if value != i % 2:
                    stale.append(name)
        self.in_parallel(threads, write)
        self.note(f"{source}: {len(stale)} of {writes} writes read back stale; from the response to the event: median "
                  f"{1000 * statistics.median(delays):.1f} ms, 99th percentile {1000 * harness.quantile(delays, 0.99):.1f} ms")
        self.assertEqual(webhook.terminate(), 0)
        return len(stale)

    def test_event_comes_after_its_change_can_be_read(self):
        self.assertEqual(self.read_back("both", 2000, 4), 0)

    def test_event_of_a_review_is_hardly_ever_early(self):
        self.assertLessEqual(self.read_back("webhook", 1000, 40), 1)

    # --- nothing missing after a gap -----------------------------------------------------

    def prepare(self):
        """A webhook that has told of 400 objects; returns the listener and it."""
        listener = self.listen(EventLog())
        webhook = self.run_webhook(listener)
        self.register(timeout=1)
        self.wait_called(webhook)
        refuses = f"https://127.0.0.1:{free_port()}/refuse"
        self.api.request("POST", CONFIGURATIONS, configuration("refuses", refuses, self.pki.ca, {"refuse": "yes"}, "Fail"))
        def refused():
            try:
                self.api.request("POST", WIDGETS + "?dryRun=All", widget("refused", 0, refuse="yes"))
            except AssertionError:
                return True
        wait_until(refused, 30, "the API server rejects what it is to reject")
        def create(number, client):
            for kind in ("changed", "deleted", "rejected", "untouched"):
                for i in range(number, self.count, 4):
                    client.request("POST", WIDGETS, widget(f"{kind}-{i}", 0))
        self.in_parallel(4, create)
        wait_until(lambda: len(set(n for n in self.names() if not n.startswith("probe"))) == 4 * self.count, 30,
                   lambda: f"all are told, not {len(set(self.names()))}")
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 0, 10, "all are delivered")
        return listener, webhook

    def make_changes(self, threads=4):
        """Each kind of change; returns the names of what has changed."""
        def change(number, client):
            for i in range(number, self.count, threads):
                client.request("POST", WIDGETS, widget(f"created-{i}", 0))
                client.patch(f"{WIDGETS}/changed-{i}", {"spec": {"value": 1}})
                client.delete(f"{WIDGETS}/deleted-{i}")
                with self.assertRaises(AssertionError):
                    client.patch(f"{WIDGETS}/rejected-{i}", {"spec": {"value": 1}, "metadata": {"labels": {"refuse": "yes"}}})
        self.in_parallel(threads, change)
        return {f"{kind}-{i}" for kind in ("created", "changed", "deleted") for i in range(self.count)}

    def expect_told(self, webhook, start, names, timeout=5, again=frozenset()):
        """Exactly these, within 5 s, and nothing else once all reviews are decided, but maybe some again."""
        begun = time.monotonic()
        wait_until(lambda: names <= set(self.names(start)), timeout,
                   lambda: f"{len(names - set(self.names(start)))} of {len(names)} are not told, such as "
                           f"{sorted(names - set(self.names(start)))[:5]}")
        took = time.monotonic() - begun
        wait_until(lambda: webhook.metric("rw_observation_waiting_reviews") == 0
                   and webhook.metric("rw_observation_undelivered") == 0, 15, "all reviews are decided")
        told = set(self.names(start))
        self.assertEqual(sorted(told - names - again)[:5], [])
        self.note(f"{len(names)} objects told {took:.2f} s later, by {len(self.names(start))} events")

    def test_changes_while_the_process_is_away_are_reported(self):
        listener, webhook = self.prepare()
        self.assertEqual(webhook.terminate(), 0)
        start = len(self.events.lines)
        changed = self.make_changes()
        self.expect_told(self.run_webhook(listener, live=False), start, changed)

    def test_objects_are_reported_once_without_the_journal(self):
        listener, webhook = self.prepare()
        self.assertEqual(webhook.terminate(), 0)
        start = len(self.events.lines)
        self.make_changes()
        self.ledger.unlink()
        exist = {each["metadata"]["name"] for each in self.api.get(WIDGETS)["items"]}
        webhook = self.run_webhook(listener, live=False)
        self.expect_told(webhook, start, exist)
        self.assertEqual(len(self.names(start)), len(exist))
        self.assertEqual(webhook.terminate(), 0)

    def test_change_that_is_undone_while_the_process_is_away_is_told(self):
        listener = self.listen(EventLog())
        self.api.request("POST", WIDGETS, widget("undone", 0))
        webhook = self.run_webhook(listener)
        wait_until(lambda: self.names() == ["undone"], 10, "it is told")
        for _ in range(10):
            wait_until(lambda: webhook.metric("rw_observation_undelivered") == 0, 10, "it is delivered")
            start = len(self.events.lines)
            self.api.patch(f"{WIDGETS}/undone", {"spec": {"value": 1}})
            wait_until(lambda: self.names(start), 5, "the change is told")
            webhook.kill()
            start = len(self.events.lines)
            self.api.patch(f"{WIDGETS}/undone", {"spec": {"value": 0}})
            webhook = self.run_webhook(listener, live=False)
            wait_until(lambda: self.names(start), 5, lambda: f"the change back is told:\n{webhook.tail()}")

    def test_changes_without_a_review_are_reported(self):
        _, webhook = self.prepare()
        self.api.delete(f"{CONFIGURATIONS}/skr-webhook")
        def silent():
            before = webhook.metric("watcher_admission_request_total")
            name = f"probe-{time.monotonic_ns()}"
            self.api.request("POST", WIDGETS, widget(name, 0))
            return name if webhook.metric("watcher_admission_request_total") == before else None
        probe = wait_until(silent, 30, "the API server no longer calls the webhook")
        wait_until(lambda: probe in self.names(), 10, "the last probe is told")
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 0, 10, "all are delivered")
        start = len(self.events.lines)
        changed = self.make_changes()
        self.expect_told(webhook, start, changed)

    def test_changes_of_reviews_without_response_are_reported(self):
        _, webhook = self.prepare()
        start = len(self.events.lines)
        webhook.send(signal.SIGSTOP)
        changed = self.make_changes(threads=50)  # since each write waits for the timeout of a second
        webhook.send(signal.SIGCONT)
        self.expect_told(webhook, start, changed)

    # --- nothing missing beyond a limit, or at a gateway that rejects ----------------------

    def test_watch_is_live_again_when_objects_beyond_its_limit_are_deleted(self):
        listener = self.listen(EventLog())
        webhook = self.run_webhook(listener, OBSERVE_OBJECTS="50")
        def live():
            return webhook.metric("rw_observation_live_watches") == 1
        wait_until(live, 10, "the watch is live")
        made = [f"made-{i}" for i in range(60)]
        exist = [f"exists-{i}" for i in range(9)]
        for name in exist + made:
            self.api.request("POST", WIDGETS, widget(name, 0))
        wait_until(lambda: not live(), 20, "the watch has more objects than its limit")
        for name in made:
            self.api.delete(f"{WIDGETS}/{name}")
        begun = time.monotonic()
        wait_until(live, 40, lambda: f"the watch is live again:\n{webhook.tail()}")
        self.note(f"live again {time.monotonic() - begun:.1f} s after the last deletion")
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 0, 10, "all are delivered")
        start = len(self.events.lines)
        self.api.patch(f"{WIDGETS}/exists-4", {"spec": {"value": 1}})
        self.expect_told(webhook, start, {"exists-4"})
        self.assertEqual(webhook.metric("rw_observation_objects"), 9)

    def test_records_of_an_operator_that_answers_404_are_bounded(self):
        kcp = self.run_kcp()
        limit, told, staying = 200, [f"told-{i}" for i in range(150)], {f"stays-{i}" for i in range(120)}
        settings = dict(OBSERVE_OBJECTS=str(limit), HEARTBEAT_INTERVAL="1s")
        webhook = self.run_webhook(kcp, **settings)
        for name in told:
            self.api.request("POST", WIDGETS, widget(name, 0))
        wait_until(lambda: set(told) <= set(kcp.names), 10, "all are told")
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 0, 10, "all are delivered")
        kcp.status = 404
        for name in told:
            self.api.delete(f"{WIDGETS}/{name}")
        memory, records = [], []
        def turnover(part):
            def come_and_go(number, client):
                for i in range(number, self.turnover // 5, 8):
                    client.request("POST", WIDGETS, widget(f"{part}-{i}", 0))
                    client.delete(f"{WIDGETS}/{part}-{i}")
            self.in_parallel(8, come_and_go)
            memory.append(webhook.rss() / 2**20)
            records.append(webhook.metric("rw_observation_objects"))
        for part in range(5):
            turnover(part)
        for name in staying:
            self.api.request("POST", WIDGETS, widget(name, 0))
        def accounted():
            """Each deletion and each new object is known, or a gap."""
            gaps, known = webhook.metric("rw_event_gaps_total"), webhook.metric("rw_observation_objects")
            return gaps if gaps + known == len(told) + len(staying) else None
        def account():
            figures = ("rw_event_gaps_total", "rw_observation_objects", "rw_observation_undelivered")
            return "\n".join([*(f"{each} {webhook.metric(each)}" for each in figures), webhook.tail()])
        gaps = wait_until(accounted, 10, lambda: f"the budget is full:\n{account()}")
        records.append(webhook.metric("rw_observation_objects"))
        self.note(f"{self.turnover} came and went: {max(records):.0f} records, {memory[0]:.1f} -> {memory[-1]:.1f} MiB, {gaps:.0f} gaps")
        self.assertGreater(gaps, 0)
        self.assertLessEqual(max(records), limit + 16)  # those that are being sent
        self.assertLess(memory[-1] - memory[0], 4)
        self.assertEqual(webhook.metric("rw_observation_live_watches"), 1)
        webhook.kill()
        kcp.status, start = 200, len(kcp.names)
        webhook = self.run_webhook(kcp, **settings)
        wait_until(lambda: staying <= set(kcp.names[start:]), 20, "what exists is told")
        wait_until(lambda: webhook.metric("rw_observation_objects") == len(staying)
                   and webhook.metric("rw_observation_undelivered") == 0, 10, "all are delivered, deletions too")
        self.assertEqual(webhook.metric("rw_observation_live_watches"), 1)
        def reported():
            return {each["manager"]: each["count"] >= gaps for each in kcp.latest()["gaps"]["managers"]} == {MANAGER: True}
        wait_until(reported, 10, lambda: f"KCP learns of the gaps: {kcp.latest()}")

    def test_change_that_a_gateway_rejects_is_told_when_it_accepts_again(self):
        kcp = self.run_kcp()
        webhook = self.run_webhook(kcp)
        for name in ("changed", "deleted"):
            self.api.request("POST", WIDGETS, widget(name, 0))
        wait_until(lambda: webhook.metric("rw_dispatch_events_total", outcome="delivered") == 2, 10, "both are told")
        for status in (400, 405, 413):
            kcp.status = status
            rejected = webhook.metric("rw_dispatch_events_total", outcome="rejected") or 0
            self.api.patch(f"{WIDGETS}/changed", {"spec": {"value": status}})
            if status == 400:
                self.api.delete(f"{WIDGETS}/deleted")
            # Repeatedly, so that its backoff grows.
            wait_until(lambda: webhook.metric("rw_dispatch_events_total", outcome="rejected") >= rejected + 4, 30,
                       f"the event is rejected with {status}")
        start, begun = len(kcp.names), time.monotonic()
        kcp.status = 200
        wait_until(lambda: {"changed", "deleted"} <= set(kcp.names[start:]), 35, lambda: f"both are told: {kcp.names[start:]}")
        self.note(f"told {time.monotonic() - begun:.1f} s after the gateway accepts again")
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 0, 10, "all are delivered")

    def test_refused_event_is_reported_and_told_when_its_receiver_accepts_it(self):
        kcp = self.run_kcp()
        webhook = self.run_webhook(kcp, HEARTBEAT_INTERVAL="1s")
        kcp.refuses = {"bad": 422}
        self.api.request("POST", WIDGETS, widget("bad", 0))
        wait_until(lambda: webhook.metric("rw_dispatch_events_total", outcome="rejected"), 10, "the event is rejected")
        wait_until(lambda: kcp.heartbeats, 5, "a heartbeat arrives")
        self.assertNotIn("refused", kcp.latest(), "no event was accepted")
        def reported():
            name = f"good-{time.monotonic_ns()}"
            self.api.request("POST", WIDGETS, widget(name, 0))
            wait_until(lambda: name in kcp.names, 5, "others are told at once")
            return kcp.latest().get("refused")
        refused = wait_until(reported, 10, lambda: f"KCP learns of it: {kcp.latest()}")
        self.assertLess(refused.pop("oldestOtherMilliseconds"), 1000)
        self.assertEqual(refused, {"manager": MANAGER, "status": 422, "group": "example.com", "kind": "Widget",
                                   "namespace": "default", "name": "bad"})
        self.assertEqual(webhook.metric("rw_dispatch_open_circuits"), 0)
        kcp.refuses, begun = {}, time.monotonic()
        wait_until(lambda: "bad" in kcp.names, 35, "the event is told")
        self.note(f"told {time.monotonic() - begun:.1f} s after it is accepted")
        wait_until(lambda: "refused" not in kcp.latest(), 5, lambda: f"KCP learns of it: {kcp.latest()}")

    def test_undelivered_changes_of_a_removed_watcher_are_a_gap_that_kcp_learns_of(self):
        kcp = self.run_kcp()
        webhook = self.run_webhook(kcp, HEARTBEAT_INTERVAL="1s")
        kcp.status = 503
        for i in range(3):
            self.api.request("POST", WIDGETS, widget(f"waits-{i}", 0))
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 3, 10, "three changes wait")
        self.assertEqual(webhook.metric("rw_event_gaps_total"), 0)
        replace(self.managers, json.dumps(
            {**WATCHES, "watches": [{**WATCHES["watches"][0], "manager": "another"}]}).encode())
        wait_until(lambda: webhook.metric("rw_event_gaps_total") == 1, 10, lambda: f"there is a gap:\n{webhook.tail()}")
        wait_until(lambda: webhook.records(msg="changes of watched objects dropped", manager=MANAGER), 5,
                   lambda: f"a log line says so:\n{webhook.tail()}")
        kcp.status = 200
        def reported():
            return {each["manager"]: each["count"] for each in kcp.latest()["gaps"]["managers"]} == {MANAGER: 1}
        wait_until(reported, 10, lambda: f"KCP learns of it: {kcp.latest()}")

    # --- nothing of what does not exist ----------------------------------------------------

    def test_reviews_of_invented_objects_cause_no_event_while_the_watch_is_live(self):
        listener = self.listen(EventLog())
        webhook = self.run_webhook(listener)
        names = load.names(10_000, 8, "invented")
        reviews = load.Load([load.Plan(each, rounds=1) for each in names], webhook.port, self.pki.ca)
        sent = reviews.finish(60)
        begun = time.monotonic()
        # Which proves that the watch, and the way of its events, are not held up.
        self.api.request("POST", WIDGETS, widget("real", 0))
        wait_until(lambda: "real" in self.names(), 5, "a real object is told")
        # More than are read one by one: a list decides the rest.
        wait_until(lambda: webhook.metric("rw_observation_lists_total"), 20, "the resource is listed")
        self.expect_told(webhook, 0, {"real"})
        lists = webhook.metric("rw_observation_lists_total")
        self.note(f"{sent.accepted} reviews, {lists:.0f} lists, decided {time.monotonic() - begun:.1f} s after the last")
        self.assertLessEqual(lists, 3)  # one each 10 s

    # --- nothing missing after a restore, or without a definition ---------------------------

    def test_restored_store_is_told_after_the_first_review_that_shows_it(self):
        webhook = self.run_webhook(self.listen(EventLog()))
        self.register()
        self.wait_called(webhook)
        first = {"changed", "deleted", "reviewed"}
        for name in first:
            self.api.request("POST", WIDGETS, widget(name, 0))
        wait_until(lambda: first <= set(self.names()), 10, "the first creations are told")
        self.save_store()
        created = {f"created-{i}" for i in range(self.count)}
        self.api.patch(f"{WIDGETS}/changed", {"spec": {"value": 1}})
        self.api.delete(f"{WIDGETS}/deleted")
        for name in created:
            self.api.request("POST", WIDGETS, widget(name, 0))
        expected = sorted([*first, *created, "changed", "deleted"])
        wait_until(lambda: sorted(n for n in self.names() if not n.startswith("probe")) == expected, 10,
                   "each change is told once")
        # A review that is taken after the watch has shown its change is decided by a read, and told again if the watch ends
        # before that. Gauges are set together, a second late; the number of objects tells that they are of now.
        objects = len(self.api.get(WIDGETS)["items"])
        wait_until(lambda: webhook.metric("rw_observation_objects") == objects
                   and webhook.metric("rw_observation_undelivered") == 0
                   and webhook.metric("rw_observation_waiting_reviews") == 0, 10, "all are delivered, all reviews are decided")
        start, watches = len(self.events.lines), webhook.metric("rw_informer_watches_total")
        self.put_store_back()
        wait_until(lambda: webhook.metric("rw_informer_watches_total") > watches
                   and webhook.metric("rw_observation_live_watches") == 1, 40, "the watch is resumed")
        self.assertEqual(self.names(start), [], "the watch shows nothing")
        self.api = self.connect()
        self.api.patch(f"{WIDGETS}/reviewed", {"spec": {"value": 1}})
        # The list in place of the watch sends again what was told since the latest one.
        self.expect_told(webhook, start, first | created, timeout=10,
                         again={name for name in self.names() if name.startswith("probe")})

    def test_watcher_that_comes_back_is_compared_with_what_its_operator_was_told(self):
        """Empty at the first read, and edited and edited back."""
        listener = self.listen(EventLog())
        webhook = self.run_webhook(listener)
        names = {f"deleted-{i}" for i in range(3)}
        for name in names:
            self.api.request("POST", WIDGETS, widget(name, 0))
        wait_until(lambda: names <= set(self.names()), 10, "all are told")
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 0, 10, "all are delivered")
        self.assertEqual(webhook.terminate(), 0)
        none = json.dumps({**WATCHES, "watches": []}).encode()
        replace(self.managers, none)
        start = len(self.events.lines)
        self.api.delete(f"{WIDGETS}/deleted-0")
        webhook = self.run_webhook(listener, live=False).ready()
        replace(self.managers, json.dumps(WATCHES).encode())
        wait_until(lambda: self.names(start) == ["deleted-0"], 10, lambda: f"it is told: {self.names(start)}")
        def live(count):
            wait_until(lambda: webhook.metric("rw_observation_live_watches") == count, 10, f"{count} watches are live")
        for name in ("deleted-1", "deleted-2"):
            live(1)
            replace(self.managers, none)
            live(0)
            self.api.delete(f"{WIDGETS}/{name}")
            if name == "deleted-2":  # that it was removed is to be remembered
                webhook.kill()
                webhook = self.run_webhook(listener, live=False).ready()
            replace(self.managers, json.dumps(WATCHES).encode())
            wait_until(lambda: name in self.names(start), 10, lambda: f"{name} is told: {self.names(start)}")
        self.expect_told(webhook, start, names)
        self.assertEqual(webhook.metric("rw_event_gaps_total"), 0)

    # --- what the watcher reports of itself ----------------------------------------------

    def test_heartbeats_name_live_watches_and_tell_restarts(self):
        kcp = self.run_kcp()
        boots = []
        for ledger in ("missing", "read"):
            start = len(kcp.heartbeats)
            webhook = self.run_webhook(kcp, live=False, HEARTBEAT_INTERVAL="20s", POD_NAME="skr-webhook-1")
            wait_until(lambda: len(kcp.heartbeats) > start, 10, "a heartbeat arrives")
            arrival, path, first = kcp.heartbeats[start]
            self.note(f"first heartbeat {arrival - webhook.started:.2f} s after the start")
            self.assertLess(arrival - webhook.started, 2)
            self.assertEqual(path, "/v2/runtime-watcher/event")
            self.assertEqual(first["sequence"], 1)
            wait_until(lambda: kcp.latest()["watches"][0]["state"] == "live", 10, lambda: f"the watch is live: {kcp.latest()}")
            heartbeat = kcp.latest()
            self.assertEqual([(w["manager"], w["resource"]) for w in heartbeat["watches"]], [(MANAGER, "widgets")])
            self.assertEqual((heartbeat["source"], heartbeat["ledger"], heartbeat["bootId"]),
                             ("both", ledger, first["bootId"]))
            self.assertEqual(heartbeat["intervalSeconds"], 20)
            self.assertIn("certificateNotAfter", heartbeat)
            self.assertEqual(heartbeat["pod"], "skr-webhook-1")
            own, ca = (hashlib.sha256(ssl.PEM_cert_to_DER_cert(pathlib.Path(file).read_text())).hexdigest()
                       for file in (self.certificate[0], self.pki.ca))
            self.assertEqual(heartbeat["certificateDigest"], own)
            self.assertEqual(heartbeat["caDigest"], hashlib.sha256(ca.encode()).hexdigest())
            self.assertEqual(len(heartbeat["managersDigest"]), 64)
            events = len(kcp.ages)
            self.api.request("POST", WIDGETS, widget(f"reported-{ledger}", 0))
            wait_until(lambda: len(kcp.ages) > events, 10, "its event arrives")
            boots.append(first["bootId"])
            told = len(kcp.heartbeats)
            self.assertEqual(webhook.terminate(), 0)
            self.assertEqual(len(kcp.heartbeats), told + 1, "a last heartbeat at the end")
            self.assertLess(kcp.heartbeats[told - 1][2]["sentAt"], kcp.latest()["sentAt"])
            self.assertEqual(kcp.latest()["startedAt"], first["startedAt"])
            self.assertTrue(self.ledger.exists())
        self.assertNotEqual(*boots)
        self.assertLess(max(kcp.ages), 10_000)

    def test_manager_gets_heartbeats_while_it_offers_to_take_them(self):
        kcp = self.run_kcp()
        both = [*WATCHES["watches"], {**WATCHES["watches"][0], "manager": "another"}]
        self.managers.write_text(json.dumps({**WATCHES, "watches": both}))
        webhook = self.run_webhook(kcp, HEARTBEAT_INTERVAL="1s")
        def to(manager):
            return [body for _, path, body in kcp.heartbeats if path == f"/v2/{manager}/event"]
        wait_until(lambda: len(to("runtime-watcher")) > 1, 10, "heartbeats arrive")
        self.assertEqual(to(MANAGER), [])
        kcp.offers = True
        self.api.request("POST", WIDGETS, widget("offered", 0))
        wait_until(lambda: to(MANAGER) and to("another"), 10, "managers get heartbeats")
        self.assertEqual({watch["manager"] for watch in to(MANAGER)[0]["watches"]}, {MANAGER})
        # The managers' file no longer names one; the other one withdraws its offer.
        self.managers.write_text(json.dumps(WATCHES))
        kcp.offers = False
        self.api.request("POST", WIDGETS, widget("withdrawn", 0))
        def given_up():
            before = len(to(MANAGER)) + len(to("another"))
            own = len(to("runtime-watcher"))
            wait_until(lambda: len(to("runtime-watcher")) >= own + 3, 10, "heartbeats arrive")
            return len(to(MANAGER)) + len(to("another")) == before
        wait_until(given_up, 30, "only the component of the watcher gets heartbeats")
        self.assertEqual(webhook.terminate(), 0)

    def test_heartbeat_counts_events_that_expired_while_kcp_was_away(self):
        port = free_port()
        webhook = self.run_webhook(types.SimpleNamespace(port=port), "webhook", HEARTBEAT_INTERVAL="1s",
                                   EVENT_MAX_AGE="100ms")
        self.register()
        self.wait_called(webhook)
        wait_until(lambda: webhook.metric("rw_dispatch_events_total", outcome="expired"), 20, "events expire")
        wait_until(lambda: webhook.metric("rw_heartbeats_total", outcome="failed"), 20, "a heartbeat fails")
        kcp = self.run_kcp(port)
        wait_until(lambda: kcp.heartbeats, 20, "a heartbeat arrives")
        heartbeat = kcp.latest()
        self.assertGreater(heartbeat["events"]["lost"], 0)
        self.assertGreaterEqual(heartbeat["events"]["expired"], heartbeat["events"]["lost"])
        self.assertEqual(heartbeat["source"], "webhook")
        self.assertEqual(heartbeat["watches"][0]["state"], "unobserved")

    # --- nothing missing after crashes, rotations and replacements -----------------------

    def under_load(self, act):
        """Runs act() while eight clients write; returns how often each object was changed, when all is told that changed."""
        changed = {}  # name -> when its last change began
        writes = collections.Counter()
        running = True
        def load(number, client):
            value = 0
            while running:
                value += 1
                for i in range(10):
                    name = f"{number}-{i}"
                    begun = time.monotonic()
                    if value == 1:
                        client.request("POST", WIDGETS, widget(name, value))
                    elif (value + i) % 7 == 0:
                        client.delete(f"{WIDGETS}/{name}")
                        client.request("POST", WIDGETS, widget(name, value))
                        writes[name] += 1
                    else:
                        client.patch(f"{WIDGETS}/{name}", {"spec": {"value": value}})
                    writes[name] += 1
                    changed[name] = begun
        loading = threading.Thread(target=lambda: self.in_parallel(8, load))
        loading.start()
        try:
            act()
        finally:
            running = False
            loading.join()
        def untold():
            arrived = self.events.last_arrivals()
            return [name for name, begun in changed.items() if arrived.get(("default", name), 0) < begun]
        self.assertEqual(len(changed), 80)
        wait_until(lambda: not untold(), 10, lambda: f"{len(untold())} objects are untold, such as {untold()[:5]}")
        return writes

    def test_crashes_lose_nothing(self):
        seed = int(os.environ.get("RW_E2E_SEED") or random.SystemRandom().randrange(1_000_000))
        self.note(f"RW_E2E_SEED={seed}")
        dice = random.Random(seed)
        listener = self.listen(EventLog())
        webhook = self.run_webhook(listener)
        self.register()
        self.wait_called(webhook)
        def crash():
            nonlocal webhook
            for _ in range(KILLS):
                pause(dice.uniform(0.02, 0.4))
                webhook.kill()
                webhook = self.run_webhook(listener, live=False)
        self.under_load(crash)
        self.note(f"{KILLS} crashes, {len(self.events.lines)} events")

    def trust(self, *authorities):
        """The runtime's API server, its watcher and the listener trust these CAs from now on."""
        text = b"".join(each.read_bytes() for each in authorities)
        replace(self.pki.ca, text)
        webhooks = self.api.get(f"{CONFIGURATIONS}/skr-webhook")["webhooks"]
        webhooks[0]["clientConfig"]["caBundle"] = base64.b64encode(text).decode()
        self.api.patch(f"{CONFIGURATIONS}/skr-webhook", {"webhooks": webhooks})

    def rotate(self, *processes):
        """To another CA, without a moment in which one peer does not trust the other."""
        new = Pki(self.folder / "new-pki", cn="new-ca")
        old = self.folder / "old-ca.crt"
        old.write_bytes(self.pki.ca.read_bytes())
        def step(change):
            before = {each: len(self.reloads(each)) for each in processes}
            change()
            wait_until(lambda: all(len(self.reloads(each)) > before[each] for each in processes), 30, "the new files are used")
        step(lambda: self.trust(old, new.ca))
        def reissue():
            for kind, name, cn in (("server", "listener", None), ("webhook", "webhook", "runtime-1")):
                for made in new.issue(kind, name, cn=cn):
                    replace(self.pki.folder / made.name, made.read_bytes())
        step(reissue)
        step(lambda: self.trust(new.ca))

    def reloads(self, process):
        return process.records(msg="new TLS files in use")

    def told(self, names, start=0):
        count = collections.Counter(self.names(start))
        return {count[name] for name in names}

    def test_rotations_and_replacements_lose_and_repeat_nothing(self):
        listener = self.listen(EventLog())
        webhook = self.run_webhook(listener)
        self.register()
        self.wait_called(webhook)
        untouched = [f"untouched-{i}" for i in range(100)]
        for name in untouched:
            self.api.request("POST", WIDGETS, widget(name, 0))
        wait_until(lambda: self.told(untouched) == {1}, 10, "all are told once")

        # The CA rotates: each change is told at most once.
        begun = len(self.events.lines)
        writes = self.under_load(lambda: self.rotate(webhook, listener))
        count = collections.Counter(self.names(begun))
        self.assertEqual([name for name in writes if count[name] > writes[name]], [])
        self.assertEqual(self.told(untouched), {1})
        self.note(f"rotation: {sum(count.values())} events of {sum(writes.values())} changes")
        self.clear(writes)

        # The process is replaced with its ledger: only what changed while no watch was live may be told twice.
        def replace_process():
            nonlocal webhook
            self.assertEqual(webhook.terminate(), 0)
            webhook = self.run_webhook(listener)
        begun = len(self.events.lines)
        writes = self.under_load(replace_process)
        count = collections.Counter(self.names(begun))
        self.assertEqual([name for name in writes if count[name] > writes[name] + 1], [])
        self.assertEqual(self.told(untouched), {1})
        self.note(f"replacement: {sum(count.values())} events of {sum(writes.values())} changes")
        self.clear(writes)

        # The pod is replaced, and its ledger with it: all objects are told once more.
        self.assertEqual(webhook.terminate(), 0)
        self.ledger.unlink()
        webhook = self.run_webhook(listener)
        wait_until(lambda: self.told(untouched) == {2}, 10, "all are told once more")

    def clear(self, names):
        """Deletes the objects of a load, and waits until that is told."""
        before = self.events.last_arrivals()
        for name in names:
            self.api.delete(f"{WIDGETS}/{name}")
        def told():
            now = self.events.last_arrivals()
            return all(now["default", name] > before["default", name] for name in names)
        wait_until(told, 10, "the deletions are told")


class Embedded(Observation, harness.TestCase):
    count = 25
    turnover = 5000

    def start_server(self):
        protocol = ["--http1"] if self._testMethodName.endswith("http1") else []
        self.server = self.start(Process("api-server", [DEV_BINARY, "api-server", "--address", "127.0.0.1:0",
                                                        "--dir", self.folder, "--cluster", "skr", *protocol]))
        self.server.wait_listening("api-server")
        return self.folder / "skr.kubeconfig"

    def save_store(self):
        self.server.send(signal.SIGUSR1)
        wait_until(lambda: self.server.records(msg="clusters saved"), 5, "the state is saved")

    def put_store_back(self):
        self.server.send(signal.SIGUSR2)

    def test_restored_store_is_told_after_the_first_review_that_shows_it_over_http1(self):
        self.test_restored_store_is_told_after_the_first_review_that_shows_it()


class Shared(harness.TestCase):
    """Owns the processes that all tests of a class share."""

    def _failed(self):
        return False


class Real(Observation, harness.TestCase):
    """All tests share one control plane."""

    count = 100
    turnover = 2000
    test_crashes_lose_nothing = None  # the embedded server is fast enough for the load
    test_rotations_and_replacements_lose_and_repeat_nothing = None

    @classmethod
    def setUpClass(cls):
        control_plane.assets()
        cls.shared = Shared()
        cls.shared.setUp()
        cls.addClassCleanup(cls.shared.doCleanups)
        plane = cls.plane = control_plane.ControlPlane(cls.shared, fsync=True)
        cls.shared_kubeconfig = plane.kubeconfig_with_authority(cls.shared.folder / "kubeconfig")
        cls.delete_a_definition()

    @classmethod
    def delete_a_definition(cls):
        """While the webhook is away that has told of its objects. That it is gone takes 30 s to be proved, beside the tests."""
        class Beside(Observation, Shared):
            def start_server(self):
                return cls.shared_kubeconfig
        beside = cls.beside = Beside()
        beside.setUp()
        cls.addClassCleanup(beside.doCleanups)
        crd = json.loads(json.dumps(widget_crd()).replace("widget", "gadget").replace("Widget", "Gadget"))
        gadgets = WIDGETS.replace("widgets", "gadgets")
        beside.api.request("POST", DEFINITIONS, crd)
        wait_until(lambda: beside.served(gadgets), 30, "gadgets are served")
        beside.managers.write_text(json.dumps({**WATCHES, "watches": [{**WATCHES["watches"][0], "resource": "gadgets"}]}))
        listener = beside.listen(EventLog())
        webhook = beside.run_webhook(listener)
        beside.gone = {f"gone-{i}" for i in range(5)}
        for name in beside.gone:
            beside.api.request("POST", gadgets, {**widget(name, 0), "kind": "Gadget"})
        wait_until(lambda: beside.gone <= set(beside.names()), 20, "the gadgets are told")
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 0, 10, "all are delivered")
        if webhook.terminate() != 0:
            raise AssertionError(webhook.tail())
        beside.api.delete(f"{DEFINITIONS}/gadgets.example.com")
        wait_until(lambda: not beside.served(gadgets), 30, "gadgets are no longer served")
        beside.begin = len(beside.events.lines)
        beside.webhook = beside.run_webhook(listener, live=False)

    def test_without_their_definition_objects_are_told_as_deleted(self):
        """The last test by its name."""
        beside = self.beside
        wait_until(lambda: beside.gone <= set(beside.names(beside.begin)), 50, lambda: f"all are told:\n{beside.webhook.tail()}")
        told = beside.events.lines[-1][0]
        self.note(f"told {told - beside.webhook.started:.1f} s after the start")
        self.assertGreater(told - beside.webhook.started, 30)
        self.assertEqual(sorted(beside.names(beside.begin)), sorted(beside.gone))

    def start_server(self):
        return self.shared_kubeconfig

    def save_store(self):
        self.plane.save()

    def put_store_back(self):
        self.plane.restore()

    def tearDown(self):
        for name in ("skr-webhook", "refuses"):
            try:
                self.api.delete(f"{CONFIGURATIONS}/{name}")
            except AssertionError:
                pass  # the test did not make it
        self.api.delete(WIDGETS)


if __name__ == "__main__":
    harness.main()
