"""Each replica of the manager shows the leader's page: a standby's in Chromium before and after a fail-over, also during a CA
rotation, `status` by any of them, and what a standby says that can't reach the leader."""

import base64
import json
import urllib.error
import urllib.request

import harness
from api import collection
from browser import Browser, need_browser
from dev import Dev
from harness import BINARY, Process, free_port, metric_sum, runtime_watcher, wait_until
from landscape import Issuer

need_browser()

PATIENCE = 60
LEADER = collection("secrets", "runtime-watcher-system") + "/runtime-watcher-leader"
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

    def verdict(self, i):
        done = runtime_watcher("status", "--address", f"127.0.0.1:{self.pages[i]}", "-o", "json", timeout=60)
        return done.returncode, json.loads(done.stdout)["verdict"]["message"]

    def history(self, i):
        return json.loads(fetch(self.pages[i], "/history")[1])

    def until_says(self, i, text):
        seen = []
        def says():
            seen[:] = self.verdict(i)
            return text in seen[1]
        wait_until(says, PATIENCE, lambda: f"replica {i} says {text}: {seen}", every=0.3)
        return seen[0]

    def test_standby_shows_the_leaders_page(self):
        for i in (0, 1):
            self.assertEqual(self.until_says(i, "well: 3 of 3 runtimes are well"), 0)
        self.assertEqual(fetch(self.pages[1], "/runtimes?limit=x")[0], 400)
        browser = Browser()
        self.addCleanup(browser.kill)
        browser.open(f"http://127.0.0.1:{self.pages[1]}/")
        browser.wait("document.querySelector('#headline').innerText === '✓ well: 3 of 3 runtimes are well'", "it is the leader's")
        self.assertIn("leads · 3 runtimes", browser.text("#role"))
        viewers = [metric_sum(fetch(port, "/metrics")[1], "rw_admin_viewers") for port in self.pages]
        self.assertEqual(viewers, [1, 0], "the leader has a viewer, and the standby's own feed none")
        # Neither the token nor the forwarding is for others.
        self.assertEqual(fetch(self.pages[1], "/runtimes", Host="evil.example.com")[0], 403)
        # What the leader remembers is with the next one, and on the page, which shows the standby's all the time.
        kcp = self.dev.kcp()
        wait_until(lambda: "history" in (kcp.get(HISTORY) or {}).get("data", {}), PATIENCE, "the leader has stored its history")
        self.assertLess(len(json.dumps(kcp.get(HISTORY))), 512 << 10)
        since = self.history(0)["since"]
        self.assertEqual(self.history(1)["since"], since, "it is the leader's")
        browser.run("readMemory()")
        browser.wait("memory?.since === arguments[0]", "the page has it", since)
        self.leader.kill()
        wait_until(lambda: self.standby.records(msg="this replica leads"), PATIENCE, "the second leads")
        wait_until(lambda: self.history(1).get("since") == since, PATIENCE, "the second goes on with it", every=0.3)
        self.assertEqual(fetch(self.pages[1], "/history?at=x")[0], 400)
        browser.wait("latest.leads && source.readyState === 1", "the new leader's")
        browser.run("readMemory()")
        browser.wait("memory.since === arguments[0] && !document.querySelector('#memory').hidden", "the slider begins where it did", since)
        # A heartbeat that met no leader is followed by another in 20 s.
        browser.wait("document.querySelector('#headline').innerText === '✓ well: 3 of 3 runtimes are well'", "all report to it",
                     timeout=PATIENCE)
        # The first comes back, and shows the second's.
        self.start_manager(0)
        self.assertEqual(self.until_says(0, "well: 3 of 3 runtimes are well"), 0)

    def test_rotation_is_that_of_the_leader_and_then_of_the_next_one(self):
        self.until_says(1, "well: 3 of 3 runtimes are well")
        browser = Browser()
        self.addCleanup(browser.kill)
        browser.open(f"http://127.0.0.1:{self.pages[1]}/")
        phase = "document.querySelector('#phases [aria-current]')?.innerText"
        browser.wait(f"{phase} === 'settled'", "the leader's phase")
        self.dev.kcp().patch(ROOT_SECRET, {"data": Issuer(self.folder / "next").root_secret["data"]})
        browser.wait(f"{phase} === 'grace period'", "a rotation is under way")
        browser.run(f"window.seen = []; new MutationObserver(() => seen.push({phase} ?? 'none')).observe(byId('phases'), {{childList: true}})")
        self.leader.kill()
        wait_until(lambda: self.standby.records(msg="this replica leads"), PATIENCE, "the second leads")
        browser.wait(f"latest.leads && source.readyState === 1 && {phase} === 'grace period'", "it goes on", timeout=PATIENCE)
        self.assertNotIn("settled", browser.run("return seen"))
        self.assertEqual(browser.texts("#causes li"), [], "a rotation that goes on is no fault")

    def test_standby_that_cannot_reach_the_leader_says_so(self):
        kcp = self.dev.kcp()
        self.until_says(1, "well: 3 of 3")
        leader = {key: base64.b64decode(value).decode() for key, value in kcp.get(LEADER)["data"].items()}
        # The leader's address names the standby itself: it asks, and nobody asks further.
        kcp.patch(LEADER, {"stringData": {"port": str(self.pages[1])}})
        self.assertEqual(self.until_says(1, f"(127.0.0.1:{self.pages[1]} responds 421)"), 1)
        said = self.verdict(1)[1]
        self.assertTrue(said.startswith("unknown: no leader: this replica does not lead, pod "), said)
        self.assertIn(f"port-forward pod/{leader['holder'].rsplit('_', 1)[0]} {self.pages[1]}", said)
        shown = json.loads(fetch(self.pages[1], "/runtimes")[1])
        self.assertEqual((shown["leads"], shown["rotation"], shown["conditions"]), (False, {}, []), "nothing else is a state")
        self.assertEqual({(each["state"], each["condition"]) for each in shown["runtimes"]}, {("unknown", "unknown")})
        # A third replica asks the second, which asks nobody on its behalf.
        self.ports.append(free_port())
        self.pages.append(free_port())
        self.start_manager(2)
        self.assertEqual(self.until_says(2, f"(127.0.0.1:{self.pages[1]} responds 421)"), 1)
        code, text = fetch(self.pages[1], "/runtimes", **{"X-Runtime-Watcher-Forwarded": "1"})
        self.assertEqual((code, text.strip()), (421, "this replica does not lead"), "what was forwarded is not forwarded again")
        wait_until(lambda: self.verdict(1)[0] == 0, PATIENCE, "the leader puts it right", every=0.5)
        kcp.delete(LEADER)
        self.until_says(1, "runtime-watcher-leader")
        # The leader writes it again.
        wait_until(lambda: self.verdict(1)[0] == 0, PATIENCE, "the leader is found again", every=0.5)

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
