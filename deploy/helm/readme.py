#!/usr/bin/env python3
"""Writes the README.md of each chart: what values.yaml says of each value. With --check it writes nothing, and ends with 1 if a
README.md differs or a value has no description.

A value's description is the comment in the lines above it or behind it. What is one value, such as a whole list or map, the
chart's values.schema.json decides.
"""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
NAMESPACES = {"runtime-watcher": "kcp-system", "runtime-watcher-skr": "kyma-system"}
HEAD = """# {name}

{description} Made by `deploy/helm/readme.py` of `values.yaml`.

```sh
deploy/helm/package.sh build/charts    # without symbolic links, which helm would name
helm install {name} build/charts/{name} --namespace {namespace} --values my-values.yaml
helm test {name} --namespace {namespace} --logs
```

`helm template` shows what it would apply. [deploy/README.md](../../README.md#install) has the order of an installation, of an
upgrade and of an uninstall.

{tests}

## What is checked

Helm refuses these values with their names, before it applies anything:

{checks}

Not checked: whether an object, a host or an image of a name exists, and what only the cluster knows.

## Values

| value | default | meaning |
| --- | --- | --- |
"""

TESTS = {
    "runtime-watcher": """`helm test` runs `runtime-watcher doctor` in a Pod with the manager's ServiceAccount. It succeeds if no check fails; with `--logs`
it prints each check as `proven`, `FAILED` or `not proven`, and how many there are of each. The account may not ask the manager
through the API server, so what only the manager knows, its own faults and the heartbeats, is `not proven` unless `adminToken` is
set. The ClusterRole and the Roles `NAME-test` with what the test reads beyond the manager's own rights (with `get` what the manager
may list, and the Namespace kcp-system) are hooks of the installation and of each upgrade, and a hook of the uninstall deletes them:
an installation with `--no-hooks` has no rights for the test.""",
    "runtime-watcher-skr": """`helm test` posts a review to the webhook through its Service, with TLS, and succeeds if the webhook allows it; the review is of a
write that is not stored, so it makes no event. Not checked: whether the API server reaches the webhook, and whether events reach
KCP. The NetworkPolicy that lets the test's Pod in and the ConfigMap with the review are hooks of the installation and of each
upgrade, and a hook of the uninstall deletes them.""",
}
COMMON_CHECKS = """- Unknown values, values of another type, and null where a default is needed.
- Words of a list, such as `image.pullPolicy`; names of objects, image references and tags.
- `resources`: quantities that Kubernetes does not read, and a limit below the request of the same resource.
- Security contexts that run as root or lift what is fixed, and labels that selectors depend on."""
CHECKS = {
    "runtime-watcher": COMMON_CHECKS + """
- `skr.memoryLimit`, `skr.cpuLimit`: no positive quantity, or below the requests of `deploy/skr/deployment.yaml` (20Mi, 10m; not
  with `--skr-manifests`, which may have others).
- `gateway.trustedProxies`: no network, one that is not IPv4 with a prefix of 7 to 32 or IPv6 with one of 7 to 128, or IPv4
  written as IPv6 (`::ffff:...`).
- `addresses`: no IP address, or one of loopback.
- `extraArgs`: flags that neither `runtime-watcher manager --help` nor `runtime-watcher --help` names, flags that the chart sets of
  other values, and a value that has not the form in the help: durations (`1h30m`, `0.5s`, `250ms`, `0`), whole numbers and
  percentages in their range, words of a list, `true` or `false`. A value follows `=`. The rules between flags, such as that
  `--lease-duration` exceeds `--renew-deadline`, and the forms of names, selectors and URLs are checked by the manager when it
  starts.
- `env`: variables `RW_...` that the help does not name or whose flag the chart sets, and values as in `extraArgs`.""",
    "runtime-watcher-skr": COMMON_CHECKS + """
- `kcpAddress`: no `host:port`, with an IPv6 address in brackets, and a port from 1 to 65535.
- `bindAddress`: no IP address, or one of loopback.
- `tls`, `webhookCA`: missing, or no PEM. The certificates themselves are checked by the webhook when it reads them.
- `watches`: none, a name that is there twice, and fields of another form.
- `environment`: variables that neither `runtime-watcher webhook --help` nor `runtime-watcher --help` names or that the chart sets,
  and a value that has not the form in the help: durations (`1h30m`, `0.5s`, `250ms`, `0`), whole numbers in their range, words
  of a list. `CONFIRM_WAIT` is 1ms at least, `ADMISSION_WAIT` is 30s at most, `HEARTBEAT_INTERVAL` is 0 or from
  1s to 1h, and `SHUTDOWN_DELAY` and `DRAIN_TIMEOUT` fit into the 30s that the pod has to end.
- `env`: variables that the chart sets.""",
}


class Values:
    """The subset of YAML that our values.yaml are written in: maps, lists, and scalars and comments in a line."""

    def __init__(self, text):
        self.lines = []
        above = []
        for line in text.splitlines():
            if not line.strip():
                above = []
            elif line.lstrip().startswith("#"):
                above.append(line.strip().lstrip("# "))
            else:
                content, _, behind = line.partition("  #")
                self.lines.append((len(content) - len(content.lstrip()), content.strip(), " ".join([*above, behind.strip()]).strip()))
                above = []
        self.at = 0
        self.comments = {}
        self.tree = self.block(0, ())

    def scalar(self, text):
        if text in ("{}", "[]", "true", "false") or re.fullmatch(r"\d+|\".*\"", text):
            return json.loads(text)
        return text

    def block(self, indent, path):
        if self.lines[self.at][1].startswith("- "):
            found = []
            while self.at < len(self.lines) and self.lines[self.at][0] == indent and self.lines[self.at][1].startswith("- "):
                _, content, comment = self.lines[self.at]
                if re.match(r"- [\w./-]+:", content):
                    self.lines[self.at] = (indent + 2, content[2:], comment)
                    found.append(self.block(indent + 2, (*path, str(len(found)))))
                else:
                    self.at += 1
                    found.append(self.scalar(content[2:]))
            return found
        found = {}
        while self.at < len(self.lines) and self.lines[self.at][0] == indent:
            _, content, comment = self.lines[self.at]
            name, value = re.fullmatch(r"([\w./-]+):(?: +(.*))?", content).groups()
            self.comments[(*path, name)] = comment
            self.at += 1
            found[name] = self.scalar(value) if value else self.block(self.lines[self.at][0], (*path, name))
        return found


def rows(tree, schema, comments, path=()):
    for name, value in tree.items():
        here = (*path, name)
        branch = schema["properties"][name].get("properties") and name not in ("podSecurityContext", "securityContext", "resources")
        comment = comments.get(here, "")
        if comment or not branch:
            yield ".".join(here), None if branch else value, comment
        if branch:
            yield from rows(value, schema["properties"][name], comments, here)


def readme(chart):
    """The text, and the values without a description."""
    meta = dict(re.findall(r"^(\w+): (.*)$", (chart / "Chart.yaml").read_text(), flags=re.MULTILINE))
    values = Values((chart / "values.yaml").read_text())
    lines, silent = [], []
    for name, value, comment in rows(values.tree, json.loads((chart / "values.schema.json").read_text()), values.comments):
        if not comment:
            silent.append(name)
        default = "" if value is None else f"`{json.dumps(value)}`"
        lines.append(f"| `{name}` | {default} | {comment} |".replace("|  |", "| |"))
    return HEAD.format(**meta, namespace=NAMESPACES[meta["name"]], tests=TESTS[meta["name"]],
                       checks=CHECKS[meta["name"]]) + "\n".join(lines) + "\n", silent


def main(check):
    errors = []
    for chart in sorted(HERE.glob("*/Chart.yaml")):
        text, silent = readme(chart.parent)
        errors += [f"{chart.parent.name}: {name} has no description in values.yaml" for name in silent]
        file = chart.parent / "README.md"
        if not check:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            errors.append(f"{file}: not what values.yaml says: run deploy/helm/readme.py")
    print("\n".join(errors) if errors else "the charts' READMEs say what their values are")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] == ["--check"]))
