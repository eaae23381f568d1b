"""kube-devserver as a process: as envtest of controller-runtime starts it, and by its own flags, with faults.

RW_TEST_KUBE may name the folder of a recorded operator's conversation: its Lease election, in protobuf, is sent again, in
place of one that is made here.
"""

import base64
import http.client
import json
import os
import pathlib
import signal
import ssl
import subprocess
import sys
import threading
import time

import harness
from harness import BINARY, ROOT, Process, free_port, wait_until
from wire import MAGIC, PROTOBUF, message, text_at, with_text

PROGRAM = pathlib.Path(BINARY).parent / "kube-devserver"
ASSETS = pathlib.Path(BINARY).parent / "envtest"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def make_pair(folder, name, subject, ca=None, extensions=()):
    """An ECDSA pair, self-signed or by `ca` (a path without its suffix). Keys may be read by the group, as envtest's."""
    base = folder / name
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "7", "-keyout",
            f"{base}.key", "-out", f"{base}.crt", "-subj", subject,
            *(["-CA", f"{ca}.crt", "-CAkey", f"{ca}.key"] if ca else []), *(x for e in extensions or ["keyUsage=critical,digitalSignature,keyCertSign,cRLSign"] for x in ("-addext", e)))
    os.chmod(f"{base}.key", 0o640)
    return base


def made_election():
    """An election in the shape of the recorded one, for where there is none."""
    path = "/apis/coordination.k8s.io/v1/namespaces/election/leases"
    begun = int(time.time())

    def step(method, path, status, lease=b""):
        if lease:
            lease = MAGIC + message((1, message((1, "coordination.k8s.io/v1"), (2, "Lease"))), (2, lease), (3, ""), (4, ""))
        return {"method": method, "path": path, "status": status, "request_base64": base64.b64encode(lease), "accept": PROTOBUF,
                "request_content_type": PROTOBUF, "response_content_type": PROTOBUF}

    def lease(renewed, *identity):
        metadata = message((1, "operator"), (3, "election"), *identity)
        spec = message((1, "operator_1"), (2, 15), (3, message((1, begun))), (4, message((1, begun + renewed))), (5, 0))
        return message((1, metadata), (2, spec))
    return [step("GET", path + "/operator", 404), step("POST", path, 201, lease(0)),
            *(step("PUT", path + "/operator", 200, lease(i, (5, "uid"), (6, "version"))) for i in range(1, 4))]



class Api:
    """A kept-alive connection. Not to be shared between threads."""

    def __init__(self, test, port, context, headers=None, prefix=""):
        self._headers = headers or {}
        self._prefix = prefix
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
        test.addCleanup(self.connection.close)

    def send(self, method, path, body=None, content_type="application/json", accept="application/json", headers=None):
        data = json.dumps(body) if isinstance(body, (dict, list)) else body
        self.connection.request(method, self._prefix + path, data, {
            "Content-Type": content_type, "Accept": accept, **self._headers, **(headers or {})})
        self.answer = self.connection.getresponse()
        self.text = self.answer.read()
        return self.answer.status

    def json(self):
        return json.loads(self.text)

    def expect(self, status, *arguments, **named):
        assert self.send(*arguments, **named) == status, f"{arguments[:2]}: {self.answer.status} {self.text[:500]!r}"
        return self.json() if self.text[:1] == b"{" else self.text


class Envtest(harness.TestCase):
    """envtest's flags, files and probes, but for the interval of its probes, which is 100 ms there and 1 ms here."""

    def setUp(self):
        super().setUp()
        self.certs = self.folder / "certs"
        self.certs.mkdir()
        serving = make_pair(self.certs, "serving-ca", "/CN=serving CA")
        make_pair(self.certs, "apiserver", "/CN=localhost", serving,
                  ["subjectAltName=DNS:localhost,IP:127.0.0.1", "extendedKeyUsage=serverAuth", "basicConstraints=CA:FALSE"])
        ca = make_pair(self.certs, "client-cert-auth-ca", "/CN=clients")
        usage = ["extendedKeyUsage=clientAuth", "basicConstraints=CA:FALSE"]
        self.user = make_pair(self.folder, "user", "/O=system:masters/CN=default", ca, usage)
        self.guest = make_pair(self.folder, "guest", "/O=guests/CN=guest", ca, usage)
        make_pair(self.certs, "sa-signer", "/CN=sa")

    def context(self, user=None):
        context = ssl.create_default_context(cafile=self.certs / "serving-ca.crt")
        if user:
            context.load_cert_chain(f"{user}.crt", f"{user}.key")
        return context

    def run_help(self, name, flag):
        done = subprocess.run([ASSETS / name, "--help"], text=True, capture_output=True, timeout=20)
        self.assertEqual(done.returncode, 0)
        return any(line.strip().startswith(flag) for line in (done.stdout + done.stderr).splitlines())

    def start_program(self, name, **flags):
        lines = [f"--{flag.replace('_', '-')}={value}" for flag, value in sorted(flags.items())]
        return subprocess.Popen([ASSETS / name, *lines], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_ready(self, program, connection, path):
        self.addCleanup(connection.close)

        def probe():
            self.assertIsNone(program.poll(), "it ended")
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                return answer.status == 200
            except OSError:
                connection.close()
        wait_until(probe, 20, path, every=0.001)

    def start_control_plane(self):
        # With --unsafe-no-fsync in etcd's help it is passed; kube-apiserver of today has no --insecure-port.
        self.assertTrue(self.run_help("etcd", "--unsafe-no-fsync"))
        self.assertFalse(self.run_help("kube-apiserver", "--insecure-port"))
        self.lap("help")
        etcd_port, self.port = free_port(), free_port()
        self.etcd = self.start_program(
            "etcd", advertise_client_urls=f"http://127.0.0.1:{etcd_port}", data_dir=self.folder / "etcd",
            listen_client_urls=f"http://127.0.0.1:{etcd_port}", listen_peer_urls=f"http://127.0.0.1:{free_port()}",
            unsafe_no_fsync="true")
        self.addCleanup(self.etcd.kill)
        self.wait_ready(self.etcd, http.client.HTTPConnection("127.0.0.1", etcd_port), "/health")
        self.lap("etcd")
        self.apiserver = self.start_program(
            "kube-apiserver", allow_privileged="true", authorization_mode="RBAC", bind_address="127.0.0.1",
            cert_dir=self.certs, client_ca_file=self.certs / "client-cert-auth-ca.crt",
            disable_admission_plugins="ServiceAccount", etcd_servers=f"http://127.0.0.1:{etcd_port}",
            secure_port=self.port, service_account_issuer=f"https://127.0.0.1:{self.port}/",
            service_account_key_file=self.certs / "sa-signer.crt",
            service_account_signing_key_file=self.certs / "sa-signer.key", service_cluster_ip_range="10.0.0.0/24")
        self.addCleanup(self.apiserver.kill)
        unchecked = ssl._create_unverified_context()
        self.wait_ready(self.apiserver, http.client.HTTPSConnection("127.0.0.1", self.port, context=unchecked), "/healthz")
        self.lap("kube-apiserver")

    def lap(self, name):
        now = time.monotonic()
        self.laps[name] = (now - self.last) * 1000
        self.last = now

    def stop(self):
        for program in (self.apiserver, self.etcd):
            program.send_signal(signal.SIGTERM)
            program.wait(20)

    def apply_definitions(self, api, files):
        served = {}
        for file in files:
            made = api.expect(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", file.read_bytes(),
                              "application/yaml")["spec"]
            for version in made["versions"]:
                if version["served"]:
                    served.setdefault((made["group"], version["name"]), set()).add(made["names"]["plural"])
        for (group, version), plurals in served.items():
            listed = api.expect(200, "GET", f"/apis/{group}/{version}")["resources"]
            self.assertLessEqual(plurals, {one["name"] for one in listed})

    def read_election(self):
        folder = os.environ.get("RW_TEST_KUBE")
        if not folder:
            return made_election()
        lines = (pathlib.Path(folder) / "conversation-operator.jsonl").read_text().splitlines()
        return [one for one in map(json.loads, lines) if "/leases" in one["path"]]

    def elect(self, api, steps):
        """The election, up to the second renewal of the Lease."""
        namespace = steps[0]["path"].split("/")[5]
        api.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        uid = version = None
        kinds = []
        for one in steps[:5]:
            body = base64.b64decode(one["request_base64"])
            if one["method"] == "PUT":
                raw = with_text(with_text(body[4:], [2, 1, 5], uid), [2, 1, 6], version)
                body = MAGIC + raw
            status = api.send(one["method"], one["path"], body or None, one.get("request_content_type") or PROTOBUF, one["accept"])
            self.assertEqual((status, api.answer.headers["Content-Type"]), (one["status"], one["response_content_type"]),
                             (one["method"], one["path"], api.text))
            self.assertTrue(api.text.startswith(MAGIC))
            kinds.append(text_at(api.text[4:], [1, 2]))
            if status < 300:
                uid, version = (text_at(api.text[4:], [2, 1, field]) for field in (5, 6))
        self.assertEqual(kinds, ["Status", "Lease", "Lease", "Lease", "Lease"])

    def use_once(self, files, context, election):
        """Starts, uses and stops both programs as a suite does. Returns milliseconds, of CPU as well."""
        cpu = os.times().children_user + os.times().children_system
        self.laps, began = {}, time.monotonic()
        self.last = began
        self.start_control_plane()
        api = Api(self, self.port, context)
        api.expect(200, "GET", "/api/v1/namespaces/default")
        self.apply_definitions(api, files)
        self.lap("definitions")
        self.elect(api, election)
        self.lap("election")
        self.stop()
        self.lap("stop")
        whole = (time.monotonic() - began) * 1000
        used = os.times()
        self.assertEqual((self.apiserver.returncode, self.etcd.returncode), (0, 0))
        return whole, (used.children_user + used.children_system - cpu) * 1000

    def test_envtest_starts_uses_and_stops_both_programs_within_25_starts_of_another(self):
        crds = os.environ.get("RW_TEST_CRDS")
        files = sorted(pathlib.Path(crds).glob("operator*.yaml") if crds else (ROOT / "deploy" / "crds").glob("*.yaml"))
        self.assertTrue(files)
        context, election = self.context(self.user), self.read_election()
        # The machine may be busy: the best of ten counts.
        runs, peer = [], []
        for _ in range(10):
            runs.append((*self.use_once(files, context, election), self.laps))
            peer.append(1000 * harness.start_of_openssl())
        # Four processes are started; where that is slow, as beside other machines on one host, all is compared with starts of another
        # program (k8s/devserver/README.md has the usual ratio).
        limit = max(100, 25 * min(peer))
        best, cpu, laps = min(runs, key=lambda run: run[0])
        middle = sorted(run[0] for run in runs)[len(runs) // 2]
        self.note(f"envtest-shaped start to stop {best:.0f} ms at best (limit {limit:.0f}), {middle:.0f} ms in the middle, CPU of the programs "
                  f"{cpu:.0f} ms: " + ", ".join(f"{name} {time_:.0f}" for name, time_ in laps.items()))
        self.assertLess(best, limit)

    def test_rights_follow_the_groups_of_client_certificates(self):
        self.laps, self.last = {}, time.monotonic()
        self.start_control_plane()
        guest = Api(self, self.port, self.context(self.guest))
        self.assertEqual(guest.expect(403, "GET", "/api/v1/secrets")["reason"], "Forbidden")
        guest.expect(403, "POST", "/devserver/compact")
        nobody = Api(self, self.port, self.context())
        nobody.expect(401, "GET", "/api/v1/secrets")
        admin = Api(self, self.port, self.context(self.user))
        admin.expect(201, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {
            "metadata": {"name": "reader"}, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]})
        admin.expect(201, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "metadata": {"name": "reader"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
            "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "guests"}]})
        guest.expect(200, "GET", "/api/v1/secrets")
        self.stop()

    def test_audience_of_a_token_is_the_issuer(self):
        self.laps, self.last = {}, time.monotonic()
        self.start_control_plane()
        user = Api(self, self.port, self.context(self.user))
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        user.expect(201, "POST", accounts, {"metadata": {"name": "a"}})
        spec = user.expect(201, "POST", f"{accounts}/a/token", {"spec": {}})["spec"]
        self.assertEqual(spec["audiences"], [f"https://127.0.0.1:{self.port}/"])
        self.stop()

    def test_server_makes_the_certificate_that_is_missing_and_names_flags_without_effect(self):
        folder = self.folder / "empty"
        (self.folder / "tokens.csv").write_text('secret-1,ada,1,"writers,system:masters"\nsecret-2,bob,2\n')
        server = self.start(Process("kube-apiserver", [
            ASSETS / "kube-apiserver", "--bind-address=127.0.0.1", "--secure-port=0", f"--cert-dir={folder}",
            f"--token-auth-file={self.folder}/tokens.csv", "--authorization-mode=Node,RBAC", "--feature-gates=A=true",
            "--kubernetes-version=v1.34.9"]))
        port = server.wait_listening("api-server")
        context = ssl.create_default_context(cafile=folder / "apiserver.crt")
        ada = Api(self, port, context, {"Authorization": "Bearer secret-1"})
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        info = ada.expect(201, "POST", path, review)["status"]["userInfo"]
        self.assertEqual((info["username"], info["groups"]), ("ada", ["writers", "system:masters", "system:authenticated"]))
        self.assertEqual((ada.expect(200, "GET", "/version")["minor"], ada.json()["gitVersion"]), ("34", "v1.34.9"))
        Api(self, port, context, {"Authorization": "Bearer secret-2"}).expect(403, "GET", "/api/v1/pods")
        Api(self, port, context, {"Authorization": "Bearer other"}).expect(401, "GET", "/api/v1/pods")
        self.assertEqual(server.records(msg="flags without effect")[0]["flags"], "--feature-gates=A=true")
        self.assertEqual(server.terminate(), 0)
        self.assertEqual((folder / "apiserver.key").stat().st_mode & 0o777, 0o600)


class OwnFlags(harness.TestCase):
    def start_server(self, *options, clusters=("--clusters", "3")):
        folder = self.folder / "clusters"
        self.server = self.start(Process("kube-devserver", [PROGRAM, "--address=127.0.0.1:0", "--dir", folder, *clusters, *options]))
        self.port = self.server.wait_listening("api-server")
        self.context = ssl.create_default_context(cafile=folder / "ca.crt")
        return folder

    def api(self, folder, name, prefix=None):
        config = (folder / f"{name}.kubeconfig").read_text()
        token = config.partition("token: ")[2].split()[0]
        return Api(self, self.port, self.context, {"Authorization": f"Bearer {token}"},
                   f"/clusters/{name}" if prefix is None else prefix)

    def test_clusters_hold_their_own_objects_and_the_first_needs_no_prefix(self):
        folder = self.start_server()
        self.assertEqual(sorted(path.stem for path in folder.glob("*.kubeconfig")), ["cluster-1", "cluster-2", "cluster-3"])
        self.api(folder, "cluster-1", "").expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
        self.api(folder, "cluster-1").expect(200, "GET", "/api/v1/namespaces/a")
        self.api(folder, "cluster-2").expect(404, "GET", "/api/v1/namespaces/a")
        self.api(folder, "cluster-2", "").expect(401, "GET", "/api/v1/namespaces/a")

    def test_faults_are_injected_as_often_as_told(self):
        folder = self.start_server(clusters=("--cluster", "one,two"))
        one, two = self.api(folder, "one"), self.api(folder, "two")
        one.expect(200, "PUT", "/devserver/faults", [
            {"verbs": ["list"], "path": "/api/v1/namespaces", "times": 2, "status": 429, "retryAfter": 7},
            {"verbs": ["get"], "times": 1, "latency": "150ms"},
            {"verbs": ["delete"], "times": 1, "goaway": True},
            {"verbs": ["update"], "times": 1, "disconnect": True},
            {"verbs": ["watch"], "times": 1, "status": 410}])
        for _ in range(2):
            one.expect(429, "GET", "/api/v1/namespaces")
            self.assertEqual(one.answer.headers["Retry-After"], "7")
        one.expect(200, "GET", "/api/v1/namespaces")
        two.expect(200, "GET", "/api/v1/namespaces")
        began = time.monotonic()
        one.expect(200, "GET", "/api/v1/namespaces/default")
        self.assertGreaterEqual(time.monotonic() - began, 0.15)
        one.expect(404, "DELETE", "/api/v1/namespaces/nil")
        self.assertEqual(one.answer.headers["Connection"], "close")
        self.assertEqual(one.expect(410, "GET", "/api/v1/namespaces?watch=1")["reason"], "Expired")
        with self.assertRaises(http.client.RemoteDisconnected):
            one.send("PUT", "/api/v1/namespaces/default", {})
        one.expect(200, "DELETE", "/devserver/faults")
        one.expect(200, "GET", "/api/v1/namespaces")

    def test_invalid_faults_are_rejected_and_the_previous_ones_stay(self):
        folder = self.start_server()
        one = self.api(folder, "cluster-1")
        one.expect(200, "PUT", "/devserver/faults", [{"status": 503}])
        for rule in ({"verb": ["get"]}, {"status": 200}, {"path": "api"}, {"latency": "soon"}, {"times": -1}, 7):
            one.expect(400, "PUT", "/devserver/faults", [rule])
        one.expect(400, "PUT", "/devserver/faults", {})
        one.expect(503, "GET", "/api/v1/pods")
        one.expect(404, "GET", "/devserver/nothing")

    def test_watch_gets_410_after_compaction_and_ends_at_restore_and_disconnection(self):
        folder = self.start_server()
        one = self.api(folder, "cluster-1")
        spaces = "/api/v1/namespaces"
        version = one.expect(200, "GET", spaces)["metadata"]["resourceVersion"]
        one.expect(400, "POST", "/devserver/restore")
        one.expect(200, "POST", "/devserver/backup")
        one.expect(201, "POST", spaces, {"metadata": {"name": "a"}})
        one.expect(200, "POST", "/devserver/compact")
        expired = one.expect(200, "GET", f"{spaces}?watch=1&resourceVersion={version}")
        self.assertEqual((expired["type"], expired["object"]["code"]), ("ERROR", 410))
        for last in ("restore", "disconnect"):
            ended = threading.Event()
            watch = self.api(folder, "cluster-1")

            def follow():
                try:
                    watch.send("GET", spaces + "?watch=1&timeoutSeconds=60")
                except (OSError, http.client.HTTPException):
                    pass
                ended.set()

            threading.Thread(target=follow, daemon=True).start()
            metric = "rw_devserver_watches{"
            wait_until(lambda: any(line.startswith(metric) and line.endswith(" 1") for line in
                                   one.expect(200, "GET", "/metrics").decode().splitlines()), 10, "the watch is open")
            try:
                one.send("POST", f"/devserver/{last}")
            except http.client.RemoteDisconnected:
                self.assertEqual(last, "disconnect")
            self.assertTrue(ended.wait(10), last)
        self.api(folder, "cluster-1").expect(404, "GET", spaces + "/a")

    def test_unsupported_parts_are_refused_or_warned_about(self):
        """The list of k8s/devserver/README.md: each entry is a warning, or 501, or an error in both cases."""
        admission, crds = "/apis/admissionregistration.k8s.io/v1/", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        space = "/api/v1/namespaces/default/"
        webhook = {"name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
                   "clientConfig": {"url": "https://127.0.0.1:1/"}}

        def configuration(name, **parts):
            return {"metadata": {"name": name}, "webhooks": [{**webhook, **parts}]}

        def definition(kind, spec, **parts):
            plural = kind.lower() + "s"
            versions = [{"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": spec}}}} for name in ("v1", "v2")]
            return {"metadata": {"name": plural + ".e.io"}, "spec": {"group": "e.io", "scope": "Cluster", "versions": versions,
                                                                    "names": {"kind": kind, "plural": plural}, **parts}}

        def ruled(kind, rule):
            return definition(kind, {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}},
                                     "x-kubernetes-validations": [{"rule": rule}]})

        pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
        prepared = [
            (space + "resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "0"}}}),
            ("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "c", "annotations": {
                "storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "e.io/p"}),
            ("/apis/networking.k8s.io/v1/ingressclasses", {"metadata": {"name": "c", "annotations": {
                "ingressclass.kubernetes.io/is-default-class": "true"}}, "spec": {"controller": "e.io/c"}}),
            (crds, definition("Thing", {"type": "object"})),
            (admission + "validatingwebhookconfigurations", configuration("of-v1", rules=[
                {"operations": ["*"], "apiGroups": ["e.io"], "apiVersions": ["v1"], "resources": ["things"]}])),
            ("/api/v1/namespaces", {"metadata": {"name": "limited"}}),
            ("/api/v1/namespaces/limited/limitranges", {"metadata": {"name": "r"}, "spec": {"limits": [
                {"type": "Container", "default": {"cpu": "1"}}]}})]
        gaps = {
            "matchConditions": (admission + "validatingwebhookconfigurations", configuration("w", matchConditions=[
                {"name": "a", "expression": "true"}])),
            "isURL()": (crds, ruled("Url", "isURL(self.at)")),
            "format date-time": (crds, ruled("Date", "self.at == 'a'")),
            "matchPolicy": ("/apis/e.io/v2/things", {"apiVersion": "e.io/v2", "kind": "Thing", "metadata": {"name": "a"}}),
            "ResourceQuota": (space + "configmaps", {"metadata": {"name": "a"}}),
            "LimitRange": ("/api/v1/namespaces/limited/pods", pod),
            "RuntimeClass": (space + "pods", {**pod, "spec": {**pod["spec"], "runtimeClassName": "r"}}),
            "StorageClass": (space + "persistentvolumeclaims", {"metadata": {"name": "a"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
            "IngressClass": ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", {"metadata": {"name": "a"}, "spec": {
                "defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}}),
            "pod-security": ("/api/v1/namespaces", {"metadata": {"name": "safe", "labels": {
                "pod-security.kubernetes.io/enforce": "restricted"}}})}
        for options, status in (((), 201), (("--refuse-unsupported",), 501)):
            one = self.api(self.start_server(*options), "cluster-1")
            for path, body in prepared:
                one.expect(201, "POST", path, body)
            for name, (path, body) in gaps.items():
                with self.subTest(name, status=status):
                    answer = one.expect(status, "POST", path, body)
                    said = " ".join(one.answer.headers.get_all("Warning", [])) if status == 201 else answer["message"]
                    self.assertIn(name, said)
            rules = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}}
            one.expect(201, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", rules)
            self.assertIn("rule of paths", one.answer.headers["Warning"])
            converted = definition("Webhook", {"type": "object"}, conversion={"strategy": "Webhook"})
            self.assertIn("conversion", one.expect(501, "POST", crds, converted)["message"])
            for kind in ("certificates.k8s.io/v1/certificatesigningrequests", "autoscaling/v1/horizontalpodautoscalers",
                         "admissionregistration.k8s.io/v1/validatingadmissionpolicies",
                         "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"):
                one.expect(501, "GET", "/apis/" + kind)
            one.expect(501, "DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps")
            for sub in ("log", "exec", "portforward", "attach", "proxy", "resize"):
                one.expect(404, "GET", f"{space}pods/a/{sub}")
            one.expect(415, "POST", crds, b"k8s\0" + b"\x0a\x00", PROTOBUF)
            one.expect(406, "GET", "/apis/e.io/v1/things", accept=PROTOBUF)
            one.expect(200, "GET", "/apis/e.io/v1/things", accept=PROTOBUF + ",application/json")
            self.assertEqual(one.answer.headers["Content-Type"], "application/json")
            self.assertEqual(self.server.terminate(), 0)

    def test_thousand_clusters_take_little(self):
        began = time.monotonic()
        folder = self.start_server(clusters=("--clusters", "1000"))
        started = time.monotonic() - began
        self.assertEqual(len(list(folder.glob("*.kubeconfig"))), 1000)
        self.api(folder, "cluster-1000").expect(200, "GET", "/api/v1/namespaces/default")
        rss = self.server.rss()
        self.note(f"1,000 clusters: up after {started:.2f} s, RSS {rss / harness.MIB:.0f} MiB")
        self.assertLess(rss, 100 * harness.MIB)


if __name__ == "__main__":
    harness.unittest.main(argv=sys.argv[:1], verbosity=2)
