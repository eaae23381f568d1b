"""The cases of the Go system's own suites (kyma-project/runtime-watcher: tests of the webhook's handler, of listener/pkg/v2 and
of its certificates), written anew: the same reviews, certificates and results, by processes. What differs is wording, timing and
what contracts forbid: reviews are posted, X-Forwarded-Client-Cert is believed of the nearest hop, and there is no path /v1."""

import http.client
import itertools
import json
import pathlib
import ssl
import subprocess
import urllib.parse

import harness
from harness import EventLog, Listener, Webhook, wait_until

MANAGER = "kyma"
GROUP, VERSION, KIND = "testGroup", "testResourceVersion", "testResourceKind"
OPERATIONS = ("CONNECT", "UPDATE", "CREATE", "DELETE")
CHANGES = ("none", "spec", "status", "no spec")
HEADERS = {"strict-transport-security": "max-age=31536000; includeSubDomains", "content-security-policy": "default-src 'self'"}
XFCC = "X-Forwarded-Client-Cert"
EVENT = {"owner": {"Name": "kyma", "Namespace": "default"}, "watched": {"Name": "watched-resource", "Namespace": "default"},
         "watchedGvk": {"group": "operator.kyma-project.io", "version": "v1alpha1", "kind": "kyma"}}


def openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"openssl {arguments}: {done.stderr}")
    return done.stdout


def any_server():
    """For the clients that stand in for others: Python's OpenSSL takes the server's certificate for a self-signed one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Namesakes:
    """A CA, a server and a client whose subjects are all CN=127.0.0.1, with RSA keys and without key identifiers."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder
        self.ca = self._make("ca", "CA:TRUE", "keyCertSign,digitalSignature,keyEncipherment")
        self.server = self._make("server", "CA:FALSE", "digitalSignature,keyEncipherment", "serverAuth", signer=self.ca)
        self.client = self._make("client", "CA:FALSE", "digitalSignature,keyEncipherment", "clientAuth,serverAuth", signer=self.ca)
        self.impostor = self._make("impostor", "CA:FALSE", "digitalSignature,keyEncipherment", "clientAuth")

    def _make(self, name, constraints, usage, extended=None, signer=None):
        """Returns the certificate's and the key's path. Without a signer it signs itself."""
        certificate, key, request, extensions = (self.folder / f"{name}.{end}" for end in ("crt", "key", "csr", "ext"))
        extensions.write_text(f"basicConstraints=critical,{constraints}\nkeyUsage=critical,{usage}\nsubjectAltName=IP:127.0.0.1\n"
                              "subjectKeyIdentifier=none\nauthorityKeyIdentifier=none\n"
                              + (f"extendedKeyUsage={extended}\n" if extended else ""))
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request, "-subj", "/CN=127.0.0.1")
        by = ("-CA", signer[0], "-CAkey", signer[1], "-CAcreateserial") if signer else ("-signkey", key)
        openssl("x509", "-req", "-in", request, "-out", certificate, "-days", 1, "-extfile", extensions, *by)
        return certificate, key


def watched(old, change):
    """An object as the Go suite makes it, before or after the change."""
    made = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND,
            "metadata": {"name": "kyma-1", "namespace": "default", "labels": {"operator.kyma-project.io/managed-by": "lifecycle-manager"},
                         "annotations": {"operator.kyma-project.io/owned-by": "default/ownerName"}}, "spec": {}, "status": {}}
    if change == "no spec":
        made["spec"] = None
    elif old or change == "none":
        made["spec"]["key"] = made["status"]["key"] = "oldValue"
    else:
        made[change]["key"] = "newValue"
    return made


def review(operation, change, uid):
    """Without apiVersion and kind, and without a namespace, as the Go suite sends it."""
    return {"request": {"uid": uid, "kind": {"group": GROUP, "version": VERSION, "kind": KIND},
                        "resource": {"group": "", "version": "", "resource": ""}, "name": "kyma-1", "operation": operation,
                        **({"subResource": "status"} if change == "status" else {}), "userInfo": {},
                        "object": None if operation == "DELETE" else watched(False, change),
                        "oldObject": watched(True, change) if operation in ("DELETE", "UPDATE") else None, "options": None}}


class Handler(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.pki = Namesakes(self.folder / "pki")
        self.events = EventLog()
        self.listener = self.start(Listener(self.events, MANAGER, tls=self.pki.server, client_ca=self.pki.ca[0]))
        self.webhook = self.start(Webhook(*self.pki.client, self.pki.ca[0], f"127.0.0.1:{self.listener.port}")).ready()

    def post(self, body):
        connection = http.client.HTTPSConnection("127.0.0.1", self.webhook.port, context=any_server(), timeout=10)
        try:
            connection.request("POST", f"/validate/{MANAGER}", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, json.loads(answer.read())
        finally:
            connection.close()

    def test_operation_and_change_decide_the_result(self):
        for number, (operation, change) in enumerate(itertools.product(OPERATIONS, CHANGES)):
            with self.subTest(operation=operation, change=change):
                before = len(self.events.lines)
                status, headers, body = self.post(review(operation, change, f"uid-{number}"))
                self.assertEqual(status, 200)
                self.assertEqual((body["apiVersion"], body["kind"]), ("admission.k8s.io/v1", "AdmissionReview"))
                self.assertEqual((body["response"]["uid"], body["response"]["allowed"]), (f"uid-{number}", True))
                self.assertEqual(body["response"]["status"]["status"], "Success")
                self.assertEqual({k: headers.get(k) for k in HEADERS}, HEADERS)
                message = body["response"]["status"]["message"]
                if operation == "CONNECT":
                    self.assertEqual(message, "operation CONNECT not supported")
                told = operation in ("CREATE", "DELETE") or (operation == "UPDATE" and change != "none")
                self.assertEqual(message == "change accepted for delivery", told)
                if not told:
                    continue
                wait_until(lambda: len(self.events.lines) > before, 10, lambda: f"the event:\n{self.webhook.tail()}\n{self.listener.tail()}")
                event = self.events.events(before)[0]
                self.assertEqual((event["watched"], event["gvk"], event["runtimeId"]),
                                 ({"namespace": "default", "name": "kyma-1"}, {"group": GROUP, "version": VERSION, "kind": KIND}, "127.0.0.1"))
        self.assertEqual(len(self.events.lines), 11, "one event for each review that tells a change")
        self.assertEqual(self.webhook.metric("rw_admission_reviews_total", verdict="connect_unsupported"), 4)

    def test_namespace_comes_from_the_request_when_the_object_has_none(self):
        body = review("CREATE", "spec", "uid-1")
        del body["request"]["object"]["metadata"]["namespace"]
        body["request"]["namespace"] = "kyma-system"
        self.assertTrue(self.post(body)[2]["response"]["allowed"])
        wait_until(lambda: self.events.lines, 10, "the event")
        self.assertEqual(self.events.events()[0]["watched"], {"namespace": "kyma-system", "name": "kyma-1"})

    def test_client_that_signed_its_certificate_itself_is_refused(self):
        trust = any_server()
        trust.load_cert_chain(*self.pki.impostor)
        connection = http.client.HTTPSConnection("127.0.0.1", self.listener.port, context=trust, timeout=10)
        with self.assertRaises((OSError, http.client.HTTPException)):
            connection.request("POST", f"/v2/{MANAGER}/event", json.dumps(EVENT), {"Content-Type": "application/json"})
            connection.getresponse()
        connection.close()
        self.assertFalse(self.events.lines)


class ListenerSuite(harness.TestCase):
    """A listener behind a gateway, whose client has signed its own certificate; no CA is given."""

    def setUp(self):
        super().setUp()
        key, certificate = self.folder / "self.key", self.folder / "self.crt"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 1, "-keyout", key,
                "-out", certificate, "-subj", "/CN=test-cert", "-addext", "subjectAltName=DNS:example.com")
        self.pem = pathlib.Path(certificate).read_text()
        self.certificate = "Cert=" + urllib.parse.quote_plus(self.pem)
        self.events = EventLog()
        self.listener = self.start(Listener(self.events, MANAGER, options=("--xfcc-trusted-proxies", "127.0.0.0/8")))

    def ask(self, method="POST", path=f"/v2/{MANAGER}/event", body=EVENT, certificates=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.listener.port, timeout=10)
        try:
            connection.putrequest(method, path)
            for each in [self.certificate] if certificates is None else certificates:
                connection.putheader(XFCC, each)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.putheader("Content-Length", str(len(content)))
            connection.endheaders(content)
            return connection.getresponse().status
        finally:
            connection.close()

    def check_told(self, **request):
        before = len(self.events.lines)
        self.assertEqual(self.ask(**request), 200)
        wait_until(lambda: len(self.events.lines) > before, 10, "the event")
        event = self.events.events(before)[0]
        self.assertEqual((event["watched"], event["gvk"], event["runtimeId"]),
                         ({"namespace": "default", "name": "watched-resource"}, EVENT["watchedGvk"], "test-cert"))

    def check_refused(self, status, **request):
        before = len(self.events.lines)
        self.assertEqual(self.ask(**request), status)
        self.check_told()
        self.assertEqual(len(self.events.lines), before + 1, "the refused request has no event")

    def test_event_is_told_with_its_sender(self):
        self.check_told(path=f"/v2/{MANAGER}/event")

    def test_listener_refuses_other_methods_paths_and_sizes(self):
        self.check_refused(405, method="GET")
        for path in (f"/r1/{MANAGER}/event", f"/v/{MANAGER}/event", f"/v1/{MANAGER}/event"):
            self.check_refused(404, path=path)
        padded = json.dumps({**EVENT, "padding": "x" * 32768}).encode()
        self.check_refused(413, body=padded)

    def test_header_without_a_readable_certificate_is_refused(self):
        no_pem = urllib.parse.quote_plus("not a pem block")
        no_certificate = urllib.parse.quote_plus("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----")
        for header in ("Cert=" + "A" * (32 * 1024 + 1), "Cert=;Other=foo", "Other=foo;Stuff=bar", "Cert=%ZZ;Other=foo",
                       "Cert=" + no_pem, "Cert=" + no_certificate):
            with self.subTest(header=header[:60]):
                self.check_refused(401, certificates=[header])
        self.check_refused(401, certificates=[])

    def test_certificate_of_the_nearest_hop_counts(self):
        self.check_told(certificates=[self.certificate + ";Other=foo"])
        self.check_told(certificates=["Cert=" + urllib.parse.quote(self.pem)])
        # The Go listener takes the first one, which a client may have sent itself.
        self.check_refused(401, certificates=[self.certificate + ";Other=foo", "Cert=ignored"])


if __name__ == "__main__":
    harness.main()
