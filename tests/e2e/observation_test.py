"""Events come of what is persisted: none is early, and none is sent for what did not change. An outage, a crash or lost
reviews cost no operator a change: it is told of it, or it is told to resync after it. On the embedded API server, and on a
real one with etcd where KUBEBUILDER_ASSETS names it.

RW_E2E_KILLS and RW_E2E_SEED change the number of crashes and when they come, RW_E2E_OBJECTS how many objects a restart finds.
"""

import base64
import collections
import hashlib
import http.client
import http.server
import json
import os
import pathlib
import random
import signal
import socket
import ssl
import statistics
import threading
import time

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
OBJECTS = int(os.environ.get("RW_E2E_OBJECTS", "2000"))


def replace(path, content):
    """Atomically, as kubelet does."""
    temporary = path.with_suffix(".next")
    temporary.write_bytes(content)
    temporary.rename(path)


def watch_of(manager, **labels):
    """A Watcher of widgets, in the managers' file."""
    return {**WATCHES["watches"][0], "manager": manager, "matchLabels": {**LABELS, **labels}}


def managers_file(*watches):
    return json.dumps({**WATCHES, "watches": watches}).encode()


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
        if b'"resync":' in line:
            return
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
    """All operators of KCP. Takes every event unless `status` is an error, or that of the operator or of the object in
    `refuses`, and records heartbeats, events and resyncs with their arrival. An operator takes resyncs as they come, while
    the product's listener hands over one a minute. One of `legacy` does not know them: it offers nothing, and answers them
    with the status that it has there."""

    daemon_threads = True
    request_queue_size = 128

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self):
            server, arrival = self.server, time.monotonic()
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers = server.status, {}
            manager, reason = self.path.split("/")[2], self.headers["watch-resync"]
            if self.headers["Content-Type"] == "application/vnd.runtime-watcher.heartbeat+json":
                server.heartbeats.append((arrival, self.path, json.loads(body)))
            elif reason:
                status = server.refuses.get(manager, status)
                server.requests.append((arrival, manager, reason))
                if (self.path, body, self.headers["watch-event-age"]) != (f"/v2/{manager}/events", b"[]", None):
                    server.malformed.append((self.path, body, str(self.headers)))
                if status == 200 and manager in server.legacy:
                    status = server.legacy[manager]
                elif status == 200:
                    server.on_resync(manager)
                    server.of(manager).resyncs.append((arrival, reason))
                    headers["watch-resync"] = "taken"
            else:
                server.ages.append(int(self.headers["watch-event-age"]))
                name = json.loads(body)["watched"]["Name"]
                server.requests.append((arrival, manager, name))
                status = server.refuses.get(manager, server.refuses.get(name, status))
                if status == 200:
                    server.on_event(manager, name)
                    line = {"watched": {"namespace": "default", "name": name}}
                    server.of(manager).take(arrival, json.dumps(line).encode())
                    if manager not in server.legacy:
                        headers["watch-resync"] = "1"
            self.send_response(status)
            for header in {**headers, "Content-Length": "0"}.items():
                self.send_header(*header)
            self.end_headers()

        def log_message(self, *_):
            pass

    def __init__(self, port, tls, client_ca):
        self.heartbeats = []  # (arrival, path, body)
        self.requests = []  # (arrival, manager, an object's name or a resync's reason), whatever was answered
        self.ages = []  # of requests with events
        self.malformed = []  # resyncs
        self.status = 200
        self.refuses = {}  # operators and names of objects, with the status that they get
        self.legacy = {}  # operators, with the status that resyncs get
        self.on_event = lambda manager, name: None
        self.on_resync = lambda manager: None
        self._logs = collections.defaultdict(EventLog)  # what was taken, by operator
        self._lock = threading.Lock()
        self._connections = []
        super().__init__(("127.0.0.1", port), Kcp.Handler)
        self.port = self.server_address[1]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
        # The handshake belongs to the connection's thread, which a client that says nothing would otherwise hold up.
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a process that is killed leaves its connections in the middle of anything

    def get_request(self):
        accepted = super().get_request()
        self._connections.append(accepted[0])
        return accepted

    def stop(self):
        self.shutdown()
        self.server_close()
        for connection in self._connections:
            try:
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
            except OSError:
                pass  # it is closed already

    def of(self, manager):
        """What the operator took."""
        with self._lock:
            return self._logs[manager]

    @property
    def names(self):
        """Of objects whose events were taken, by any operator in one order of each."""
        with self._lock:
            return [json.loads(line)["watched"]["name"] for log in self._logs.values() for _, line in log.lines]

    def requests_of(self, manager, start=0):
        """Names of objects and reasons of resyncs that were sent to it."""
        return [what for _, to, what in self.requests[start:] if to == manager]

    def latest(self):
        return self.heartbeats[-1][2]


class View:
    """What an operator knows of the world, that reads an object at its event and everything at a resync, before it answers."""

    def __init__(self, connect, kcp):
        self._connect = connect
        self._idle = []  # connections
        self._reading = threading.Lock()  # so that a read that began later ends later
        self.values = {}  # by name
        kcp.on_event = lambda _, name: self._read(name)
        kcp.on_resync = lambda _: self._read_all()

    def _read(self, name):
        with self._reading:
            api = self._idle.pop() if self._idle else self._connect()
            found = api.get(f"{WIDGETS}/{name}")
            if found is None:
                self.values.pop(name, None)
            else:
                self.values[name] = found["spec"]["value"]
            self._idle.append(api)

    def _read_all(self):
        with self._reading:
            api = self._idle.pop() if self._idle else self._connect()
            self.values = {each["metadata"]["name"]: each["spec"]["value"] for each in api.get(WIDGETS)["items"]}
            self._idle.append(api)


class Observation:
    """The tests."""

    def setUp(self):
        super().setUp()
        self.kubeconfig = self.start_server()
        self.pki = Pki(self.folder / "pki")
        self.managers = self.folder / "managers.json"
        self.managers.write_text(json.dumps(WATCHES))
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
        self.addCleanup(lambda: self.assertEqual(kcp.malformed, []))
        self.events = kcp.of(MANAGER)
        return kcp

    def run_webhook(self, listener, source="both", live=True, **env):
        webhook = self.start(Webhook(
            *self.certificate, self.pki.ca, f"localhost:{listener.port}",
            env={"MANAGERS_FILE": str(self.managers), "SOURCE": source, "KUBECONFIG": str(self.kubeconfig), "WEBHOOK_PORT": str(self.webhook_port), **env}))
        if live and source != "webhook":
            self.wait_live(webhook)
        return webhook

    def wait_resync(self, log, start, reason, patience=5):
        """Waits until the operator has taken one more than `start`, and returns when."""
        wait_until(lambda: len(log.resyncs) > start, patience, f"a resync {reason} is taken")
        self.assertEqual([taken for _, taken in log.resyncs[start:]], [reason])
        return log.resyncs[start][0]

    def started(self, kcp, *managers):
        """Waits until each operator has taken the resync that a process owes it which starts."""
        for manager in managers or (MANAGER,):
            self.wait_resync(kcp.of(manager), 0, "started", 10)

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

    # --- nothing missing after an outage --------------------------------------------------

    def prepare(self, receiver=None):
        """A webhook that has told of 400 objects; returns the receiver and it."""
        receiver = receiver or self.listen(EventLog())
        webhook = self.run_webhook(receiver)
        wait_until(lambda: self.events.resyncs, 10, lambda: f"the first resync is taken:\n{webhook.tail()}")
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
        self.create(f"{kind}-{i}" for i in range(self.count) for kind in ("changed", "deleted", "rejected", "untouched"))
        wait_until(lambda: len(set(n for n in self.names() if not n.startswith("probe"))) == 4 * self.count, 30,
                   lambda: f"all are told, not {len(set(self.names()))}")
        self.wait_told(webhook)
        return receiver, webhook

    def create(self, names, threads=4, **labels):
        names = list(names)
        def work(number, client):
            for name in names[number::threads]:
                client.request("POST", WIDGETS, widget(name, 0, **labels))
        self.in_parallel(threads, work)

    def wait_told(self, webhook):
        pause(1.1)  # the gauges are set each second
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 0, 10, "all are delivered")

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

    def test_restart_is_one_resync_in_place_of_events(self):
        kcp = self.run_kcp()
        _, webhook = self.prepare(kcp)
        self.assertEqual(webhook.terminate(), 0)
        self.assertEqual(len(self.events.resyncs), 1)
        start = len(kcp.requests)
        self.make_changes()
        webhook = self.run_webhook(kcp)
        live = time.monotonic()
        taken = self.wait_resync(self.events, 1, "started")
        self.note(f"taken {taken - webhook.started:.2f} s after the start, {1000 * (taken - live):.0f} ms after the watch is live")
        self.api.request("POST", WIDGETS, widget("afterwards", 0))
        wait_until(lambda: "afterwards" in self.names(), 5, "a change is told")
        self.wait_told(webhook)
        self.assertEqual(kcp.requests_of(MANAGER, start), ["started", "afterwards"])

    def test_restart_with_many_objects_is_one_request(self):
        self.create((f"exists-{i}" for i in range(OBJECTS)), threads=8)
        kcp = self.run_kcp()
        for run in range(2):
            start = len(kcp.requests)
            webhook = self.run_webhook(kcp)
            taken = self.wait_resync(self.events, run, "started", 10)
            objects = len(self.api.get(WIDGETS)["items"])
            wait_until(lambda: webhook.metric("rw_observation_objects") == objects, 10, "all objects are known")
            self.wait_told(webhook)
            self.api.request("POST", WIDGETS, widget(f"afterwards-{run}", 0))
            wait_until(lambda: f"afterwards-{run}" in self.names(), 5, "a change is told")
            self.assertEqual(kcp.requests_of(MANAGER, start), ["started", f"afterwards-{run}"])
            self.note(f"{objects} objects: told by a resync {taken - webhook.started:.2f} s after the start")
            webhook.kill()

    def test_receivers_that_know_no_resyncs_are_sent_what_exists_after_a_minute(self):
        """As the Go listener, which has no such path, and as a portal that answers everything with 200. Takes 65 s."""
        managers = ("lifecycle-manager", "portal")
        replace(self.managers, managers_file(*map(watch_of, managers)))
        kcp = self.run_kcp()
        kcp.legacy = {"lifecycle-manager": 404, "portal": 200}
        exist = {f"exists-{i}" for i in range(self.count)}
        self.create([*exist, "deleted"])
        webhook = self.run_webhook(kcp)
        for manager in managers:
            wait_until(lambda: kcp.requests_of(manager)[1:], 10, f"{manager} is sent an object after a resync")
            self.assertEqual(kcp.requests_of(manager)[0], "started")
        self.api.patch(f"{WIDGETS}/exists-1", {"spec": {"value": 1}})
        self.api.delete(f"{WIDGETS}/deleted")
        live = collections.Counter({"exists-1": 1, "deleted": 1})
        for manager in managers:
            def sent():
                return collections.Counter(kcp.requests_of(manager)[1:])
            wait_until(lambda: live <= sent(), 5, "changes are told at once")
        pause(webhook.started + 55 - time.monotonic())
        # One object by which the receiver was judged, which may have been the one that is deleted.
        for manager in managers:
            others = collections.Counter(kcp.requests_of(manager)[1:]) - live
            self.assertEqual((others.total(), len(kcp.of(manager).resyncs)), (1, 0), others)
        start = len(kcp.requests)
        for manager in managers:
            wait_until(lambda: exist <= set(kcp.requests_of(manager, start)), 15, f"{manager} is sent all that exists")
        self.wait_told(webhook)
        for manager in managers:
            self.assertEqual(sorted(kcp.requests_of(manager, start)), sorted(exist))
        self.note(f"{time.monotonic() - webhook.started:.1f} s after the start")
        self.assertEqual(webhook.terminate(), 0)

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

    # --- each operator is told what concerns it ---------------------------------------------

    def edit_one(self, **selections):
        """A Watcher is edited, and edited back, and one of another operator comes: the others are told of changes alone."""
        def of(manager, **labels):
            return watch_of(manager, **{**selections.get(manager, {}), **labels})
        others, added = ("first", "second"), "third"
        replace(self.managers, managers_file(*map(of, (MANAGER, *others))))
        kcp = self.run_kcp()
        labels = {key: value for labels in selections.values() for key, value in labels.items()}
        self.create((f"exists-{i}" for i in range(200)), edited="yes", **labels)
        webhook = self.run_webhook(kcp)
        self.started(kcp, MANAGER, *others)
        self.wait_told(webhook)
        start = len(kcp.requests)
        for number, labels in enumerate(({"edited": "yes"}, {})):
            replace(self.managers, managers_file(of(MANAGER, **labels), *map(of, others)))
            self.wait_resync(kcp.of(MANAGER), number + 1, "watcher-changed", 10)
        replace(self.managers, managers_file(*map(of, (MANAGER, *others, added))))
        self.wait_resync(kcp.of(added), 0, "watcher-changed", 10)
        self.wait_told(webhook)
        self.api.patch(f"{WIDGETS}/exists-1", {"spec": {"value": 1}})
        for manager in (*others, added, MANAGER):
            wait_until(lambda: kcp.requests_of(manager, start)[-1:] == ["exists-1"], 5, f"{manager} is told of a change")
        self.wait_told(webhook)
        expected = {MANAGER: ["watcher-changed", "watcher-changed"], added: ["watcher-changed"], "first": [], "second": []}
        self.assertEqual({manager: kcp.requests_of(manager, start)[:-1] for manager in expected}, expected)

    def test_edit_of_a_watcher_is_a_resync_for_its_operator_alone(self):
        self.edit_one(**{each: {f"selected-by-{each}": "yes"} for each in ("first", "second", "third")})

    def test_edit_of_a_watcher_is_a_resync_for_its_operator_alone_though_others_select_the_same(self):
        self.edit_one()

    def test_deletion_is_told_though_the_creation_was_not(self):
        """An operator that came up meanwhile knows the object from its own list."""
        kcp = self.run_kcp()
        webhook = self.run_webhook(kcp)
        self.started(kcp)
        kcp.status = 503
        names = {f"deleted-{i}" for i in range(20)}
        self.create(names)
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 20, 10, "the creations wait")
        for name in names:
            self.api.delete(f"{WIDGETS}/{name}")
        wait_until(lambda: webhook.metric("rw_observation_objects") == 20, 10, "the deletions wait")
        kcp.status = 200
        wait_until(lambda: names <= set(self.names()), 10, lambda: f"all are told: {self.names()}")
        self.wait_told(webhook)
        wait_until(lambda: webhook.metric("rw_observation_objects") == 0, 5, "what is told and gone is forgotten")
        self.assertEqual(len(self.events.resyncs), 1)

    def test_lone_event_is_told_within_4_s_of_the_end_of_an_outage(self):
        """Of an operator behind a gateway that answers for it, and of one without: KCP is probed every 3 s in the first minute."""
        gone, behind = self.run_kcp(), self.run_kcp()
        webhooks = {each: self.run_webhook(each, live=False, WEBHOOK_PORT="0") for each in (gone, behind)}
        for kcp, webhook in webhooks.items():
            self.wait_live(webhook)
            self.started(kcp)
        behind.status = 503
        gone.stop()
        self.api.request("POST", WIDGETS, widget("lone", 0))
        pause(25)
        behind.status, begun = 200, time.monotonic()
        returned = self.run_kcp(gone.port)
        for name, kcp in (("without a connection", returned), ("answered with 503", behind)):
            wait_until(lambda: kcp.names, 30, "the event is told")
            took = kcp.of(MANAGER).lines[0][0] - begun
            self.note(f"{name}: told {took:.1f} s after the end of the outage")
            self.assertLess(took, 4)

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

    def test_flood_of_one_operator_is_bounded_and_costs_no_other(self):
        """Deletions that wait are given up when the budget is full, which raises a resync. A client of the runtime can cause
        that, so that it is sent once in 10 minutes, or at the end."""
        kcp = self.run_kcp()
        limit, told, staying = 200, [f"told-{i}" for i in range(150)], {f"stays-{i}" for i in range(120)}
        replace(self.managers, managers_file(watch_of(MANAGER, flood="yes"), watch_of("quiet", flood="no")))
        settings = dict(OBSERVE_OBJECTS=str(limit), HEARTBEAT_INTERVAL="1s")
        webhook = self.run_webhook(kcp, live=False, **settings)
        wait_until(lambda: webhook.metric("rw_observation_live_watches") == 2, 10, "both watches are live")
        self.started(kcp, MANAGER, "quiet")
        self.create(told, flood="yes")
        wait_until(lambda: set(told) <= set(self.names()), 10, "all are told")
        self.wait_told(webhook)
        kcp.refuses = {MANAGER: 404}
        for name in told:
            self.api.delete(f"{WIDGETS}/{name}")
        memory, records, delays = [], [], []
        def turnover(part):
            def come_and_go(number, client):
                for i in range(number, self.turnover // 5, 8):
                    client.request("POST", WIDGETS, widget(f"{part}-{i}", 0, flood="yes"))
                    client.delete(f"{WIDGETS}/{part}-{i}")
            flooding = threading.Thread(target=lambda: self.in_parallel(8, come_and_go))
            flooding.start()
            for i in range(20):
                name, begun = f"quiet-{part}-{i}", time.monotonic()
                self.api.request("POST", WIDGETS, widget(name, 0, flood="no"))
                wait_until(lambda: name in kcp.requests_of("quiet"), 5, "the other operator is told")
                delays.append(time.monotonic() - begun)
            flooding.join()
            memory.append(webhook.rss() / 2**20)
            records.append(webhook.metric("rw_observation_objects") - len(delays))
        for part in range(5):
            turnover(part)
        self.create(staying, flood="yes")
        def losses():
            return webhook.metric("rw_event_losses_total", reason="overflow")
        wait_until(lambda: webhook.metric("rw_observation_objects") - len(delays) <= limit + 16 and losses(), 10,
                   lambda: f"the budget is full:\n{webhook.tail()}")
        pause(1.1)  # the gauges are set each second
        records.append(webhook.metric("rw_observation_objects") - len(delays))
        self.note(f"{self.turnover} came and went: {max(records):.0f} records, {memory[0]:.1f} -> {memory[-1]:.1f} MiB, "
                  f"{losses():.0f} losses; the other operator is told in {1000 * statistics.median(delays):.0f} ms, at most "
                  f"{1000 * max(delays):.0f} ms")
        self.assertLessEqual(max(records), limit + 16)  # those that are being sent
        self.assertLess(memory[-1] - memory[0], 4)
        self.assertLess(harness.quantile(delays, 0.9), 0.5)
        self.assertEqual(webhook.metric("rw_observation_live_watches"), 2)
        def reported():
            return {manager: count >= losses() for manager, count in kcp.latest().get("losses", {}).items()} == {MANAGER: True}
        wait_until(reported, 10, lambda: f"KCP learns of the losses: {kcp.latest()}")
        start = len(self.events.lines)
        kcp.refuses = {}
        wait_until(lambda: staying <= set(self.names(start)), 40, "what exists is told")
        self.wait_told(webhook)
        self.assertEqual(webhook.metric("rw_resyncs_owed"), 1)
        self.assertEqual([len(kcp.of(manager).resyncs) for manager in (MANAGER, "quiet")], [1, 1])
        self.assertEqual(webhook.terminate(), 0)
        self.wait_resync(self.events, 1, "dropped")
        self.assertEqual(len(kcp.of("quiet").resyncs), 1)

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

    def test_undelivered_changes_of_a_removed_watcher_are_a_resync_and_kcp_learns_of_it(self):
        kcp = self.run_kcp()
        replace(self.managers, managers_file(watch_of(MANAGER), watch_of(MANAGER, stays="yes")))
        kcp.status = 503
        webhook = self.run_webhook(kcp, live=False, HEARTBEAT_INTERVAL="1s")
        wait_until(lambda: webhook.metric("rw_observation_live_watches") == 2, 10, "both watches are live")
        self.create(f"waits-{i}" for i in range(3))
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 3, 10, "three changes wait")
        self.assertEqual(webhook.metric("rw_event_losses_total"), 0)
        replace(self.managers, managers_file(watch_of(MANAGER, stays="yes")))
        wait_until(lambda: webhook.metric("rw_event_losses_total", reason="removed") == 1, 10,
                   lambda: f"there is a loss:\n{webhook.tail()}")
        wait_until(lambda: webhook.records(msg="changes dropped, their operator is told to look at everything", manager=MANAGER),
                   5, lambda: f"a log line says so:\n{webhook.tail()}")
        kcp.status = 200
        def reported():
            return kcp.latest().get("losses") == {MANAGER: 1}
        wait_until(reported, 10, lambda: f"KCP learns of it: {kcp.latest()}")
        # The resync of the start is owed too: the gravest reason is told.
        self.wait_resync(self.events, 0, "dropped", 40)
        wait_until(lambda: webhook.metric("rw_resyncs_owed") == 0, 5, "nothing is owed any more")

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
        start, resumed = len(self.events.lines), len(webhook.records(msg="resource observed"))
        self.put_store_back()
        wait_until(lambda: len(webhook.records(msg="resource observed")) > resumed, 40, "the watch is resumed")
        self.assertEqual(self.names(start), [], "the watch shows nothing")
        self.api = self.connect()
        self.api.patch(f"{WIDGETS}/reviewed", {"spec": {"value": 1}})
        # The list in place of the watch, which is one each 10 s, sends again what was told since the latest one.
        self.expect_told(webhook, start, first | created, timeout=15,
                         again={name for name in self.names() if name.startswith("probe")})

    def test_restored_store_is_told_that_is_written_while_the_watch_is_away(self):
        """The event of that review, if no watch is live yet, is followed by a resync within ten minutes."""
        kcp = self.run_kcp()
        webhook = self.run_webhook(kcp)
        self.started(kcp)
        self.register()
        self.wait_called(webhook)
        self.create(("changed", "reviewed"))
        wait_until(lambda: {"changed", "reviewed"} <= set(self.names()), 10, "both are told")
        self.save_store()
        self.api.patch(f"{WIDGETS}/changed", {"spec": {"value": 1}})
        self.create(f"created-{i}" for i in range(self.count))  # so that one write does not reach the versions from before
        wait_until(lambda: self.names().count("changed") == 2, 10, "the change is told")
        self.wait_told(webhook)
        start = len(self.events.lines)
        self.put_store_back()
        def restored():
            try:
                found = self.served(f"{WIDGETS}/changed")
            except (OSError, http.client.HTTPException):  # which closes all connections
                self.api = self.connect()
                return False
            return found and found["spec"]["value"] == 0
        wait_until(restored, 30, "the store is back", every=0.001)
        begun = time.monotonic()
        def written():
            try:
                return self.api.patch(f"{WIDGETS}/reviewed", {"spec": {"value": 1}})
            except (OSError, http.client.HTTPException):
                self.api = self.connect()
        wait_until(written, 10, "the review's write is answered", every=0.001)
        def told():
            return "changed" in self.names(start) or self.events.resyncs[1:] or webhook.metric("rw_resyncs_owed") == 1
        wait_until(told, 45, lambda: f"what was set back is told, or a resync is owed:\n{webhook.tail()}")
        self.note(f"{'told by an event' if 'changed' in self.names(start) else 'a resync is owed'} "
                  f"{time.monotonic() - begun:.1f} s after the review")

    def test_watcher_that_comes_back_is_a_resync(self):
        kcp = self.run_kcp()
        webhook = self.run_webhook(kcp)
        self.started(kcp)
        self.create(("changed", "deleted"))
        wait_until(lambda: len(self.names()) == 2, 10, "both are told")
        self.wait_told(webhook)
        wait_until(lambda: webhook.metric("rw_observation_live_watches") == 1, 10, "the watch is live")
        start = len(kcp.requests)
        replace(self.managers, managers_file())
        wait_until(lambda: webhook.metric("rw_observation_live_watches") == 0, 10, "no watch is live")
        self.api.patch(f"{WIDGETS}/changed", {"spec": {"value": 1}})
        self.api.delete(f"{WIDGETS}/deleted")
        replace(self.managers, json.dumps(WATCHES).encode())
        self.wait_resync(self.events, 1, "watcher-changed", 10)
        self.wait_told(webhook)
        self.assertEqual(kcp.requests_of(MANAGER, start), ["watcher-changed"])
        self.assertEqual(webhook.metric("rw_event_losses_total"), 0)

    # --- what the watcher reports of itself ----------------------------------------------

    def test_heartbeats_name_live_watches_and_tell_restarts(self):
        kcp = self.run_kcp()
        boots = []
        for part in ("first", "second"):
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
            self.assertEqual((heartbeat["source"], heartbeat["bootId"]), ("both", first["bootId"]))
            self.assertEqual(heartbeat["intervalSeconds"], 20)
            self.assertIn("certificateNotAfter", heartbeat)
            self.assertEqual(heartbeat["pod"], "skr-webhook-1")
            own, ca = (hashlib.sha256(ssl.PEM_cert_to_DER_cert(pathlib.Path(file).read_text())).hexdigest()
                       for file in (self.certificate[0], self.pki.ca))
            self.assertEqual(heartbeat["certificateDigest"], own)
            self.assertEqual(heartbeat["caDigest"], hashlib.sha256(ca.encode()).hexdigest())
            self.assertEqual(len(heartbeat["managersDigest"]), 64)
            events = len(kcp.ages)
            self.api.request("POST", WIDGETS, widget(f"reported-{part}", 0))
            wait_until(lambda: len(kcp.ages) > events, 10, "its event arrives")
            boots.append(first["bootId"])
            told = len(kcp.heartbeats)
            self.assertEqual(webhook.terminate(), 0)
            self.assertEqual(len(kcp.heartbeats), told + 1, "a last heartbeat at the end")
            self.assertLess(kcp.heartbeats[told - 1][2]["sentAt"], kcp.latest()["sentAt"])
            self.assertEqual(kcp.latest()["startedAt"], first["startedAt"])
            self.assertEqual(kcp.latest()["events"]["abandoned"], 0)
        self.assertNotEqual(*boots)
        self.assertLess(max(kcp.ages), 10_000)

    def test_last_heartbeat_says_how_many_events_were_abandoned(self):
        kcp = self.run_kcp()
        webhook = self.run_webhook(kcp, HEARTBEAT_INTERVAL="20s", DRAIN_TIMEOUT="1s")
        kcp.refuses = {"waits": 503}
        self.api.request("POST", WIDGETS, widget("waits", 0))
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 1, 10, "a change waits")
        told = len(kcp.heartbeats)
        self.assertEqual(webhook.terminate(), 1)
        self.assertGreater(len(kcp.heartbeats), told)
        abandoned = kcp.latest()["events"]["abandoned"]
        self.assertGreater(abandoned, 0)
        self.assertEqual([each["undelivered"] for each in webhook.records(msg="stopped")], [abandoned])

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
        self.assertEqual(len(changed), 80)
        changes = {("default", name): begun for name, begun in changed.items()}
        def untold():
            return self.events.untold(changes)
        wait_until(lambda: not untold(), 10, lambda: f"{len(untold())} objects are untold, such as {untold()[:5]}")
        return writes

    def test_crashes_lose_nothing(self):
        """Each change is told, or a resync is taken after it within 5 s of the start. The operator reads what it is told of, and
        all at a resync: what it knows then is the world. No object is written again once its changes are made, so that none
        makes up for another; those that are finished are compared while the load goes on."""
        seed = int(os.environ.get("RW_E2E_SEED") or random.SystemRandom().randrange(1_000_000))
        self.note(f"RW_E2E_SEED={seed}")
        dice = random.Random(seed)
        kcp = self.run_kcp()
        view = View(self.connect, kcp)
        webhook = self.run_webhook(kcp)
        self.started(kcp)
        self.register()
        self.wait_called(webhook)
        finished = {}  # name -> its last value, or None
        running, changes = True, collections.Counter()
        def load(number, client):
            made = 0
            while running:
                name, path = f"{number}-{made}", f"{WIDGETS}/{number}-{made}"
                client.request("POST", WIDGETS, widget(name, 0))
                pause(0.02)
                client.patch(path, {"spec": {"value": 1}})
                pause(0.02)
                last = None if made % 4 else 2
                if last is None:
                    client.delete(path)
                else:
                    client.patch(path, {"spec": {"value": last}})
                finished[name] = last
                changes[number] += 3
                made += 1
        def differing(names):
            known = view.values
            return {name: (value, known.get(name)) for name, value in names.items() if known.get(name) != value}
        loading = threading.Thread(target=lambda: self.in_parallel(8, load))
        loading.start()
        delays, begun = [], time.monotonic()
        def check_resync():
            wait_until(lambda: len(self.events.resyncs) > resyncs, 5, lambda: f"a resync is taken:\n{webhook.tail()}")
            delays.append(self.events.resyncs[resyncs][0] - webhook.started)
            pause(dice.uniform(0, 0.5))
            known = dict(finished)
            wait_until(lambda: not differing(known), 5, lambda: f"what the operator does not know: {differing(known)}")
        try:
            for number in range(KILLS):
                pause(dice.uniform(0.02, 0.4))
                webhook.kill()
                resyncs = len(self.events.resyncs)
                webhook = self.run_webhook(kcp, live=False)
                if dice.random() < 0.5 or number == KILLS - 1:
                    check_resync()
        finally:
            running = False
            loading.join()
        took = time.monotonic() - begun
        wait_until(lambda: not differing(finished), 10, lambda: f"what the operator does not know: {differing(finished)}")
        self.note(f"{KILLS} crashes, {changes.total() / took:.0f} changes a second, {len(self.events.lines)} events, "
                  f"{len(self.events.resyncs)} resyncs, at most {max(delays):.2f} s after the start")

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

    def test_rotation_of_the_ca_loses_and_repeats_nothing(self):
        listener = self.listen(EventLog())
        webhook = self.run_webhook(listener)
        untouched = self.untouched(webhook)
        begun = len(self.events.lines)
        writes = self.under_load(lambda: self.rotate(webhook, listener))
        count = collections.Counter(self.names(begun))
        self.assertEqual([name for name in writes if count[name] > writes[name]], [])
        self.assertEqual(self.told(untouched), {1})
        self.assertEqual(len(self.events.resyncs), 1)
        self.note(f"{sum(count.values())} events of {sum(writes.values())} changes")

    def test_replacement_of_the_process_loses_and_repeats_nothing(self):
        kcp = self.run_kcp()
        webhook = self.run_webhook(kcp)
        untouched = self.untouched(webhook)
        def replace_process():
            nonlocal webhook
            self.assertEqual(webhook.terminate(), 0)
            webhook = self.run_webhook(kcp)
            self.wait_resync(self.events, 1, "started")
            pause(0.5)  # so that each object changes after it, and is told by an event
        begun = len(self.events.lines)
        writes = self.under_load(replace_process)
        count = collections.Counter(self.names(begun))
        # Only what changed while no watch was live may be told twice.
        self.assertEqual([name for name in writes if count[name] > writes[name] + 1], [])
        self.assertEqual(self.told(untouched), {1})
        self.note(f"{sum(count.values())} events of {sum(writes.values())} changes, and a resync")

    def untouched(self, webhook):
        """Names of objects that were told once."""
        wait_until(lambda: self.events.resyncs, 10, "the first resync is taken")
        self.register()
        self.wait_called(webhook)
        names = [f"untouched-{i}" for i in range(100)]
        self.create(names)
        wait_until(lambda: self.told(names) == {1}, 10, "all are told once")
        return names


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

    def test_watch_that_lists_again_is_a_resync(self):
        kcp = self.run_kcp()
        webhook = self.run_webhook(kcp)
        self.started(kcp)
        self.create(("undone", "changed"))
        wait_until(lambda: len(self.names()) == 2, 10, "both are told")
        self.wait_told(webhook)
        start = len(kcp.requests)
        webhook.send(signal.SIGSTOP)
        self.api.request("POST", "/devserver/disconnect")
        self.api = self.connect()
        for value in (1, 0):
            self.api.patch(f"{WIDGETS}/undone", {"spec": {"value": value}})
        self.api.patch(f"{WIDGETS}/changed", {"spec": {"value": 1}})
        self.api.request("POST", "/devserver/compact")
        webhook.send(signal.SIGCONT)
        self.wait_resync(self.events, 1, "watch-back", 15)
        self.wait_told(webhook)
        self.assertLessEqual(set(kcp.requests_of(MANAGER, start)), {"watch-back", "changed", "undone"})
        self.api.patch(f"{WIDGETS}/undone", {"spec": {"value": 2}})
        wait_until(lambda: kcp.requests_of(MANAGER)[-1] == "undone", 10, "changes are told")

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
    test_rotation_of_the_ca_loses_and_repeats_nothing = None
    test_replacement_of_the_process_loses_and_repeats_nothing = None

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
        beside.kcp = beside.run_kcp()
        webhook = beside.run_webhook(beside.kcp)
        beside.started(beside.kcp)
        beside.gone = {f"gone-{i}" for i in range(5)}
        for name in beside.gone:
            beside.api.request("POST", gadgets, {**widget(name, 0), "kind": "Gadget"})
        wait_until(lambda: beside.gone <= set(beside.names()), 20, "the gadgets are told")
        wait_until(lambda: webhook.metric("rw_observation_undelivered") == 0, 10, "all are delivered")
        if webhook.terminate() != 0:
            raise AssertionError(webhook.tail())
        beside.api.delete(f"{DEFINITIONS}/gadgets.example.com")
        wait_until(lambda: not beside.served(gadgets), 30, "gadgets are no longer served")
        beside.begin = len(beside.kcp.requests)
        beside.webhook = beside.run_webhook(beside.kcp, live=False)

    def test_without_a_definition_the_resync_waits_for_30_s(self):
        """The last test by its name. One more follows when it is proven that there are no objects, as after a list."""
        beside = self.beside
        wait_until(lambda: len(beside.events.resyncs) > 1, 50, lambda: f"a resync is taken:\n{beside.webhook.tail()}")
        told, reason = beside.events.resyncs[1]
        self.note(f"told {told - beside.webhook.started:.1f} s after the start")
        self.assertEqual(reason, "started")
        self.assertGreater(told - beside.webhook.started, 29)
        pause(2)
        self.assertIn(beside.kcp.requests_of(MANAGER, beside.begin), (["started"], ["started", "watch-back"]))

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
