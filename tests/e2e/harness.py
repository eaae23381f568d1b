"""What every end-to-end test needs: processes with their output captured, certificates, the webhook, the listener, a
gateway, and waiting for conditions. Control planes live in control_plane.py, load in load.py.

Python's standard library only. Environment: RW_BINARY, the runtime-watcher under test (default: build/runtime-watcher
of this checkout); RW_E2E_KEEP=1 keeps the folders of a test; RW_E2E_VERBOSE=1 echoes what the processes log.
"""

import atexit
import base64
import datetime
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("RW_BINARY") or str(ROOT / "build" / "runtime-watcher")
DEV_BINARY = BINARY + "-dev"  # beside it
# Keys that a test writes are for this user alone: the product rejects others.
os.umask(0o077)
SKIPPED = 77  # the exit code that ctest shows as "Skipped"
MIB = 1024 * 1024
SETTLE = 0.1  # seconds, as the webhook's flag by default: from a review to the time when its change can be read
# Private keys as PEM and in base64, as kubeconfigs and Secrets have them, and tokens of ServiceAccounts (RFC 7519).
SECRETS = re.compile(r"PRIVATE KEY-|LS0tLS1CRUdJTi(BQUklWQVRF|BFQyBQUklWQVRF|BSU0EgUFJJVkFURS)|\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.")
secret_texts = set()  # further texts that no log may contain


def skip(reason):
    """Ends the test script as skipped."""
    print("skipped:", reason)
    sys.exit(SKIPPED)


def pause(seconds):
    """Passes time between two looks at a condition, or paces a load. Never a replacement for waiting for something."""
    threading.Event().wait(seconds)


def wait_until(condition, timeout, what, every=0.01):
    """Waits until condition() is true and returns its value; fails with `what` (text or callable) after `timeout` s. A key
    that is not in an object yet, such as its status, makes the condition false."""
    deadline = time.monotonic() + timeout
    while True:
        absent = None
        try:
            value = condition()
        except KeyError as error:
            value, absent = None, error
        if value:
            return value
        if time.monotonic() > deadline:
            text = what() if callable(what) else what
            raise AssertionError(f"not within {timeout} s: {text}" + (f" (there is no {absent})" if absent else ""))
        pause(every)


def until_established(kubectl, *which):
    """Waits for CustomResourceDefinitions, named or --all. `kubectl wait` fails on one whose conditions no controller has written yet."""
    said = ""
    def are_established():
        nonlocal said
        try:
            kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", *which)
        except AssertionError as error:
            said = str(error)
            return False
        return True
    wait_until(are_established, 60, lambda: said, every=0.1)


def free_port():
    """A TCP port of 127.0.0.1 that was free a moment ago, for processes that cannot pick and report one themselves. It is
    outside the range that the system gives away, so that no connection takes it before the process does, or while the
    process is away. No other test gets it as long as this one runs: a name in the kernel says that it is taken."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(first // 2, first)
        taken = socket.socket(socket.AF_UNIX)
        with socket.socket() as s:
            try:
                taken.bind(f"\0runtime-watcher-test-port-{port}")
                s.bind(("127.0.0.1", port))
            except OSError:
                taken.close()
                continue
        atexit.register(taken.close)
        return port


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


class Process:
    """A child process. Its standard error is kept with arrival times; its standard output goes to `on_line(time, bytes)`, or
    to the descriptor `stdout`.

    It dies with this script. Start it from the main thread, whose end the kernel takes for the script's.
    """

    def __init__(self, name, argv, env=None, on_line=None, dies_by="KILL", stdout=None, pass_fds=()):
        self.name = name
        self.log = []  # (monotonic arrival, text) of every line on standard error
        self.started = time.monotonic()
        self.popen = subprocess.Popen(
            ["setpriv", "--pdeathsig", dies_by, "--", *map(str, argv)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if stdout is None else stdout, stderr=subprocess.PIPE, env=env, start_new_session=True,
            pass_fds=pass_fds)
        self._pumps = [self._pump(self.popen.stderr, self._keep)]
        if stdout is None:
            self._pumps.append(self._pump(self.popen.stdout, on_line or self._keep))

    def _keep(self, arrival, line):
        text = line.decode("utf-8", "replace").rstrip("\n")
        self.log.append((arrival, text))
        if os.environ.get("RW_E2E_VERBOSE"):
            print(f"[{self.name}] {text}", file=sys.stderr)

    @staticmethod
    def _pump(stream, take):
        def run():
            for line in stream:
                take(time.monotonic(), line)
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def records(self, **fields):
        """The JSON log lines that carry these fields."""
        found = []
        for _, text in list(self.log):
            try:
                record = json.loads(text)
            except ValueError:
                continue
            if isinstance(record, dict) and all(record.get(k) == v for k, v in fields.items()):
                found.append(record)
        return found

    def wait_listening(self, server, timeout=20):
        """Waits until the process says that this server of it listens, and returns the port."""
        def look():
            found = self.records(msg="listening", server=server)
            if not found and not self.running():
                raise AssertionError(f"{self.name} ended with {self.popen.returncode}:\n{self.tail()}")
            return found
        record = wait_until(look, timeout, lambda: f"{self.name} listens as {server}:\n{self.tail()}")[0]
        return int(record["address"].rpartition(":")[2])

    def tail(self, lines=25):
        return "\n".join(f"  [{self.name}] {text[:400]}" for _, text in self.log[-lines:])

    def running(self):
        return self.popen.poll() is None

    def send(self, number):
        self.popen.send_signal(number)

    def wait(self, timeout):
        """Waits for the end and for the last line of output; returns the exit code."""
        try:
            code = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {timeout} s:\n{self.tail()}") from None
        for pump, stream in zip(self._pumps, (self.popen.stderr, self.popen.stdout)):
            pump.join(10)
            if pump.is_alive():
                raise AssertionError(f"{self.name} ended and left processes behind:\n{self.tail()}")
            stream.close()
        return code

    def terminate(self, timeout=30):
        self.send(signal.SIGTERM)
        return self.wait(timeout)

    def kill(self):
        """Ends it and its children without a word; nothing when it has ended."""
        if self.running():
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.wait(10)

    def rss(self):
        """Resident memory in bytes."""
        text = pathlib.Path(f"/proc/{self.popen.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) * 1024

    def wake_ups(self):
        """How often its threads went to sleep, and were therefore woken, so far."""
        counts = [re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", path.read_text())[1]
                  for path in pathlib.Path(f"/proc/{self.popen.pid}/task").glob("*/status")]
        return sum(map(int, counts))

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.popen.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def waited_seconds(self):
        """How long its first thread could have run and had no core, so far (Linux, Documentation/scheduler/sched-stats)."""
        return int(pathlib.Path(f"/proc/{self.popen.pid}/schedstat").read_text().split()[1]) / 1e9


def runtime_watcher(*arguments, env=None, timeout=30, binary=BINARY):
    """Runs the binary to its end; returns the CompletedProcess with text output."""
    return subprocess.run([binary, *map(str, arguments)], env=env, timeout=timeout, text=True, capture_output=True)


class Pki:
    """One CA and what it signed, made by `runtime-watcher certs` in a folder of its own."""

    def __init__(self, folder, cn="test-ca"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._certs("ca", "--cn", cn, "--key", "ecdsa")
        self.ca = self.folder / "ca.crt"

    def _certs(self, kind, *arguments):
        done = runtime_watcher("certs", kind, "--dir", self.folder, *arguments)
        if done.returncode != 0:
            raise AssertionError(f"certs {kind} {arguments} ended with {done.returncode}: {done.stderr}")

    def issue(self, kind, name, cn=None, san="dns:localhost,ip:127.0.0.1", key="ecdsa"):
        """kind: server, client, or webhook (both roles). Returns the certificate's and the key's path."""
        self._certs(kind, "--name", name, "--cn", cn or name, "--key", key, *(["--san", san] if san else []))
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"


def expired_certificate(name, ca=None, hosts=()):
    """A certificate whose time is over, and its key, as PEM: signed by `ca`, the PEM of a certificate and of its key, or by itself.
    Neither our program nor openssl from 3.4 on makes one."""
    from cryptography import x509  # few tests need it
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    issuer, signs = subject, key
    if ca:
        issuer = x509.load_pem_x509_certificate(ca[0]).subject
        signs = serialization.load_pem_private_key(ca[1], None)
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=2))
            .not_valid_after(now - datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts or [name]]), False).sign(signs, hashes.SHA256()))
    return (made.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))


class EventLog:
    """Every line that listeners printed, with its arrival, over restarts of the listener: events, and resyncs apart."""

    def __init__(self):
        self.lines = []  # (monotonic arrival, bytes); only ever grows
        self.resyncs = []  # (monotonic arrival, reason)

    def take(self, arrival, line):
        if b'"resync":' in line:
            self.resyncs.append((arrival, json.loads(line)["resync"]))
        else:
            self.lines.append((arrival, line))

    def events(self, start=0):
        return [json.loads(line) for _, line in self.lines[start:]]

    def last_arrivals(self):
        """Arrival of the last event of each (namespace, name)."""
        last = {}
        for arrival, line in list(self.lines):
            watched = json.loads(line)["watched"]
            last[watched["namespace"], watched["name"]] = arrival
        return last

    def untold(self, changes):
        """Of changes by (namespace, name), with the time of the last one: those that neither an event nor a resync has come
        after. That of a resync is to be later by the time until a change is stored."""
        told, resync = self.last_arrivals(), max((arrival for arrival, _ in list(self.resyncs)), default=0)
        return [key for key, at in changes.items() if told.get(key, 0) < at and resync < at + SETTLE]


def brief(event):
    """One event as a comparable tuple: component, group, version, kind, namespace, name, runtime id."""
    gvk, watched = event["gvk"], event["watched"]
    return (event["component"], gvk["group"], gvk["version"], gvk["kind"], watched["namespace"], watched["name"],
            event["runtimeId"])


class Listener(Process):
    """`runtime-watcher listen`, its events and resyncs going to an EventLog; tls=(certificate, key) makes it terminate TLS."""

    def __init__(self, events, component, port=0, tls=None, client_ca=None, options=()):
        self._again = dict(events=events, component=component, tls=tls, client_ca=client_ca, options=options)
        argv = [BINARY, "listen", "--address", f"127.0.0.1:{port}", "--component", component, "--resyncs"]
        if tls:
            argv += ["--tls-cert", tls[0], "--tls-key", tls[1]]
        if client_ca:
            argv += ["--client-ca", client_ca]
        super().__init__("listener", [*argv, *options], on_line=events.take)
        self.port = self.wait_listening("listener")

    def restarted(self):
        """Ends this one gracefully and returns a new one on the same port."""
        code = self.terminate()
        if code != 0:
            raise AssertionError(f"the listener ended with {code}:\n{self.tail()}")
        return Listener(port=self.port, **self._again)


class Webhook(Process):
    """`runtime-watcher webhook` on ports of its choice; `ready` waits for /readyz. It sends no heartbeats, which tests would
    count as requests, unless `env` says so. `binary`: another program than the one under test."""

    def __init__(self, certificate, key, ca, kcp, options=(), env=None, binary=BINARY):
        environment = {**os.environ, "WEBHOOK_PORT": "0", "METRICS_PORT": "0", "CA_CERT": str(ca),
                       "TLS_CERT": str(certificate), "TLS_KEY": str(key), "KCP_ADDR": kcp, "KCP_CONTRACT": "v2",
                       "SHUTDOWN_DELAY": "0", "HEARTBEAT_INTERVAL": "0", **(env or {})}
        super().__init__("webhook", [binary, "webhook", "--bind-address", "127.0.0.1", *options], env=environment)
        self.port = self.wait_listening("webhook")
        self.admin = self.wait_listening("admin")

    def get(self, path):
        """Status and text of a page of the admin port; status 0 when nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def ready(self, timeout=10):
        wait_until(lambda: self.get("/readyz")[0] == 200, timeout, lambda: f"webhook is ready:\n{self.tail()}")
        return self

    def metric(self, name, /, **labels):
        """Sum of the samples of a metric that carry these labels; None when there is none."""
        return metric_sum(self.get("/metrics")[1], name, **labels)


def metric_sum(text, name, /, **labels):
    values = []
    for line in text.splitlines():
        match = re.match(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)", line)
        if match and match[1] == name:
            has = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            if all(has.get(k) == v for k, v in labels.items()):
                values.append(float(match[3]))
    return sum(values) if values else None


class Gateway(Process):
    """nginx as the gateway: terminates mutual TLS and hands the client certificate on in X-Forwarded-Client-Cert.

    With record=True every request's arrival, status and body are kept in a file for `delivered()`. `locations` is nginx
    configuration for paths that go elsewhere.
    """

    def __init__(self, folder, certificate, key, client_ca, upstream_port, port=None, http2=True, record=False,
                 locations=""):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self.record = self.folder / "requests.log"
        (self.folder / "nginx.pid").unlink(missing_ok=True)
        log = f"access_log {self.record} record;" if record else "access_log off;"
        user = "user root;" if os.geteuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(f"""
{user} daemon off; worker_processes 1; pid {self.folder}/nginx.pid; error_log stderr warn;
events {{ worker_connections 512; }}
http {{
  client_body_temp_path {self.folder}/body; proxy_temp_path {self.folder}/proxy;
  fastcgi_temp_path {self.folder}/fastcgi; uwsgi_temp_path {self.folder}/uwsgi; scgi_temp_path {self.folder}/scgi;
  client_max_body_size 8m; client_body_buffer_size 8m; keepalive_requests 1000000;
  log_format record escape=json '{{"at":$msec,"took":$request_time,"status":$status,"body":"$request_body"}}';
  upstream listener {{ server 127.0.0.1:{upstream_port} max_fails=0; keepalive 16; }}
  server {{
    listen 127.0.0.1:{self.port} ssl{" http2" if http2 else ""};
    ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.3;
    ssl_verify_client on; ssl_client_certificate {client_ca};
    {log}
    {locations}
    location / {{
      proxy_pass http://listener; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header X-Forwarded-Client-Cert "Cert=$ssl_client_escaped_cert";
      proxy_connect_timeout 5s; proxy_read_timeout 30s;
    }}
  }}
}}
""")
        nginx = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin") or skip("nginx is not installed")
        super().__init__("nginx", [nginx, "-p", self.folder, "-e", "stderr", "-c", self.folder / "nginx.conf"],
                         dies_by="TERM")  # a master that is killed leaves its workers
        # Which it writes once its port is its own: another process may answer there while it tries.
        wait_until(lambda: (self.folder / "nginx.pid").exists() or not self.running(), 10, "nginx listens")
        if not self.running():
            raise AssertionError(f"nginx ended with {self.popen.returncode}:\n{self.tail()}")

    def reload(self):
        """What `nginx -s reload` does: new workers, the old ones finish what they have."""
        self.send(signal.SIGHUP)

    def delivered(self):
        """For each (namespace, name): the latest time (Unix seconds) at which a request that carried its event and
        was answered 200 or 207 began to arrive here. What a 207 refuses comes again: once nothing waits any more, the
        latest request of an event is one that delivered it."""
        latest = {}
        for line in self.record.read_text().splitlines():
            request = json.loads(line)
            if request["status"] not in (200, 207):
                continue
            body = json.loads(request["body"])
            for event in body if isinstance(body, list) else [body]:
                key = event["watched"]["Namespace"], event["watched"]["Name"]
                latest[key] = max(latest.get(key, 0), request["at"] - request["took"])
        return latest


def start_of_openssl():
    """Seconds that a process takes to start and end which does next to nothing: what starts are compared with."""
    began = time.monotonic()
    subprocess.run(["openssl", "version"], check=True, capture_output=True, timeout=20)
    return time.monotonic() - began


def can_connect(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), 1).close()
        return True
    except OSError:
        return False


def secrets_in(folder):
    """The tokens in the files of a folder, and the lines of private keys in PEM. Of fewer than 8 characters none is
    secret. Definitions of resources describe tokens and keys, and have none."""
    found = set()
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MIB or path.suffix in (".log", ".snap", ".wal"):
            continue
        text = path.read_text("utf-8", "replace")
        if "CustomResourceDefinition" in text:
            continue
        found.update(re.findall(r"""\btoken["']?: *["']?([^\s"',}]+)""", text))
        # A kubeconfig has its key in base64.
        inner = [base64.b64decode(each).decode("utf-8", "replace")
                 for each in re.findall(r"\bLS0tLS1CRUdJTi[\w+/]{64,}={0,2}", text) if len(each) % 4 == 0]
        for key in re.findall(r"PRIVATE KEY-----\s+((?:[\w+/=]{20,}\s+)+)-----END", "\n".join([text, *inner])):
            found.update(key.split()[1:])  # the first line is the same for most keys of a kind
    return {each for each in found if len(each) >= 8}


def leaks(lines):
    """Those that contain a private key or a token."""
    lines = list(lines)
    all_lines = "\n".join(lines)
    texts = [text for text in secret_texts if text in all_lines]
    return [line for line in lines if SECRETS.search(line) or any(text in line for text in texts)]


def skr_manifests(folder, heartbeat_interval):
    """For --skr-manifests: those of deploy/skr, with webhooks that send a heartbeat so often."""
    shutil.copytree(ROOT / "deploy" / "skr", folder, dirs_exist_ok=True)
    deployment = folder / "deployment.yaml"
    text, first = deployment.read_text(), "          env:\n"
    assert text.count(first) == 1
    deployment.write_text(text.replace(first, f'{first}            - {{name: HEARTBEAT_INTERVAL, value: "{heartbeat_interval}"}}\n'))
    return folder


class TestCase(unittest.TestCase):
    """A test with a folder of its own; everything begun through `start` is ended with it, newest first, and shows the
    end of its log when the test failed. A test fails if a log has a private key in it, or a token of a file in the folder."""

    def setUp(self):
        if not os.access(BINARY, os.X_OK):
            self.fail(f"{BINARY} is not there; build it first (cmake --build --preset release)")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="runtime-watcher-e2e-"))
        self._processes = []
        self.addCleanup(self._finish)

    def start(self, process):
        self._processes.append(process)
        return process

    def note(self, text):
        """One line about what was seen or measured."""
        print(f"  {self._testMethodName}: {text}", file=sys.stderr, flush=True)

    def _failure(self):
        """The first line of what made the test fail, or nothing."""
        outcome = self._outcome.result
        texts = [text for test, text in outcome.failures + outcome.errors if test is self]
        return next((line for text in texts for line in text.splitlines() if re.match(r"[\w.]+: ", line)), texts and "failed")

    def _finish(self):
        for process in reversed(self._processes):
            process.kill()
        if failure := self._failure():
            self.note(failure)  # before the logs, which are long, newest first
            for process in reversed(self._processes):
                print(process.tail(), file=sys.stderr)
        secret_texts.update(secrets_in(self.folder))
        leaked = [(p.name, line[:300]) for p in self._processes for line in leaks(text for _, text in getattr(p, "log", ()))]
        if os.environ.get("RW_E2E_KEEP"):
            self.note(f"kept {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.assertEqual(leaked, [], "a log has a private key or a token in it")


def record_cpu():
    """Adds the CPU seconds of the script and of its processes that have ended to the file that RW_TEST_CPU names (tests/costs.py)."""
    used = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    with open(os.environ["RW_TEST_CPU"], "a", encoding="utf-8") as file:
        file.write(f"{sum(each.ru_utime + each.ru_stime for each in used):.3f} {' '.join(sys.argv)}\n")


def main():
    """Runs the tests of the calling script; to be its last line."""
    if os.environ.get("RW_TEST_CPU"):
        atexit.register(record_cpu)
    unittest.main(verbosity=2)
