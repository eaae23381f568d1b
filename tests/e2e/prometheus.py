"""A real Prometheus with the rules of deploy/monitoring, whose alerts fire without a delay."""

import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

from harness import ROOT, Process, free_port

sys.path.insert(0, str(ROOT / "tests"))
import monitoring  # noqa: E402


class Prometheus(Process):
    """Scrapes `targets` each second, with its data in `folder`."""

    def __init__(self, folder, targets):
        folder.mkdir(parents=True, exist_ok=True)
        rules, config = folder / "rules.yaml", folder / "prometheus.json"  # JSON is YAML
        rules.write_text(re.sub(r"^( +for: ).*$", r"\g<1>0s", monitoring.plain_rules(), flags=re.MULTILINE))
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": "runtime-watcher", "static_configs": [{"targets": targets}]}]}))
        self.port = free_port()
        super().__init__("prometheus", ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                                        f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"])

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

    def firing(self):
        return {alert["labels"]["alertname"] for alert in self.api("alerts")["alerts"] if alert["state"] == "firing"}
