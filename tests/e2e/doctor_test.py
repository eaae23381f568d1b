"""`runtime-watcher doctor` finds each defect of an installation, and says what to do about it; of an installation in order it
finds none."""

import base64
import datetime
import json
import re
import time

import harness
from api import collection, kymas
from dev import CONFIGURATION, DEPLOYMENT, SECRET, SERVICE, Dev
from harness import BINARY, ROOT, Process, free_port, runtime_watcher, wait_until

RUNTIMES = 8
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/runtimerollouts.operator.kyma-project.io"
GATEWAY = collection("gateways", "kcp-system", "networking.istio.io", "v1beta1") + "/klm-watcher"
GATEWAY_SECRET = collection("secrets", "istio-system") + "/klm-istio-gateway"
LEASE = collection("leases", "kcp-system", "coordination.k8s.io", "v1") + "/runtime-watcher-manager"
GUARD = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/guard"
HEARTBEATS = collection("virtualservices", "kcp-system", "networking.istio.io", "v1beta1") + "/runtime-watcher-heartbeats"
ROLLOUT = collection("runtimerollouts", "kcp-system", "operator.kyma-project.io", "v1alpha1") + "/watcher"
KLM_LEASE = collection("leases", "kcp-system", "coordination.k8s.io", "v1") + "/893110f7.kyma-project.io"
SKR_SERVICE = collection("services", "kyma-system") + "/skr-webhook"
INVALID = collection("watchers", "kcp-system", "operator.kyma-project.io", "v1beta2") + "/invalid"

# What a finding says, and its remedy.
DEFECTS = [
    ("leader", "has no holder", "Deployment"),
    ("kinds", r"KindNotServed: RuntimeRollout .* is not served", "deploy/crds"),
    ("certificates", r"CaBundleInvalid: .*klm-istio-gateway.*not found", "leader"),
    ("gateway", "GatewayInvalid: .*has 0 servers", "deploy/pki/gateway.yaml"),
    ("watchers", r"Watcher kcp-system/invalid: Invalid: spec.manager is \"runtime-watcher\"", "correct the Watcher"),
    ("watchers", r"no VirtualService routes to kcp-system/kyma", "manager's log"),
    ("watchers", r"no VirtualService routes to kcp-system/runtime-watcher-heartbeats", "manager's log"),
    ("runtime", "runtime-1: AccessMissing: no Secret with the label", "writes that Secret"),
    ("runtime", r"runtime-2: cannot get validatingwebhookconfigurations", "status --name runtime-2"),
    ("runtime", "runtime-3: the watcher's certificate is unusable", "Certificate istio-system/runtime-3-webhook-tls"),
    ("runtime", r"runtime-4: cannot get deployments", "status --name runtime-4"),
    ("runtime", "runtime-5: CaBundleWrong: ", "see whether caBundle"),
    ("runtime", "runtime-6: NoEndpoints: ", "why the watcher's pod is not ready"),
    ("runtime", "runtime-7: AccessRejected: .*Unauthorized", "API server and the kubeconfig"),
    ("runtimes", f"[01] of {RUNTIMES} are in order", ""),
    ("manager", "no response from", "manager's address"),
]


class Doctor(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.dev = self.start(Dev(self.folder / "dev", RUNTIMES, "--no-manager", "--backend", f"127.0.0.1:{self.port}")).wait_up()
        self.kcp = self.dev.kcp()

    def start_manager(self, *options):
        self.manager = self.start(Process("manager", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", self.dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{self.port}",
            "--metrics-address", "127.0.0.1:0", "--ca-propagation", "1s", *(options or ("--probe-interval", "2s"))]))
        self.admin = self.manager.wait_listening("admin")

    def examine(self, *options):
        """The exit code, and the findings."""
        done = runtime_watcher("doctor", "--allow-local-runtimes", "--kubeconfig", self.dev.folder / "kcp.yaml", "--manager", f"127.0.0.1:{self.admin}",
                               "-o", "json", *options, timeout=60)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return done.returncode, json.loads(done.stdout)["checks"]

    def until_well(self, but_for=()):
        seen = []
        def well():
            seen[:] = self.examine()
            return seen[0] == 0 and all(check["state"] == "proven" or check["check"] in but_for for check in seen[1])
        wait_until(well, 60, lambda: f"not proven: {[c for c in seen[1] if c['state'] != 'proven']}\n{self.manager.tail()}", every=0.5)
        return seen[1]

    def break_all(self):
        self.assertEqual(self.manager.terminate(), 0)
        self.definition = self.kcp.get(DEFINITION)
        self.servers = self.kcp.get(GATEWAY)["spec"]["servers"]
        for path in (DEFINITION, GATEWAY_SECRET, SERVICE, HEARTBEATS, collection("secrets", "kcp-system") + "/kubeconfig-runtime-1"):
            self.kcp.delete(path)
        self.kcp.patch(GATEWAY, {"spec": {"servers": []}})
        invalid = (ROOT / "deploy" / "samples" / "watcher.yaml").read_text()
        invalid = re.sub(r"^  name: .*", "  name: invalid", invalid, count=1, flags=re.MULTILINE)
        self.kcp.apply(INVALID, invalid)
        self.kcp.patch(INVALID, {"spec": {"manager": "runtime-watcher"}})
        self.dev.skr("runtime-2").delete(CONFIGURATION)
        self.dev.skr("runtime-3").patch(SECRET, {"data": {"tls.crt": base64.b64encode(b"no certificate").decode()}})
        self.dev.skr("runtime-4").delete(DEPLOYMENT)
        runtime = self.dev.skr("runtime-5")
        webhooks = runtime.get(CONFIGURATION)["webhooks"]
        foreign = harness.Pki(self.folder / "foreign").ca
        for each in webhooks:
            each["clientConfig"]["caBundle"] = base64.b64encode(foreign.read_bytes()).decode()
        runtime.patch(CONFIGURATION, {"webhooks": webhooks})
        self.dev.skr("runtime-6").patch(SKR_SERVICE, {"spec": {"selector": {"app": "nothing-has-this"}}})
        self.revoke("runtime-7")

    def revoke(self, runtime):
        path = collection("secrets", "kcp-system") + f"/kubeconfig-{runtime}"
        text = base64.b64decode(self.kcp.get(path)["data"]["config"]).decode()
        revoked = re.sub("token: .*", "token: revoked", text)
        self.kcp.patch(path, {"data": {"config": base64.b64encode(revoked.encode()).decode()}})

    def repair_what_no_manager_repairs(self):
        for name in ("metadata", "status"):
            self.definition[name] = {"name": self.definition["metadata"]["name"]} if name == "metadata" else None
        self.kcp.request("POST", DEFINITION.rsplit("/", 1)[0], {**self.definition, "status": {}})
        self.kcp.patch(GATEWAY, {"spec": {"servers": self.servers}})
        self.kcp.delete(INVALID)
        for runtime in ("runtime-1", "runtime-7"):
            self.kcp.apply(collection("secrets", "kcp-system") + f"/kubeconfig-{runtime}", self.dev.manifest(f"access-{runtime}"))

    def test_doctor_finds_defects_with_their_remedies(self):
        self.start_manager()
        self.until_well()
        self.break_all()
        # The simulated node takes the pods off their Service a moment later.
        wait_until(lambda: "NoEndpoints" in json.dumps(self.examine()), 10, "the Service without endpoints is found", every=0.1)
        code, checks = self.examine()
        self.assertEqual(code, 3)
        # The last runtime is in order, but its next heartbeat has no route, or comes before the route goes and finds no manager.
        heartbeat = re.compile(f"runtime-{RUNTIMES}: (RouteMissing|ListenerUnavailable)")
        found = [check for check in checks if check["state"] == "failed" and not heartbeat.match(check["message"])]
        for check, message, remedy in DEFECTS:
            matching = [f for f in found if f["check"] == check and re.search(message, f["message"])]
            self.assertEqual(len(matching), 1, f"{check}: {message} in {found}")
            self.assertIn(remedy, matching[0].get("remedy", ""))
        self.assertEqual(len(found), len(DEFECTS), found)
        self.repair_what_no_manager_repairs()
        self.start_manager()
        self.until_well()

    def test_doctor_proves_with_the_settings_of_the_manager(self):
        """With settings of all kinds no runtime in order is FAILED, with the manager dead too; without them less is proven."""
        self.start_manager("--probe-interval", "0", "--heartbeat-timeout", "0", "--only", "kyma-project.io/runtime-id!=runtime-2")
        seen = []
        def well():
            seen[:] = self.examine()
            return seen[0] == 0 and all(check["state"] == "proven" for check in seen[1] if check["check"] == "rollouts")
        wait_until(well, 60, lambda: f"nothing fails: {[c for c in seen[1] if c['state'] == 'failed']}", every=0.5)
        def states(checks):
            return {check["check"]: check["state"] for check in checks}
        self.assertEqual(states(seen[1]), {**dict.fromkeys(
            ("access", "settings", "kinds", "rights", "leader", "certificates", "gateway", "watchers", "rollouts", "manager"), "proven"),
            "runtimes": "not_proven", "heartbeats": "not_proven"})
        text = next(check["message"] for check in seen[1] if check["check"] == "runtimes")
        self.assertRegex(text, f"{RUNTIMES - 1} of {RUNTIMES - 1} are in order.*without probes")
        self.assertEqual(self.manager.terminate(), 0)
        code, checks = self.examine()
        self.assertEqual({check["check"] for check in checks if check["state"] == "failed"}, {"leader", "manager"}, checks)
        # Where nobody has written them the defaults are assumed, and what depends on them is not proven.
        self.kcp.delete(LEASE)
        code, checks = self.examine()
        self.assertEqual({check["check"] for check in checks if check["state"] == "failed"}, {"leader", "manager"}, checks)
        found = states(checks)
        for check in ("settings", "rights", "certificates", "gateway", "watchers", "runtimes"):
            self.assertEqual(found[check], "not_proven", check)
        self.assertRegex(next(c["message"] for c in checks if c["check"] == "settings"), "defaults are assumed")

    def test_runtime_that_rejects_all_writes_is_not_in_order(self):
        self.start_manager()
        self.until_well()
        name = self.reject_writes("runtime-3")
        code, checks = self.examine("--runtime", "runtime-3,runtime-4")
        self.assertEqual(code, 3)
        found = [check for check in checks if check["state"] == "failed" and check["check"] == "runtime"]
        self.assertEqual(len(found), 1, checks)
        self.assertRegex(found[0]["message"], "^runtime-3: (WriteRejected|RequestFailed): .*" + name)
        # One of two is half of them.
        for part, expected in (("50%", 0), ("49%", 3)):
            self.assertEqual(self.examine("--runtime", "runtime-3,runtime-4", "--tolerate", part)[0], expected, part)
        # The leader has nothing to write there, and does not know; doctor says who differs.
        code, checks = self.examine("--tolerate", "20%")
        self.assertEqual(code, 0, checks)
        [found] = [check for check in checks if check["check"] == "verdict"]
        self.assertEqual(found["state"], "not_proven", found)
        self.assertRegex(found["message"], "^the leader says well, these checks say degraded; ill by these checks alone: runtime-3$")

    def test_faults_of_runtimes_have_one_reason_everywhere(self):
        """What `status` shows of a runtime `doctor` names, once, with the same REASON, and no runtime in order beside it."""
        self.start_manager("--take-over", "--probe-interval", "2s")
        self.until_well()
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self.kcp.apply(KLM_LEASE, json.dumps({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": KLM_LEASE.rsplit("/", 1)[1]},
            "spec": {"holderIdentity": "klm-1", "leaseDurationSeconds": 3600, "renewTime": now}}))
        self.kcp.delete(collection("secrets", "kcp-system") + "/kubeconfig-runtime-1")
        self.revoke("runtime-2")
        self.reject_writes("runtime-3")
        self.dev.skr("runtime-3").delete(SKR_SERVICE)
        self.kcp.patch(kymas("kcp-system") + "/runtime-4", {"metadata": {"annotations": {"skr-domain": None}}})
        taken = self.kcp.get(kymas("kcp-system") + "/runtime-6")["metadata"]["labels"]["kyma-project.io/runtime-id"]
        self.kcp.patch(kymas("kcp-system") + "/runtime-5", {"metadata": {"labels": {"kyma-project.io/runtime-id": taken}}})
        expected = {"runtime-1": {"AccessMissing"}, "runtime-2": {"AccessRejected"}, "runtime-3": {"WriteRejected", "RequestFailed"},
                    "runtime-4": {"CertificateInvalid"}, "runtime-5": {"DuplicateRuntime"}, "runtime-7": {"Contested"}}
        rows = {}
        def shown():
            self.write_as_klm("runtime-7")
            done = runtime_watcher("status", "--address", f"127.0.0.1:{self.admin}", "-o", "json")
            if done.returncode in (0, 3):
                rows.clear()
                rows.update({row["kyma"]: row["reason"] for row in json.loads(done.stdout)["runtimes"] if row.get("reason")})
            return rows.keys() == expected.keys() and all(rows[kyma] in expected[kyma] for kyma in rows)
        wait_until(shown, 60, lambda: f"status shows each: {rows}\n{self.manager.tail()}", every=0.5)
        code, checks = self.examine()
        self.assertEqual(code, 3)
        found = [check for check in checks if check["state"] == "failed" and check["check"] != "runtimes"]
        self.assertEqual(sorted((check["message"].split(":")[0], check["reason"]) for check in found), sorted(rows.items()), found)

    def test_manager_that_does_not_respond_is_named_once(self):
        """Whether or not heartbeats are expected."""
        for options, others in ((("--heartbeat-timeout", "0"), "the manager expects none"), ((), "the manager does not say")):
            self.start_manager("--probe-interval", "2s", *options)
            self.until_well(but_for={"heartbeats", "runtimes"} if options else set())
            self.assertEqual(self.manager.terminate(), 0)
            checks = self.examine()[1]
            found = [check for check in checks if check["state"] == "failed" and "no response" in check["message"]]
            self.assertEqual([check["check"] for check in found], ["manager"], checks)
            heartbeats = [check for check in checks if check["check"] == "heartbeats"]
            self.assertEqual([check["state"] for check in heartbeats], ["not_proven"])
            self.assertIn(others, heartbeats[0]["message"])

    def reject_writes(self, runtime):
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["CREATE", "UPDATE"]}
        name = "everything.policy.example.com"
        self.dev.skr(runtime).apply(GUARD, json.dumps({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "guard"},
            "webhooks": [{"name": name, "rules": [rule], "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 1,
                          "admissionReviewVersions": ["v1"], "clientConfig": {"url": f"https://127.0.0.1:{free_port()}/"}}]}))
        return name

    def write_as_klm(self, runtime):
        ports = [{"name": f"klm-{int(time.time()) % 8}", "port": 443, "protocol": "TCP"}]
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "skr-webhook"}, "spec": {"ports": ports}}
        self.dev.skr(runtime).request("PATCH", f"{SKR_SERVICE}?fieldManager=lifecycle-manager&force=true", json.dumps(service),
                                      "application/apply-patch+yaml")

    def test_rollouts_that_do_not_go_on_are_found(self):
        self.start_manager()
        self.until_well()
        self.assertEqual(self.manager.terminate(), 0)
        definition = self.kcp.get(DEFINITION)
        status = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
        del status["properties"]["conditions"]
        condition = {"type": "Stalled", "status": "True", "reason": "CanaryFailed", "message": "m",
                     "lastTransitionTime": "2026-01-01T00:00:00Z"}
        self.kcp.patch(ROLLOUT + "/status", {"status": {"conditions": [condition], "message": "runtime-1: crashes"}})
        self.kcp.patch(DEFINITION, {"spec": {"versions": definition["spec"]["versions"]}})
        self.kcp.delete("/api/v1/namespaces/runtime-watcher-system")
        found = [check for check in self.examine()[1] if check["state"] == "failed"]
        for check, message, remedy in (
                ("rollouts", "older than this version, and drops status.conditions", "kubectl apply -f deploy/crds"),
                ("rollouts", "Namespace runtime-watcher-system does not exist", "kubectl create namespace"),
                ("rollouts", "watcher is stalled: CanaryFailed; runtime-1: crashes", "rollout resume watcher")):
            matching = [f for f in found if f["check"] == check and message in f["message"]]
            self.assertEqual(len(matching), 1, f"{message} in {found}")
            self.assertIn(remedy, matching[0]["remedy"])

    def test_text_names_each_check(self):
        self.start_manager()
        self.until_well()
        kubeconfig = self.dev.folder / "kcp.yaml"
        done = runtime_watcher("doctor", "--kubeconfig", kubeconfig, "--runtime", "runtime-1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for line in (r"proven +access +KCP responds", r"proven +settings +Lease kcp-system/runtime-watcher-manager has the manager's",
                     r"proven +rights +ServiceAccount kcp-system:runtime-watcher-manager has the \d\d rights",
                     r"proven +runtimes +1 of 1 are in order", r"not proven +manager +.*/proxy/runtimes", r"not proven +heartbeats",
                     r"\d+ checks: \d+ proven, 0 failed, 2 not proven"):
            self.assertRegex(done.stdout, line)
        done = runtime_watcher("doctor", "--kubeconfig", kubeconfig, "--runtime", "nobody")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stdout, r"FAILED +runtime +nobody: AccessMissing: no Secret")
        closed = re.sub(r"server: https://[^/\s]+", f"server: https://127.0.0.1:{free_port()}", kubeconfig.read_text())
        (self.folder / "closed.yaml").write_text(closed)
        done = runtime_watcher("doctor", "--kubeconfig", self.folder / "closed.yaml")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stdout, r"FAILED +access .*\n +fix: check --kubeconfig")
        self.assertEqual(runtime_watcher("doctor", "--kubeconfig", self.folder / "missing.yaml").returncode, 2)


if __name__ == "__main__":
    harness.main()
