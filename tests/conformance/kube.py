"""Runs the conformance suite, or other tests that take RW_CONFORMANCE_KUBECONFIG, against a real kube-apiserver with
etcd, from KUBEBUILDER_ASSETS.

Environment: RW_CONFORMANCE_TESTS, the tests' executable; arguments go to it. Ends with 77, which ctest shows as
skipped, when there is no API server.
"""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import control_plane  # noqa: E402
import harness  # noqa: E402

TESTS = os.environ.get("RW_CONFORMANCE_TESTS") or str(
    harness.ROOT / "build" / "tests" / "conformance" / "conformance_tests")


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def client_certificate(folder, user, group):
    """A CA for clients, and a certificate that it issued. Returns the paths of CA, certificate and key."""
    ca, ca_key, key, request, certificate = (folder / name for name in ("ca.crt", "ca.key", "u.key", "u.csr", "u.crt"))
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *new_key, "-keyout", ca_key, "-out", ca, "-subj", "/CN=clients", "-days", "1")
    openssl("req", *new_key, "-keyout", key, "-out", request, "-subj", f"/O={group}/CN={user}")
    openssl("x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-out", certificate,
            "-days", "1")
    return ca, certificate, key


class Conformance(harness.TestCase):
    def test_real_api_server_shows_each_behaviour(self):
        folder = self.folder / "identities"
        folder.mkdir()
        ca, certificate, key = client_certificate(folder, "certificate", "system:masters")
        plane = control_plane.ControlPlane(self, tokens=["viewer-token,viewer,viewer,viewers"],
                                           options=[f"--client-ca-file={ca}"])
        users = {"admin": {"token": control_plane.TOKEN}, "viewer": {"token": "viewer-token"},
                 "certificate": {"client-certificate": str(certificate), "client-key": str(key)}}
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "admin",
            "clusters": [{"name": "kube", "cluster": {"server": f"https://127.0.0.1:{plane.port}",
                                                      "certificate-authority": str(plane.certificate)}}],
            "users": [{"name": name, "user": user} for name, user in users.items()],
            "contexts": [{"name": name, "context": {"cluster": "kube", "user": name}} for name in users]}))
        done = subprocess.run(
            [TESTS, *sys.argv[1:]], timeout=240,
            env={**os.environ, "RW_CONFORMANCE_KUBECONFIG": str(kubeconfig), "RW_CONFORMANCE_ETCD": plane.etcd})
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    control_plane.assets()
    harness.unittest.main(argv=sys.argv[:1], verbosity=2)
