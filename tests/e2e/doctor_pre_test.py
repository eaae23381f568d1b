"""`runtime-watcher doctor --pre` names what an installation lacks, with a command that mends it. The commands are run as they are,
but for those that download something, in whose place the small definitions of deploy/dev are applied."""

import base64
import json
import os
import pathlib
import pty
import re
import shlex
import shutil
import subprocess
import time
import unittest

import control_plane
import harness
from api import Api, collection
from harness import BINARY, DEV_BINARY, ROOT, Process, runtime_watcher, until_established, wait_until

KUBECTL = shutil.which("kubectl", path=os.environ.get("KUBEBUILDER_ASSETS", "") + os.pathsep + os.environ["PATH"])
ISTIO = ("networking.istio.io", "v1beta1")
GATEWAY = collection("gateways", "kcp-system", *ISTIO) + "/klm-watcher"
ISSUER = collection("issuers", "istio-system", "cert-manager.io", "v1") + "/klm-watcher-selfsigned"
ROOT_SECRET = collection("secrets", "istio-system") + "/klm-watcher"
DEFINITIONS = collection("customresourcedefinitions", group="apiextensions.k8s.io")
KLM_LEASE = collection("leases", "kcp-system", "coordination.k8s.io") + "/893110f7.kyma-project.io"
SERVICE = collection("services", "kcp-system") + "/runtime-watcher-manager-metrics"
DEPLOYMENT = collection("deployments", "kcp-system", "apps") + "/runtime-watcher-manager"
RUNTIME = collection("secrets", "kcp-system") + "/kubeconfig-runtime-1"
PKI = " && ".join(f"sed s/listener.kcp.example.com/HOST/ deploy/pki/{file} | kubectl apply -f -" for file in ("cert-manager.yaml", "gateway.yaml"))

# A path that is deleted; which check names it, how, and with which command. `None`: the command needs a download, or somebody else.
MISSING = [
    (GATEWAY, "gateway", "gateways.* not found", "sed s/listener.kcp.example.com/HOST/ deploy/pki/gateway.yaml | kubectl apply -f -", True),
    (ISSUER, "issuer", "issuers.* not found", "sed s/listener.kcp.example.com/HOST/ deploy/pki/cert-manager.yaml | kubectl", True),
    (ROOT_SECRET, "root", "secrets.* not found", "deploy/pki/cert-manager.yaml | kubectl apply", None),
    (f"{DEFINITIONS}/kymas.operator.kyma-project.io", "kinds", "Kyma .* is not served", "/main/config/crd/bases/operator.kyma-project.io_kymas.yaml", None),
    (f"{DEFINITIONS}/virtualservices.networking.istio.io", "kinds", "VirtualService .* is not served", "istioctl install", None),
    (f"{DEFINITIONS}/certificates.cert-manager.io", "kinds", "Certificate .* is not served", "deploy/manager/gardener", None),
    (collection("namespaces") + "/istio-system", "namespaces", "missing: istio-system", "kubectl create namespace istio-system", True),
]


def written(kubeconfig, token, file):
    """The kubeconfig of another user."""
    config = kubeconfig.read_text()
    old = Api(kubeconfig)
    file.write_text(config.replace(old._token, token))
    old.close()
    return file


class Landscape:
    """A control plane and a runtime, where nothing is missing after `prepare`."""

    TOO_OLD = set()  # checks that fail for the version of KCP

    def setUp(self):
        super().setUp()
        self.start_servers()
        self.apis = {name: Api(file) for name, file in self.clusters.items()}
        for api in self.apis.values():
            self.addCleanup(api.close)
        self.kcp = self.apis["kcp"]

    def start_servers(self):
        server = self.start(Process("api-server", [DEV_BINARY, "api-server", "--address", "127.0.0.1:0", "--dir", self.folder, "--cluster",
                                                   "kcp,runtime-1", "--authorization", "rbac"]))
        server.wait_listening("api-server")
        self.clusters = {name: self.folder / f"{name}.kubeconfig" for name in ("kcp", "runtime-1")}

    def shell(self, command, cluster="kcp"):
        """A command that doctor names, as an administrator in the root of the project, who has a host for HOST."""
        folder = pathlib.Path(KUBECTL).parent
        done = subprocess.run(command.replace("/HOST/", "/events.kcp/"), shell=True, executable="/bin/bash", cwd=ROOT, text=True, capture_output=True, timeout=60, env={
            **os.environ, "KUBECONFIG": str(self.clusters[cluster]), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "HOME": str(self.folder)})
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    def prepare(self):
        for name in ("kcp-system", "istio-system"):
            self.shell(f"kubectl create namespace {name}")
        self.define()
        self.shell(PKI)
        self.issue_root()
        self.shell("kubectl create namespace kyma-system", "runtime-1")
        self.add_runtime(self.clusters["runtime-1"])

    def define(self):
        self.shell("kubectl apply -f deploy/dev")
        until_established(lambda *words: self.shell("kubectl " + " ".join(words)), "--all")

    def issue_root(self, host="events.kcp"):
        """As cert-manager does."""
        ca, key = self.folder / "root.crt", self.folder / "root.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=klm-watcher",
                        "-addext", f"subjectAltName=DNS:{host}", "-days", "30", "-keyout", key, "-out", ca], check=True, capture_output=True, timeout=30)
        data = {entry: base64.b64encode(file.read_bytes()).decode() for entry, file in (("tls.crt", ca), ("ca.crt", ca), ("tls.key", key))}
        self.kcp.apply(ROOT_SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "klm-watcher", "namespace": "istio-system"},
                                     "type": "kubernetes.io/tls", "data": data})

    def add_runtime(self, kubeconfig):
        self.kcp.apply(RUNTIME, {
            "apiVersion": "v1", "kind": "Secret", "data": {"config": base64.b64encode(kubeconfig.read_bytes()).decode()},
            "metadata": {"name": "kubeconfig-runtime-1", "namespace": "kcp-system", "labels": {"operator.kyma-project.io/kyma-name": "runtime-1"}}})

    def account(self, cluster):
        """A kubeconfig of a ServiceAccount that has no rights."""
        api = self.apis[cluster]
        accounts = collection("serviceaccounts", "default")
        if api.get(collection("namespaces") + "/default") is None:
            api.request("POST", collection("namespaces"), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        api.request("POST", accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "someone"}})
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        token = api.request("POST", f"{accounts}/someone/token", request)["status"]["token"]
        return written(self.clusters[cluster], token, self.folder / f"{cluster}-someone.kubeconfig")

    def examine(self, *options, kubeconfig=None):
        """The exit code, and the findings."""
        done = runtime_watcher("doctor", "--pre", "--allow-local-runtimes", "--kubeconfig", kubeconfig or self.clusters["kcp"], "-o", "json", *options,
                               timeout=60)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return done.returncode, json.loads(done.stdout)["checks"]

    def failed(self, *options, **more):
        code, checks = self.examine(*options, **more)
        found = [check for check in checks if check["state"] == "failed"]
        self.assertEqual(code, 3 if found else 0, checks)
        return found

    def test_pre_names_the_rights_of_each_place_in_one_line(self):
        self.prepare()
        someone = self.account("kcp")
        _, checks = self.examine(kubeconfig=someone)
        rights = [check for check in checks if check["check"] == "rights"]
        places = ["the cluster", "namespace istio-system", "namespace kcp-system", "namespace runtime-watcher-system"]
        for check, place in zip(rights, places):
            self.assertTrue(check["message"].startswith(f"system:serviceaccount:default:someone may not, in {place}: "), check)
            self.assertRegex(check["message"], r"create, get, patch [^;]*rolebindings\.rbac\.authorization\.k8s\.io")
            grant = check["fix"].removeprefix("as an administrator of KCP: ")
            self.assertNotEqual(grant, check["fix"])
            self.shell(grant)
            self.shell(grant)  # it may have been given in part
        self.assertEqual(len(rights), len(places), rights)
        _, checks = self.examine(kubeconfig=someone)
        self.assertEqual({check["check"] for check in checks if check["state"] == "failed"}, self.TOO_OLD, checks)
        # What a mere installer may not read is not proven.
        self.assertEqual({check["check"] for check in checks if check["state"] == "not_proven"}, {"issuer", "root", "gateway", "klm-lease", "runtimes"}, checks)
        if not self.TOO_OLD:
            self.clusters["kcp"] = someone
            self.shell("kubectl apply -f deploy/crds && kubectl apply -k deploy/manager")


class Embedded(Landscape, harness.TestCase):
    def test_pre_is_well_before_and_after_an_installation(self):
        self.prepare()
        code, checks = self.examine()
        self.assertEqual((code, {check["state"] for check in checks}), (0, {"proven"}), checks)
        self.assertEqual([check["group"] for check in checks], sorted((check["group"] for check in checks), key=["kcp", "manager", "runtimes"].index))
        self.assertIsNone(self.kcp.get(DEPLOYMENT), "it is a dry run")
        self.shell("kubectl apply -f deploy/crds && kubectl apply -k deploy/manager")
        self.assertEqual(self.failed(), [])
        text = self.shell(f"kubectl kustomize deploy/manager | {BINARY} doctor --pre --allow-local-runtimes -f -")
        for line in ("KCP\nproven      version ", "What the manager needs\nproven      settings ", "Runtimes\nproven      runtime ", " 0 failed"):
            self.assertIn(line, text)

    def test_pre_leads_from_an_empty_control_plane_to_an_installation(self):
        self.shell("kubectl create namespace kyma-system", "runtime-1")
        found = self.failed()
        self.assertEqual({check["check"] for check in found}, {"namespaces", "kinds", "root"}, found)
        for check in found:
            if check["check"] == "namespaces":
                self.assertEqual(check["message"], "missing: istio-system, kcp-system")
                self.shell(check["fix"])
        self.define()
        found = self.failed()
        self.assertEqual({check["check"] for check in found}, {"issuer", "root", "gateway"}, found)
        for check in found:
            self.shell(check["fix"])
        self.issue_root()
        self.assertEqual(self.failed(), [])
        self.shell("kubectl apply -f deploy/crds && kubectl apply -k deploy/manager")

    def test_pre_names_each_missing_thing_with_its_command(self):
        self.prepare()
        for path, check, message, command, runs in MISSING:
            with self.subTest(path):
                before = self.kcp.get(path)
                self.kcp.delete(path)
                wait_until(lambda: self.kcp.get(path) is None, 10, f"{path} is deleted")
                found = self.failed()
                if check == "namespaces":  # and all in it
                    found = [each for each in found if each["check"] not in ("issuer", "root")]
                self.assertEqual([each["check"] for each in found], [check], found)
                self.assertRegex(found[0]["message"], message)
                self.assertIn(command, found[0]["fix"].replace(f" --kubeconfig {self.clusters['kcp']}", ""))
                if runs:
                    self.shell(found[0]["fix"])
                if "customresourcedefinitions" in path:
                    self.define()
                if "customresourcedefinitions" in path or check == "namespaces":
                    self.shell(PKI)
                if path == ROOT_SECRET or check == "namespaces":
                    self.issue_root()
                self.assertEqual(self.failed(), [], before)

    def test_pre_names_a_root_issuer_or_gateway_that_is_of_no_use(self):
        self.prepare()
        self.kcp.patch(GATEWAY, {"spec": {"servers": []}})
        self.kcp.patch(ROOT_SECRET, {"data": {"tls.crt": base64.b64encode(b"nothing").decode()}})
        found = {check["check"]: check for check in self.failed()}
        self.assertEqual(set(found), {"gateway", "root"}, found)
        self.assertIn("has 0 servers", found["gateway"]["message"])
        self.assertIn("has no usable tls.crt", found["root"]["message"])
        self.shell(found["gateway"]["fix"])
        self.issue_root()
        self.assertEqual(self.failed(), [])

    def test_pre_names_objects_of_others(self):
        self.prepare()
        self.kcp.apply(SERVICE, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE.rsplit("/", 1)[1], "namespace": "kcp-system"},
                                 "spec": {"ports": [{"port": 80}]}})
        [found] = self.failed()
        self.assertEqual(found["check"], "names")
        self.assertRegex(found["message"], "Service kcp-system/runtime-watcher-manager-metrics exists without the label .*, written by e2e$")
        self.shell(found["fix"].removeprefix("if it is not needed: "))
        self.assertEqual(self.failed(), [])
        self.shell("kubectl apply -f deploy/crds && kubectl apply -k deploy/manager")
        self.kcp.request("PATCH", f"{DEPLOYMENT}?fieldManager=autoscaler", {"spec": {"replicas": 5}}, "application/merge-patch+json")
        [found] = self.failed()
        self.assertEqual(found["check"], "names")
        self.assertRegex(found["message"], r"Deployment .* has fields of other clients: \.spec\.replicas of autoscaler$")
        self.shell(found["fix"])
        self.assertEqual(self.failed(), [])
        mine = self.folder / "my manager's \N{LATIN SMALL LETTER U WITH DIAERESIS}.yaml"
        mine.write_text(self.shell("kubectl kustomize deploy/manager").replace("replicas: 2", "replicas: 3"))
        self.kcp.request("PATCH", f"{DEPLOYMENT}?fieldManager=autoscaler", {"spec": {"replicas": 5}}, "application/merge-patch+json")
        [found] = self.failed("-f", mine)
        self.shell(found["fix"])
        self.assertEqual(self.failed("-f", mine), [])
        self.kcp.request("PATCH", f"{DEPLOYMENT}?fieldManager=autoscaler", {"spec": {"replicas": 5}}, "application/merge-patch+json")
        text = subprocess.run([BINARY, "doctor", "--pre", "--allow-local-runtimes", "-f", "-", "--kubeconfig", self.clusters["kcp"]],
                              input=mine.read_bytes(), capture_output=True, timeout=60).stdout.decode()
        [command] = re.findall("fix: with the same input: (.*)", text)
        self.shell(f"cat {shlex.quote(str(mine))} | {command}")
        self.assertEqual(self.failed("-f", mine), [])

    def test_pre_names_placeholders_of_the_manifests(self):
        self.prepare()
        self.shell("kubectl apply -f deploy/pki/gateway.yaml")
        self.issue_root("listener.kcp.example.com")
        found = {check["check"]: check for check in self.failed()}
        self.assertEqual(set(found), {"gateway", "root"}, found)
        for check in found.values():
            self.assertIn("listener.kcp.example.com", check["message"])
            self.shell(check["fix"])
        self.issue_root()
        self.assertEqual(self.failed(), [])

    def test_pre_could_not_ask_where_requests_fail(self):
        self.prepare()
        self.addCleanup(self.kcp.request, "DELETE", "/devserver/faults")
        kinds = "/apis/operator.kyma-project.io/v1beta2"
        for path, fault in (("/api/v1/namespaces/istio-system/secrets", {"status": 500}), (kinds, {"status": 500}), (kinds, {"disconnect": True}),
                            (GATEWAY, {"status": 503}), (KLM_LEASE, {"disconnect": True}), (RUNTIME.rpartition("/")[0], {"status": 500})):
            with self.subTest(path, fault=fault):
                self.kcp.request("PUT", "/devserver/faults", [{"verbs": ["get", "list"], "path": path, **fault}])
                done = runtime_watcher("doctor", "--pre", "--allow-local-runtimes", "--kubeconfig", self.clusters["kcp"], timeout=60)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertRegex(done.stderr, "runtime-watcher: KCP(:| does not respond:) ")
                self.assertNotIn("\N{BALLOT X}", done.stdout)

    def test_pre_names_the_rights_that_mode_direct_lacks_on_a_runtime(self):
        self.prepare()
        manager = self.folder / "manager"
        shutil.copytree(ROOT / "deploy" / "manager", manager)
        deployment = manager / "deployment.yaml"
        deployment.write_text(deployment.read_text().replace("- --pin-san", "- --pin-san\n            - --bootstrapper-mode=direct"))
        unknown = lambda: next(check for check in self.examine("-f", manager)[1] if check["check"] == "bootstrapper")
        self.assertEqual(unknown()["state"], "not_proven")
        self.assertIn("runtime-bootstrapper-manifests", unknown()["message"])
        self.shell("kubectl apply -f deploy/samples/bootstrapper-sources.yaml")
        self.add_runtime(self.account("runtime-1"))
        watcher, bootstrapper = self.failed("-f", manager)
        for part in ("for the Runtime Bootstrapper system:serviceaccount:default:someone may not, in the cluster: ", ", in namespace kyma-system: ",
                     "create, delete, get, patch ", "configmaps"):
            self.assertIn(part, bootstrapper["message"])
        for each in (watcher, bootstrapper, bootstrapper):
            self.shell(each["fix"].removeprefix("on the runtime: "), "runtime-1")
        self.assertEqual(self.failed("-f", manager), [])

    def test_pre_names_the_rights_that_a_kubeconfig_lacks_on_its_runtime(self):
        self.prepare()
        self.add_runtime(self.account("runtime-1"))
        [found] = self.failed()
        self.assertEqual((found["group"], found["check"], found["runtime"]), ("runtimes", "runtime", "runtime-1"))
        for part in ("system:serviceaccount:default:someone may not, in the cluster: ", ", in namespace kyma-system: ", "validatingwebhookconfigurations"):
            self.assertIn(part, found["message"])
        grant = found["fix"].removeprefix("on the runtime: ")
        self.assertNotEqual(grant, found["fix"])
        self.shell(grant, "runtime-1")
        self.shell(grant, "runtime-1")  # it may have been given in part
        self.assertEqual(self.failed(), [])
        role = collection("roles", "kyma-system", "rbac.authorization.k8s.io") + "/runtime-watcher-manager"
        rules = [rule for rule in self.apis["runtime-1"].get(role)["rules"] if rule["resources"] != ["deployments"]]
        self.apis["runtime-1"].patch(role, {"rules": rules})
        [found] = self.failed()
        self.assertIn("may not, in namespace kyma-system: create, delete, get, list, patch, update, watch deployments.apps", found["message"])

    def test_pre_suggests_the_names_that_are_near(self):
        """Of Kymas, and of runtimes with a kubeconfig while the kind of Kymas does not exist."""
        self.prepare()
        [found] = self.failed("runtime-9")
        self.assertEqual(found["message"], "there is no Kyma runtime-9; did you mean runtime-1?")
        self.assertIn("correct the name", found["fix"])
        self.kcp.delete(f"{DEFINITIONS}/kymas.operator.kyma-project.io")
        wait_until(lambda: any("no Secret" in each["message"] for each in self.failed("runtime-9")), 10, "the kind is gone")
        [found] = [each for each in self.failed("runtime-9") if each["check"] == "runtime"]
        self.assertRegex(found["message"], "^runtime-9: no Secret .*; did you mean runtime-1[?]$")

    def test_pre_tells_of_another_manager(self):
        self.prepare()
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        self.kcp.apply(KLM_LEASE, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {
            "name": "893110f7.kyma-project.io", "namespace": "kcp-system"}, "spec": {"holderIdentity": "klm", "renewTime": now, "leaseDurationSeconds": 15}})
        code, checks = self.examine()
        [found] = [check for check in checks if check["check"] == "klm-lease"]
        self.assertEqual((code, found["state"]), (0, "not_proven"))
        self.assertIn("is held by klm): the manager will write nothing", found["message"])

    def test_pre_ends_with_1_without_a_control_plane_and_with_2_for_a_text_that_is_no_manifest(self):
        nowhere = self.folder / "nowhere"
        nowhere.write_text(self.clusters["kcp"].read_text().replace("127.0.0.1:", "127.0.0.1:1/"))
        for command in (("doctor", "--pre"), ("uninstall", "--dry-run")):
            done = runtime_watcher(*command, "--kubeconfig", nowhere, timeout=60)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertRegex(done.stderr, "KCP does not respond: .*\n  fix: check --kubeconfig and --context")
        wrong = self.folder / "wrong.yaml"
        wrong.write_text("kind: [unclosed")
        done = runtime_watcher("doctor", "--pre", "--kubeconfig", self.clusters["kcp"], "-f", wrong)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("wrong.yaml", done.stderr)
        done = runtime_watcher("doctor", "-f", wrong)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("--pre", done.stderr)

    def test_pre_tries_the_given_manifests_with_the_settings_in_them(self):
        self.prepare()
        manager = self.folder / "manager"
        shutil.copytree(ROOT / "deploy" / "manager", manager)
        deployment = manager / "deployment.yaml"
        deployment.write_text(deployment.read_text().replace("- --pin-san", "- --pin-san\n            - --issuer=another\n            - --no-such-flag"))
        found = {check["check"]: check for check in self.failed("-f", manager)}
        self.assertIn("--no-such-flag", found["settings"]["message"])
        deployment.write_text(deployment.read_text().replace("- --no-such-flag", "- --certificates=gardener"))
        [issuer] = self.failed("-f", manager)
        self.assertIn("another", issuer["message"])
        self.assertEqual(issuer["fix"], "sed s/listener.kcp.example.com/HOST/ deploy/pki/gardener.yaml | "
                                           f"kubectl --kubeconfig {self.clusters['kcp']} apply -f -")
        deployment.write_text(deployment.read_text().replace("          env:\n", "          env:\n            - {name: RW_ISTIO_NAMESPACE, value: mesh}\n"))
        self.assertIn("mesh", next(check for check in self.failed("-f", manager) if check["check"] == "namespaces")["message"])
        deployment.write_text(deployment.read_text().replace("replicas: 2", "replicas: many"))
        self.assertIn("manifests", {check["check"] for check in self.failed("-f", manager)})

    def test_pre_shows_its_progress_to_a_person_where_it_takes_long(self):
        self.prepare()
        self.kcp.request("PUT", "/devserver/faults", [{"verbs": ["get"], "path": "/api/v1/namespaces/istio-system", "times": 1, "latency": "2s"}])
        main, terminal = pty.openpty()
        self.addCleanup(os.close, main)
        done = subprocess.run([BINARY, "doctor", "--pre", "--allow-local-runtimes", "--kubeconfig", self.clusters["kcp"]], stdout=subprocess.PIPE,
                              stderr=terminal, timeout=30)
        os.close(terminal)
        self.assertEqual(done.returncode, 0, done.stdout)
        shown = os.read(main, 4096).decode()
        self.assertIn("namespaces ...", shown)
        self.assertTrue(shown.endswith("\r\x1b[K"), "the line is erased")


@unittest.skipUnless(os.environ.get("KUBEBUILDER_ASSETS"), "KUBEBUILDER_ASSETS names no real API server")
class Real(Landscape, harness.TestCase):
    """An API server that lets nobody grant what he may not do himself."""

    TOO_OLD = {"version", "manifests"}  # policy/v1 came with Kubernetes 1.21

    def start_servers(self):
        self.clusters = {name: control_plane.plane_of(self, name)[1] for name in ("kcp", "runtime-1")}


if __name__ == "__main__":
    if not KUBECTL:
        harness.skip("kubectl is not installed; deploy/install-packages.sh test")
    harness.main()
