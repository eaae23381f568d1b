"""The control plane's manager, from an empty KCP to a runtime that is installed, heard of, changed and removed.

The same story on embedded API servers and, where KUBEBUILDER_ASSETS names them, on two real ones with the true schemas
of RW_TEST_CRDS. The certificates' issuer is played by this script with openssl, the gateway by nginx, and the pod of the
webhook by a process that gets exactly what the manager has put on the runtime.
"""

import base64
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import types
import unittest
import urllib.request

import control_plane
import harness
from harness import BINARY, ROOT, Gateway, Process, Webhook, free_port, metric_sum, wait_until

KUBECTL = os.environ.get("RW_E2E_KUBECTL") or shutil.which("kubectl")
RUNTIME = "runtime-4711"
DOMAIN = "skr-4711.example.com"
PATIENCE = 60


def encoded(data):
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


def decoded(secret, key):
    return base64.b64decode(secret["data"][key])


class Issuer:
    """A root CA, and what cert-manager does with Certificates: keys and Secrets for them."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                      "-subj", "/CN=klm-watcher", "-addext", "subjectAltName=DNS:localhost",
                      "-addext", "basicConstraints=critical,CA:TRUE", "-keyout", folder / "ca.key", "-out", folder / "ca.crt")

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)

    @property
    def root_secret(self):
        certificate, key = (encoded((self.folder / name).read_bytes()) for name in ("ca.crt", "ca.key"))
        return {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                "metadata": {"name": "klm-watcher", "namespace": "istio-system"},
                "data": {"tls.crt": certificate, "tls.key": key, "ca.crt": certificate}}

    def secret_for(self, certificate):
        """The Secret that a Certificate asks for."""
        spec = certificate["spec"]
        names = ",".join(f"DNS:{name}" for name in spec["dnsNames"])
        request, extensions, issued, key = (self.folder / f"{RUNTIME}.{e}" for e in ("csr", "ext", "crt", "key"))
        extensions.write_text(f"subjectAltName={names}\nkeyUsage=digitalSignature,keyEncipherment\n"
                              "extendedKeyUsage=serverAuth,clientAuth\n")
        self._openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={spec['commonName']}", "-keyout", key, "-out", request)
        self._openssl("x509", "-req", "-in", request, "-CA", self.folder / "ca.crt", "-CAkey", self.folder / "ca.key",
                      "-CAcreateserial", "-days", "10", "-extfile", extensions, "-out", issued)
        return {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                "metadata": {"name": spec["secretName"], "namespace": certificate["metadata"]["namespace"],
                             "labels": spec["secretTemplate"]["labels"]},
                "data": {"tls.crt": encoded(issued.read_bytes()), "tls.key": encoded(key.read_bytes()),
                         "ca.crt": encoded((self.folder / "ca.crt").read_bytes())}}


class Cluster:
    """kubectl for one cluster."""

    def __init__(self, kubeconfig, cache):
        self.kubeconfig = pathlib.Path(kubeconfig)
        self._cache = cache

    def attempt(self, *arguments, stdin=None):
        text = stdin if stdin is None or isinstance(stdin, str) else json.dumps(stdin)
        return subprocess.run([KUBECTL, "--kubeconfig", str(self.kubeconfig), "--cache-dir", str(self._cache), *map(str, arguments)],
                              input=text, text=True, capture_output=True, timeout=60)

    def kubectl(self, *arguments, stdin=None):
        done = self.attempt(*arguments, stdin=stdin)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}")
        return done.stdout

    def apply(self, *objects):
        for each in objects:
            self.kubectl("apply", "-f", "-", stdin=each)

    def get(self, kind, name=None, ns=None):
        """The object or list; None if there is none."""
        done = self.attempt("get", kind, *([name] if name else []), *(["-n", ns] if ns else []), "-o", "json")
        if done.returncode != 0:
            if "NotFound" in done.stderr or "not found" in done.stderr:
                return None
            raise AssertionError(f"kubectl get {kind} {name}: {done.stderr}")
        return json.loads(done.stdout)

    def until(self, kind, name, ns, good, what):
        """Waits until the object is there and as `good` says, and returns it."""
        def look():
            found = self.get(kind, name, ns)
            return found if found is not None and good(found) else None
        return wait_until(look, PATIENCE, lambda: f"{kind} {name} {what}; it is {self.get(kind, name, ns)}", every=0.1)

    def until_gone(self, kind, name, ns):
        wait_until(lambda: self.get(kind, name, ns) is None, PATIENCE, f"{kind} {name} is gone", every=0.1)

    def events_of(self, name, ns):
        return {e["reason"] for e in self.get("events", ns=ns)["items"] if e["involvedObject"]["name"] == name}


class Story:
    """The tests; a subclass starts the clusters and says where the definitions are."""

    def setUp(self):
        super().setUp()
        if not KUBECTL:
            self.skipTest("there is no kubectl")
        self.kcp, self.skr = self.start_clusters()
        self.port = free_port()
        self.issuer = Issuer(self.folder / "issuer")
        self.prepare()
        self.manager = self.start(Process("manager", [
            BINARY, "manager", "--kubeconfig", self.kcp.kubeconfig, "--listen-address", "127.0.0.1:0",
            "--metrics-address", "127.0.0.1:0", "--pin-san", "--skr-image", "example.com/runtime-watcher:1"]))
        self.listener = self.manager.wait_listening("listener")
        self.admin = self.manager.wait_listening("admin")

    def prepare(self):
        for crd in self.definitions():
            self.kcp.kubectl("create", "-f", crd)
        self.kcp.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
        for ns in ("kcp-system", "istio-system"):
            self.kcp.kubectl("create", "namespace", ns)
        self.kcp.apply({"apiVersion": "networking.istio.io/v1beta1", "kind": "Gateway",
                        "metadata": {"name": "klm-watcher", "namespace": "kcp-system",
                                     "labels": {"operator.kyma-project.io/watcher-gateway": "default"}},
                        "spec": {"selector": {"istio": "ingressgateway"}, "servers": [
                            {"hosts": ["localhost"], "port": {"name": "https", "number": self.port, "protocol": "HTTPS"},
                             "tls": {"mode": "MUTUAL", "credentialName": "klm-istio-gateway"}}]}},
                       self.issuer.root_secret)

    def metric(self, name, **labels):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=10) as answer:
            return metric_sum(answer.read().decode(), name, **labels) or 0

    def reconciles(self):
        return self.metric("controller_runtime_reconcile_total", controller="watcher-installer")

    def add_kyma(self):
        kubeconfig = self.skr.kubeconfig.read_text()
        self.kcp.apply({"apiVersion": "v1", "kind": "Secret",
                        "metadata": {"name": f"kubeconfig-{RUNTIME}", "namespace": "kcp-system",
                                     "labels": {"operator.kyma-project.io/kyma-name": "kyma-1"}},
                        "data": {"config": encoded(kubeconfig)}},
                       {"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Kyma",
                        "metadata": {"name": "kyma-1", "namespace": "kcp-system",
                                     "labels": {"kyma-project.io/runtime-id": RUNTIME},
                                     "annotations": {"skr-domain": DOMAIN}},
                        "spec": {"channel": "regular"}})

    def issue(self):
        certificate = self.kcp.until("certificates.cert-manager.io", "kyma-1-webhook-tls", "istio-system",
                                     lambda c: c["spec"]["commonName"] == RUNTIME, "asks for the runtime's certificate")
        self.assertIn(DOMAIN, certificate["spec"]["dnsNames"])
        self.kcp.apply(self.issuer.secret_for(certificate))

    def installed(self, webhooks):
        """The webhook configuration on the runtime, once it has these webhooks."""
        return self.skr.until("validatingwebhookconfigurations", "skr-webhook", None,
                              lambda c: sorted(w["name"].split(".")[1] for w in c.get("webhooks") or []) == sorted(webhooks),
                              f"has the webhooks {webhooks}")

    def run_webhook(self):
        """The pod, and the gateway in front of the manager, with what lies in the clusters."""
        secret = self.skr.get("secret", "skr-webhook-tls", "kyma-system")
        gateway = self.kcp.get("secret", "klm-istio-gateway", "istio-system")
        files = {}
        for owner, from_ in (("skr", secret), ("gateway", gateway)):
            for key in ("tls.crt", "tls.key", "ca.crt"):
                files[owner, key] = self.folder / f"{owner}-{key}"
                files[owner, key].write_bytes(decoded(from_, key))
        self.start(Gateway(self.folder / "nginx", files["gateway", "tls.crt"], files["gateway", "tls.key"],
                           files["gateway", "ca.crt"], self.listener, port=self.port))
        containers = self.skr.get("deployment", "skr-webhook", "kyma-system")["spec"]["template"]["spec"]["containers"]
        environment = {e["name"]: e.get("value") for e in containers[0]["env"]}
        self.assertEqual(environment["KCP_ADDR"], f"localhost:{self.port}")
        return self.start(Webhook(files["skr", "tls.crt"], files["skr", "tls.key"], files["skr", "ca.crt"],
                                  environment["KCP_ADDR"], contract=environment["KCP_CONTRACT"])).ready()

    def review(self, webhook, configuration):
        """As the runtime's API server would: posts a review, trusting the webhook's caBundle."""
        client = configuration["webhooks"][0]["clientConfig"]
        context = ssl.create_default_context(cadata=base64.b64decode(client["caBundle"]).decode())
        self.assertEqual(client["service"]["name"], "skr-webhook")
        context.check_hostname = False  # the Service's name does not lead here; the chain is still checked
        body = (ROOT / "deploy" / "samples" / "02-kyma-create.json").read_bytes()
        request = urllib.request.Request(f"https://127.0.0.1:{webhook.port}{client['service']['path']}", body,
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            self.assertTrue(json.load(answer)["response"]["allowed"])

    def test_a_runtime_is_installed_heard_of_changed_and_removed(self):
        self.kcp.kubectl("apply", "-f", ROOT / "deploy" / "samples" / "watcher.yaml")
        ready = lambda w: w.get("status", {}).get("state") == "Ready"
        self.kcp.until("watchers", "kyma", "kcp-system", ready, "is Ready")
        service = self.kcp.get("virtualservices.networking.istio.io", "kyma", "kcp-system")
        self.assertEqual(service["spec"]["gateways"], ["kcp-system/klm-watcher"])
        self.assertEqual(service["spec"]["http"][0]["match"][0]["uri"]["prefix"], "/v2/lifecycle-manager/event")

        self.add_kyma()
        self.issue()
        configuration = self.installed(["kyma"])
        hook = configuration["webhooks"][0]
        self.assertEqual(hook["failurePolicy"], "Ignore")
        self.assertEqual(hook["sideEffects"], "NoneOnDryRun")
        self.assertEqual(hook["objectSelector"]["matchLabels"], {"operator.kyma-project.io/watched-by": "kyma"})
        deployment = self.skr.until("deployment", "skr-webhook", "kyma-system", bool, "is there")
        self.assertEqual(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "example.com/runtime-watcher:1")
        for kind, name in (("service", "skr-webhook"), ("service", "skr-webhook-metrics"),
                           ("networkpolicy", "kyma-project.io--watcher-to-apiserver")):
            self.assertIsNotNone(self.skr.get(kind, name, "kyma-system"), name)
        self.assertIsNotNone(self.skr.get("priorityclass", "skr-webhook-priority"))

        # An event of the runtime requeues its Kyma, through webhook, mutual TLS, gateway and listener.
        webhook = self.run_webhook()
        before = self.metric("rw_kyma_router_events_total", outcome="routed")
        self.review(webhook, configuration)
        wait_until(lambda: self.metric("rw_kyma_router_events_total", outcome="routed") > before, PATIENCE,
                   lambda: f"the event has come:\n{webhook.tail()}\n{self.manager.tail()}")

        # A Watcher that changes, one that comes, and one that goes.
        self.kcp.kubectl("patch", "watcher", "kyma", "-n", "kcp-system", "--type=merge", "-p", '{"spec":{"field":"status"}}')
        self.skr.until("validatingwebhookconfigurations", "skr-webhook", None,
                       lambda c: c["webhooks"][0]["rules"][0]["resources"] == ["kymas/status"], "watches the status")
        second = json.loads(self.kcp.kubectl("get", "watcher", "kyma", "-n", "kcp-system", "-o", "json"))
        self.kcp.apply({"apiVersion": second["apiVersion"], "kind": "Watcher",
                        "metadata": {"name": "second", "namespace": "kcp-system"},
                        "spec": {**second["spec"], "manager": "other"}})
        self.installed(["kyma", "second"])
        self.kcp.kubectl("delete", "watcher", "kyma", "-n", "kcp-system", "--timeout=30s")
        self.installed(["second"])
        self.kcp.until_gone("virtualservices.networking.istio.io", "kyma", "kcp-system")

        # The Kyma goes, and leaves nothing behind.
        self.kcp.kubectl("delete", "kyma", "kyma-1", "-n", "kcp-system", "--timeout=60s")
        self.assertIsNone(self.skr.get("validatingwebhookconfigurations", "skr-webhook"))
        self.assertIsNone(self.skr.get("deployment", "skr-webhook", "kyma-system"))
        self.assertIsNone(self.skr.get("secret", "skr-webhook-tls", "kyma-system"))
        self.assertIsNone(self.kcp.get("certificates.cert-manager.io", "kyma-1-webhook-tls", "istio-system"))
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())

    def test_an_invalid_watcher_says_why_and_makes_nothing(self):
        watcher = {"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Watcher",
                   "metadata": {"name": "wrong", "namespace": "kcp-system"},
                   "spec": {"resourceToWatch": {"group": "g.example.com", "version": "v1", "resource": "things"},
                            "field": "spec", "manager": "no/path",
                            "serviceInfo": {"name": "s", "port": 70000, "namespace": "kcp-system"},
                            "gateway": {"selector": {"matchLabels": {"operator.kyma-project.io/watcher-gateway": "default"}}}}}
        done = self.kcp.attempt("apply", "-f", "-", stdin=watcher)
        if done.returncode != 0:
            # The schema refuses what it can; what it cannot see is for the manager.
            self.assertIn("port", done.stderr)
            watcher["spec"]["serviceInfo"]["port"] = 8082
            done = self.kcp.attempt("apply", "-f", "-", stdin=watcher)
            if done.returncode != 0:
                self.assertIn("manager", done.stderr)
                return
        found = self.kcp.until("watchers", "wrong", "kcp-system", lambda w: w.get("status", {}).get("state") == "Error",
                               "is in Error")
        message = next(c["message"] for c in found["status"]["conditions"] if c["type"] == "VirtualService")
        self.assertIn("manager", message)
        self.assertIsNone(self.kcp.get("virtualservices.networking.istio.io", "wrong", "kcp-system"))


class Embedded(Story, harness.TestCase):
    def definitions(self):
        return [ROOT / "deploy" / "crds", ROOT / "deploy" / "dev"]

    def start_clusters(self):
        if not control_plane.knows_openapi_v3(KUBECTL):
            self.skipTest(f"{KUBECTL} knows no OpenAPI v3, which is all that is served")
        folder = self.folder / "clusters"
        server = self.start(Process("api-server", [BINARY, "api-server", "--address", "127.0.0.1:0", "--dir", folder,
                                                   "--cluster", "kcp,skr"]))
        server.wait_listening("api-server")
        return [Cluster(folder / f"{name}.kubeconfig", self.folder / f"cache-{name}") for name in ("kcp", "skr")]


@unittest.skipUnless(os.environ.get("KUBEBUILDER_ASSETS"), "KUBEBUILDER_ASSETS names no real API server")
class Real(Story, harness.TestCase):
    """Two real control planes; the kinds' true schemas where they are given."""

    WANTED = ("watchers.operator.kyma-project.io", "kymas.operator.kyma-project.io", "gateways.networking.istio.io",
              "virtualservices.networking.istio.io", "certificates.cert-manager.io")

    def definitions(self):
        """Those that are needed only: a kube-apiserver takes a minute over all of them."""
        true = os.environ.get("RW_TEST_CRDS")
        if not true:
            return [ROOT / "deploy" / "crds", ROOT / "deploy" / "dev"]
        found = []
        for path in sorted(pathlib.Path(true).glob("*.yaml")):
            for document in re.split(r"^---\s*$", path.read_text(), flags=re.MULTILINE):
                name = re.search(r"^  name: [\"']?([\w.-]+)", document, flags=re.MULTILINE)
                if name and name[1] in self.WANTED:
                    found.append(self.folder / f"{name[1]}.yaml")
                    found[-1].write_text(document)
        self.assertEqual(len(found), len(self.WANTED), found)
        return found

    def start_clusters(self):
        clusters = []
        for name in ("kcp", "skr"):
            owner = types.SimpleNamespace(folder=self.folder / name, start=self.start)
            owner.folder.mkdir()
            plane = control_plane.ControlPlane(owner)
            # A runtime's kubeconfig comes with its CA inline, and an address that the certificate names.
            config = json.loads((plane.folder / "kubeconfig").read_text())
            cluster = config["clusters"][0]["cluster"]
            cluster.pop("insecure-skip-tls-verify")
            cluster["certificate-authority-data"] = encoded(plane.certificate.read_bytes())
            kubeconfig = owner.folder / "kubeconfig"
            kubeconfig.write_text(json.dumps(config))
            clusters.append(Cluster(kubeconfig, owner.folder / "cache"))
        return clusters


if __name__ == "__main__":
    harness.main()
