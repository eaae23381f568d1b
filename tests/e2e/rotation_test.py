"""Certificates are rotated every second under load, as kubelet does it, on both sides, their CA every five seconds:
no admission request fails, no event is lost, and every new certificate is served within 2 s.

RW_E2E_ROTATIONS changes how many.
"""

import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import time

import harness
import load
from harness import EventLog, Listener, Pki, Webhook, pause, wait_until

ROTATIONS = int(os.environ.get("RW_E2E_ROTATIONS", "60"))
CA_EVERY = 5  # rotations between two CAs
CA_LEAD = 2  # rotations for which a new CA is in the bundle before it signs
FILES = ("ca.crt", "tls.crt", "tls.key")


class SecretVolume:
    """A folder as kubelet fills it: files are links through ..data, which is swapped by one rename."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self._version = 0
        self._current = None

    def put(self, contents):
        self._version += 1
        data = self.folder / f"..2024_01_01_00_00_{self._version:09d}"
        data.mkdir()
        for name, text in contents.items():
            (data / name).write_bytes(text)
        link = self.folder / "..data_tmp"
        link.symlink_to(data.name)
        link.rename(self.folder / "..data")
        for name in contents:
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(pathlib.Path("..data") / name)
        if self._current:
            shutil.rmtree(self._current)
        self._current = data

    def path(self, name):
        return self.folder / name


class Served:
    """Which certificate a TLS server shows to a new connection."""

    def __init__(self, port, client=None):
        self.port, self.client = port, client

    def now(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if self.client:
            context.load_cert_chain(self.client.path("tls.crt"), self.client.path("tls.key"))
        with socket.create_connection(("127.0.0.1", self.port), 5) as plain, context.wrap_socket(plain) as secure:
            return secure.getpeercert(binary_form=True)


def der(path):
    return ssl.PEM_cert_to_DER_cert(path.read_text())


def traces(key):
    """What would show in memory that a private key is there, by name: lines of its PEM text, and parts of its secret numbers as bytes of
    either order."""
    found = {f"PEM {line[:6]}": line for line in key.read_bytes().split() if len(line) == 64}
    text = subprocess.run(["openssl", "pkey", "-in", key, "-noout", "-text"], check=True, text=True, capture_output=True).stdout
    for name, digits in re.findall(r"^(priv|privateExponent|prime1|prime2|coefficient):\n((?:    +[0-9a-f:]+\n)+)", text, re.MULTILINE):
        number = bytes.fromhex(re.sub(r"[\s:]", "", digits)).lstrip(b"\0")[:48]
        found.update({name: number[:32], f"{name} reversed": number[:32][::-1]})
    return found


def memory(pid):
    """The writable memory of a process."""
    with open(f"/proc/{pid}/mem", "rb", 0) as all_of_it:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            bounds, rights = line.split()[:2]
            if rights[:2] != "rw" or line.endswith("[vvar]"):
                continue
            begin, end = (int(part, 16) for part in bounds.split("-"))
            all_of_it.seek(begin)
            try:
                yield all_of_it.read(end - begin)
            except OSError:  # it was given back meanwhile
                pass


def shown(pid, wanted):
    parts = list(memory(pid))
    return {name for name, trace in wanted.items() if any(trace in part for part in parts)}


class FormerKeys(harness.TestCase):
    def test_private_key_leaves_the_memory_with_its_last_use(self):
        for kind in ("ecdsa", "rsa2048"):
            with self.subTest(kind):
                self.former_keys_are_gone(kind)

    def former_keys_are_gone(self, kind):
        pki = Pki(self.folder / f"{kind}-ca")
        volumes = {side: SecretVolume(self.folder / f"{kind}-{side}") for side in ("webhook", "listener")}
        keys = {side: [] for side in volumes}

        def rotate(side):
            certificate, key = pki.issue("webhook" if side == "webhook" else "server", f"{side}-{len(keys[side])}", key=kind)
            keys[side].append(traces(key))
            volumes[side].put({"ca.crt": pki.ca.read_bytes(), "tls.crt": certificate.read_bytes(), "tls.key": key.read_bytes()})
            return der(certificate)

        for side in volumes:
            rotate(side)
        files = {side: [volume.path(name) for name in FILES] for side, volume in volumes.items()}
        ca, certificate, key = files["listener"]
        events = EventLog()
        listener = self.start(Listener(events, "lifecycle-manager", tls=(certificate, key), client_ca=ca))
        ca, certificate, key = files["webhook"]
        webhook = self.start(Webhook(certificate, key, ca, f"localhost:{listener.port}")).ready()
        watched = {"webhook": Served(webhook.port), "listener": Served(listener.port, volumes["webhook"])}
        processes = {"webhook": webhook, "listener": listener}
        for turn in range(3):
            # Each key is used: by handshakes with both, and for an event from one to the other.
            load.Load([load.Plan(load.names(4, 1)[0], seconds=1, rate=10, reconnect_every=2)], webhook.port, pki.ca, processes=1).finish(timeout=30)
            wait_until(lambda: len(events.lines) > turn, 10, "events pass")
            if turn == 2:
                break
            # The listener first: with its next certificate the webhook connects anew, and the key of that connection is in use.
            for side in ("listener", "webhook"):
                certificate = rotate(side)
                wait_until(lambda: watched[side].now() == certificate, 5, f"{side} serves the next certificate")
        for side, process in processes.items():
            self.assertTrue(shown(process.popen.pid, keys[side][-1]), f"{side}: the key in use is found, so this test can fail")
            for number in (0, 1):
                wait_until(lambda: not shown(process.popen.pid, keys[side][number]), 10,
                           lambda: f"{side}: of key {number} nothing is left but {sorted(shown(process.popen.pid, keys[side][number]))}", every=0.5)


class Rotation(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.every_ca = self.folder / "every-ca.crt"  # what the load's clients trust, whatever is served
        self.volumes = {"webhook": SecretVolume(self.folder / "webhook"), "listener": SecretVolume(self.folder / "listener")}
        # All CAs are made before, so that rotating costs little while the load runs.
        self.authorities = [Pki(self.folder / f"ca-{i}", cn=f"ca-{i}") for i in range(ROTATIONS // CA_EVERY + 2)]
        self.every_ca.write_bytes(b"".join(pki.ca.read_bytes() for pki in self.authorities))

    def rotate(self, turn, side):
        newest = turn // CA_EVERY + 1
        signer = self.authorities[newest if turn % CA_EVERY >= CA_LEAD else newest - 1]
        bundle = self.authorities[newest].ca.read_bytes() + self.authorities[newest - 1].ca.read_bytes()
        certificate, key = signer.issue("webhook" if side == "webhook" else "server", f"{side}-{turn}", cn=f"runtime-{side}")
        self.volumes[side].put({"ca.crt": bundle, "tls.crt": certificate.read_bytes(), "tls.key": key.read_bytes()})
        return der(certificate)

    def test_rotation_on_both_sides_loses_nothing(self):
        for side in self.volumes:
            self.rotate(0, side)
        files = {side: [volume.path(name) for name in FILES] for side, volume in self.volumes.items()}
        events = EventLog()
        ca, certificate, key = files["listener"]
        listener = self.start(Listener(events, "lifecycle-manager", tls=(certificate, key), client_ca=ca))
        ca, certificate, key = files["webhook"]
        webhook = self.start(Webhook(certificate, key, ca, f"localhost:{listener.port}")).ready()
        watched = {"webhook": Served(webhook.port), "listener": Served(listener.port, self.volumes["webhook"])}

        plans = [load.Plan(names, seconds=ROTATIONS + 2, rate=50, reconnect_every=20) for names in load.names(4_000, 8)]
        running = load.Load(plans, webhook.port, self.every_ca, processes=1)
        wait_until(lambda: events.lines, 10, "load has begun")
        lag = []
        begun = time.monotonic()
        for turn in range(1, ROTATIONS + 1):
            pause(begun + turn - time.monotonic())
            wanted = {}
            for side in self.volumes:
                wanted[side] = self.rotate(turn, side), time.monotonic()
            for side, (certificate, rotated) in wanted.items():
                wait_until(lambda: watched[side].now() == certificate, 2, f"{side} serves certificate {turn}")
                lag.append(time.monotonic() - rotated)
        result = running.finish(timeout=60)  # raises what failed
        def missing():
            arrived = events.last_arrivals()
            return [n for n, (sent, _) in result.last_sent.items() if arrived.get(("load", n), 0) < sent]
        wait_until(lambda: not missing(), 10, lambda: f"{len(missing())} objects' events", every=0.1)
        self.note(f"{ROTATIONS} rotations of each side; {result.accepted} reviews; {len(events.lines)} events; new "
                  f"certificate served after {1000 * harness.quantile(lag, 0.5):.0f} ms (median), "
                  f"{1000 * max(lag):.0f} ms at most")
        self.assertEqual(result.overflowed, 0)
        self.assertEqual({event["runtimeId"] for event in events.events()}, {"runtime-webhook"})
        self.assertEqual(webhook.terminate(), 0)
        self.assertEqual(listener.terminate(), 0)


if __name__ == "__main__":
    harness.main()
