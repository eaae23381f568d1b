#!/usr/bin/env python3
"""Takes each rule of the roles in deploy/ away in turn, and expects that the tests which run with these roles fail. By hand, as
it takes ten minutes: the tests themselves take each right away from the running servers at their end (audit.py).

    RW_BINARY=build/runtime-watcher KUBEBUILDER_ASSETS="$(tests/provide-kube.sh)" tests/e2e/without_each_rule.py [PART OF A NAME]

RW_TEST_CRDS as for the tests. Prints a line for each rule; ends with 1 if a test passes without one, or fails for another reason.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = {  # file of deploy -> script and class
    "manager/rbac.yaml": ("manager_test.py", "Real"),
    "manager/certificates.yaml": ("manager_test.py", "Real"),
    "skr/rights.yaml": ("manager_test.py", "Real"),
    "manager/gardener/certificates.yaml": ("manager_test.py", "Gardener"),
    "manager/bootstrapper/rbac-signal.yaml": ("manager_test.py", "Signalling"),
    "manager/bootstrapper/rbac-direct.yaml": ("direct_test.py", "Real"),
}
RULE = re.compile(r"^  - apiGroups:.*\n(?:    .*\n)*", flags=re.MULTILINE)


def fails(file, text, script, case):
    """Runs the test in a copy of the tree where the file has this text. Returns what it said last; None if it passed."""
    with tempfile.TemporaryDirectory(prefix="runtime-watcher-rules-") as folder:
        copy = pathlib.Path(folder)
        for part in ("deploy", "tests"):
            shutil.copytree(ROOT / part, copy / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / "deploy" / file).write_text(text)
        done = subprocess.run([sys.executable, "-B", copy / "tests" / "e2e" / script, case], text=True, capture_output=True, timeout=600)
        said = re.findall(r"^(\w*Error: .*)", done.stdout + done.stderr, flags=re.MULTILINE)
        if done.returncode == 77 or "skipped=" in done.stderr:
            sys.exit(f"{script} {case} is skipped: {done.stderr[-300:]}")
        return None if done.returncode == 0 else (said or ["?"])[-1]


def main():
    os.environ["RW_BINARY"] = str(pathlib.Path(os.environ["RW_BINARY"]).resolve())
    passed = 0
    for file, test in TESTS.items():
        text = (ROOT / "deploy" / file).read_text()
        rules = list(RULE.finditer(text))
        if not rules:
            sys.exit(f"{file} has no rules")
        for number, rule in enumerate(rules, 1):
            name = f"{file} {number}/{len(rules)}: " + re.sub(r"\s+", " ", re.sub("#.*", "", rule[0])).strip()
            if len(sys.argv) > 1 and sys.argv[1] not in name:
                continue
            begun = time.monotonic()
            # A role without rules is one that the API server takes as well.
            said = fails(file, re.sub(r"^rules:\n(?!  [-#])", "rules: []\n", text[:rule.start()] + text[rule.end():], flags=re.MULTILINE), *test)
            # It is refused, or what the manager gives to the watcher differs from the file.
            good = said is not None and re.search(" may not: | != ", said)
            passed += not good
            print(f"{'fails' if good else 'PASSES' if said is None else 'BROKEN'} {time.monotonic() - begun:4.0f} s  {name}\n         {(said or '')[:200]}", flush=True)
    sys.exit(1 if passed else 0)


if __name__ == "__main__":
    main()
