#!/usr/bin/env python3
"""Writes what the charts' values.schema.json accept as settings, of `runtime-watcher manager --help` and `webhook --help`:
the names of flags and variables, and the form of their values where the help says it (durations, whole numbers with their
range, percentages, words, addresses). With --check it writes nothing, and ends with 1 if a schema differs.

    deploy/helm/settings.py build/runtime-watcher [--check]
"""

import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# core::parse_duration
DURATION = "(0|(([0-9]+[.]?[0-9]*|[.][0-9]+)(ms|h|m|s))+)"
# What the manager's chart sets of its own values, and what ends the process.
OWN_FLAGS = {"--help", "--version", "--skr-image", "--xfcc-trusted-proxies", "--certificates", "--bootstrapper-mode", "--admin-token-file",
             "--lease-name", "--lease-namespace", "--events-service", "--events-port", "--listen-address", "--metrics-address",
             "--state-namespace", "--pin-san", "--landscape", "--skr-pull-secret", "--skr-memory-limit", "--skr-cpu-limit", "--pod-ip", "--log-level"}
# What the chart of a runtime sets, or what its Pod does not have.
OWN_VARIABLES = {"WEBHOOK_PORT", "METRICS_PORT", "BIND_ADDRESS", "CA_CERT", "TLS_CERT", "TLS_KEY", "MANAGERS_FILE", "KCP_ADDR",
                 "KCP_CONTRACT", "KUBECONFIG", "POD_NAME", "LOG_LEVEL"}
OPTION = re.compile(r"^  (?:-\w,)?(--[\w-]+)((?:,--[\w-]+)*)(?: ((?!\(Env:)\S+(?: \S+)*?))?(?: \(Env:(\w+)\))?(?:  .*)?$", re.MULTILINE)


def numbers(least, most):
    """A regular expression of the whole numbers from `least` to `most`."""
    def same_length(low, high):
        """Of texts of one length."""
        if not low:
            return [""]
        if low[0] == high[0]:
            return [low[0] + rest for rest in same_length(low[1:], high[1:])]
        rest = len(low) - 1
        out, first, last = [], int(low[0]), int(high[0])
        if low[1:].strip("0"):
            out += [low[0] + each for each in same_length(low[1:], "9" * rest)]
            first += 1
        if high[1:].strip("9"):
            last -= 1
        if first <= last:
            out.append((f"[{first}-{last}]" if first < last else str(first)) + ("" if not rest else "[0-9]" if rest == 1 else f"[0-9]{{{rest}}}"))
        if last < int(high[0]):
            out += [high[0] + each for each in same_length("0" * rest, high[1:])]
        return out
    found = []
    for length in range(len(str(least)), len(str(most)) + 1):
        low = max(least, 10 ** (length - 1) if length > 1 else 0)
        found += same_length(str(low), str(min(most, 10 ** length - 1)))
    return "(" + "|".join(found) + ")"


def form_of(kind):
    """The regular expression of a value, by what the help says of it; None: any text."""
    if kind is None:
        return "(true|false)"
    name = kind.partition("=")[0]
    if name == "DURATION":
        return DURATION
    if found := re.search(r":\w+ in \[(\d+) - (\d+)\]", name):
        return numbers(int(found[1]), int(found[2]))
    if found := re.search(r"\{([\w,.-]+)\}", name):
        return "(" + found[1].replace(",", "|") + ")"
    if name == "N|N%":
        return "[0-9]+%?"
    return None


def options(binary, *command):
    """Each flag with its variable, if it has one, and the form of its value; `bare` is a flag that needs no value."""
    text = subprocess.run([binary, *command, "--help"], text=True, capture_output=True, check=True,
                          env={**os.environ, "COLUMNS": "1000"}).stdout
    for first, others, kind, variable in (found.groups() for found in OPTION.finditer(text)):
        for flag in (first, *others.split(",")[1:]):
            yield flag, variable, form_of(kind), kind is None


def flags(all_options):
    """Of items of extraArgs: any known flag, and for each form of values the flags that have it."""
    forms, bare, known = {}, [], []
    for flag, _, form, is_bare in all_options:
        if flag in OWN_FLAGS:
            continue
        known.append(flag[2:])
        if is_bare:
            bare.append(flag[2:])
        else:
            forms.setdefault(form or ".*", []).append(flag[2:])
    out = [{"pattern": f"^--({'|'.join(known)})(=|$)"},
           {"if": {"pattern": f"^--({'|'.join(bare)})(=|$)"}, "then": {"pattern": "^--[a-z-]+(=(true|false))?$"}}]
    return out + [{"if": {"pattern": f"^--({'|'.join(names)})(=|$)"}, "then": {"pattern": f"^--[a-z-]+={form}$"}}
                  for form, names in forms.items()]


def variables(all_options):
    """Of items of the manager's env: of RW_ only known variables whose flag the chart does not set, and the forms of values."""
    forms, known = {}, []
    for flag, variable, form, _ in all_options:
        if variable and flag not in OWN_FLAGS:
            known.append(variable)
            if form:
                forms.setdefault(form, []).append(variable)
    def name(pattern):
        return {"properties": {"name": {"pattern": pattern}}}
    return [{"if": name("^RW_"), "then": name(f"^({'|'.join(each for each in known if each.startswith('RW_'))})$")}] + [
        {"if": {**name(f"^({'|'.join(names)})$"), "required": ["value"]}, "then": {"properties": {"value": {"pattern": f"^{form}$"}}}}
        for form, names in forms.items()]


def environment(all_options):
    """The properties of a runtime's environment."""
    return {variable: {"type": "string", "pattern": f"^{form or '.*'}$"} for _, variable, form, _ in all_options
            if variable and variable not in OWN_VARIABLES}


def with_block(text, owner, name, content):
    """The schema with the generated list or map `name` of the definition or property `owner`, an entry a line."""
    if isinstance(content, list):
        opening, closing, lines = "[", "]", [json.dumps(each) for each in content]
    else:
        opening, closing, lines = "{", "}", [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()]
    block = f'"{name}": {opening}\n' + ",\n".join(f"        {line}" for line in lines) + f"\n      {closing}"
    start = text.index(f'    "{owner}": {{\n')
    pattern = rf'"{name}": {re.escape(opening)}\n(?:        .*\n)*      {re.escape(closing)}'
    changed, count = re.subn(pattern, lambda _: block, text[start:], count=1)
    if count != 1:
        raise SystemExit(f"the schema has no place for {name} of {owner}")
    return text[:start] + changed


def main(binary, check):
    common = list(options(binary))
    manager, webhook = common + list(options(binary, "manager")), common + list(options(binary, "webhook"))
    errors = []
    for chart, blocks in (("runtime-watcher", [("flag", "allOf", flags(manager)), ("variable", "allOf", variables(manager))]),
                          ("runtime-watcher-skr", [("environment", "properties", environment(webhook))])):
        file = HERE / chart / "values.schema.json"
        text = before = file.read_text()
        for block in blocks:
            text = with_block(text, *block)
        if not check:
            file.write_text(text)
        elif text != before:
            errors.append(f"{chart}/values.schema.json is not what --help says: run deploy/helm/settings.py {binary}")
    print("\n".join(errors) if errors else "the charts take the settings that --help names")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:] == ["--check"]))
