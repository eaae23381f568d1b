"""Records AdmissionReviews of a real API server into deploy/samples/, as they come over the wire.

    KUBEBUILDER_ASSETS="$(tests/provide-kube.sh)" RW_TEST_CRDS=<folder with the Kyma CRD> tests/e2e/record_samples.py

Needs the built binary for its certificates. No test: run it by hand when the samples are to be made anew.
"""

import http.server
import json
import os
import pathlib
import ssl
import threading

import control_plane
import harness
from control_plane import ControlPlane, rule, widget_crd
from events_test import KYMA_CRD, WATCHED, thing
from harness import Pki, ROOT, wait_until


class Recorder(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    reviews = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.reviews.append(body)
        review = json.loads(body)
        answer = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"],
                             "response": {"uid": review["request"]["uid"], "allowed": True}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Samples(harness.TestCase):
    def record(self, name, action):
        count = len(Recorder.reviews)
        action()
        wait_until(lambda: len(Recorder.reviews) > count, 10, name)
        self.assertEqual(len(Recorder.reviews), count + 1, name)
        (ROOT / "deploy" / "samples" / f"{name}.json").write_bytes(Recorder.reviews[-1])
        self.note(f"{name}: {len(Recorder.reviews[-1])} bytes")

    def test_record(self):
        pki = Pki(self.folder / "pki")
        certificate, key = pki.issue("server", "recorder")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

        plane = ControlPlane(self)
        api, kubectl = plane.client(), plane.kubectl
        self.addCleanup(api.close)
        plane.create_crds(pathlib.Path(os.environ["RW_TEST_CRDS"]) / KYMA_CRD, widget_crd())
        plane.register_webhook("recorder", server.server_port, pki.ca, "lifecycle-manager", [
            rule("", "v1", "configmaps"), rule("operator.kyma-project.io", "v1beta2", "kymas", "kymas/status")], WATCHED)
        plane.register_webhook("scale", server.server_port, pki.ca, "lifecycle-manager",
                               [rule("example.com", "v1", "widgets/scale")])
        plane.wait_registered(lambda n: api.request(
            "POST", "/api/v1/namespaces/default/configmaps", thing("v1", "ConfigMap", f"probe-{n}")),
            lambda: Recorder.reviews)
        kubectl("create", "namespace", "kyma-system")
        kubectl("create", "-f", "-", stdin=thing("example.com/v1", "Widget", "w1", spec={"replicas": 1}))

        kyma = thing("operator.kyma-project.io/v1beta2", "Kyma", "default", "kyma-system",
                     spec={"channel": "regular", "modules": [
                         {"name": "istio", "managed": True}, {"name": "keda", "channel": "fast", "managed": True}]})
        path = "/apis/operator.kyma-project.io/v1beta2/namespaces/kyma-system/kymas/default"
        def patch(body, *options):
            kubectl("-n", "kyma-system", "patch", "kyma", "default", "--type=merge", "-p", body, *options)
        self.record("01-kyma-create-dry-run", lambda: kubectl("create", "-f", "-", "--dry-run=server", stdin=kyma))
        self.record("02-kyma-create", lambda: kubectl("create", "-f", "-", stdin=kyma))
        self.record("03-kyma-update-spec", lambda: patch('{"spec":{"channel":"fast"}}'))
        self.record("04-kyma-update-label-only", lambda: patch('{"metadata":{"labels":{"colour":"blue"}}}'))
        self.record("05-kyma-update-status", lambda: api.patch(
            path + "/status", '{"status":{"state":"Ready","activeChannel":"fast"}}'))
        self.record("06-kyma-update-status-unchanged", lambda: api.patch(
            path + "/status", '{"metadata":{"annotations":{"touched":"1"}}}'))
        self.record("07-kyma-update-dry-run", lambda: patch('{"spec":{"channel":"regular"}}', "--dry-run=server"))
        self.record("08-kyma-delete", lambda: kubectl("-n", "kyma-system", "delete", "kyma", "default"))
        config_map = thing("v1", "ConfigMap", "settings", "kyma-system", data={"level": "info"})
        self.record("09-configmap-create", lambda: kubectl("create", "-f", "-", stdin=config_map))
        self.record("10-configmap-update-label-only",
                    lambda: kubectl("-n", "kyma-system", "label", "configmap", "settings", "colour=blue"))
        self.record("11-configmap-delete", lambda: kubectl("-n", "kyma-system", "delete", "configmap", "settings"))
        self.record("12-widget-scale", lambda: kubectl("scale", "widgets.example.com/w1", "--replicas=3"))


if __name__ == "__main__":
    control_plane.assets()
    harness.main()
