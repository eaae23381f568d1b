"""A real Prometheus scrapes `dev` and a webhook: it reads what is served, all rules and dashboards are evaluated without an
error and name only what is served, and alerts fire when the webhook's receiver or the manager is gone."""

import json
import re
import shutil
import urllib.request

import harness
from dev import Dev
from harness import ROOT, EventLog, Listener, Pki, Webhook, runtime_watcher, wait_until
from prometheus import Prometheus, monitoring

PATIENCE = 30


class Monitoring(harness.TestCase):
    # There is none of it when all is well.
    WITHOUT_ANSWER = ("deadline_timestamp", "cert_not_renew")
    # What may follow the name of a family in the names of its samples (OpenMetrics 1.0.0, "Suffixes").
    SUFFIXES = {"counter": ("_total",), "gauge": ("",), "unknown": ("",), "histogram": ("_bucket", "_sum", "_count")}

    @staticmethod
    def metrics(target, accept=""):
        request = urllib.request.Request(f"http://{target}/metrics", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.headers["content-type"], answer.read().decode()

    def check_openmetrics(self, target):
        """Each family comes once, with its samples, and nothing follows the end."""
        media_type, text = self.metrics(target, "application/openmetrics-text; version=1.0.0")
        self.assertEqual(media_type, "application/openmetrics-text; version=1.0.0; charset=utf-8")
        lines = text.splitlines()
        self.assertEqual((lines.index("# EOF"), text[-6:]), (len(lines) - 1, "# EOF\n"))
        types = [line.split(" ")[2:] for line in lines if line.startswith("# TYPE ")]
        self.assertEqual(len({name for name, _ in types}), len(types), sorted(types))
        samples = set()
        for line in lines[:-1]:
            if line.startswith("# TYPE "):
                name, kind = line.split(" ")[2:]
                samples = {name + suffix for suffix in self.SUFFIXES[kind]}
            elif not line.startswith("# HELP "):
                self.assertIn(re.match(r"\w+", line)[0], samples, line)

    def scraped(self):
        targets = self.prometheus.api("targets")["activeTargets"]
        self.assertEqual([t["lastError"] for t in targets if t["health"] == "down"], [])
        return len(targets) == 3 and all(t["health"] == "up" for t in targets)

    def replay(self, webhook, pki):
        done = runtime_watcher("replay", "--address", f"localhost:{webhook.port}", "--path", "/validate/lifecycle-manager",
                               "--ca-cert", pki.ca, ROOT / "deploy" / "samples" / "02-kyma-create.json")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_prometheus_reads_metrics_and_evaluates_rules_and_dashboards(self):
        dev = self.start(Dev(self.folder / "dev", 2, "--bootstrapper-mode", "direct")).wait_up()
        pki = Pki(self.folder / "pki")
        certificate = pki.issue("server", "gateway")
        listener = self.start(Listener(EventLog(), "lifecycle-manager", tls=certificate, client_ca=pki.ca))
        managers = self.folder / "managers.json"
        managers.write_text(json.dumps({"version": 1, "watches": [{
            "manager": "lifecycle-manager", "group": "operator.kyma-project.io", "version": "*", "resource": "kymas", "field": "spec"}]}))
        webhook = self.start(Webhook(*pki.issue("webhook", "webhook", cn="runtime-1"), pki.ca, f"localhost:{listener.port}",
                                     env={"HEARTBEAT_INTERVAL": "1s", "MANAGERS_FILE": str(managers)})).ready()
        targets = [f"127.0.0.1:{port}" for port in (dev.wait_listening("admin"), dev.wait_listening("dev-admin"), webhook.admin)]
        for target in targets:
            self.check_openmetrics(target)
        self.prometheus = self.start(Prometheus(self.folder / "prometheus", targets))
        wait_until(self.prometheus.is_ready, PATIENCE, "Prometheus is ready", every=0.1)
        wait_until(self.scraped, PATIENCE, "all targets are scraped", every=0.1)
        # Each rule was evaluated, with what is served.
        def rules():
            return [rule for group in self.prometheus.api("rules")["groups"] for rule in group["rules"]]
        wait_until(lambda: all(rule["health"] != "unknown" for rule in rules()), PATIENCE, "all rules are evaluated", every=0.1)
        self.assertEqual([rule["name"] for rule in rules() if rule["health"] != "ok"], [])
        self.assertEqual(len(rules()), len(monitoring.SERIES))
        def unanswered():
            """Queries of dashboards; a rate needs two scrapes."""
            return [query for file, query in monitoring.queries() if file.endswith(".json")
                    and not re.search("|".join(self.WITHOUT_ANSWER), query) and not self.prometheus.api(
                        "query", query=query.replace("$__rate_interval", "1m").replace("$instance", targets[2])
                        .replace("$cluster", ".*").replace("$namespace", ".*"))["result"]]
        self.replay(webhook, pki)
        wait_until(lambda: not unanswered(), PATIENCE, lambda: "these have an answer: " + "\n".join(unanswered()), every=0.5)
        series = [each for target in targets for each in monitoring.parse(self.metrics(target)[1])]
        self.assertEqual(list(monitoring.not_served(series)), [])
        for name in ("process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds", "rw_build_info"):
            self.assertEqual(len(self.prometheus.api("query", query=name)["result"]), 3, name)
        self.assertEqual(self.prometheus.firing() & {"ManagerHasNoLeader", "WatcherCircuitOpen", "FleetOutage"}, set())
        # The webhook's receiver is gone for a while.
        self.assertEqual(listener.terminate(), 0, listener.tail())
        self.replay(webhook, pki)
        wait_until(lambda: "WatcherCircuitOpen" in self.prometheus.firing(), PATIENCE, lambda: f"the alert fires: {self.prometheus.firing()}", every=0.1)
        self.start(Listener(EventLog(), "lifecycle-manager", port=listener.port, tls=certificate, client_ca=pki.ca))
        wait_until(lambda: "WatcherCircuitOpen" not in self.prometheus.firing(), PATIENCE, "the alert ends", every=0.1)
        # The manager is gone.
        self.assertEqual(dev.terminate(), 0, dev.tail())
        wait_until(lambda: "ManagerHasNoLeader" in self.prometheus.firing(), PATIENCE, lambda: f"the alert fires: {self.prometheus.firing()}", every=0.1)


if __name__ == "__main__":
    if not shutil.which("prometheus"):
        harness.skip("prometheus is not installed")
    harness.main()
