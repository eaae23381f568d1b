"""deploy/release.sh: the files of a release are complete, fit together, and are the same when they are made again.

The executable is the one under test, and the image of another architecture is this one's under another name; once more with a real
one, where there is an arm64 executable as for e2e.image_arm64.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess

import harness
from charts import CHART, HELM, SKR_CHART, Helm
from harness import BINARY, ROOT
from image_test import ARM64

RELEASE = ROOT / "deploy" / "release.sh"
VERSION = re.search(r"project\(runtime_watcher VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
EPOCH = "1700000000"


def run(*command, fails=False, epoch=EPOCH):
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch, "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    done = subprocess.run([*map(str, command)], text=True, capture_output=True, timeout=120, env=environment)
    if (done.returncode != 0) != fails:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stderr if fails else done.stdout


def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Release(Helm, harness.TestCase):
    def release(self, name, *options):
        run(RELEASE, VERSION, "--binary", BINARY, "--output", self.folder / name, *options)
        return self.folder / name

    def other_architecture(self):
        layout = self.folder / "other"
        run(ROOT / "deploy" / "image" / "build.sh", "--binary", BINARY, "--output", layout, "--tag", VERSION)
        run("umoci", "config", "--image", f"{layout}:{VERSION}", "--no-history", "--architecture", "riscv64")
        run("umoci", "gc", "--layout", layout)
        return layout

    def test_files_of_a_release_fit_together_and_are_made_the_same_again(self):
        self.check_release("riscv64", "--layout", self.other_architecture())

    @harness.unittest.skipUnless(ARM64.exists(), f"{ARM64} is not built")
    def test_release_of_two_executables_has_an_image_of_each_architecture(self):
        self.check_release("arm64", "--binary", ARM64)

    def check_release(self, architecture, *options):
        key = self.folder / "key.pem"
        run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
        made = self.release("release", *options, "--key", key)
        own = subprocess.run(["dpkg", "--print-architecture"], text=True, capture_output=True).stdout.strip()
        archive = f"runtime-watcher-{VERSION}.oci.tar"
        files = {"notes.md", "image.digest", f"image-{own}.spdx.json", f"image-{architecture}.spdx.json", archive, "provenance.intoto.json",
                 f"runtime-watcher-{VERSION}.tgz", f"runtime-watcher-skr-{VERSION}.tgz", "SHA256SUMS"}
        self.assertEqual({path.name for path in made.iterdir()}, files | {"SHA256SUMS.sig"})

        sums = dict(reversed(line.split("  ")) for line in (made / "SHA256SUMS").read_text().splitlines())
        self.assertEqual(sums, {name: digest_of(made / name) for name in files - {"SHA256SUMS"}})
        run("openssl", "pkey", "-in", key, "-pubout", "-out", self.folder / "public.pem")
        run("openssl", "dgst", "-sha256", "-verify", self.folder / "public.pem", "-signature", made / "SHA256SUMS.sig", made / "SHA256SUMS")

        again = self.release("again", *options)
        self.assertEqual({name: digest_of(again / name) for name in files}, {name: digest_of(made / name) for name in files})

        self.check_image(made / archive, (made / "image.digest").read_text().strip(), {own, architecture})
        self.check_provenance(made, sums)
        notes = (made / "notes.md").read_text()
        self.assertTrue(notes.startswith(f"# Runtime Watcher {VERSION}\n"))
        self.assertNotIn("\n## ", notes, "the section of this version alone")
        self.assertIn("\n### Added\n", notes)

    def check_image(self, archive, digest, architectures):
        folder = self.folder / "image"
        folder.mkdir()
        run("tar", "-xf", archive, "-C", folder)
        layout = folder / "runtime-watcher"
        for path in (layout / "blobs" / "sha256").iterdir():
            self.assertEqual(digest_of(path), path.name)
        [named] = json.loads((layout / "index.json").read_text())["manifests"]
        self.assertEqual((named["digest"], named["annotations"]["org.opencontainers.image.ref.name"]), (digest, VERSION))
        index = json.loads((layout / "blobs" / digest.replace(":", "/")).read_text())
        self.assertEqual({m["platform"]["architecture"] for m in index["manifests"]}, architectures)
        for manifest in index["manifests"]:
            content = (layout / "blobs" / manifest["digest"].replace(":", "/")).read_bytes()
            self.assertEqual(len(content), manifest["size"])
            for part in (json.loads(content)["config"], *json.loads(content)["layers"]):
                self.assertTrue((layout / "blobs" / part["digest"].replace(":", "/")).exists())
        # A tool that knows nothing of us copies the index, with all its images.
        if shutil.which("skopeo"):
            run("skopeo", "copy", "--all", f"oci:{layout}:{VERSION}", f"dir:{folder}/copied")

    def check_provenance(self, made, sums):
        statement = json.loads((made / "provenance.intoto.json").read_text())
        self.assertEqual((statement["_type"], statement["predicateType"]),
                         ("https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1"))
        subjects = {each["name"]: each["digest"]["sha256"] for each in statement["subject"]}
        self.assertEqual(f"sha256:{subjects.pop('runtime-watcher')}", (made / "image.digest").read_text().strip())
        self.assertEqual(subjects, {name: digest for name, digest in sums.items() if name != "provenance.intoto.json"})
        used = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
        self.assertRegex(used[0]["digest"]["gitCommit"], "^[0-9a-f]{40}$")
        self.assertTrue(any(re.match(r"pkg:deb/debian/libssl3(t64)?@", each["uri"]) for each in used[1:]))

    @harness.unittest.skipUnless(HELM, "there is no helm (RW_HELM)")
    def test_packed_charts_are_what_helm_packs(self):
        made = self.release("release")
        for chart in (CHART, SKR_CHART):
            archive = made / f"{chart.name}-{VERSION}.tgz"
            run(HELM, "package", chart, "--destination", self.folder)
            def names(path):
                return set(run("tar", "-tzf", path).splitlines())
            self.assertEqual({name for name in names(archive) if not name.endswith("/")}, names(self.folder / archive.name))
            self.assertEqual(self.rendered({}, archive), self.rendered({}, chart))

    def test_version_that_is_not_everywhere_is_refused(self):
        for version, message in (("9.9.9", "CMakeLists.txt has another version"), ("one", "is no version"), ("1.2", "is no version")):
            self.assertIn(message, run(RELEASE, version, "--output", self.folder / "no", fails=True))
        self.assertIn("two layouts", run("python3", "-B", ROOT / "deploy/image/index.py", self.folder / "index", "1",
                                         *2 * [self.other_architecture()], fails=True))
        self.assertFalse((self.folder / "no").exists())


if __name__ == "__main__":
    if not shutil.which("umoci"):
        harness.skip("umoci is not installed")
    harness.main()
