"""What the tests of the manager's direct mode play in, beside landscape.py: the sources in KCP, a Runtime, and what KIM and
the controllers of Deployments do on it. Waits tell what there was instead.
"""

import json

import bootstrapper_sources as sources
from api import Api, collection
from bootstrapper_sources import DEPLOYMENT, PULL_SECRET, TRUST_BUNDLE
from harness import wait_until
from landscape import PATIENCE, RUNTIME_SPEC

KCP, SKR = "kcp-system", "kyma-system"
STATE = "runtime-watcher-system"  # in KCP
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


class Bootstrapped:
    """To be mixed into a TestCase before landscape.Embedded or landscape.Real. BUNDLES says whether the clusters serve
    ClusterTrustBundles.
    """

    OPTIONS = ("--bootstrapper-mode=direct", "--create-runtime-bootstrappers", "--runtime-condition", "--signal-settle=100ms")

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
        self.kcp_api.patch(RUNTIME + "/status", {"status": {"state": "Ready"}})

    def resource(self):
        return self.kcp_api.get(RESOURCE)

    def until(self, what, good):
        """Waits until the RuntimeBootstrapper is as `good` says, and returns it."""
        def look():
            self.kcp.check_none_refused()
            found = self.resource()
            return found if found and good(found) else None
        return wait_until(look, PATIENCE, lambda: f"{what}; it is {json.dumps(self.resource(), indent=1)}\n{self.manager.tail(8)}",
                          every=0.05)

    def units(self):
        """The status' units, by their names."""
        return {each["name"]: each for each in self.resource().get("status", {}).get("units", [])}

    def until_ready(self, version, credentials_after=None):
        """All is told as it should be once the runtime has what is wanted and it runs."""
        def ready(r):
            return (condition(r, "Ready") == ("True", "Ready") and r["status"].get("installedVersion") == version
                    and r["status"]["units"][0]["digest"] != credentials_after)
        found = self.until(f"version {version} is ready", ready)
        status = found["status"]
        for kind, reason in (("Installed", "Ready"), ("Compatible", "Validated"), ("ConfigurationSynced", "Synced"),
                             ("RuntimeBootstrapperReady", "RuntimeBootstrapperConfigured")):
            self.assertEqual(condition(found, kind), ("True", reason), kind)
        wait_until(lambda: condition(self.kcp_api.get(RUNTIME), "RuntimeBootstrapperReady") == ("True", "RuntimeBootstrapperConfigured"),
                   PATIENCE, "the Runtime has the condition", every=0.05)
        self.assertEqual((status["state"], status["mode"]), ("Ready", "direct"))
        self.assertEqual(status["observedGeneration"], found["metadata"]["generation"])
        self.assertNotIn("lastError", status)
        self.assertEqual([each["name"] for each in status["units"]], ["credentials", "bootstrapper"])
        for unit in status["units"]:
            self.assertEqual((unit["phase"], unit["desiredDigest"]), ("Applied", unit["digest"]))
            self.assertRegex(unit["digest"], "^[0-9a-f]{16}$")
            self.assertIn("lastAppliedTime", unit)
        self.assertIn({"unit": "bootstrapper", "apiVersion": "apps/v1", "kind": "Deployment", "namespace": SKR, "name": DEPLOYMENT},
                      status["inventory"])
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
        generation = self.until_on_skr("Deployment", DEPLOYMENT, bool, "is there")["metadata"]["generation"]
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
