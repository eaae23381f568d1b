"""The manager writes to a runtime directly: it takes over what Kyma Infrastructure Manager (KIM) has installed there, keeps it
in step with KCP, refuses what is broken, upgrades, repairs, rests while suspended, and undeploys; and says so each time.

The same story on embedded API servers, which have ClusterTrustBundles, and, where KUBEBUILDER_ASSETS names them, on two real
ones, where the manager has only the rights of deploy/manager. KIM and the runtime's controllers are played by this script.
"""

import json

import bootstrapper_sources as sources
import harness
import landscape
from api import Api, collection
from bootstrapper_sources import CONFIG, DEPLOYMENT, MANIFESTS, PULL_SECRET, TRUST_BUNDLE
from harness import ROOT, wait_until
from landscape import MANAGER, PATIENCE, RUNTIME_SPEC

KCP, SKR = "kcp-system", "kyma-system"
NAME = "runtime-1"  # of the Runtime, and of its RuntimeBootstrapper
RUNTIME = f"{collection('runtimes', KCP, 'infrastructuremanager.kyma-project.io', 'v1')}/{NAME}"
RESOURCES = collection("runtimebootstrappers", KCP, "operator.kyma-project.io", "v1alpha1")
RESOURCE = f"{RESOURCES}/{NAME}"
BUNDLE = f"{collection('clustertrustbundles', None, 'certificates.k8s.io', 'v1beta1')}/{TRUST_BUNDLE}"
KIM = "kim-bootstrapper"
OURS = "runtime-watcher-bootstrapper"
MANIFEST_KINDS = {"Deployment": ("deployments", "apps"), "ServiceAccount": ("serviceaccounts", None), "Service": ("services", None),
                  "ConfigMap": ("configmaps", None), "Secret": ("secrets", None)}


def on_skr(kind, name):
    plural, group = MANIFEST_KINDS[kind]
    return f"{collection(plural, SKR, group)}/{name}"


def condition(resource, kind):
    """Status and reason of a condition."""
    for each in resource.get("status", {}).get("conditions", []):
        if each["type"] == kind:
            return each["status"], each["reason"]
    return None


def message(resource, kind):
    return next(each["message"] for each in resource["status"]["conditions"] if each["type"] == kind)


def owners(thing):
    return {entry["manager"] for entry in thing["metadata"]["managedFields"]}


class Story:
    """The tests."""

    OPTIONS = ("--bootstrapper-mode=direct", "--create-runtime-bootstrappers", "--signal-settle=100ms")

    def prepare(self):
        super().prepare()
        self.kcp_api, self.skr_api = Api(self.kcp.kubeconfig), Api(self.skr.kubeconfig)
        self.addCleanup(self.kcp_api.close)
        self.addCleanup(self.skr_api.close)
        self.add_access()

    # --- what is in KCP ----------------------------------------------------------------

    def config(self, **other):
        return sources.configuration(self.BUNDLES, **other)

    def put(self, thing):
        """Creates or replaces a source in KCP, and returns it."""
        plural, group, version = {"ConfigMap": ("configmaps", None, "v1"), "Secret": ("secrets", None, "v1"),
                                  "ClusterTrustBundle": ("clustertrustbundles", "certificates.k8s.io", "v1beta1")}[thing["kind"]]
        path = collection(plural, thing["metadata"].get("namespace"), group, version)
        name = thing["metadata"]["name"]
        there = self.kcp_api.get(f"{path}/{name}")
        if there and there.get("type") == thing.get("type"):
            return self.kcp_api.request("PUT", f"{path}/{name}", thing)
        if there:
            self.kcp_api.delete(f"{path}/{name}")  # a Secret's type never changes
        return self.kcp_api.request("POST", path, thing)

    def good_sources(self):
        """By their names."""
        found = [sources.configuration_source(self.config()), sources.pull_secret("first"),
                 sources.manifests_source(sources.manifests("1.0.0", sources.EXTRA))]
        if self.BUNDLES:
            found.append(sources.trust_bundle((self.issuer.folder / "ca.crt").read_text()))
        return {each["metadata"]["name"]: each for each in found}

    def add_runtime(self):
        self.kcp_api.request("POST", RUNTIME.rpartition("/")[0], {
            "apiVersion": "infrastructuremanager.kyma-project.io/v1", "kind": "Runtime",
            "metadata": {"name": NAME, "namespace": KCP, "labels": {"operator.kyma-project.io/kyma-name": "kyma-1"}},
            "spec": RUNTIME_SPEC})

    def resource(self):
        return self.kcp_api.get(RESOURCE)

    def until(self, what, good):
        """Waits until the RuntimeBootstrapper is as `good` says, and returns it."""
        def look():
            found = self.resource()
            return found if found and good(found) else None
        return wait_until(look, PATIENCE, lambda: f"{what}; it is {json.dumps(self.resource(), indent=1)}\n{self.manager.tail(8)}",
                          every=0.05)

    def until_ready(self, version, different_from=None):
        """All is told as it should be once the runtime has what is wanted and it runs."""
        def ready(r):
            return (condition(r, "Ready") == ("True", "Ready") and r["status"].get("installedVersion") == version
                    and r["status"].get("digest") != different_from)
        found = self.until(f"version {version} is ready", ready)
        status = found["status"]
        for kind, reason in (("Installed", "Ready"), ("Compatible", "Validated"), ("ConfigurationSynced", "Synced"),
                             ("RuntimeBootstrapperReady", "RuntimeBootstrapperConfigured")):
            self.assertEqual(condition(found, kind), ("True", reason), kind)
        self.assertEqual((status["state"], status["mode"]), ("Ready", "direct"))
        self.assertEqual(status["observedGeneration"], found["metadata"]["generation"])
        self.assertEqual(status["digest"], status["wantedDigest"])
        self.assertNotIn("lastError", status)
        self.assertIn("lastSyncTime", status)
        parts = {each["part"]: each for each in status["resources"]}
        self.assertEqual(set(parts), {"config", "manifests", "pullSecret"} | ({"trustBundle"} if self.BUNDLES else set()))
        for part, path in (("config", f"{collection('configmaps', KCP)}/{CONFIG}"),
                           ("manifests", f"{collection('configmaps', KCP)}/{MANIFESTS}"),
                           ("pullSecret", f"{collection('secrets', KCP)}/{PULL_SECRET}")):
            self.assertEqual(parts[part]["resourceVersion"], self.kcp_api.get(path)["metadata"]["resourceVersion"], part)
            self.assertRegex(parts[part]["digest"], "^[0-9a-f]{16}$")
        self.parts = parts
        return found

    # --- what is on the runtime --------------------------------------------------------

    def skr_get(self, kind, name):
        return self.skr_api.get(on_skr(kind, name))

    def until_on_skr(self, kind, name, good, what):
        def look():
            found = self.skr_get(kind, name)
            return found if good(found) else None
        return wait_until(look, PATIENCE, lambda: f"{kind} {name} {what}; it is {self.skr_get(kind, name)}\n{self.manager.tail(8)}",
                          every=0.05)

    def set_ready(self):
        """As the controller of Deployments would, when the pods are."""
        generation = self.skr_get("Deployment", DEPLOYMENT)["metadata"]["generation"]
        self.skr_api.patch(on_skr("Deployment", DEPLOYMENT) + "/status", {"status": {
            "observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}})

    def kim_installs(self):
        """What KIM does on a runtime, as it has it by today."""
        self.skr.kubectl("create", "namespace", SKR)
        def apply(stdin):
            self.skr.kubectl("apply", "--server-side", f"--field-manager={KIM}", "-f", "-", stdin=stdin)
        apply(sources.manifests("1.0.0", sources.EXTRA))
        apply(sources.configuration_source(self.config(), SKR))
        apply(sources.pull_secret("first", SKR))
        if self.BUNDLES:
            apply(sources.trust_bundle((self.issuer.folder / "ca.crt").read_text()))
        self.skr_api.request("POST", collection("configmaps", SKR), sources.config_map("foreign", {"a": "b"}, SKR))
        self.set_ready()

    def versions_on_skr(self):
        """resourceVersions of all that is in the namespace, and of what is made there by whoever."""
        return {(plural, item["metadata"]["name"]): item["metadata"]["resourceVersion"]
                for plural, group in MANIFEST_KINDS.values() for item in self.skr_api.get(collection(plural, SKR, group))["items"]}

    def password_on_skr(self):
        data = self.skr_get("Secret", PULL_SECRET)["data"][".dockerconfigjson"]
        return next(p for p in ("first", "second", "third") if sources.pull_secret(p)["data"][".dockerconfigjson"] == data)

    def looks(self):
        return self.metric("controller_runtime_reconcile_total", controller="runtime-bootstrapper")

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
        digest, parts = self.resource()["status"]["digest"], self.parts
        generation = self.skr_get("Deployment", DEPLOYMENT)["metadata"]["generation"]
        self.put(sources.pull_secret("second"))
        self.until_ready("1.0.0", different_from=digest)
        self.assertEqual(self.password_on_skr(), "second")
        self.assertEqual(self.skr_get("Secret", PULL_SECRET)["type"], "kubernetes.io/dockerconfigjson")
        self.assertNotEqual(self.parts["pullSecret"]["digest"], parts["pullSecret"]["digest"])
        for part in set(parts) - {"pullSecret"}:
            self.assertEqual(self.parts[part], parts[part])
        self.assertEqual(self.skr_get("Deployment", DEPLOYMENT)["metadata"]["generation"], generation)

    def refused(self):
        before = self.resource()["status"]
        there = self.versions_on_skr()
        self.put(sources.configuration_source(self.config(features=("fly",))))
        found = self.until("is refused", lambda r: condition(r, "Compatible") == ("False", "Invalid"))
        for kind, reason in (("ConfigurationSynced", "FormerSetKept"), ("Ready", "Refused"),
                             ("RuntimeBootstrapperReady", "RuntimeBootstrapperConfigurationFailed")):
            self.assertEqual(condition(found, kind), ("False", reason), kind)
        self.assertEqual(condition(found, "Installed"), ("True", "Ready"))
        field = f'{CONFIG}.json.availableFeatures[0]: "{sources.FEATURE}fly" is no feature'
        self.assertIn(field, message(found, "Compatible"))
        self.assertIn(field, found["status"]["lastError"])
        for same in ("state", "digest", "installedVersion", "lastSyncTime", "resources"):
            self.assertEqual(found["status"][same], before[same], same)
        self.assertNotIn("wantedDigest", found["status"])
        self.assertEqual(self.versions_on_skr(), there)
        # What it has is kept in place meanwhile, by the runtime's own copy.
        self.skr_api.delete(on_skr("ConfigMap", CONFIG))
        kept = self.until_on_skr("ConfigMap", CONFIG, bool, "is back")
        self.assertEqual(kept["data"], sources.configuration_source(self.config())["data"])
        self.put(sources.configuration_source(self.config()))
        self.assertEqual(self.until_ready("1.0.0")["status"]["digest"], before["digest"])

    def upgraded(self):
        before = self.resource()["status"]
        self.put(sources.manifests_source(sources.manifests("2.0.0")))
        found = self.until("is being upgraded", lambda r: r["status"]["digest"] != before["digest"])
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
        digest = self.resource()["status"]["digest"]
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
        self.assertEqual(self.until_ready("2.0.0")["status"]["digest"], digest)
        self.assertGreaterEqual(self.metric("rw_bootstrapper_syncs_total", result="repaired") - repairs, 2)

    def suspended(self):
        digest = self.resource()["status"]["digest"]
        self.kcp_api.patch(RESOURCE, {"spec": {"suspend": True}})
        found = self.until("is suspended", lambda r: r["status"]["state"] == "Suspended")
        self.assertEqual(condition(found, "Ready"), ("Unknown", "Suspended"))
        self.assertEqual(found["status"]["observedGeneration"], found["metadata"]["generation"])
        self.assertEqual((found["status"]["digest"], found["status"]["installedVersion"]), (digest, "2.0.0"))
        looks, there = self.looks(), self.versions_on_skr()
        self.put(sources.pull_secret("third"))
        wait_until(lambda: self.looks() > looks, PATIENCE, "the change is looked at", every=0.05)
        self.assertEqual(self.versions_on_skr(), there)
        self.assertEqual(self.resource()["status"], found["status"])
        self.kcp_api.patch(RESOURCE, {"spec": {"suspend": False}})
        self.until_ready("2.0.0", different_from=digest)
        self.assertEqual(self.password_on_skr(), "third")

    def restarted(self):
        """Another process has nothing to do; and makes no RuntimeBootstrapper, so that a deleted one stays away."""
        there, told = self.versions_on_skr(), self.resource()["metadata"]["resourceVersion"]
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.manager = self.start_manager("--bootstrapper-mode=direct", "--signal-settle=100ms")
        wait_until(lambda: self.metric("rw_bootstrapper_syncs_total", result="unchanged"), PATIENCE,
                   lambda: f"the runtime is looked at:\n{self.manager.tail()}", every=0.05)
        wait_until(lambda: self.metric("rw_bootstrapper_current_runtimes") == 1, PATIENCE, "it counts as current", every=0.05)
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
        self.assertIsNotNone(self.kcp_api.get(RUNTIME))
        wait_until(lambda: "BootstrapperRemoved" in self.kcp.events_of(NAME, KCP), PATIENCE, "it is told", every=0.1)

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

    def test_what_kim_installed_is_taken_over_kept_in_step_and_undeployed(self):
        for each in self.good_sources().values():
            self.put(each)
        self.kim_installs()
        for step in (self.taken_over, self.rotated, self.refused, self.upgraded, self.repaired, self.suspended, self.restarted,
                     self.deleted, self.installed_by_hand):
            step()
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())

    # --- what is broken ----------------------------------------------------------------

    def broken(self):
        """What is put, the condition's reason, and what it says."""
        good = sources.manifests("1.0.0")
        in_manifests = f"ConfigMap {KCP}/{MANIFESTS}, manifests.yaml: "
        yield (sources.manifests_source(good + "---\n" + sources.BROKEN_DOCUMENT), "Invalid", in_manifests + "document 5, line ")
        yield (sources.manifests_source(good + "---\n" + sources.UNKNOWN_KIND), "RefusedByRuntime",
               "the runtime does not know the kind Nothing of example.com/v1 (nothing)")
        yield (sources.manifests_source(good + "---\n" + sources.too_large()), "RefusedByRuntime",
               f"the runtime would not take ConfigMap {SKR}/rt-bootstrapper-large: ")
        yield (sources.pull_secret("first", kind="Opaque"), "Invalid",
               f'Secret {KCP}/{PULL_SECRET}, type: is "Opaque" and not kubernetes.io/dockerconfigjson')
        if self.BUNDLES:
            pem = (self.issuer.folder / "ca.crt").read_text()
            yield (sources.trust_bundle(pem + "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n"),
                   "Invalid", f"ClusterTrustBundle {TRUST_BUNDLE}, spec.trustBundle: ")

    def test_what_is_broken_is_told_and_never_written(self):
        good, former = self.good_sources(), None
        for bad, reason, text in self.broken():
            self.put(bad)
            name = bad["metadata"]["name"]
            if former is None:
                for each in set(good) - {name}:
                    self.put(good[each])
                self.add_runtime()
                self.after_creation()
            elif former != name:
                self.put(good[former])
            former = name
            found = self.until(f"tells: {text}", lambda r: text in r.get("status", {}).get("lastError", ""))
            self.assertEqual(condition(found, "Compatible"), ("False", reason), text)
            self.assertIn(text, message(found, "Compatible"))
            self.assertEqual(condition(found, "Ready"), ("False", "Refused"))
            self.assertEqual(condition(found, "ConfigurationSynced"), ("False", "NothingInPlace"))
            self.assertEqual(condition(found, "RuntimeBootstrapperReady"), ("False", "RuntimeBootstrapperConfigurationFailed"))
            self.assertEqual(found["status"]["state"], "NotStarted")
            self.assertNotIn("digest", found["status"])
            self.assertEqual(self.metric("rw_bootstrapper_writes_total"), 0, text)
            self.assertIsNone(self.skr_api.get(f"/api/v1/namespaces/{SKR}"), text)
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


class Real(Story, landscape.Real, harness.TestCase):
    BUNDLES = False
    ROLE = f"{MANAGER}-direct"
    WANTED = (*landscape.Real.WANTED, "runtimes.infrastructuremanager.kyma-project.io")
    OURS = ("operator.kyma-project.io_runtimebootstrappers.yaml",)

    def deploy_manager(self):
        super().deploy_manager()
        for name in ("signal", "direct"):
            self.kcp.kubectl("apply", "-f", ROOT / "deploy" / "manager" / f"rbac-{name}.yaml")

    def after_creation(self):
        """This server has no ClusterTrustBundles, and the made RuntimeBootstrapper asks for one."""
        text = "the control plane does not serve certificates.k8s.io ClusterTrustBundles"
        found = self.until(f"tells: {text}", lambda r: text in r.get("status", {}).get("lastError", ""))
        self.assertEqual(condition(found, "Compatible"), ("False", "Invalid"))
        self.assertEqual(self.metric("rw_bootstrapper_writes_total"), 0)
        self.kcp_api.patch(RESOURCE, {"spec": {"trustBundleRef": None}})

    def test_what_kim_installed_is_taken_over_kept_in_step_and_undeployed(self):
        super().test_what_kim_installed_is_taken_over_kept_in_step_and_undeployed()
        self.assertEqual(self.audit.refused(), [])
        self.audit.until_used([self.kcp.get("role", self.ROLE, KCP)])
        for verb, what in (("delete", "runtimebootstrappers.operator.kyma-project.io"), ("get", "secrets"), ("update", "secrets"),
                           ("create", "secrets"), ("delete", "configmaps"), ("create", "runtimes.infrastructuremanager.kyma-project.io"),
                           ("delete", "runtimes.infrastructuremanager.kyma-project.io")):
            answer = self.kcp.attempt("auth", "can-i", verb, what, "-n", KCP, "--as", self.audit.user)
            self.assertEqual((answer.returncode, answer.stdout.strip()), (1, "no"), f"{verb} {what}: {answer.stderr}")


if __name__ == "__main__":
    harness.main()
