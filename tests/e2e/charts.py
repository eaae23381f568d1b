"""Helm and the charts of deploy/helm, for tests."""

import json
import os
import pathlib
import re
import subprocess

from harness import ROOT
from kubectl import KUBECTL

HELM = os.environ.get("RW_HELM")
CHART = ROOT / "deploy" / "helm" / "runtime-watcher"
SKR_CHART = ROOT / "deploy" / "helm" / "runtime-watcher-skr"
PEM = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"
# What each chart requires.
VALUES = {"gateway": {"trustedProxies": ["10.1.0.0/16"]}}
SKR_VALUES = {"kcpAddress": "kcp.example.com:443", "webhookCA": PEM.format("d"),
              "tls": {"ca": PEM.format("a"), "cert": PEM.format("b"), "key": PEM.format("c")}}

# Each value of each chart, with what the objects have of it.
ALL_VALUES = {CHART: {
    "nameOverride": "other-manager", "commonLabels": {"team": "t-common"},
    "image": {"repository": "registry.example.com/t-image", "tag": 17, "digest": "", "pullPolicy": "Always", "pullSecrets": ["t-pull"]},
    "logLevel": "debug", "replicas": 3, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 11, "maxUnavailable": 0}},
    "podDisruptionBudget": {"enabled": True, "minAvailable": 1, "maxUnavailable": "37%"}, "skr": {"image": "t-skr:1", "pullSecrets": ["t-skr-pull"], "memoryLimit": "123Mi", "cpuLimit": "45m"},
    "gateway": {"namespace": "t-gateway", "podLabels": {"gateway": "t-gateway-pods"}, "trustedProxies": ["10.9.0.0/16"]},
    "addresses": {"events": "10.9.0.7", "metrics": "fd00::9"},
    "certificates": "gardener", "bootstrapper": {"mode": "direct"}, "landscape": "t-landscape", "extraArgs": ["--rollout-canaries=7"],
    "env": [{"name": "T_ENV", "valueFrom": {"configMapKeyRef": {"name": "t-env", "key": "k"}}}],
    "adminToken": {"secretName": "t-admin", "key": "t-key"}, "crds": {"enabled": True, "keep": False},
    "extraVolumes": [{"name": "t-volume", "secret": {"secretName": "t-volume-secret"}}],
    "extraVolumeMounts": [{"name": "t-volume", "mountPath": "/t-mount"}],
    "serviceAccount": {"create": True, "name": "t-account", "annotations": {"t": "t-account-annotation"}},
    "podLabels": {"pod": "t-pod"}, "podAnnotations": {"pod": "t-pod-annotation"},
    "podSecurityContext": {"runAsUser": 12321, "fsGroup": 4554, "supplementalGroups": [6776]},
    "securityContext": {"seLinuxOptions": {"level": "s0:c1"}}, "resources": {"limits": {"memory": "987Mi"}},
    "nodeSelector": {"pool": "t-pool"}, "tolerations": [{"key": "t-taint", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "t-topology"}]}},
    "topologySpreadConstraints": [{"maxSkew": 4, "topologyKey": "t-zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "priorityClassName": "t-priority",
    "monitoring": {"serviceMonitor": True, "rules": True, "dashboards": True, "groupBy": ["t_group"], "runbookUrl": "https://t-runbook", "labels": {"monitoring": "t-monitoring"}},
}, SKR_CHART: {
    "commonLabels": {"team": "t-common"},
    "image": {"repository": "registry.example.com/t-image", "tag": "t-tag", "digest": "", "pullPolicy": "Always", "pullSecrets": ["t-pull"]},
    "kcpAddress": "t-kcp.example.com:7443", "bindAddress": "fd00::7",
    "tls": {"ca": PEM.format("t"), "cert": PEM.format("t"), "key": PEM.format("t"), "existingSecret": "t-tls"},
    "webhookCA": PEM.format("t"), "watches": [{"name": "t-watch", "manager": "t-manager", "group": "t.example.com", "version": "v7",
                                               "resource": "t-things", "field": "status", "matchLabels": {"match": "t-match"}}],
    "webhookSources": {"any": False, "namespace": "t-sources", "podLabels": {"sources": "t-source-pods"}}, "environment": {"SETTLE": "77ms"},
    "env": [{"name": "T_ENV", "value": "t-env"}], "logLevel": "debug", "strategy": {"type": "Recreate"},
    "podDisruptionBudget": {"enabled": True, "minAvailable": 1, "maxUnavailable": "73%"},
    "extraVolumes": [{"name": "t-volume", "secret": {"secretName": "t-volume-secret"}}],
    "extraVolumeMounts": [{"name": "t-volume", "mountPath": "/t-mount"}],
    "serviceAccount": {"create": True, "name": "t-account", "annotations": {"t": "t-account-annotation"}},
    "podLabels": {"pod": "t-pod"}, "podAnnotations": {"pod": "t-pod-annotation"},
    "podSecurityContext": {"runAsUser": 12321, "fsGroup": 4554}, "securityContext": {"seLinuxOptions": {"level": "s0:c1"}},
    "resources": {"limits": {"memory": "987Mi"}}, "nodeSelector": {"pool": "t-pool"},
    "tolerations": [{"key": "t-taint", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "t-topology"}]}},
    "topologySpreadConstraints": [{"maxSkew": 4, "topologyKey": "t-zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "priorityClassName": "t-priority", "monitoring": {"serviceMonitor": True, "labels": {"monitoring": "t-monitoring"}},
}}
IN_THE_OBJECTS = (":17", "replicas: 3", "=123Mi", "=45m", "10.9.0.0/16", "canaries=7", "other-manager", "gardener", "mode=direct",
                  "--listen-address=10.9.0.7:8082", "--metrics-address=[fd00::9]:8080", '{name: BIND_ADDRESS, value: "fd00::7"}',
                  "--log-level=debug", "{name: LOG_LEVEL, value: debug}", 'strategy: {"type":"Recreate"}', '"maxSurge":11', "maxUnavailable: 37%", "maxUnavailable: 73%", "12321", "4554", "6776", "s0:c1", "987Mi", "7443", "v7", "things/status", "77m", "Always", "ServiceMonitor",
                  "PrometheusRule", "grafana_dashboard", "by (t_group, landscape)", "leads in {{ $labels.t_group }} {{ $labels.landscape }}",
                  "https://t-runbook#managerhasnoleader")


def merged(base, values):
    return {**base, **{key: merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
                       for key, value in (values or {}).items()}}


def documents(text):
    return [part for part in re.split(r"^---$", text, flags=re.MULTILINE) if re.search(r"^kind:", part, flags=re.MULTILINE)]


class Helm:
    """To be mixed into a TestCase."""

    def helm(self, *arguments, values=None, fails=False):
        """Returns what it prints; with `fails` its errors."""
        file = self.folder / "values.json"
        file.write_text(json.dumps(values or {}))
        environment = {**os.environ, **{f"HELM_{kind}_HOME": str(self.folder / kind) for kind in ("CACHE", "CONFIG", "DATA")}}
        done = subprocess.run([HELM, *map(str, arguments), "--values", file], text=True, capture_output=True, timeout=60,
                              env=environment)
        self.assertEqual(done.returncode != 0, fails, f"helm {arguments}: {done.stdout}{done.stderr}")
        return done.stderr if fails else done.stdout

    def rendered(self, values=None, chart=CHART, *options):
        """What the chart, or an archive of it, applies with these values and those that it requires. Hooks are left out."""
        base, ns = (SKR_VALUES, "kyma-system") if chart.name.startswith(SKR_CHART.name) else (VALUES, "kcp-system")
        return self.helm("template", "test", chart, "--namespace", ns, *(options or ["--no-hooks"]), values=merged(base, values))

    def refused(self, values, chart=CHART, ns=None):
        base, usual = (SKR_VALUES, "kyma-system") if chart == SKR_CHART else (VALUES, "kcp-system")
        return self.helm("template", "test", chart, "--namespace", ns or usual, values=merged(base, values), fails=True)

    def objects(self, *parts, components=(), patches=()):
        """What Kustomize makes of files, folders and texts: each object as a text in one form, in one order. Helm's hooks of an
        uninstall are left out: each is an object that another hook has made."""
        base = self.folder / "kustomize"
        base.mkdir(exist_ok=True)
        lines = ["resources:"]
        for i, part in enumerate(parts):
            if isinstance(part, pathlib.Path):
                lines.append(f"- {os.path.relpath(part, base)}")
            else:
                (base / f"{i}.yaml").write_text("---\n".join(each for each in re.split(r"(?m)^---\n", part)
                                                             if '"helm.sh/hook":"post-delete"' not in each))
                lines.append(f"- {i}.yaml")
        if components:
            lines += ["components:", *(f"- {os.path.relpath(c, base)}" for c in components)]
        if patches:
            lines += ["patches:", *(f"- {json.dumps(patch)}" for patch in patches)]
        (base / "kustomization.yaml").write_text("\n".join(lines) + "\n")
        done = subprocess.run([KUBECTL, "kustomize", "--load-restrictor", "LoadRestrictionsNone", base], text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return sorted(part.strip() for part in documents(done.stdout))


def bare(objects):
    """Without what only charts have: standard labels, and the annotation that keeps an object."""
    found = []
    labels = r"\n +(app\.kubernetes\.io/(instance|version|managed-by)|helm\.sh/chart|app\.kubernetes\.io/name: skr-webhook).*"
    for text in objects:
        text = re.sub(labels, "", text).replace("\n  annotations:\n    helm.sh/resource-policy: keep", "")
        if "kind: CustomResourceDefinition" in text:  # which have no labels of their own
            text = text.replace("\n  labels:\n    app.kubernetes.io/name: runtime-watcher-manager", "")
        found.append(text)
    return sorted(found)


def paths(values, schema, path=()):
    """Each value that can be set, as the path to it: maps and lists that are one value are not gone into."""
    for name, value in values.items():
        properties = schema["properties"][name].get("properties")
        yield from paths(value, schema["properties"][name], (*path, name)) if properties else [(*path, name)]
