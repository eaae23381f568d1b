#!/usr/bin/env python3
"""Holds each Deployment and Pod of deploy/, charts included, against the Pod Security Standard "restricted", and more: its root file
system is read-only. Prints each setting that is missing; ends with 1 if there is one.

    pod_security.py [FOLDER]

It reads the text, line by line, since charts are no YAML: the settings of a pod, and those of each of its containers.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What the text has to have, without spaces at both ends of a line.
POD = ("runAsNonRoot: true", "seccompProfile: {type: RuntimeDefault}")
CONTAINER = ("allowPrivilegeEscalation: false", "readOnlyRootFilesystem: true", "capabilities: {drop: [ALL]}")
NEVER = re.compile(r"\b(privileged|hostNetwork|hostPID|hostIPC): true|\bhostPath:|\brunAsUser: 0\b|capabilities: \{add")


def block(lines, start):
    """The lines that belong to the key at `start`: those that are indented deeper, and items of a list at its indentation."""
    indent = len(lines[start]) - len(lines[start].lstrip())
    found = []
    for line in lines[start + 1:]:
        text = line.strip()
        deeper = len(line) - len(line.lstrip())
        if text and not text.startswith(("#", "{{")) and (deeper < indent or deeper == indent and not text.startswith("- ")):
            break
        found.append(line)
    return found


def key(lines, name):
    return [number for number, line in enumerate(lines) if line.strip() == f"{name}:"]


def settings(lines):
    """What the securityContexts of these lines say, each without comment."""
    return {line.split("  #")[0].strip() for start in key(lines, "securityContext") for line in block(lines, start)}


def missing(text):
    """Yields what the Deployment or Pod in this text lacks."""
    lines = text.splitlines()
    for match in NEVER.finditer("\n".join(line.split("#")[0] for line in lines)):
        yield f"it has {match[0]!r}"
    pods = [block(lines, start) for start in key(lines, "spec") if key(block(lines, start), "containers")]
    pod = min(pods, key=len, default=[])
    lists = [number for name in ("containers", "initContainers") for number in key(pod, name)]
    if not key(pod, "containers"):
        yield "it has no containers"
        return
    inside = {id(line) for number in lists for line in block(pod, number)}
    of_pod = settings([line for line in pod if id(line) not in inside])
    yield from (f"its pod lacks {each!r}" for each in POD if each not in of_pod)
    for number in lists:
        content = block(pod, number)
        indent = min((len(line) - len(line.lstrip()) for line in content if line.strip().startswith("- ")), default=0)
        starts = [i for i, line in enumerate(content) if line.startswith(" " * indent + "- ")]
        for start, end in zip(starts, starts[1:] + [len(content)]):
            has = settings(content[start:end])
            yield from (f"{content[start].strip()[2:]!r} lacks {each!r}" for each in CONTAINER if each not in has)


def main(folder):
    found = [path for path in sorted(folder.rglob("*.yaml"))
                   if "samples" not in path.parts and re.search(r"^kind: (Deployment|Pod)$", path.read_text(), re.MULTILINE)]
    errors = [f"{path.relative_to(folder)}: {each}" for path in found for each in missing(path.read_text())]
    if not found:
        errors.append(f"{folder}: there is no Deployment")
    print("\n".join(errors) if errors else f"{len(found)} Deployments and Pods have all settings")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "deploy"))
