"""Runs the commands of the documents as they are written there (tests/documented.py lists the pages, and what is not run), and
checks what the page says of them. Ports and folders outside of the test's own are replaced."""

import json
import os
import re
import subprocess
import sys

import harness
from dev import Dev
from harness import BINARY, ROOT, Pki, Process, Webhook, wait_until
from kubectl import KUBECTL

sys.path.insert(0, str(ROOT / "tests"))
import documented

PATIENCE = 60
BUILD = os.path.dirname(os.path.abspath(BINARY))


class Commands(harness.TestCase):
    def setUp(self):
        super().setUp()
        if not KUBECTL:
            harness.skip("kubectl is not there")
        tools = self.folder / "bin"
        tools.mkdir()
        (tools / "runtime-watcher").symlink_to(BINARY)
        # The embedded API server has no schemas in the form that older versions of kubectl check with.
        (tools / "kubectl").write_text(f'#!/bin/bash\n[[ $1 != apply ]] || set -- "$@" --validate=false\nexec {KUBECTL} "$@"\n')
        (tools / "kubectl").chmod(0o755)
        (self.folder / "build").symlink_to(BUILD)
        (self.folder / "deploy").symlink_to(ROOT / "deploy")
        self.environment = {**os.environ, "HOME": str(self.folder), "PATH": f"{tools}:{os.environ['PATH']}"}

    def run_command(self, command, cwd=None, timeout=PATIENCE):
        done = subprocess.run(["bash", "-ec", command], cwd=cwd or self.folder, env=self.environment, text=True,
                              capture_output=True, timeout=timeout)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    def begin(self, command, **environment):
        """A command that goes on until it is ended."""
        return self.start(Process(command.split()[0], ["env", "-C", self.folder, "bash", "-c", f"exec {command}"],
                                  env={**self.environment, **environment}))

    def until_printed(self, process, text):
        def look():
            self.assertTrue(process.running(), process.tail())
            return any(re.search(text, line) for _, line in list(process.log))
        wait_until(look, PATIENCE, lambda: f"{text}:\n{process.tail()}", every=0.05)

    def test_first_trial_shows_the_event(self):
        """README.md, and the same command in reactors/dev/README.md."""
        run, patch = documented.to_run("README.md")
        self.assertEqual(run, documented.to_run("reactors/dev/README.md")[0])
        process = self.begin(run)
        log = self.folder / "dev.log"
        wait_until(lambda: log.exists() and "the system is up" in log.read_text(), PATIENCE, lambda: process.tail(), every=0.05)
        self.run_command(patch)
        self.until_printed(process, r"^\d\d:\d\d:\d\d\.\d{3}  runtime-1: Kyma kyma-system/default changed -> "
                           r"Kyma kcp-system/runtime-1 reconciled [\d.]+ ms after it \(KCP heard of it after [\d.]+ ms\)$")
        self.assertEqual(process.terminate(), 0, process.tail())

    def test_api_server_serves_kubectl(self):
        """reactors/dev/README.md."""
        run, export, apply, watch = (command.replace("/tmp/rw-api", f"{self.folder}/rw-api")
                                     for command in documented.to_run("reactors/dev/README.md")[1:])
        process = self.begin(run)
        wait_until((self.folder / "rw-api" / "kcp.kubeconfig").exists, PATIENCE, lambda: process.tail(), every=0.05)
        self.run_command(f"{export}\n{apply}")
        watching = self.begin("kubectl " + watch.partition(" ")[2], KUBECONFIG=export.partition("=")[2])
        self.until_printed(watching, r"kyma\b")
        self.assertEqual(process.terminate(), 0, process.tail())

    def test_rollouts_of_the_configuration(self):
        """deploy/configuration-of-runtimes.md, in its order."""
        dev = self.start(Dev(self.folder / "dev", 2, "--bootstrapper-mode", "direct")).wait_up()
        self.environment["KUBECONFIG"] = str(dev.folder / "kcp.yaml")
        source = "kubectl get configmap -n kcp-system rt-bootstrapper-config -o json"
        changed = (f"{source} | jq 'del(.metadata.resourceVersion, .metadata.managedFields) "
                   "| .metadata.annotations.note = \"changed\"' >config.yaml")
        wait_until(lambda: dev.phases and dev.phases[-1]["phase"] == "Completed", PATIENCE, lambda: dev.tail(), every=0.05)
        run, shell, undone = 0, "", []
        for command in documented.to_run("deploy/configuration-of-runtimes.md"):
            if "kubectl apply" in command:
                self.run_command(changed)
                shell = command + "\n"
                continue
            if command.endswith("undo bootstrapper"):
                # There is one before only after a change.
                self.set_steps(None)
                undone = self.change_manifests(dev, "1.5.0", "2.0.0")
            elif command.endswith("promote bootstrapper"):
                self.begin_step(dev)
            said = self.run_command(shell + command, timeout=PATIENCE)
            run += 1
            if "history" in command:
                self.assertIn("REVISION", said)
            elif command.endswith("undo bootstrapper"):
                self.assertIn("bootstrapper", said, undone)
            elif command.endswith("promote bootstrapper"):
                self.until_completed(dev)
            elif command.endswith("plan bootstrapper"):
                self.assertRegex(said, r"(?m)^1 +1 +1 of \d +runtime-\d$")
        self.assertGreaterEqual(run, 8)
        self.assertEqual(dev.terminate(), 0, dev.tail())

    def change_manifests(self, dev, old, new):
        self.replace_manifests(dev, old, new)
        self.until_completed(dev)

    def replace_manifests(self, dev, old, new):
        self.told = len(dev.phases)
        self.run_command("kubectl get configmap -n kcp-system runtime-bootstrapper-manifests -o json | "
                         f"jq '.data[\"manifests.yaml\"] |= sub(\"rt-bootstrapper:{old}\"; \"rt-bootstrapper:{new}\")' | kubectl replace -f -")

    def until_completed(self, dev):
        wait_until(lambda: any(told["phase"] == "Completed" for told in dev.phases[self.told:]), PATIENCE, lambda: dev.tail(), every=0.05)

    def set_steps(self, steps):
        change = json.dumps({"spec": {"steps": steps}})
        self.run_command(f"kubectl patch runtimerollout -n kcp-system bootstrapper --type merge -p '{change}'")

    def begin_step(self, dev):
        """Puts a step under way that bakes for longer than the test."""
        self.set_steps([{"runtimes": 1, "bake": "1h"}])
        self.replace_manifests(dev, "1.0.0", "1.5.0")
        wait_until(lambda: any(told["phase"] == "Canary" for told in dev.phases[self.told:]), PATIENCE, lambda: dev.tail(), every=0.05)

    def test_recorded_reviews_are_replayed(self):
        """deploy/samples/README.md."""
        pki = Pki(self.folder / "pki")
        certificate, key = pki.issue("webhook", "webhook", cn="runtime-1")
        webhook = self.start(Webhook(certificate, key, pki.ca, "localhost:1", env={"SOURCE": "webhook"}))
        (self.folder / "ca.crt").symlink_to(pki.ca)
        command, = documented.to_run("deploy/samples/README.md")
        said = self.run_command(command.replace("8443", str(webhook.port)))
        self.assertEqual(len(re.findall(r"(?m): allowed\b.* \(\d+ us\)$", said)), len(list((ROOT / "deploy" / "samples").glob("*.json"))))

    def test_listener_and_manager_start_with_the_flags_of_the_examples(self):
        """deploy/settings.md."""
        listen, manage = documented.to_run("deploy/settings.md")
        listener = self.begin(listen.replace("0.0.0.0:8082", "127.0.0.1:0"))
        listener.wait_listening("listener")
        self.assertEqual(listener.terminate(), 0, listener.tail())
        dev = self.start(Dev(self.folder / "dev", 1, "--bare", "--no-manager", "--backend", "127.0.0.1:1")).wait_up()
        manager = self.begin(manage, KUBECONFIG=str(dev.folder / "kcp.yaml"), RW_LISTEN_ADDRESS="127.0.0.1:0",
                             RW_METRICS_ADDRESS="127.0.0.1:0")
        manager.wait_listening("listener")
        self.assertEqual(manager.terminate(), 0, manager.tail())

    def test_single_tests_are_run(self):
        """tests/README.md."""
        (self.folder / "CMakePresets.json").symlink_to(ROOT / "CMakePresets.json")
        for command in documented.to_run("tests/README.md"):
            with self.subTest(command):
                if command.startswith("ctest --preset release"):
                    # The preset's folder is that of the sources, which may be built elsewhere.
                    command = command.replace("--preset release", "--test-dir build --no-tests=error")
                self.run_command(command, timeout=120)


if __name__ == "__main__":
    harness.main()
