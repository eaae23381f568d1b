#!/usr/bin/env python3
"""Holds deploy/monitoring against Prometheus' own promtool and against the tree: each alert fires for what it is about, and
not for a landscape in which all is well; it has a row in the runbook, and the runbook an alert in each row; each metric of
alerts and dashboards is one that the sources make; dashboards have what Grafana needs. Prints each error; ends with 1 if there
is one, with 77 without promtool. tests/e2e/monitoring_test.py holds names and labels against what processes serve."""

import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
RULES = ROOT / "deploy" / "monitoring" / "prometheus-rule.yaml"
RUNBOOK = ROOT / "deploy" / "runbook.md"
AT = 120  # minutes; promtool's clock begins at 0
GROWS, NEVER = "0+1x120", "0x120"
MANAGER = 'leader_election_master_status{name="runtime-watcher-manager"}'

# Of each alert: series, with values for which it fires, and those for which it does not. One that grows is quiet at 0.
SERIES = {
    "WatcherNotObserving": ("rw_observation_unobserved_watches", "1x120", NEVER),
    "WatcherWatchLags": ('rw_observation_confirmations_total{result="missed"}', GROWS, NEVER),
    "WatcherUndelivered": ("rw_observation_undelivered", "5x120", "0x115 5x5"),
    "WatcherEventsWait": ("rw_dispatch_oldest_event_seconds", "61x120", "59x120"),
    "WatcherHeartbeatsFail": ('rw_heartbeats_total{outcome="failed"}', GROWS, "0x118 1x2"),
    "WatcherCircuitOpen": ("rw_dispatch_open_circuits", "1x120", "0x118 1x2"),
    "WatcherBacklog": ('rw_dispatch_manager_events{manager="m"}', "0+10x120", "500-1x120"),
    "WatcherEventsLost": ('rw_event_losses_total{reason="overflow"}', GROWS, NEVER),
    "WatcherEventsRejected": ('rw_dispatch_events_total{outcome="rejected"}', GROWS, NEVER),
    "WatcherEventsAbandoned": ('rw_dispatch_events_total{outcome="abandoned"}', GROWS, NEVER),
    "WatcherDeliverySlow": ("rw_dispatch_delivery_seconds", "slow", "fast"),
    "WatcherAdmissionOverflow": ("rw_admission_overflow_total", GROWS, NEVER),
    "WatcherUnknownManager": ("rw_admission_unknown_manager_total", GROWS, NEVER),
    "WatcherUnidentifiedObjects": ("rw_admission_unidentified_total", GROWS, NEVER),
    "WatcherManagersFileRejected": ('rw_managers_reloads_total{outcome="refused"}', GROWS, NEVER),
    "WatcherCertificateFilesRejected": ('rw_tls_reloads_total{outcome="refused"}', GROWS, NEVER),
    "WatcherCertificateExpires": ("rw_tls_certificate_not_after_timestamp_seconds", f"{13 * 86400}x120", f"{15 * 86400}x120"),
    "WatcherRejectsConnections": ('rw_http_rejected_total{reason="flood"}', GROWS, "0x110 5x10"),
    "ManagerHasNoLeader": (MANAGER, NEVER, "1x120"),
    "ManagerLeadershipLost": ("rw_leader_election_lost_total", GROWS, NEVER),
    "LeaseRequestsFail": ("rw_leader_election_failures_total", GROWS, "0x115 1 2 3x3"),
    "ManagerStandsBack": ("rw_manager_stands_back", "1x120", "0x90 1x30"),
    "RecordsNotKept": ("rw_watcher_installer_records_not_kept", "1x120", "0x115 1x5"),
    "InputInvalid": ("rw_watcher_installer_invalid_inputs", "1x120", "0x117 1x3"),
    "RuntimesContested": ("rw_watcher_installer_contested_runtimes", "2x120", NEVER),
    "RuntimesUnhealthy": ("rw_bootstrapper_unhealthy_runtimes", "2x120", NEVER),
    "ReconcilesFail": ('rw_controller_failing_keys{controller="c"}', "1x120", "0x90 1x30"),
    "ReconcilesTimeOut": ('rw_controller_reconcile_timeouts_total{controller="c"}', GROWS, NEVER),
    "WorkQueueStuck": ('workqueue_longest_running_processor_seconds{name="q"}', "601x120", "599x120"),
    "WorkQueueFull": ('workqueue_refused_total{name="q"}', GROWS, NEVER),
    "ApiRequestsFail": ('rw_kube_requests_total{client="kcp",code="503"}', GROWS, "0+0.04x120"),
    "FleetOutage": ('rw_fleet_verdict{verdict="outage"}', "1x120", "0x117 1x3"),
    "FleetDegraded": ('rw_fleet_verdict{verdict="degraded"}', "1x120", "0x100 1x20"),
    "ObjectiveBurnsFast": ('rw_fleet_sli_runtimes{sli="path",state="good"}', "985x120", "986x120"),
    "ObjectiveBurnsSlowly": ('rw_fleet_sli_runtimes{sli="path",state="good"}', "993x120", "995x120"),
    "FleetVerdictOld": ("rw_fleet_verdict_timestamp_seconds", "0+60x110 6600x10", "0+60x120"),
    "RuntimesLongTail": ('rw_fleet_runtimes{condition="ill"}', "1x120", "0x100 1x20"),
    "EventsMissed": ("rw_runtime_losses_total", GROWS, NEVER),
    "EventsLate": ("rw_event_delivery_seconds", "slow", "fast"),
    "ProbesSlow": ("rw_probe_seconds", "slow", "fast"),
    "HeartbeatsOfUnknownRuntimes": ('rw_heartbeats_received_total{outcome="unknown"}', GROWS, NEVER),
    "SendersRejected": ("watcher_listener_failed_verification_requests_total", GROWS, NEVER),
    "ListenerErrors": ("watcher_listener_request_errors_total", GROWS, "0+0.005x120"),
    "EventsOfUnknownRuntimes": ('rw_kyma_router_events_total{outcome="unknown"}', GROWS, NEVER),
    "RuntimeCertificateNotReissued": ('lifecycle_mgr_self_signed_cert_not_renew{kyma_name="k"}', "1x120", NEVER),
    "GatewayCertificateExpires": ("lifecycle_mgr_gateway_secret_server_cert_close_to_expiry", "1x120", NEVER),
    "RotationBlocked": ('rw_gateway_secret_phase{phase="blocked"}', "1x120", NEVER),
    "RotationHeldUp": ("rw_gateway_secret_held_up", "1x120", "0x100 1x20"),
    "RotationDeadlineNear": ("rw_gateway_secret_missing_runtimes", "2x120", NEVER),
    "ConfigurationFails": ('rw_config_sync_runtimes{state="failed"}', "2x120", NEVER),
    "ConfigurationStuck": ('rw_config_sync_runtimes{state="marked"}', "2x120", NEVER),
    "ContentOutdated": ('rw_bootstrapper_content_runtimes{state="outdated"}', "2x120", NEVER),
    "RuntimesWithoutBootstrapper": ('rw_bootstrapper_content_runtimes{state="NoResource"}', "2x120", NEVER),
    "BootstrapperFails": ('rw_bootstrapper_runtimes{state="failed"}', "2x120", NEVER),
    "RolloutPaused": ('rw_rollout_phase{phase="Paused",component="watcher"}', "1x120", NEVER),
    "RolloutClosed": ("rw_rollout_closed", "1x120", "0x120"),
    "RolloutBypassed": ('rw_rollout_ahead_runtimes{component="watcher"}', "2x120", NEVER),
    "ProcessRestarts": ("process_start_time_seconds", "100x65 200x9 300x9 400x60", "100x65 200x9 300x60"),
    "ProcessMemoryHigh": ("process_resident_memory_bytes", f"{900 << 20}x120", f"{800 << 20}x120"),
    "ProcessFilesHigh": ("process_open_fds", "81x120", "79x120"),
}
BUILD = {"rw_build_info": "1x120"}
FLEET = {'rw_watcher_installer_runtimes{state="installed"}': "98x120"}
JUDGED = {'rw_fleet_runtimes{condition="ill"}': NEVER, 'rw_fleet_runtimes{condition="well"}': "98x120",
          "rw_fleet_verdict_timestamp_seconds": "0+60x120"}
SYNCED = {'rw_config_sync_runtimes{state="current"}': "98x120"}
CONTENT = {'rw_bootstrapper_content_runtimes{state="current"}': "98x120"}
# What an alert needs beside its series.
BESIDE = {
    "RotationDeadlineNear": {"rw_gateway_secret_deadline_timestamp_seconds": "86400x120", **FLEET},
    "WorkQueueStuck": BUILD,
    "ApiRequestsFail": {'rw_kube_requests_total{client="kcp",code="200"}': GROWS},
    "FleetOutage": JUDGED,
    **{alert: {'rw_fleet_sli_runtimes{sli="path",state="all"}': "1000x120"} for alert in ("ObjectiveBurnsFast", "ObjectiveBurnsSlowly")},
    "FleetDegraded": JUDGED,
    **{alert: FLEET for alert in ("RuntimesContested", "RuntimesUnhealthy", "EventsMissed",
                                  "RuntimeCertificateNotReissued")},
    "HeartbeatsOfUnknownRuntimes": {'rw_heartbeats_received_total{outcome="accepted"}': "0+50x120"},
    "EventsOfUnknownRuntimes": {'rw_kyma_router_events_total{outcome="known"}': "0+50x120"},
    "ListenerErrors": {"watcher_listener_requests_total": "0+50x120"},
    "ConfigurationFails": {'rw_config_sync_state_since_timestamp_seconds{state="failed"}': "60x120", **SYNCED},
    "ConfigurationStuck": {'rw_config_sync_state_since_timestamp_seconds{state="marked"}': "60x120", **SYNCED},
    "ContentOutdated": {'rw_bootstrapper_content_state_since_timestamp_seconds{state="outdated"}': "60x120", **CONTENT},
    "RuntimesWithoutBootstrapper": CONTENT,
    "BootstrapperFails": {'rw_bootstrapper_runtimes{state="installed"}': "98x120"},
    "RolloutBypassed": {'rw_rollout_runtimes{component="watcher",state="done"}': "98x120"},
    "ProcessRestarts": BUILD,
    "ProcessMemoryHigh": {"rw_manager_stands_back": NEVER},
    "ProcessFilesHigh": {"process_max_fds": "100x120", **BUILD},
}
OTHER = 'leader_election_master_status{name="another-operator"}'
RESTARTED = "100x110 200x10"
REJECTED = 'watcher_listener_failed_verification_requests_total{request_uri_label="p"}'
THOUSAND = {'rw_watcher_installer_runtimes{state="installed"}': "1000x120"}
# Further cases: the alert, all series, and whether it fires.
CASES = [
    ("ManagerHasNoLeader", {}, True),
    ("ManagerHasNoLeader", {OTHER: "1x120"}, True),
    ("ManagerHasNoLeader", {OTHER: "1x120", MANAGER: "1x120"}, False),
    ("ManagerHasNoLeader", {MANAGER: "1x100"}, True),
    ("ManagerHasNoLeader", {MANAGER: "1x120", MANAGER.replace("{", '{instance="j",'): "1x120"}, True),
    # The counter of a leader that ends is not scraped, but that it has started again.
    ("ManagerLeadershipLost", {MANAGER: "1x110 0x10", "process_start_time_seconds": RESTARTED}, True),
    ("ManagerLeadershipLost", {MANAGER: NEVER, "process_start_time_seconds": RESTARTED}, False),
    ("ManagerLeadershipLost", {OTHER: "1x120", "process_start_time_seconds": RESTARTED}, False),
    # A series that begins with 1 has not increased.
    ("SendersRejected", {REJECTED: "_x110 1x10"}, True),
    ("SendersRejected", {REJECTED: "_x60 1x60"}, False),
    ("RotationDeadlineNear", {"rw_gateway_secret_deadline_timestamp_seconds": f"{4 * 86400}x120", "rw_gateway_secret_missing_runtimes": "2x120", **FLEET}, False),
    ("RotationDeadlineNear", {"rw_gateway_secret_deadline_timestamp_seconds": "86400x120", "rw_gateway_secret_missing_runtimes": "1x120", **THOUSAND}, False),
    ("RotationBlocked", {'rw_gateway_secret_phase{phase="no_root"}': "1x120"}, True),
    ("RotationBlocked", {'rw_gateway_secret_phase{phase="distributing"}': "1x120"}, False),
    # A verdict that is old, or none, is read by nobody; without runtimes there may be a fault.
    ("FleetOutage", {'rw_fleet_verdict{verdict="outage"}': "1x120", **JUDGED, "rw_fleet_verdict_timestamp_seconds": "0+60x117 7020x3"}, False),
    ("FleetOutage", {'rw_fleet_verdict{verdict="outage"}': "1x120", **{k: v for k, v in JUDGED.items() if "timestamp" not in k}}, False),
    ("FleetOutage", {'rw_fleet_verdict{verdict="degraded"}': "1x120", **JUDGED}, False),
    ("FleetDegraded", {'rw_fleet_verdict{verdict="unknown"}': "1x120", **JUDGED}, True),
    ("FleetDegraded", {'rw_fleet_verdict{verdict="degraded"}': "1x120", **JUDGED, 'rw_fleet_runtimes{condition="well"}': NEVER}, True),
    ("FleetVerdictOld", {}, False),
    # What is over for five minutes no longer pages; an outage has its own page.
    ("ObjectiveBurnsFast", {'rw_fleet_sli_runtimes{sli="path",state="all"}': "1000x120", 'rw_fleet_sli_runtimes{sli="path",state="good"}': "900x113 1000x7"}, False),
    ("ObjectiveBurnsFast", {'rw_fleet_sli_runtimes{sli="path",state="all"}': "1000x120", 'rw_fleet_sli_runtimes{sli="path",state="good"}': "900x120",
                            'rw_fleet_verdict{verdict="outage"}': "1x120"}, False),
    ("RuntimesUnhealthy", {"rw_watcher_installer_unhealthy_runtimes": "2x120", **FLEET}, True),
    # Of a thousand, a few are always ill.
    *((alert, {SERIES[alert][0]: "5x120", **THOUSAND}, False) for alert in ("RuntimesContested", "RuntimesUnhealthy")),
    ("EventsMissed", {"rw_runtime_losses_total": "0+0.5x120", **THOUSAND}, False),
    ("RuntimeCertificateNotReissued", {'lifecycle_mgr_self_signed_cert_not_renew{kyma_name="k"}': "1x120", **THOUSAND}, False),
    ("ReconcilesFail", {'rw_controller_failing_keys{controller="probe"}': "5x120", **THOUSAND}, False),
    ("ReconcilesFail", {'rw_controller_failing_keys{controller="probe"}': "20x120", **THOUSAND}, True),
    ("HeartbeatsOfUnknownRuntimes", {'rw_heartbeats_received_total{outcome="unknown"}': GROWS, 'rw_heartbeats_received_total{outcome="accepted"}': "0+500x120"}, False),
    ("EventsOfUnknownRuntimes", {'rw_kyma_router_events_total{outcome="unknown"}': GROWS, 'rw_kyma_router_events_total{outcome="known"}': "0+500x120"}, False),
    # What waits has not waited long.
    ("ConfigurationFails", {**BESIDE["ConfigurationFails"], 'rw_config_sync_runtimes{state="failed"}': "2x120",
                            'rw_config_sync_state_since_timestamp_seconds{state="failed"}': "6000x120"}, False),
    ("ContentOutdated", {**BESIDE["ContentOutdated"], 'rw_bootstrapper_content_runtimes{state="outdated"}': "2x120",
                         'rw_bootstrapper_content_state_since_timestamp_seconds{state="outdated"}': "6000x120"}, False),
    *(("RuntimesLongTail", {series: "1x120"}, True) for series in (
        "rw_watcher_installer_contested_runtimes",
        'rw_bootstrapper_content_runtimes{state="NoResource"}', 'lifecycle_mgr_self_signed_cert_not_renew{kyma_name="k"}')),
    ("WatcherHeartbeatsFail", {'rw_heartbeats_total{outcome="unsupported"}': GROWS}, True),
    ("ConfigurationStuck", {'rw_config_sync_runtimes{state="outdated"}': "2x120", 'rw_config_sync_state_since_timestamp_seconds{state="outdated"}': "60x120", **SYNCED}, True),
    ("ConfigurationStuck", {'rw_config_sync_runtimes{state="in_progress"}': "2x120", 'rw_config_sync_state_since_timestamp_seconds{state="in_progress"}': "60x120", **SYNCED}, True),
    ("ApiRequestsFail", {'rw_kube_requests_total{client="kcp-shared",code="unreachable"}': GROWS}, True),
    ("ApiRequestsFail", {'rw_kube_requests_total{client="kcp",code="404"}': GROWS}, False),
    ("ApiRequestsFail", {'rw_kube_requests_total{client="runtimes",code="503"}': GROWS, 'rw_kube_requests_total{client="kcp",code="200"}': GROWS}, False),
    # Of other operators.
    ("WorkQueueStuck", {'workqueue_longest_running_processor_seconds{name="q"}': "601x120"}, False),
    ("ProcessRestarts", {"process_start_time_seconds": "100x65 200x9 300x9 400x60"}, False),
    ("ProcessMemoryHigh", {"process_resident_memory_bytes": f"{9 << 30}x120"}, False),
    ("ProcessMemoryHigh", {"process_resident_memory_bytes": f"{170 << 20}x120", "rw_dispatch_open_circuits": NEVER}, True),
    ("ProcessMemoryHigh", {"process_resident_memory_bytes": f"{150 << 20}x120", "rw_dispatch_open_circuits": NEVER}, False),
]
FROM_THE_SCRAPE = {"cluster", "namespace", "landscape"}
# Made only when there is something to count.
RARE = {"watcher_listener_failed_verification_requests_total", "lifecycle_mgr_self_signed_cert_not_renew"}
# Names that one line of the sources makes of parts.
MADE_OF_PARTS = re.compile(r"^(rw_(watcher_installer|bootstrapper|bootstrapper_content|config_sync)_)")


def series_of(name, values):
    if values in ("slow", "fast"):
        # All observations are above the largest finite bound, or below the smallest.
        return [{"series": f'{name}_bucket{{le="{bound}",instance="i"}}', "values": NEVER if values == "slow" and bound != "+Inf" else GROWS}
                for bound in ("0.001", "1", "60", "+Inf")]
    if "instance=" not in name:
        name = name.replace("{", '{instance="i",') if "{" in name else name + '{instance="i"}'
    return [{"series": name, "values": values}]


def cases():
    """The alert, its series with their values, and whether it fires."""
    for alert, (name, firing, quiet) in SERIES.items():
        beside = BESIDE.get(alert, {})
        yield alert, {name: firing, **beside}, True
        yield alert, {name: quiet, **beside}, False
    yield from CASES


def all_is_well():
    """The quiet series of all alerts together; what several have differently is that of a process at rest."""
    found = {}
    for alert, (name, _, quiet) in SERIES.items():
        found = {name: quiet, **found, **BESIDE.get(alert, {})}
    found['rw_fleet_sli_runtimes{sli="path",state="good"}'] = "1000x120"
    return {**found, "process_start_time_seconds": "100x120", "process_resident_memory_bytes": f"{9 << 20}x120",
            "rw_gateway_secret_missing_runtimes": NEVER, 'rw_kube_requests_total{client="kcp",code="200"}': GROWS}


def promtool_test(rules, series, query, samples):
    return {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [{
        "interval": "1m", "input_series": [each for name, values in series.items() for each in series_of(name, values)],
        "promql_expr_test": [{"expr": query, "eval_time": f"{AT}m", "exp_samples": samples}]}]}


def write_promtool_tests(folder):
    """A file for each case, with its alert alone; and one with all alerts, for a landscape in which all is well. Yields them."""
    alone = {}
    for text in re.split(r"(?m)^(?=      - alert: )", re.sub(r"(?m)^  - name: .*\n    rules:\n", "", plain_rules()))[1:]:
        name = re.match(r"      - alert: (\w+)", text)[1]
        alone[name] = folder / f"{name}.rules"
        alone[name].write_text(f"groups:\n  - name: {name}\n    rules:\n{text}")
    for number, (alert, series, fires) in enumerate(cases()):
        query = 'count by (alertname) (ALERTS{alertstate="firing"}) > bool 0'
        samples = [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if fires else []
        path = folder / f"{number}-{alert}-{'fires' if fires else 'is-quiet'}.test"
        path.write_text(json.dumps(promtool_test(alone[alert], series, query, samples)))
        yield path
    path, rules = folder / "all-is-well.test", folder / "all.rules"
    rules.write_text(plain_rules())
    for name, series, expected in landscape_tests():
        test = promtool_test(rules, {}, "", [])
        test["tests"][0].update(input_series=series, promql_expr_test=[
            {"expr": query, "eval_time": f"{minute}m", "exp_samples": samples} for minute, query, samples in expected])
        (folder / f"{name}.test").write_text(json.dumps(test))
        yield folder / f"{name}.test"
    path.write_text(json.dumps(promtool_test(rules, all_is_well(), 'count by (alertname) (ALERTS{alertstate="firing"})', [])))
    yield path


def landscape(labels, **states):
    """Series of a landscape of 5,000 runtimes with two replicas. `states` has other values for some of them."""
    values = {"leader": "1x120", "ill": NEVER, "well": "5000x120", "outage": NEVER, "judged": "0+60x120", "all": "5000x120", **states}
    for name, key in ((MANAGER, "leader"), ('rw_fleet_runtimes{condition="ill"}', "ill"), ('rw_fleet_runtimes{condition="well"}', "well"),
                      ('rw_fleet_verdict{verdict="outage"}', "outage"), ("rw_fleet_verdict_timestamp_seconds", "judged"),
                      ('rw_watcher_installer_runtimes{state="installed"}', "well"), ("rw_watcher_installer_unhealthy_runtimes", "ill"),
                      ('rw_fleet_sli_runtimes{sli="path",state="good"}', "well"), ('rw_fleet_sli_runtimes{sli="path",state="all"}', "all")):
        joined = name.replace("{", f'{{instance="one",{labels},') if "{" in name else f'{name}{{instance="one",{labels}}}'
        yield {"series": joined, "values": values[key]}
    if "standby" in values:
        yield {"series": MANAGER.replace("{", f'{{instance="two",{labels},'), "values": values["standby"]}


def landscape_tests():
    """What pages in a Prometheus of two landscapes, told apart by one label or another: name, series, [(minute, query, samples)]."""
    pages, rest = 'ALERTS{alertstate="firing",severity="critical"}', 'count by (severity) (ALERTS{alertstate="firing",severity!="critical"})'
    few = {"ill": "5x120", "well": "4995x120"}
    tenth = {"ill": "0x60 500x60", "well": "5000x60 4500x60", "outage": "0x60 1x60"}
    # An outage that ends, and one of four minutes again and again, each with a minute of health.
    over = {"ill": "0x60 500x30 0x60", "well": "5000x60 4500x30 5000x60", "outage": "0x60 1x30 0x60"}
    flapping = {"ill": "0x60" + 12 * " 500x3 0x0", "well": "5000x60" + 12 * " 4500x3 5000x0", "outage": "0x60" + 12 * " 1x3 0x0"}
    # After seven hours of health: 3 % of the runtimes at once, and 0.7 % for hours.
    for name, good, alert, severity, quiet, fires in (
            ("burns-fast", "5000x420 4850x60", "ObjectiveBurnsFast", "critical", 425, 440),
            ("burns-slowly", "5000x420 4965x400", "ObjectiveBurnsSlowly", "warning", 600, 800)):
        series = [{"series": f'rw_fleet_sli_runtimes{{instance="one",sli="delivery",state="{state}"}}', "values": values}
                  for state, values in (("good", good), ("all", "5000x830"))]
        yield f"objective-{name}", series, [
            (quiet, 'ALERTS{alertstate="firing",sli="delivery"}', []), (fires, 'ALERTS{alertstate="firing",sli="delivery"}', [
                {"labels": f'ALERTS{{alertname="{alert}",alertstate="firing",severity="{severity}",sli="delivery"}}', "value": 1}])]
    for label in ("cluster", "namespace", "landscape"):
        one, other = f'{label}="one"', f'{label}="other"'
        def paged(alert, more=""):
            return [{"labels": f'ALERTS{{alertname="{alert}",alertstate="firing",severity="critical",{other}{more}}}', "value": 1}]
        yield f"{label}-few-ill", [*landscape(one, **few), *landscape(other, **few)], [
            *((minute, pages, []) for minute in range(0, 120, 5)), (60, rest, [{"labels": '{severity="info"}', "value": 2}])]
        # ALERTS of the other landscape alone, from minute 75 on.
        yield f"{label}-tenth-ill", [*landscape(one, **few), *landscape(other, **tenth)], [
            (59, pages, []), *((minute, pages, paged("FleetOutage")) for minute in (75, 90, 119))]
        yield f"{label}-tenth-ill-for-a-while", [*landscape(one, **few), *landscape(other, **over)], [
            *((minute, pages, []) for minute in range(55, 65)), *((minute, pages, paged("FleetOutage")) for minute in (67, 80, 91)),
            *((minute, pages, []) for minute in range(92, 121))]
        yield f"{label}-tenth-ill-again-and-again", [*landscape(one, **few), *landscape(other, **flapping)], [
            *((minute, pages, paged("ObjectiveBurnsFast", ',sli="path"')) for minute in (70, 90, 120))]
        for name, leader in (("steps-down", {"leader": "1x60 0x60", "standby": NEVER}), ("vanishes", {"leader": "1x60", "standby": NEVER, "judged": "0+60x60"}),
                             ("and-standby-vanish", {"leader": "1x60", "standby": "0x60", "judged": "0+60x60"}), ("is-not-alone", {"standby": "0x60 1x60"})):
            yield f"{label}-leader-{name}", [*landscape(one), *landscape(other, **leader)], [
                (59, pages, []), *((minute, pages, paged("ManagerHasNoLeader")) for minute in (75, 119))]


def plain_rules():
    """The rules file inside the PrometheusRule."""
    spec = RULES.read_text().split("\nspec:\n")[1]
    return "".join(line[2:] + "\n" for line in spec.splitlines())


def queries():
    """The file and the expression of each alert and each panel's target."""
    for line, block in re.findall(r"^ +expr: (.*)\n((?: {12}.*\n)*)", RULES.read_text(), flags=re.MULTILINE):
        yield RULES.name, " ".join(block.split()) if line == ">-" else line
    for path in sorted((RULES.parent / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", []):
                yield path.name, target["expr"]


def selectors(query):
    """Each metric of a query, with the matchers of its labels: (name, [(label, operator, value)])."""
    bare = re.sub(r"\bgroup_left\b|\b(by|without|on|ignoring) ?\([^)]*\)|\[[^]]*\]", "", query)
    for name, braces in re.findall(r"\b([a-z]+(?:_[a-z0-9]+)+)\b(?! ?\()(\{[^}]*\})?", bare):
        yield name, [match for match in re.findall(r'(\w+)(=~|=)"([^"]*)"', braces) if not match[2].startswith("$")]


def parse(text):
    """The series of Prometheus' text format: (name, labels)."""
    for name, labels in re.findall(r"^([a-z]\w*)(?:\{(.*)\})? ", text, flags=re.MULTILINE):
        yield name, dict(re.findall(r'(\w+)="((?:\\.|[^"\\])*)"', labels))


def not_served(series):
    """What alerts and dashboards name that is not among these series: metrics, values of labels, labels of groups and legends."""
    by_name = {}
    for name, labels in series:
        by_name.setdefault(name, []).append({"instance": "i", **labels})
    for file, query in queries():
        found = []
        for name, matchers in selectors(query):
            there = by_name.get(name, [])
            found += there
            if not there and name not in RARE:
                yield f"{file}: {name}"
            for label, operator, value in matchers if there else []:
                # Each alternative is there, but codes of responses, which are made when they come.
                for one in value.split("|") if operator == "=~" and label != "code" else [value] if operator == "=" else []:
                    if not any(re.fullmatch(one, labels.get(label, "")) for labels in there):
                        yield f"{file}: {name}{{{label}={one}}}"
        for label in re.findall(r"\w+", " ".join(re.findall(r"\b(?:by|on) ?\(([^)]*)\)", query))):
            if found and label not in FROM_THE_SCRAPE and not any(label in labels for labels in found):
                yield f"{file}: label {label} in {query}"
    for path in sorted((RULES.parent / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", []):
                for label in set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) - labels_of(target["expr"], by_name):
                    yield f"{path.name}: label {label} in the legend of {target['expr']}"
    for alert in re.split(r"(?m)^        - alert: ", RULES.read_text())[1:]:
        query = alert.split("labels: {severity")[0]
        if any(name in by_name for name, _ in selectors(query)):
            for label in set(re.findall(r"\$labels\.(\w+)", alert)) - labels_of(query, by_name) - FROM_THE_SCRAPE:
                yield f"{RULES.name}: label {label} of {alert.split()[0]}"


def labels_of(query, by_name):
    """The labels that the result of a query may have: those of its groups, or of its metrics."""
    if re.search(r"\b(sum|count|min|max)\b", query):
        return set(re.findall(r"\w+", " ".join(re.findall(r"\bby ?\(([^)]*)\)", query))))
    return {label for name, _ in selectors(query) for each in by_name.get(name, []) for label in each}


def dashboard_errors():
    for path in sorted((RULES.parent / "dashboards").glob("*.json")):
        board = json.loads(path.read_text())
        if board["uid"] != path.stem or not isinstance(board["schemaVersion"], int) or not board["title"]:
            yield f"{path.name}: uid, schemaVersion or title"
        variables = {each["name"] for each in board["templating"]["list"]}
        if not {"datasource", "cluster", "namespace"} <= variables:
            yield f"{path.name}: no variable datasource, cluster or namespace"
        if not any(link["type"] == "dashboards" and set(link["tags"]) & set(board["tags"]) for link in board["links"]):
            yield f"{path.name}: no link to the other dashboards"
        panels = board["panels"]
        if not any(panel["type"] == "stat" for panel in panels):
            yield f"{path.name}: no stat"
        if len({panel["id"] for panel in panels}) != len(panels):
            yield f"{path.name}: an id twice"
        taken = set()
        for panel in panels:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            if cells & taken or at["x"] + at["w"] > 24:
                yield f"{path.name}: {panel['title']} covers another panel"
            taken |= cells
            if panel["type"] == "row":
                continue
            if panel["datasource"]["uid"] != "${datasource}" or not panel["targets"]:
                yield f"{path.name}: {panel['title']} has no data"
            for target in panel["targets"]:
                for name in re.findall(r"\b[a-z]+(?:_[a-z0-9]+)+\b(?! ?\()", re.sub(r"\b(by|on) ?\([^)]*\)|\{[^}]*\}|\[[^]]*\]", "", target["expr"])):
                    if f'{name}{{cluster=~"$cluster",namespace=~"$namespace"' not in target["expr"]:
                        yield f"{path.name}: {panel['title']}: {name} is not of the selected cluster and namespace"
                for variable in re.findall(r"\$(\w+)", target["expr"]):
                    if variable not in variables | {"__rate_interval"}:
                        yield f"{path.name}: {panel['title']}: no variable {variable}"


def memory_errors():
    """The limits in ProcessMemoryHigh are those of the Deployments."""
    query = next(query for _, query in queries() if "process_resident_memory_bytes > " in query)
    factors = {"Mi": 1 << 20, "Gi": 1 << 30}
    for part, metric in (("manager", "rw_manager_stands_back"), ("skr", "rw_dispatch_open_circuits")):
        limit = re.search(r"limits: \{memory: (\d+)(\wi)", (ROOT / "deploy" / part / "deployment.yaml").read_text())
        named = re.search(rf"> 0\.8((?: \* \d+)+) and on \([\w, ]+\) {metric}", query)
        if not named or math.prod(map(int, re.findall(r"\d+", named[1]))) != int(limit[1]) * factors[limit[2]]:
            yield f"ProcessMemoryHigh: not the limit of deploy/{part}/deployment.yaml, {limit[1]}{limit[2]}"


def described(meaning):
    """The column "meaning" of the runbook as the description of an alert."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", meaning).replace("`", "").replace("'", "''")
    return f"description: '{text[0].upper()}{text[1:]}.'"


def main():
    if not shutil.which("promtool"):
        print("skipped: promtool is not installed")
        return 77
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        tests = list(write_promtool_tests(pathlib.Path(folder)))
        for command in (["check", "rules", pathlib.Path(folder) / "all.rules"], ["test", "rules", *tests]):
            done = subprocess.run(["promtool", *map(str, command)], text=True, capture_output=True, timeout=240)
            if done.returncode != 0:
                said = [part for part in (done.stdout + done.stderr).split("Unit Testing: ") if "SUCCESS" not in part]
                errors.append(f"promtool {command[0]}: {''.join(said)}")
    alerts = re.findall(r"^ +- alert: (\w+)$", RULES.read_text(), flags=re.MULTILINE)
    if sorted(alerts) != sorted(SERIES):
        errors.append(f"without a test, or without an alert: {set(alerts) ^ set(SERIES)}")
    runbook = RUNBOOK.read_text().split("\n## Alerts\n")[1].split("\n## Reasons\n")[0]
    rows = [row for row in re.findall(r"^\| (.*)$", runbook, flags=re.MULTILINE) if not row.startswith(("alert |", "---"))]
    named = [re.match(r'<a id="(\w+)"></a>(\w+): ', row) for row in rows]
    errors += [f"a row of the runbook has no alert: {row[:80]}" for row, name in zip(rows, named) if not name]
    if sorted(name[2] for name in named if name) != sorted(alerts):
        errors.append(f"in the runbook, or in the rules alone: {({n[2] for n in named if n}) ^ set(alerts)}")
    for name in filter(None, named):
        if name[1] != name[2].lower():
            errors.append(f"{name[2]}: its anchor is {name[1]}")
    for row, name in zip(rows, named):
        cells = re.split(r"(?<!\\) \| ", row.rstrip(" |"))
        if len(cells) != 5 or not all(cells):
            errors.append(f"a row of the runbook has not five columns: {row[:80]}")
        elif name and f"{described(cells[1])}\n" not in RULES.read_text().split(f"- alert: {name[2]}\n")[-1].split("- alert: ")[0]:
            errors.append(f"{name[2]}: not the meaning in the runbook: {described(cells[1])}")
    for alert in re.split(r"(?m)^        - alert: ", RULES.read_text())[1:]:
        if not re.search(r"labels: \{severity: (critical|warning|info)\}\n +annotations:\n +summary: \".+\"\n", alert):
            errors.append(f"{alert.split()[0]}: no severity or summary")
    errors += [*dashboard_errors(), *memory_errors()]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-B", RULES.parent / "dashboards.py", folder], check=True)
        made = {path.name: path.read_text() for path in pathlib.Path(folder).iterdir()}
    if made != {path.name: path.read_text() for path in (RULES.parent / "dashboards").iterdir()}:
        errors.append("the dashboards are not those of dashboards.py: run it")
    sources = "".join(path.read_text() for part in ("core", "k8s", "tls", "reactors") for path in (ROOT / part).rglob("*.?pp"))
    names = set(re.findall(r'"((?:rw|watcher|lifecycle_mgr|leader_election|workqueue|controller_runtime)_[a-z0-9_]+)"', sources))
    for name in sorted(names):
        # In OpenMetrics the family of a counter has its name without the suffix.
        if name.removesuffix("_total") != name and name.removesuffix("_total") in names:
            errors.append(f"{name}: its family has the name of another metric")
        if re.search(r"_(not_after|not_before|since|deadline|until)_seconds$", name):
            errors.append(f"{name}: a time is named _timestamp_seconds, as others are")
    for file, query in queries():
        for metric, _ in selectors(query):
            made = re.sub(r"_(bucket|sum|count)$", "", metric)
            if f'"{made}"' not in sources and f'"{metric}"' not in sources and not MADE_OF_PARTS.match(metric):
                errors.append(f"{file}: no such metric: {metric}")
    print("\n".join(errors) if errors else f"{len(alerts)} alerts fire, and only when they should")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
