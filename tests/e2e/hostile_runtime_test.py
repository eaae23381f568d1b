"""A runtime's API server that does its worst to the manager: answers of any shape, and frames without end. Its verdict names it; the
others' heartbeats, the manager's pages and its Lease are as without it."""

import base64
import pathlib
import re
import select
import socket
import ssl
import struct
import threading
import time
import urllib.request

import breakage_test
import harness
from api import collection, kymas
from harness import Pki, pause
from hostile_test import keys_of_one_bucket

RUNTIMES = 3
HOSTILE = "runtime-1"
SECRET = collection("secrets", "kcp-system") + f"/kubeconfig-{HOSTILE}"
LEASE = collection("leases", "kcp-system", "coordination.k8s.io", "v1") + "/runtime-watcher-manager"
MIB = harness.MIB
SIZE = 4 * MIB - 300  # as much as the manager reads of an answer


def array(element, size=SIZE):
    return "[" + (element + ",") * ((size - 4) // (len(element) + 1)) + "0]"


BODIES = {
    "zeros": array("0"), "small arrays": array("[0]"), "small objects": array('{"":0}'), "empty strings": array('""'),
    "one bucket": "{" + ",".join(f'"{key}":0' for key in keys_of_one_bucket(14, 0x30)) + "}",
    "items": '{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":' + array("{}", SIZE - 100) + "}",
    "names": '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kyma-system","labels":{' +
             ",".join(f'"k{i}":"v"' for i in range(SIZE // 16)) + "}}}",
    "deep": "[" * (SIZE // 2) + "]" * (SIZE // 2), "no JSON": "<" * SIZE}


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


FRAMES = {"WINDOW_UPDATE": frame(8, 0, 0, b"\0\0\0\1"), "PRIORITY": frame(2, 0, 1, b"\0\0\0\0\x10"), "unknown": frame(250, 0, 0, b"x" * 8),
          "DATA": frame(0, 1, 1), "SETTINGS": frame(4, 0, 0), "PING": frame(6, 1, 0, b"x" * 8)}


class Runtime:
    """Answers each request with `body` by HTTP/1.1; with `frames` it sends those by HTTP/2 as fast as the client takes them."""

    def __init__(self, certificate, key):
        self.body, self.frames = b"", b""
        self.requests, self.sent, self.left = 0, 0, 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._context.set_alpn_protocols(["h2", "http/1.1"])
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listening.close()

    def _accept(self):
        while True:
            try:
                raw, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(raw,), daemon=True).start()

    def _serve(self, raw):
        context = self._context
        if not self.frames:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.files)
        try:
            raw.settimeout(20)
            with context.wrap_socket(raw, server_side=True) as client:
                self._flood(client) if self.frames else self._answer(client)
        except OSError:
            pass  # the manager leaves

    def _answer(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            more = client.recv(65536)
            if not more:
                return
            head += more
        self.requests += 1
        client.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(self.body))
        client.sendall(self.body)

    def _flood(self, client):
        client.recv(65536)
        self.requests += 1
        client.sendall(frame(4, 0, 0))
        piece, until = self.frames * 500, time.monotonic() + 10
        client.setblocking(False)
        try:
            while time.monotonic() < until:
                try:
                    self.sent += client.send(piece)
                except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                    select.select([client], [client], [], 0.1)
        except OSError:
            self.left += 1  # the manager has closed it


class HostileRuntime(breakage_test.Fleet):
    def setUp(self):
        super().setUp()
        self.start_fleet(RUNTIMES, "2s", leader_elect=True)
        self.wait_proved()
        files = Pki(self.folder / "hostile").issue("server", "hostile")
        self.hostile = Runtime(*files)
        self.hostile.files = files
        self.addCleanup(self.hostile.close)
        self.others = self.all - {HOSTILE}

    def lead_to_hostile(self):
        secret = self.kcp.get(SECRET)
        text = base64.b64decode(secret["data"]["config"]).decode()
        text = re.sub(r"server: *\S+", f'server: "https://127.0.0.1:{self.hostile.port}"', text)
        text = re.sub(r"certificate-authority-data: *\S+", "insecure-skip-tls-verify: true", text)
        self.kcp.patch(SECRET, {"data": {"config": base64.b64encode(text.encode()).decode()}})

    def status(self, key):
        text = pathlib.Path(f"/proc/{self.manager.popen.pid}/status").read_text()
        return int(re.search(rf"^{key}:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024

    def watch_the_manager(self, until, what):
        """Asks for the manager's page until the condition holds; returns how long that took at most."""
        slowest, deadline = 0, time.monotonic() + 40
        while not until():
            self.assertLess(time.monotonic(), deadline, what())
            begun = time.monotonic()
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/livez", timeout=20) as page:
                page.read()
            slowest = max(slowest, time.monotonic() - begun)
            pause(0.05)
        return slowest

    def ask_again(self, turn):
        self.kcp.patch(f"{kymas('kcp-system')}/{HOSTILE}", {"metadata": {"annotations": {"test/turn": turn}}})

    def check_the_others(self, lease):
        now = self.kcp.get(LEASE)["spec"]
        self.assertEqual((now["holderIdentity"], now.get("leaseTransitions")), (lease["holderIdentity"], lease.get("leaseTransitions")))
        shown = self.runtimes()
        self.assertTrue(self.proved(self.others), shown)
        self.assertNotEqual(shown[HOSTILE]["state"], "installed")
        self.assertTrue(shown[HOSTILE].get("reason"), shown[HOSTILE])
        return shown[HOSTILE]

    def test_answers_of_any_shape_harm_nobody_else(self):
        lease = self.kcp.get(LEASE)["spec"]
        self.hostile.body = b"{}"
        self.lead_to_hostile()
        for name, body in BODIES.items():
            with self.subTest(name):
                self.hostile.body = body.encode()
                pathlib.Path(f"/proc/{self.manager.popen.pid}/clear_refs").write_text("5")
                idle, spent, asked = self.status("VmRSS"), self.manager.cpu_seconds(), self.hostile.requests
                self.ask_again(name)
                slowest = self.watch_the_manager(lambda: self.hostile.requests > asked, lambda: f"{HOSTILE} is asked again")
                end = time.monotonic() + 1.5
                slowest = max(slowest, self.watch_the_manager(lambda: time.monotonic() > end, lambda: "a while passes"))
                asked = self.hostile.requests - asked
                peak, spent = self.status("VmHWM") - idle, self.manager.cpu_seconds() - spent
                found = self.check_the_others(lease)
                self.note(f"{name}: {asked} answers of {len(body) / MIB:.1f} MiB, {spent:.2f} s of CPU, peak {peak / MIB:.0f} MiB over idle, "
                          f"/livez up to {slowest:.2f} s; {found['reason'][:100]}")
                self.assertLess(slowest, 2)
                self.assertLess(peak, 13 * len(body) + 8 * MIB)

    def test_frames_without_end_cost_nothing(self):
        lease = self.kcp.get(LEASE)["spec"]
        self.hostile.frames = FRAMES["PING"]
        self.lead_to_hostile()
        for name, frames in FRAMES.items():
            with self.subTest(name):
                self.hostile.frames = frames
                asked, left = self.hostile.requests, self.hostile.left
                self.ask_again(name)
                warnings = lambda: len(self.manager.records(msg="the upstream sends too many frames that carry nothing; its connection is given up"))
                warned = warnings()
                self.watch_the_manager(lambda: self.hostile.left > left and warnings() > warned,
                                       lambda: f"{name}: the manager leaves, after {self.hostile.sent} bytes: {self.runtimes()[HOSTILE]}")
                spent, begun = self.manager.cpu_seconds(), time.monotonic()
                pause(3)
                share = (self.manager.cpu_seconds() - spent) / (time.monotonic() - begun)
                self.check_the_others(lease)
                self.note(f"{name}: {100 * share:.1f} % of a core; {self.hostile.requests - asked} connections")
                self.assertLess(share, 0.1)


if __name__ == "__main__":
    harness.main()
