"""The commands of the documents: which are run, by which test, and why the others are not."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Of these pages each command is run as it is written; a port or a folder may be replaced.
RUN = {
    "README.md": "e2e.commands",
    "deploy/configuration-of-runtimes.md": "e2e.commands",
    "deploy/manager/bootstrapper/MIGRATION.md": "e2e.bootstrapper_migration_embedded",
    "deploy/operations.md": "e2e.operations",
    "deploy/samples/README.md": "e2e.commands",
    "deploy/settings.md": "e2e.commands",
    "reactors/dev/README.md": "e2e.commands",
    "tests/README.md": "e2e.commands",
}
BUILDS = "it builds all of the project once more; .ci/run has the same commands"
CLUSTER = "it needs pods, images or controllers that no API server in a test has"
# Page, how the command begins, and why it is not run from the page.
NOT_RUN = (
    ("README.md", "deploy/quickstart.sh", "it installs packages as root and builds; e2e.quickstart runs the rest of it"),
    ("README.md", "tests/run.sh", "it runs the tests, this one among them"),
    ("bench/README.md", "bench/run.sh", "it measures for a long time; bench.gather holds what it makes of what is measured"),
    ("bench/README.md", "deploy/install-packages.sh", "it installs packages as root; .ci/run begins with it"),
    ("deploy/README.md", "helm/package.sh", "e2e.chart runs it"),
    ("deploy/README.md", "helm ", CLUSTER + "; e2e.chart and e2e.chart_release install the charts"),
    ("deploy/README.md", "deploy/install-packages.sh", "it installs packages as root"),
    ("deploy/README.md", "deploy/image/build.sh", "e2e.image runs it with a folder of its own"),
    ("deploy/README.md", "skopeo copy", "it needs a registry"),
    ("deploy/README.md", "kubectl -n kcp-system port-forward", CLUSTER),
    ("deploy/examples/README.md", "cmake ", "install.find_package builds and runs the examples against an installed copy"),
    ("deploy/helm/runtime-watcher/README.md", "deploy/helm/package.sh", "e2e.chart runs it"),
    ("deploy/helm/runtime-watcher-skr/README.md", "deploy/helm/package.sh", "e2e.chart runs it"),
    ("deploy/helm/runtime-watcher/README.md", "helm ", CLUSTER + "; e2e.chart runs `helm template` and `lint` of it"),
    ("deploy/helm/runtime-watcher-skr/README.md", "helm ", CLUSTER + "; e2e.chart runs `helm template` and `lint` of it"),
    ("deploy/manager/MIGRATION.md", "kubectl scale", CLUSTER),
    ("deploy/manager/MIGRATION.md", "runtime-watcher uninstall", "e2e.beside_klm goes this way with two managers"),
    ("deploy/manager/README.md", "kubectl ", CLUSTER + "; e2e.manager_kube applies the same objects"),
    ("deploy/manager/README.md", "runtime-watcher uninstall", "e2e.uninstall runs it with a manager that has ended"),
    ("deploy/pki/README.md", "kubectl apply", CLUSTER),
    ("deploy/release.md", "openssl dgst", "e2e.release runs it on a release that it makes"),
    ("deploy/release.md", "sha256sum", "e2e.release compares the digests of a release that it makes"),
    ("tests/README.md", "tests/run.sh", "it runs the tests, this one among them"),
    ("tests/README.md", "cmake --preset", BUILDS),
    ("tests/README.md", "ctest --preset tsan", BUILDS),
    ("tests/README.md", "ctest --preset release -L kube", "ctest runs these tests itself"),
    ("tests/README.md", "ctest --preset release -L '^node$'", "tests/run.sh runs e2e.node"),
    ("tests/README.md", "ctest --preset release -C long", "it takes five minutes; by hand, and before a release"),
    ("tests/README.md", "export KUBEBUILDER_ASSETS", "tests/run.sh begins with it"),
    ("tests/README.md", "mkdir -p found", "a fuzzer does not end; fuzz.* replay the corpora"),
    ("tests/README.md", "python3 -B tests/e2e/dev_test.py", "it is e2e.dev"),
    ("tests/README.md", "build/tests/simulation/simulation --seeds", "10,000 seeds take minutes; the test `simulation` plays fewer"),
    ("tests/README.md", "tests/planted.py", "it builds a suite once for each planted fault; by hand"),
    ("tests/README.md", "tests/simulation/planted.sh", "it builds the simulation once for each planted bug; by hand"),
)


def commands(page):
    return commands_in((ROOT / page).read_text())


def commands_in(text):
    """Each command of the shell blocks, without its comment: lines that end with a backslash go on."""
    for block in re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        for command in re.findall(r"(?:.*\\\n)*.+", block):
            bare = re.sub(r"\s+#.*$", "", command)
            if bare and not bare.startswith("#") and not bare.startswith("$"):
                yield bare


def reason(page, command):
    """Why a command is not run from its page; empty if it is."""
    return next((why for of, start, why in NOT_RUN if of == page and command.startswith(start)), "")


def to_run(page):
    return [command for command in commands(page) if not reason(page, command)]


def errors(pages):
    """Commands that nothing runs and that are not listed, and entries of the lists that match none."""
    for page in pages:
        if page not in RUN:
            yield from (f"{page}: nothing runs this command, and tests/documented.py has no reason: {command}" for command in to_run(page))
    for page, start, _ in NOT_RUN:
        if not any(command.startswith(start) for command in commands(page)):
            yield f"tests/documented.py: {page} has no command that begins with {start}"
    for page in RUN:
        if not to_run(page):
            yield f"tests/documented.py: {page} has no command to be run"
