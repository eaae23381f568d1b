"""The manager writes to a runtime directly: it takes over what Kyma Infrastructure Manager (KIM) has installed there, keeps it
in step with KCP, refuses what is broken, upgrades, repairs, rests while suspended, and undeploys; and says so each time.

The same story on embedded API servers and, where KUBEBUILDER_ASSETS names them, on two real ones. KIM and the runtime's controllers are played by this script.
"""

import base64
import http.server
import json
import re
import ssl
import threading

import bootstrapper_sources as sources
import harness
import landscape
from api import collection
from bootstrapper_landscape import BUNDLE, KCP, KIM, NAME, OURS, RESOURCE, RUNTIME, SKR, STATE, Bootstrapped, condition, message, on_skr, owners
from bootstrapper_sources import CONFIG, DEPLOYMENT, MANIFESTS, PULL_SECRET, TRUST_BUNDLE
from harness import ROOT, Pki, until_established, wait_until
from landscape import MANAGER, PATIENCE


ROLLOUT = f"{collection('runtimerollouts', KCP, 'operator.kyma-project.io', 'v1alpha1')}/bootstrapper"


class PodWebhook(http.server.ThreadingHTTPServer):
    """The bootstrapper's webhook: every image gets the registry, if there is one, and with `denies` no Pod is admitted."""

    daemon_threads = True

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            response = self.server.respond(review["request"])
            body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    def __init__(self, pki):
        self.registry, self.denies = None, None
        super().__init__(("127.0.0.1", 0), PodWebhook.Handler)
        self.url, self.ca = f"https://127.0.0.1:{self.server_address[1]}/mutate", pki.ca.read_text()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pki.issue("server", "bootstrapper"))
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def respond(self, request):
        if self.denies:
            return {"uid": request["uid"], "allowed": False, "status": {"code": 403, "message": self.denies}}
        if not self.registry:
            return {"uid": request["uid"], "allowed": True}
        image = request["object"]["spec"]["containers"][0]["image"]
        patch = [{"op": "replace", "path": "/spec/containers/0/image", "value": f"{self.registry}/{image.partition('/')[2]}"}]
        return {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch",
                "patch": base64.b64encode(json.dumps(patch).encode()).decode()}

    def stop(self):
        self.shutdown()
        self.server_close()


class Story(Bootstrapped):
    """The tests."""

    # --- the steps ---------------------------------------------------------------------

    def taken_over(self):
        before = self.skr_get("Deployment", DEPLOYMENT)
        self.add_runtime()
        self.after_creation()
        found = self.until_ready("1.0.0")
        self.assertEqual([(o["kind"], o["name"]) for o in found["metadata"]["ownerReferences"]], [("Runtime", NAME)])
        self.assertEqual(found["metadata"]["finalizers"], ["operator.kyma-project.io/runtime-bootstrapper"])
        after = self.skr_get("Deployment", DEPLOYMENT)
        for field in ("uid", "generation"):
            self.assertEqual(after["metadata"][field], before["metadata"][field], field)
        for kind, name in (("Deployment", DEPLOYMENT), ("ConfigMap", CONFIG), ("Secret", PULL_SECRET)):
            taken = owners(self.skr_get(kind, name))
            self.assertIn(OURS, taken, name)
            self.assertNotIn(KIM, taken, name)
        if self.BUNDLES:
            self.assertEqual(owners(self.skr_api.get(BUNDLE)), {OURS})

    def rotated(self):
        units = self.units()
        generation = self.skr_get("Deployment", DEPLOYMENT)["metadata"]["generation"]
        self.put(sources.pull_secret("second"))
        self.until_ready("1.0.0", credentials_after=units["credentials"]["digest"])
        self.assertEqual(self.password_on_skr(), "second")
        self.assertEqual(self.skr_get("Secret", PULL_SECRET)["type"], "kubernetes.io/dockerconfigjson")
        self.assertEqual(self.units()["bootstrapper"], units["bootstrapper"])
        self.assertEqual(self.skr_get("Deployment", DEPLOYMENT)["metadata"]["generation"], generation)

    def refused(self):
        before = self.resource()["status"]
        there = self.versions_on_skr()
        self.put(sources.configuration_source(self.config(features=("fly",))))
        found = self.until("is refused", lambda r: condition(r, "Compatible") == ("False", "Invalid"))
        for kind, reason in (("ConfigurationSynced", "LastGoodKept"), ("Ready", "Rejected"),
                             ("RuntimeBootstrapperReady", "RuntimeBootstrapperConfigurationFailed")):
            self.assertEqual(condition(found, kind), ("False", reason), kind)
        self.assertEqual(condition(found, "Installed"), ("True", "Ready"))
        field = f'ConfigMap {KCP}/{CONFIG}, {CONFIG}.json.availableFeatures[0]: "{sources.FEATURE}fly" is no feature'
        self.assertIn(field, message(found, "Compatible"))
        self.assertIn(field, found["status"]["lastError"])
        for same in ("state", "installedVersion", "inventory"):
            self.assertEqual(found["status"][same], before[same], same)
        units = self.units()
        self.assertEqual((units["bootstrapper"]["phase"], units["credentials"]["phase"]), ("LastGood", "Applied"))
        self.assertNotIn("desiredDigest", units["bootstrapper"])
        self.assertEqual(self.versions_on_skr(), there)
        # What it has is kept in place meanwhile, by the content that is stored in KCP.
        self.skr_api.delete(on_skr("ConfigMap", CONFIG))
        kept = self.until_on_skr("ConfigMap", CONFIG, bool, "is back")
        self.assertEqual(kept["data"], sources.configuration_source(self.config())["data"])
        self.put(sources.configuration_source(self.config()))
        self.until_ready("1.0.0")
        self.assertEqual(self.units()["bootstrapper"]["digest"], units["bootstrapper"]["digest"])

    def upgraded(self):
        before = self.units()["bootstrapper"]["digest"]
        self.put(sources.manifests_source(sources.manifests("2.0.0")))
        found = self.until("is being upgraded", lambda r: r["status"]["units"][1]["digest"] != before)
        self.assertEqual((found["status"]["state"], found["status"]["installedVersion"]), ("InProgress", "1.0.0"))
        self.assertEqual(condition(found, "RuntimeBootstrapperReady"), ("False", "RuntimeBootstrapperUpgradeInProgress"))
        self.assertEqual(condition(found, "ConfigurationSynced"), ("True", "Synced"))
        self.assertEqual(condition(found, "Ready"), ("False", "InProgress"))
        image = self.skr_get("Deployment", DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["image"]
        self.assertEqual(image, "example.com/rt-bootstrapper:2.0.0")
        self.set_ready()
        self.until_ready("2.0.0")
        # Pruned is what the set had, and nothing else.
        self.assertIsNone(self.skr_get("ConfigMap", "rt-bootstrapper-extra"))
        self.assertEqual(self.skr_get("ConfigMap", "foreign")["data"], {"a": "b"})

    def repaired(self):
        units = self.units()
        repairs = self.metric("rw_bootstrapper_syncs_total", result="repaired")
        self.skr_api.patch(on_skr("ConfigMap", CONFIG), {"data": {f"{CONFIG}.json": "{}"}})
        self.until_on_skr("ConfigMap", CONFIG, lambda c: c and c["data"] == sources.configuration_source(self.config())["data"],
                          "is repaired")
        self.skr_api.delete(on_skr("Secret", PULL_SECRET))
        self.until_on_skr("Secret", PULL_SECRET, bool, "is back")
        self.assertEqual(self.password_on_skr(), "second")
        self.skr_api.patch(on_skr("Deployment", DEPLOYMENT), {"metadata": {"labels": {"app.kubernetes.io/version": "0.0.1"}},
                                                              "spec": {"replicas": 3}})
        self.until_on_skr("Deployment", DEPLOYMENT, lambda d: d["spec"]["replicas"] == 1, "has one replica again")
        self.set_ready()
        self.until_ready("2.0.0")
        self.assertEqual({name: unit["digest"] for name, unit in self.units().items()},
                         {name: unit["digest"] for name, unit in units.items()})
        self.assertGreaterEqual(self.metric("rw_bootstrapper_syncs_total", result="repaired") - repairs, 2)

    def suspended(self):
        units = self.units()
        self.kcp_api.patch(RESOURCE, {"spec": {"suspend": True}})
        found = self.until("is suspended", lambda r: r["status"]["state"] == "Suspended")
        self.assertEqual(condition(found, "Ready"), ("Unknown", "Suspended"))
        self.assertEqual(found["status"]["observedGeneration"], found["metadata"]["generation"])
        self.assertEqual((self.units(), found["status"]["installedVersion"]), (units, "2.0.0"))
        looks, there = self.looks(), self.versions_on_skr()
        self.put(sources.pull_secret("third"))
        wait_until(lambda: self.looks() > looks, PATIENCE, "the change is looked at", every=0.05)
        self.assertEqual(self.versions_on_skr(), there)
        self.assertEqual(self.resource()["status"], found["status"])
        self.kcp_api.patch(RESOURCE, {"spec": {"suspend": False}})
        self.until_ready("2.0.0", credentials_after=units["credentials"]["digest"])
        self.assertEqual(self.password_on_skr(), "third")

    def restarted(self):
        """Another process has nothing to do."""
        there, told = self.versions_on_skr(), self.resource()["metadata"]["resourceVersion"]
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.manager = self.start_manager(*self.OPTIONS)
        wait_until(lambda: self.metric("rw_bootstrapper_syncs_total", result="unchanged"), PATIENCE,
                   lambda: f"the runtime is looked at:\n{self.manager.tail()}", every=0.05)
        wait_until(lambda: self.metric("rw_bootstrapper_content_runtimes", state="current") == 1, PATIENCE, "it counts as current", every=0.05)
        self.assertEqual(self.metric("rw_bootstrapper_writes_total"), 0)
        self.assertEqual(self.versions_on_skr(), there)
        self.assertEqual(self.resource()["metadata"]["resourceVersion"], told)

    def deleted(self):
        self.kcp.kubectl("delete", "runtimebootstrapper", NAME, "-n", KCP, "--timeout=60s")
        left = {key for key in self.versions_on_skr() if "default" not in key[1] and key[1] != "kube-root-ca.crt"}
        self.assertEqual(left, {("configmaps", "foreign")})
        self.assertIsNone(self.skr.get("mutatingwebhookconfigurations", "rt-bootstrapper"))
        if self.BUNDLES:
            self.assertIsNone(self.skr_api.get(BUNDLE))
        # It was created for the Runtime, so its deletion is an opt-out.
        runtime = self.kcp_api.get(RUNTIME)
        self.assertEqual(runtime["metadata"]["annotations"]["operator.kyma-project.io/bootstrapper-opt-out"], "true")
        wait_until(lambda: "BootstrapperRemoved" in self.kcp.events_of(NAME, KCP), PATIENCE, "it is told", every=0.1)

    def collected(self):
        """Nothing refers to the sources any longer, so a process that is told not to wait deletes their stored contents."""
        def stored():  # but for what was rolled out, which is no source's, and what is no content
            items = self.kcp_api.get(f"/api/v1/namespaces/{STATE}/secrets")["items"]
            notes = [{k.removeprefix("operator.kyma-project.io/"): v for k, v in i["metadata"].get("annotations", {}).items()} for i in items]
            notes = [n for n in notes if "source" in n or "content" in n]
            rolled_out = [n for n in notes if n.get("source", "").startswith(("rolled out", "revision "))]
            listed = " ".join(n["contents"] for n in rolled_out)
            return [n for n in notes if n not in rolled_out and n.get("content", "-") not in listed]
        self.assertTrue(stored())
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.manager = self.start_manager(*self.OPTIONS, "--unused-content-after=0s")
        wait_until(lambda: not stored(), PATIENCE, "the stored contents are deleted", every=0.1)

    def installed_by_hand(self):
        self.kcp.apply(self.made_by_hand())
        found = self.until("is being installed", lambda r: r.get("status", {}).get("state") == "InProgress")
        self.assertNotIn("installedVersion", found["status"])
        self.assertEqual(condition(found, "Installed"), ("False", "InProgress"))
        self.assertEqual(condition(found, "ConfigurationSynced"), ("True", "Synced"))
        self.assertEqual(condition(found, "RuntimeBootstrapperReady"), ("False", "RuntimeBootstrapperInstallationInProgress"))
        self.set_ready()
        self.until_ready("2.0.0")
        self.assertEqual(self.password_on_skr(), "third")

    def made_by_hand(self):
        spec = {"runtimeRef": {"name": NAME}, "pullSecretRef": {"name": PULL_SECRET}}
        if self.BUNDLES:
            spec["trustBundleRef"] = {"name": TRUST_BUNDLE}
        return {"apiVersion": "operator.kyma-project.io/v1alpha1", "kind": "RuntimeBootstrapper",
                "metadata": {"name": NAME, "namespace": KCP}, "spec": spec}

    def test_objects_of_kim_are_taken_over_kept_in_step_and_undeployed(self):
        for each in self.good_sources().values():
            self.put(each)
        self.kim_installs()
        for step in (self.taken_over, self.rotated, self.refused, self.upgraded, self.repaired, self.suspended, self.restarted,
                     self.deleted, self.collected, self.installed_by_hand):
            step()
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())

    # --- what its webhook does ---------------------------------------------------------

    def test_runtime_is_ready_when_its_webhook_mutates_as_the_configuration_demands(self):
        """A running pod stays ready with a configuration that it can't read, so a Pod is tried."""
        webhook = PodWebhook(Pki(self.folder / "bootstrapper"))
        self.addCleanup(webhook.stop)
        def rolled_out():
            return self.kcp_api.get(ROLLOUT).get("status", {}).get("phase") == "Completed"
        def refused(text):
            found = self.until(f"tells: {text}", lambda r: condition(r, "Installed") == ("False", "NotMutating") and text in message(r, "Installed"))
            self.assertEqual(condition(found, "Ready"), ("False", "NotMutating"))
            self.assertEqual(condition(found, "ConfigurationSynced"), ("True", "Synced"))
            self.assertEqual(found["status"]["state"], "InProgress")
            self.assertFalse(rolled_out())
        found = self.good_sources()
        found[MANIFESTS] = sources.manifests_source(sources.with_webhook(sources.manifests("1.0.0"), webhook.url, webhook.ca))
        for each in found.values():
            self.put(each)
        self.add_runtime()
        self.after_creation()
        self.set_ready()
        refused(f"a Pod in the namespace {SKR} does not get the registry registry.example.com in place of europe-docker.pkg.dev")
        webhook.registry = "registry.example.com"
        self.until_ready("1.0.0")
        wait_until(rolled_out, PATIENCE, "it is rolled out")
        # The Deployment goes on, with the configuration before.
        self.put(sources.configuration_source(self.config(registry="other.example.com")))
        refused("does not get the registry other.example.com")
        webhook.denies = "unable to read config"
        refused(f"the bootstrapper does not admit a Pod in the namespace {SKR}")
        webhook.denies, webhook.registry = None, "other.example.com"
        self.until_ready("1.0.0")
        wait_until(rolled_out, PATIENCE, "it is rolled out")
        self.assertEqual(self.skr_api.get(collection("pods", SKR))["items"], [])
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())

    # --- what is broken ----------------------------------------------------------------

    def broken(self):
        """What is put, the condition's reason, what it says, and the phase of its unit."""
        good = sources.manifests("1.0.0")
        in_manifests = f"ConfigMap {KCP}/{MANIFESTS}, manifests.yaml: "
        yield (sources.manifests_source(good + "---\n" + sources.BROKEN_DOCUMENT), "Invalid",
               in_manifests + "document 5, line ", "NotApplied")
        yield (sources.manifests_source(good + "---\n" + sources.UNKNOWN_KIND), "UnknownKind",
               "the runtime does not serve the kind Nothing of example.com/v1 (nothing)", "NotApplied")
        yield (sources.manifests_source(good + "---\n" + sources.too_large()), "RejectedByRuntime",
               f"the runtime would not take ConfigMap {SKR}/rt-bootstrapper-large: ", "NotApplied")
        yield (sources.pull_secret("first", kind="Opaque"), "Invalid",
               f'Secret {KCP}/{PULL_SECRET}, type: is "Opaque" and not kubernetes.io/dockerconfigjson', "LastGood")
        if self.BUNDLES:
            yield (sources.trust_bundle("-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n"),
                   "Invalid", f"ClusterTrustBundle {TRUST_BUNDLE}, spec.trustBundle: ", "LastGood")

    def test_invalid_sources_are_reported_and_never_written(self):
        good, former = self.good_sources(), None
        for bad, reason, text, phase in self.broken():
            name = bad["metadata"]["name"]
            broken, other = (("credentials", "bootstrapper") if name == PULL_SECRET else ("bootstrapper", "credentials"))
            if former not in (None, name):
                self.put(good[former])
                self.until("has what was mended", lambda r: self.units()[broken]["phase"] == "Applied")
            self.put(bad)
            if former is None:
                for each in set(good) - {name}:
                    self.put(good[each])
                self.add_runtime()
                self.after_creation()
            former = name
            found = self.until(f"tells: {text}", lambda r: text in r.get("status", {}).get("lastError", ""))
            self.assertEqual(condition(found, "Compatible"), ("False", reason), text)
            self.assertIn(text, message(found, "Compatible"))
            self.assertEqual(condition(found, "Ready"), ("False", "Rejected"))
            self.assertEqual(condition(found, "RuntimeBootstrapperReady"), ("False", "RuntimeBootstrapperConfigurationFailed"))
            # The other unit goes on.
            found = self.until("has the other unit", lambda r: self.units()[other]["phase"] == "Applied")
            self.assertEqual(self.units()[broken]["phase"], phase, text)
            if phase == "NotApplied":
                self.assertEqual(condition(found, "ConfigurationSynced"), ("False", "NotApplied"))
                self.assertEqual(found["status"]["state"], "NotStarted")
                self.assertEqual({each["unit"] for each in found["status"]["inventory"]}, {other})
                self.assertIsNone(self.skr_get("Deployment", DEPLOYMENT), text)
                self.assertIsNone(self.skr_get("ServiceAccount", "rt-bootstrapper"), text)
            self.assertEqual(self.password_on_skr(), "first")
        # A document's end within a text is text.
        self.put(sources.manifests_source(sources.manifests("1.0.0", sources.BLOCK_SCALAR)))
        self.put(good[former])
        script = self.until_on_skr("ConfigMap", "rt-bootstrapper-script", bool, "is there")
        self.assertEqual(script["data"]["script"], sources.BLOCK_TEXT)
        self.set_ready()
        self.until_ready("1.0.0")
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())


class Embedded(Story, landscape.Embedded, harness.TestCase):
    BUNDLES = True

    def after_creation(self):
        pass

    PARTS = 30

    def many_parts(self, version):
        return sources.manifests_source(sources.manifests(version, "".join(
            f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: part-{i}, namespace: {SKR}}}\ndata: {{version: {version}}}\n"
            for i in range(self.PARTS))))

    def versions(self):
        """Of the parts, and of the Deployment."""
        items = self.skr_api.get(collection("configmaps", SKR))["items"]
        found = [i["data"]["version"] for i in items if i["metadata"]["name"].startswith("part-")]
        image = self.skr_get("Deployment", DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["image"]
        return [*found, image.rpartition(":")[2]]

    def killed_half_way(self, old, new):
        """True if the manager was killed when it had written a part of a new version only."""
        self.put(self.many_parts(new))
        wait_until(lambda: new in self.versions(), PATIENCE, "the first part is new", every=0)
        self.manager.kill()
        found = self.versions()
        self.assertEqual(len(found), self.PARTS + 1)
        return set(found) == {old, new}

    def test_unit_that_was_cut_short_is_completed_in_a_pause_as_well(self):
        sources_ = self.good_sources()
        old = "1.0.0"
        sources_[MANIFESTS] = self.many_parts(old)
        for each in sources_.values():
            self.put(each)
        self.add_runtime()
        self.set_ready()
        self.until_ready(old)
        completed = lambda: self.kcp_api.get(ROLLOUT).get("status", {}).get("phase") == "Completed"
        wait_until(completed, PATIENCE, "the roll-out is completed")
        for new in (f"{i}.0.0" for i in range(2, 12)):
            if self.killed_half_way(old, new):
                break
            self.manager = self.start_manager(*self.OPTIONS)
            wait_until(lambda: set(self.versions()) == {new}, PATIENCE, "all is new")
            self.set_ready()
            self.until_ready(new)
            wait_until(completed, PATIENCE, "the roll-out is completed")
            old = new
        else:
            self.fail("the manager was never killed half way")
        unit = self.units()["bootstrapper"]
        self.assertEqual((unit["phase"], unit.get("digest")), ("Applying", None))
        self.kcp_api.patch(ROLLOUT, {"spec": {"paused": True}})
        self.manager = self.start_manager(*self.OPTIONS)
        wait_until(lambda: set(self.versions()) == {old}, PATIENCE, lambda: f"all is old again: {self.versions()}\n{self.manager.tail()}")
        # The condition may be that of the time before the kill.
        found = self.until("waits", lambda r: [each["phase"] for each in r["status"]["units"] if each["name"] == "bootstrapper"] == ["Waiting"])
        self.assertEqual(condition(found, "ConfigurationSynced"), ("False", "WaitingForRollout"))
        self.kcp_api.patch(ROLLOUT, {"spec": {"paused": False}})
        wait_until(lambda: set(self.versions()) == {new}, PATIENCE, "all is new")
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())

    def install(self, **config):
        """The good sources, with this configuration, are on a runtime."""
        found = self.good_sources()
        found[CONFIG] = sources.configuration_source(self.config(**config))
        for each in found.values():
            self.put(each)
        self.add_runtime()
        self.set_ready()
        self.until_ready("1.0.0")

    def test_texts_of_rollouts_and_bootstrappers_have_no_gaps(self):
        """Of roll-outs and RuntimeBootstrappers in each state: nothing blank, nothing twice, nothing cut off."""
        def rollout():
            return self.kcp_api.get(ROLLOUT) or {}
        idle = wait_until(lambda: rollout().get("status"), PATIENCE, "a roll-out without runtimes has a status")
        self.assertEqual((idle["phase"], idle["message"]), ("Completed", "no runtime takes part"))
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        # Nothing can be stored, which concerns each source.
        self.manager = self.start_manager(*self.OPTIONS, "--state-namespace=absent")
        for each in self.good_sources().values():
            self.put(each)
        self.add_runtime()
        self.set_ready()
        def warned(found):
            return [w for w in found.get("status", {}).get("warnings", []) if "can't be stored to fall back to" in w]
        warnings = self.until("is warned", warned)["status"]["warnings"]
        self.assertEqual(len(warnings), len(set(warnings)), warnings)
        # A number that is none is refused, by whichever side reads it.
        for bad in (-1, "-1", "101%"):
            with self.assertRaises(Exception, msg=bad) as refused:
                self.kcp_api.patch(ROLLOUT, {"spec": {"maxUnavailable": bad}})
            self.assertIn("maxUnavailable", str(refused.exception))
        self.kcp_api.patch(ROLLOUT, {"spec": {"canaries": "a b"}})
        told = wait_until(lambda: "spec.canaries" in rollout()["status"].get("message", "") and rollout()["status"], PATIENCE, "what can't be used is told")
        for part in told["message"].split("; "):
            self.assertTrue(part.strip(), told["message"])
        # What is rejected is not called Ready.
        self.put(sources.configuration_source(self.config(features=("fly",))))
        found = self.until("is refused", lambda r: condition(r, "Compatible") == ("False", "Invalid"))
        self.assertEqual(condition(found, "Ready"), ("False", "Rejected"))
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())

    def test_deleted_bootstrapper_is_released_where_the_mode_is_off(self):
        self.install()
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        there = self.versions_on_skr()
        self.kcp_api.delete(RESOURCE)
        self.assertTrue(self.resource()["metadata"]["finalizers"])
        self.manager = self.start_manager()
        wait_until(lambda: self.resource() is None, PATIENCE, lambda: f"it is released: {self.resource()}\n{self.manager.tail()}")
        wait_until(lambda: self.metric("rw_bootstrapper_released_total") == 1, PATIENCE, "it is counted")
        self.assertEqual(self.versions_on_skr(), there)
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())

    def test_deleted_source_is_reported_and_its_content_kept_or_removed(self):
        self.install()
        self.kcp_api.delete(f"{collection('secrets', KCP)}/{PULL_SECRET}")
        found = self.until("misses it", lambda r: condition(r, "Compatible") == ("False", "SourceMissing"))
        self.assertEqual(condition(found, "Ready"), ("True", "Ready"))
        named = f"Secret {KCP}/{PULL_SECRET}"
        self.assertTrue([w for w in found["status"]["warnings"] if named in w and "its last valid content stays" in w], found["status"])
        wait_until(lambda: "SourceMissing" in self.kcp.events_of(NAME, KCP), PATIENCE, "it is told", every=0.1)
        self.skr_api.delete(on_skr("Secret", PULL_SECRET))
        self.until_on_skr("Secret", PULL_SECRET, bool, "is back")
        self.assertEqual(self.password_on_skr(), "first")
        # Removed, but not where the configuration refers to it.
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.manager = self.start_manager(*self.OPTIONS, "--deleted-source=remove", "--source-removal-delay=1s")
        self.until("keeps it", lambda r: any(named in w and "as the configuration of the runtime refers to it" in w
                                             for w in r["status"].get("warnings", [])))
        self.assertEqual(self.password_on_skr(), "first")
        self.put(sources.configuration_source(self.config(features=("alter-img-registry",))))
        wait_until(lambda: self.skr_get("Secret", PULL_SECRET) is None, PATIENCE, lambda: f"it is removed:\n{self.manager.tail()}")
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())

    def test_features_are_those_of_the_bootstrapper_that_will_run(self):
        def until_on_skr(text):
            self.until_on_skr("ConfigMap", CONFIG, lambda c: c["data"] == sources.configuration_source(text)["data"], "is the newest")
        self.install()
        # To the bootstrapper an empty list is none, so that those of namespaces are available.
        none = self.config(features=())
        self.put(sources.configuration_source(none))
        until_on_skr(none)
        # Without its argument the bootstrapper would end with 1.
        self.put(sources.configuration_source(self.config(features=("alter-img-registry", "set-landscape"))))
        found = self.until("is refused", lambda r: condition(r, "Compatible") == ("False", "Invalid"))
        self.assertIn(f'availableFeatures[1]: "{sources.FEATURE}set-landscape" needs the argument --landscape', message(found, "Compatible"))
        until_on_skr(none)
        text = sources.manifests("1.0.0", sources.EXTRA)
        self.put(sources.manifests_source(text.replace("{name: manager,", '{name: manager, args: ["--landscape=dev"],')))
        until_on_skr(self.config(features=("alter-img-registry", "set-landscape")))
        # A feature that only a newer version knows is admitted by the annotation that the message names.
        self.put(sources.configuration_source(self.config(features=("alter-img-registry", "fly"))))
        found = self.until("is refused", lambda r: condition(r, "Compatible") == ("False", "Invalid"))
        annotation = re.search(r"the annotation (\S+) of its Deployment", message(found, "Compatible")).group(1)
        known = f"{sources.FEATURE}alter-img-registry,{sources.FEATURE}fly"
        self.put(sources.manifests_source(text.replace("labels: {app.kubernetes.io/version",
                                                       f'annotations: {{{annotation}: "{known}"}}\n  labels: {{app.kubernetes.io/version', 1)))
        until_on_skr(self.config(features=("alter-img-registry", "fly")))
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())


class WithoutBundles(Story, landscape.Real, harness.TestCase):
    """Servers of a version that has no ClusterTrustBundles."""

    BUNDLES = False
    WANTED = (*landscape.Real.WANTED, "runtimes.infrastructuremanager.kyma-project.io")
    OURS = (*landscape.Real.OURS, "crds/operator.kyma-project.io_runtimebootstrappers.yaml")
    test_objects_of_kim_are_taken_over_kept_in_step_and_undeployed = None

    def deploy_manager(self):
        super().deploy_manager()
        for name in ("signal", "direct"):
            self.kcp.kubectl("apply", "-f", ROOT / "deploy" / "manager" / "bootstrapper" / f"rbac-{name}.yaml")

    def after_creation(self):
        """The created RuntimeBootstrapper names one."""
        text = f"ClusterTrustBundle {TRUST_BUNDLE}: does not exist, and no valid content of it is stored; installed without one"
        self.until(f"warns: {text}", lambda r: text in r.get("status", {}).get("warnings", []))


class Real(WithoutBundles):
    """ClusterTrustBundles are served, as a custom resource in place of what the servers have of the group; the
    manager has only the rights of deploy/manager, and needs each."""

    BUNDLES = True
    SERVER_OPTIONS = ("--runtime-config=certificates.k8s.io/v1=false,certificates.k8s.io/v1beta1=false",)
    after_creation = Embedded.after_creation
    test_invalid_sources_are_reported_and_never_written = None

    def prepare(self):
        for cluster in (self.kcp, self.skr):
            cluster.kubectl("create", "-f", "-", stdin=sources.TRUST_BUNDLES)
            until_established(cluster.kubectl, "--all")
        super().prepare()

    def test_objects_of_kim_are_taken_over_kept_in_step_and_undeployed(self):
        Story.test_objects_of_kim_are_taken_over_kept_in_step_and_undeployed(self)
        role = f"{MANAGER}-direct"
        self.kcp.audit.check(self.kcp, self.kcp.get("clusterrole", role), self.kcp.get("role", role, KCP), self.kcp.get("role", MANAGER, STATE))
        for verb, what in (("delete", "runtimebootstrappers.operator.kyma-project.io"), ("get", "secrets"), ("update", "secrets"), ("create", "secrets"),
                           ("delete", "secrets"), ("delete", "configmaps"), ("create", "runtimes.infrastructuremanager.kyma-project.io"),
                           ("delete", "runtimes.infrastructuremanager.kyma-project.io")):
            self.assertFalse(self.kcp.may(verb, what, KCP), f"{verb} {what}")


if __name__ == "__main__":
    harness.main()
