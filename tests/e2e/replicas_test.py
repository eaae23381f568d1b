"""Two replicas of the manager: the one that does not lead names the leader in place of its pages, `status` and `doctor` say what it
says, and what the leader remembers is with the next one."""

import json
import urllib.error
import urllib.request

import harness
from api import collection
from dev import Dev
from harness import BINARY, Process, free_port, metric_sum, runtime_watcher, wait_until
from landscape import Issuer

PATIENCE = 60
LEADER = collection("secrets", "runtime-watcher-system") + "/runtime-watcher-leader"
LEASE = collection("leases", "kcp-system", "coordination.k8s.io", "v1") + "/runtime-watcher-manager"
ROOT_SECRET = collection("secrets", "istio-system") + "/klm-watcher"
HISTORY = collection("secrets", "runtime-watcher-system") + "/runtime-watcher-history"


def fetch(port, path, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Replicas(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.ports, self.pages = [free_port(), free_port()], [free_port(), free_port()]
        self.dev = self.start(Dev(self.folder / "dev", 3, "--no-manager", *(
            option for port in self.ports for option in ("--backend", f"127.0.0.1:{port}")))).wait_up()
        self.leader = self.start_manager(0)
        wait_until(lambda: self.leader.records(msg="this replica leads"), PATIENCE, "the first leads")
        self.standby = self.start_manager(1)

    def start_manager(self, i):
        manager = self.start(Process(f"manager-{i}", [
            BINARY, "manager", "--allow-local-runtimes", "--kubeconfig", self.dev.folder / "kcp.yaml", "--listen-address", f"127.0.0.1:{self.ports[i]}",
            "--metrics-address", f"127.0.0.1:{self.pages[i]}", "--ca-propagation", "1s", "--lease-duration", "3s",
            "--skr-manifests", harness.skr_manifests(self.folder / "skr", "20s"),
            "--renew-deadline", "1500ms", "--retry-period", "500ms"]))
        manager.wait_listening("admin")
        return manager

    def status(self, i):
        done = runtime_watcher("status", "--address", f"127.0.0.1:{self.pages[i]}", "-o", "json", timeout=60)
        return done.returncode, json.loads(done.stdout)["verdict"]["message"]

    def runtimes(self, i):
        code, text = fetch(self.pages[i], "/runtimes")
        return code, json.loads(text)

    def history(self, i):
        return json.loads(fetch(self.pages[i], "/history")[1])

    def until_leads(self, i):
        wait_until(lambda: self.runtimes(i)[0] == 200, PATIENCE, lambda: f"replica {i} leads: {self.runtimes(i)}", every=0.1)

    def until_well(self, i):
        seen = []
        def well():
            seen[:] = self.status(i)
            return "well: 3 of 3 runtimes are well" in seen[1]
        wait_until(well, PATIENCE, lambda: f"replica {i} says that all is well: {seen}", every=0.3)

    def test_replica_that_does_not_lead_names_the_leader(self):
        self.until_well(0)
        pod = self.dev.kcp().get(LEASE)["spec"]["holderIdentity"].rsplit("_", 1)[0]
        file = self.dev.folder / "kcp.yaml"
        begin = rf"this replica does not lead; pod {pod} does, as its Lease says, renewed \d+ s ago: kubectl"
        end = rf" -n kcp-system port-forward pod/{pod} 8080"
        says = rf"^{begin}{end}\n?$"
        wait_until(lambda: self.runtimes(1)[1].get("leader"), PATIENCE, lambda: f"the standby knows it: {self.runtimes(1)}")
        code, told = self.runtimes(1)
        self.assertRegex(told.pop("message"), says)
        self.assertEqual((code, told), (421, {"leads": False, "leader": pod}))
        self.assertEqual(fetch(self.pages[1], "/history?at=1")[0], 421)
        for path in ("/", "/live"):
            code, text = fetch(self.pages[1], path)
            self.assertEqual(code, 421, path)
            self.assertRegex(text, says)
        self.assertEqual(fetch(self.pages[1], "/runtimes", Host="evil.example.com")[0], 403)
        self.assertEqual(fetch(self.pages[1], "/readyz")[0], 200, "it is ready to lead")
        # The commands say what it says; that is no fault of the leader's.
        code, said = self.status(1)
        self.assertEqual(code, 1)
        self.assertRegex(said, rf"^unknown: {begin}{end}$")
        done = runtime_watcher("diff", "runtime-1", "--address", f"127.0.0.1:{self.pages[1]}")
        self.assertRegex(done.stderr, rf"^runtime-watcher: {begin}{end}\n$")
        # KCP has no pod of a manager that runs outside of it.
        for command in (("status",), ("diff", "runtime-1")):
            done = runtime_watcher(*command, "--kubeconfig", file)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stdout + done.stderr, rf"the leader {pod} is no pod in the namespace kcp-system: .*\n  fix: .*--address HOST:PORT")
            self.assertNotIn("no leader", done.stdout + done.stderr)
        done = runtime_watcher("doctor", "--allow-local-runtimes", "--kubeconfig", file,
                               "--address", f"127.0.0.1:{self.pages[1]}", "-o", "json", timeout=60)
        found = {each["check"]: each for each in json.loads(done.stdout)["checks"]}
        self.assertEqual(found["manager"]["state"], "not_proven")
        self.assertRegex(found["manager"]["message"], rf"^{begin} --kubeconfig {file}{end}$")
        self.assertEqual(set(self.dev.kcp().get(LEADER)["data"]), {"holder", "port", "token"}, "what the API server's proxy takes")

    def test_next_leader_goes_on_with_what_the_leader_remembers(self):
        self.until_well(0)
        kcp = self.dev.kcp()
        wait_until(lambda: "history" in (kcp.get(HISTORY) or {}).get("data", {}), PATIENCE, "the leader has stored its history")
        self.assertLess(len(json.dumps(kcp.get(HISTORY))), 512 << 10)
        since = self.history(0)["since"]
        self.leader.kill()
        self.until_leads(1)
        wait_until(lambda: self.history(1).get("since") == since, PATIENCE, "the second goes on with it", every=0.3)
        self.assertEqual(fetch(self.pages[1], "/history?at=x")[0], 400)
        # A heartbeat that met no leader is followed by another in 20 s.
        self.until_well(1)
        # The first comes back, and does not lead.
        self.start_manager(0)
        self.assertEqual(self.runtimes(0)[0], 421)

    def test_next_leader_goes_on_with_the_rotation(self):
        self.until_well(0)
        phase = lambda i: self.runtimes(i)[1].get("rotation", {}).get("phase")
        self.assertEqual(phase(0), "settled")
        self.dev.kcp().patch(ROOT_SECRET, {"data": Issuer(self.folder / "next").root_secret["data"]})
        wait_until(lambda: phase(0) == "grace", PATIENCE, lambda: f"a rotation is under way: {phase(0)}", every=0.1)
        self.leader.kill()
        self.until_leads(1)
        seen = set()
        def goes_on():
            seen.add(phase(1))
            return "grace" in seen
        wait_until(goes_on, PATIENCE, lambda: f"it goes on: {seen}", every=0.05)
        self.assertNotIn("settled", seen)
        self.assertEqual(self.runtimes(1)[1]["verdict"]["causes"], [], "a rotation that goes on is no fault")

    def test_history_that_cannot_be_stored_or_read_is_said(self):
        kcp = self.dev.kcp()
        wait_until(lambda: kcp.get(HISTORY), PATIENCE, "the leader has stored its history")
        kcp.patch(HISTORY, {"stringData": {"history": "rw-history 2"}, "immutable": True})
        self.leader.kill()
        wait_until(lambda: self.standby.records(msg="this replica leads"), PATIENCE, "the second leads")
        wait_until(lambda: self.standby.records(msg="the stored history of the landscape is of another version, or damaged; it begins anew"),
                   PATIENCE, "what is damaged is said")
        stored = "the history of the landscape is not stored for the next leader"
        wait_until(lambda: self.standby.records(msg=stored), PATIENCE, "what can't be stored is said")
        errors = "rw_fleet_history_write_errors_total"
        wait_until(lambda: metric_sum(fetch(self.pages[1], "/metrics")[1], errors) >= 2, PATIENCE, "it is tried again")
        self.assertTrue(self.history(1)["minutes"], "what it remembers is shown all the same")
        kcp.delete(HISTORY)
        wait_until(lambda: (kcp.get(HISTORY) or {}).get("data", {}).get("history"), PATIENCE, "it is stored when it can be")


if __name__ == "__main__":
    harness.main()
