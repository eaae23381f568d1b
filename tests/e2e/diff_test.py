#!/usr/bin/env python3
"""`runtime-watcher diff`: it shows what the leader's next pass would write to a runtime, field by field, with digests in place
of a Secret's values, and writes nothing."""

import base64
import json
import re

import harness
from api import collection, kymas
from dev import CONFIGURATION, DEPLOYMENT, SECRET, Dev
from harness import BINARY, Process, free_port, runtime_watcher, wait_until

CONFIG = collection("configmaps", "kcp-system") + "/rt-bootstrapper-config"
MANIFESTS = collection("configmaps", "kcp-system") + "/runtime-bootstrapper-manifests"
METRICS_SERVICE = collection("services", "kyma-system") + "/skr-webhook-metrics"
KUBECONFIG = collection("secrets", "kcp-system") + "/kubeconfig-runtime-2"
KYMA = kymas("kcp-system") + "/runtime-1"
WATCHER = collection("watchers", "kcp-system", "operator.kyma-project.io", "v1beta2") + "/kyma"


def encoded(text):
    return base64.b64encode(text.encode()).decode()


class Diff(harness.TestCase):
    def compare(self, *options, runtime="runtime-1"):
        return runtime_watcher("diff", "--kubeconfig", self.dev.folder / "kcp.yaml", "--runtime", runtime, *options, timeout=60)

    def start_dev(self, runtimes, *options):
        self.dev = self.start(Dev(self.folder / "dev", runtimes, *options)).wait_up()
        self.kcp = self.dev.kcp()

    def test_leader_is_found_by_its_lease(self):
        self.start_dev(2)
        wait_until(lambda: self.dev.installed() == 2, 60, lambda: self.dev.tail())
        done = self.compare()
        self.assertEqual((done.returncode, done.stdout), (0, "# watcher: nothing differs\n"), done.stderr)
        for name, near in (("nope", ": there are runtime-1, runtime-2\n"), ("runtmie-2", "; did you mean runtime-2?\n")):
            done = self.compare(runtime=name)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertTrue(done.stderr.endswith(f"there is no Kyma {name}{near}"), done.stderr)
        config = base64.b64decode(self.kcp.get(KUBECONFIG)["data"]["config"]).decode()
        lost = "\n".join("    server: https://127.0.0.1:1" if "server:" in line else line for line in config.split("\n"))
        self.kcp.patch(KUBECONFIG, {"data": {"config": encoded(lost)}})
        def unreachable():
            done = self.compare("-o", "json", runtime="runtime-2")
            error = json.loads(done.stdout)["components"][0].get("error", "")
            return done.returncode == 1 and error.startswith("the runtime is unreachable: ")
        wait_until(unreachable, 30, lambda: self.dev.tail())
        self.assertRegex(self.compare(runtime="runtime-2").stdout, "# watcher: error: the runtime is unreachable: .*\n# fix: .+\n$")

    def start_manager(self, port, *options):
        manager = self.start(Process("manager", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", self.dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{port}",
            "--metrics-address", "127.0.0.1:0", "--ca-propagation", "1s", *options]))
        return manager, f"127.0.0.1:{manager.wait_listening('admin')}"

    def start_in_shadow(self):
        """The watcher is in place, and from then on nothing repairs it."""
        port = free_port()
        self.start_dev(1, "--no-manager", "--backend", f"127.0.0.1:{port}")
        first, address = self.start_manager(port)
        def settled():
            done = self.compare("--address", address)
            return done.returncode == 0 and runtime_watcher("status", "--address", address).returncode == 0
        wait_until(settled, 60, lambda: first.tail(), every=0.3)
        self.assertEqual(first.terminate(), 0)
        self.manager, address = self.start_manager(port, "--shadow")
        wait_until(lambda: self.compare("--address", address).returncode == 0, 60, lambda: self.manager.tail(), every=0.3)
        return address

    def test_shadow_on_a_new_landscape_shows_the_first_pass(self):
        """With the CAs that the gateway's Secret is to have: a manager with --shadow does not make it."""
        port = free_port()
        self.start_dev(1, "--no-manager", "--backend", f"127.0.0.1:{port}")
        before = self.versions()
        manager, address = self.start_manager(port, "--shadow")
        told = {}
        def is_shown():
            told.clear()
            done = self.compare("--address", address, "-o", "json")
            told.update(json.loads(done.stdout)["components"][0] if done.returncode == 3 else {"error": done.stderr + done.stdout})
            return "error" not in told
        wait_until(is_shown, 30, lambda: f"{told}\n{manager.tail()}", every=0.3)
        self.assertEqual({each["action"] for each in told["writes"]}, {"create"})
        self.assertNotIn("Deployment", {each["kind"] for each in told["writes"]})
        self.assertIn("the Secret, the Deployment and the webhooks come with the certificate", told["waits"])
        self.assertEqual(self.versions(), before)

    def versions(self):
        """The resourceVersions of what a pass may write."""
        skr = self.dev.skr("runtime-1")
        kinds = [(skr, collection(kind, "kyma-system", group)) for kind, group in (
            ("secrets", None), ("services", None), ("configmaps", None), ("deployments", "apps"), ("networkpolicies", "networking.k8s.io"))]
        kinds += [(skr, collection("validatingwebhookconfigurations", group="admissionregistration.k8s.io")), (skr, collection("namespaces")),
                  (self.kcp, collection("kymas", "kcp-system", "operator.kyma-project.io", "v1beta2")),
                  (self.kcp, collection("secrets", "istio-system")),
                  (self.kcp, collection("certificates", "istio-system", "cert-manager.io"))]
        return {f"{path}/{each['metadata']['name']}": each["metadata"]["resourceVersion"]
                for api, path in kinds for each in api.get(path)["items"]}

    def test_differences_are_shown_field_by_field_and_nothing_is_written(self):
        address = self.start_in_shadow()
        skr = self.dev.skr("runtime-1")
        webhooks = skr.get(CONFIGURATION)["webhooks"]
        webhooks[0]["timeoutSeconds"] = 7
        skr.patch(CONFIGURATION, {"webhooks": webhooks})
        managers = skr.get(SECRET)["data"]["managers.json"]
        skr.patch(SECRET, {"data": {"managers.json": encoded("a value that nobody may see")}})
        skr.delete(METRICS_SERVICE)
        before = self.versions()
        done = self.compare("--address", address)
        self.assertEqual(self.versions(), before)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("--- live ValidatingWebhookConfiguration skr-webhook\n+++ next ValidatingWebhookConfiguration skr-webhook\n@@ ", done.stdout)
        self.assertRegex(done.stdout, r"\n-.*timeoutSeconds: 7\n\+.*timeoutSeconds: 5\n")
        self.assertIn("--- /dev/null\n+++ next Service kyma-system/skr-webhook-metrics\n@@ -0,0 +1,", done.stdout)
        self.assertRegex(done.stdout, r'\n-  managers\.json: "sha256:[0-9a-f]{12} \(27 bytes\)"\n\+  managers\.json: "sha256:[0-9a-f]{12} \(\d+ bytes\)"\n')
        self.assertTrue(done.stdout.endswith("# watcher: this manager runs with --shadow: nothing is written\n# watcher: 3 objects differ\n"),
                        done.stdout)
        told = self.compare("--address", address, "-o", "json").stdout
        for text in (done.stdout, told):
            for value in ("a value that", encoded("a value that nobody may see"), "PRIVATE KEY", managers):
                self.assertNotIn(value, text)
        writes = {each["kind"]: each for each in json.loads(told)["components"][0]["writes"]}
        self.assertEqual({kind: each["action"] for kind, each in writes.items()},
                         {"ValidatingWebhookConfiguration": "update", "Service": "create", "Secret": "update"})
        self.assertIsNone(writes["Service"]["live"])
        self.assertEqual(writes["ValidatingWebhookConfiguration"]["live"]["webhooks"][0]["timeoutSeconds"], 7)
        self.assertNotIn("managedFields", writes["ValidatingWebhookConfiguration"]["next"]["metadata"])
        # An installation whose Deployment was removed as well.
        skr.delete(DEPLOYMENT)
        self.assertIn("+++ next Deployment kyma-system/skr-webhook\n", self.compare("--address", address).stdout)
        # What fails is shown before what would be written.
        def row():
            return json.loads(runtime_watcher("status", "--address", address, "-o", "json").stdout)["runtimes"][0]
        wait_until(lambda: row().get("reason") == "WouldWrite", 30, lambda: row())
        self.kcp.delete(KUBECONFIG.replace("-2", "-1"))
        wait_until(lambda: row().get("reason") == "AccessMissing" and row().get("wouldWrite"), 30, lambda: row())
        self.kcp.apply(KUBECONFIG.replace("-2", "-1"), self.dev.manifest("access-runtime-1"))
        # What is deleted is neither released nor removed, and the log does not say so.
        self.kcp.delete(KYMA)
        self.kcp.delete(WATCHER)
        wait_until(lambda: row()["state"] == "deleting", 30, lambda: row())
        done = self.compare("--address", address)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("# watcher: the Kyma is being deleted\n", done.stdout)
        self.assertIn("+++ /dev/null\n", done.stdout)
        for kind in ("Certificate", "Secret"):
            self.assertIn(f"--- live {kind} istio-system/runtime-1-webhook-tls (KCP)\n+++ /dev/null\n", done.stdout)
        self.assertRegex(done.stdout, r"\n\+\+\+ next Kyma kcp-system/runtime-1 \(KCP\)\n(.*\n)*-.*operator.kyma-project.io/runtime-watcher\n")
        self.assertRegex(done.stdout, r"# watcher: \d+ objects differ, 3 in KCP\n")
        self.assertNotIn(encoded("-----BEGIN CE"), done.stdout)  # neither a caBundle nor a Secret's value
        self.assertNotIn("deletionGracePeriodSeconds", done.stdout)
        self.assertIn("operator.kyma-project.io/runtime-watcher", self.kcp.get(KYMA)["metadata"]["finalizers"])
        self.assertTrue(self.kcp.get(WATCHER)["metadata"]["finalizers"])
        self.assertFalse([r["msg"] for r in self.manager.records() if re.match("Watcher (released|changed)|VirtualService written|gateway secret written|certificate of", r["msg"])])
        # Who does not lead computes nothing.
        self.assertEqual(self.manager.terminate(), 0)
        done = self.compare()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, "no leader: no manager holds Lease kcp-system/runtime-watcher-manager\n  fix: see the manager's Deployment")

    def test_configuration_that_waits_or_is_rejected_is_named(self):
        self.start_dev(1, "--bootstrapper-mode", "direct")
        settled = "# watcher: nothing differs\n# bootstrapper: nothing differs\n"
        wait_until(lambda: self.compare().stdout == settled, 60, lambda: self.dev.tail(), every=0.3)
        kcp = self.dev.folder / "kcp.yaml"
        done = runtime_watcher("rollout", "pause", "bootstrapper", "--kubeconfig", kcp)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.kcp.get(MANIFESTS)["data"]["manifests.yaml"]
        self.kcp.patch(MANIFESTS, {"data": {"manifests.yaml": re.sub(r"/rt-bootstrapper:[\w.]+", "/rt-bootstrapper:2.0.0", text)}})
        paused = f"# bootstrapper: the roll-out of bootstrapper is paused (ByHand): runtime-watcher rollout resume --kubeconfig {kcp} bootstrapper\n"
        wait_until(lambda: paused in self.compare().stdout, 30, lambda: self.compare().stdout, every=0.3)
        self.kcp.patch(CONFIG, {"data": {"rt-bootstrapper-config.json": "{"}})
        wait_until(lambda: self.compare().returncode == 1, 30, lambda: self.compare().stdout, every=0.3)
        self.assertRegex(self.compare().stdout, "# bootstrapper: error: unit bootstrapper: .*JSON")
        def failed():
            done = runtime_watcher("doctor", "--allow-local-runtimes", "--kubeconfig", kcp, "-o", "json", timeout=60)
            return [check["message"] for check in json.loads(done.stdout)["checks"] if (check["state"], check["check"]) == ("failed", "bootstrappers")]
        wait_until(failed, 30, lambda: self.dev.tail(), every=0.5)
        self.assertRegex(failed()[0], r"^1 RuntimeBootstrapper \(runtime-1\) is not Compatible: Invalid: .*JSON")
        # The leader says the same, so that status does not say well.
        causes = json.loads(runtime_watcher("status", "--kubeconfig", kcp, "-o", "json", timeout=60).stdout)["verdict"]["causes"]
        [message] = [cause["message"] for cause in causes if cause["reason"] == "ContentRejected"]
        self.assertEqual(message, failed()[0])


if __name__ == "__main__":
    harness.main()
