"""IPv4 and IPv6: by default each server takes connections of both, as pods of the manifests on a cluster that has IPv6 alone, and
on a machine that has none of it."""

import json
import os
import pathlib
import platform
import shutil
import socket
import struct
import tempfile
import urllib.error
import urllib.request

import harness
import pods
from harness import BINARY, ROOT, EventLog, Pki, Process, free_port, runtime_watcher, wait_until
from kubectl import KUBECTL
from pods import Container, Image, objects_in, pod_of, run

MANAGER = "runtime-watcher-manager"


def get(url):
    """Status and text."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def without_ipv6():
    """A program for seccomp(2) by which socket(AF_INET6, ...) fails with EAFNOSUPPORT, as on a kernel without IPv6."""
    load, equal, end = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET | BPF_K
    number = {"x86_64": 41, "aarch64": 198}[platform.machine()]
    allow, refuse = 0x7FFF0000, 0x00050000 | 97
    return b"".join(struct.pack("HBBI", *each) for each in (
        (load, 0, 0, 0), (equal, 0, 3, number), (load, 0, 0, 16), (equal, 0, 1, socket.AF_INET6), (end, 0, 0, refuse), (end, 0, 0, allow)))


class Families(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.pki = Pki(self.folder / "pki")

    def secret(self):
        certificate, key = self.pki.issue("webhook", "webhook", cn="runtime-1", san="dns:localhost,ip:::1")
        folder = self.folder / "secret"
        folder.mkdir()
        for name, source in (("ca.crt", self.pki.ca), ("tls.crt", certificate), ("tls.key", key)):
            shutil.copy(source, folder / name)
        (folder / "managers.json").write_text("")
        return folder

    def test_pods_of_the_manifests_take_ipv6_and_ipv4(self):
        image, events = Image(self.folder), EventLog()
        certificate, key = self.pki.issue("server", "gateway", san="dns:kcp.example.com")
        listener = self.start(Process("listener", [
            BINARY, "listen", "--address", "[::1]:443", "--component", "lifecycle-manager", "--tls-cert", certificate, "--tls-key", key,
            "--client-ca", self.pki.ca, "--metrics-address", "[::1]:9090"], on_line=events.take))
        listener.wait_listening("listener")
        self.assertEqual(get("http://[::1]:9090/readyz")[0], 200)
        spec = pod_of(objects_in((ROOT / "deploy" / "skr" / "deployment.yaml").read_text())["Deployment", "skr-webhook"])
        webhook = self.start(Container(self, image, spec, volumes={"tls": self.secret()}, pod={"metadata.name": "skr-webhook-1"},
                                       hosts={"kcp.example.com": "::1"}))
        self.assertEqual(webhook.wait_listening("webhook"), 8443)
        for host in ("[::1]", "127.0.0.1"):
            self.assertEqual(get(f"http://{host}:2112/readyz")[0], 200, host)
            before = len(events.lines)
            run(BINARY, "replay", "--address", f"{host}:8443", "--server-name", "localhost", "--path", "/validate/lifecycle-manager",
                "--ca-cert", self.pki.ca, ROOT / "deploy" / "samples" / "02-kyma-create.json")
            wait_until(lambda: len(events.lines) > before, 10, lambda: f"the event comes:\n{webhook.tail()}")
        self.assertEqual(events.events()[0]["runtimeId"], "runtime-1")

    def test_manager_of_the_manifest_takes_ipv6_and_knows_ipv4_by_its_address(self):
        server = self.start(Process("kube-devserver", [pathlib.Path(BINARY).parent / "kube-devserver", "--address", "127.0.0.1:0",
                                                       "--dir", self.folder / "kcp"]))
        server.wait_listening("api-server")
        kubeconfig = self.folder / "kcp" / "default.kubeconfig"
        for source in ("manager/namespace.yaml", "crds", "dev"):
            run(KUBECTL, "--kubeconfig", kubeconfig, "apply", "-f", ROOT / "deploy" / source)
        spec = pod_of(objects_in(run(KUBECTL, "kustomize", ROOT / "deploy" / "manager"))["Deployment", MANAGER])
        manager = self.start(Container(self, Image(self.folder), spec, kubeconfig=kubeconfig, pod={"status.podIP": "fd00::99"}))
        wait_until(lambda: manager.records(msg="this replica leads"), 60, lambda: f"it leads:\n{manager.tail()}")
        for host, peer in (("[::1]", "::1"), ("127.0.0.1", "127.0.0.1")):
            self.assertEqual(get(f"http://{host}:8080/livez")[0], 200)
            self.assertIn("<title>", get(f"http://{host}:8080/")[1], "the page, which is for loopback alone")
            # A peer that is no proxy is named as it is, with the flag that would make it one.
            request = urllib.request.Request(f"http://{host}:8082/v2/lifecycle-manager/event", b"{}")
            with self.assertRaises(urllib.error.HTTPError) as answer:
                urllib.request.urlopen(request, timeout=10)
            self.assertEqual(answer.exception.code, 401)
            def refused():
                return [r for r in manager.records(msg="request refused") if r["peer"] == peer and "--xfcc-trusted-proxies" in r["reason"]]
            wait_until(refused, 10, lambda: manager.tail())
            manager.log.clear()
        shown = runtime_watcher("status", "--address", "[::1]:8080", "-o", "json")
        self.assertEqual(json.loads(shown.stdout)["leads"], True, shown.stderr)
        slices = json.loads(run(KUBECTL, "--kubeconfig", kubeconfig, "get", "endpointslices", "-n", "kcp-system", "-o", "json"))
        self.assertEqual([(s["addressType"], s["endpoints"][0]["addresses"]) for s in slices["items"] if s["metadata"]["name"].startswith(MANAGER)],
                         [("IPv6", ["fd00::99"])])

    def begin(self, *wrapper, port=0, **options):
        secret = self.secret()
        return self.start(Process("webhook", [*wrapper, BINARY, "webhook"], env={
            **os.environ, "WEBHOOK_PORT": str(port), "METRICS_PORT": "0", "CA_CERT": str(secret / "ca.crt"),
            "TLS_CERT": str(secret / "tls.crt"), "TLS_KEY": str(secret / "tls.key"), "KCP_ADDR": "localhost:1", "KCP_CONTRACT": "v2"},
            **options))

    def test_webhook_takes_ipv4_alone_where_there_is_no_ipv6(self):
        if platform.machine() not in ("x86_64", "aarch64"):
            self.skipTest("the program for seccomp is of another architecture")
        with tempfile.TemporaryFile() as program:
            program.write(without_ipv6())
            program.seek(0)
            os.set_inheritable(program.fileno(), True)
            webhook = self.begin("bwrap", "--dev-bind", "/", "/", "--seccomp", str(program.fileno()), pass_fds=(program.fileno(),))
        admin = webhook.wait_listening("admin")
        self.assertEqual(get(f"http://127.0.0.1:{admin}/livez")[0], 200)
        self.assertFalse(harness.can_connect(admin, "::1"))

    def test_port_that_is_taken_in_one_family_is_an_error(self):
        """To serve the other one alone would be found out by half of the clients."""
        with socket.socket(socket.AF_INET6) as other:
            other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            other.bind(("::1", free_port()))
            other.listen()
            port = other.getsockname()[1]
            webhook = self.begin(port=port)
            self.assertEqual(webhook.wait(10), 1, webhook.tail())
            self.assertIn(f"cannot listen on [::]:{port}", webhook.tail())


if __name__ == "__main__":
    if not KUBECTL:
        harness.skip("kubectl is not installed")
    pods.own_network()
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        harness.skip(f"this machine has no IPv6: {error}")
    harness.main()
