"""Many runtimes of one manager that are installed and send heartbeats, for measurements of the manager: KCP and the clusters
are those of an embedded API server in one process, which says that Deployments are ready, and this script does the rest's part, in
the order of the real ones: it issues the Certificates, and posts the heartbeats of the webhooks, as KCP's gateway hands them on.
Nothing runs on the runtimes.
"""

import datetime
import http.client
import json
import os
import queue
import re
import subprocess
import threading
import time
import urllib.parse

import bootstrapper_sources as sources
from api import Api, collection, kymas
from harness import BINARY, DEV_BINARY, ROOT, Pki, Process, free_port, wait_until
from landscape import RUNTIME_SPEC, encoded

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
except ImportError:
    x509 = None

KCP = "kcp-system"
CRDS = collection("customresourcedefinitions", None, "apiextensions.k8s.io")
RUNTIMES = collection("runtimes", KCP, "infrastructuremanager.kyma-project.io", "v1")
CERTIFICATES = collection("certificates", "istio-system", "cert-manager.io")
SECRETS = collection("secrets", "istio-system")
PERIOD = 60  # seconds between two heartbeats of a runtime
ISSUERS = 2  # threads


def rfc3339(seconds):
    return datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def define(kcp):
    for path in [*sorted((ROOT / "deploy/crds").glob("*.yaml")), *sorted((ROOT / "deploy/dev").glob("*.yaml"))]:
        for document in re.split(r"^---\s*$", path.read_text(), flags=re.MULTILINE):
            if "kind: CustomResourceDefinition" in document:
                name = re.search(r"^  name: ([\w.-]+)", document, flags=re.MULTILINE)[1]
                kcp.apply(f"{CRDS}/{name}", document)


def fill(kcp, pki):
    for ns in (KCP, "istio-system", "runtime-watcher-system"):
        kcp.apply(f"/api/v1/namespaces/{ns}", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}})
    certificate, key = (encoded((pki.folder / name).read_bytes()) for name in ("ca.crt", "ca.key"))
    kcp.request("POST", collection("secrets", "istio-system"), {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": "klm-watcher", "namespace": "istio-system"},
        "data": {"tls.crt": certificate, "tls.key": key, "ca.crt": certificate}})
    gateway = (ROOT / "deploy/pki/gateway.yaml").read_text()
    document = next(d for d in re.split(r"^---\s*$", gateway, flags=re.MULTILINE) if "kind: Gateway" in d)
    gateways = collection("gateways", KCP, "networking.istio.io", "v1beta1")
    kcp.apply(f"{gateways}/klm-watcher", document)
    for each in (sources.configuration_source(sources.configuration(False)), sources.pull_secret("first"),
                 sources.manifests_source(sources.manifests("1.0.0"))):
        kcp.request("POST", collection("secrets" if each["kind"] == "Secret" else "configmaps", KCP), each)


def add_runtime(kcp, folder, name):
    kcp.request("POST", collection("secrets", KCP), {
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": f"kubeconfig-{name}", "namespace": KCP, "labels": {"operator.kyma-project.io/kyma-name": name}},
        "data": {"config": encoded((folder / f"{name}.kubeconfig").read_bytes())}})
    kcp.request("POST", kymas(KCP), {
        "apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Kyma",
        "metadata": {"name": name, "namespace": KCP, "labels": {"kyma-project.io/runtime-id": name},
                     "annotations": {"skr-domain": f"{name}.example.com"}},
        "spec": {"channel": "regular"}})
    kcp.request("POST", RUNTIMES, {
        "apiVersion": "infrastructuremanager.kyma-project.io/v1", "kind": "Runtime",
        "metadata": {"name": name, "namespace": KCP, "labels": {"operator.kyma-project.io/kyma-name": name}},
        "spec": RUNTIME_SPEC})


class QuietFleet:
    """`silent` holds the names of runtimes that send none. The runtimes' clusters are those of KCP's process, or of so many
    others as `apart` says; `runtimes_server` is the last of them.
    Certificates are issued by `pki`, and again when the manager asks for that."""

    def __init__(self, folder, runtimes, apart=0):
        self.folder = folder
        self.names = [f"runtime-{i + 1}" for i in range(runtimes)]
        self.certificates = {}  # name -> percent-encoded PEM
        self.ordered = set()  # names
        self.orders = queue.Queue()
        self.silent = set()
        self.ended = threading.Event()
        self.port = free_port()
        self.sent = 0
        self.failure = None
        self.signing = None
        self.manager = None
        self.servers = []
        self.folders = {}  # cluster -> that of its kubeconfig
        parts = [["kcp"], *(self.names[i::apart] for i in range(apart))] if apart else [["kcp", *self.names]]
        for number, names in enumerate(parts):
            clusters = folder / f"clusters-{number}"
            self.folders.update(dict.fromkeys(names, clusters))
            self.servers.append(Process("api-server", [DEV_BINARY, "api-server", "--address", "127.0.0.1:0", "--dir", clusters,
                                                       "--running-deployments", "--cluster", ",".join(names)]))
            self.servers[-1].wait_listening("api-server", 300)
        self.runtimes_server = self.servers[-1]
        self.kubeconfig = self.folders["kcp"] / "kcp.kubeconfig"
        self.kcp = Api(self.kubeconfig)
        self.pki = Pki(folder / "pki")
        define(self.kcp)
        fill(self.kcp, self.pki)
        for name in self.names:
            add_runtime(self.kcp, self.folders[name], name)

    def kill(self):
        self.ended.set()
        for one in (self.manager, *self.servers):
            if one:
                one.kill()

    def start_manager(self, port, options):
        """Starts another manager, whose listener has this port."""
        return Process("manager", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", self.kubeconfig, "--skr-image=example.com/runtime-watcher:1",
            f"--listen-address=127.0.0.1:{port}", "--metrics-address=127.0.0.1:0", "--rollout-max-unavailable=100%",
            "--rollout-canary-soak=1s", *options])

    def install(self, options=("--no-leader-elect", "--no-watch-runtimes", "--probe-interval=0"), patience=1200):
        """Starts the manager, and returns the port of its page once all runtimes are installed, and KCP hears of them."""
        self.manager = self.start_manager(self.port, options)
        page = self.manager.wait_listening("admin", 60)
        self._make_key()
        threading.Thread(target=self._guard, args=(self._follow_certificates,), daemon=True).start()
        for _ in range(ISSUERS):
            threading.Thread(target=self._guard, args=(self._issue_all,), daemon=True).start()
        for part in range(4):
            threading.Thread(target=self._guard, args=(self._send_heartbeats, self.names[part::4]), daemon=True).start()
        wait_until(lambda: self._live(page) == len(self.names), patience,
                   lambda: f"all runtimes are live: {get(page, '/runtimes?limit=1')}\n{self.manager.tail(5)}", every=max(1, len(self.names) / 5000))
        return page

    def _live(self, page):
        if self.failure:
            raise self.failure
        shown = get(page, "/runtimes?limit=1")
        return min(shown["states"].get("installed", 0), shown["heartbeats"]["live"] + shown["heartbeats"]["degraded"])

    def _guard(self, run, *arguments):
        try:
            run(*arguments)
        except Exception as error:
            self.failure = error

    # --- issuer ---------------------------------------------------------------------------

    def _make_key(self):
        self.key = self.folder / "client.key"
        subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.key], check=True, timeout=60)
        self.public = self.folder / "client.pub"
        subprocess.run(["openssl", "pkey", "-in", self.key, "-pubout", "-out", self.public], check=True, timeout=60)
        if x509 is not None:
            self.public_key = serialization.load_pem_public_key(self.public.read_bytes())

    def _follow_certificates(self):
        for each in Api(self.kubeconfig).follow(CERTIFICATES, self.ended):
            name = each["spec"]["commonName"]
            asked = any(one["type"] == "Issuing" for one in each.get("status", {}).get("conditions", ()))
            if asked or name not in self.ordered:
                self.ordered.add(name)
                self.orders.put(each)

    def _issue_all(self):
        kcp = Api(self.kubeconfig)
        while not self.ended.is_set():
            try:
                each = self.orders.get(timeout=1)
            except queue.Empty:
                kcp.close()  # it connects again; a server closes what is idle
                continue
            self._issue(kcp, each, each["spec"]["commonName"])

    def _issue(self, kcp, certificate, name):
        spec, meta = certificate["spec"], certificate["metadata"]
        sign = self._sign_by_openssl if x509 is None else self._sign
        pem = sign(name, spec["dnsNames"])
        kcp.apply(f"{SECRETS}/{spec['secretName']}", {
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": spec["secretName"], "namespace": meta["namespace"], "labels": spec["secretTemplate"]["labels"]},
            "data": {"tls.crt": encoded(pem), "tls.key": encoded(self.key.read_bytes()),
                     "ca.crt": encoded((self.pki.folder / "ca.crt").read_bytes())}})
        now = time.time()
        kcp.patch(f"{CERTIFICATES}/{meta['name']}/status", {"status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "issued",
                            "observedGeneration": meta["generation"], "lastTransitionTime": rfc3339(now)}],
            "notBefore": rfc3339(now - 60), "notAfter": rfc3339(now + 60 * 86400), "renewalTime": rfc3339(now + 40 * 86400)}})
        self.certificates[name] = urllib.parse.quote(pem.decode(), safe="")

    def _sign(self, name, names):
        authority, key = self._authority()
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = x509.CertificateBuilder(
            issuer_name=authority.subject, subject_name=x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]),
            public_key=self.public_key, serial_number=x509.random_serial_number(), not_valid_before=now,
            not_valid_after=now + datetime.timedelta(days=60))
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), critical=False)
        return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _authority(self):
        if self.signing is None or self.signing[0] is not self.pki:
            certificate, key = ((self.pki.folder / name).read_bytes() for name in ("ca.crt", "ca.key"))
            self.signing = self.pki, (x509.load_pem_x509_certificate(certificate), serialization.load_pem_private_key(key, None))
        return self.signing[1]

    def _sign_by_openssl(self, name, names):
        """A process for each: 20 a second, which is less than a manager asks for."""
        alternatives = ",".join(f"DNS:{each}" for each in names)
        return subprocess.run(["openssl", "x509", "-new", "-subj", f"/CN={name}", "-force_pubkey", self.public, "-CA",
                               self.pki.folder / "ca.crt", "-CAkey", self.pki.folder / "ca.key", "-days", "60", "-extfile", "/dev/stdin"],
                              input=f"subjectAltName={alternatives}\n".encode(), check=True, capture_output=True, timeout=60).stdout

    # --- the webhooks' heartbeats ---------------------------------------------------------

    def _send_heartbeats(self, names):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sequence, boot = 0, os.urandom(8).hex()
        while not self.ended.is_set():
            begun = time.monotonic()
            sequence += 1
            for i, name in enumerate(names):
                if name in self.certificates and name not in self.silent:
                    self._send(connection, name, boot, sequence)
                self.ended.wait(max(0, begun + PERIOD * i / len(names) - time.monotonic()))
            self.ended.wait(max(0, begun + PERIOD - time.monotonic()))

    def send_one(self, connection, name):
        """Returns true if it was handled."""
        return 200 <= self._send(connection, name, os.urandom(8).hex(), 1) < 300

    def _send(self, connection, name, boot, sequence):
        events = 3 * sequence
        connection.request("POST", "/v2/runtime-watcher/event", json.dumps({
            "version": "0.1.0", "bootId": boot, "sequence": sequence, "intervalSeconds": PERIOD, "source": "both",
            "events": {"accepted": events, "delivered": events}, "oldestUndeliveredMilliseconds": 0,
            "deliveryMilliseconds": 3 + (hash(name) + sequence) % 9,
            "certificateNotAfter": rfc3339(time.time() + 60 * 86400), "watches": []}), {
                "Content-Type": "application/vnd.runtime-watcher.heartbeat+json",
                "X-Forwarded-Client-Cert": "Cert=" + self.certificates[name]})
        answer = connection.getresponse()
        answer.read()
        self.sent += 1
        return answer.status


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    body = connection.getresponse().read()
    connection.close()
    return json.loads(body)
