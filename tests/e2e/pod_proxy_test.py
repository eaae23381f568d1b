"""`status`, `diff` and `doctor` find the leader by themselves: by its Lease, and by the proxy of pods of a real API server, as a user with
few rights has it. The manager's pod is a Pod that names an address of this machine, since API servers send nothing to loopback
addresses; without such an address the test is skipped."""

import json
import os
import re
import socket
import unittest

import control_plane
import harness
from api import collection
from dev import Dev
from dev_kube_test import own_address, true_definitions
from harness import BINARY, Process, free_port, runtime_watcher, wait_until

PATIENCE = 60
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS = collection("pods", "kcp-system")
LEADER = collection("secrets", "runtime-watcher-system") + "/runtime-watcher-leader"


def role(name, ns, *rules):
    """The role, and that e2e-reader has it."""
    meta = {"name": name, "namespace": ns}
    return ({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta,
             "rules": [{"apiGroups": [group], "resources": [resource], "verbs": ["get"]} for group, resource in rules]},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta,
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
             "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "e2e-reader"}]})


@unittest.skipUnless(os.environ.get("KUBEBUILDER_ASSETS"), "KUBEBUILDER_ASSETS names no real API server")
class PodProxy(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.address = own_address()
        if not self.address:
            self.skipTest("this machine has no address but loopback's")
        kcp_plane, self.kubeconfig = control_plane.plane_of(self, "kcp", tokens=["reader-token,e2e-reader,e2e-reader"])
        for document in true_definitions():
            kcp_plane.kubectl("create", "-f", "-", stdin=document)
        config = json.loads(self.kubeconfig.read_text())
        config["users"][0]["user"]["token"] = "reader-token"
        self.reader = self.folder / "reader.yaml"
        self.reader.write_text(json.dumps(config))
        port, self.page = free_port(), free_port()
        dev = self.start(Dev(self.folder / "dev", 1, "--no-manager", "--kcp-kubeconfig", self.kubeconfig,
                             "--backend", f"127.0.0.1:{port}")).wait_up(120)
        self.kcp = dev.kcp()
        self.manager = self.start(Process("manager", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", self.kubeconfig, "--listen-address", f"127.0.0.1:{port}",
            "--metrics-address", f"{self.address}:{self.page}", "--ca-propagation", "1s"]))
        wait_until(lambda: self.manager.records(msg="this replica leads"), PATIENCE, lambda: self.manager.tail())

    def asked(self, command, kubeconfig, *options):
        done = runtime_watcher(command, "--kubeconfig", kubeconfig, "-o", "json", *options, timeout=60)
        return done.returncode, json.loads(done.stdout)

    def until_well(self, kubeconfig):
        seen = []
        def well():
            seen[:] = self.asked("status", kubeconfig)
            return seen[0] == 0
        wait_until(well, PATIENCE, lambda: f"status shows the runtime: {seen}", every=0.3)
        return seen[1]

    def findings(self):
        return {each["check"]: each for each in self.asked("doctor", self.kubeconfig)[1]["checks"]}

    def test_leader_is_found_through_its_api_server(self):
        pod = socket.gethostname()
        # Nothing but the Lease and its Secret so far: it says so, and what helps.
        wait_until(lambda: self.kcp.get(LEADER), PATIENCE, lambda: self.manager.tail())
        code, told = self.asked("status", self.kubeconfig)
        self.assertEqual(code, 1, told)
        self.assertRegex(told["verdict"]["message"], f'^unknown: the leader {pod} is no pod in .*pods "{pod}" not found')
        self.assertIn("--address HOST:PORT", told["fix"])
        found = self.findings()["manager"]
        self.assertEqual(found["state"], "not_proven", found)
        self.assertIn("--address HOST:PORT", found["fix"])
        self.kcp.request("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod},
                             "spec": {"containers": [{"name": "manager", "image": "example.com/manager:1"}]}})
        self.kcp.patch(f"{PODS}/{pod}/status", {"status": {"podIP": self.address, "podIPs": [{"ip": self.address}],
                                                           "phase": "Running"}})
        told = self.until_well(self.kubeconfig)
        self.assertEqual([each["kyma"] for each in told["runtimes"]], ["runtime-1"])
        self.assertTrue(told["leads"])
        wait_until(lambda: self.findings()["heartbeats"]["state"] == "proven", PATIENCE, lambda: self.findings())
        self.assertNotIn("token", json.dumps(told))
        # A reader's rights: each that is missing is named.
        access = self.asked("doctor", self.reader)[1]["checks"][0]
        self.assertRegex(access["message"], '^the kubeconfig\'s user may not get namespaces "kcp-system"')
        for resource, grant in (("leases", role("read-lease", "kcp-system", ("coordination.k8s.io", "leases"))),
                                ("secrets", role("read-leader", "runtime-watcher-system", ("", "secrets"))),
                                ("pods", role("proxy", "kcp-system", ("", "pods/proxy")))):
            # A real API server knows of a grant a moment after it was written.
            def missing():
                code, told = self.asked("status", self.reader)
                self.assertEqual(code, 1, told)
                self.assertIn("grant that right", told["fix"])
                named = f"^unknown: the kubeconfig's user may not get {resource}.*User \"e2e-reader\" cannot get resource \"{resource}"
                return re.search(named, told["verdict"]["message"])
            wait_until(missing, PATIENCE, lambda: f"{resource} is named: {self.asked('status', self.reader)}", every=0.3)
            for each in grant:
                ns = each["metadata"]["namespace"]
                self.kcp.request("POST", f"{RBAC}/namespaces/{ns}/{each['kind'].lower()}s", each)
        self.until_well(self.reader)
        compared = lambda: self.asked("diff", self.reader, "--runtime", "runtime-1")
        wait_until(lambda: compared()[0] == 0, PATIENCE, lambda: f"nothing differs: {compared()}", every=0.3)
        # A proxy that reaches no manager is no answer of a leader, and doctor says so.
        self.manager.kill()
        code, told = self.asked("status", self.kubeconfig)
        self.assertEqual(code, 1, told)
        self.assertIn("unknown: no leader: ", told["verdict"]["message"])
        self.assertEqual(self.findings()["manager"]["state"], "failed")
        self.kcp.delete(LEADER)
        self.assertIn("runtime-watcher-leader", self.asked("status", self.kubeconfig)[1]["verdict"]["message"])


if __name__ == "__main__":
    harness.main()
