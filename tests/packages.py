#!/usr/bin/env python3
"""deploy/install-packages.sh with the names of packages that releases have, on a machine whose apt and dpkg are made up.

RELEASES below has what matters of each release: of Debian by its archive, of Ubuntu by packages.ubuntu.com. CI installs on Debian 12 as it
is, and tests/debian13.sh on Debian 13; nothing is installed here.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMMON = """ninja-build cmake ccache pkg-config libssl-dev libnghttp2-dev libcli11-dev prometheus-cpp-dev libsimdjson-dev libyaml-cpp-dev libre2-dev
libbenchmark-dev git curl openssl ca-certificates python3 nghttp2-client nginx-light wrk jq kubernetes-client npm bubblewrap umoci buildah mmdebstrap
binutils doxygen abigail-tools valgrind prometheus chromium chromium-driver python3-cryptography python3-selenium fonts-dejavu-core lua5.4
reuse iptables conntrack iproute2"""


def clang(*versions):
    return " ".join(f"clang-{n} lld-{n} libclang-rt-{n}-dev clang-tidy-{n} clang-format-{n} llvm-{n}" for n in versions)


def boost(*versions):
    return " ".join(f"libboost{n}-dev libboost-json{n}-dev libboost-test{n}-dev" for n in versions)


RELEASES = {
    "Debian GNU/Linux 12 (bookworm)": f"{COMMON} {clang(14, 16, 19, 22)} libboost1.74-dev libboost-test1.74-dev {boost('1.81')}",
    "Debian GNU/Linux 13 (trixie)": f"{COMMON} {clang(17, 18, 19, 22)} {boost('1.83', '1.88')}",
    # Chromium is a snap there.
    "Ubuntu 24.04.1 LTS": f"{COMMON.replace('chromium chromium-driver', '')} {clang(14, 18, 19, 20)} libboost1.74-dev libboost-test1.74-dev {boost('1.83')}",
}


class Packages(unittest.TestCase):
    def setUp(self):
        self.keep = tempfile.TemporaryDirectory()
        self.addCleanup(self.keep.cleanup)
        self.folder = pathlib.Path(self.keep.name)
        self.log = self.folder / "installed"

    def program(self, name, text):
        file = self.folder / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/bash\n{text}\n")
        file.chmod(0o755)

    def machine(self, release, packages, installed=()):
        """Programs in the PATH that are a release with these packages. apt knows them after `apt-get update`."""
        (self.folder / "offered").write_text("\n".join(packages.split()) + "\n")
        self.program("dpkg-query", "".join(f"echo 'ii  {name}'\n" for name in installed) or "true")
        self.program("apt-cache", f"""
            [[ -e {self.folder}/read ]] || exit 0
            case $1 in
              pkgnames) cat {self.folder}/offered ;;
              show) shift; for name; do grep -qx -- "$name" {self.folder}/offered || {{ echo "E: No packages found" >&2; exit 100; }}; done ;;
            esac""")
        self.program("apt-get", f"""
            [[ " $* " != *" update "* ]] || touch {self.folder}/read
            [[ " $* " != *" install "* ]] || printf '%s\\n' "${{@: -1}}" "$@" >>{self.log}""")
        for name in ("id", "bash", "env", "sed", "awk", "sort", "tail", "head", "grep", "mktemp", "rm", "cat", "chmod", "tee", "touch"):
            link = self.folder / "bin" / name
            if name == "id":
                self.program("id", "echo 0")
            elif not link.exists():
                link.symlink_to(subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout.strip())
        (self.folder / "os-release").write_text(f'PRETTY_NAME="{release}"\n')

    def run_script(self, *arguments):
        return subprocess.run(["bwrap", "--dev-bind", "/", "/", "--ro-bind", self.folder / "os-release", "/usr/lib/os-release", "--tmpfs", "/usr/sbin",
                               "--setenv", "PATH", self.folder / "bin", "bash", ROOT / "deploy" / "install-packages.sh", *arguments],
                              text=True, capture_output=True, timeout=30, stdin=subprocess.DEVNULL)

    def installed(self):
        words = self.log.read_text("utf-8").split() if self.log.exists() else []
        return {word for word in words if not word.startswith("-") and word != "install" and "=" not in word}

    def test_release_has_all_that_is_installed(self):
        chosen = {"Debian GNU/Linux 12 (bookworm)": "1.81", "Debian GNU/Linux 13 (trixie)": "1.88", "Ubuntu 24.04.1 LTS": "1.83"}
        for release, packages in RELEASES.items():
            with self.subTest(release):
                self.log.unlink(missing_ok=True)
                (self.folder / "read").unlink(missing_ok=True)
                self.machine(release, packages)
                done = self.run_script("build", "test", "sanitize")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(release, done.stdout)
                self.assertLessEqual(self.installed(), set(packages.split()))
                self.assertLessEqual({"clang-19", "lld-19", f"libboost{chosen[release]}-dev", f"libboost-json{chosen[release]}-dev",
                                      f"libboost-test{chosen[release]}-dev", "llvm-19"}, self.installed())
                self.assertEqual("chromium" in self.installed(), "chromium" in packages.split())
                self.assertEqual("no package chromium" in done.stderr, "chromium" not in packages.split())

    def test_installed_versions_are_kept(self):
        packages = RELEASES["Debian GNU/Linux 13 (trixie)"]
        self.machine("Debian GNU/Linux 13 (trixie)", packages, [*(boost("1.83") + " " + clang(22)).split()])
        done = self.run_script("--list", "build")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("libboost-test1.83-dev", done.stdout.split())
        self.assertIn("clang-22", done.stdout.split())

    def test_release_without_boost_is_told_what_is_needed(self):
        self.machine("Old 1", f"{COMMON} {clang(14, 19)} {boost('1.74')}")
        done = self.run_script("build")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr, r"Old 1 has .*no Boost from 1\.81 on.*install by hand: a C\+\+20 compiler")
        self.assertEqual(self.installed(), set())

    def test_release_without_a_library_is_told_what_is_needed(self):
        self.machine("Old 2", f"{COMMON.replace('prometheus-cpp-dev', '')} {clang(19)} {boost('1.83')}")
        done = self.run_script("build")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr, "Old 2 has no package prometheus-cpp-dev; install by hand .*Boost from 1.81 on")
        self.assertEqual(self.installed(), set())

    def test_system_without_apt_is_told_what_is_needed(self):
        self.machine("Fedora Linux 42", "")
        (self.folder / "bin" / "apt-get").unlink()
        done = self.run_script("build")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr, "Fedora Linux 42 has no apt; install by hand: a C")


if __name__ == "__main__":
    if not shutil.which("bwrap"):
        print("skipped: there is no bwrap; run deploy/install-packages.sh test")
        sys.exit(77)
    unittest.main()
