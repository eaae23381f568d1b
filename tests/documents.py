#!/usr/bin/env python3
"""Holds the documents against the tree: links and anchors resolve, files, metrics and flags that they name exist, the README
is short, examples are the programs that tests/install builds and are as short as promised, and commands are run from the documents or
listed in documented.py with the reason. Prints each error; ends with 1 if there is one."""

import pathlib
import re
import subprocess
import sys

import documented

ROOT = pathlib.Path(__file__).resolve().parents[1]
SKIPPED = ("build", ".git")
README_LINES = 150
# The document's example, which is built and run, and its most lines.
PROGRAMS = (("k8s/README.md", "tests/install/operator.cpp", 45),
            ("reactors/README.md", "tests/install/headers/embedded_listener.cpp", 12),
            ("reactors/README.md", "tests/install/headers/embedded_webhook.cpp", 12))
METRIC = re.compile(r"\b((?:rw|watcher|lifecycle_mgr|leader_election|workqueue|controller_runtime)_[a-z0-9_]*[a-z0-9])\b")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9_-]+")
# Options of other programs, and of Kyma Infrastructure Manager and kube-apiserver.
FOREIGN = {"--address-family", "--build", "--cacert", "--cflags", "--libs", "--data", "--dry-run", "--enable-aggregator-routing", "--field-selector", "--for",
           "--header", "--kubeconfig", "--label-exclude", "--list_content", "--merge", "--preset", "--replicas",
           "--run_test", "--log_level", "--runtime-bootstrapper-enabled", "--show-managed-fields", "--target", "--type", "--install", "--take-ownership", "--namespace", "--values", "--logs", "--reuse-values", "--output", "--filename", "--all-namespaces", "--exit-status", "--all",
           "--prefix", "--set", "--set-file", "--goaway-chance", "--server-side", "--bump-revision", "--mark-compacted", "--parallel"}


SCHEMA_WORDS = {"properties", "items", "spec", "status", "metadata", "apiVersion", "kind", "additionalProperties", "type", "description"}


def files(*suffixes):
    for path in sorted(ROOT.rglob("*")):
        inside = path.relative_to(ROOT).parts
        if path.suffix in suffixes and path.is_file() and not inside[0].startswith(SKIPPED) and "data" not in inside:
            yield path


def anchors(text):
    """As GitHub makes them of headings."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ (.*)$", prose, flags=re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def check_links(path, text, errors):
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        to = (path.parent / name).resolve() if name else path
        if not to.exists():
            errors.append(f"{path}: no such file: {target}")
        elif anchor and anchor not in set(anchors(to.read_text())):
            errors.append(f"{path}: no such heading: {target}")


def check_paths(path, text, errors):
    """Paths in backquotes: from the root, or from the folder of the document."""
    for name in re.findall(r"`([\w./-]+/[\w.-]*\.(?:hpp|cpp|py|sh|yaml|md|txt|cmake))`", text):
        if name.startswith(("rw-", "build/", "/")):
            continue
        if not (ROOT / name).exists() and not (path.parent / name).exists():
            errors.append(f"{path}: no such file: {name}")


def check_tests(path, text, errors):
    """Tests in backquotes, such as `e2e.image`, as ctest names them."""
    tests = ROOT / "tests"
    registered = "".join((tests / of).read_text() for of in ("CMakeLists.txt", "linear/CMakeLists.txt"))
    e2e = re.findall(r"^rw_e2e\((\w+)", (tests / "e2e" / "CMakeLists.txt").read_text(), flags=re.MULTILINE)
    for folder, name in re.findall(r"`([a-z0-9_]+)\.([a-z0-9_]+)`", text):
        there = (name in e2e if folder == "e2e" else (tests / "fuzz" / f"fuzz_{name}.cpp").exists() if folder == "fuzz" else
                 f"NAME {folder}.{name}" in registered or (tests / "unit" / folder / f"{name}_test.cpp").exists())
        if not there:
            errors.append(f"{path}: no such test: {folder}.{name}")


def check_names(path, text, errors, sources):
    """Qualified names in backquotes, such as `reflector::watch_ended`; what they are members of is not checked."""
    for name in set(re.findall(r"`(?:\w+::)+(\w+)`", text)):
        if not re.search(rf"\b{name}\b", sources):
            errors.append(f"{path}: no such name: {name}")


def check_watcher(errors):
    """Each field of the definition of Watchers has a place in its page."""
    definition = (ROOT / "deploy/crds/operator.kyma-project.io_watchers.yaml").read_text().split("openAPIV3Schema:")[1]
    page = (ROOT / "deploy/watcher.md").read_text()
    for field in set(re.findall(r"^ +(\w+): *(?:\{type: .*|)$", definition, flags=re.MULTILINE)) - SCHEMA_WORDS:
        if not re.search(rf"`(?:\w+\.)*{field}`", page):
            errors.append(f"deploy/watcher.md: no word of the field {field}")


def main():
    errors = []
    check_watcher(errors)
    # Not the texts that the runbook is made of: they name flags and metrics as it does.
    sources = "\n".join(path.read_text() for path in files(".cpp", ".hpp", ".py", ".sh", ".txt", ".json", ".yaml")
                        if path != pathlib.Path(__file__).resolve() and not path.name.startswith("explained_")) + (ROOT / ".ci/run").read_text()
    # Some reactors compose names of a prefix and one of these.
    suffixes = set(re.findall(r'\+ "(_[a-z_]+)"', sources))
    for path in files(".md"):
        if path.name == "CHANGELOG.md":
            continue
        text = path.read_text()
        check_links(path, text, errors)
        check_paths(path, text, errors)
        check_names(path, text, errors, sources)
        if path.name == "SECURITY.md":
            check_tests(path, text, errors)
        for metric in set(METRIC.findall(text)):
            if (ROOT / "reactors" / metric).is_dir():
                continue
            parts = [metric[:-len(each)] for each in suffixes if metric.endswith(each)]
            metric = re.sub(r"_(bucket|sum|count)$", "", metric)
            if f'"{metric}' not in sources and not any(f'"{each}"' in sources for each in parts):
                errors.append(f"{path}: no such metric: {metric}")
        for flag in set(FLAG.findall(text)) - FOREIGN:
            if not re.search(re.escape(flag) + r"(?![\w-])", sources):
                errors.append(f"{path}: no such flag: {flag}")
    errors += documented.errors(str(path.relative_to(ROOT)) for path in files(".md") if path.name != "CHANGELOG.md")
    lines = len((ROOT / "README.md").read_text().splitlines())
    if lines > README_LINES:
        errors.append(f"README.md has {lines} lines, more than {README_LINES}")
    for document, program, most in PROGRAMS:
        text = (ROOT / program).read_text()
        if f"```cpp\n{text}```" not in (ROOT / document).read_text():
            errors.append(f"{document}: its example is not {program}")
        if text.count("\n") > most:
            errors.append(f"{program} has more than {most} lines")
    charts = subprocess.run([sys.executable, "-B", ROOT / "deploy" / "helm" / "readme.py", "--check"], text=True, capture_output=True)
    if charts.returncode != 0:
        errors.append(charts.stdout + charts.stderr)
    print("\n".join(errors))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
