#!/usr/bin/env python3
"""Writes dashboards/*.json for Grafana from the tables below; a test compares them.

    deploy/monitoring/dashboards.py [FOLDER]      default: dashboards/ beside this script
"""

import json
import pathlib
import sys

RATE = "$__rate_interval"
OWN = "and on (instance) rw_build_info"  # for names that every operator has


def rate(metric, by=""):
    return f"sum{f' by ({by})' if by else ''} (rate({metric}[{RATE}]))"


def quantile(q, metric):
    return f"histogram_quantile({q}, sum by (le) (rate({metric}_bucket[{RATE}])))"


# uid -> (title, variable or None, rows). A row is a title and its panels: title, unit, queries with their legends.
BOARDS = {
    "rw-event-path": ("Runtime Watcher: event path of one runtime", ("instance", "rw_dispatch_oldest_event_seconds"), [
        ("Reviews", [
            ("Reviews", "reqps", [(rate('rw_admission_reviews_total{instance="$instance"}', "verdict"), "{{verdict}}")]),
            ("Duration of reviews", "s", [(quantile(q, 'rw_admission_duration_seconds').replace("_bucket[", '_bucket{instance="$instance"}['), f"{q}")
                                          for q in (0.5, 0.99)]),
            ("Rejected connections and requests", "ops", [(rate('rw_http_rejected_total{instance="$instance"}', "reason"), "{{reason}}")])]),
        ("Observation", [
            ("Watches", "none", [('rw_observation_live_watches{instance="$instance"}', "live"),
                                 ('rw_observation_unobserved_watches{instance="$instance"}', "not observed")]),
            ("Objects", "none", [('rw_observation_objects{instance="$instance"}', "observed"),
                                 ('rw_observation_undelivered{instance="$instance"}', "undelivered")]),
            ("Confirmations of reviews", "ops", [(rate('rw_observation_confirmations_total{instance="$instance"}', "result"), "{{result}}")])]),
        ("Delivery", [
            ("Events", "ops", [(rate('rw_dispatch_events_total{instance="$instance"}', "outcome"), "{{outcome}}")]),
            ("Undelivered events", "none", [('rw_dispatch_manager_events{instance="$instance"}', "{{manager}}")]),
            ("Age of the oldest undelivered event", "s", [('rw_dispatch_oldest_event_seconds{instance="$instance"}', "age")]),
            ("Time to KCP", "s", [(quantile(q, "rw_dispatch_delivery_seconds").replace("_bucket[", '_bucket{instance="$instance"}['), f"{q}")
                                  for q in (0.5, 0.99)]),
            ("Open circuits", "none", [('rw_dispatch_open_circuits{instance="$instance"}', "circuits")]),
            ("Heartbeats", "ops", [(rate('rw_heartbeats_total{instance="$instance"}', "outcome"), "{{outcome}}")])]),
        ("Process", [
            ("CPU", "percentunit", [(f'rate(process_cpu_seconds_total{{instance="$instance"}}[{RATE}])', "CPU")]),
            ("Memory", "bytes", [('process_resident_memory_bytes{instance="$instance"}', "resident")]),
            ("Certificate expires in", "s", [('rw_tls_certificate_not_after_seconds{instance="$instance"} - time()', "remaining")])])]),
    "rw-fleet": ("Runtime Watcher: fleet", None, [
        ("Runtimes", [
            ("Heartbeats", "none", [("sum by (state) (rw_runtimes)", "{{state}}")]),
            ("Installation", "none", [("sum by (state) (rw_watcher_installer_runtimes)", "{{state}}")]),
            ("Events that may have been missed", "ops", [(rate("rw_runtime_gaps_total"), "gaps")])]),
        ("Events", [
            ("Routed events", "ops", [(rate("rw_kyma_router_events_total", "outcome"), "{{outcome}}")]),
            ("Events pending in the listener", "none", [("sum(rw_listener_pending_events)", "pending")]),
            ("Age of events when they arrive", "s", [(quantile(q, "rw_event_delivery_seconds"), f"{q}") for q in (0.5, 0.99)]),
            ("Duration of probes", "s", [(quantile(q, "rw_probe_seconds"), f"{q}") for q in (0.5, 0.99)])]),
        ("Manager", [
            ("Leaders", "none", [("sum(leader_election_master_status{name=\"runtime-watcher-manager\"})", "leaders")]),
            ("Objects that fail", "none", [("rw_controller_failing_keys", "{{controller}}")]),
            ("Work queues", "none", [(f"sum by (name) (workqueue_depth {OWN})", "{{name}}")]),
            ("Reconciles", "ops", [(f"sum by (controller, result) (rate(controller_runtime_reconcile_total[{RATE}]) {OWN})", "{{controller}} {{result}}")]),
            ("Requests to API servers", "reqps", [(rate("rw_kube_requests_total", "verb"), "{{verb}}")]),
            ("CPU and memory", "short", [(f"rate(process_cpu_seconds_total[{RATE}]) {OWN}", "CPU {{instance}}"),
                                         (f"process_resident_memory_bytes / 1024 / 1024 {OWN}", "MiB {{instance}}")])])]),
    "rw-ca-rotation": ("Runtime Watcher: CA rotation", None, [
        ("Rotation", [
            ("Phase", "none", [("rw_gateway_secret_phase == 1", "{{phase}}")]),
            ("Authorities in the bundle", "none", [("rw_gateway_secret_authorities", "authorities")]),
            ("Runtimes that do not trust all of them yet", "none", [("rw_gateway_secret_missing_runtimes", "runtimes")]),
            ("Deadline in", "s", [("(rw_gateway_secret_deadline_timestamp_seconds > 0) - time()", "remaining")]),
            ("Steps", "ops", [(rate("rw_gateway_secret_steps_total"), "steps")])]),
        ("Certificates", [
            ("Requested certificates", "ops", [(rate("rw_certificate_reissues_total"), "requests")]),
            ("Not issued anew", "none", [("sum(lifecycle_mgr_self_signed_cert_not_renew)", "runtimes")]),
            ("Gateway's certificate close to its expiry", "none", [("lifecycle_mgr_gateway_secret_server_cert_close_to_expiry", "1: yes")])])]),
    "rw-rollout": ("Runtime Watcher: roll-out and configuration", None, [
        ("Roll-out", [
            ("Phase", "none", [("rw_rollout_phase == 1", "{{component}} {{phase}}")]),
            ("Runtimes", "none", [("sum by (component, state) (rw_rollout_runtimes)", "{{component}} {{state}}")]),
            ("Ahead of their turn", "none", [("rw_rollout_ahead_runtimes", "{{component}}")]),
            ("Closed", "none", [("rw_rollout_closed", "{{component}}")])]),
        ("Mode direct", [
            ("Bootstrapper", "none", [("sum by (state) (rw_bootstrapper_runtimes)", "{{state}}")]),
            ("Content", "none", [("sum by (state) (rw_bootstrapper_content_runtimes)", "{{state}}")]),
            ("Written objects", "ops", [(rate("rw_bootstrapper_writes_total"), "writes")])]),
        ("Mode signal", [
            ("Runtimes", "none", [("sum by (state) (rw_config_sync_runtimes)", "{{state}}")]),
            ("Marks", "ops", [(rate("rw_config_sync_marks_total"), "marks")])])]),
}
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def board(uid, title, variable, rows):
    panels, y = [], 0
    for name, row in rows:
        panels.append({"id": len(panels) + 1, "type": "row", "title": name, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
        y += 1
        for i, (panel, unit, targets) in enumerate(row):
            panels.append({"id": len(panels) + 1, "type": "timeseries", "title": panel, "datasource": DATASOURCE,
                           "gridPos": {"x": i % 3 * 8, "y": y + i // 3 * 8, "w": 8, "h": 8},
                           "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                           "targets": [{"refId": chr(ord("A") + n), "datasource": DATASOURCE, "expr": query, "legendFormat": legend}
                                       for n, (query, legend) in enumerate(targets)]})
        y += (len(row) + 2) // 3 * 8
    variables = [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}]
    if variable:
        variables.append({"name": variable[0], "type": "query", "datasource": DATASOURCE, "refresh": 2, "label": variable[0].capitalize(),
                          "query": f"label_values({variable[1]}, {variable[0]})"})
    return {"uid": uid, "title": title, "schemaVersion": 39, "version": 1, "editable": True, "tags": ["runtime-watcher"],
            "time": {"from": "now-3h", "to": "now"}, "refresh": "30s", "templating": {"list": variables}, "panels": panels}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "dashboards"
    folder.mkdir(parents=True, exist_ok=True)
    for uid, of in BOARDS.items():
        (folder / f"{uid}.json").write_text(json.dumps(board(uid, *of), indent=1) + "\n")


if __name__ == "__main__":
    main()
