"""The control plane's manager, from an empty KCP to a runtime that is installed, heard of, changed and removed.

The same story on embedded API servers and, where KUBEBUILDER_ASSETS names them, on two real ones with the true schemas
of RW_TEST_CRDS, where the manager has only the rights that deploy/manager gives it. The certificates' issuer is played by
this script with openssl, the gateway by nginx, and the pod of the webhook by a process that gets exactly what the manager
has put on the runtime.
"""

import base64
import http.client
import json
import os
import re
import ssl
import urllib.error
import urllib.request

import harness
import landscape
from api import Api, collection
from bootstrapper_landscape import STATE
from harness import ROOT, Gateway, Webhook, runtime_watcher, until_established, wait_until
from landscape import MANAGER, PATIENCE, RUNTIME, RUNTIME_SPEC, Issuer, decoded, encoded, webhooks_of_watchers


EVENTS = "runtime-watcher-manager-events"  # the Service, and its one slice
HISTORY = "runtime-watcher-history"  # the Secret with what the page remembers


class Story:
    """The tests."""

    OPTIONS = ("--rollout-canary-soak=1s", "--unused-content-after=0s")

    def run_webhook(self):
        """The pod, and the gateway in front of the manager, with what lies in the clusters."""
        secret = self.skr.get("secret", "skr-webhook-tls", "kyma-system")
        gateway = self.kcp.get("secret", "klm-istio-gateway", "istio-system")
        files = {}
        for owner, from_ in (("skr", secret), ("gateway", gateway)):
            for key in ("tls.crt", "tls.key", "ca.crt") + (("managers.json",) if owner == "skr" else ()):
                files[owner, key] = self.folder / f"{owner}-{key}"
                files[owner, key].write_bytes(decoded(from_, key))
        self.start(Gateway(self.folder / "nginx", files["gateway", "tls.crt"], files["gateway", "tls.key"],
                           files["gateway", "ca.crt"], self.manager.listener, port=self.port))
        containers = self.skr.get("deployment", "skr-webhook", "kyma-system")["spec"]["template"]["spec"]["containers"]
        environment = {e["name"]: e.get("value") for e in containers[0]["env"]}
        self.assertEqual(environment["KCP_ADDR"], f"localhost:{self.port}")
        return self.start(Webhook(files["skr", "tls.crt"], files["skr", "tls.key"], files["skr", "ca.crt"],
                                  environment["KCP_ADDR"],
                                  env={"MANAGERS_FILE": str(files["skr", "managers.json"]),
                                       "KUBECONFIG": str(self.watcher_kubeconfig()), "HEARTBEAT_INTERVAL": "20s"})).ready()

    def set_channel(self, channel):
        """Of the Kyma on the runtime that the Watcher names. This script calls no webhook for it."""
        self.skr.apply({"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Kyma", "spec": {"channel": channel},
                        "metadata": {"name": "default", "namespace": "kyma-system",
                                     "labels": {"operator.kyma-project.io/watched-by": "kyma"}}})

    def expect_event(self, webhook, cause):
        """The Kyma is requeued, at once or, soon after the last time, held a little."""
        events = lambda: sum(self.metric("rw_kyma_router_events_total", outcome=outcome) for outcome in ("routed", "held"))
        before = events()
        cause()
        names = ("observation_live_watches", "observation_objects", "observation_undelivered", "observation_events_total",
                 "resyncs_total", "dispatch_events_total")
        seen = lambda: {name: webhook.metric(f"rw_{name}") for name in names}
        wait_until(lambda: events() > before, PATIENCE, lambda: f"the event has come; {seen()}\n{webhook.tail()}\n{self.manager.tail()}")

    def review(self, webhook, configuration, manager=None):
        """As the runtime's API server would: posts a review, trusting the webhook's caBundle."""
        client = configuration["webhooks"][0]["clientConfig"]
        context = ssl.create_default_context(cadata=base64.b64decode(client["caBundle"]).decode())
        self.assertEqual(client["service"]["name"], "skr-webhook")
        context.check_hostname = False  # the Service's name does not lead here; the chain is still checked
        body = (ROOT / "deploy" / "samples" / "02-kyma-create.json").read_bytes()
        path = f"/validate/{manager}" if manager else client["service"]["path"]
        request = urllib.request.Request(f"https://127.0.0.1:{webhook.port}{path}", body,
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            self.assertTrue(json.load(answer)["response"]["allowed"])

    def add_orphan(self):
        """A Kyma that is to go without its finalizer's work. Its runtime does not respond."""
        kubeconfig = {"current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
                      "contexts": [{"name": "c", "context": {"cluster": "c"}}]}
        self.kcp.apply({"apiVersion": "v1", "kind": "Secret", "data": {"config": encoded(json.dumps(kubeconfig))},
                        "metadata": {"name": "kubeconfig-orphan", "namespace": "kcp-system",
                                     "labels": {"operator.kyma-project.io/kyma-name": "orphan"}}})
        self.kcp.apply({"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Kyma",
                        "metadata": {"name": "orphan", "namespace": "kcp-system",
                                     "labels": {"kyma-project.io/runtime-id": "r-orphan",
                                                "operator.kyma-project.io/skip-reconciliation": "true"},
                                     "annotations": {"skr-domain": "orphan.example.com"}},
                        "spec": {"channel": "regular"}})
        # Nothing is done for it as long as it has the label.
        self.assertIsNone(self.kcp.get("certificates.cert-manager.io", "orphan-webhook-tls", "istio-system"))
        self.assertNotIn("finalizers", self.kcp.get("kyma", "orphan", "kcp-system")["metadata"])
        self.kcp.kubectl("label", "kyma", "orphan", "-n", "kcp-system", "operator.kyma-project.io/skip-reconciliation-")
        self.kcp.until("certificates.cert-manager.io", "orphan-webhook-tls", "istio-system", bool, "is there")

    def check_status(self):
        """A runtime whose pods nobody starts, and one that has no domain."""
        self.kcp.apply({"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Kyma",
                        "metadata": {"name": "kyma-ill", "namespace": "kcp-system", "labels": {"kyma-project.io/runtime-id": "r-ill"}},
                        "spec": {"channel": "regular"}})
        address = f"127.0.0.1:{self.manager.admin}"
        states = {}

        def judged():
            done = runtime_watcher("status", "--address", address, "-o", "json")
            self.assertEqual(done.returncode, 3, done.stderr)
            shown = json.loads(done.stdout)
            states.update((r["kyma"], r) for r in shown["runtimes"])
            self.assertEqual(sum(shown["heartbeats"].values()), shown["total"], shown)
            self.assertEqual([r["kyma"] for r in shown["runtimes"] if "state" not in r.get("heartbeat", {})], [])
            return all(states.get(name, {}).get("state") not in (None, "unknown") for name in ("kyma-1", "kyma-ill"))
        wait_until(judged, PATIENCE, lambda: f"the states of two runtimes; they are {states}", every=0.1)
        self.assertEqual((states["kyma-1"]["state"], states["kyma-1"]["runtimeId"]), ("not_ready", RUNTIME))
        self.assertEqual(states["kyma-ill"]["state"], "failed", states)
        table = runtime_watcher("status", "--address", address, "--state=failed", "-o", "wide")
        self.note(table.stdout)
        self.assertIn("kyma-ill", table.stdout)
        self.assertNotIn("kyma-1 ", table.stdout)
        self.kcp.kubectl("delete", "kyma", "kyma-ill", "-n", "kcp-system", "--timeout=30s")

    def set_manager(self, value, state):
        self.kcp.kubectl("patch", "watcher", "kyma", "-n", "kcp-system", "--type=merge", "-p", json.dumps({"spec": {"manager": value}}))
        self.kcp.until("watchers", "kyma", "kcp-system",
                       lambda w: w["status"]["state"] == state and (value or "") in json.dumps(w["status"]), f"is {state}")

    def select_gateways(self, value, state):
        change = {"spec": {"gateway": {"selector": {"matchLabels": {"operator.kyma-project.io/watcher-gateway": value}}}}}
        self.kcp.kubectl("patch", "watcher", "second", "-n", "kcp-system", "--type=merge", "-p", json.dumps(change))
        self.kcp.until("watchers", "second", "kcp-system", lambda w: w["status"]["state"] == state, f"is {state}")

    def check_authority(self):
        """deploy/pki is as the schemas want it; those of Gardener's kinds are among our own definitions only."""
        for name in ("cert-manager", "gardener"):
            text = (ROOT / "deploy" / "pki" / f"{name}.yaml").read_text()
            parts = [part for part in text.split("\n---\n")
                     if self.kcp.attempt("get", self.resource_of(part), "-A").returncode == 0]
            if name == "cert-manager":
                self.assertEqual(len(parts), 3)
            for part in parts:
                self.kcp.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=part)

    def image(self):
        deployment = self.skr.get("deployment", "skr-webhook", "kyma-system")
        return deployment["spec"]["template"]["spec"]["containers"][0]["image"]

    def set_ready(self):
        """As the controller of Deployments would, when the pods are."""
        generation = self.skr.get("deployment", "skr-webhook", "kyma-system")["metadata"]["generation"]
        api = Api(self.skr.kubeconfig)
        api.patch(f"{collection('deployments', 'kyma-system', 'apps')}/skr-webhook/status", {"status": {
            "observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}})
        api.close()

    def check_rollout(self):
        """Another image waits while its roll-out is paused; a Watcher does not."""
        rollouts = "runtimerollouts.operator.kyma-project.io"
        pause = lambda to: self.kcp.kubectl("patch", rollouts, "watcher", "-n", "kcp-system", "--type=merge", "-p",
                                            json.dumps({"spec": {"paused": to}}))
        until_completed = lambda: self.kcp.until(rollouts, "watcher", "kcp-system",
                                                 lambda r: r.get("status", {}).get("phase") == "Completed", "is completed")
        self.set_ready()
        until_completed()
        pause(True)
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.check_watcher_rights()  # while nobody restores them
        self.manager = self.start_manager(*self.OPTIONS, image="example.com/runtime-watcher:2")
        self.kcp.until(rollouts, "watcher", "kcp-system", lambda r: r["status"].get("reason") == "ByHand" and
                       r["status"]["waiting"] == 1, "is paused, and has one waiting")
        self.kcp.kubectl("patch", "watcher", "second", "-n", "kcp-system", "--type=merge", "-p", '{"spec":{"field":"spec"}}')
        self.skr.until("validatingwebhookconfigurations", "skr-webhook", None,
                       lambda c: webhooks_of_watchers(c)[0]["rules"][0]["resources"] == ["kymas"], "watches the spec")
        self.assertEqual(self.image(), "example.com/runtime-watcher:1")
        shown = json.loads(runtime_watcher("status", "--address", f"127.0.0.1:{self.manager.admin}", "-o", "json").stdout)
        self.assertEqual([r.get("rollout") for r in shown["runtimes"]], ["waits for its turn"])
        pause(False)
        wait_until(lambda: self.image() == "example.com/runtime-watcher:2", PATIENCE, self.manager.tail)
        self.set_ready()
        until_completed()

    def restart_manager(self, *options, image):
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.manager = self.start_manager(*self.OPTIONS, *options, image=image)

    def check_closed_rollout(self):
        """Without the definition no image reaches a runtime, unless nothing is to be rolled out."""
        rollouts = "runtimerollouts.operator.kyma-project.io"
        self.kcp.kubectl("delete", "customresourcedefinitions", rollouts)
        self.restart_manager(image="example.com/runtime-watcher:3")

        def shown():
            done = runtime_watcher("status", "--address", f"127.0.0.1:{self.manager.admin}", "-o", "json")
            return json.loads(done.stdout)["conditions"]
        wait_until(lambda: any(c["type"] == "RolloutClosed" and c["reason"] == "KindNotServed" and "no definition" in c["message"] for c in shown()),
                   PATIENCE, self.manager.tail)
        wait_until(lambda: any(e["reason"] == "RolloutClosed" and e["involvedObject"]["kind"] == "Lease"
                               for e in json.loads(self.kcp.kubectl("get", "events", "-A", "-o", "json"))["items"]),
                   PATIENCE, self.manager.tail)
        self.kcp.kubectl("patch", "watcher", "second", "-n", "kcp-system", "--type=merge", "-p", '{"spec":{"field":"status"}}')
        self.skr.until("validatingwebhookconfigurations", "skr-webhook", None,
                       lambda c: webhooks_of_watchers(c)[0]["rules"][0]["resources"] == ["kymas/status"], "watches the status")
        self.assertEqual(self.image(), "example.com/runtime-watcher:2")
        self.restart_manager("--rollout-none", image="example.com/runtime-watcher:3")
        wait_until(lambda: self.image() == "example.com/runtime-watcher:3", PATIENCE, self.manager.tail)
        self.set_ready()
        self.kcp.kubectl("apply", "-f", ROOT / "deploy" / "crds" / "operator.kyma-project.io_runtimerollouts.yaml")
        self.restart_manager(image="example.com/runtime-watcher:3")
        self.kcp.until(rollouts, "watcher", "kcp-system", lambda r: r.get("status", {}).get("phase") == "Completed", "is completed")

    @staticmethod
    def resource_of(text):
        group = re.search(r"^apiVersion: ([\w.-]+)/", text, flags=re.MULTILINE)[1]
        return re.search(r"^kind: (\w+)", text, flags=re.MULTILINE)[1].lower() + "s." + group

    def until_led_to(self, address):
        self.kcp.until("endpointslices", EVENTS, "kcp-system",
                       lambda s: [e["addresses"] for e in s["endpoints"] or []] == [[address]] and
                       s["ports"][0]["port"] == self.manager.listener, f"leads to {address}")

    def check_leader_takes_events(self):
        """The Service's one slice names the leader; another replica takes no events."""
        self.until_led_to("10.99.0.1")
        self.assertNotIn("selector", self.kcp.get("service", EVENTS, "kcp-system")["spec"])
        self.kcp.kubectl("patch", "endpointslices", EVENTS, "-n", "kcp-system", "--type=merge", "-p", '{"endpoints": []}')
        self.until_led_to("10.99.0.1")
        other = self.start_manager(*self.OPTIONS, pod_ip="10.99.0.2")
        with self.assertRaises(urllib.error.HTTPError) as answer:
            urllib.request.urlopen(urllib.request.Request(
                f"http://127.0.0.1:{other.listener}/v2/lifecycle-manager/event", b"{}"), timeout=10)
        self.assertEqual((answer.exception.code, answer.exception.headers["retry-after"]), (503, "1"))
        # A gateway keeps its connections, and would stay with this replica.
        kept = http.client.HTTPConnection("127.0.0.1", other.listener, timeout=10)
        self.addCleanup(kept.close)
        kept.request("POST", "/v2/lifecycle-manager/event", b"{}")
        answer = kept.getresponse()
        self.assertEqual((answer.status, answer.headers["connection"]), (503, "close"))
        self.assertEqual(other.terminate(), 0, other.tail())
        self.until_led_to("10.99.0.1")

    def check_names(self):
        """Applying deploy/manager beside lifecycle-manager changes nothing of that."""
        text = self.kcp.kubectl("kustomize", ROOT / "deploy" / "manager")
        names = re.findall(r"^  name: (\S+)", text, flags=re.MULTILINE)
        self.assertGreaterEqual(len(names), 10)
        for each in names:
            self.assertNotRegex(each, "^(klm|lifecycle-manager|template-operator)", "such a name is lifecycle-manager's")

    def test_runtime_is_installed_heard_of_changed_and_removed(self):
        self.check_authority()
        self.check_names()
        self.kcp.kubectl("apply", "-f", ROOT / "deploy" / "samples" / "watcher.yaml")
        ready = lambda w: w.get("status", {}).get("state") == "Ready"
        self.kcp.until("watchers", "kyma", "kcp-system", ready, "is Ready")
        service = self.kcp.get("virtualservices.networking.istio.io", "kyma", "kcp-system")
        self.assertEqual(service["spec"]["gateways"], ["kcp-system/klm-watcher"])
        self.assertEqual(service["spec"]["http"][0]["match"][0]["uri"]["prefix"], "/v2/lifecycle-manager/event")

        self.add_kyma()
        self.issue()
        configuration = self.installed(["kyma"])
        # An invalid edit is reported, and takes nothing away, by a new manager either.
        self.set_manager("../elsewhere", "Error")
        self.until_led_to("fd00::99")
        self.add_orphan()
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.kcp.kubectl("patch", "kyma", "orphan", "-n", "kcp-system", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
        self.kcp.kubectl("delete", "kyma", "orphan", "-n", "kcp-system", "--timeout=30s")
        self.manager = self.start_manager(*self.OPTIONS)
        self.kcp.until_gone("certificates.cert-manager.io", "orphan-webhook-tls", "istio-system")
        # The Secret of a Certificate that an administrator deleted first is found as well.
        self.kcp.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {
            "name": "deleted-webhook-tls", "namespace": "istio-system",
            "labels": {"operator.kyma-project.io/purpose": "klm-watcher-cert-manager",
                       "operator.kyma-project.io/managed-by": "lifecycle-manager"}}})
        self.kcp.until_gone("secrets", "deleted-webhook-tls", "istio-system")
        self.set_manager("../nowhere", "Error")
        self.assertEqual(self.installed(["kyma"])["webhooks"], configuration["webhooks"])
        self.set_manager(None, "Ready")
        self.check_status()
        self.check_leader_takes_events()
        history = self.kcp.until("secret", HISTORY, STATE, lambda s: s.get("data", {}).get("history"), "is stored")
        hook = configuration["webhooks"][0]
        self.assertEqual(hook["failurePolicy"], "Ignore")
        self.assertEqual(hook["sideEffects"], "NoneOnDryRun")
        self.assertEqual(hook["objectSelector"]["matchLabels"], {"operator.kyma-project.io/watched-by": "kyma"})
        deployment = self.skr.until("deployment", "skr-webhook", "kyma-system", bool, "is there")
        self.assertEqual(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "example.com/runtime-watcher:1")
        for kind, name in (("service", "skr-webhook"), ("service", "skr-webhook-metrics"),
                           ("networkpolicy", "kyma-project.io--watcher-to-apiserver")):
            self.assertIsNotNone(self.skr.get(kind, name, "kyma-system"), name)
        self.assertIsNotNone(self.skr.get("priorityclass", "skr-webhook-priority"))

        # An event of the runtime requeues its Kyma, through watch or review, mutual TLS, gateway and listener.
        self.skr.kubectl("apply", "-f", ROOT / "deploy" / "dev" / "operator.kyma-project.io_kymas.yaml")
        until_established(self.skr.kubectl, "--all")
        webhook = self.run_webhook()
        self.expect_event(webhook, lambda: self.set_channel("regular"))
        self.expect_event(webhook, lambda: self.set_channel("fast"))
        # A review that no watch confirms is checked by a read.
        self.review(webhook, configuration)
        wait_until(lambda: webhook.metric("rw_observation_confirmations_total"), PATIENCE,
                   lambda: f"the object is read:\n{webhook.get('/metrics')[1]}\n{webhook.tail()}", every=0.1)

        # One of an invented manager does not; it is known once the file that the runtime has names it.
        self.review(webhook, configuration, manager="other")
        self.assertEqual(webhook.metric("rw_admission_unknown_manager_total"), 1)

        # A Watcher that changes, one that comes, and one that goes.
        self.kcp.kubectl("patch", "watcher", "kyma", "-n", "kcp-system", "--type=merge", "-p", '{"spec":{"field":"status"}}')
        self.skr.until("validatingwebhookconfigurations", "skr-webhook", None,
                       lambda c: webhooks_of_watchers(c)[0]["rules"][0]["resources"] == ["kymas/status"], "watches the status")
        second = json.loads(self.kcp.kubectl("get", "watcher", "kyma", "-n", "kcp-system", "-o", "json"))
        self.kcp.apply({"apiVersion": second["apiVersion"], "kind": "Watcher",
                        "metadata": {"name": "second", "namespace": "kcp-system"},
                        "spec": {**second["spec"], "manager": "other"}})
        self.installed(["kyma", "second"])
        (self.folder / "skr-managers.json").write_bytes(
            decoded(self.skr.get("secret", "skr-webhook-tls", "kyma-system"), "managers.json"))
        wait_until(lambda: webhook.metric("rw_managers_reloads_total", outcome="used") == 2, PATIENCE,
                   lambda: f"the managers' file is read again:\n{webhook.tail()}")
        self.review(webhook, configuration, manager="other")
        self.assertEqual(webhook.metric("rw_admission_unknown_manager_total"), 1)
        self.kcp.kubectl("delete", "watcher", "kyma", "-n", "kcp-system", "--timeout=30s")
        self.installed(["second"])
        self.kcp.until_gone("virtualservices.networking.istio.io", "kyma", "kcp-system")

        webhook.kill()  # the event for the manager `other`, which nobody takes, would keep it for 20 s
        self.check_rollout()
        self.check_closed_rollout()

        # What is wrong again is told again, by the same Event.
        for _ in range(2):
            self.select_gateways("nowhere", "Error")
            self.select_gateways("default", "Ready")
        self.kcp.until("events", None, "kcp-system",
                       lambda all: any(e["reason"] == "WatcherGatewayNotFound" and e["count"] == 2 for e in all["items"]),
                       "tell twice that there was no Gateway")

        # Another root CA: everybody trusts both, and the runtime's certificate is asked for anew.
        self.issuer = Issuer(self.folder / "next-issuer")
        self.kcp.apply(self.issuer.root_secret)
        both = lambda secret: decoded(secret, "ca.crt").count(b"BEGIN CERTIFICATE") == 2
        self.kcp.until("secret", "klm-istio-gateway", "istio-system", both, "has both CAs")
        self.skr.until("secret", "skr-webhook-tls", "kyma-system", both, "has both CAs")
        self.kcp.until("certificates.cert-manager.io", "kyma-1-webhook-tls", "istio-system",
                       lambda c: any(o["type"] == "Issuing" and o["status"] == "True"
                                     for o in c.get("status", {}).get("conditions", [])), "is to be issued anew")

        # The Kyma goes, and leaves nothing behind.
        self.kcp.kubectl("delete", "kyma", "kyma-1", "-n", "kcp-system", "--timeout=60s")
        self.assertIsNone(self.skr.get("validatingwebhookconfigurations", "skr-webhook"))
        self.assertIsNone(self.skr.get("deployment", "skr-webhook", "kyma-system"))
        self.assertIsNone(self.skr.get("secret", "skr-webhook-tls", "kyma-system"))
        self.assertIsNone(self.kcp.get("certificates.cert-manager.io", "kyma-1-webhook-tls", "istio-system"))
        unused = {"name": "watcher-content-unused", "namespace": STATE, "annotations": {"operator.kyma-project.io/source": "kept: watcher unused"}}
        self.kcp.apply({"apiVersion": "v1", "kind": "Secret", "metadata": unused})
        version = lambda secret: secret["metadata"]["resourceVersion"]
        self.kcp.until("secret", HISTORY, STATE, lambda s: version(s) != version(history), "is written by a later leader, too")
        self.kcp.until_gone("secret", unused["name"], STATE)
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())


class Embedded(Story, landscape.Embedded, harness.TestCase):
    def check_watcher_rights(self):
        pass  # this server grants all to everyone


class Real(Story, landscape.Real, harness.TestCase):
    def test_runtime_is_installed_heard_of_changed_and_removed(self):
        super().test_runtime_is_installed_heard_of_changed_and_removed()
        self.check_rights()

    def access(self):
        """On the runtime the manager has the rights of deploy/manager/runtimes alone."""
        if self.skr.get("serviceaccount", "kim", "kyma-system") is None:
            if self.skr.get("namespace", "kyma-system") is None:
                self.skr.kubectl("create", "namespace", "kyma-system")
            self.skr.kubectl("apply", "-f", ROOT / "deploy" / "manager" / "runtimes" / "rights.yaml")
            self.skr.kubectl("create", "serviceaccount", "kim", "-n", "kyma-system")
            for kind in ("clusterrole", "role"):
                self.skr.kubectl("create", f"{kind}binding", MANAGER, "-n", "kyma-system", f"--{kind}={MANAGER}", "--serviceaccount=kyma-system:kim")
        return self.kubeconfig_of(self.skr, "kyma-system", "kim")

    def check_rights(self):
        """Manager and watcher need each of their rights, and no other; some things are out of reach."""
        self.check_doctor()
        self.kcp.audit.check(self.kcp, *self.roles())
        self.assertEqual(self.kcp.audit.verbs_of("secrets", STATE, HISTORY), {"get", "create", "update"})
        for verb in ("watch", "patch", "deletecollection"):
            self.assertFalse(self.kcp.may(verb, f"secrets/{HISTORY}", STATE), verb)
        for verb, what, ns in (("delete", "secrets", "kcp-system"), ("get", "secrets", "kcp-system"),
                               ("update", "secrets/klm-watcher", "istio-system"), ("list", "secrets", "default"),
                               ("delete", "kymas.operator.kyma-project.io", "kcp-system"),
                               ("update", "leases.coordination.k8s.io/another", "kcp-system"),
                               ("create", "pods", "kcp-system"), ("create", "serviceaccounts/token", "kcp-system"),
                               ("create", "clusterrolebindings.rbac.authorization.k8s.io", "kcp-system"),
                               ("impersonate", "serviceaccounts", "kcp-system")):
            self.assertFalse(self.kcp.may(verb, what, ns), f"{verb} {what}")

    def check_watcher_rights(self):
        """What the manager gives to the watcher is what deploy/skr says, with the resources of the Watchers."""
        role = self.skr.get("clusterrole", "skr-webhook")
        self.skr.audit.check(self.skr, role)
        for verb, what in (("patch", "kymas.operator.kyma-project.io"), ("list", "secrets")):
            self.assertFalse(self.skr.may(verb, what, "kyma-system"), f"{verb} {what}")
        text = self.skr.kubectl("create", "--dry-run=client", "-f", ROOT / "deploy" / "skr" / "rights.yaml", "-o", "json")
        parts = json.loads("[" + re.sub(r"^}\n{", "},{", text, flags=re.MULTILINE) + "]")
        self.assertEqual([part["rules"] for part in parts if part["kind"] == "ClusterRole"], [role["rules"]])

    def roles(self):
        return [self.kcp.get("clusterrole", MANAGER), self.kcp.get("role", f"{MANAGER}-certificates", "istio-system"),
                *(self.kcp.get("role", MANAGER, ns) for ns in ("kcp-system", "istio-system", STATE))]

    def check_doctor(self):
        """It finds each right that is missing, and nothing while none is."""
        def missing():
            told = runtime_watcher("doctor", "--kubeconfig", self.kcp.kubeconfig)
            return re.findall(r"FAILED +rights +.* may not (\w+) ([\w.-]+)", told.stdout)
        self.assertEqual(missing(), [])
        for role in self.roles():
            kind, name, ns = (role["kind"], role["metadata"]["name"], role["metadata"].get("namespace", "default"))
            for i, rule in enumerate(role["rules"]):
                self.kcp.kubectl("patch", kind, name, "-n", ns, "--type=json", "-p", json.dumps([{"op": "remove", "path": f"/rules/{i}"}]))
                expected = {(verb, ".".join(filter(None, (resource.split("/")[0], *rule["apiGroups"]))))
                            for verb in rule["verbs"] for resource in rule["resources"]}
                wait_until(lambda: set(missing()) == expected, 10, lambda: f"{expected} are missing, not {missing()}", every=0.1)
                self.kcp.kubectl("patch", kind, name, "-n", ns, "--type=merge", "-p", json.dumps({"rules": role["rules"]}))


class Signalling(landscape.Real, harness.TestCase):
    """With --bootstrapper-mode=signal: the rights of rbac-signal.yaml as well, and each of them used; and those of
    rbac-direct.yaml, of which each is used in direct_test.py: a Runtime may ask for that by its annotation."""

    OPTIONS = ("--bootstrapper-mode=signal", "--signal-settle=100ms")
    NAME = f"{MANAGER}-signal"

    WANTED = (*landscape.Real.WANTED, "runtimes.infrastructuremanager.kyma-project.io")
    OURS = (*landscape.Real.OURS, "crds/operator.kyma-project.io_runtimebootstrappers.yaml")

    def deploy_manager(self):
        super().deploy_manager()
        for name in ("signal", "direct"):
            self.kcp.kubectl("apply", "-f", ROOT / "deploy" / "manager" / "bootstrapper" / f"rbac-{name}.yaml")
        self.kcp.apply({"apiVersion": "infrastructuremanager.kyma-project.io/v1", "kind": "Runtime",
                        "metadata": {"name": "runtime-1", "namespace": "kcp-system"}, "spec": RUNTIME_SPEC})
        self.configure("1")

    def configure(self, value):
        self.kcp.apply({"apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": "rt-bootstrapper-config", "namespace": "kcp-system"},
                        "data": {"rt-bootstrapper-config.json": json.dumps({"overrides": {"a.example.com": value}})}})

    def test_rights_to_signal_are_those_that_the_manager_needs(self):
        record = self.kcp.until("configmap", "runtime-watcher-signalled-configuration", "kcp-system", bool, "is made")
        self.configure("2")
        self.kcp.until("runtimes", "runtime-1", "kcp-system",
                       lambda r: "operator.kyma-project.io/force-patch-reconciliation" in r["metadata"].get("annotations", {}),
                       "is marked")
        self.kcp.until("configmap", record["metadata"]["name"], "kcp-system",
                       lambda c: c["metadata"]["resourceVersion"] != record["metadata"]["resourceVersion"], "is written anew")
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.kcp.audit.check(self.kcp, self.kcp.get("role", self.NAME, "kcp-system"))
        for verb, what in (("create", "runtimes.infrastructuremanager.kyma-project.io"), ("update", "configmaps/rt-bootstrapper-config"),
                           ("delete", "configmaps"), ("get", "secrets")):
            self.assertFalse(self.kcp.may(verb, what, "kcp-system"), f"{verb} {what}")


class Gardener(landscape.Real, harness.TestCase):
    """With certificates of Gardener's cert-management, as deploy/manager/gardener says."""

    OURS = (*landscape.Real.OURS, "dev/cert.gardener.cloud_certificates.yaml")
    CERTIFICATE = ("certificates.cert.gardener.cloud", "kyma-1-webhook-tls", "istio-system")

    def manifests(self):
        overlay = self.folder / "overlay"
        overlay.mkdir()
        manager = os.path.relpath(ROOT / "deploy" / "manager", overlay)
        (overlay / "kustomization.yaml").write_text(f"resources: [{manager}]\ncomponents: [{manager}/gardener]\n")
        return overlay

    def test_rights_to_certificates_are_those_that_the_manager_needs(self):
        self.add_kyma()
        self.kcp.until(*self.CERTIFICATE, lambda c: c["spec"]["commonName"] == RUNTIME, "asks for the runtime's certificate")
        self.kcp.kubectl("delete", "kyma", "kyma-1", "-n", "kcp-system", "--timeout=60s")
        self.assertIsNone(self.kcp.get(*self.CERTIFICATE))
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        role = self.kcp.get("role", f"{MANAGER}-certificates", "istio-system")
        self.assertEqual([rule["apiGroups"] for rule in role["rules"]], [["cert.gardener.cloud"]])
        self.kcp.audit.check(self.kcp, role)


if __name__ == "__main__":
    harness.main()
