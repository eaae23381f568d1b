#!/usr/bin/env python3
"""Writes the tables of runbook.md, from "## Alerts" on, of `runtime-watcher explain -o json`. With --check it writes nothing,
and ends with 1 if they differ.

    deploy/runbook.py build/runtime-watcher [--check]
"""

import json
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent / "runbook.md"
BEGIN = "\n## Alerts\n"
DOCUMENT = re.compile(r"\b(deploy|reactors)/([\w./-]+\.md)(#[\w-]+)?")


def link(found):
    folder, name, anchor = found.groups()
    return f"[{name.rpartition('/')[2]}]({'' if folder == 'deploy' else f'../{folder}/'}{name}{anchor or ''})"


def row(*cells):
    return "| " + " | ".join(DOCUMENT.sub(link, cell.replace("|", "\\|")) for cell in cells) + " |\n"


def named(entry):
    return f'<a id="{entry["name"].lower()}"></a>{entry["name"]}'


def alerts(entries):
    yield row("alert", "meaning", "usual causes", "first command", "next step")
    yield "| --- | --- | --- | --- | --- |\n"
    for each in entries:
        yield row(f"{named(each)}: {each['fires']}", each["meaning"], each["causes"], *each["commands"], each["nextStep"])


def reasons(entries):
    first = entries[0]
    commands = ", ".join(f"`{each.replace(first['name'], 'REASON')}`" for each in first["commands"])
    yield f"First commands: {commands}.\n\n"
    yield row("reason", "meaning", "usual causes", "next step")
    yield "| --- | --- | --- | --- |\n"
    for each in entries:
        yield row(named(each), each["meaning"], each.get("causes", ""), each.get("nextStep", ""))


def tables(entries):
    groups = {}
    for each in entries:
        groups.setdefault((each["kind"], each["group"]), []).append(each)
    for kind, title, table in (("alert", "Alerts", alerts), ("reason", "Reasons", reasons)):
        yield f"\n## {title}\n"
        for (of, group), members in groups.items():
            if of == kind:
                yield f"\n### {group}\n\n" + "".join(table(members))


def main(binary, check):
    entries = json.loads(subprocess.run([binary, "explain", "--output", "json"], text=True, capture_output=True, check=True).stdout)
    before = PAGE.read_text()
    text = before[:before.index(BEGIN)] + "".join(tables(entries))
    if not check:
        PAGE.write_text(text)
    elif text != before:
        print(f"deploy/runbook.md is not what `explain` says: run deploy/runbook.py {binary}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:] == ["--check"]))
