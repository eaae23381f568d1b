"""A real Prometheus scrapes `dev` and a webhook: it reads what is served, all rules and dashboards are evaluated without an error, and an
alert fires when the manager is gone."""

import json
import re
import shutil
import sys
import urllib.parse
import urllib.request

import harness
from dev import Dev
from harness import ROOT, EventLog, Listener, Pki, Process, Webhook, free_port, runtime_watcher, wait_until

sys.path.insert(0, str(ROOT / "tests"))
import monitoring  # noqa: E402

PATIENCE = 30


class Monitoring(harness.TestCase):
    # There is none of it when all is well, without an API server to observe, or in mode direct.
    WITHOUT_ANSWER = ("deadline_timestamp", "cert_not_renew", "rw_observation_", "rw_config_sync_")

    def prometheus(self, targets):
        rules = self.folder / "rules.yaml"
        rules.write_text(re.sub(r"^( +for: ).*$", r"\g<1>0s", monitoring.plain_rules(), flags=re.MULTILINE))
        config = self.folder / "prometheus.json"  # JSON is YAML
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": "runtime-watcher", "static_configs": [{"targets": targets}]}]}))
        self.port = free_port()
        self.start(Process("prometheus", ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder}/data",
                                          f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"]))

    def api(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {parameters}: {error.read()[:300]}")

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=10) as answer:
                return answer.status == 200
        except OSError:
            return False

    def scraped(self):
        targets = self.api("targets")["activeTargets"]
        self.assertEqual([t["lastError"] for t in targets if t["health"] == "down"], [])
        return len(targets) == 3 and all(t["health"] == "up" for t in targets)

    def firing(self):
        return {alert["labels"]["alertname"] for alert in self.api("alerts")["alerts"] if alert["state"] == "firing"}

    def test_prometheus_reads_metrics_and_evaluates_rules_and_dashboards(self):
        dev = self.start(Dev(self.folder / "dev", 2, "--bootstrapper-mode", "direct")).wait_up()
        pki = Pki(self.folder / "pki")
        listener = self.start(Listener(EventLog(), "lifecycle-manager", tls=pki.issue("server", "gateway"), client_ca=pki.ca))
        webhook = self.start(Webhook(*pki.issue("webhook", "webhook", cn="runtime-1"), pki.ca, f"localhost:{listener.port}",
                                     env={"HEARTBEAT_INTERVAL": "1s"})).ready()
        targets = [f"127.0.0.1:{port}" for port in (dev.wait_listening("admin"), dev.wait_listening("dev-admin"), webhook.admin)]
        request = urllib.request.Request(f"http://{targets[0]}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            self.assertTrue(answer.headers["content-type"].startswith("application/openmetrics-text"))
            self.assertTrue(answer.read().endswith(b"# EOF\n"))
        self.prometheus(targets)
        wait_until(self.is_ready, PATIENCE, "Prometheus is ready", every=0.1)
        wait_until(self.scraped, PATIENCE, "both targets are scraped", every=0.1)
        # Each rule was evaluated, with what is served.
        def rules():
            return [rule for group in self.api("rules")["groups"] for rule in group["rules"]]
        wait_until(lambda: all(rule["health"] != "unknown" for rule in rules()), PATIENCE, "all rules are evaluated", every=0.1)
        self.assertEqual([rule["name"] for rule in rules() if rule["health"] != "ok"], [])
        self.assertEqual(len(rules()), len(monitoring.SERIES))
        def unanswered():
            """Queries of dashboards; a rate needs two scrapes."""
            return [query for file, query in monitoring.queries() if file.endswith(".json")
                    and not re.search("|".join(self.WITHOUT_ANSWER), query) and not self.api(
                        "query", query=query.replace("$__rate_interval", "1m").replace("$instance", targets[2]))["result"]]
        done = runtime_watcher("replay", "--address", f"localhost:{webhook.port}", "--path", "/validate/lifecycle-manager",
                               "--ca-cert", pki.ca, ROOT / "deploy" / "samples" / "02-kyma-create.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        wait_until(lambda: not unanswered(), PATIENCE, lambda: "these have an answer: " + "\n".join(unanswered()), every=0.5)
        for name in ("process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds", "rw_build_info"):
            self.assertEqual(len(self.api("query", query=name)["result"]), 3, name)
        self.assertNotIn("ManagerHasNoLeader", self.firing())
        self.assertEqual(dev.terminate(), 0, dev.tail())
        wait_until(lambda: "ManagerHasNoLeader" in self.firing(), PATIENCE, lambda: f"the alert fires: {self.firing()}", every=0.1)


if __name__ == "__main__":
    if not shutil.which("prometheus"):
        harness.skip("prometheus is not installed")
    harness.main()
