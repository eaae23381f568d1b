"""The programs of deploy/examples/, built against an installed copy, and the library for C as it is installed.

    examples_test.py WORK EXAMPLES

WORK is the folder that run.cmake made; each example is in a folder of its name there, the installed copy in `moved`.
"""

import base64
import ctypes
import importlib.util
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

WORK, EXAMPLES = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
ROOT = EXAMPLES.parent.parent
INSTALLED = WORK / "moved"
LIBRARY = INSTALLED / "lib" / "librw.so.0"
BINARY = INSTALLED / "bin" / "runtime-watcher"
EVENT = b'{"watched":{"Namespace":"kyma-system","Name":"%s"},"watchedGvk":{"group":"operator.kyma-project.io","version":"v1","kind":"Kyma"}}'
PATIENCE = 20


def run(*command):
    done = subprocess.run([*map(str, command)], text=True, capture_output=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {PATIENCE} s: {what}")
        threading.Event().wait(0.01)


class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.keep.name)
        run(BINARY, "certs", "ca", "--dir", cls.folder, "--cn", "ca")
        run(BINARY, "certs", "webhook", "--dir", cls.folder, "--name", "runtime", "--cn", "runtime-1", "--san", "dns:localhost")
        cls.sender = "Cert=" + urllib.parse.quote((cls.folder / "runtime.crt").read_text(), safe="")

    @classmethod
    def tearDownClass(cls):
        cls.keep.cleanup()

    def resync(self, port):
        """The answer's header, of a listener that knows resyncs."""
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v2/lifecycle-manager/events", b"[]",
                                         {"x-forwarded-client-cert": self.sender, "watch-resync": "dropped"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.headers["watch-resync"]

    def send(self, port, name):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v2/lifecycle-manager/event", EVENT % name.encode(),
                                         {"x-forwarded-client-cert": self.sender})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status


class Examples(Base):
    def check(self, *command):
        """The program prints its port, then each event as a line; it ends at SIGTERM, after what it has accepted."""
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(line.rstrip() for line in process.stdout), daemon=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        port = int(process.stdout.readline().split()[1])
        reader.start()
        names = [f"object-{i}" for i in range(20)]
        for name in names:
            self.assertEqual(self.send(port, name), 200)
        for _ in range(3):
            self.assertEqual(self.resync(port), "taken")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 0)
        reader.join(PATIENCE)
        # Two of the three resyncs are one: they wait for the minute's end, or the program's.
        self.assertEqual(set(lines), {"runtime-1: resync", *(f"runtime-1: Kyma kyma-system/{name}" for name in names)})
        self.assertLessEqual(lines.count("runtime-1: resync"), 2)
        self.assertEqual(len(lines) - lines.count("runtime-1: resync"), len(names))

    def test_operator_in_cpp(self):
        self.assertLess(len((EXAMPLES / "operator" / "main.cpp").read_text().splitlines()), 80)
        self.check(WORK / "operator" / "example", "0")

    def test_host_without_asio(self):
        self.check(WORK / "threads" / "example", "0")

    def test_program_in_c(self):
        self.check(WORK / "c" / "example", "--address=127.0.0.1:0")

    def test_first_event_is_sent(self):
        """As deploy/examples/README.md says."""
        process = subprocess.Popen([WORK / "c" / "example", "--address=127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        port = process.stdout.readline().split()[1]
        self.assertIn("200", run(EXAMPLES / "first-event.sh", port, BINARY))
        self.assertEqual(process.stdout.readline().rstrip(), "runtime-1: Kyma kyma-system/default")

    def test_program_in_python(self):
        self.check(sys.executable, EXAMPLES / "python" / "kyma_operator.py", LIBRARY, "--address=127.0.0.1:0", "--component=lifecycle-manager")


class Operator(unittest.TestCase):
    """The operator of k8s/README.md as a process, on the API server in memory."""

    def setUp(self):
        keep = tempfile.TemporaryDirectory()
        self.addCleanup(keep.cleanup)
        self.folder = pathlib.Path(keep.name)
        self.kubeconfig = self.folder / "kcp.kubeconfig"
        self.start(INSTALLED / "bin" / "runtime-watcher-dev", "api-server", "--address", "127.0.0.1:0", "--dir", self.folder)
        until(lambda: self.kubeconfig.exists() and "token" in self.kubeconfig.read_text(), "the API server is up")
        text = self.kubeconfig.read_text()
        self.server, authority, self.token = (re.search(rf'{name}: "?([^"\s]+)', text)[1]
                                              for name in ("server", "certificate-authority-data", "token"))
        self.tls = ssl.create_default_context(cadata=base64.b64decode(authority).decode())

    def start(self, *command, **options):
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.kill)
        return process

    def request(self, method, path, body=None):
        """The object; {} where there is none."""
        request = urllib.request.Request(self.server + path, json.dumps(body).encode() if body else None, method=method, headers={
            "authorization": "Bearer " + self.token, "content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE, context=self.tls) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise AssertionError(f"{method} {path}: {error.read()}") from error
            return {}

    def test_backup_operator_keeps_a_plan_of_each_backup(self):
        program = WORK / "install" / "operator"
        definitions = json.loads(run(program, "definitions"))
        for each in definitions["items"]:
            self.assertTrue(self.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", each))
        process = self.start(program, "--pages=127.0.0.1:0", env={**os.environ, "KUBECONFIG": str(self.kubeconfig)})
        backups, maps = "/apis/example.com/v1/namespaces/default/backups", "/api/v1/namespaces/default/configmaps"
        until(lambda: self.request("POST", backups, {"apiVersion": "example.com/v1", "kind": "Backup", "metadata": {"name": "orders"},
                                                     "spec": {}}), "the definition is served")
        until(lambda: self.request("GET", maps + "/orders-plan").get("data") == {"schedule": "@daily"}, "the default is planned")
        until(lambda: self.request("GET", backups + "/orders").get("status") == {"phase": "Planned"}, "the status is there")
        self.request("DELETE", maps + "/orders-plan")
        until(lambda: self.request("GET", maps + "/orders-plan").get("data"), "a deleted plan comes back")
        self.request("DELETE", backups + "/orders")
        until(lambda: not self.request("GET", maps + "/orders-plan"), "the plan goes with its owner")
        lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/backup-operator"
        self.assertTrue(self.request("GET", lease)["spec"].get("holderIdentity"))
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertFalse(self.request("GET", lease)["spec"].get("holderIdentity"), "the lease is released")

    def test_operator_without_a_configuration_says_so(self):
        done = subprocess.run([WORK / "install" / "operator"], text=True, capture_output=True, timeout=60,
                              env={**os.environ, "KUBECONFIG": str(self.folder / "none")})
        self.assertEqual(done.returncode, 2)
        self.assertIn(str(self.folder / "none"), done.stderr)
        done = subprocess.run([WORK / "install" / "operator", "--page=1"], text=True, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--page=1", done.stderr)


class HostileHost(unittest.TestCase):
    def test_threads_without_a_strand_end_the_process_with_a_sentence(self):
        for part in ("client", "controller", "listener"):
            with self.subTest(part):
                done = subprocess.run([WORK / "hostile" / "hostile", part], text=True, capture_output=True, timeout=60)
                self.assertEqual(done.returncode, -signal.SIGABRT, done.stderr)
                self.assertIn("used by two threads at once; its executor must be one thread or a strand", done.stderr)
                self.assertIn(f"a {part}", done.stderr)


class CLibrary(Base):
    def setUp(self):
        spec = importlib.util.spec_from_file_location("operator_example", EXAMPLES / "python" / "kyma_operator.py")
        self.example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.example)
        self.rw = self.example.load(str(LIBRARY))
        for name in ("rw_listener_next", "rw_listener_drain", "rw_listener_fd", "rw_webhook_port", "rw_webhook_metrics_port", "rw_webhook_free"):
            getattr(self.rw, name).argtypes = [ctypes.c_void_p]
        self.rw.rw_listener_next.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
        self.rw.rw_event_free.argtypes = [ctypes.c_void_p]
        self.rw.rw_webhook_start.argtypes = self.rw.rw_listener_start.argtypes
        self.rw.rw_webhook_start.restype = ctypes.c_void_p
        self.rw.rw_version.restype = ctypes.c_char_p
        self.log = []
        log = self.example.LOG(lambda _, line: self.log.append(line.decode()))
        self.callbacks = self.example.Callbacks(self.example.EVENT(), log)

    def begin(self, what, *flags):
        """A listener or a webhook, or the error."""
        texts = [flag.encode() for flag in flags] + [None]
        error = ctypes.create_string_buffer(200)
        made = getattr(self.rw, f"rw_{what}_start")((ctypes.c_char_p * len(texts))(*texts), self.callbacks, error, len(error))
        return made or error.value.decode()

    def take(self, listener):
        event = ctypes.c_void_p()
        outcome = self.rw.rw_listener_next(listener, event)
        if outcome != 1:
            return outcome
        name = self.rw.rw_event_name(event).decode()
        self.rw.rw_event_free(event)
        return name

    def test_version_is_that_of_the_program(self):
        self.assertEqual(f"v{self.rw.rw_version().decode()}", json.loads(run(BINARY, "version", "-o", "json"))["clientVersion"]["gitVersion"])

    def test_wrong_flags_are_named(self):
        for flags, message in (((), "--address is required"), (("--address=127.0.0.1:0",), "--component"),
                               (("--address=nowhere", "--component=x"), "--address"), (("--adress=127.0.0.1:0",), "--adress"),
                               (("--address=127.0.0.1:0", "--component=x", "--client-ca=/nowhere"), "/nowhere: No such file")):
            self.assertIn(message, self.begin("listener", *flags))
        self.assertIn("--kcp-addr", self.begin("webhook"))
        self.assertEqual(len(self.begin("listener", "--address=" + "x" * 1000, "--component=x")), 199, "a long message is cut off")
        # The environment of the host does not matter.
        self.assertIsNone(self.rw.rw_listener_start(None, None, None, 0))

    def test_events_wait_for_the_host_and_senders_get_503_when_there_are_too_many(self):
        listener = self.begin("listener", "--address=127.0.0.1:0", "--component=lifecycle-manager", "--drain-timeout=1s")
        port = self.rw.rw_listener_port(listener)
        self.assertEqual(self.take(listener), 0)
        accepted = 0
        with self.assertRaises(urllib.error.HTTPError) as full:
            while accepted < 100000:
                self.send(port, f"o{accepted}")
                accepted += 1
        self.assertEqual(full.exception.code, 503)
        taken = []
        until(lambda: len(taken) == 1000 or taken.extend(filter(None, [self.take(listener)])), "1,000 events are taken")
        self.assertEqual(taken, [f"o{i}" for i in range(1000)])
        self.assertEqual(self.rw.rw_listener_free(listener), accepted - 1000, "what was not taken is counted")

    def test_resync_is_taken_by_a_listener_with_the_flag_alone(self):
        self.rw.rw_event_resync.argtypes, self.rw.rw_event_resync.restype = [ctypes.c_void_p], ctypes.c_char_p
        got = []

        def take(_, event):
            got.append((self.rw.rw_event_runtime_id(event), self.rw.rw_event_resync(event), self.rw.rw_event_name(event)))

        taking = self.example.EVENT(take)
        self.callbacks.event = taking
        listener = self.begin("listener", "--address=127.0.0.1:0", "--component=lifecycle-manager", "--resyncs")
        port = self.rw.rw_listener_port(listener)
        self.assertEqual(self.send(port, "o"), 200)
        for _ in range(3):
            self.assertEqual(self.resync(port), "taken")
        self.assertEqual(self.rw.rw_listener_free(listener), 0)
        self.assertEqual(got, [(b"runtime-1", None, b"o"), (b"runtime-1", b"dropped", b""), (b"runtime-1", b"dropped", b"")])
        listener = self.begin("listener", "--address=127.0.0.1:0", "--component=lifecycle-manager")
        with self.assertRaises(urllib.error.HTTPError) as unknown:
            self.resync(self.rw.rw_listener_port(listener))
        self.assertEqual(unknown.exception.code, 404)
        self.assertEqual(self.rw.rw_listener_free(listener), 0)

    def test_accepted_events_can_be_taken_while_the_listener_ends(self):
        listener = self.begin("listener", "--address=127.0.0.1:0", "--component=lifecycle-manager")
        port = self.rw.rw_listener_port(listener)
        names = [f"o{i}" for i in range(600)]  # more than wait in the library's own queue
        for name in names:
            self.send(port, name)
        self.rw.rw_listener_drain(listener)
        taken = []
        until(lambda: taken[-1:] == [-1] or taken.append(self.take(listener)), lambda: f"it ends: {taken[-3:]}")
        self.assertEqual([name for name in taken if isinstance(name, str)], names)
        self.assertEqual(self.take(listener), -1)
        self.assertEqual(self.rw.rw_listener_free(listener), 0)
        self.assertEqual(self.log_of("listening"), 1)

    def test_callback_that_throws_ends_the_listener_which_can_be_freed(self):
        """The callback is a function of the C++ library that throws std::bad_alloc."""
        throws = self.example.EVENT(("_ZSt17__throw_bad_allocv", ctypes.CDLL("libstdc++.so.6")))
        self.callbacks.event = throws
        failures = []
        failed = self.example.FAILED(lambda _, error: failures.append(error.decode()))
        self.callbacks.failed = failed
        listener = self.begin("listener", "--address=127.0.0.1:0", "--component=lifecycle-manager", "--drain-timeout=1s")
        port = self.rw.rw_listener_port(listener)
        self.assertEqual(self.send(port, "o0"), 200)
        until(lambda: self.log_of("listener failed") == 1, lambda: f"the failure is in the log: {self.log}")
        until(lambda: failures == ["std::bad_alloc"], lambda: f"the host is told: {failures}")
        with self.assertRaises(OSError):
            for i in range(100000):
                self.send(port, f"later-{i}")
        begun = time.monotonic()
        self.rw.rw_listener_free(listener)
        self.assertLess(time.monotonic() - begun, PATIENCE)

    def test_verify_callback_rejects_events(self):
        asked = []

        def verify(_, event, certificate):
            asked.append((self.rw.rw_event_runtime_id(event), self.rw.rw_event_name(event), certificate))
            return self.rw.rw_event_name(event) != b"forbidden"

        self.rw.rw_event_runtime_id.argtypes, self.rw.rw_event_runtime_id.restype = [ctypes.c_void_p], ctypes.c_char_p
        verify = self.example.VERIFY(verify)
        self.callbacks.verify = verify
        listener = self.begin("listener", "--address=127.0.0.1:0", "--component=lifecycle-manager")
        port = self.rw.rw_listener_port(listener)
        with self.assertRaises(urllib.error.HTTPError) as rejected:
            self.send(port, "forbidden")
        self.assertEqual(rejected.exception.code, 403)
        self.assertEqual(self.send(port, "allowed"), 200)
        taken = []
        until(lambda: taken.append(self.take(listener)) or isinstance(taken[-1], str), "the event comes")
        self.assertEqual(taken[-1], "allowed")
        self.assertEqual(asked, [(b"runtime-1", name, (self.folder / "runtime.crt").read_bytes()) for name in (b"forbidden", b"allowed")])
        self.assertEqual(self.rw.rw_listener_free(listener), 0)

    def test_log_level_is_a_flag(self):
        self.assertIn("--log-level", self.begin("listener", "--address=127.0.0.1:0", "--component=x", "--log-level=loud"))
        listener = self.begin("listener", "--address=127.0.0.1:0", "--component=x", "--log-level=error")
        self.assertEqual(self.rw.rw_listener_free(listener), 0)
        self.assertEqual(self.log, [])

    def test_libraries_that_are_not_inside_are_named(self):
        needed = re.findall(r"NEEDED.*\[lib([\w-]+?)(?:-\d|\.so)", run("readelf", "-d", LIBRARY))
        own = {"stdc++", "m", "gcc_s", "c"}
        text = (INSTALLED / "include" / "rw.h").read_text()
        sentence = text[text.index("Not inside are eight"):].partition(";")[0]
        self.assertEqual({f"lib{name}" for name in needed if name not in own and not name.startswith("ld")},
                         set(re.findall(r"lib[\w-]+", sentence)) - {"libraries"})

    def log_of(self, message):
        return sum(f'"msg":"{message}"' in line for line in self.log)

    def test_webhook_serves_reviews_and_delivers_to_a_listener_in_the_same_process(self):
        pair = (f"--tls-cert={self.folder}/runtime.crt", f"--tls-key={self.folder}/runtime.key")
        listener = self.begin("listener", "--address=127.0.0.1:0", "--component=lifecycle-manager", *pair, f"--client-ca={self.folder}/ca.crt")
        webhook = self.begin("webhook", "--bind-address=127.0.0.1", "--webhook-port=0", "--metrics-port=0", *pair,
                             f"--ca-cert={self.folder}/ca.crt", f"--kcp-addr=localhost:{self.rw.rw_listener_port(listener)}",
                             "--kcp-contract=v2", "--shutdown-delay=0")
        self.assertIsInstance(webhook, int, webhook)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.rw.rw_webhook_metrics_port(webhook)}/readyz", timeout=PATIENCE) as ready:
            self.assertEqual(ready.status, 200)
        run(BINARY, "replay", "--address", f"localhost:{self.rw.rw_webhook_port(webhook)}", "--path", "/validate/lifecycle-manager",
            "--ca-cert", self.folder / "ca.crt", ROOT / "deploy" / "samples" / "02-kyma-create.json")
        taken = []
        until(lambda: taken.append(self.take(listener)) or isinstance(taken[-1], str), "the event comes")
        self.assertEqual(self.log_of("request refused"), 0, "heartbeats, which the listener does not take, are no warning")
        self.assertEqual(self.rw.rw_webhook_free(webhook), 0)
        self.assertEqual(self.rw.rw_listener_free(listener), 0)

    def test_webhook_that_can_not_deliver_says_so_at_its_end(self):
        pair = (f"--tls-cert={self.folder}/runtime.crt", f"--tls-key={self.folder}/runtime.key")
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))  # and does not listen
            webhook = self.begin("webhook", "--bind-address=127.0.0.1", "--webhook-port=0", "--metrics-port=0", *pair,
                                 f"--ca-cert={self.folder}/ca.crt", f"--kcp-addr=localhost:{nobody.getsockname()[1]}", "--kcp-contract=v2",
                                 "--shutdown-delay=0", "--drain-timeout=1s")
            self.assertIsInstance(webhook, int, webhook)
            run(BINARY, "replay", "--address", f"localhost:{self.rw.rw_webhook_port(webhook)}", "--path", "/validate/lifecycle-manager",
                "--ca-cert", self.folder / "ca.crt", ROOT / "deploy" / "samples" / "02-kyma-create.json")
            self.assertEqual(self.rw.rw_webhook_free(webhook), 1)

    def test_interface_is_the_recorded_one(self):
        """By libabigail, of the types in the header; and the library exports its functions, with their version."""
        now = self.folder / "now.abi"
        run(ROOT / "reactors" / "capi" / "record-abi.sh", now)
        done = subprocess.run(["abidiff", ROOT / "reactors" / "capi" / "rw.abi", now], text=True, capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, ""), "record a wanted change: reactors/capi/record-abi.sh")
        exported = re.findall(r" (\w+)@@(\w+)$", run("readelf", "-W", "--dyn-syms", LIBRARY), flags=re.MULTILINE)
        declared = re.findall(r"\b(rw_\w+)\(", re.sub(r"/\*.*?\*/", "", (INSTALLED / "include" / "rw.h").read_text(), flags=re.DOTALL))
        self.assertEqual(sorted(name for name, version in exported if version.startswith("RW_") and name != version), sorted(declared))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
