#!/usr/bin/env python3
"""Holds deploy/monitoring against Prometheus' own promtool and against the tree: each alert fires for what it is about, and
not for a landscape in which all is well; it has a row in the runbook, and the runbook an alert in each row; each metric of
alerts and dashboards is one that the sources make. Prints each error; ends with 1 if there is one, with 77 without promtool."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
RULES = ROOT / "deploy" / "monitoring" / "prometheus-rule.yaml"
RUNBOOK = ROOT / "deploy" / "README.md"
AT = 120  # minutes; promtool's clock begins at 0
GROWS, ALWAYS, NEVER = "0+1x120", "{}x120", "0x120"

# Of each alert: series, with values for which it fires, and those for which it does not. One that grows is quiet at 0.
SERIES = {
    "WatcherNotObserving": ("rw_observation_unobserved_watches", "1x120", NEVER),
    "WatcherWatchLags": ('rw_observation_confirmations_total{result="missed"}', GROWS, NEVER),
    "WatcherUndelivered": ("rw_observation_undelivered", "5x120", "0x115 5x5"),
    "WatcherLedgerFails": ('rw_observation_ledger_writes_total{outcome="failed"}', GROWS, NEVER),
    "WatcherEventsWait": ("rw_dispatch_oldest_event_seconds", "61x120", "59x120"),
    "WatcherHeartbeatsFail": ('rw_heartbeats_total{outcome="failed"}', GROWS, "0x118 1x2"),
    "WatcherCircuitOpen": ("rw_dispatch_open_circuits", "1x120", "0x118 1x2"),
    "WatcherBacklog": ('rw_dispatch_manager_events{manager="m"}', "0+10x120", "500-1x120"),
    "WatcherEventsOverflow": ('rw_dispatch_events_total{outcome="overflow"}', GROWS, NEVER),
    "WatcherEventsRejected": ('rw_dispatch_events_total{outcome="rejected"}', GROWS, NEVER),
    "WatcherEventsExpired": ('rw_dispatch_events_total{outcome="expired"}', GROWS, NEVER),
    "WatcherEventsAbandoned": ('rw_dispatch_events_total{outcome="abandoned"}', GROWS, NEVER),
    "WatcherDeliverySlow": ("rw_dispatch_delivery_seconds", "slow", "fast"),
    "WatcherAdmissionOverflow": ("rw_admission_overflow_total", GROWS, NEVER),
    "WatcherUnknownManager": ("rw_admission_unknown_manager_total", GROWS, NEVER),
    "WatcherUnidentifiedObjects": ("rw_admission_unidentified_total", GROWS, NEVER),
    "WatcherManagersFileRejected": ('rw_managers_reloads_total{outcome="refused"}', GROWS, NEVER),
    "WatcherCertificateFilesRejected": ('rw_tls_reloads_total{outcome="refused"}', GROWS, NEVER),
    "WatcherCertificateExpires": ("rw_tls_certificate_not_after_seconds", f"{13 * 86400}x120", f"{15 * 86400}x120"),
    "WatcherRejectsConnections": ('rw_http_rejected_total{reason="flood"}', GROWS, "0x110 5x10"),
    "ManagerHasNoLeader": ('leader_election_master_status{name="m"}', NEVER, "1x120"),
    "ManagerLeadershipLost": ("rw_leader_election_lost_total", GROWS, NEVER),
    "ManagerStandsBack": ("rw_manager_stands_back", "1x120", "0x90 1x30"),
    "RuntimesContested": ("rw_watcher_installer_contested_runtimes", "1x120", NEVER),
    "RuntimesNotInstalled": ('rw_watcher_installer_runtimes{state="failed"}', "1x120", "0x100 1x20"),
    "RuntimesUnhealthy": ("rw_bootstrapper_unhealthy_runtimes", "1x120", NEVER),
    "ReconcilesFail": ('rw_controller_failing_keys{controller="c"}', "1x120", "0x90 1x30"),
    "WorkQueueFull": ('workqueue_refused_total{name="q"}', GROWS, NEVER),
    "RuntimesSilent": ('rw_runtimes{state="silent"}', "1x120", NEVER),
    "RuntimesDegraded": ('rw_runtimes{state="degraded"}', "1x120", "0x117 1x3"),
    "EventsMissed": ("rw_runtime_gaps_total", GROWS, NEVER),
    "EventsLate": ("rw_event_delivery_seconds", "slow", "fast"),
    "ProbesSlow": ("rw_probe_seconds", "slow", "fast"),
    "HeartbeatsOfUnknownRuntimes": ('rw_heartbeats_received_total{outcome="unknown"}', GROWS, NEVER),
    "SendersRejected": ("watcher_listener_failed_verification_requests_total", GROWS, NEVER),
    "ListenerErrors": ("watcher_listener_request_errors_total", GROWS, "0x110 5x10"),
    "EventsOfUnknownRuntimes": ('rw_kyma_router_events_total{outcome="forgotten"}', GROWS, NEVER),
    "RuntimeCertificateNotReissued": ('lifecycle_mgr_self_signed_cert_not_renew{kyma_name="k"}', "1x120", NEVER),
    "GatewayCertificateExpires": ("lifecycle_mgr_gateway_secret_server_cert_close_to_expiry", "1x120", NEVER),
    "RotationBlocked": ('rw_gateway_secret_phase{phase="blocked"}', "1x120", NEVER),
    "RotationDeadlineNear": ("rw_gateway_secret_deadline_timestamp_seconds", "86400x120", NEVER),
    "ConfigurationFails": ('rw_config_sync_state_since_timestamp_seconds{state="failed"}', "60x120", NEVER),
    "ConfigurationStuck": ('rw_config_sync_state_since_timestamp_seconds{state="marked"}', "60x120", "6000x120"),
    "ContentOutdated": ('rw_bootstrapper_content_state_since_timestamp_seconds{state="outdated"}', "60x120", "6000x120"),
    "RuntimesWithoutBootstrapper": ('rw_bootstrapper_content_runtimes{state="NoResource"}', "1x120", NEVER),
    "BootstrapperFails": ('rw_bootstrapper_runtimes{state="failed"}', "1x120", NEVER),
    "RolloutPaused": ('rw_rollout_phase{phase="Paused",component="watcher"}', "1x120", NEVER),
    "RolloutBypassed": ("rw_rollout_ahead_runtimes", "1x120", NEVER),
}
# What an alert needs beside its series.
BESIDE = {"RotationDeadlineNear": [{"series": 'rw_gateway_secret_missing_runtimes{instance="i"}', "values": "2x120"}]}
# Names that one line of the sources makes of parts.
MADE_OF_PARTS = re.compile(r"^(rw_(watcher_installer|bootstrapper|bootstrapper_content|config_sync)_|ALERTS$)")


def series_of(name, values):
    if values in ("slow", "fast"):
        # All observations are above the largest finite bound, or below the smallest.
        return [{"series": f'{name}_bucket{{le="{bound}",instance="i"}}', "values": NEVER if values == "slow" and bound != "+Inf" else GROWS}
                for bound in ("0.001", "1", "60", "+Inf")]
    name = name.replace("{", '{instance="i",') if "{" in name else name + '{instance="i"}'
    return [{"series": name, "values": values}]


def promtool_tests(rules):
    groups = []
    for alert, (name, firing, quiet) in SERIES.items():
        for values, count in ((firing, 1), (quiet, 0)):
            query = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
            groups.append({"interval": "1m", "input_series": series_of(name, values) + BESIDE.get(alert, []), "promql_expr_test": [
                {"expr": query, "eval_time": f"{AT}m", "exp_samples": [{"labels": "{}", "value": count}]}]})
    return json.dumps({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": groups})


def plain_rules():
    """The rules file inside the PrometheusRule."""
    spec = RULES.read_text().split("\nspec:\n")[1]
    return "".join(line[2:] + "\n" for line in spec.splitlines())


def queries():
    for expression in re.findall(r"^ +expr: (.*)$", RULES.read_text(), flags=re.MULTILINE):
        yield RULES.name, expression
    for path in sorted((RULES.parent / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", []):
                yield path.name, target["expr"]


def main():
    if not shutil.which("promtool"):
        print("skipped: promtool is not installed")
        return 77
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        rules, tests = pathlib.Path(folder) / "rules.yaml", pathlib.Path(folder) / "tests.yaml"
        rules.write_text(plain_rules())
        tests.write_text(promtool_tests(rules))
        for command in (["check", "rules", rules], ["test", "rules", tests]):
            done = subprocess.run(["promtool", *map(str, command)], text=True, capture_output=True, timeout=60)
            if done.returncode != 0:
                errors.append(f"promtool {command[0]}: {done.stdout}{done.stderr}")
    alerts = re.findall(r"^ +- alert: (\w+)$", RULES.read_text(), flags=re.MULTILINE)
    if sorted(alerts) != sorted(SERIES):
        errors.append(f"without a test, or without an alert: {set(alerts) ^ set(SERIES)}")
    runbook = RUNBOOK.read_text().split("\n## Runbook")[1]
    rows = [row for row in re.findall(r"^\| (.*)$", runbook, flags=re.MULTILINE) if not row.startswith(("alert |", "---"))]
    named = [re.match(r'<a id="(\w+)"></a>(\w+): ', row) for row in rows]
    errors += [f"a row of the runbook has no alert: {row[:80]}" for row, name in zip(rows, named) if not name]
    if sorted(name[2] for name in named if name) != sorted(alerts):
        errors.append(f"in the runbook, or in the rules alone: {({n[2] for n in named if n}) ^ set(alerts)}")
    for name in filter(None, named):
        if name[1] != name[2].lower() or f"runbook_url: deploy/README.md#{name[1]}\n" not in RULES.read_text():
            errors.append(f"{name[2]}: its row and its runbook_url differ")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-B", RULES.parent / "dashboards.py", folder], check=True)
        made = {path.name: path.read_text() for path in pathlib.Path(folder).iterdir()}
    if made != {path.name: path.read_text() for path in (RULES.parent / "dashboards").iterdir()}:
        errors.append("the dashboards are not those of dashboards.py: run it")
    sources = "".join(path.read_text() for part in ("core", "k8s", "tls", "reactors") for path in (ROOT / part).rglob("*.?pp"))
    for file, query in queries():
        bare = re.sub(r'"[^"]*"|\{[^}]*\}|\b(by|without|on|ignoring) ?\([^)]*\)', "", query)
        for metric in set(re.findall(r"\b[a-z]+(?:_[a-z0-9]+)+\b(?! ?\()", bare)) - {"histogram_quantile"}:
            made = re.sub(r"_(bucket|sum|count)$", "", metric)
            if f'"{made}"' not in sources and f'"{metric}"' not in sources and not MADE_OF_PARTS.match(metric):
                errors.append(f"{file}: no such metric: {metric}")
    print("\n".join(errors) if errors else f"{len(alerts)} alerts fire, and only when they should")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
