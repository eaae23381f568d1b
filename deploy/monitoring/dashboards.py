#!/usr/bin/env python3
"""Writes dashboards/*.json for Grafana from the tables below; a test compares them.

    deploy/monitoring/dashboards.py [FOLDER]      default: dashboards/ beside this script
"""

import json
import pathlib
import re
import sys

RATE = "$__rate_interval"
OWN = "and on (instance) rw_build_info"  # for names that every operator has
LANDSCAPE = "cluster, namespace, landscape"
SELECTED = 'cluster=~"$cluster",namespace=~"$namespace"'
METRIC = re.compile(r"\b((?:rw|process|workqueue|controller_runtime|lifecycle_mgr|leader_election)_[a-z0-9_]+)(\{?)")


def selected(query):
    """Of the clusters and namespaces that are selected. A metric without these labels is of all."""
    return METRIC.sub(lambda m: m[1] + "{" + SELECTED + ("," if m[2] else "}"), query)


def rate(metric, by=""):
    return f"sum{f' by ({by})' if by else ''} (rate({metric}[{RATE}]))"


def quantile(q, metric):
    return f"histogram_quantile({q}, sum by (le) (rate({metric}_bucket[{RATE}])))"


def stat(title, unit, query, legend="", bad=None):
    """One number; from `bad` on it is red. With a legend the number is its text."""
    return ("stat", title, unit, [(query, legend)], bad)


def table(title, columns):
    """`columns`: title, unit and query of each; a row for each set of labels."""
    return ("table", title, None, [(query, name) for name, _, query in columns], columns)


NOT_IN_PLACE = 'state=~"failed|unreachable|not_ready"'
EXPECTED = 'rw_runtimes{state=~"live|degraded|silent"}'
LEADER = 'leader_election_master_status{name="runtime-watcher-manager"}'
ROLLOUT_TABLE = table("Roll-outs", [
    ("to do", "none", f"sum by ({LANDSCAPE}, component) (rw_rollout_runtimes)"),
    ("paused", "none", f'max by ({LANDSCAPE}, component) (rw_rollout_phase{{phase="Paused"}})'),
    ("closed", "none", f"max by ({LANDSCAPE}, component) (rw_rollout_closed)"),
    ("ahead of their turn", "none", f"max by ({LANDSCAPE}, component) (rw_rollout_ahead_runtimes)")])


# uid -> (title, variable or None, rows). A row is a title and its panels: a stat, a table, or of a time series title, unit,
# queries with their legends.
BOARDS = {
    "rw-event-path": ("Runtime Watcher: event path of one runtime", ("instance", "rw_dispatch_oldest_event_seconds"), [
        ("Now", [
            stat("Oldest undelivered event", "s", 'rw_dispatch_oldest_event_seconds{instance="$instance"}', bad=60),
            stat("Undelivered events", "none", 'sum(rw_dispatch_manager_events{instance="$instance"})'),
            stat("Watches that are not observed", "none", 'rw_observation_unobserved_watches{instance="$instance"}', bad=1),
            stat("Open circuits", "none", 'rw_dispatch_open_circuits{instance="$instance"}', bad=1),
            stat("Certificate expires in", "s", 'rw_tls_certificate_not_after_timestamp_seconds{instance="$instance"} - time()'),
            stat("Version", "none", 'rw_build_info{instance="$instance"}', "{{version}}")]),
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
            ("Resyncs", "ops", [(rate('rw_resyncs_total{instance="$instance"}', "outcome"), "{{outcome}}")]),
            ("Operators that are owed a resync", "none", [('rw_resyncs_owed{instance="$instance"}', "owed")]),
            ("Losses", "ops", [(rate('rw_event_losses_total{instance="$instance"}', "reason"), "{{reason}}")]),
            ("Heartbeats", "ops", [(rate('rw_heartbeats_total{instance="$instance"}', "outcome"), "{{outcome}}")])]),
        ("Process", [
            ("CPU", "percentunit", [(f'rate(process_cpu_seconds_total{{instance="$instance"}}[{RATE}])', "CPU")]),
            ("Memory", "bytes", [('process_resident_memory_bytes{instance="$instance"}', "resident")]),
            ("Certificate expires in", "s", [('rw_tls_certificate_not_after_timestamp_seconds{instance="$instance"} - time()', "remaining")])])]),
    "rw-fleet": ("Runtime Watcher: fleet", None, [
        ("Now", [
            stat("Runtimes that report in order", "percentunit", f'sum(rw_runtimes{{state="live"}}) / sum({EXPECTED})'),
            stat("Runtimes without a watcher in place", "percentunit",
                 f"sum(rw_watcher_installer_runtimes{{{NOT_IN_PLACE}}}) / sum(rw_watcher_installer_runtimes)", bad=0.05),
            stat("Runtimes", "none", "sum(rw_watcher_installer_runtimes)"),
            stat("Leaders", "none", f"sum({LEADER})"),
            stat("Paused roll-outs", "none", 'sum(rw_rollout_phase{phase="Paused"})', bad=1),
            stat("CA rotation", "none", "rw_gateway_secret_phase == 1", "{{phase}}"),
            table("Landscapes", [
                ("leaders", "none", f"sum by ({LANDSCAPE}) ({LEADER})"),
                ("runtimes", "none", f"sum by ({LANDSCAPE}) (rw_watcher_installer_runtimes)"),
                ("not in place", "none", f"sum by ({LANDSCAPE}) (rw_watcher_installer_runtimes{{{NOT_IN_PLACE}}})"),
                ("silent or degraded", "none", f'sum by ({LANDSCAPE}) (rw_runtimes{{state=~"silent|degraded"}})')])]),
        ("Runtimes", [
            ("Heartbeats", "none", [("sum by (state) (rw_runtimes)", "{{state}}")]),
            ("Installation", "none", [("sum by (state) (rw_watcher_installer_runtimes)", "{{state}}")]),
            ("Runtimes whose watcher dropped events", "ops", [(rate("rw_runtime_losses_total"), "losses")])]),
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
        ("Now", [
            stat("Phase", "none", "rw_gateway_secret_phase == 1", "{{phase}}"),
            stat("Runtimes that are waited for", "none", "sum(rw_gateway_secret_missing_runtimes)"),
            stat("Deadline in", "s", "(rw_gateway_secret_deadline_timestamp_seconds > 0) - time()"),
            stat("Held up", "none", "max(rw_gateway_secret_held_up)", bad=1)]),
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
        ("Now", [
            stat("Phase", "none", "rw_rollout_phase == 1", "{{component}}: {{phase}}"),
            stat("Paused", "none", 'sum(rw_rollout_phase{phase="Paused"})', bad=1),
            stat("Closed", "none", "sum(rw_rollout_closed)", bad=1),
            ROLLOUT_TABLE]),
        ("Roll-out", [
            ("Phase", "none", [("rw_rollout_phase == 1", "{{component}} {{phase}}")]),
            ("Runtimes", "none", [("sum by (component, state) (rw_rollout_runtimes)", "{{component}} {{state}}")]),
            ("Step", "none", [("rw_rollout_step", "{{component}}")]),
            ("Verifications", "none", [("increase(rw_rollout_verifications_total[1h])", "{{component}} {{outcome}}")]),
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


def variable(name, query, **more):
    return {"name": name, "type": "query", "datasource": DATASOURCE, "refresh": 2, "label": name.capitalize(), "query": query, **more}


def panel_of(panel):
    """The panel, without its place, and its width and height."""
    kind, title, unit, targets, more = panel if panel[0] in ("stat", "table") else ("timeseries", *panel, None)
    defaults = {} if unit is None else {"unit": unit}
    found = {"type": kind, "title": title, "datasource": DATASOURCE, "fieldConfig": {"defaults": defaults, "overrides": []},
             "targets": [{"refId": chr(ord("A") + n), "datasource": DATASOURCE, "expr": selected(query), "legendFormat": legend}
                         for n, (query, legend) in enumerate(targets)]}
    if kind == "timeseries":
        defaults["min"] = 0
        return found, 8, 8
    for target in found["targets"]:
        target["instant"] = True
    if kind == "stat":
        named = any("{{" in legend for _, legend in targets)
        found["options"] = {"textMode": "name" if named else "auto", "reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value"}
        defaults["noValue"] = "-"
        steps = [{"color": "text", "value": None}, *([{"color": "red", "value": more}] if more is not None else [])]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
        return found, 4, 4
    for target in found["targets"]:
        target["format"] = "table"
        target["legendFormat"] = ""
    found["fieldConfig"]["overrides"] = [
        {"matcher": {"id": "byName", "options": f"Value #{chr(ord('A') + n)}"},
         "properties": [{"id": "displayName", "value": name}, {"id": "unit", "value": unit}]} for n, (name, unit, _) in enumerate(more)]
    found["transformations"] = [{"id": "merge", "options": {}},
                                {"id": "organize", "options": {"excludeByName": {"Time": True}}}]
    return found, 24, 6


def board(uid, title, of_board, rows):
    panels, y = [], 0
    for name, row in rows:
        panels.append({"id": len(panels) + 1, "type": "row", "title": name, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
        x, y, height = 0, y + 1, 0
        for panel in row:
            found, w, h = panel_of(panel)
            if x + w > 24 or height not in (0, h):
                x, y = 0, y + height
            panels.append({"id": len(panels) + 1, **found, "gridPos": {"x": x, "y": y, "w": w, "h": h}})
            x, height = x + w, h
        y += height
    # All: also what has no such label.
    every = {"includeAll": True, "allValue": ".*", "multi": True, "current": {"text": "All", "value": "$__all"}}
    variables = [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
                 variable("cluster", "label_values(rw_build_info, cluster)", **every),
                 variable("namespace", 'label_values(rw_build_info{cluster=~"$cluster"}, namespace)', **every)]
    if of_board:
        variables.append(variable(of_board[0], f"label_values({selected(of_board[1])}, {of_board[0]})"))
    links = [{"type": "dashboards", "tags": ["runtime-watcher"], "title": "Runtime Watcher", "asDropdown": False, "includeVars": True,
              "keepTime": True}]
    return {"uid": uid, "title": title, "schemaVersion": 39, "version": 1, "editable": True, "tags": ["runtime-watcher"], "links": links,
            "time": {"from": "now-3h", "to": "now"}, "refresh": "30s", "templating": {"list": variables}, "panels": panels}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "dashboards"
    folder.mkdir(parents=True, exist_ok=True)
    for uid, of in BOARDS.items():
        (folder / f"{uid}.json").write_text(json.dumps(board(uid, *of), indent=1) + "\n")


if __name__ == "__main__":
    main()
