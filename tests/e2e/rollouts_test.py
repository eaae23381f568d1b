"""How a roll-out is scripted, believed and undone: `kubectl wait`, kstatus' rules and `runtime-watcher rollout` say the same, and never that
it is done while a runtime lacks the content. And an upgrade of the manager from the previous version (RW_PREVIOUS_BINARY), and back,
in the middle of a roll-out.

KCP is embedded or, where KUBEBUILDER_ASSETS names one, a real API server. Whether a runtime has the content is asked of itself.
"""

import json
import os
import re
import subprocess
import unittest
import urllib.request

import control_plane
import harness
from api import collection
from dev import Dev
from harness import BINARY, Process, free_port, metric_sum, runtime_watcher, wait_until
from kubectl import KUBECTL

PATIENCE = 90
KCP = "kcp-system"
GROUP = ("operator.kyma-project.io", "v1alpha1")
ROLLOUTS = collection("runtimerollouts", KCP, *GROUP)
BOOTSTRAPPERS = collection("runtimebootstrappers", KCP, *GROUP)
MANIFESTS = collection("configmaps", KCP) + "/runtime-bootstrapper-manifests"
DEPLOYMENTS = collection("deployments", "kyma-system", "apps")
DEPLOYMENT = {"bootstrapper": DEPLOYMENTS + "/rt-bootstrapper-controller-manager", "watcher": DEPLOYMENTS + "/skr-webhook"}
FLAGS = ("--bootstrapper-mode=direct", "--create-runtime-bootstrappers", "--signal-settle=100ms",
         "--rollout-canaries=3", "--ca-propagation=1s")


def kstatus(thing):
    """What kstatus (sigs.k8s.io/cli-utils) makes of a custom resource: first what all resources may show, then the condition Ready."""
    status = thing.get("status", {})
    if "deletionTimestamp" in thing["metadata"]:
        return "Terminating"
    if status.get("observedGeneration", thing["metadata"]["generation"]) != thing["metadata"]["generation"]:
        return "InProgress"
    conditions = {each["type"]: each["status"] for each in status.get("conditions", [])}
    if conditions.get("Reconciling") == "True":
        return "InProgress"
    if conditions.get("Stalled") == "True":
        return "Failed"
    return "Current" if conditions.get("Ready", "True") == "True" else "InProgress"


class Fleet:
    """A landscape and what its runtimes have; a subclass says where KCP is."""

    RUNTIMES = 6
    component = "bootstrapper"

    def begin(self, hanging=0):
        if not KUBECTL:
            self.skipTest("there is no kubectl")
        self.port = free_port()
        self.dev = self.start(Dev(self.folder / "dev", self.RUNTIMES, "--no-manager", "--backend", f"127.0.0.1:{self.port}",
                                  "--bootstrapper-mode", "direct", "--hanging-runtimes", hanging, *self.kcp_options())).wait_up()
        self.environment = {**os.environ, "KUBECONFIG": str(self.dev.folder / "kcp.yaml"), "HOME": str(self.folder)}
        self.kcp = self.dev.kcp()
        self.skr = {f"runtime-{i + 1}": self.dev.skr(f"runtime-{i + 1}") for i in range(self.RUNTIMES - hanging)}

    def start_manager(self, *more, soak="1s", binary=BINARY):
        manager = self.start(Process("manager", [
            binary, "manager", "--allow-local-runtimes", "--kubeconfig", self.dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{free_port()}",
            "--metrics-address", "127.0.0.1:0", *FLAGS, f"--rollout-canary-soak={soak}", *more]))
        manager.admin = manager.wait_listening("admin")
        self.manager = manager
        return manager

    def end(self, manager):
        self.assertEqual(manager.terminate(), 0, manager.tail())

    def kubectl(self, *arguments):
        """Its exit code and what it prints."""
        done = subprocess.run([KUBECTL, "-n", KCP, *map(str, arguments)], text=True, capture_output=True, timeout=PATIENCE, env=self.environment)
        return done.returncode, done.stdout + done.stderr

    def words(self, *arguments):
        """Exit code and output of `runtime-watcher rollout`."""
        done = runtime_watcher("rollout", *arguments, env=self.environment, timeout=PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def says(self, *arguments):
        code, said = self.words(*arguments)
        self.assertEqual(code, 0, said)
        return said

    def patch(self, spec):
        """By kubectl, as a script would."""
        code, said = self.kubectl("patch", "runtimerollout", self.component, "--type", "merge", "-p", json.dumps({"spec": spec}))
        self.assertEqual(code, 0, said)

    def rollout(self):
        return self.kcp.get(f"{ROLLOUTS}/{self.component}") or {"metadata": {"generation": 0}}

    def set_image(self, tag):
        """In KCP's manifests."""
        text = self.kcp.get(MANIFESTS)["data"]["manifests.yaml"]
        self.kcp.patch(MANIFESTS, {"data": {"manifests.yaml": re.sub(r"/rt-bootstrapper:[\w.]+", f"/rt-bootstrapper:{tag}", text)}})

    def deployments(self):
        """Of each runtime that answers: the image's tag and the generation."""
        found = {name: api.get(DEPLOYMENT[self.component]) for name, api in self.skr.items()}
        return {name: (d["spec"]["template"]["spec"]["containers"][0]["image"].rpartition(":")[2], d["metadata"]["generation"])
                for name, d in found.items() if d}

    def having(self, tag):
        return sorted(name for name, (image, _) in self.deployments().items() if image == tag)

    def until(self, good, what):
        return wait_until(lambda: good(self.rollout()["status"]) and self.rollout(), PATIENCE,
                          lambda: f"{what}: {json.dumps(self.rollout().get('status'), indent=1)}\n{self.deployments()}\n{self.manager.tail(8)}", every=0.1)

    def until_phase(self, phase, tag, count):
        """And as many runtimes have the image."""
        self.until(lambda s: s["phase"] == phase and len(self.having(tag)) == count, f"{phase} with {tag} on {count}")

    def until_completed(self, tag):
        self.until_phase("Completed", tag, self.RUNTIMES)

    def wait_for(self, condition, seconds):
        """Whether `kubectl wait` is met."""
        return self.kubectl("wait", "runtimerollout", self.component, f"--for=condition={condition}", f"--timeout={seconds}s")[0] == 0


class Story(Fleet):
    def is_said_to_be(self, state, ready, status_code):
        """By all three; `rollout status` may wait for a second."""
        wait_until(lambda: kstatus(self.rollout()) == state, PATIENCE, lambda: f"kstatus is {state}: {self.rollout()}", every=0.1)
        self.assertEqual(self.wait_for("Ready", 1), ready)
        code, said = self.words("status", self.component, "--timeout", "1s")
        self.assertEqual(code, status_code, said)
        return said

    def test_rollout_is_done_by_all_words_only_where_all_runtimes_have_the_content(self):
        self.begin()
        self.start_manager()
        self.until_completed("1.0.0")
        self.is_said_to_be("Current", True, 0)
        self.patch({"steps": [{"runtimes": 3, "bake": "1h"}]})
        # In progress: half of them have it.
        self.set_image("2.0.0")
        self.until_phase("Canary", "2.0.0", 3)
        self.assertIn("timed out", self.is_said_to_be("InProgress", False, 1))
        self.assertIn("paused", self.says("pause", "bootstrapper"))
        self.until(lambda s: s["reason"] == "ByHand", "is paused")
        self.is_said_to_be("InProgress", False, 1)
        self.says("resume", "bootstrapper")
        self.until(lambda s: s["phase"] == "Canary", "goes on")
        self.assertEqual(len(self.having("2.0.0")), 3)
        self.says("promote", "bootstrapper")
        # Whoever waits is let go when the last one has it.
        self.assertTrue(self.wait_for("Ready", PATIENCE), self.rollout())
        self.assertEqual(len(self.having("2.0.0")), self.RUNTIMES)
        self.is_said_to_be("Current", True, 0)
        # Failures.
        self.set_image("crash")
        self.until(lambda s: s["phase"] == "Paused", "is paused by the first canary that fails")
        self.is_said_to_be("Failed", False, 1)
        self.assertTrue(self.wait_for("Stalled", 1))
        crashing = self.having("crash")
        self.assertIn(len(crashing), (1, 2, 3))
        self.assertEqual(self.having("2.0.0"), sorted(set(self.skr) - set(crashing)))
        # Undone by one patch, while the broken content is still in KCP.
        completed = [each for each in self.rollout()["status"]["history"] if each["outcome"] == "Completed"]
        revision = completed[-1]["content"]
        self.assertIn(revision[:7], self.says("history", "bootstrapper"))
        self.patch({"steps": None, "revision": revision})
        self.until_completed("2.0.0")
        self.assertTrue(self.wait_for("Pinned", 5))
        self.is_said_to_be("Current", True, 0)
        # And by words, after the next one.
        self.set_image("3.0.0")
        self.says("undo", "bootstrapper", "--to-sources")
        self.until_completed("3.0.0")
        self.says("undo", "bootstrapper")
        self.until_completed("2.0.0")
        self.is_said_to_be("Current", True, 0)
        self.end(self.manager)

    def test_watcher_that_crashes_is_undone_until_another_image_is_there(self):
        self.component = "watcher"
        self.begin()
        self.start_manager("--skr-image=registry.invalid/watcher:good")
        self.until(lambda s: s["phase"] == "Completed" and s.get("updated") == self.RUNTIMES, "all run")
        self.assertEqual(len(self.having("good")), self.RUNTIMES)
        good = self.rollout()["status"]["content"]
        self.end(self.manager)
        self.start_manager("--skr-image=registry.invalid/watcher:crash")
        self.until(lambda s: s["phase"] == "Paused" and s["reason"] == "CanaryFailed", "is paused by the first canary that fails")
        self.is_said_to_be("Failed", False, 1)
        crashing = self.having("crash")
        self.assertIn(len(crashing), (1, 2, 3))
        # By words, and a manager that begins meanwhile goes on with it.
        self.assertIn(good[:7], self.says("history", "watcher"))
        self.assertIn("rolled back", self.says("undo", "watcher"))
        self.until_completed("good")
        self.assertTrue(self.wait_for("Pinned", 5))
        self.is_said_to_be("Current", True, 0)
        self.end(self.manager)
        self.start_manager("--skr-image=registry.invalid/watcher:better")
        self.until(lambda s: any("newer: Deployment/skr-webhook=" in each["message"] for each in s["conditions"]), "names what waits")
        self.assertEqual(len(self.having("good")), self.RUNTIMES)
        self.says("undo", "watcher", "--to-sources")
        self.until_completed("better")
        # And by one patch.
        self.patch({"revision": good})
        self.until_completed("good")
        self.patch({"revision": None})
        self.until_completed("better")
        self.is_said_to_be("Current", True, 0)
        self.end(self.manager)

    def test_rollout_is_not_done_while_a_runtime_hangs(self):
        self.begin(hanging=1)
        self.start_manager()
        self.until_phase("Partial", "1.0.0", self.RUNTIMES - 1)
        said = self.is_said_to_be("InProgress", False, 1)
        self.assertIn("5 of 6 runtimes have been updated", said)
        self.end(self.manager)


PREVIOUS = os.environ.get("RW_PREVIOUS_BINARY")


class Upgrade(Fleet):
    """Each time half of the runtimes have the new content and the roll-out is paused by hand when the other version takes over."""

    def leads(self, manager):
        with urllib.request.urlopen(f"http://127.0.0.1:{manager.admin}/metrics", timeout=10) as answer:
            return metric_sum(answer.read().decode(), "leader_election_master_status") == 1

    def until_leads(self, manager):
        wait_until(lambda: self.leads(manager), PATIENCE, lambda: f"it leads:\n{manager.tail()}", every=0.1)

    def paused_half_way(self, manager, before, tag, binary):
        """Returns the manager: canaries have the content, and would be waited for longer than the test takes."""
        self.end(manager)
        manager = self.start_manager("1h", binary)
        self.until_leads(manager)
        self.set_image(tag)
        self.until_phase("Canary", tag, 3)
        self.until(lambda s: s["ready"] == 3, "the canaries are ready")
        self.kcp.patch(f"{ROLLOUTS}/bootstrapper", {"spec": {"paused": True}})
        self.until_phase("Paused", tag, 3)
        self.assertEqual(len(self.having(before)), 3)
        return manager

    def handed_over(self, manager, binary, before, tag):
        """The other version waits beside the leader, then takes over: nothing is rolled out or undone by that. Later it goes on."""
        there = self.deployments()
        other = self.start_manager(binary=binary)
        self.assertFalse(self.leads(other))
        self.end(manager)
        self.until_leads(other)
        units = lambda: [u for b in self.kcp.get(BOOTSTRAPPERS)["items"] for u in b["status"]["units"]]
        def read_all():
            with urllib.request.urlopen(f"http://127.0.0.1:{other.admin}/metrics", timeout=10) as answer:
                page = answer.read().decode()
            return (metric_sum(page, "rw_bootstrapper_syncs_total") or 0) >= self.RUNTIMES
        wait_until(read_all, PATIENCE, lambda: f"each runtime was looked at:\n{other.tail()}", every=0.1)
        status = self.until(lambda s: s["phase"] == "Paused", "is paused")["status"]
        self.assertEqual((status["updated"], status["total"], status.get("failed", 0)), (3, self.RUNTIMES, 0), status)
        self.assertEqual(self.deployments(), there)
        self.assertEqual(len([u for u in units() if u["name"] == "bootstrapper" and u["phase"] == "Waiting"]), 3, units())
        # What the waiting ones have is still repaired, from what the other version has stored.
        waiting = self.having(before)[0]
        self.skr[waiting].delete(DEPLOYMENT)
        wait_until(lambda: len(self.having(before)) == 3, PATIENCE, lambda: f"it is repaired: {self.deployments()}\n{other.tail()}", every=0.1)
        self.kcp.patch(f"{ROLLOUTS}/bootstrapper", {"spec": {"paused": False}})
        self.until_completed(tag)
        now = self.deployments()
        for name, (image, generation) in there.items():
            if image == tag:
                self.assertEqual(now[name], (image, generation), f"{name} had it before")
        return other

    @unittest.skipUnless(PREVIOUS, "RW_PREVIOUS_BINARY names no manager of the previous version")
    def test_paused_rollout_goes_on_where_it_was_after_an_upgrade_and_back(self):
        self.begin()
        manager = self.start_manager(binary=PREVIOUS)
        self.until_completed("1.0.0")
        manager = self.paused_half_way(manager, "1.0.0", "2.0.0", PREVIOUS)
        manager = self.handed_over(manager, BINARY, "1.0.0", "2.0.0")
        manager = self.paused_half_way(manager, "2.0.0", "3.0.0", BINARY)
        manager = self.handed_over(manager, PREVIOUS, "2.0.0", "3.0.0")
        self.end(manager)


class Embedded(Story, Upgrade, harness.TestCase):
    def kcp_options(self):
        return ()


@unittest.skipUnless(os.environ.get("KUBEBUILDER_ASSETS"), "KUBEBUILDER_ASSETS names no real API server")
class Real(Story, Upgrade, harness.TestCase):
    def kcp_options(self):
        return "--kcp-kubeconfig", control_plane.plane_of(self, "kcp")[1]


if __name__ == "__main__":
    harness.main()
