"""A real control plane for tests: etcd and kube-apiserver from KUBEBUILDER_ASSETS, and kubectl.

It is up in some seconds, has no controllers and no nodes, and calls the webhooks that are configured in it.
"""

import base64
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import types

from api import Api, ApiError
from harness import Process, free_port, pause, secret_texts, skip, until_established, wait_until
from kubectl import Kubectl

TOKEN = "e2e-token"
secret_texts.add(TOKEN)


def assets():
    """The folder of the binaries; ends the script as skipped when there is none."""
    folder = os.environ.get("KUBEBUILDER_ASSETS", "")
    if not all(os.access(os.path.join(folder, name), os.X_OK) for name in ("kube-apiserver", "etcd")):
        skip('KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd; KUBEBUILDER_ASSETS="$(tests/provide-kube.sh)"')
    return pathlib.Path(folder)


def http2_server():
    """The name in KUBEBUILDER_ASSETS of an API server that offers HTTP/2 to webhooks on a loopback address, or None.

    From 1.30 on every one does; before, it takes the build that tests/provide-kube.sh makes for that.
    """
    if os.access(assets() / "kube-apiserver-http2", os.X_OK):
        return "kube-apiserver-http2"
    version = subprocess.run([assets() / "kube-apiserver", "--version"], text=True, capture_output=True).stdout
    match = re.search(r"v(\d+)\.(\d+)", version)
    return "kube-apiserver" if match and (int(match[1]), int(match[2])) >= (1, 30) else None


class ControlPlane:
    """etcd and kube-apiserver. `test` is the TestCase that owns the processes; `server` may be http2_server().

    `tokens` are further lines of the API server's token file, `options` further arguments of it. With `fsync` etcd stores
    each write on the disk before it answers.
    """

    def __init__(self, test, server="kube-apiserver", tokens=(), options=(), fsync=False):
        self._assets = assets()
        self.folder = test.folder / "control-plane"
        self.folder.mkdir()
        subprocess.run(["openssl", "genrsa", "-out", self.folder / "sa.key", "2048"], check=True, capture_output=True)
        subprocess.run(["openssl", "rsa", "-in", self.folder / "sa.key", "-pubout", "-out", self.folder / "sa.pub"],
                       check=True, capture_output=True)
        (self.folder / "tokens.csv").write_text(
            "".join(line + "\n" for line in (f"{TOKEN},e2e-admin,e2e-admin,system:masters", *tokens)))
        self._test = test
        self._start_etcd([] if fsync else ["--unsafe-no-fsync"])
        self._start_apiserver(server, options)
        self.certificate = self.folder / "certs" / "apiserver.crt"  # with the CA that signed it behind it
        kubectl = self._assets / "kubectl"
        self.kubectl = Kubectl(self.folder / "kubeconfig", self.folder / "kubectl", kubectl if os.access(kubectl, os.X_OK) else None)

    def _start_etcd(self, options):
        client_port, peer = free_port(), free_port()
        client_url, peer_url = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer}"
        self.etcd = client_url
        self._etcd_arguments = [
            self._assets / "etcd", *options, "--data-dir", self.folder / "etcd", "--logger", "zap",
            "--log-level", "error", "--listen-client-urls", client_url, "--advertise-client-urls", client_url, "--listen-peer-urls", peer_url,
            "--initial-advertise-peer-urls", peer_url, "--initial-cluster", f"default={peer_url}"]
        self._etcd = self._test.start(Process("etcd", self._etcd_arguments))

    def _start_apiserver(self, name, options):
        self.port = free_port()
        self._apiserver_arguments = [
            self._assets / name, f"--etcd-servers={self.etcd}",
            # The second only goes into the Endpoints of default/kubernetes; without it a default route is needed (RFC 5737).
            f"--secure-port={self.port}", "--bind-address=127.0.0.1", "--advertise-address=192.0.2.1", f"--cert-dir={self.folder}/certs",
            "--service-account-issuer=https://localhost", f"--service-account-key-file={self.folder}/sa.pub",
            f"--service-account-signing-key-file={self.folder}/sa.key", f"--token-auth-file={self.folder}/tokens.csv",
            "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount", *options]
        (self.folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
            "clusters": [{"name": "e2e", "cluster": {"server": f"https://127.0.0.1:{self.port}",
                                                     "insecure-skip-tls-verify": True}}],
            "users": [{"name": "e2e", "user": {"token": TOKEN}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e", "namespace": "default"}}]}))
        self._run_apiserver()

    def _run_apiserver(self):
        server = self._apiserver = self._test.start(Process("kube-apiserver", self._apiserver_arguments))
        def ready():
            if not server.running():
                raise AssertionError(f"kube-apiserver ended with {server.popen.returncode}:\n{server.tail()}")
            try:
                client = self.client()
                return client.request("GET", "/readyz") and client.get("/api/v1/namespaces/default")
            except (OSError, http.client.HTTPException, ApiError):
                return None
        wait_until(ready, 60, lambda: f"kube-apiserver is ready:\n{server.tail()}", every=0.1)

    def save(self):
        """Keeps the state of etcd for `restore`, as of this moment."""
        self._etcd.send(signal.SIGSTOP)  # so that its files fit together, as after a crash
        try:
            shutil.rmtree(self.folder / "saved", ignore_errors=True)
            shutil.copytree(self.folder / "etcd", self.folder / "saved")
        finally:
            self._etcd.send(signal.SIGCONT)

    def restore(self):
        """Ends both, puts the saved state back and starts them again, on the same ports."""
        self._apiserver.kill()
        self._etcd.kill()
        shutil.rmtree(self.folder / "etcd")
        shutil.copytree(self.folder / "saved", self.folder / "etcd")
        self._etcd = self._test.start(Process("etcd", self._etcd_arguments))
        self._run_apiserver()

    def cpu_seconds(self):
        """Of both processes."""
        return self._apiserver.cpu_seconds() + self._etcd.cpu_seconds()

    def kubeconfig_with_authority(self, path):
        """Writes a kubeconfig as a runtime's is: whole in itself, with the CA that the server's certificate comes from."""
        config = json.loads((self.folder / "kubeconfig").read_text())
        cluster = config["clusters"][0]["cluster"]
        cluster.pop("insecure-skip-tls-verify")
        cluster["certificate-authority-data"] = base64.b64encode(self.certificate.read_bytes()).decode()
        path.write_text(json.dumps(config))
        return path

    def client(self):
        return Api(self.folder / "kubeconfig")

    def create_crds(self, *files_or_objects):
        """Creates CustomResourceDefinitions and waits until they are served."""
        for crd in files_or_objects:
            if isinstance(crd, dict):
                self.kubectl("create", "-f", "-", stdin=crd)
            else:
                self.kubectl("create", "-f", crd)
        until_established(self.kubectl, "--all")

    def register_webhook(self, name, port, ca, manager, rules, labels=None):
        """A ValidatingWebhookConfiguration that calls https://127.0.0.1:<port>/validate/<manager>."""
        self.kubectl("create", "-f", "-", stdin={
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": f"{name}.operator.kyma-project.io", "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": f"https://127.0.0.1:{port}/validate/{manager}",
                                 "caBundle": base64.b64encode(pathlib.Path(ca).read_bytes()).decode()},
                "objectSelector": {"matchLabels": labels or {}}, "sideEffects": "NoneOnDryRun", "timeoutSeconds": 10,
                "failurePolicy": "Fail", "rules": rules}]})

    def wait_registered(self, probe, seen, timeout=30):
        """The API server takes a moment to call a new webhook: repeats probe(n) until seen() is true."""
        attempt = 0
        def tried():
            nonlocal attempt
            attempt += 1
            probe(attempt)
            for _ in range(20):
                if seen():
                    return True
                pause(0.01)
            return False
        wait_until(tried, timeout, "the API server calls the webhook")


def plane_of(test, name, **how):
    """A control plane in a folder of its own, since a test may have several, and the kubeconfig that others reach it by."""
    owner = types.SimpleNamespace(folder=test.folder / name, start=test.start)
    owner.folder.mkdir()
    plane = ControlPlane(owner, **how)
    return plane, plane.kubeconfig_with_authority(owner.folder / "kubeconfig")


def rule(group, version, *resources):
    return {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": list(resources), "scope": "*"}


def widget_crd():
    """A custom resource with spec, status and scale subresources."""
    free_form = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": True, "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free_form, "status": free_form}}},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                                                         "statusReplicasPath": ".status.replicas"}}}]}}
