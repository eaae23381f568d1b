#!/usr/bin/env python3
"""Holds each pod that deploy/ makes, as kubectl and helm render it, against the Pod Security Standard "restricted" (Kubernetes
concepts, "Pod Security Standards"), and more: its root file system is read-only, and it asks for no variables of Services. Prints
each setting that is wrong; ends with 1 if there is one, and with 77 without kubectl. The charts are left out without helm
(RW_HELM).
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

import charts  # noqa: E402
import pods  # noqa: E402
from kubectl import KUBECTL  # noqa: E402

SKIPPED = 77
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
SECCOMP = {"RuntimeDefault", "Localhost"}


def missing(spec):
    """Yields what is wrong with a Pod spec."""
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name):
            yield f"it has {name}"
    if spec.get("enableServiceLinks", True):
        yield "enableServiceLinks is not false"
    for volume in spec.get("volumes", []):
        kinds = set(volume) - {"name"}
        if kinds - VOLUMES:
            yield f"its volume {volume['name']} is of {', '.join(kinds)}"
    of_pod = spec.get("securityContext", {})
    if of_pod.get("sysctls"):
        yield "it sets sysctls"
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        own = container.get("securityContext", {})
        both = {**of_pod, **own}
        capabilities = own.get("capabilities", {})
        for wrong, text in (
                (own.get("privileged"), "is privileged"),
                (own.get("allowPrivilegeEscalation") is not False, "lacks allowPrivilegeEscalation: false"),
                (own.get("readOnlyRootFilesystem") is not True, "lacks readOnlyRootFilesystem: true"),
                (capabilities.get("drop") != ["ALL"], "does not drop all capabilities"), (capabilities.get("add"), "adds capabilities"),
                (both.get("runAsNonRoot") is not True, "lacks runAsNonRoot: true"), (both.get("runAsUser") == 0, "runs as root"),
                (both.get("seccompProfile", {}).get("type") not in SECCOMP, "has no seccomp profile"),
                (own.get("procMount", "Default") != "Default", "has a procMount"),
                (any(port.get("hostPort") for port in container.get("ports", [])), "has a port of the host"),
                (container.get("terminationMessagePolicy") != "FallbackToLogsOnError", "does not say why it ended")):
            if wrong:
                yield f"its container {container['name']} {text}"


def errors_in(text):
    """Yields what is wrong with the pods of YAML documents, with the kind and name of each; the last element is their number."""
    found = [(key, each) for key, each in pods.objects_in(text).items() if key[0] in ("Deployment", "Pod")]
    for (kind, name), each in found:
        yield from (f"{kind} {name}: {wrong}" for wrong in missing(pods.pod_of(each)))
    yield len(found)


def sources():
    """Yields each source of objects, and how it is rendered."""
    yield "deploy/manager", [KUBECTL, "kustomize", ROOT / "deploy" / "manager"]
    yield "deploy/skr", ["sh", "-c", 'for file in "$@"; do echo ---; cat "$file"; done', "-", *sorted((ROOT / "deploy" / "skr").glob("*.yaml"))]
    if not charts.HELM:
        print("the charts are left out: RW_HELM names no helm")
        return
    for chart, ns, values in ((charts.CHART, "kcp-system", charts.VALUES), (charts.SKR_CHART, "kyma-system", charts.SKR_VALUES)):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(json.dumps(values))
            file.flush()
            yield chart.name, [charts.HELM, "template", "test", chart, "--namespace", ns, "--values", file.name]


def main():
    if not KUBECTL:
        print("skipped: kubectl is not installed")
        return SKIPPED
    errors, count = [], 0
    for name, command in sources():
        *wrong, pods_of_it = errors_in(subprocess.run([*map(str, command)], text=True, capture_output=True, check=True, timeout=60).stdout)
        errors += [f"{name}: {each}" for each in wrong] or ([] if pods_of_it else [f"{name} has no pod"])
        count += pods_of_it
    print("\n".join(errors) if errors else f"{count} pods have all settings")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
