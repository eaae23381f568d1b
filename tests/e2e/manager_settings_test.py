"""What the manager refuses at its start: manifests for the runtimes that no runtime would take; and how it ends when it never
got beyond its start."""

import json
import os
import shutil
import urllib.request

import harness
from harness import BINARY, ROOT, Process, runtime_watcher

# A file of deploy/skr, what stands there, what is to stand there, and what is said then.
WRONG = [
    ("deployment.yaml", "containers:", "containers: {}\n      others:", "with a container"),
    ("service.yaml", "name: skr-webhook-metrics", "name: skr-webhook", "Service skr-webhook is there twice"),
    ("service.yaml", "namespace: kyma-system", "namespace: elsewhere", "not in the namespace kyma-system"),
    ("secret.yaml", "data:", "data: [", "is not YAML"),
]


class ManagerSettings(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c"}}]}))

    def test_manifests_that_no_runtime_would_take_end_it_at_its_start(self):
        for i, (file, good, bad, says) in enumerate(WRONG):
            with self.subTest(file, bad=bad):
                manifests = self.folder / f"skr-{i}"
                shutil.copytree(ROOT / "deploy" / "skr", manifests)
                text = (manifests / file).read_text()
                self.assertIn(good, text)
                (manifests / file).write_text(text.replace(good, bad))
                done = runtime_watcher("manager", "--allow-local-runtimes", "--kubeconfig", self.kubeconfig, "--skr-manifests", manifests,
                                       "--listen-address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("--skr-manifests: ", done.stderr)
                self.assertIn(says, done.stderr)
                self.note(done.stderr.strip()[-150:])

    def test_address_that_no_endpoint_may_have_ends_the_manager_at_its_start(self):
        for address in ("127.0.0.1", "pod-1", "fe80::1"):
            done = runtime_watcher("manager", "--allow-local-runtimes", "--kubeconfig", self.kubeconfig, env={**os.environ, "POD_IP": address})
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("POD_IP: must be", done.stderr)
            self.assertIn(address, done.stderr)

    def test_landscape_is_a_label_of_all_metrics(self):
        manager = self.start(Process("manager", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", self.kubeconfig, "--listen-address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0",
            "--landscape", "live-1"]))
        with urllib.request.urlopen(f"http://127.0.0.1:{manager.wait_listening('admin')}/metrics", timeout=10) as answer:
            samples = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
        self.assertGreater(len(samples), 100)
        self.assertEqual([line for line in samples if 'landscape="live-1"' not in line], [])

    def test_manager_ends_at_once_where_kcp_never_responded(self):
        manager = self.start(Process("manager", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", self.kubeconfig, "--listen-address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0",
            "--skr-image", "example.com/runtime-watcher:1", "--drain-timeout", "60s"]))
        manager.wait_listening("admin")
        self.assertEqual(manager.terminate(timeout=15), 0, manager.tail())


if __name__ == "__main__":
    harness.main()
