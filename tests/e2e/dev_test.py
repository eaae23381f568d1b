"""The whole system in one process: from an empty KCP to a runtime that is installed, heard of, configured, and removed."""

import base64
import hashlib
import json
import re
import shlex
import shutil
import subprocess
import urllib.request

import harness
from api import collection, kymas
from dev import CONFIGURATION, DEPLOYMENT, ROLLOUT, SECRET, SERVICE, WATCHED, WATCHER, Dev, rotate_pull_secret, webhooks_of
from harness import BINARY, DEV_BINARY, runtime_watcher, wait_until
from prometheus import Prometheus

PATIENCE = 30
ON_RUNTIME = collection("secrets", "kyma-system") + "/registry-credentials"
DEPLOYMENT_ON_RUNTIME = collection("deployments", "kyma-system", "apps") + "/rt-bootstrapper-controller-manager"
PODS = collection("pods", "kyma-system")
RUNTIMES = ("runtime-1", "runtime-2", "runtime-3")


class WholeSystem(harness.TestCase):
    def start_dev(self, *options, runtimes=len(RUNTIMES)):
        self.dev = self.start(Dev(self.folder / "dev", runtimes, *options)).wait_up()
        self.kcp = self.dev.kcp()
        return self.dev

    def until(self, condition, what):
        return wait_until(condition, PATIENCE, lambda: f"{what}:\n{self.dev.tail()}", every=0.02)

    def change(self, skr, value):
        skr.patch(WATCHED, {"spec": {"channel": value}})

    def heard(self, runtime, start):
        """The first event of a runtime since `start` that led to its reconcile."""
        return self.until(lambda: self.dev.reconciled(runtime, start), f"an event of {runtime} requeues its Kyma")[0]

    def ready(self, skr):
        found = skr.get(DEPLOYMENT)
        status = found.get("status", {}) if found else {}
        return status.get("readyReplicas") == 1 and status.get("observedGeneration") == found["metadata"]["generation"]

    def test_watcher_and_kymas_lead_to_events_and_their_removal_to_silence(self):
        dev = self.start_dev("--bare")
        runtimes = {name: dev.skr(name) for name in RUNTIMES}
        self.kcp.apply(WATCHER, dev.manifest("watcher"))
        self.until(lambda: self.kcp.get(WATCHER).get("status", {}).get("state") == "Ready", "the Watcher is Ready")
        for name in RUNTIMES:
            dev.add_kyma(self.kcp, name)
        for name, skr in runtimes.items():
            self.until(lambda: webhooks_of(skr) == ["kyma"] and self.ready(skr), f"the watcher is installed on {name}")
        self.until(lambda: dev.installed() == len(RUNTIMES), "the manager has seen all pods ready")
        for name, skr in runtimes.items():
            start = len(dev.events)
            self.change(skr, "fast")
            event = self.heard(name, start)
            self.assertEqual((event["kyma"], event["kind"], event["namespace"], event["name"]),
                             (f"kcp-system/{name}", "Kyma", "kyma-system", "default"))
            self.assertGreater(event["reconciledAfterMs"], 0)

        # What is not watched is not told.
        skr = runtimes["runtime-1"]
        start = len(dev.events)
        skr.patch(WATCHED, {"metadata": {"annotations": {"note": "nothing that counts"}}})
        self.change(skr, "regular")
        self.heard("runtime-1", start)
        self.assertEqual(len(dev.reconciled("runtime-1", start)), 1)

        # Without the Watcher nobody is called; without the Kyma nothing is left.
        self.kcp.delete(WATCHER)
        for name, skr in runtimes.items():
            self.until(lambda: not webhooks_of(skr), f"{name} has no webhook")
        self.until(lambda: self.kcp.get(SERVICE) is None, "the VirtualService is gone")
        self.kcp.delete(f"{kymas('kcp-system')}/runtime-1")
        skr = runtimes["runtime-1"]
        for path in (CONFIGURATION, DEPLOYMENT, SECRET):
            self.until(lambda: skr.get(path) is None, f"{path} is gone")
        self.until(lambda: self.kcp.get(f"{kymas('kcp-system')}/runtime-1") is None, "the Kyma is gone")
        self.assertEqual(dev.terminate(), 0, dev.tail())

    def test_pod_follows_its_deployment_and_its_secret(self):
        dev = self.start_dev(runtimes=1)
        skr = dev.skr("runtime-1")
        self.until(lambda: dev.installed() == 1, "the watcher is installed")
        ports = lambda: {r["port"] for r in dev.records(msg="the webhook runs")}
        before = ports()
        def pods_run():
            statuses = [pod["status"] for pod in skr.get(PODS)["items"]]
            return [(s["phase"], [c["ready"] for c in s.get("containerStatuses", [])]) for s in statuses] == [("Running", [True])]
        self.until(pods_run, "the one pod runs and is ready")
        skr.patch(DEPLOYMENT, {"spec": {"template": {"metadata": {"labels": {"restarted": "yes"}}}}})
        self.until(lambda: len(ports()) > len(before) and self.ready(skr), "another template makes another pod")
        self.until(pods_run, "the new pod alone runs and is ready")
        start = len(dev.events)
        self.change(skr, "fast")
        self.heard("runtime-1", start)

        # A pod whose Secret is damaged runs on; its next event makes the manager repair the Secret.
        skr.patch(SECRET, {"data": {"tls.key": "bm8ga2V5"}})
        self.until(lambda: dev.records(msg="the webhook stays as it is"), "the damage is told")
        start = len(dev.events)
        self.change(skr, "regular")
        self.heard("runtime-1", start)
        self.until(lambda: skr.get(SECRET)["data"]["tls.key"] != "bm8ga2V5", "the Secret is repaired")

    def test_system_ends_in_order_while_events_come(self):
        dev = self.start_dev(runtimes=2)
        self.until(lambda: dev.installed() == 2, "the watcher is installed on both")
        skr = dev.skr("runtime-1")
        for i in range(50):
            self.change(skr, f"channel-{i}")
        self.assertEqual(dev.terminate(20), 0, dev.tail())
        self.assertTrue(dev.records(msg="stopped", undelivered=0), dev.tail())

    def test_system_ends_at_once_while_it_starts(self):
        dev = self.start(Dev(self.folder / "dev", 50))
        dev.wait_listening("api-server")
        self.assertEqual(dev.terminate(15), 0, dev.tail())

    def test_without_a_manager_the_line_that_starts_one_is_printed(self):
        port = harness.free_port()
        dev = self.start(harness.Process("dev", [DEV_BINARY, "dev", "--dir", self.folder / "dev", "--runtimes", "1", "--no-manager",
                                                 "--backend", f"127.0.0.1:{port}", "--bootstrapper-mode", "direct"]))
        lines = wait_until(lambda: [line for _, line in dev.log if " manager --" in line], 60, dev.tail)
        line = lines[0]
        self.assertIn("--bootstrapper-mode direct", line)
        manager = self.start(harness.Process("manager", [*shlex.split(line), "--metrics-address", "127.0.0.1:0"]))
        manager.wait_listening("admin")
        done = runtime_watcher("doctor", "--pre", "--allow-local-runtimes", "--kubeconfig", self.folder / "dev" / "kcp.yaml")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(manager.terminate(), 0, manager.tail())
        self.assertEqual(dev.terminate(), 0, dev.tail())

    def test_kubeconfig_that_cannot_be_read_costs_no_file_of_an_earlier_dev(self):
        folder = self.folder / "dev"
        folder.mkdir()
        earlier = folder / "skr-runtime-1.yaml"
        earlier.write_text("kind: Config")
        done = runtime_watcher("dev", "--dir", folder, "--skr-kubeconfig", earlier, "--skr-kubeconfig", folder / "none.yaml", binary=DEV_BINARY)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertEqual(earlier.read_text(), "kind: Config", done.stderr)

    def test_without_a_manager_the_gateway_leads_to_those_that_are_named(self):
        done = runtime_watcher("dev", "--backend", "127.0.0.1:1", binary=DEV_BINARY)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--no-manager", done.stderr)
        self.assertNotIn("{false}", runtime_watcher("dev", "--help", binary=DEV_BINARY).stdout)
        port = harness.free_port()
        dev = self.start(Dev(self.folder / "dev", 1, "--no-manager", "--backend", f"127.0.0.1:{port}")).wait_up()
        manager = self.start(harness.Process("manager", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{port}",
            "--metrics-address", "127.0.0.1:0", "--pin-san"]))
        admin = manager.wait_listening("admin")
        skr = dev.skr("runtime-1")
        self.dev = dev
        self.until(lambda: self.ready(skr) and webhooks_of(skr) == ["kyma"], "the watcher is installed")
        def routed():
            with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=10) as answer:
                return harness.metric_sum(answer.read().decode(), "rw_kyma_router_events_total") or 0
        before = routed()
        self.change(skr, "fast")
        self.until(lambda: routed() > before, "the manager hears of the change")
        self.assertEqual(manager.terminate(), 0, manager.tail())
        self.assertEqual(dev.terminate(), 0, dev.tail())

    def test_image_that_crashes_stays_with_the_canaries(self):
        port = harness.free_port()
        dev = self.dev = self.start(Dev(self.folder / "dev", 6, "--no-manager", "--backend", f"127.0.0.1:{port}")).wait_up()
        def start_manager(image):
            return self.start(harness.Process("manager", [
                BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{port}",
                "--metrics-address", "127.0.0.1:0", "--rollout-canary-soak", "100ms", "--skr-image", image]))
        manager = start_manager("example.com/runtime-watcher:1")
        def status():
            return (dev.kcp().get(ROLLOUT) or {}).get("status", {})
        self.until(lambda: status().get("phase") == "Completed" and status()["ready"] == 6, "all have the first image")
        self.assertEqual(manager.terminate(), 0, manager.tail())
        start_manager("example.com/runtime-watcher:crash")
        self.until(lambda: status().get("reason") == "CanaryFailed", "the roll-out is paused")
        self.assertIn("CrashLoopBackOff", status()["message"])
        skrs = [dev.skr(f"runtime-{i + 1}") for i in range(6)]
        images = [skr.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["image"].rpartition(":")[2] for skr in skrs]
        self.assertIn(images.count("crash"), (1, 2), images)
        # The previous pod serves meanwhile.
        start = len(dev.events)
        self.change(skrs[images.index("crash")], "fast")
        self.until(lambda: len(dev.events) > start, "its event is sent")

    def test_steps_are_verified_by_prometheus(self):
        if not shutil.which("prometheus"):
            self.skipTest("prometheus is not installed")
        server = self.start(Prometheus(self.folder / "prometheus", []))
        port = harness.free_port()
        dev = self.dev = self.start(Dev(self.folder / "dev", 6, "--no-manager", "--backend", f"127.0.0.1:{port}")).wait_up()
        self.until(server.is_ready, "Prometheus is ready")
        def start_manager(tag, *options):
            return self.start(harness.Process("manager", [
                BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{port}",
                "--metrics-address", "127.0.0.1:0", "--rollout-canary-soak", "100ms", "--skr-image", f"example.com/watcher:{tag}", *options]))
        def status():
            return (dev.kcp().get(ROLLOUT) or {}).get("status", {})
        def having(tag):
            images = [dev.skr(f"runtime-{i + 1}").get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["image"] for i in range(6)]
            return sum(image.endswith(f":{tag}") for image in images)
        prometheus = ("--rollout-prometheus", f"http://127.0.0.1:{server.port}")
        manager = start_manager("1", *prometheus)
        self.until(lambda: status().get("phase") == "Completed" and status()["ready"] == 6, "all have the first image")
        self.assertEqual(manager.terminate(), 0, manager.tail())
        dev.kcp().patch(ROLLOUT, {"spec": {"maxUnavailable": 6, "steps": [
            {"runtimes": 1, "verify": {"query": "vector(2)", "threshold": 1.5}},
            {"runtimes": "50%", "bake": "1h", "verify": {"query": "vector(1.5)", "threshold": 1.5}},
            {"runtimes": 5, "bake": "0", "verify": {"query": "up == 7", "threshold": 1}}]}})
        manager = start_manager("2", *prometheus)
        self.until(lambda: status().get("reason") == "VerificationFailed", lambda: f"it is paused: {status()}")
        self.assertEqual((status()["message"], status()["step"], having("2")), ("step 1: 2 is more than 1.5", 1, 1))
        dev.kcp().patch(ROLLOUT, {"spec": {"resume": "1"}})
        self.until(lambda: (status().get("step"), having("2")) == (2, 3), lambda: f"the second step bakes: {status()}")
        plan = harness.runtime_watcher("rollout", "plan", "watcher", "--kubeconfig", dev.folder / "kcp.yaml").stdout
        placed = {name: int(step) for step, *_, name in map(str.split, plan.strip().splitlines()[2:])}
        updated = {f"runtime-{i + 1}" for i in range(6)
                   if dev.skr(f"runtime-{i + 1}").get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":2")}
        self.assertEqual((sorted(placed.values()), {name for name, step in placed.items() if step <= 2}), ([1, 2, 2, 3, 3, 4], updated), plan)
        def promote():
            return harness.runtime_watcher("rollout", "promote", "watcher", "--kubeconfig", dev.folder / "kcp.yaml")
        done = promote()
        self.assertEqual((done.returncode, done.stdout), (0, "runtimerollout.operator.kyma-project.io/watcher promoted\n"), done.stderr)
        self.until(lambda: "no sample" in status().get("message", ""), lambda: f"the third step is not verified: {status()}")
        self.assertEqual((status()["reason"], status()["step"], having("2")), ("VerificationFailed", 3, 5))
        dev.kcp().patch(ROLLOUT, {"spec": {"resume": "2"}})
        self.until(lambda: status()["phase"] == "Completed" and having("2") == 6, lambda: f"all have it: {status()}")
        done = promote()
        self.assertEqual((done.returncode, done.stderr),
                         (1, 'error: runtimerollouts.operator.kyma-project.io "watcher" is in no step\n'))
        self.assertEqual(manager.terminate(), 0, manager.tail())
        start_manager("3")
        self.until(lambda: status().get("reason") == "PrometheusNotConfigured", lambda: f"no step can be verified: {status()}")
        stalled = [each for each in status()["conditions"] if each["type"] == "Stalled"]
        self.assertEqual((stalled[0]["status"], stalled[0]["reason"], having("3")), ("True", "PrometheusNotConfigured", 0))
        self.assertIn("--rollout-prometheus", status()["message"])


class Configuration(harness.TestCase):
    """What runtimes are configured with, on its way from KCP."""

    def start_dev(self, *options, runtimes=3):
        self.dev = self.start(Dev(self.folder / "dev", runtimes, *options)).wait_up()
        self.kcp = self.dev.kcp()
        return self.dev

    def until(self, condition, what):
        return wait_until(condition, PATIENCE, lambda: f"{what}: {self.dev.rollout}\n{self.dev.tail()}", every=0.02)

    def until_all_have(self, names, *sources):
        for source in sources:
            self.until(lambda: self.dev.have(source) >= names, f"{names} have the {source}")

    def rotate(self, names, password):
        """Changes the pull Secret in KCP; returns the objects that it became on the runtimes."""
        start = len(self.dev.rollout)
        rotate_pull_secret(self.kcp, password)
        self.until(lambda: self.dev.have("pull Secret", start) >= names, f"{names} have the changed pull Secret")
        found = {name: self.dev.skr(name).get(ON_RUNTIME) for name in names}
        for name, secret in found.items():
            self.assertEqual(secret["type"], "kubernetes.io/dockerconfigjson", name)
            self.assertIn(password, base64.b64decode(secret["data"][".dockerconfigjson"]).decode(), name)
        return found

    def managers(self, secret):
        return {each["manager"] for each in secret["metadata"]["managedFields"]}

    def test_configuration_is_written_directly_past_a_runtime_that_hangs(self):
        dev = self.start_dev("--bootstrapper-mode", "direct", "--hanging-runtimes", 1)
        healthy = set(RUNTIMES[:2])
        self.until_all_have(healthy, "configuration", "pull Secret", "trust bundle")
        self.until(lambda: dev.metric("rw_bootstrapper_runtimes", state="installed") == 2, "the Deployments are ready")
        for secret in self.rotate(healthy, "second").values():
            self.assertEqual(self.managers(secret), {"runtime-watcher-bootstrapper"})
        self.assertNotIn("runtime-3", dev.have("pull Secret"))
        self.assertEqual(dev.terminate(20), 0, dev.tail())

    def test_manifest_that_crashes_stays_with_the_canaries(self):
        dev = self.start_dev("--bootstrapper-mode", "direct", runtimes=4)
        def phases():
            return [(each["phase"], each["reason"]) for each in dev.phases]
        def completed():
            return dev.phases and dev.phases[-1]["phase"] == "Completed" and dev.phases[-1]["ready"] == 4
        self.until(completed, f"all have the first content: {phases()}")
        manifests = collection("configmaps", "kcp-system") + "/runtime-bootstrapper-manifests"
        text = self.kcp.get(manifests)["data"]["manifests.yaml"]
        self.kcp.patch(manifests, {"data": {"manifests.yaml": text.replace("rt-bootstrapper:1.0.0", "rt-bootstrapper:crash")}})
        self.until(lambda: ("Paused", "CanaryFailed") in phases(), "the roll-out is paused")
        self.assertIn("CrashLoopBackOff", dev.phases[-1]["message"])
        def image(runtime):
            return dev.skr(runtime).get(DEPLOYMENT_ON_RUNTIME)["spec"]["template"]["spec"]["containers"][0]["image"].rpartition(":")[2]
        names = [f"runtime-{i + 1}" for i in range(4)]
        found = self.kcp.get(collection("runtimerollouts", "kcp-system", "operator.kyma-project.io", "v1alpha1") + "/bootstrapper")
        status = found["status"]
        self.assertEqual((status["phase"], status["total"], status["step"]), ("Paused", 4, 1))
        runtimes = self.kcp.get(collection("runtimes", "kcp-system", "infrastructuremanager.kyma-project.io", "v1"))["items"]
        position = lambda one: int(hashlib.sha256(one["metadata"]["uid"].encode()).hexdigest()[:8], 16)
        canaries = {one["metadata"]["name"] for one in runtimes if position(one) < status["steps"][0]["positionsBelow"]}
        crashing = {name for name in names if image(name) == "crash"}
        self.assertEqual(len(canaries), 2)
        self.assertTrue(crashing and crashing <= canaries, (crashing, canaries))
        # Credentials go everywhere all the same.
        self.rotate(set(names), "second")
        # What is printed to put the first ones back.
        back = dev.folder / "bootstrapper-sources.yaml"
        subprocess.run(["kubectl", "--kubeconfig", dev.folder / "kcp.yaml", "apply", "--server-side", "--force-conflicts", "-f", back], check=True, capture_output=True, timeout=60)
        self.until(completed, f"the first content is everywhere again: {phases()}")
        self.assertNotIn("crash", {image(name) for name in names})
        self.assertEqual(dev.terminate(20), 0, dev.tail())

    def test_doctor_and_roll_out_tell_what_reaches_no_runtime(self):
        dev = self.start_dev("--bootstrapper-mode", "direct", runtimes=2)
        self.until(lambda: dev.phases and dev.phases[-1]["phase"] == "Completed" and dev.phases[-1]["ready"] == 2, "the first content")
        config = collection("configmaps", "kcp-system") + "/rt-bootstrapper-config"
        def told(check="bootstrappers"):
            done = harness.runtime_watcher("doctor", "--kubeconfig", dev.folder / "kcp.yaml", "-o", "json", timeout=60)
            return [f"{each['state']} {each['message']}" for each in json.loads(done.stdout)["checks"] if each["check"] == check]
        def back():
            subprocess.run(["kubectl", "--kubeconfig", dev.folder / "kcp.yaml", "apply", "--server-side", "--force-conflicts", "-f",
                            dev.folder / "bootstrapper-sources.yaml"], check=True, capture_output=True, timeout=60)
            self.until(lambda: not told(), "nothing is wrong")
        self.assertEqual(told(), [])
        self.assertRegex(told("rollouts")[0], "^proven ")
        self.kcp.patch(config, {"data": {"rt-bootstrapper-config.json": "{"}})
        self.until(lambda: re.search("no runtime takes part; .*RuntimeBootstrappers .*not Compatible: Invalid: .*JSON",
                                     self.rollout("status", "bootstrapper", "--no-watch")[1]), "rollout status names the source")
        self.assertRegex(told("rollouts")[0], "^not_proven .*; see bootstrappers: sources are invalid$")
        back()
        self.kcp.delete(config)
        self.until(lambda: any(re.match("not_proven SourceMissing: .*rt-bootstrapper-config.*does not exist", each) for each in told()), "SourceMissing")
        done = harness.runtime_watcher("diff", "--runtime", "runtime-1", "--kubeconfig", dev.folder / "kcp.yaml", timeout=60)
        self.assertRegex(done.stdout, "rt-bootstrapper-config.*does not exist")
        back()
        self.kcp.delete(collection("runtimebootstrappers", "kcp-system", "operator.kyma-project.io", "v1alpha1") + "/runtime-2")
        self.until(lambda: any(re.match("not_proven NoResource: .*: runtime-2 .opted out", each) for each in told()), "the one that opted out")
        self.assertEqual(dev.terminate(20), 0, dev.tail())

    def rollout(self, *arguments):
        """`runtime-watcher rollout`: the exit code, and what it prints."""
        done = harness.runtime_watcher("rollout", *arguments, "--kubeconfig", self.dev.folder / "kcp.yaml", timeout=60)
        return done.returncode, done.stdout + done.stderr

    def test_rollout_is_scripted_in_the_words_of_kubectl(self):
        dev = self.start_dev("--bootstrapper-mode", "direct", runtimes=4)
        self.until(lambda: dev.phases and dev.phases[-1]["phase"] == "Completed" and dev.phases[-1]["ready"] == 4, "the first content")
        succeeded = (0, 'rollout "bootstrapper" successfully rolled out\n')
        code, text = self.rollout("status", "bootstrapper", "--timeout", "30s")
        self.assertEqual((code, text.splitlines(True)[-1]), succeeded)
        self.assertEqual(self.rollout("pause", "bootstrapper"), (0, "runtimerollout.operator.kyma-project.io/bootstrapper paused\n"))
        done = harness.runtime_watcher("doctor", "--kubeconfig", dev.folder / "kcp.yaml", timeout=60)
        self.assertRegex(done.stdout, r"proven +rollouts .*bootstrapper is in phase Completed, and paused for what comes next "
                                      r"\(runtime-watcher rollout resume --kubeconfig \S+kcp.yaml bootstrapper\)")
        again = 'error: runtimerollouts.operator.kyma-project.io "bootstrapper" is already paused\n'
        self.assertEqual(self.rollout("pause", "bootstrapper"), (1, again))
        manifests = collection("configmaps", "kcp-system") + "/runtime-bootstrapper-manifests"
        text = self.kcp.get(manifests)["data"]["manifests.yaml"]
        def set_image(tag):
            done = self.kcp.patch(manifests, {"data": {"manifests.yaml": text.replace("rt-bootstrapper:1.0.0", f"rt-bootstrapper:{tag}")}})
            return f"ConfigMap/runtime-bootstrapper-manifests={done['metadata']['resourceVersion']}"
        def images():
            deployments = [dev.skr(f"runtime-{i + 1}").get(DEPLOYMENT_ON_RUNTIME) for i in range(4)]
            return {each["spec"]["template"]["spec"]["containers"][0]["image"].rpartition(":")[2] for each in deployments}
        source = set_image("2.0.0")
        code, shown = self.rollout("status", "bootstrapper", "--source", source, "--timeout", "2s")
        self.assertEqual(code, 1, shown)
        self.assertIn("0 of 4 runtimes have been updated; it is paused...", shown)
        self.assertIn("error: timed out waiting for the condition", shown)
        self.assertEqual(self.rollout("resume", "bootstrapper")[0], 0)
        # The content before it was rolled out, too: only with the source it is this one.
        code, shown = self.rollout("status", "bootstrapper", "--source", source, "--timeout", "30s")
        self.assertEqual((code, shown.splitlines(True)[-1]), succeeded)
        # A change of metadata alone is seen as well.
        done = self.kcp.patch(manifests, {"metadata": {"annotations": {"changed-by": "a person"}}})
        source = f"ConfigMap/runtime-bootstrapper-manifests={done['metadata']['resourceVersion']}"
        self.assertEqual(self.rollout("status", "bootstrapper", "--source", source, "--timeout", "30s")[0], 0)
        def revision():
            rollout = collection("runtimerollouts", "kcp-system", "operator.kyma-project.io", "v1alpha1") + "/bootstrapper"
            return self.kcp.get(rollout)["spec"]["revision"]
        # A pinned revision keeps newer sources out, and who waits for them hears it.
        self.assertEqual(self.rollout("undo", "bootstrapper")[0], 0)
        self.assertEqual(self.rollout("status", "bootstrapper", "--timeout", "30s")[0], 0)
        source = set_image("3.0.0")
        pinned = r"revision \w+ is pinned.*newer: ConfigMap/runtime-bootstrapper-manifests.*rollout undo .*bootstrapper --to-sources"
        self.until(lambda: re.search("successfully rolled out; " + pinned, self.rollout("status", "bootstrapper", "--no-watch")[1]), "told by status")
        code, shown = self.rollout("status", "bootstrapper", "--source", source, "--timeout", "30s")
        self.assertEqual(code, 1, shown)
        self.assertRegex(shown, "error: .*" + pinned)
        done = harness.runtime_watcher("doctor", "--kubeconfig", dev.folder / "kcp.yaml", "-o", "json", timeout=60)
        told = [(check["state"], check["message"] + check.get("fix", "")) for check in json.loads(done.stdout)["checks"] if check["check"] == "rollouts"]
        self.assertEqual([state for state, text in told if re.search(pinned, text)], ["not_proven"], told)
        done = harness.runtime_watcher("diff", "--runtime", "runtime-1", "--kubeconfig", dev.folder / "kcp.yaml", timeout=60)
        self.assertRegex(done.stdout, "(?m)^# bootstrapper: " + pinned)
        # Success is that of the sources, not of the content before.
        self.assertEqual(self.rollout("undo", "bootstrapper", "--to-sources")[0], 0)
        code, shown = self.rollout("status", "bootstrapper", "--timeout", "30s")
        self.assertEqual((code, shown.splitlines(True)[-1]), succeeded)
        self.assertEqual(images(), {"3.0.0"})
        source = set_image("crash")
        code, shown = self.rollout("status", "bootstrapper", "--source", source, "--timeout", "30s")
        self.assertEqual(code, 1, shown)
        self.assertRegex(shown, 'error: rollout "bootstrapper" is stalled, CanaryFailed; .* runtimes have been updated: .*CrashLoopBackOff')
        self.assertEqual(self.rollout("undo", "bootstrapper"), (0, "runtimerollout.operator.kyma-project.io/bootstrapper rolled back\n"))
        self.until(lambda: "current content already matches" in self.rollout("undo", "bootstrapper", "--to-revision", revision())[1], "it is undone")
        self.assertEqual(self.rollout("undo", "bootstrapper", "--to-revision", revision())[0], 0)
        code, shown = self.rollout("status", "bootstrapper", "--timeout", "30s")
        self.assertRegex(shown.splitlines()[-1], "successfully rolled out; " + pinned)
        self.assertEqual(code, 0)
        self.assertEqual(images(), {"3.0.0"})
        self.assertEqual(self.rollout("undo", "bootstrapper", "--to-revision", "no-such")[0], 1)
        self.assertEqual(self.rollout("undo", "bootstrapper", "--to-sources")[0], 0)
        self.until(lambda: self.rollout("status", "bootstrapper", "--no-watch")[0] == 1, "the sources are rolled out again, and crash")
        self.assertEqual(self.rollout("resume", "bootstrapper")[0], 0)
        code, shown = self.rollout("history", "bootstrapper")
        self.assertEqual(code, 0, shown)
        outcomes = [line.split()[3] for line in shown.splitlines()[2:] if line]
        self.assertEqual(outcomes[-4:-1], ["Completed", "Superseded", "Completed"], shown)
        self.assertIn("ConfigMap/runtime-bootstrapper-manifests=", shown.splitlines()[-2], "of the undone one, too")
        self.assertIn(source, shown)
        self.assertEqual(self.rollout("status", "nothing")[0], 2)
        self.assertEqual(dev.terminate(20), 0, dev.tail())

    def test_bootstrapper_reads_its_configuration_when_it_starts(self):
        """KIM writes what is in KCP, whether the bootstrapper can read it or not."""
        dev = self.start_dev("--bootstrapper-mode", "signal", "--kim-duration", "200ms", runtimes=1)
        def served():
            return dev.skr("runtime-1").get(DEPLOYMENT_ON_RUNTIME).get("status", {}).get("readyReplicas", 0)
        self.until(lambda: dev.have("configuration") and served() == 1, "the bootstrapper runs")
        path = collection("configmaps", "kcp-system") + "/rt-bootstrapper-config"
        good = self.kcp.get(path)["data"]["rt-bootstrapper-config.json"]
        start = len(dev.rollout)
        unknown = json.dumps({**json.loads(good), "availableFeatures": ["rt-cfg.kyma-project.io/fly"]})
        self.kcp.patch(path, {"data": {"rt-bootstrapper-config.json": unknown}})
        self.until(lambda: dev.have("configuration", start), "the runtime has it")
        self.assertEqual(served(), 1)
        manifests = collection("configmaps", "kcp-system") + "/runtime-bootstrapper-manifests"
        text = self.kcp.get(manifests)["data"]["manifests.yaml"].replace("1.0.0", "2.0.0")
        self.kcp.patch(manifests, {"data": {"manifests.yaml": text}})
        self.until(lambda: served() == 0, "the new one ends at its start")
        start = len(dev.rollout)
        self.kcp.patch(path, {"data": {"rt-bootstrapper-config.json": good}})
        self.until(lambda: dev.have("configuration", start) and served() == 1, "it runs again")
        self.assertEqual(dev.terminate(20), 0, dev.tail())

    def test_configuration_is_signalled_and_goes_the_other_way_at_any_time(self):
        dev = self.start_dev("--bootstrapper-mode", "signal", "--kim-duration", "200ms")
        self.until_all_have(set(RUNTIMES), "configuration", "pull Secret", "trust bundle")
        self.until(lambda: dev.metric("rw_config_sync_revision") >= 1, "changes count from here")
        for secret in self.rotate(set(RUNTIMES), "second").values():
            self.assertEqual(self.managers(secret), {"kim-bootstrapper"})
        path = collection("runtimes", "kcp-system", "infrastructuremanager.kyma-project.io", "v1") + "/runtime-1"
        self.kcp.patch(path, {"metadata": {"annotations": {"operator.kyma-project.io/bootstrapper-mode": "direct"}}})
        self.until(lambda: self.managers(dev.skr("runtime-1").get(ON_RUNTIME)) == {"runtime-watcher-bootstrapper"},
                   "runtime-1 is written to directly")
        changed = self.rotate(set(RUNTIMES), "third")
        self.assertEqual(self.managers(changed["runtime-1"]), {"runtime-watcher-bootstrapper"})
        self.assertEqual(self.managers(changed["runtime-2"]), {"kim-bootstrapper"})
        self.assertEqual(dev.terminate(20), 0, dev.tail())


if __name__ == "__main__":
    harness.main()
