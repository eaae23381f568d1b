"""Forms that others' software takes are taken: kubeconfigs as kubectl reads them, addresses with a final dot, damaged blocks among good ones
of a CA bundle, a status line without a reason. And what can't work says so at once: refused credentials, a dead proxy."""

import base64
import http.server
import json
import re
import socket
import ssl
import sys
import threading
import time

import harness
from harness import DEV_BINARY, ROOT, Pki, Process, Webhook, free_port, runtime_watcher, wait_until

GARBAGE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def kubeconfig(server, authority, user="token: TOKEN", before=""):
    return f"""apiVersion: v1
kind: Config
{before}
clusters:
- name: kcp
  cluster:
    server: {server}
    {authority}
users:
- name: admin
  user:
    {user}
contexts:
- name: kcp
  context: {{cluster: kcp, user: admin}}
current-context: kcp
"""


class Kubeconfigs(harness.TestCase):
    def setUp(self):
        super().setUp()
        server = self.start(Process("api-server", [DEV_BINARY, "api-server", "--address", "127.0.0.1:0", "--dir", self.folder,
                                                   "--cluster", "kcp"]))
        self.port = server.wait_listening("api-server")
        text = (self.folder / "kcp.kubeconfig").read_text()
        def field(name):
            return re.search(rf'"?{name}"?: *"?([^",\s}}]+)', text)[1]
        self.path = field("server").partition(f":{self.port}")[2]
        self.authority, self.token = field("certificate-authority-data"), field("token")
        self.pem = base64.b64decode(self.authority).decode()

    def run_with(self, text, env=None):
        """What reads all Kymas, and changes nothing."""
        file = self.folder / "kubeconfig"
        file.write_text(text.replace("TOKEN", self.token))
        return runtime_watcher("uninstall", "--dry-run", "--kubeconfig", file, env=env)

    def test_kubeconfigs_that_kubectl_takes_are_taken(self):
        here = f"https://127.0.0.1:{self.port}{self.path}"
        trusted = f"certificate-authority-data: {self.authority}"
        plugin = self.folder / "credential.sh"
        plugin.write_text("#!/bin/sh\necho '" + json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                                                            "status": {"token": self.token}}) + "'\n")
        plugin.chmod(0o755)
        lines = "\n".join("      " + line for line in re.findall(".{1,70}", encoded(self.authority)))
        forms = {
            "as it is": kubeconfig(here, trusted),
            "a merged CA": kubeconfig(here, "<<: *c", before=f"x-common: &c\n  {trusted}"),
            "a merged user": kubeconfig(here, trusted, user="<<: *u", before="x-u: &u\n  token: TOKEN"),
            "a merged plugin": kubeconfig(here, trusted, before="x-e: &e\n  command: ./credential.sh", user=(
                "exec:\n      <<: *e\n      apiVersion: client.authentication.k8s.io/v1\n      interactiveMode: Never")),
            "!!merge": kubeconfig(here, "!!merge <<: *c", before=f"x-common: &c\n  {trusted}"),
            "!!binary": kubeconfig(here, f"certificate-authority-data: !!binary |\n{lines}"),
            "two slashes": kubeconfig(f"https://127.0.0.1:{self.port}/{self.path}", trusted),
            "a final dot": kubeconfig(f"https://localhost.:{self.port}{self.path}", trusted),
            "a final dot of the server's name": kubeconfig(here, f"{trusted}\n    tls-server-name: localhost."),
            "a mapped address": kubeconfig(f"https://[::ffff:127.0.0.1]:{self.port}{self.path}", trusted),
            "a damaged block": kubeconfig(here, f"certificate-authority-data: {encoded(GARBAGE + self.pem)}"),
        }
        for form, text in forms.items():
            with self.subTest(form):
                done = self.run_with(text)
                self.assertEqual(done.returncode, 0, (form, done.stdout, done.stderr))
                self.assertIn("no Kyma has this manager's finalizer", done.stdout)
        done = self.run_with(kubeconfig(here, f"certificate-authority-data: {encoded(GARBAGE)}"))
        self.assertEqual(done.returncode, 2, done.stdout)

    def test_dead_proxy_is_named(self):
        text = kubeconfig(f"https://127.0.0.1:{self.port}{self.path}", f"certificate-authority-data: {self.authority}")
        proxy = f"127.0.0.1:{free_port()}"
        done = self.run_with(text.replace("    server:", f"    proxy-url: http://{proxy}\n    server:"))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(f"proxy {proxy}: Connection refused", done.stderr)

    def test_uninstall_does_not_wait_where_its_credentials_are_refused(self):
        text = kubeconfig(f"https://127.0.0.1:{self.port}{self.path}", f"certificate-authority-data: {self.authority}")
        file = self.folder / "kubeconfig"
        file.write_text(text.replace("TOKEN", "wrong"))
        begun = time.monotonic()
        done = runtime_watcher("uninstall", "--kubeconfig", file, timeout=20)
        self.note(f"{time.monotonic() - begun:.1f} s: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("401", done.stderr)
        self.assertIn("credentials of the kubeconfig", done.stderr)
        self.assertNotIn("waiting for the Lease", done.stdout)

    def test_uninstall_does_not_wait_for_ever_for_a_kcp_that_is_silent(self):
        with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
            file = self.folder / "kubeconfig"
            file.write_text(kubeconfig(f"http://127.0.0.1:{silent.getsockname()[1]}", "").replace("TOKEN", self.token))
            # Twice ten seconds for a response of KCP, and what starting takes.
            done = runtime_watcher("uninstall", "--kubeconfig", file, "--lease-timeout", "1s", timeout=60)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("waited in vain for the Lease kcp-system/runtime-watcher-manager: KCP does not respond", done.stderr)


class Receiver(http.server.ThreadingHTTPServer):
    """Answers each event with these bytes."""

    daemon_threads = True

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.server.requests += 1
            self.wfile.write(self.server.answer)

        def log_message(self, *_):
            pass

    def __init__(self, tls, answer):
        self.requests, self.answer = 0, answer
        super().__init__(("127.0.0.1", 0), Receiver.Handler)
        self.port = self.server_address[1]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Receivers(harness.TestCase):
    def deliver(self, answer, host="localhost", ca=lambda text: text):
        """Two changes; returns webhook and receiver once they are delivered."""
        pki = Pki(self.folder / f"pki-{time.monotonic_ns()}")
        receiver = Receiver(pki.issue("server", "kcp"), answer)
        self.addCleanup(receiver.server_close)
        self.addCleanup(receiver.shutdown)
        trusted = pki.folder / "trusted.crt"
        trusted.write_text(ca(pki.ca.read_text()))
        certificate, key = pki.issue("webhook", "webhook", cn="runtime-1")
        webhook = self.start(Webhook(certificate, key, trusted, f"{host}:{receiver.port}", env={"SOURCE": "webhook"})).ready()
        review = ROOT / "deploy" / "samples" / "02-kyma-create.json"
        for count in (1, 2):
            done = runtime_watcher("replay", "--address", f"127.0.0.1:{webhook.port}", "--server-name", "localhost", "--path",
                                   "/validate/lifecycle-manager", "--ca-cert", pki.ca, review)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            wait_until(lambda: webhook.metric("rw_dispatch_events_total", outcome="delivered") == count, 10,
                       lambda: f"event {count} is delivered:\n{webhook.tail()}")
        return webhook, receiver

    def test_status_line_without_a_reason(self):
        for line in ("HTTP/1.1 200\r\n", "HTTP/1.1 200 \r\n"):
            _, receiver = self.deliver(f"{line}content-length: 0\r\n\r\n".encode())
            self.assertEqual(receiver.requests, 2, line)

    def test_final_dot_and_damaged_ca(self):
        webhook, receiver = self.deliver(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", host="localhost.", ca=lambda text: text + GARBAGE)
        self.assertEqual(receiver.requests, 2)
        said = webhook.records(msg="the CA bundle is damaged, the certificates that can be read are in use")
        self.assertEqual(len(said), 1, webhook.tail())
        self.assertIn("PEM block 2", said[0]["error"])

    def test_web_page_is_no_listener_and_that_is_said_once(self):
        page = b"<html>log in</html>"
        webhook, receiver = self.deliver(b"HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: %d\r\n\r\n%s" %
                                         (len(page), page))
        self.assertEqual(receiver.requests, 2)
        said = [each for each in webhook.records(level="warning") if "web page" in each["msg"]]
        self.assertEqual(len(said), 1, webhook.tail())


if __name__ == "__main__":
    sys.exit(harness.main())
