"""Private keys and tokens stay out of logs, whatever is wrong with them. What the harness finds in the logs of all other
end-to-end tests, it is shown here to find."""

import base64
import json
import os
import tempfile
import urllib.error
import urllib.request

import harness
from harness import BINARY, DEV_BINARY, ROOT, EventLog, Listener, Pki, Process, Webhook, free_port, runtime_watcher, wait_until

BODY = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg"
MANAGER = "lifecycle-manager"
DEBUG = {"LOG_LEVEL": "debug"}
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJl"


class Secrets(harness.TestCase):
    def said(self, *arguments, env=None):
        """What a process says that cannot start."""
        done = runtime_watcher(*arguments, env={**os.environ, "LOG_LEVEL": "debug", **(env or {})}, timeout=20)
        self.assertNotEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def webhook(self, key):
        pki = Pki(tempfile.mkdtemp(dir=self.folder))
        certificate, good = pki.issue("webhook", "webhook", cn="runtime-1")
        file = self.folder / "tls.key"
        file.write_text(key(good.read_text()))
        file.chmod(0o600)
        webhook = self.start(Process("webhook", [BINARY, "webhook", "--bind-address", "127.0.0.1"], env={
            **os.environ, **DEBUG, "WEBHOOK_PORT": "0", "METRICS_PORT": "0", "CA_CERT": str(pki.ca), "TLS_CERT": str(certificate),
            "TLS_KEY": str(file), "KCP_ADDR": "localhost:1", "KCP_CONTRACT": "v2"}))
        wait_until(lambda: webhook.records(msg="waiting for valid TLS files"), 20, lambda: webhook.tail())
        admin = webhook.wait_listening("admin")
        with self.assertRaises(urllib.error.HTTPError) as answer:
            urllib.request.urlopen(f"http://127.0.0.1:{admin}/readyz", timeout=10)
        self.assertEqual(webhook.terminate(), 0, webhook.tail())
        shown = answer.exception.read().decode()
        return shown + "\n".join(text for _, text in webhook.log), good.read_text().splitlines()[1]

    def test_harness_finds_secrets(self):
        for line in (f"-----BEGIN PRIVATE KEY-----\n{BODY}", "-----BEGIN EC PRIVATE KEY-----", f"Bearer {TOKEN}",
                     "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t"):
            self.assertEqual(harness.leaks([line, "no secret"]), [line])
        self.assertEqual(harness.leaks(["-----BEGIN CERTIFICATE-----", "the private key: not a readable private key", "eyJ.eyJ."]), [])

    def test_secrets_of_files_are_found(self):
        _, key = Pki(self.folder / "pki").issue("client", "runtime", san=None)
        (self.folder / "a.yaml").write_text('users: [{name: a, user: {token: "first-token"}}]')
        (self.folder / "b.json").write_text('{"users": [{"user": {"token": "second-token"}}]}')
        (self.folder / "c.yaml").write_text("client-key-data: " + base64.b64encode(key.read_bytes()).decode())
        line = key.read_text().splitlines()[2]
        key.unlink()
        self.assertLessEqual({"first-token", "second-token", line}, harness.secrets_in(self.folder))

    def test_test_whose_process_logs_a_token_fails(self):
        class Leaks(harness.TestCase):
            def test(self):
                (self.folder / "kubeconfig").write_text("token: token-of-the-test")
                self.start(harness.Process("leaking", ["echo", "Bearer token-of-the-test"])).wait(10)

        result = Leaks("test").run()
        self.assertEqual([len(result.failures), len(result.errors)], [1, 0])
        self.assertIn("a log has a private key or a token in it", result.failures[0][1])

    def test_keys_that_cannot_be_used_are_not_shown(self):
        other = Pki(self.folder / "other").issue("server", "other")[1].read_text()
        for key, error in ((lambda good: good[:len(good) // 2], "not a readable private key"),
                           (lambda good: good.replace("PRIVATE", "PRIVAT"), "not a readable private key"),
                           (lambda good: other, "does not belong to the certificate")):
            said, first = self.webhook(key)
            self.assertIn(error, said)
            for secret in (first, other.splitlines()[1]):
                self.assertNotIn(secret, said)
            self.assertEqual(harness.leaks(said.splitlines()), [])

    def test_key_that_others_may_read_is_rejected_with_the_remedy(self):
        pki = Pki(self.folder / "pki")
        certificate, key = pki.issue("server", "gateway")
        key.chmod(0o644)
        said = self.said("listen", "--address", "127.0.0.1:0", "--component", "x", "--tls-cert", certificate, "--tls-key", key,
                         "--client-ca", pki.ca)
        self.assertIn(f"{key}: mode 0644 lets others than its owner use the private key; chmod 600 it", said)

    def test_kubeconfigs_that_cannot_be_used_are_not_shown(self):
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                  "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                  "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
                  "users": [{"name": "u", "user": {"token": TOKEN}}]}
        file = self.folder / "kubeconfig"
        for change in ({}, {"users": [{"name": "u", "user": {"token": TOKEN + "\n"}}]}, {"clusters": TOKEN},
                       {"users": [{"name": "u", "user": {"client-certificate-data": "x", "client-key-data": TOKEN}}]}):
            for text in (json.dumps({**config, **change}), json.dumps({**config, **change})[:-2]):
                file.write_text(text)
                self.assertNotIn(TOKEN, self.said("status", "--kubeconfig", file), change)


class Logs(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.pki = Pki(self.folder / "pki")
        self.events = EventLog()

    def path_of_events(self, **env):
        """A listener and a webhook that log everything."""
        tls = self.pki.issue("server", "gateway")
        os.environ.update(DEBUG)
        self.addCleanup(os.environ.pop, "LOG_LEVEL")
        listener = self.start(Listener(self.events, MANAGER, tls=tls, client_ca=self.pki.ca))
        self.certificate, self.key = self.pki.issue("webhook", "webhook", cn="runtime-1")
        return self.start(Webhook(self.certificate, self.key, self.pki.ca, f"localhost:{listener.port}", env=env)).ready()

    def review(self, webhook):
        """Posts a review, and waits for its event."""
        before = len(self.events.lines)
        done = runtime_watcher("replay", "--address", f"localhost:{webhook.port}", "--path", f"/validate/{MANAGER}",
                               "--ca-cert", self.pki.ca, ROOT / "deploy" / "samples" / "02-kyma-create.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        wait_until(lambda: len(self.events.lines) > before, 10, "the event")

    def test_webhook_with_debug_logs_hides_key_and_token(self):
        """It cannot reach the API server that the token is for."""
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{free_port()}"}}],
            "users": [{"name": "c", "user": {"token": "token-of-the-runtime"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]}))
        managers = self.folder / "managers.json"
        managers.write_text(json.dumps({"version": 1, "watches": [
            {"manager": MANAGER, "group": "operator.kyma-project.io", "version": "*", "resource": "kymas", "field": "spec"}]}))
        webhook = self.path_of_events(KUBECONFIG=str(kubeconfig), MANAGERS_FILE=str(managers))
        wait_until(lambda: [each for each in webhook.records() if "127.0.0.1" in each.get("error", "")], 10,
                   lambda: f"the API server cannot be reached:\n{webhook.tail()}")
        self.review(webhook)
        self.assertEqual(webhook.terminate(), 0)

    def spoil(self, change, webhook, error):
        """Changes the key's file, and waits until the webhook says that it goes on with the previous key."""
        change()
        wait_until(lambda: any(error in json.dumps(each) for each in webhook.records()), 10, lambda: f"{error}:\n{webhook.tail()}")
        self.assertGreaterEqual(webhook.metric("rw_tls_reloads_total", outcome="refused"), 1)

    def test_key_that_becomes_readable_to_others_is_rejected_and_the_previous_one_stays(self):
        webhook = self.path_of_events()

        def renew():
            """As a careless script does."""
            self.pki.issue("webhook", "next", cn="runtime-1")
            self.key.chmod(0o644)
            self.key.write_bytes((self.pki.folder / "next.key").read_bytes())

        self.spoil(renew, webhook, f"{self.key}: mode 0644 lets others")
        self.review(webhook)

    def test_ca_key_that_others_can_read_signs_nothing(self):
        (self.pki.folder / "ca.key").chmod(0o644)
        done = runtime_watcher("certs", "client", "--dir", self.pki.folder, "--name", "runtime", "--key", "ecdsa")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"{self.pki.folder / 'ca.key'}: mode 0644 lets others", done.stderr)
        self.assertFalse((self.pki.folder / "runtime.key").exists())

    def test_files_with_keys_and_tokens_of_a_trial_are_for_the_user_alone(self):
        """`dev` hands out kubeconfigs; its log has no token, though it tells what to try."""
        folder = self.folder / "dev"
        os.umask(0o022)
        self.addCleanup(os.umask, 0o077)
        dev = self.start(Process("dev", [DEV_BINARY, "dev", "--dir", folder, "--runtimes", "1", "--events", "json"],
                                 env={**os.environ, **DEBUG}))
        wait_until(lambda: dev.records(msg="the system is up") or not dev.running(), 30, lambda: dev.tail())
        secrets = harness.secrets_in(folder)
        having = [path for path in folder.rglob("*") if path.is_file() and any(text in path.read_text() for text in secrets)]
        self.assertGreaterEqual(len(having), 2)
        for path in having:
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)
        self.assertEqual(dev.terminate(), 0)


if __name__ == "__main__":
    harness.main()
