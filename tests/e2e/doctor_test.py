"""`runtime-watcher doctor` finds each defect of an installation, and says what to do about it; of an installation in order it
finds none."""

import base64
import datetime
import email.utils
import http.client
import http.server
import json
import re
import ssl
import threading
import time
import urllib.parse

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
    ("runtime", r"runtime-2: cannot get validatingwebhookconfigurations", "--name runtime-2 -o wide"),
    ("runtime", "runtime-3: the watcher's certificate is unusable", "Certificate istio-system/runtime-3-webhook-tls"),
    ("runtime", r"runtime-4: cannot get deployments", "--name runtime-4 -o wide"),
    ("runtime", "runtime-5: CaBundleWrong: ", "see whether caBundle"),
    ("runtime", "runtime-6: NoEndpoints: ", "why the watcher's pod is not ready"),
    ("runtime", "runtime-7: AccessRejected: .*Unauthorized", "API server and the kubeconfig"),
    ("runtimes", f"(0 of {RUNTIMES} are|1 of {RUNTIMES} is) in order", ""),
    ("manager", "no response from", "manager's address"),
]


class ClockFront(http.server.ThreadingHTTPServer):
    """An API server over plain HTTP, that of a kubeconfig, whose clock is ahead by so many seconds."""

    def __init__(self, kubeconfig, ahead):
        field = lambda name: re.search(rf"{name}: *(\S+)", kubeconfig)[1]
        authority = base64.b64decode(field("certificate-authority-data")).decode()
        context = ssl.create_default_context(cadata=authority)
        server = urllib.parse.urlsplit(field("server"))
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def forward(handler):
                body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
                connection = http.client.HTTPSConnection(server.hostname, server.port, timeout=30, context=context)
                connection.request(handler.command, handler.path, body, dict(handler.headers))
                response = connection.getresponse()
                text = response.read()
                connection.close()
                handler.send_response_only(response.status)
                handler.send_header("Date", email.utils.formatdate(time.time() + ahead, usegmt=True))
                handler.send_header("Content-Type", response.headers["Content-Type"])
                handler.send_header("Content-Length", str(len(text)))
                handler.end_headers()
                handler.wfile.write(text)
            do_GET = do_POST = do_PATCH = forward
            def log_message(handler, *_):
                pass
        super().__init__(("127.0.0.1", 0), Handler)


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

    def remedy_of(self, found):
        """Without the kubeconfig, which its commands have as it was given."""
        return found.get("fix", "").replace(f" --kubeconfig {self.dev.folder / 'kcp.yaml'}", "")

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
            self.assertIn(remedy, self.remedy_of(matching[0]))
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
        # Of two runtimes nobody can tell an outage, nor are they counted twice.
        text = runtime_watcher("doctor", "--allow-local-runtimes", "--kubeconfig", self.dev.folder / "kcp.yaml", "--manager",
                               f"127.0.0.1:{self.admin}", "runtime-3", timeout=60).stdout
        self.assertRegex(text, r" \d+ proven, 1 failed, ")
        self.assertIn("\ndegraded: 1 of 1 named runtime is ill: runtime-3\n", text)
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
        # The heartbeats of others prove nothing about the runtime that is named.
        checks = self.examine("--runtime", f"runtime-{RUNTIMES}")[1]
        self.assertEqual([(check["state"], check["message"]) for check in checks if check["check"] == "heartbeats"],
                         [("proven", "no named runtime is silent or degraded")], checks)

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
            self.assertIn(remedy, self.remedy_of(matching[0]))
        # A person has paused it: nothing has failed.
        going = {**condition, "status": "False", "reason": "Paused"}
        self.kcp.patch(ROLLOUT + "/status", {"status": {"conditions": [going], "phase": "Paused", "reason": "ByHand", "message": ""}})
        found = [check for check in self.examine()[1] if "is paused" in check["message"]]
        self.assertEqual([(check["state"], check["check"]) for check in found], [("failed", "rollouts")], found)
        self.assertIn("watcher is paused: ByHand", found[0]["message"])
        self.assertIn("rollout resume watcher", self.remedy_of(found[0]))

    def test_watchers_that_are_deleted_or_absent_are_not_proven(self):
        self.start_manager()
        self.until_well()
        self.assertEqual(self.manager.terminate(), 0)
        def found():
            return [(check["state"], check["message"]) for check in self.examine()[1] if check["check"] == "watchers"]
        self.assertEqual(found(), [("proven", "1 Watcher is valid, and is routed")])
        watcher = INVALID.replace("/invalid", "/kyma")
        self.kcp.delete(watcher)
        self.assertEqual(found(), [("not_proven", "there is no Watcher, so nothing is watched; 1 is being deleted")])
        self.kcp.patch(watcher, {"metadata": {"finalizers": None}})
        self.assertEqual(found(), [("not_proven", "there is no Watcher, so nothing is watched")])

    def test_leader_in_shadow_judges_no_heartbeats_and_leaves_out_what_doctor_does(self):
        self.start_manager()
        self.until_well()
        self.assertEqual(self.manager.terminate(), 0)
        self.start_manager("--shadow", "--probe-interval", "2s")
        self.kcp.delete(collection("kymas", "kcp-system", "operator.kyma-project.io", "v1beta2") + "/runtime-2")
        counts = ("level", "runtimes", "well", "leftOut")
        found = []
        def agreed():
            status = json.loads(runtime_watcher("status", "-o", "json", "--address", f"127.0.0.1:{self.admin}").stdout)["verdict"]
            done = runtime_watcher("doctor", "--allow-local-runtimes", "--kubeconfig", self.dev.folder / "kcp.yaml", "--manager",
                                   f"127.0.0.1:{self.admin}", "-o", "json", timeout=60)
            report = json.loads(done.stdout)
            found[:] = [done.returncode, report["checks"], *([of[name] for name in counts] for of in (status, report["verdict"]))]
            return found[0] == 0 and found[2] == found[3] == ["well", RUNTIMES - 1, RUNTIMES - 1, 1]
        wait_until(agreed, 60, lambda: f"{found}\n{self.manager.tail()}", every=0.5)
        [heartbeats] = [check for check in found[1] if check["check"] == "heartbeats"]
        self.assertEqual((heartbeats["state"], heartbeats["message"]),
                         ("not_proven", "the leader stands back, and judges no heartbeats: nothing is written, as --shadow says"))
        # It does not repair: what `doctor` finds is no reason to repeat it.
        self.dev.skr("runtime-3").patch(SECRET, {"data": {"tls.crt": base64.b64encode(b"no certificate").decode()}})
        [verdict] = [check for check in self.examine()[1] if check["check"] == "verdict"]
        self.assertIn("ill by these checks alone: runtime-3; the leader stands back", verdict["message"])
        self.assertNotIn("fix", verdict)

    def test_shadow_on_a_new_landscape_lacks_what_it_never_writes(self):
        """That is no failure: each runtime is told to lack what would be written."""
        self.start_manager("--shadow", "--probe-interval", "2s")
        status = {}
        def judged():
            status.update(json.loads(runtime_watcher("status", "--address", f"127.0.0.1:{self.admin}", "-o", "json").stdout))
            return [row.get("reason") for row in status.get("runtimes", [])] == ["WouldWrite"] * RUNTIMES
        wait_until(judged, 60, lambda: f"{status}\n{self.manager.tail()}", every=0.5)
        self.assertEqual((status["verdict"]["ill"], status["verdict"]["underWay"]), (0, RUNTIMES))
        checks = self.examine()[1]
        self.assertEqual([check for check in checks if check["state"] == "failed"], [])
        absent = [check for check in checks if check["state"] == "not_proven" and "without it when it is to write" in check.get("fix", "")]
        self.assertEqual({check["check"] for check in absent}, {"certificates", "watchers", "runtime"}, checks)

    def test_text_names_each_check(self):
        self.start_manager()
        self.until_well()
        kubeconfig = self.dev.folder / "kcp.yaml"
        done = runtime_watcher("doctor", "--kubeconfig", kubeconfig, "--runtime", "runtime-1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for line in (r"proven +access +KCP responds", r"proven +settings +Lease kcp-system/runtime-watcher-manager has the manager's",
                     r"proven +rights +ServiceAccount kcp-system:runtime-watcher-manager has the \d\d rights",
                     r"proven +runtimes +1 of 1 is in order", r"not proven +manager +.*/proxy/runtimes", r"not proven +heartbeats",
                     r"\d+ checks: \d+ proven, 0 failed, 2 not proven", r"\nwell: 1 of 1 named runtime is well"):
            self.assertRegex(done.stdout, line)
        self.assertEqual(runtime_watcher("doctor", "--kubeconfig", self.folder / "missing.yaml").returncode, 2)
        # There is no way to the leader, which is no pod: what it would add to these checks is not known.
        def asked(command):
            verdict = json.loads(runtime_watcher(command, "--kubeconfig", kubeconfig, "-o", "json", timeout=60).stdout)["verdict"]
            return verdict["level"], re.sub(r"limit=\d+", "", verdict["message"])
        self.assertRegex(asked("status")[1], "^unknown: the leader .* is no pod")
        self.assertEqual(asked("doctor"), asked("status"))

    def test_clocks_that_differ_are_named(self):
        self.start_manager()
        self.until_well()
        kubeconfig = (self.dev.folder / "kcp.yaml").read_text()
        for ahead, text in ((-95, r"9\d s ahead of KCP's"), (95, r"9\d s behind KCP's"), (12, r"1\d s behind KCP's")):
            front = ClockFront(kubeconfig, ahead)
            self.addCleanup(front.server_close)
            self.addCleanup(front.shutdown)
            threading.Thread(target=front.serve_forever, daemon=True).start()
            file = self.folder / "front.yaml"
            file.write_text(re.sub(r"https://[^/\s]+", f"http://127.0.0.1:{front.server_port}", kubeconfig))
            done = runtime_watcher("doctor", "--kubeconfig", file, "--manager", f"127.0.0.1:{self.admin}", timeout=60)
            self.assertRegex(done.stdout, rf"not proven +clock +this machine's clock is {text}")
            self.assertRegex(done.stdout, rf"FAILED +clock +the clock of \S+, which leads, is {text}")
            self.assertRegex(done.stdout, r"proven +leader .* leads")
        self.assertNotIn("clock", {check["check"] for check in self.examine()[1]})

    def test_placeholders_and_expired_certificates_are_named(self):
        self.start_manager()
        self.until_well()
        self.assertEqual(self.manager.terminate(), 0)
        servers = self.kcp.get(GATEWAY)["spec"]["servers"]
        self.kcp.patch(GATEWAY, {"spec": {"servers": [{**servers[0], "hosts": ["listener.kcp.example.com"]}]}})
        expired, _ = harness.expired_certificate("runtime-3")
        self.dev.skr("runtime-3").patch(SECRET, {"data": {"tls.crt": base64.b64encode(expired).decode()}})
        unchanged, _ = harness.Pki(self.folder / "root").issue("server", "own", san="dns:listener.kcp.example.com")
        self.kcp.patch(GATEWAY_SECRET, {"data": {"tls.crt": base64.b64encode(unchanged.read_bytes()).decode()}})
        found = [check for check in self.examine("--runtime", "runtime-3")[1] if check["state"] == "failed"]
        for check, message in (("gateway", "Gateway klm-watcher has the placeholder listener.kcp.example.com"),
                               ("certificates", "klm-istio-gateway: its certificate is for listener.kcp.example.com, a placeholder"),
                               ("runtime", "runtime-3: CertificateExpired: the watcher's certificate ended at 20")):
            self.assertEqual([each["check"] for each in found if message in each["message"]], [check], found)

    def test_unknown_kyma_is_said_with_those_whose_names_are_near(self):
        self.start_manager()
        self.until_well()
        doctor = ("doctor", "--kubeconfig", self.dev.folder / "kcp.yaml", "--runtime")
        status = ("status", "--address", f"127.0.0.1:{self.admin}")
        for command in (doctor, status):
            for name, near in (("nope", ": there are runtime-1, "), ("runtmie-3", "; did you mean runtime-3?\n")):
                done = runtime_watcher(*command, name)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn(f"there is no Kyma {name}{near}", done.stderr)
                self.assertNotIn("infrastructure-manager", done.stdout)
        # A filter that leaves it out does not make it unknown.
        done = runtime_watcher(*status, "runtime-3", "--state", "failed", "-o", "name")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", "no runtime matches\n"))
        done = runtime_watcher(*status, "runtime-3", "--state", "failed")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_responses_without_access_are_told_apart(self):
        self.start_manager()
        self.until_well()
        kubeconfig = (self.dev.folder / "kcp.yaml").read_text()
        for name, replaced, by, message, remedy in (
                ("revoked", r"token: .*", "token: revoked", "KCP does not accept the kubeconfig's credentials: .*401", "renew these credentials"),
                ("elsewhere", r"/clusters/kcp", "/clusters/nothing", "the kubeconfig's server does not serve .*404", "check the server's address"),
                ("closed", r"server: https://[^/\s]+", f"server: https://127.0.0.1:{free_port()}", "KCP does not respond: ", "check --kubeconfig")):
            file = self.folder / f"{name}.yaml"
            file.write_text(re.sub(replaced, by, kubeconfig))
            done = runtime_watcher("doctor", "--kubeconfig", file, timeout=60)
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
            self.assertRegex(done.stdout, rf"FAILED +access +{message}.*\n +fix: {remedy}")
            self.assertRegex(done.stdout, rf"\nunknown: {message}")
            done = runtime_watcher("status", "--kubeconfig", file, timeout=60)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertRegex(done.stdout, rf"^unknown: {message}.*\n  fix: {remedy}")
            done = runtime_watcher("rollout", "status", "--kubeconfig", file, timeout=60)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertRegex(done.stderr, rf": {message}.*\n  fix: {remedy}")


if __name__ == "__main__":
    harness.main()
