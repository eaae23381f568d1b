"""A Kyma that its manager leaves alone is deleted: it is shown as such, its runtime is not touched, and a manager in whose
scope it is removes the watcher at once. (That it is released without one, too, takes minutes: installer_test.cpp.)"""

import json

import harness
import landscape
from harness import free_port, runtime_watcher, wait_until

FINALIZER = "operator.kyma-project.io/runtime-watcher"
WEBHOOKS = ("validatingwebhookconfigurations", "skr-webhook")


class Removal(landscape.Embedded, harness.TestCase):
    OPTIONS = ("--only=scope!=other",)

    def row(self):
        shown = runtime_watcher("status", "--address", f"127.0.0.1:{self.manager.admin}", "-o", "json")
        rows = json.loads(shown.stdout)["runtimes"] if shown.returncode in (0, 3) else []
        return rows[0] if rows else {}

    def planned(self):
        """The runtimes of `rollout plan`."""
        plan = runtime_watcher("rollout", "plan", "watcher", "--kubeconfig", self.kcp.kubeconfig)
        self.assertEqual(plan.returncode, 0, plan.stderr)
        return [line.split()[-1] for line in plan.stdout.strip().splitlines()[2:]]

    def test_deletion_out_of_scope_waits_for_the_manager_in_scope(self):
        self.kcp.kubectl("apply", "-f", landscape.ROOT / "deploy" / "samples" / "watcher.yaml")
        self.add_kyma()
        self.issue()
        self.installed(["kyma"])
        wait_until(lambda: self.planned() == ["kyma-1"], 20, lambda: f"it is in a step: {self.planned()}")
        self.kcp.kubectl("label", "kyma", "kyma-1", "-n", "kcp-system", "scope=other")
        self.assertEqual(self.planned(), [], "it is in no step of a manager that leaves it alone")
        wait_until(lambda: self.row().get("state") == "unknown", 20, lambda: f"it is left alone: {self.row()}")
        before = self.skr.get(*WEBHOOKS)["metadata"]["resourceVersion"]
        self.kcp.kubectl("delete", "kyma", "kyma-1", "-n", "kcp-system", "--wait=false")
        wait_until(lambda: self.row().get("state") == "deleting", 20, lambda: f"the deletion is shown: {self.row()}")
        self.assertIn(FINALIZER, self.row()["message"])
        listed = runtime_watcher("status", "--address", f"127.0.0.1:{self.manager.admin}", "--state", "deleting")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertRegex(listed.stdout, "(?m)^kyma-1 .* deleting ")
        checked = runtime_watcher("doctor", "--kubeconfig", self.kcp.kubeconfig)
        self.assertNotIn("FAILED      runtime ", checked.stdout)
        self.assertEqual(self.skr.get(*WEBHOOKS)["metadata"]["resourceVersion"], before)
        self.assertEqual(self.kcp.get("kyma", "kyma-1", "kcp-system")["metadata"]["finalizers"], [FINALIZER])
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.manager = self.start_manager("--only=scope=other")
        self.kcp.until_gone("kyma", "kyma-1", "kcp-system")
        self.assertIsNone(self.skr.get(*WEBHOOKS))

    def test_removal_that_a_runtime_rejects_is_shown_until_it_succeeds(self):
        self.kcp.kubectl("apply", "-f", landscape.ROOT / "deploy" / "samples" / "watcher.yaml")
        self.add_kyma()
        self.issue()
        self.installed(["kyma"])
        guard = "everything.policy.example.com"
        self.skr.apply({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "guard"},
                        "webhooks": [{"name": guard, "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 1,
                                      "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["DELETE"]}],
                                      "admissionReviewVersions": ["v1"], "clientConfig": {"url": f"https://127.0.0.1:{free_port()}/"}}]})
        self.kcp.kubectl("delete", "kyma", "kyma-1", "-n", "kcp-system", "--wait=false")
        wait_until(lambda: self.row().get("reason") == "RemovalFailed", 20, lambda: f"the failure is shown: {self.row()}")
        row = self.row()
        self.assertEqual((row["state"], row["condition"]), ("deleting", "ill"), row)
        self.assertIn(guard, row["message"])
        self.assertIn("WatcherRemovalAbandoned", row["nextStep"])
        shown = runtime_watcher("status", "--address", f"127.0.0.1:{self.manager.admin}")
        self.assertEqual(shown.returncode, 3, shown.stdout)
        self.assertIn("RemovalFailed: 1 (kyma-1)", shown.stdout)
        self.kcp.until("events", None, "kcp-system", lambda all: any(e["reason"] == "WatcherRemovalFailed" for e in all["items"]), "an Event")
        checked = runtime_watcher("doctor", "--allow-local-runtimes", "--kubeconfig", self.kcp.kubeconfig, "--manager", f"127.0.0.1:{self.manager.admin}")
        self.assertRegex(checked.stdout, f"FAILED +manager +kyma-1: RemovalFailed: .*{guard}")
        self.skr.kubectl("delete", "validatingwebhookconfigurations", "guard")
        self.kcp.until_gone("kyma", "kyma-1", "kcp-system")


if __name__ == "__main__":
    harness.main()
