"""The headline of the page, `status`, `doctor` and the alerts say the same of a landscape: that it is well, that most of its
runtimes hang, that its CA has expired, that a roll-out is paused, that an operator is dead, that its leader is dead, or hangs."""

import base64
import http.client
import http.server
import json
import re
import shutil
import signal
import subprocess
import threading
import time

import harness
from api import collection
from browser import Browser, need_browser
from dev import WATCHED, Dev
from harness import BINARY, Process, free_port, runtime_watcher, wait_until
from prometheus import Prometheus

need_browser()

PATIENCE = 120
ROOT_SECRET = collection("secrets", "istio-system") + "/klm-watcher"
WATCHERS = collection("watchers", "kcp-system", "operator.kyma-project.io", "v1beta2")
ROLLOUT = collection("runtimerollouts", "kcp-system", "operator.kyma-project.io", "v1alpha1") + "/watcher"
FLEET = {"FleetOutage", "FleetDegraded", "FleetVerdictOld", "ManagerHasNoLeader"}
ALERTS = {"well": set(), "outage": {"FleetOutage"}, "degraded": {"FleetDegraded"}, "unknown": {"ManagerHasNoLeader"}}


class SecondOperator(http.server.ThreadingHTTPServer):
    """What the gateway reaches: the manager, and an operator that accepts all until it is dead."""

    daemon_threads = True

    def __init__(self, port_of_manager):
        super().__init__(("127.0.0.1", 0), Forward)
        self.port_of_manager = port_of_manager
        self.is_dead = False
        self.senders = set()  # by their certificates
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def kill(self):
        self.shutdown()
        self.server_close()

    def tail(self):
        return ""


class Forward(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.startswith("/v2/second-operator/"):
            self.server.senders.add(self.headers["x-forwarded-client-cert"])
            return self.respond(503 if self.server.is_dead else 200, {}, b"")
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port_of_manager, timeout=10)
        connection.request("POST", self.path, body, dict(self.headers))
        answer = connection.getresponse()
        self.respond(answer.status, dict(answer.headers), answer.read())
        connection.close()

    def respond(self, status, headers, body):
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Fleet(harness.TestCase):
    browser = None

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.kill)

    def begin(self, runtimes, *options, second_operator=False):
        self.port, self.metrics = free_port(), free_port()
        self.operator = self.start(SecondOperator(self.port)) if second_operator else None
        backend = self.operator.server_port if second_operator else self.port
        self.dev = self.start(Dev(self.folder / "dev", runtimes, "--no-manager", "--backend", f"127.0.0.1:{backend}", *options)).wait_up()
        self.kcp = self.dev.kcp()
        self.prometheus = self.start(Prometheus(self.folder / "prometheus", [f"127.0.0.1:{self.metrics}"]))
        self.start_manager()
        wait_until(self.prometheus.is_ready, PATIENCE, "Prometheus is ready", every=0.1)
        self.browser.open(f"http://127.0.0.1:{self.metrics}/")

    def start_manager(self, *options):
        self.manager = self.start(Process("manager", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", self.dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{self.port}",
            "--metrics-address", f"127.0.0.1:{self.metrics}", "--ca-propagation", "1s", "--ca-grace-period", "1s",
            "--ca-gateway-settles", "0s", "--probe-interval", "5s", "--heartbeat-timeout", "25s",
            "--skr-manifests", harness.skr_manifests(self.folder / "skr", "10s"), "--lease-duration", "3s",
            "--renew-deadline", "1500ms", "--retry-period", "500ms", *options]))
        self.manager.wait_listening("admin")

    def command(self, *arguments):
        done = runtime_watcher(*arguments, "-o", "json", timeout=90)
        self.assertIn(done.returncode, (0, 1, 3), done.stderr)
        return json.loads(done.stdout)["verdict"]["message"]

    def say(self):
        """What each says."""
        address = f"127.0.0.1:{self.metrics}"
        headline = self.browser.text("#headline")
        return {"page": headline[2:], "status": self.command("status", "--address", address),
                "doctor": self.command("doctor", "--kubeconfig", self.dev.folder / "kcp.yaml", "--manager", address, "--runtime-timeout", "2s"),
                "alerts": self.prometheus.firing() & FLEET}

    def until_all_say(self, level, with_text=""):
        """Waits until all say so, with a text that matches, and returns the messages."""
        seen = {}
        def agree():
            seen.update(self.say())
            return seen["alerts"] == ALERTS[level] and all(
                seen[who].startswith(f"{level}: ") and re.search(with_text, seen[who]) for who in ("page", "status", "doctor"))
        wait_until(agree, PATIENCE, lambda: f"all say {level}: {seen}\n{self.manager.tail()}", every=0.5)
        self.note(f"{level}: {seen['page']}")
        return seen

    def indicators(self):
        """Runtimes in order, and all, of each service level indicator."""
        found = {}
        for each in self.prometheus.api("query", query="rw_fleet_sli_runtimes")["result"]:
            labels = each["metric"]
            found.setdefault(labels["sli"], {})[labels["state"]] = int(each["value"][1])
        return {sli: (counts["good"], counts["all"]) for sli, counts in found.items()}

    def until_indicator(self, name, counts):
        wait_until(lambda: self.indicators()[name] == counts, PATIENCE, lambda: f"{name} is {counts}: {self.indicators()}", every=0.5)

    def test_most_runtimes_hang(self):
        self.begin(20, "--hanging-runtimes", "15")
        self.until_all_say("outage", r"15 of 20 runtimes are ill \(75 %\)")
        self.assertRegex(self.browser.text("#causes"), r"15 runtimes: RuntimeUnreachable \(runtime-10, .*, …\)\n.*region")
        # What hangs is silent, too, when its first heartbeat is due.
        self.until_indicator("path", (5, 20))

    def test_fleet_is_well_until_a_rollout_is_paused(self):
        self.begin(4)
        self.until_all_say("well", "^well: 4 of 4 runtimes are well$")
        self.until_indicator("path", (4, 4))
        # The events of one runtime, however many, are one runtime's.
        for i in range(20):
            self.dev.skr("runtime-1").patch(WATCHED, {"spec": {"channel": f"channel-{i}"}})
        self.until_indicator("delivery", (1, 1))
        self.assertEqual(self.manager.terminate(), 0)
        self.kcp.patch(ROLLOUT, {"spec": {"paused": True}})
        self.start_manager("--skr-image", "example.com/runtime-watcher:next")
        self.until_all_say("degraded", "the roll-out of watcher is paused")

    def add_second_operator(self):
        watcher = self.kcp.get(f"{WATCHERS}/kyma")
        spec = {**watcher["spec"], "manager": "second-operator", "serviceInfo": {**watcher["spec"]["serviceInfo"], "name": "second-operator"}}
        self.kcp.request("POST", WATCHERS, {**{key: watcher[key] for key in ("apiVersion", "kind")}, "spec": spec,
                                            "metadata": {"namespace": "kcp-system", "name": "second-operator"}})

    def test_operator_that_is_owed_a_resync_alone_is_named(self):
        self.begin(2, second_operator=True)
        self.until_all_say("well")
        self.operator.is_dead = True
        self.add_second_operator()
        self.until_all_say("degraded", "^degraded: events of 2 of 2 runtimes wait for second-operator$")

    def test_operator_that_accepts_no_events_is_named(self):
        self.begin(4, second_operator=True)
        self.until_all_say("well")
        self.add_second_operator()
        wait_until(lambda: len(self.operator.senders) == 4, PATIENCE, lambda: f"the operator is told to resync by all: {len(self.operator.senders)}", every=0.2)
        self.operator.is_dead = True
        for i in range(1, 5):
            self.dev.skr(f"runtime-{i}").patch(WATCHED, {"spec": {"channel": "channel-1"}})
        self.until_all_say("degraded", "^degraded: events of 4 of 4 runtimes wait for second-operator$")
        self.assertRegex(self.browser.text("#causes"), r"^4 runtimes: EventsWait \(runtime-1, .*\): second-operator does not accept them")

    def test_leader_hangs_and_dies(self):
        self.begin(2)
        self.until_all_say("well")
        self.manager.send(signal.SIGSTOP)
        self.until_all_say("unknown", "^unknown: no leader: ")
        self.manager.send(signal.SIGCONT)
        self.manager.kill()
        self.until_all_say("unknown", "^unknown: no leader: ")

    def test_ca_expires(self):
        self.begin(4, "--gateway-idle", "1s")  # so that heartbeats need handshakes
        self.until_all_say("well")
        served = self.kcp.get(collection("secrets", "istio-system") + "/klm-istio-gateway")["data"]["tls.crt"]
        self.put_root_that_expires(in_seconds=60)
        # It is served to all, and then it expires.
        wait_until(lambda: self.kcp.get(collection("secrets", "istio-system") + "/klm-istio-gateway")["data"]["tls.crt"] != served, 50,
                   lambda: f"the gateway serves with it\n{self.manager.tail()}", every=0.2)
        self.until_all_say("outage", r"4 of 4 runtimes are ill \(100 %\)")

    def put_root_that_expires(self, in_seconds):
        """As a person would who makes the CA by hand."""
        folder = self.folder / "root"
        folder.mkdir()
        (folder / "index.txt").touch()
        (folder / "ca.cnf").write_text(
            f"[ca]\ndefault_ca=c\n[c]\ndatabase={folder}/index.txt\nnew_certs_dir={folder}\nrand_serial=yes\ndefault_md=sha256\npolicy=p\n"
            "x509_extensions=e\n[p]\ncommonName=supplied\n[e]\nbasicConstraints=critical,CA:TRUE\nsubjectKeyIdentifier=hash\n"
            "subjectAltName=DNS:localhost\n")
        def openssl(*arguments):
            subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=30)
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=klm-watcher",
                "-keyout", folder / "tls.key", "-out", folder / "ca.csr")
        now = time.time()
        begin, end = (time.strftime("%y%m%d%H%M%SZ", time.gmtime(now + offset)) for offset in (-60, in_seconds))
        openssl("ca", "-batch", "-selfsign", "-config", folder / "ca.cnf", "-keyfile", folder / "tls.key", "-in", folder / "ca.csr",
                "-out", folder / "tls.crt", "-notext", "-startdate", begin, "-enddate", end)
        certificate, key = (base64.b64encode((folder / name).read_bytes()).decode() for name in ("tls.crt", "tls.key"))
        self.kcp.patch(ROOT_SECRET, {"data": {"tls.crt": certificate, "tls.key": key, "ca.crt": certificate}})


if __name__ == "__main__":
    if not shutil.which("prometheus"):
        harness.skip("prometheus is not installed")
    harness.main()
