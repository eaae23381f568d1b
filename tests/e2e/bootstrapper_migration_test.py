"""Runs each command of deploy/manager/bootstrapper/MIGRATION.md, in its order, on three runtimes that a simulated Kyma
Infrastructure Manager (KIM) keeps, and checks after each step who writes what to them: signal, shadow, direct, KIM's switch off, and back.

KCP is embedded or, where KUBEBUILDER_ASSETS names one, a real API server. This script plays the controller of the manager's Deployment:
it runs the manager with the arguments that the Deployment has. KIM follows its own Deployment.
"""

import json
import os
import re
import subprocess
import sys
import unittest

import control_plane
import harness
from api import collection
from dev import Dev
from harness import BINARY, ROOT, Process, free_port, wait_until
from kubectl import KUBECTL

sys.path.insert(0, str(ROOT / "tests"))
import documented

PAGE = "deploy/manager/bootstrapper/MIGRATION.md"
PATIENCE = 90
KCP = "kcp-system"
RUNTIMES = [f"runtime-{i + 1}" for i in range(3)]
DEPLOYMENTS = collection("deployments", KCP, "apps")
OPTED_OUT = "operator.kyma-project.io/bootstrapper-opt-out"
CONFIG = collection("configmaps", "{}") + "/rt-bootstrapper-config"
BOOTSTRAPPER = collection("deployments", "kyma-system", "apps") + "/rt-bootstrapper-controller-manager"
BOOTSTRAPPERS = collection("runtimebootstrappers", KCP, "operator.kyma-project.io", "v1alpha1")
OURS, KIM = "runtime-watcher-bootstrapper", "kim-bootstrapper"
# Beside those of the Deployment: durations, so that the test does not take minutes.
QUICK = ("--signal-settle=100ms", "--signal-quiet=1s", "--rollout-canary-soak=1s", "--ca-propagation=1s")


class Steps:
    """The test; a subclass says where KCP is."""

    def setUp(self):
        super().setUp()
        if not KUBECTL:
            self.skipTest("there is no kubectl")
        version = json.loads(subprocess.check_output([KUBECTL, "version", "--client", "-o", "json"]))["clientVersion"]
        if int(re.match(r"\d+", version["minor"])[0]) < 21:
            self.skipTest(f"{KUBECTL} has a kustomize that knows no components")
        self.port = free_port()
        self.dev = self.start(Dev(self.folder / "dev", len(RUNTIMES), "--no-manager", "--backend", f"127.0.0.1:{self.port}",
                                  "--bootstrapper-mode", "signal", "--kim-duration", "100ms", *self.kcp_options())).wait_up()
        self.kcp = self.dev.kcp()
        self.skr = {name: self.dev.skr(name) for name in RUNTIMES}
        tools = self.folder / "bin"
        tools.mkdir()
        (tools / "runtime-watcher").symlink_to(BINARY)
        (tools / "kubectl").symlink_to(KUBECTL)
        self.environment = {**os.environ, "KUBECONFIG": str(self.dev.folder / "kcp.yaml"), "HOME": str(self.folder),
                            "PATH": f"{tools}:{os.environ['PATH']}"}
        self.manager, self.arguments = None, None
        self.generations = {}

    # --- whom the commands need --------------------------------------------------------

    def install(self):
        """As deploy/manager says, with the Component; nobody makes pods of it."""
        overlay = self.folder / "overlay"
        overlay.mkdir()
        deploy = os.path.relpath(ROOT / "deploy" / "manager", overlay)
        (overlay / "kustomization.yaml").write_text(json.dumps({"resources": [deploy], "components": [f"{deploy}/bootstrapper"]}))
        served = self.runs("kubectl api-versions")[1].split()
        parts = [part for part in re.split(r"^---$", self.runs(f"kubectl kustomize {overlay}")[1], flags=re.MULTILINE)
                 if re.search(r"^apiVersion: (.*)$", part, flags=re.MULTILINE)[1] in served]
        (self.folder / "manager.yaml").write_text("---".join(parts))
        self.until_runs(f"kubectl apply --validate=false -f {self.folder}/manager.yaml")

    def keep_deployments(self):
        """What the controller of Deployments does of those in KCP: pods with the present arguments, and the status."""
        for deployment in self.kcp.get(DEPLOYMENTS)["items"]:
            name, generation = deployment["metadata"]["name"], deployment["metadata"]["generation"]
            if name == "runtime-watcher-manager":
                arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
                if arguments != self.arguments:
                    self.start_manager(arguments)
            if deployment.get("status", {}).get("observedGeneration") == generation:
                continue
            replicas = deployment["spec"]["replicas"]
            available = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}
            self.kcp.patch(f"{DEPLOYMENTS}/{name}/status", {"status": {
                "observedGeneration": generation, "conditions": [available],
                **{f: replicas for f in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")}}})

    def start_manager(self, arguments):
        if self.manager:
            self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.arguments = arguments
        self.manager = self.start(Process("manager", [
            BINARY, *(a for a in arguments if not a.startswith("--xfcc-trusted-proxies=")), "--allow-local-runtimes", "--kubeconfig", self.dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{self.port}",
            "--metrics-address", "127.0.0.1:0", *QUICK]))
        self.manager.wait_listening("admin")

    def runs(self, command):
        done = subprocess.run(["bash", "-ec", f"set -o pipefail\n{command}"], cwd=self.folder, env=self.environment, text=True,
                              capture_output=True, timeout=PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def until_runs(self, command):
        """The page says that a command may find nothing yet; the controller works meanwhile."""
        said = []
        bounded = re.sub(r"--timeout[= ]\w+", "--timeout=5s", command)
        def succeeded():
            if self.manager:
                self.keep_deployments()
            said[:] = self.runs(bounded)
            return said[0] == 0
        wait_until(succeeded, PATIENCE, lambda: f"{command}\n{said[1]}\n{self.state()}", every=0.2)
        return said[1]

    def state(self):
        told = [each.get("status") for each in self.kcp.get(BOOTSTRAPPERS)["items"]]
        return f"{json.dumps(told, indent=1)}\n{self.manager.tail(8) if self.manager else ''}"

    # --- what must be so ---------------------------------------------------------------

    def change_configuration(self, text):
        """KCP's, which each runtime must get."""
        config = self.kcp.get(CONFIG.format(KCP))["data"]["rt-bootstrapper-config.json"]
        changed = json.dumps({**json.loads(config), "overrides": {"registry.example.org": f"{text}.example.com"}})
        self.kcp.patch(CONFIG.format(KCP), {"data": {"rt-bootstrapper-config.json": changed}})
        return changed

    def on_runtime(self, name):
        """The configuration there and the managers of its fields."""
        found = self.skr[name].get(CONFIG.format("kyma-system"))
        owners = {e["manager"] for e in found["metadata"]["managedFields"]} if found else set()
        return found and found["data"]["rt-bootstrapper-config.json"], owners

    def until_everywhere(self, text):
        wait_until(lambda: all(self.on_runtime(name)[0] == text for name in RUNTIMES), PATIENCE,
                   lambda: f"all have it: {[self.on_runtime(n) for n in RUNTIMES]}\n{self.manager.tail()}", every=0.1)

    def until_owned(self, by, names=RUNTIMES):
        wait_until(lambda: all(self.on_runtime(name)[1] == by for name in names), PATIENCE,
                   lambda: f"{names} are kept by {by}: {[self.on_runtime(n)[1] for n in names]}\n{self.manager.tail()}", every=0.1)

    def pods_stay(self):
        """Since the first time."""
        now = {name: self.skr[name].get(BOOTSTRAPPER)["metadata"]["generation"] for name in RUNTIMES}
        self.assertEqual(now, self.generations or now)
        self.generations = now

    def check(self, step, said):
        if step == "1. Signal":
            self.until_everywhere(self.change_configuration("signalled"))
            self.until_owned({KIM})
        elif step == "2. Shadow":
            for name in RUNTIMES:
                self.assertRegex(said, rf"(?m)^{name} +\S+", said)
            self.until_everywhere(self.change_configuration("shadow"))
            self.until_owned({KIM})
        elif step == "3. Direct, some runtimes":
            self.until_owned({OURS}, RUNTIMES[:1])
            self.until_owned({KIM}, RUNTIMES[1:])
        elif step == "4. Direct, all runtimes":
            self.until_owned({OURS})
        elif step == "5. KIM's switch off":
            self.until_everywhere(self.change_configuration("direct"))
            # KIM reconciles Runtimes all the same, and does not touch the runtimes.
            for name in RUNTIMES:
                self.runs(f"kubectl -n {KCP} annotate runtime {name} operator.kyma-project.io/force-patch-reconciliation=true")
            wait_until(lambda: "force-patch" not in self.runs(f"kubectl -n {KCP} get runtimes -o yaml")[1], PATIENCE, "KIM took the marks")
            self.until_owned({OURS})
        elif step == "Back":
            self.assertEqual(self.kcp.get(BOOTSTRAPPERS)["items"], [])
            self.assertNotIn(OPTED_OUT, self.runs(f"kubectl -n {KCP} get runtimes -o yaml")[1])
            # What changed in mode direct was signalled, and so is what changes now.
            self.until_everywhere(self.change_configuration("again"))
            for name in RUNTIMES:
                self.assertIn(KIM, self.on_runtime(name)[1])
        self.pods_stay()

    def test_commands_of_the_page_hand_runtimes_over_and_back(self):
        # KIM had them before.
        for name in RUNTIMES:
            self.runs(f"kubectl -n {KCP} annotate runtime {name} operator.kyma-project.io/force-patch-reconciliation=true")
        wait_until(lambda: all(self.skr[name].get(BOOTSTRAPPER) for name in RUNTIMES), PATIENCE, "KIM has installed", every=0.1)
        self.install()
        self.keep_deployments()
        sections = re.split(r"^##+ (.*)$", (ROOT / PAGE).read_text(), flags=re.MULTILINE)
        done = []
        for step, text in zip(sections[1::2], sections[2::2]):
            said = ""
            for command in documented.commands_in(text):
                said = self.until_runs(command)
                done.append(command)
            if said:
                self.check(step, said)
        self.assertEqual(done, documented.to_run(PAGE))
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.assertEqual(self.dev.terminate(), 0, self.dev.tail())


class Embedded(Steps, harness.TestCase):
    def kcp_options(self):
        return ()


@unittest.skipUnless(os.environ.get("KUBEBUILDER_ASSETS"), "KUBEBUILDER_ASSETS names no real API server")
class Real(Steps, harness.TestCase):
    def kcp_options(self):
        return "--kcp-kubeconfig", control_plane.plane_of(self, "kcp")[1]


if __name__ == "__main__":
    harness.main()
