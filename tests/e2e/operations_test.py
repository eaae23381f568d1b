"""Runs each command of deploy/operations.md, in its order, on a landscape of three runtimes, and checks what the page says of it.

The manager is a process of this test, as the Deployment's pods would be: it ends and starts as the page scales them. The
charts' releases are real (RW_HELM); without helm the commands of upgrades are left out.
"""

import json
import os
import re
import shutil
import subprocess

import harness
from charts import HELM, VALUES
from dev import CONFIGURATION, WATCHER, Dev
from harness import BINARY, ROOT, Process, free_port, wait_until
from kubectl import KUBECTL

PAGE = ROOT / "deploy" / "operations.md"
RUNTIMES = 3


def commands():
    """Each command of the page: lines that end with a backslash go on."""
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL):
        yield from re.findall(r"(?:.*\\\n)*.+", block)


class Operations(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.dev = self.start(Dev(self.folder / "dev", RUNTIMES, "--no-manager", "--backend", f"127.0.0.1:{self.port}")).wait_up()
        self.kcp = self.dev.kcp()
        tools = self.folder / "bin"
        tools.mkdir()
        for name, path in (("runtime-watcher", BINARY), ("helm", HELM)):
            if path:
                (tools / name).symlink_to(path)
        # The embedded API server has no schemas in the form that older versions of kubectl check with.
        (tools / "kubectl").write_text(f'#!/bin/bash\n[[ $1 != apply ]] || set -- "$@" --validate=false\nexec {KUBECTL} "$@"\n')
        (tools / "kubectl").chmod(0o755)
        (self.folder / "deploy").symlink_to(ROOT / "deploy")
        (self.folder / "my-values.yaml").write_text(json.dumps(VALUES))
        self.environment = {**os.environ, "KUBECONFIG": str(self.dev.folder / "kcp.yaml"), "PATH": f"{tools}:{os.environ['PATH']}",
                            **{f"HELM_{kind}_HOME": str(self.folder / kind) for kind in ("CACHE", "CONFIG", "DATA")}}
        self.shell = ""  # what later commands need of earlier ones
        self.manager = None

    def start_manager(self):
        self.manager = self.start(Process("manager", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", self.dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{self.port}",
            "--metrics-address", "127.0.0.1:0", "--ca-propagation", "1s", "--probe-interval", "2s"]))

    def run_command(self, command):
        done = subprocess.run(["bash", "-ec", f"set -o pipefail\n{self.shell}{command}"], cwd=self.folder, env=self.environment,
                              text=True, capture_output=True, timeout=90)
        return done.returncode, done.stdout + done.stderr

    def runs(self, command):
        code, said = self.run_command(command)
        self.assertEqual(code, 0, f"{command}\n{said}")
        return said

    def until_runs(self, command, timeout=90):
        said = []
        def succeeded():
            said[:] = self.run_command(command)
            return said[0] == 0
        wait_until(succeeded, timeout, lambda: f"{command}\n{said[1]}\n{self.manager.tail()}", every=0.5)

    def generations(self):
        return {f"runtime-{i}": self.dev.skr(f"runtime-{i}").get("/apis/apps/v1/namespaces/kyma-system/deployments/skr-webhook")
                ["metadata"]["generation"] for i in range(1, RUNTIMES + 1)}

    def test_commands_of_the_page_do_what_it_says(self):
        self.start_manager()
        self.until_runs("runtime-watcher doctor && runtime-watcher rollout status watcher --no-watch")
        self.until_runs("kubectl get secrets -n runtime-watcher-system -o name | grep .")
        if HELM:
            self.runs("helm install runtime-watcher deploy/helm/runtime-watcher -n kcp-system --values my-values.yaml --take-ownership")
        else:
            self.runs("kubectl create deployment --namespace kcp-system runtime-watcher-manager --image=x")
        done, before = 0, self.generations()
        for command in commands():
            if command.startswith("helm ") and not HELM:
                continue
            done += 1
            if re.match(r"umask|\w+=", command):
                self.shell += command + "\n"
            elif "--replicas=0" in command:
                self.runs(command)
                self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
                self.lose()
            elif "--replicas=2" in command:
                self.runs(command)
                self.start_manager()
            elif command.startswith(("runtime-watcher doctor", "runtime-watcher rollout")):
                self.until_runs(command)
            else:
                self.runs(command)
        self.assertGreater(done, 15 if HELM else 12)
        self.check_restored(before)

    def lose(self):
        """What the drill restores: it would succeed if nothing were exported otherwise."""
        self.kcp.patch(WATCHER, {"metadata": {"finalizers": None}})
        self.kcp.delete(WATCHER)

    def check_restored(self, before):
        for name in ("objects.json", "state.json", "authority.json"):
            self.assertEqual((self.folder / name).stat().st_mode & 0o077, 0, name)
        self.assertEqual(self.kcp.get(WATCHER)["spec"]["field"], "spec")
        self.assertEqual(self.generations(), before, "no runtime got its watcher anew")
        for i in range(1, RUNTIMES + 1):
            names = [w["name"] for w in self.dev.skr(f"runtime-{i}").get(CONFIGURATION)["webhooks"]]
            self.assertTrue(any("kyma" in name.split(".")[1] for name in names), names)


if __name__ == "__main__":
    if not KUBECTL or not shutil.which("jq"):
        harness.skip("there is no kubectl or no jq")
    harness.main()
