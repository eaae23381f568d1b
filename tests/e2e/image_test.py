"""The image of deploy/image: two builds are the same, it contains what it should and nothing else, the Dockerfile makes the
same file system, and an event goes through pods that run from it, by the manifests of deploy, by lifecycle-manager's, and from the
arm64 image in an emulator, where RW_BINARY_ARM64 names an executable (default: that of the preset release-arm64)."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import harness
import pods
from harness import BINARY, ROOT, EventLog, Gateway, Listener, Pki, Process, wait_until
from kubectl import KUBECTL
from pods import EPOCH, Container, Image, objects_in, pod_of, pod_of_lifecycle_manager, run

SAMPLE = ROOT / "deploy" / "samples" / "02-kyma-create.json"
LARGEST = 12 * harness.MIB
ARM64 = pathlib.Path(os.environ.get("RW_BINARY_ARM64") or ROOT / "build-arm64" / "runtime-watcher")
EMULATOR = shutil.which("qemu-aarch64-static")
NO_ARM64 = ("" if EMULATOR and ARM64.exists() else "there is no qemu-aarch64-static (deploy/install-packages.sh cross)" if not EMULATOR
            else f"{ARM64} is not built; cmake --preset release-arm64 && cmake --build --preset release-arm64")


def contents(root):
    """Paths below a root file system, with what they are."""
    found = {}
    for path in sorted(root.rglob("*")):
        about = path.lstat()
        found[str(path.relative_to(root))] = (oct(about.st_mode), os.readlink(path) if path.is_symlink() else "")
    return found


class Layout(harness.TestCase):
    binary = BINARY
    sysroot = pathlib.Path("/")  # where the image's libraries come from
    emulator = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="runtime-watcher-e2e-")
        cls.addClassCleanup(folder.cleanup)
        cls.image = Image(pathlib.Path(folder.name), cls.binary)  # of the pods, which get mount points in it

    def check_description(self):
        size = sum(path.stat().st_size for path in (self.image.layout / "blobs").rglob("*") if path.is_file())
        self.note(f"{size / harness.MIB:.1f} MiB compressed")
        self.assertLess(size, LARGEST)
        image = self.image.config
        self.assertEqual(image["architecture"], self.architecture())
        self.assertEqual(image["config"]["User"], "10001:10001")
        self.assertEqual((image["config"]["Entrypoint"], image["config"]["Cmd"]), (["/usr/bin/runtime-watcher"], ["webhook"]))
        self.assertEqual(image["created"], "2023-11-14T22:13:20Z")
        labels = image["config"]["Labels"]
        for name in ("title", "version", "revision", "created", "description", "licenses"):
            self.assertTrue(labels[f"org.opencontainers.image.{name}"], name)

    def check_files(self, root):
        found = contents(root)
        self.assertEqual([name for name in found if name.startswith("usr/bin/")], ["usr/bin/runtime-watcher"], "no shell, no tools")
        self.assertEqual([name for name in found if name.startswith("usr/sbin")], [])
        for name, (mode, _) in found.items():
            self.assertEqual(int(mode, 8) & 0o6000, 0, f"{name} has the bit setuid or setgid")
            if not int(mode, 8) & 0o120000 == 0o120000:
                self.assertEqual(int(mode, 8) & 0o022, 0, f"others may write {name}")
            self.assertEqual((root / name).lstat().st_mtime, EPOCH, name)
        self.assertIn("10001:10001", (root / "etc" / "passwd").read_text())
        sbom = json.loads((root / "usr/share/doc/runtime-watcher/sbom.spdx.json").read_text())
        self.assertEqual(sbom, json.loads(pathlib.Path(f"{self.image.layout}.spdx.json").read_text()))
        listed = {file["fileName"]: file["checksums"][1]["checksumValue"] for file in sbom["files"]}
        for name in (n for n, (mode, _) in found.items() if ".so" in n or n.startswith("usr/bin/")):
            self.assertEqual(listed.get(f"./{name}"), hashlib.sha256((root / name).read_bytes()).hexdigest(), name)
        packages = {package["name"]: package for package in sbom["packages"]}
        for name in ("libc6", "libssl3", "libboost-json1.81.0", "libnghttp2-dev", "ca-certificates"):
            self.assertTrue(packages[name]["versionInfo"], name)
            self.assertIn(f"usr/share/doc/{name}/copyright", found)
        # What scanners read: the distribution, and its packages, which the image has no dpkg for.
        release = dict(line.split("=", 1) for line in (root / "etc" / "os-release").read_text().splitlines() if "=" in line)
        here = dict(line.split("=", 1) for line in (self.sysroot / "usr/lib/os-release").read_text().splitlines() if "=" in line)
        self.assertEqual((release["ID"], release["VERSION_ID"]), (here["ID"], here["VERSION_ID"]))
        status = root / "var" / "lib" / "dpkg" / "status.d"
        self.assertEqual({path.name for path in status.iterdir()}, set(packages) - {"runtime-watcher"})
        for name, package in packages.items():
            if name != "runtime-watcher":
                fields = dict(line.split(": ", 1) for line in (status / name).read_text().splitlines())
                self.assertEqual((fields["Package"], fields["Version"], fields["Status"]),
                                 (name, package["versionInfo"], "install ok installed"))
                self.assertIn(fields["Architecture"], (self.architecture(), "all"))
                self.assertIn(f"?arch={fields['Architecture']}&", package["externalRefs"][0]["referenceLocator"])
                self.assertTrue(fields["Maintainer"])
        self.assertEqual(re.search(r"^Source: (\S+)", (status / "libssl3").read_text(), flags=re.MULTILINE)[1], "openssl")
        # Each library is of a package that is listed, and each package has a licence.
        owners = {each["relatedSpdxElement"] for each in sbom["relationships"] if each["relationshipType"] == "DYNAMIC_LINK"}
        for library in (name for name in found if ".so" in name):
            self.assertIn(self.owner(library), [p["name"] for p in packages.values() if p["SPDXID"] in owners], library)
        texts = {each["licenseId"]: each["extractedText"] for each in sbom.get("hasExtractedLicensingInfos", [])}
        for name, package in packages.items():
            self.assertNotIn(package["licenseDeclared"], ("", "NOASSERTION"), name)
            for licence in re.findall(r"LicenseRef-[\w.-]+", package["licenseDeclared"]):
                self.assertTrue(texts.get(licence), licence)
        self.assertEqual(packages["libssl3"]["licenseDeclared"], "Apache-2.0")
        self.assertEqual(packages["ca-certificates"]["licenseDeclared"], "MPL-2.0")
        self.assertEqual(packages["runtime-watcher"]["licenseDeclared"], "Apache-2.0")

        # Of the package alone: a machine may trust authorities of its own, which no image has to.
        def certificates(*paths):
            return [text for path in paths for text in re.findall("-----BEGIN[^-]*-----[^-]*", path.read_text())]
        self.assertEqual(certificates(root / "etc/ssl/certs/ca-certificates.crt"),
                         certificates(*sorted((self.sysroot / "usr/share/ca-certificates/mozilla").iterdir())))
        self.check_libraries(root, {name for name in found if ".so" in name})

    def check_libraries(self, root, found):
        """What the loader says that the executable needs."""
        needed = subprocess.run(["ldd", self.binary], check=True, text=True, capture_output=True).stdout
        self.assertEqual({pathlib.Path(name).name for name in found}, {pathlib.Path(name).name for name in re.findall(r"(/\S+) \(", needed)})

    def architecture(self):
        return run("dpkg", "--print-architecture").strip()

    def owner(self, library):
        """The Debian package of a library, by dpkg, which may know it without /usr."""
        for name in (f"/{library}", f"/{library}".removeprefix("/usr")):
            done = subprocess.run(["dpkg-query", f"--admindir={self.sysroot}/var/lib/dpkg", "--search", name], text=True, capture_output=True)
            if done.returncode == 0:
                return done.stdout.split(":")[0]
        return self.fail(f"{library} is of no package")

    def container(self, spec, **options):
        return self.start(Container(self, self.image, spec, emulator=self.emulator, **options))

    def test_image_is_reproducible_and_small(self):
        self.image, shared = Image(self.folder, self.binary), self.image
        self.assertEqual(self.image.digest, shared.digest, "two builds have one digest")
        self.check_description()
        self.check_files(self.image.root)
        for folder in {str(ROOT), str(self.sysroot)} - {"/"}:
            self.assertFalse(folder.encode() in (self.image.root / "usr/bin/runtime-watcher").read_bytes(), f"{folder} is part of it")

    def begin_path(self):
        """What the manifest of a runtime expects: its Secret, and KCP behind a gateway."""
        self.pki, self.events = Pki(self.folder / "pki"), EventLog()
        certificate, key = self.pki.issue("webhook", "webhook", cn="runtime-1")
        secret = self.folder / "secret"
        secret.mkdir()
        for name, source in (("ca.crt", self.pki.ca), ("tls.crt", certificate), ("tls.key", key)):
            shutil.copy(source, secret / name)
        (secret / "managers.json").write_text("")
        listener = self.start(Listener(self.events, "lifecycle-manager"))
        server = self.pki.issue("server", "gateway", san="dns:kcp.example.com")
        self.start(Gateway(self.folder / "nginx", *server, self.pki.ca, listener.port, port=443))
        return {"volumes": {"tls": secret, "ssl": secret}, "pod": {"metadata.name": "skr-webhook-1"},
                "hosts": {"kcp.example.com": "127.0.0.1"}}

    def check_event(self, webhook):
        """A review that the API server sends to the Service reaches the operator."""
        self.assertEqual(webhook.wait_listening("webhook"), 8443)
        self.assertEqual(webhook.wait_listening("admin"), 2112)
        answer = run(BINARY, "replay", "--address", "localhost:8443", "--path", "/validate/lifecycle-manager", "--ca-cert",
                     self.pki.ca, SAMPLE)
        self.assertIn(": allowed", answer)
        wait_until(lambda: self.events.lines, 10, lambda: f"the event comes:\n{webhook.tail()}")
        self.assertEqual(self.events.events()[0]["runtimeId"], "runtime-1")
        version = re.search(r"project\(runtime_watcher VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        [first] = webhook.records(msg="starting")
        self.assertEqual((first["version"], first["command"]), (version, "webhook"))
        self.assertIn("--kcp-addr=kcp.example.com:443", first["settings"].split())
        # Without privileges, and its file system can't be written to.
        process = webhook.process()
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
        for capabilities in ("CapInh", "CapPrm", "CapEff"):
            self.assertEqual(int(status[capabilities], 16), 0, capabilities)
        return [line.split() for line in (process / "mounts").read_text().splitlines()]

    def test_manifest_of_a_runtime_runs_the_image(self):
        path = self.begin_path()
        deployment = objects_in((ROOT / "deploy" / "skr" / "deployment.yaml").read_text())["Deployment", "skr-webhook"]
        mounts = self.check_event(self.container(pod_of(deployment), **path))
        self.assertTrue(next(options for _, to, _, options, *_ in mounts if to == "/").startswith("ro"))

    def test_deployment_of_lifecycle_manager_runs_the_image(self):
        spec = pod_of_lifecycle_manager("runtime-watcher", "kcp.example.com:443")
        path = self.begin_path()
        webhook = self.container(spec, **path)
        self.check_event(webhook)
        webhook.kill()
        # Flags of the existing image, which some set.
        [container] = spec["containers"]
        version = self.container({**spec, "containers": [{**container, "args": ["-version"]}]}, **path)
        self.assertEqual(version.wait(20), 0, version.tail())
        self.assertRegex(version.tail(), r"runtime-watcher \d+\.\d+")
        talkative = self.container({**spec, "containers": [{**container, "args": ["-development=true"]}]}, **path)
        self.assertEqual(talkative.wait_listening("webhook"), 8443)
        self.assertIn("--kcp-addr=kcp.example.com:443", talkative.records(msg="starting")[0]["settings"])

    def test_manifest_of_the_manager_runs_the_image(self):
        """In a cluster whose namespace has Services that kubelet would tell of by the names of settings."""
        server = self.start(Process("kube-devserver", [pathlib.Path(BINARY).parent / "kube-devserver", "--address", "127.0.0.1:0",
                                                       "--dir", self.folder / "kcp"]))
        server.wait_listening("api-server")
        kubeconfig = self.folder / "kcp" / "default.kubeconfig"
        for source in ("manager/namespace.yaml", "crds", "dev"):
            run(KUBECTL, "--kubeconfig", kubeconfig, "apply", "-f", ROOT / "deploy" / source)
        rendered = objects_in(run(KUBECTL, "kustomize", ROOT / "deploy" / "manager"))
        spec = pod_of(rendered["Deployment", "runtime-watcher-manager"])
        services = {"rw-kcp": 443, "rw-events": 8082, "rw-lease": 1}
        for linked in (False, True):
            manager = self.container({**spec, **({"enableServiceLinks": True} if linked else {})}, kubeconfig=kubeconfig,
                                     pod={"status.podIP": "10.245.0.9"}, services=services)
            wait_until(lambda: manager.records(msg="this replica leads"), 60, lambda: f"it leads:\n{manager.tail()}")
            ignored = [r["variable"] for r in manager.records(level="warning", msg="variable of a Service ignored")]
            self.assertEqual(sorted(ignored), ["RW_EVENTS_PORT", "RW_KCP_PORT"] if linked else [])
            self.assertEqual(manager.wait_listening("listener"), 8082)
            manager.kill()
            run(KUBECTL, "--kubeconfig", kubeconfig, "delete", "lease", "--all", "--namespace", "kcp-system")


class Libraries(harness.TestCase):
    """What deploy/image/elf.py finds in a system of two libraries, without libc."""

    def link(self, to, *options):
        to = self.system / to
        to.parent.mkdir(parents=True, exist_ok=True)
        run(shutil.which("clang-19") or "cc", "-nostdlib", "-xc", os.devnull, "-xnone", *options, "-o", to)
        return to

    def found(self):
        return subprocess.run(["python3", "-B", ROOT / "deploy/image/elf.py", "libraries", self.executable, self.system], text=True,
                              capture_output=True)

    def setUp(self):
        super().setUp()
        self.system = self.folder / "system"
        machine = subprocess.run(["python3", "-B", ROOT / "deploy/image/elf.py", "architecture", BINARY], check=True, text=True,
                                 capture_output=True).stdout.split()[1]
        self.folders = f"/lib/{machine}", "/opt/own"
        inner = self.link("opt/own/libinner.so", "-shared", "-Wl,-soname,libinner.so")
        outer = self.link(f"lib/{machine}/libouter.so", "-shared", "-Wl,-soname,libouter.so", "-Wl,--no-as-needed", inner,
                          "-Wl,-rpath,$ORIGIN/../../opt/own,--enable-new-dtags")
        self.executable = self.link("usr/bin/program", "-Wl,-e,0,--no-as-needed,--dynamic-linker=/lib64/loader", outer, "-Wl,--allow-shlib-undefined")

    def test_library_that_a_library_needs_is_found_where_that_says(self):
        found = self.found()
        self.assertEqual(found.stdout.split(), sorted([f"{self.folders[0]}/libouter.so", "/opt/own/libinner.so", "/lib64/loader"]), found.stderr)

    def test_library_that_is_not_there_is_named_with_what_needs_it(self):
        (self.system / "opt/own/libinner.so").unlink()
        found = self.found()
        self.assertEqual(found.returncode, 1)
        self.assertRegex(found.stderr, r"/libouter\.so needs libinner\.so, which .*/system has not\n$")


@harness.unittest.skipIf(NO_ARM64, NO_ARM64)
class Arm64(Layout):
    """Another architecture than this machine's: each process runs in an emulator, which sees the image alone."""
    binary = ARM64
    emulator = EMULATOR

    def setUp(self):
        self.sysroot = pathlib.Path(run(ROOT / "deploy" / "image" / "sysroot.sh", "arm64").strip())
        super().setUp()

    def architecture(self):
        return "arm64"

    def check_libraries(self, root, found):
        """What the image's own loader says, in the emulator."""
        needed = run(self.emulator, "-L", root, root / "usr/lib/ld-linux-aarch64.so.1", "--library-path",
                     root / "usr/lib/aarch64-linux-gnu", "--list", root / "usr/bin/runtime-watcher")
        self.assertNotIn("not found", needed)
        self.assertEqual({pathlib.Path(name).name for name in found}, {pathlib.Path(name).name for name in re.findall(r"(/\S+) \(", needed)})


class Dockerfile(harness.TestCase):
    """What a container engine makes of the Dockerfile, apart from the compilation."""

    def buildah(self, *arguments):
        environment = {**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
        return run("buildah", "--root", self.folder / "storage", "--runroot", self.folder / "run", *arguments, env=environment).strip()

    def test_dockerfile_makes_the_file_system_of_the_script(self):
        base = self.buildah("from", "scratch")
        self.buildah("add", "--quiet", base, os.environ["RW_IMAGE_BASE"], "/")
        self.buildah("commit", "--quiet", "--disable-compression", base, "localhost/base")
        context = self.folder / "context"
        (context / "build").mkdir(parents=True)
        shutil.copy(BINARY, context / "build" / "runtime-watcher")
        (context / "build" / "other").write_text("no part of the context")
        for name in ("CMakeLists.txt", "LICENSE"):
            shutil.copy(ROOT / name, context)
        shutil.copytree(ROOT / "deploy" / "image", context / "deploy" / "image")
        self.buildah("bud", "--quiet", "--ignorefile", context / "deploy/image/Dockerfile.dockerignore",
                     "--build-arg", "BASE=localhost/base", "--build-arg", "COMPILE=no", "--build-arg",
                     f"SOURCE_DATE_EPOCH={EPOCH}", "-f", context / "deploy/image/Dockerfile", "-t", "watcher", context)
        container = self.buildah("from", "localhost/watcher")
        mounted = pathlib.Path(self.buildah("mount", container))
        by_script = self.folder / "rootfs"
        run(ROOT / "deploy" / "image" / "rootfs.sh", BINARY, by_script, env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)})
        # The base has no compiler and so no headers, whose licences the script adds.
        relevant = lambda found: {name: what for name, what in found.items() if not name.split("/")[-1].endswith("-dev")
                                  and not name.endswith("-dev/copyright")}
        self.assertEqual(relevant(contents(mounted)), relevant(contents(by_script)))
        config = json.loads(self.buildah("inspect", container))["OCIv1"]["config"]
        self.assertEqual((config["User"], config["Entrypoint"], config["Cmd"]), ("10001:10001", ["/usr/bin/runtime-watcher"], ["webhook"]))
        self.buildah("umount", container)
        self.buildah("rm", container)


if __name__ == "__main__":
    # The class that is asked for by name, or all.
    asked = sys.argv[1:] or ["Layout", "Libraries", "Arm64", "Dockerfile"]
    if "Dockerfile" in asked and not shutil.which("buildah"):
        harness.skip("buildah is not installed")
    if not KUBECTL:
        harness.skip("kubectl is not installed")
    if "VERSION_CODENAME=bookworm" not in pathlib.Path("/etc/os-release").read_text().splitlines():
        harness.skip("the image is built on Debian 12")
    if asked == ["Arm64"] and NO_ARM64:
        harness.skip(NO_ARM64)
    if "Layout" in asked or "Arm64" in asked:
        pods.own_network()
    if "Dockerfile" in asked and not os.environ.get("RW_IMAGE_BASE"):
        harness.skip('RW_IMAGE_BASE names no root file system; RW_IMAGE_BASE="$(tests/provide-base.sh)"')
    if "Dockerfile" in asked and os.geteuid() != 0:
        harness.skip("buildah's isolation by chroot needs root")
    harness.main()
