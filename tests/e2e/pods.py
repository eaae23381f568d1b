"""Containers as kubelet starts them, without a node: the command, its arguments, the environment, mounts, user and capabilities
come from the image's configuration and a rendered Pod spec. A test says only what is in the volumes, and where the API server is.

Each runs in bubblewrap on the root file system of an image of deploy/image/build.sh, in the network of the test's script, which
`own_network` makes one of its own: the ports of the manifests are fixed.
"""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import harness
from harness import BINARY, ROOT, Process
from kubectl import KUBECTL

EPOCH = 1700000000
TAG = "test"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def run(*command, timeout=120, **options):
    done = subprocess.run([*map(str, command)], text=True, capture_output=True, timeout=timeout, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def own_network():
    """Runs the script again in a network namespace of its own, with a loopback interface alone."""
    if os.environ.get("RW_E2E_OWN_NETWORK"):
        return
    unshare = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    for tool in ("bwrap", "umoci", "unshare", "ip"):
        if not shutil.which(tool):
            harness.skip(f"{tool} is not installed")
    if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        harness.skip("this user may make no network namespace")
    command = [*unshare, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, "-B", *sys.argv]
    os.execvpe(command[0], command, {**os.environ, "RW_E2E_OWN_NETWORK": "1"})


def objects_in(text):
    """The objects of YAML documents, by kind and name."""
    found = {}
    for part in re.split(r"^---$", text, flags=re.MULTILINE):
        if not re.search(r"^kind:", part, flags=re.MULTILINE):
            continue
        # Without a server; the label changes nothing that a test looks at.
        each = json.loads(run(KUBECTL, "label", "--local", "-f", "-", "-o", "json", "read-by=test", input=part))
        found[each["kind"], each["metadata"]["name"]] = each
    return found


def pod_of(workload):
    """The Pod spec of a Deployment or Pod."""
    return workload["spec"].get("template", {}).get("spec") or workload["spec"]


def pod_of_lifecycle_manager(image, kcp):
    """The Pod spec of what lifecycle-manager installs, with another image: neither command nor args, the existing image's environment,
    no mount of a journal (kyma-project/lifecycle-manager, skr-webhook/resources.yaml; contract of the existing system)."""
    folder = "/app/etc/ssl"
    environment = {"WEBHOOK_PORT": "8443", "METRICS_PORT": "2112", "CA_CERT": f"{folder}/ca.crt", "TLS_CERT": f"{folder}/tls.crt",
                   "TLS_KEY": f"{folder}/tls.key", "KCP_ADDR": kcp, "KCP_CONTRACT": "v2", "GODEBUG": "fips140=only,tlsmlkem=0"}
    return {"containers": [{
                "name": "server", "image": image, "env": [{"name": k, "value": v} for k, v in environment.items()],
                "ports": [{"name": "webhook", "containerPort": 8443}, {"name": "metrics", "containerPort": 2112}],
                "resources": {"requests": {"memory": "20Mi", "cpu": "0.01"}, "limits": {"memory": "200Mi", "cpu": "0.1"}},
                "securityContext": {"allowPrivilegeEscalation": False, "privileged": False, "readOnlyRootFilesystem": True,
                                    "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": "ssl", "mountPath": folder, "readOnly": True}]}],
            "priorityClassName": "skr-webhook-priority",
            "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 30001, "seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [{"name": "ssl", "secret": {"secretName": "skr-webhook-tls"}}]}


class Image:
    """An image, unpacked into `folder`."""

    def __init__(self, folder, binary=BINARY):
        self.layout = folder / "image"
        self.digest = self.build(self.layout, binary)
        self.config = self.blob(self.blob(self.digest)["config"]["digest"])
        as_user = [] if os.geteuid() == 0 else ["--rootless"]
        run("umoci", "unpack", *as_user, "--image", f"{self.layout}:{TAG}", folder / "bundle")
        self.root = folder / "bundle" / "rootfs"

    @staticmethod
    def build(to, binary):
        """Returns the digest."""
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH), "TZ": "Asia/Tokyo", "LC_ALL": "C"}
        return run(ROOT / "deploy" / "image" / "build.sh", "--binary", binary, "--output", to, "--tag", TAG, env=environment).strip()

    def blob(self, digest):
        return json.loads((self.layout / "blobs" / digest.replace(":", "/")).read_text())


def expanded(text, environment):
    """$(NAME) of a variable that is known; $$(NAME) is $(NAME) (Kubernetes API, Container, command)."""
    return re.sub(r"\$\$|\$\((\w+)\)", lambda m: "$" if m[0] == "$$" else environment.get(m[1], m[0]), text)


def files_of(volume, objects):
    """The texts that kubelet would write into a volume, by file name."""
    if "emptyDir" in volume:
        return {}
    if "projected" in volume:
        return {name: text for source in volume["projected"]["sources"] for name, text in files_of(source, objects).items()}
    if "secret" in volume:
        secret = objects["Secret", volume["secret"].get("secretName") or volume["secret"]["name"]]
        return {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    return objects["ConfigMap", volume["configMap"]["name"]]["data"]


class Container(Process):
    """The one container of a Pod spec. Its volumes are of the Secrets and ConfigMaps in `objects`, or their files stand in
    `volumes`: a folder, or texts by name. `pod` is what a fieldRef reads; `hosts` are names that the cluster's DNS would know;
    `services` are those of the namespace, with their ports.
    With `kubeconfig` the API server is that one, and the token of the ServiceAccount is the kubeconfig's."""

    def __init__(self, test, image, spec, objects=None, volumes=None, pod=None, hosts=None, services=None, kubeconfig=None,
                 emulator=None):
        [container] = spec["containers"]
        self._folder = test.folder / f"pod-{container['name']}-{len(test._processes)}"
        self._folder.mkdir()
        self._image, self._mounts = image, []
        environment = dict(each.split("=", 1) for each in image.config["config"].get("Env", []))
        if kubeconfig:
            environment.update(self._account(kubeconfig, spec))
        if spec.get("enableServiceLinks", True):
            environment.update({f"{name.upper().replace('-', '_')}_PORT": f"tcp://10.97.0.1:{port}"
                                for name, port in (services or {}).items()})
        for each in container.get("env", []):
            field = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            value = (pod or {})[field] if field else each.get("value", "")
            environment[each["name"]] = expanded(value, environment)
        for each in container.get("volumeMounts", []):
            [volume] = [volume for volume in spec["volumes"] if volume["name"] == each["name"]]
            content = (volumes or {}).get(each["name"])
            self._mount(each, self._folder_of(volume, files_of(volume, objects or {}) if content is None else content))
        (self._folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{at} {name}\n" for name, at in (hosts or {}).items()))
        self._mounts += ["--ro-bind", self._folder / "hosts", self._point("/etc/hosts", is_file=True)]
        self.command = [expanded(each, environment) for each in self._command(container)]
        super().__init__(container["name"], self._sandboxed(spec, container, environment, emulator))

    def _command(self, container):
        """With `command` the image's Cmd counts no more, either (Kubernetes, "Define a Command and Arguments for a Container")."""
        config = self._image.config["config"]
        entry, arguments = container.get("command"), container.get("args")
        if entry is None:
            entry = config.get("Entrypoint") or []
            arguments = config.get("Cmd") or [] if arguments is None else arguments
        return [*entry, *(arguments or [])]

    def _sandboxed(self, spec, container, environment, emulator):
        security = {**spec.get("securityContext", {}), **container.get("securityContext", {})}
        user, _, group = self._image.config["config"].get("User", "").partition(":")
        user, group = security.get("runAsUser", user), security.get("runAsGroup", group)
        if security.get("runAsNonRoot") and int(user or 0) == 0:
            raise AssertionError("the pod has to run as another user than root")
        root = "--ro-bind" if security.get("readOnlyRootFilesystem") else "--bind"
        dropped = [part for each in security.get("capabilities", {}).get("drop", []) for part in ("--cap-drop", each)]
        self._point("/proc"), self._point("/dev")
        emulated = ["--ro-bind", emulator, self._point("/emulator", is_file=True)] if emulator else []
        return ["bwrap", root, self._image.root, "/", "--proc", "/proc", "--dev", "/dev", *self._mounts, *emulated, "--unshare-all",
                "--share-net", "--uid", user, "--gid", group, *dropped, "--die-with-parent", "--new-session", "--clearenv",
                *(part for pair in environment.items() for part in ("--setenv", *pair)), *["/emulator"] * bool(emulator), *self.command]

    def _point(self, path, is_file=False):
        """Makes a mount point in the image's root, as a container's runtime does."""
        at = self._image.root / path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.touch() if is_file else at.mkdir(exist_ok=True)
        return path

    def _mount(self, mount, folder):
        self._mounts += ["--ro-bind" if mount.get("readOnly") else "--bind", folder, self._point(mount["mountPath"])]

    def _folder_of(self, volume, content):
        if isinstance(content, pathlib.Path):
            return content
        folder = self._folder / volume["name"]
        folder.mkdir()
        for file, text in content.items():
            (folder / file).write_text(text)
        return folder

    def _account(self, kubeconfig, spec):
        text = pathlib.Path(kubeconfig).read_text()
        def field(name):
            return re.search(rf'"?{name}"?: *"?([^",\s}}]+)', text)[1]
        server = urllib.parse.urlsplit(field("server"))
        if spec.get("automountServiceAccountToken", True):
            folder = self._folder / "account"
            folder.mkdir()
            (folder / "token").write_text(field("token"))
            (folder / "namespace").write_text("kcp-system")
            (folder / "ca.crt").write_bytes(base64.b64decode(field("certificate-authority-data")))
            self._mount({"mountPath": ACCOUNT, "readOnly": True}, folder)
        return {"KUBERNETES_SERVICE_HOST": server.hostname, "KUBERNETES_SERVICE_PORT": str(server.port)}

    def process(self):
        """The folder in /proc of the process in the sandbox."""
        parents = [self.popen.pid]
        while parents:
            parent = parents.pop()
            for task in pathlib.Path(f"/proc/{parent}/task").glob("*/children"):
                parents += [int(pid) for pid in task.read_text().split()]
            if os.readlink(f"/proc/{parent}/exe").endswith(("runtime-watcher", "/emulator")):
                return pathlib.Path(f"/proc/{parent}")
        raise AssertionError(f"{self.name} runs no program:\n{self.tail()}")
