"""A real API server calls the webhook for everything kubectl does, and exactly the expected events arrive.

Run with the API server's binaries in KUBEBUILDER_ASSETS. RW_TEST_CRDS may name a folder with the real custom resource
definitions; without it the Kyma resource is left out.
"""

import os
import pathlib

import control_plane
import harness
from control_plane import ControlPlane, rule, widget_crd
from harness import EventLog, Gateway, Listener, Pki, Webhook, brief, wait_until

RUNTIME = "runtime-8f3e"
COMPONENT = "lifecycle-manager"
WATCHED = {"operator.kyma-project.io/watched-by": "kyma"}
KYMA_CRD = "operator.kyma-project.io_kymas.yaml"


def thing(api_version, kind, name, namespace="default", labels=None, **rest):
    return {"apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "labels": {**WATCHED, **(labels or {})}}, **rest}


class Matrix:
    """The steps, each with the events it must cause; the same for every way between webhook and listener."""

    def __init__(self, plane, events, component, test):
        self.plane, self.events, self.component, self.test = plane, events, component, test
        self.api = plane.client()
        test.addCleanup(self.api.close)
        self._seen = len(events.lines)
        self._steps = 0

    def wait_for_count(self, count, what):
        wait_until(lambda: len(self.events.lines) >= count, 10,
                   lambda: f"{what}: {[brief(e) for e in self.events.events(self._seen)]}")

    def step(self, what, action, *expected):
        """Does it, follows it up with an object whose event must come as well, and compares all that came."""
        action()
        self.wait_for_count(self._seen + len(expected), what)
        self._steps += 1
        marker = f"marker-{self._steps}"
        self.api.request("POST", "/api/v1/namespaces/default/configmaps", thing("v1", "ConfigMap", marker))
        wanted = sorted([*expected, self.event("", "v1", "ConfigMap", marker)])
        self.wait_for_count(self._seen + len(wanted), what)
        came = sorted(brief(event) for event in self.events.events(self._seen))
        self.test.assertEqual(came, wanted, what)
        self._seen = len(self.events.lines)
        self.test.note(f"{what}: {len(expected) or 'no'} event" + "s" * (len(expected) != 1))

    def event(self, group, version, kind, name, namespace="default"):
        return (self.component, group, version, kind, namespace, name, RUNTIME)

    def widgets(self):
        kubectl, path = self.plane.kubectl, "/apis/example.com/v1/namespaces/default/widgets/w1"
        event = self.event("example.com", "v1", "Widget", "w1")
        def patch(body, *options):
            kubectl("patch", "widgets.example.com", "w1", "--type=merge", "-p", body, *options)
        def patch_status(body):
            if self.plane.kubectl.knows("patch", "--subresource"):
                patch(body, "--subresource=status")
            else:
                self.api.patch(path + "/status", body)
        def dry_run(*command, stdin=None):
            kubectl(*command, "--dry-run=server", stdin=stdin)

        widget = thing("example.com/v1", "Widget", "w1", spec={"replicas": 1, "size": "small"})
        self.step("create under dry-run", lambda: dry_run("create", "-f", "-", stdin=widget))
        self.step("create", lambda: kubectl("create", "-f", "-", stdin=widget), event)
        self.step("spec change", lambda: patch('{"spec":{"size":"large"}}'), event)
        self.step("spec change under dry-run", lambda: patch('{"spec":{"size":"tiny"}}', "--dry-run=server"))
        self.step("label-only change", lambda: kubectl("label", "widgets.example.com", "w1", "colour=blue"))
        self.step("annotation-only change", lambda: kubectl("annotate", "widgets.example.com", "w1", "note=x"))
        self.step("status change", lambda: patch_status('{"status":{"state":"Ready"}}'), event)
        self.step("status written again as it is",
                  lambda: self.api.patch(path + "/status", '{"metadata":{"annotations":{"touched":"1"}}}'))
        before = self.test.webhook.metric("watcher_failed_kcp_total", error_reason="invalid-subresource") or 0
        self.step("scale subresource", lambda: kubectl("scale", "widgets.example.com/w1", "--replicas=3"))
        self.test.assertEqual(
            self.test.webhook.metric("watcher_failed_kcp_total", error_reason="invalid-subresource"), before + 1)
        self.step("delete under dry-run", lambda: dry_run("delete", "widgets.example.com", "w1"))
        self.step("delete", lambda: kubectl("delete", "widgets.example.com", "w1"), event)

    def config_maps(self):
        kubectl = self.plane.kubectl
        event = self.event("", "v1", "ConfigMap", "big")
        data = thing("v1", "ConfigMap", "big", data={"text": "a" * (harness.MIB - 64)})
        self.step("create of a 1 MiB ConfigMap", lambda: kubectl("create", "-f", "-", stdin=data), event)
        data["data"]["text"] = "b" * (harness.MIB - 64)
        self.step("change of a 1 MiB ConfigMap", lambda: kubectl("replace", "-f", "-", stdin=data), event)
        self.step("label-only change of an object without spec",
                  lambda: kubectl("label", "configmap", "big", "colour=blue"), event)
        self.step("delete of a 1 MiB ConfigMap", lambda: kubectl("delete", "configmap", "big"), event)
        self.step("an object that the webhook's selector leaves out",
                  lambda: kubectl("create", "configmap", "other", "--from-literal=a=b"))

    def kymas(self):
        kubectl, namespace = self.plane.kubectl, "kcp-system"
        event = self.event("operator.kyma-project.io", "v1beta2", "Kyma", "default", namespace)
        kubectl("create", "namespace", namespace)
        kyma = thing("operator.kyma-project.io/v1beta2", "Kyma", "default", namespace, spec={"channel": "regular"})
        def patch(body):
            kubectl("-n", namespace, "patch", "kyma", "default", "--type=merge", "-p", body)
        self.step("Kyma created", lambda: kubectl("create", "-f", "-", stdin=kyma), event)
        self.step("Kyma gets a module", lambda: patch('{"spec":{"modules":[{"name":"keda"}]}}'), event)
        self.step("Kyma gets a label", lambda: patch('{"metadata":{"labels":{"colour":"blue"}}}'))
        self.step("Kyma's status changes", lambda: self.api.patch(
            f"/apis/operator.kyma-project.io/v1beta2/namespaces/{namespace}/kymas/default/status",
            '{"status":{"state":"Ready"}}'), event)
        self.step("Kyma deleted", lambda: kubectl("-n", namespace, "delete", "kyma", "default"), event)


class EventsOfARealApiServer(harness.TestCase):
    def run_matrix(self, make_way):
        pki = Pki(self.folder / "pki")
        events = EventLog()
        kcp = make_way(pki, events)
        certificate, key = pki.issue("webhook", "webhook", cn=RUNTIME)
        self.webhook = self.start(Webhook(certificate, key, pki.ca, f"localhost:{kcp}"))
        plane = ControlPlane(self)
        crds = os.environ.get("RW_TEST_CRDS")
        kyma_crd = pathlib.Path(crds) / KYMA_CRD if crds else None
        plane.create_crds(*([kyma_crd] if kyma_crd else []), widget_crd())
        rules = [rule("", "v1", "configmaps"), rule("example.com", "v1", "widgets", "widgets/status"),
                 rule("operator.kyma-project.io", "v1beta2", "kymas", "kymas/status")]
        self.webhook.ready()
        plane.register_webhook("skr-webhook", self.webhook.port, pki.ca, COMPONENT, rules, WATCHED)
        # A Scale carries no labels of its resource, so no label selector would let it through.
        plane.register_webhook("scale", self.webhook.port, pki.ca, COMPONENT, [rule("example.com", "v1", "widgets/scale")])
        matrix = Matrix(plane, events, COMPONENT, self)
        plane.wait_registered(lambda n: plane.kubectl("create", "-f", "-", stdin=thing("v1", "ConfigMap", f"probe-{n}")),
                              lambda: events.lines)
        matrix._seen = len(events.lines)
        matrix.widgets()
        matrix.config_maps()
        if kyma_crd:
            matrix.kymas()
        else:
            self.note("RW_TEST_CRDS is not set: Kyma left out")
        self.assertEqual(len(events.lines), matrix._seen, "nothing came late")
        self.assertEqual(self.webhook.terminate(), 0)

    def test_through_a_gateway_that_terminates_mutual_tls(self):
        def way(pki, events):
            listener = self.start(Listener(events, COMPONENT))
            gateway = Gateway(self.folder / "nginx", *pki.issue("server", "gateway"), pki.ca, listener.port)
            return self.start(gateway).port
        self.run_matrix(way)

    def test_straight_to_a_listener_that_terminates_mutual_tls(self):
        def way(pki, events):
            tls = pki.issue("server", "listener")
            return self.start(Listener(events, COMPONENT, tls=tls, client_ca=pki.ca)).port
        self.run_matrix(way)


if __name__ == "__main__":
    control_plane.assets()
    harness.main()
