"""Helm and the charts of deploy/helm, for tests."""

import json
import os
import pathlib
import re
import subprocess

from harness import ROOT
from landscape import KUBECTL

HELM = os.environ.get("RW_HELM")
CHART = ROOT / "deploy" / "helm" / "runtime-watcher"
SKR_CHART = ROOT / "deploy" / "helm" / "runtime-watcher-skr"
PEM = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"
# What each chart requires.
VALUES = {"gateway": {"trustedProxies": ["10.1.0.0/16"]}}
SKR_VALUES = {"kcpAddress": "kcp.example.com:443", "webhookCA": PEM.format("d"),
              "tls": {"ca": PEM.format("a"), "cert": PEM.format("b"), "key": PEM.format("c")}}


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
