"""The whole system around real API servers: KCP and a runtime are kube-apiservers, one more runtime is embedded. The
true schemas are used where RW_TEST_CRDS has them. A machine without an address that leads to it from elsewhere can't
have Endpoints, and the runtime's API server then finds nobody to call."""

import os
import pathlib
import re
import socket
import unittest

import control_plane
import harness
from api import collection, kymas
from dev import CONFIGURATION, DEPLOYMENT, WATCHED, WATCHER, Dev, webhooks_of
from harness import wait_until

PATIENCE = 60
DEFINITIONS = collection("customresourcedefinitions", group="apiextensions.k8s.io")
TRUE_ONES = ("watchers.operator.kyma-project.io", "kymas.operator.kyma-project.io", "gateways.networking.istio.io",
             "virtualservices.networking.istio.io", "certificates.cert-manager.io")


def own_address():
    """An address of this machine that is none of loopback; None without."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; finds the way there (RFC 5737 address)
            found = probe.getsockname()[0]
        except OSError:
            return None
    return None if found.startswith("127.") else found


def true_definitions():
    """Those of RW_TEST_CRDS that the system needs; none without."""
    folder = os.environ.get("RW_TEST_CRDS")
    for path in sorted(pathlib.Path(folder).glob("*.yaml")) if folder else ():
        for document in re.split(r"^---\s*$", path.read_text(), flags=re.MULTILINE):
            name = re.search(r"^  name: [\"']?([\w.-]+)", document, flags=re.MULTILINE)
            if name and name[1] in TRUE_ONES:
                yield document


@unittest.skipUnless(os.environ.get("KUBEBUILDER_ASSETS"), "KUBEBUILDER_ASSETS names no real API server")
class AroundRealServers(harness.TestCase):
    def until(self, condition, what):
        return wait_until(condition, PATIENCE, lambda: f"{what}:\n{self.dev.tail()}", every=0.1)

    def ready(self, skr):
        found = skr.get(DEPLOYMENT)
        return found is not None and found.get("status", {}).get("readyReplicas") == 1

    def changed(self, runtime, skr, value):
        start = len(self.dev.events)
        skr.patch(WATCHED, {"spec": {"channel": value}})
        return self.until(lambda: self.dev.reconciled(runtime, start), f"a change on {runtime} requeues its Kyma")[0]

    def test_real_servers_in_place_of_embedded_ones(self):
        address = own_address()
        kcp_plane, kcp_config = control_plane.plane_of(self, "kcp")
        _, skr_config = control_plane.plane_of(self, "skr", options=["--enable-aggregator-routing=true"])
        for document in true_definitions():
            kcp_plane.kubectl("create", "-f", "-", stdin=document)
        client = kcp_plane.client()
        before = client.request("GET", DEFINITIONS)["items"]
        client.close()
        self.dev = self.start(Dev(self.folder / "dev", 2, "--kcp-kubeconfig", kcp_config, "--skr-kubeconfig", skr_config,
                                  *(["--pod-address", address] if address else []))).wait_up(120)
        kcp, skr, embedded = self.dev.kcp(), self.dev.skr("runtime-1"), self.dev.skr("runtime-2")
        for one in before:  # left alone
            self.assertEqual(kcp.get(f"{DEFINITIONS}/{one['metadata']['name']}")["metadata"]["uid"], one["metadata"]["uid"])
        self.until(lambda: kcp.get(WATCHER)["status"]["state"] == "Ready", "the Watcher is Ready")
        for api in (skr, embedded):
            self.until(lambda: self.ready(api) and webhooks_of(api) == ["kyma"], "the watcher is installed")
        self.until(lambda: self.dev.installed() == 2, "the manager has seen it")
        self.assertEqual(self.changed("runtime-2", embedded, "fast")["kyma"], "kcp-system/runtime-2")
        if address:
            # The real API server hears of webhooks and Endpoints a moment later.
            start = len(self.dev.events)
            changes = iter(range(1000))
            def change():
                skr.patch(WATCHED, {"spec": {"channel": f"channel-{next(changes)}"}})
                return self.dev.reconciled("runtime-1", start)
            event = self.until(change, "a change on a real API server requeues its Kyma")[0]
            self.assertEqual((event["kyma"], event["namespace"], event["name"]), ("kcp-system/runtime-1", "kyma-system", "default"))
            self.note(f"{event['reconciledAfterMs']} ms from the real API server's call to the reconcile")
        kcp.delete(f"{kymas('kcp-system')}/runtime-1")
        self.until(lambda: skr.get(CONFIGURATION) is None and skr.get(DEPLOYMENT) is None, "the runtime is clean")
        self.assertEqual(self.dev.terminate(), 0, self.dev.tail())


if __name__ == "__main__":
    harness.main()
