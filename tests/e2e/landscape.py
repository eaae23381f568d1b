"""What the tests of the manager play in: KCP and one runtime's cluster, embedded or real, the issuer of certificates, which
this script plays with openssl, and the manager between them, with what deploy/manager says.
"""

import base64
import http.client
import json
import os
import pathlib
import re
import subprocess
import threading
import types
import unittest
import urllib.request

import control_plane
from api import Api
from audit import Audit
from harness import BINARY, DEV_BINARY, ROOT, Process, free_port, metric_sum, until_established, wait_until
from kubectl import KUBECTL, Kubectl

MANAGER = "runtime-watcher-manager"  # its ServiceAccount, Deployment and roles
RUNTIME = "runtime-4711"
DOMAIN = "skr-4711.example.com"
PATIENCE = 60
# A Runtime as the true schema wants it.
RUNTIME_SPEC = {"security": {"administrators": [], "networking": {"filter": {"egress": {"enabled": False}}}},
                "shoot": {"name": "s", "networking": {"nodes": "10.0.0.0/16", "pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
                          "platformRegion": "cf-eu10", "provider": {"type": "aws", "workers": []}, "purpose": "development",
                          "region": "eu-central-1", "secretBindingName": "b"}}


def encoded(data):
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


def decoded(secret, key):
    return base64.b64decode(secret["data"][key])


def webhooks_of_watchers(configuration):
    return [w for w in configuration.get("webhooks") or [] if w["name"].split(".")[1] != "watcher-probe"]


class Issuer:
    """A root CA, which is the certificate of the gateway `host`, too, and what cert-manager does with Certificates: keys and
    Secrets for them."""

    def __init__(self, folder, host="localhost"):
        self.folder = folder
        folder.mkdir()
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                      "-subj", "/CN=klm-watcher", "-addext", f"subjectAltName=DNS:{host}",
                      "-addext", "basicConstraints=critical,CA:TRUE",
                      "-addext", "keyUsage=critical,digitalSignature,keyCertSign,cRLSign", "-keyout", folder / "ca.key", "-out", folder / "ca.crt")

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
                              "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
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
    """kubectl for one cluster, which may have an Audit, and reads without it. Each wait ends as soon as one of the `audits` shows a refusal."""

    def __init__(self, kubeconfig, cache, audit=None, audits=()):
        self.kubeconfig = pathlib.Path(kubeconfig)
        self.audit = audit
        self._audits = audits
        self.kubectl = Kubectl(kubeconfig, cache)
        self.attempt = self.kubectl.attempt
        self._api = None
        self._kinds = {}
        self._lock = threading.Lock()

    def check_none_refused(self):
        for audit in self._audits:
            audit.check_none_refused()

    def apply(self, *objects):
        self.kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": objects})

    def get(self, kind, name=None, ns=None):
        """The object or list, as `kubectl get -o json` prints it; None if there is none. Not by kubectl: tests poll, and each of its
        processes costs more than the server's answer."""
        with self._lock:
            if self._api is None:
                self._api = Api(self.kubeconfig)
            try:
                path = self._path(kind, ns or "default")
                found = path and self._api.get(path + (f"/{name}" if name else ""))
            except (OSError, http.client.HTTPException) as error:
                self._api.close()
                raise AssertionError(f"get {kind} {name}: {error}") from error
        for item in found["items"] if found and not name else []:
            item.update(apiVersion=found["apiVersion"], kind=found["kind"].removesuffix("List"))
        return found

    def _path(self, kind, ns):
        """Of the objects of a kind, by any of its names, as kubectl takes them: plural, singular or short, with or without a group.
        None for one with a group that is not served."""
        if kind not in self._kinds:
            name, _, group = kind.partition(".")
            bases = ["/api/v1"] * (not group)
            for each in self._api.get("/apis")["groups"]:
                if group in ("", each["name"]):
                    bases += dict.fromkeys(f"/apis/{version['groupVersion']}" for version in (each["preferredVersion"], *each["versions"]))
            for base in bases:
                for each in (self._api.get(base) or {"resources": []})["resources"]:
                    names = (each["name"], each["singularName"] or each["kind"].lower(), *each.get("shortNames", ()))
                    if "/" not in each["name"] and name in names:
                        self._kinds.setdefault(kind, (base, each["name"], each["namespaced"]))
        if kind not in self._kinds:
            if "." in kind:
                return None
            raise AssertionError(f"the server of {self.kubeconfig} has no kind {kind}")
        base, plural, namespaced = self._kinds[kind]
        return f"{base}/namespaces/{ns}/{plural}" if namespaced else f"{base}/{plural}"

    def until(self, kind, name, ns, good, what):
        """Waits until the object is there and as `good` says, and returns it."""
        def look():
            self.check_none_refused()
            found = self.get(kind, name, ns)
            return found if found is not None and good(found) else None
        return wait_until(look, PATIENCE, lambda: f"{kind} {name} {what}; it is {self.get(kind, name, ns)}", every=0.1)

    def may(self, verb, what, ns):
        """Whether the user of the Audit may do that, says the server."""
        answer = self.attempt("auth", "can-i", verb, what, "-n", ns, "--as", self.audit.user)
        if answer.stdout.strip() not in ("yes", "no"):
            raise AssertionError(f"{verb} {what}: {answer.stderr}")
        return answer.stdout.strip() == "yes"

    def until_gone(self, kind, name, ns):
        wait_until(lambda: self.get(kind, name, ns) is None, PATIENCE, f"{kind} {name} is gone", every=0.1)

    def events_of(self, name, ns):
        return {e["reason"] for e in self.get("events", ns=ns)["items"] if e["involvedObject"]["name"] == name}


class Landscape:
    """To be mixed into a TestCase, by way of Embedded or Real: they start the clusters, and say where the definitions are
    and who the manager is to KCP.
    """

    OPTIONS = ()  # of the manager, beside those of its Deployment
    HOST = "localhost"  # of the gateway

    def setUp(self):
        super().setUp()
        if not KUBECTL:
            self.skipTest("there is no kubectl")
        self.kcp, self.skr = self.start_clusters()
        self.port = self.gateway_port()
        self.issuer = Issuer(self.folder / "issuer", self.HOST)
        self.prepare()
        self.manager = self.start_manager(*self.OPTIONS, pod_ip="fd00::99")

    def gateway_port(self):
        return free_port()

    def prepare(self):
        self.kcp.kubectl("create", *(word for path in self.definitions() for word in ("-f", path)))
        until_established(self.kcp.kubectl, "--all")
        self.kcp.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}} for ns in ("kcp-system", "istio-system")),
                       self.issuer.root_secret)
        gateway = (ROOT / "deploy" / "pki" / "gateway.yaml").read_text()
        self.kcp.kubectl("apply", "-f", "-", stdin=gateway.replace("listener.kcp.example.com", self.HOST).replace(
            "number: 443", f"number: {self.port}"))
        self.deploy_manager()

    def gateway(self, name, hosts, labels):
        return {"apiVersion": "networking.istio.io/v1beta1", "kind": "Gateway",
                "metadata": {"name": name, "namespace": "kcp-system", "labels": labels},
                "spec": {"selector": {"istio": "ingressgateway"}, "servers": [
                    {"hosts": hosts, "port": {"name": "https", "number": self.port, "protocol": "HTTPS"},
                     "tls": {"mode": "MUTUAL", "credentialName": "klm-istio-gateway"}}]}}

    def manifests(self):
        """Of the manager, for kustomize."""
        return ROOT / "deploy" / "manager"

    def manager_objects(self):
        """What the manifests say, as far as the cluster knows the kinds."""
        served = self.kcp.kubectl("api-versions").split()
        text = self.kcp.kubectl("kustomize", self.manifests())
        parts = [part for part in re.split(r"^---$", text, flags=re.MULTILINE)
                 if re.search(r"^apiVersion: (.*)$", part, flags=re.MULTILINE)[1] in served]
        self.assertGreaterEqual(len(parts), 10, "Kubernetes before 1.21 has no policy/v1, everything else")
        return "---".join(parts)

    def deploy_manager(self):
        """Nobody but a node makes pods of it."""
        self.kcp.kubectl("apply", "-f", "-", stdin=self.manager_objects())

    def start_manager(self, *options, pod_ip="10.99.0.1", image="example.com/runtime-watcher:1"):
        """With the arguments of the Deployment's container. The ports are in `listener` and `admin`."""
        container = self.kcp.get("deployment", MANAGER, "kcp-system")["spec"]["template"]["spec"]["containers"][0]
        arguments = [a for a in container["args"] if not a.startswith(("--skr-image=", "--xfcc-trusted-proxies="))]
        manager = self.start(Process("manager", [
            BINARY, *arguments, "--allow-local-runtimes", "--kubeconfig", self.manager_kubeconfig(), "--listen-address", "127.0.0.1:0",
            "--metrics-address", "127.0.0.1:0", "--skr-image", image,
            "--ca-propagation", "1s", *options],
            env={**os.environ, "POD_IP": pod_ip}))
        manager.listener = manager.wait_listening("listener")
        manager.admin = manager.wait_listening("admin")
        return manager

    def add_access(self):
        """The Secret with the runtime's kubeconfig."""
        self.kcp.apply({"apiVersion": "v1", "kind": "Secret",
                        "metadata": {"name": f"kubeconfig-{RUNTIME}", "namespace": "kcp-system",
                                     "labels": {"operator.kyma-project.io/kyma-name": "kyma-1"}},
                        "data": {"config": encoded(self.access().read_text())}})

    def access(self):
        """The kubeconfig in that Secret."""
        return self.skr.kubeconfig

    def add_kyma(self):
        self.add_access()
        self.kcp.apply({"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Kyma",
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
        """The webhook configuration on the runtime, once it has these webhooks and that of probes, without the latter."""
        names = sorted([*webhooks, "watcher-probe"])
        found = self.skr.until("validatingwebhookconfigurations", "skr-webhook", None,
                               lambda c: sorted(w["name"].split(".")[1] for w in c.get("webhooks") or []) == names,
                               f"has the webhooks {webhooks}")
        return {**found, "webhooks": webhooks_of_watchers(found)}

    def metric(self, name, **labels):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.manager.admin}/metrics", timeout=10) as answer:
            return metric_sum(answer.read().decode(), name, **labels) or 0


class Embedded(Landscape):
    def manager_kubeconfig(self):
        return self.kcp.kubeconfig

    def watcher_kubeconfig(self):
        return self.skr.kubeconfig

    def definitions(self):
        return [ROOT / "deploy" / "crds", ROOT / "deploy" / "dev"]

    def start_clusters(self):
        folder = self.folder / "clusters"
        server = self.start(Process("api-server", [DEV_BINARY, "api-server", "--address", "127.0.0.1:0", "--dir", folder,
                                                   "--cluster", "kcp,skr"]))
        server.wait_listening("api-server")
        return [Cluster(folder / f"{name}.kubeconfig", self.folder / f"cache-{name}") for name in ("kcp", "skr")]


@unittest.skipUnless(os.environ.get("KUBEBUILDER_ASSETS"), "KUBEBUILDER_ASSETS names no real API server")
class Real(Landscape):
    """Two real control planes; the kinds' true schemas where they are given. In KCP the manager is its ServiceAccount, with
    the rights that deploy/manager gives to that; on the runtime the watcher is its own, with those that the manager gives to
    that. The clusters have Audits of the two."""

    WANTED = ("watchers.operator.kyma-project.io", "kymas.operator.kyma-project.io", "gateways.networking.istio.io",
              "virtualservices.networking.istio.io", "certificates.cert-manager.io", "issuers.cert-manager.io")
    # Files of deploy, of which there is no truer form here.
    OURS = ("crds/operator.kyma-project.io_runtimerollouts.yaml",)
    SERVER_OPTIONS = ()

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
        return [*found, *(ROOT / "deploy" / name for name in self.OURS)]

    def start_clusters(self):
        clusters, audits = [], []
        for name, account in (("kcp", ("kcp-system", MANAGER)), ("skr", ("kyma-system", "skr-webhook"))):
            owner = types.SimpleNamespace(folder=self.folder / name, start=self.start)
            owner.folder.mkdir()
            audits.append(Audit(owner.folder, *account))
            plane = control_plane.ControlPlane(owner, options=(*audits[-1].options, *self.SERVER_OPTIONS))
            kubeconfig = plane.kubeconfig_with_authority(owner.folder / "kubeconfig")
            clusters.append(Cluster(kubeconfig, owner.folder / "cache", audits[-1], audits))
        return clusters

    def manager_kubeconfig(self):
        return self.kubeconfig_of(self.kcp, "kcp-system", MANAGER)

    def watcher_kubeconfig(self):
        return self.kubeconfig_of(self.skr, "kyma-system", "skr-webhook")

    def kubeconfig_of(self, cluster, ns, account):
        """The admin's, with a token of the ServiceAccount in place of the admin's, as a pod would have it."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        path = f"/api/v1/namespaces/{ns}/serviceaccounts/{account}/token"
        answer = json.loads(cluster.kubectl("create", "--raw", path, "-f", "-", stdin=request))
        config = json.loads(cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": answer["status"]["token"]}
        file = self.folder / f"{account}.kubeconfig"
        file.write_text(json.dumps(config))
        return file
