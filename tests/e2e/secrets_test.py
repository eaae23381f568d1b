"""Private keys and tokens stay out of logs, whatever is wrong with them. What the harness finds in the logs of all other
end-to-end tests, it is shown here to find."""

import json
import os

import harness
from harness import Pki, runtime_watcher

BODY = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJl"


class Secrets(harness.TestCase):
    def said(self, *arguments, env=None):
        """What a process says that cannot start."""
        done = runtime_watcher(*arguments, env={**os.environ, "LOG_LEVEL": "debug", **(env or {})}, timeout=20)
        self.assertNotEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def webhook(self, key):
        pki = Pki(self.folder / "pki")
        certificate, good = pki.issue("webhook", "webhook", cn="runtime-1")
        file = self.folder / "tls.key"
        file.write_text(key(good.read_text()))
        file.chmod(0o600)
        return self.said("webhook", "--bind-address", "127.0.0.1", env={
            "WEBHOOK_PORT": "0", "METRICS_PORT": "0", "CA_CERT": str(pki.ca), "TLS_CERT": str(certificate), "TLS_KEY": str(file),
            "KCP_ADDR": "localhost:1", "KCP_CONTRACT": "v2"}), good.read_text().splitlines()[1]

    def test_harness_finds_secrets(self):
        for line in (f"-----BEGIN PRIVATE KEY-----\n{BODY}", "-----BEGIN EC PRIVATE KEY-----", f"Bearer {TOKEN}",
                     "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t"):
            self.assertEqual(harness.leaks([line, "no secret"]), [line])
        self.assertEqual(harness.leaks(["-----BEGIN CERTIFICATE-----", "the private key: not a readable private key", "eyJ.eyJ."]), [])

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


if __name__ == "__main__":
    harness.main()
