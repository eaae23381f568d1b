"""AdmissionReviews as load: rendered ahead, sent over kept-alive HTTP/1.1 connections from processes of their own."""

import json
import multiprocessing
import queue
import socket
import ssl
import threading
import time
import uuid

from harness import pause

PADDING = "x" * 1400  # two objects of it make a review of about 3.5 KiB, as real ones are


def review_parts(name, namespace="load"):
    """A review of an UPDATE whose spec differs, as (head, tail) around the one number that changes each time."""
    def thing(generation):
        return {"apiVersion": "example.com/v1", "kind": "Widget",
                "metadata": {"name": name, "namespace": namespace, "uid": str(uuid.uuid4())},
                "spec": {"padding": PADDING, "generation": generation}}
    review = {
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": str(uuid.uuid4()), "kind": {"group": "example.com", "version": "v1", "kind": "Widget"},
            "resource": {"group": "example.com", "version": "v1", "resource": "widgets"}, "name": name,
            "namespace": namespace, "operation": "UPDATE", "userInfo": {"username": "e2e"},
            "object": thing("@@"), "oldObject": thing(0), "dryRun": False}}
    head, tail = json.dumps(review, separators=(",", ":")).split('"@@"')
    return head.encode(), tail.encode()


def body_of(parts, generation):
    return parts[0] + str(generation).encode() + parts[1]


class Closed(Exception):
    """The server closed the connection instead of answering."""


class Connection:
    """One kept-alive TLS connection; `exchange` sends a review and returns (status, decoded answer)."""

    def __init__(self, port, ca, manager="lifecycle-manager"):
        self._port, self._path = port, f"/validate/{manager}"
        self._context = ssl.create_default_context(cafile=str(ca))
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._socket = None
        self._pending = b""

    def open(self):
        plain = socket.create_connection(("127.0.0.1", self._port), 30)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = self._context.wrap_socket(plain, server_hostname="localhost")
        self._pending = b""

    def close(self):
        if self._socket:
            self._socket.close()
            self._socket = None

    def exchange(self, body):
        if not self._socket:
            self.open()
        self._socket.sendall(
            b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (self._path.encode(), len(body), body))
        while b"\r\n\r\n" not in self._pending:
            self._more()
        head, _, self._pending = self._pending.partition(b"\r\n\r\n")
        headers = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
        length = int(headers.get(b"content-length", b"0"))
        while len(self._pending) < length:
            self._more()
        answer, self._pending = self._pending[:length], self._pending[length:]
        if headers.get(b"connection", b"").strip() == b"close":
            self.close()
        status = int(head.split(b" ", 2)[1])
        return status, json.loads(answer) if status == 200 else answer

    def _more(self):
        piece = self._socket.recv(65536)
        if not piece:
            raise Closed("closed while an answer was awaited")
        self._pending += piece


def accepted(status, answer):
    """Whether a review was answered well and its event taken; an overflow is answered well too, with a warning."""
    if status != 200 or not answer["response"]["allowed"]:
        raise AssertionError(f"answered {status}: {answer}")
    return not answer["response"].get("warnings")


class Plan:
    """What one connection does: reviews over its own objects, in rounds, as fast as answered or paced.

    rate: reviews per second of this connection (open loop), None for as fast as answered. seconds: how long, instead of
    a number of rounds. reconnect_every: a new connection after so many reviews. A refused or closed connection ends the
    plan quietly when stops is set, and is a failure otherwise.
    """

    def __init__(self, names, rounds=None, seconds=None, rate=None, reconnect_every=None, stops=False):
        self.names, self.rounds, self.seconds, self.rate = names, rounds, seconds, rate
        self.reconnect_every, self.stops = reconnect_every, stops


class Result:
    """What happened, added up over connections. Times are of the moment before the review was sent."""

    def __init__(self):
        self.accepted = 0
        self.overflowed = 0
        self.last_sent = {}  # name -> (monotonic, Unix seconds) of its last accepted review
        self.latencies = []  # (monotonic, seconds) of every answer, of paced plans only
        self.failures = []

    def add(self, other):
        self.accepted += other.accepted
        self.overflowed += other.overflowed
        self.last_sent.update(other.last_sent)
        self.latencies += other.latencies
        self.failures += other.failures


def _carry_out(plan, connection, result):
    reviews = {name: review_parts(name) for name in plan.names}
    begun = time.monotonic()
    sent = generation = 0
    while plan.rounds is None or generation < plan.rounds:
        generation += 1
        for name in plan.names:
            now = time.monotonic()
            if plan.seconds is not None and now - begun >= plan.seconds:
                return
            due = now
            if plan.rate:
                due = begun + sent / plan.rate
                if due > now:  # the clock starts when we wake: a client that oversleeps says nothing about the server
                    pause(due - now)
                    due = time.monotonic()
            if plan.reconnect_every and sent % plan.reconnect_every == 0:
                connection.close()
            taken = False
            while not taken:
                before = time.monotonic(), time.time()
                taken = accepted(*connection.exchange(body_of(reviews[name], generation)))
                sent += 1
                if taken:
                    result.accepted += 1
                    result.last_sent[name] = before
                else:
                    result.overflowed += 1
            if plan.rate:
                result.latencies.append((before[0], time.monotonic() - due))


def _run_one(plan, port, ca, manager, results):
    result = Result()
    connection = Connection(port, ca, manager)
    try:
        _carry_out(plan, connection, result)
    except (OSError, Closed) as error:
        if not plan.stops:
            result.failures.append(repr(error))
    except Exception as error:  # whatever it is, the test must hear of it
        result.failures.append(repr(error))
    finally:
        connection.close()
        results.put(result)


def _run_process(plans, port, ca, manager, outbox):
    results = queue.SimpleQueue()
    threads = [threading.Thread(target=_run_one, args=(plan, port, ca, manager, results)) for plan in plans]
    for thread in threads:
        thread.start()
    total = Result()
    for _ in threads:
        total.add(results.get())
    outbox.put(total)


class Load:
    """Plans under way, spread over processes; `finish` waits and adds up."""

    def __init__(self, plans, port, ca, manager="lifecycle-manager", processes=2):
        context = multiprocessing.get_context("spawn")
        self._outbox = context.Queue()
        shares = [share for share in (plans[i::processes] for i in range(processes)) if share]
        self._processes = [context.Process(target=_run_process, args=(share, port, str(ca), manager, self._outbox),
                                           daemon=True) for share in shares]
        for process in self._processes:
            process.start()

    def running(self):
        """Whether a result is still missing."""
        return self._outbox.qsize() < len(self._processes)

    def finish(self, timeout):
        """Waits for the end; the result of all, its failures raised unless asked to keep them."""
        total = Result()
        deadline = time.monotonic() + timeout
        for _ in self._processes:
            total.add(self._outbox.get(timeout=max(0.1, deadline - time.monotonic())))
        for process in self._processes:
            process.join(10)
        if total.failures:
            raise AssertionError(f"{len(total.failures)} connections failed, such as: {total.failures[:3]}")
        return total


def names(count, connections, prefix="object"):
    """`count` names spread over the connections, each object belonging to one of them: its changes are in order."""
    every = [f"{prefix}-{i}" for i in range(count)]
    return [every[i::connections] for i in range(connections)]
