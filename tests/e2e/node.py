"""A real node on this machine: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, kubelet and containerd
in namespaces of the test's own.

`isolated` runs the test script in new network, mount and process namespaces, as a child of the first process there: when that
ends, in whatever way, the kernel ends all others (pods and their shims among them) and takes mounts and network away. /run,
/var/lib and /var/log are the namespace's own. Nothing has a route to the machine's network. What remains are cgroups without
processes and a folder; the script that made them removes them, or the next one if it was killed.

Kubernetes is the version of tests/provide-kube.sh. cgroups are v1 or v2; v2 is untried.
"""

import fcntl
import ipaddress
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import landscape
from harness import Pki, Process, secret_texts, skip, wait_until
from kubectl import KUBECTL

NAME = "node1"
ADDRESS = "172.31.0.10"  # of the node, on a bridge without ports
GATEWAY_ADDRESS = "172.31.0.11"  # on the same bridge
PORT = 6443  # of kube-apiserver
SERVICES = "10.97.0.0/16"
PODS = "10.245.0.0/16"
PODS_OF_NODE = "10.245.0.0/24"
PODS_GATEWAY = str(ipaddress.ip_network(PODS_OF_NODE)[1])  # what kube-proxy makes the source of connections from the node to pods
BINARIES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "etcd", "containerd",
            "containerd-shim-runc-v2", "ctr", "runc", "cni/bridge", "cni/host-local", "cni/loopback", "cni/portmap")
TOOLS = ("unshare", "setpriv", "mount", "sysctl", "ip", "iptables", "conntrack", "umoci", "nginx", "tar")
CGROUPS = pathlib.Path("/sys/fs/cgroup")
CGROUP = "runtime-watcher-node"  # in each hierarchy
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids")
FOLDER = "RW_NODE_FOLDER"  # the variable that says to the script that it is in the namespaces
PREFIX = "runtime-watcher-node-"
LOCK = pathlib.Path("/run/runtime-watcher-node.lock")  # one node at a time; its content is the folder of the last one
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
USERS = {  # the groups of each; "runtime" has those rights that a test gives it
    "admin": ["system:masters"], f"system:node:{NAME}": ["system:nodes"], "system:kube-controller-manager": [],
    "system:kube-scheduler": [], "system:kube-proxy": [], "runtime": []}


def run(*argv, **how):
    """Runs a command to its end, and returns what it wrote to its standard output."""
    done = subprocess.run(list(map(str, argv)), text=True, capture_output=True, timeout=120, **how)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, argv))}: {done.stdout}{done.stderr}")
    return done.stdout


def hierarchies():
    """The folders that have a cgroup of the node: one with cgroup v2; one for each controller with v1, and where v2 is beside it."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return sorted({path.resolve() for path in CGROUPS.iterdir() if (path / "cgroup.procs").exists()})


def compiler():
    return shutil.which("clang-19") or shutil.which("cc")


def missing():
    """What the machine lacks for a node, as text; empty if nothing."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    absent = [name for name in BINARIES if not os.access(os.path.join(assets, name), os.X_OK)]
    if not assets or absent:
        return (f"KUBEBUILDER_ASSETS ({assets or 'not set'}) lacks {', '.join(absent)}: unset it, then "
                'KUBEBUILDER_ASSETS="$(tests/provide-kube.sh)"')
    absent = [name for name in TOOLS if not shutil.which(name, path=PATH)]
    if absent or not compiler() or not KUBECTL:
        return f"not installed: {', '.join(absent) or 'a C compiler, or kubectl'}; deploy/install-packages.sh build test"
    if not (CGROUPS / "cgroup.controllers").exists():
        absent = [name for name in CONTROLLERS if not (CGROUPS / name / "cgroup.procs").exists()]
        if absent:
            return f"cgroups: {CGROUPS} has no {', '.join(absent)}"
    try:
        make_cgroups()
        remove_cgroups()
    except OSError as error:
        return f"cgroups: {error}"
    namespaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc"]
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        for what, command in (
                ("namespaces", "true"), ("a bridge", "ip link add node type bridge"),
                ("iptables", "iptables -t nat -A POSTROUTING -m comment --comment probe -m mark --mark 1/1 -j MASQUERADE"),
                ("overlayfs", f"cd {folder} && mkdir lower upper work merged && "
                              "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged")):
            done = subprocess.run([*namespaces, "sh", "-c", command], text=True, capture_output=True, env={**os.environ, "PATH": PATH})
            if done.returncode != 0:
                return f"{what}: {done.stderr.strip()}"
    return ""


def make_cgroups():
    for hierarchy in hierarchies():
        group = hierarchy / CGROUP
        group.mkdir(exist_ok=True)
        if hierarchy == CGROUPS:
            for parent in (CGROUPS, group):
                for controller in (CGROUPS / "cgroup.controllers").read_text().split():
                    try:
                        (parent / "cgroup.subtree_control").write_text(f"+{controller}")
                    except OSError:
                        continue  # one that cannot be delegated; kubelet names those that it lacks
        for name in ("cpuset.cpus", "cpuset.mems"):  # v1: empty at first, and then no process may enter
            if (group / name).exists() and not (group / name).read_text().strip() and (hierarchy / name).exists():
                (group / name).write_text((hierarchy / name).read_text())


def remove_cgroups():
    """Those of the node, which have no processes any more, or will have none in a moment."""
    def removed():
        for hierarchy in hierarchies():
            for folder, _, _ in os.walk(hierarchy / CGROUP, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    return False
        return True
    wait_until(removed, 20, f"the cgroups {CGROUP} can be removed", every=0.1)


def isolated(main):
    """Runs main() in namespaces, where a node can be started, and ends the script with its exit code."""
    if FOLDER in os.environ:
        sys.exit(run_as_child(main))
    if os.geteuid() != 0:
        skip("a node needs root")
    lock = open(LOCK, "a+")
    fcntl.flock(lock, fcntl.LOCK_EX)
    lock.seek(0)
    remove_folder(lock.read())  # of a script that was killed
    lacking = missing()
    if lacking:
        skip(lacking)
    folder = tempfile.mkdtemp(prefix=PREFIX)
    lock.truncate(0)
    lock.write(folder)
    lock.flush()
    make_cgroups()
    environment = {**os.environ, FOLDER: folder, "PATH": PATH}
    if not os.environ.get("RW_E2E_KEEP"):
        environment["TMPDIR"] = folder
    began = time.monotonic()
    try:
        # The end of this process is that of unshare, that of unshare is that of the namespaces.
        code = subprocess.call(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             sys.executable, "-B", *sys.argv], env=environment)
    finally:
        remove_cgroups()
        remove_folder(folder)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"  the node and its test took {(time.monotonic() - began) / 60:.1f} minutes and "
          f"{used.ru_utime + used.ru_stime:.0f} s of CPU", file=sys.stderr)
    sys.exit(code)


def remove_folder(folder):
    if os.path.basename(folder).startswith(PREFIX):
        shutil.rmtree(folder, ignore_errors=True)


def run_as_child(main):
    """Forks; the child prepares the namespaces and runs main. This process, the first of its namespace, waits for the child, and
    for those that lost their parents."""
    child = os.fork()
    if child == 0:
        prepare_namespaces(pathlib.Path(os.environ[FOLDER]))
        main()
        sys.exit(0)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def prepare_namespaces(folder):
    """File systems of the node's own, in place of the machine's, and the network."""
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for name in ("lib", "log"):
        upper, work = folder / name, folder / f"{name}-work"
        upper.mkdir()
        work.mkdir()
        upper.chmod(0o755)
        run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/var/{name},upperdir={upper},workdir={work}", f"/var/{name}")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "node", "type", "bridge")
    for address in (ADDRESS, GATEWAY_ADDRESS):
        run("ip", "address", "add", f"{address}/24", "dev", "node")
    run("ip", "link", "set", "node", "up")
    run("ip", "route", "add", SERVICES, "dev", "node")  # a connection needs a route before kube-proxy's rules replace its target
    for name in ("net.ipv4.ip_forward", "net.ipv4.conf.all.route_localnet", "net.bridge.bridge-nf-call-iptables"):
        path = pathlib.Path("/proc/sys") / name.replace(".", "/")
        if path.exists():  # the last one only where bridges are filtered at all
            path.write_text("1")


class Node:
    """The cluster. `test` is the TestCase that owns the processes. `cluster` is the landscape.Cluster of its administrator."""

    def __init__(self, test):
        self._test = test
        self._assets = pathlib.Path(os.environ["KUBEBUILDER_ASSETS"])
        self._env = {**os.environ, "PATH": f"{self._assets}:{PATH}", "KUBE_CACHE_MUTATION_DETECTOR": "false"}
        self.folder = pathlib.Path(os.environ[FOLDER])
        self._tokens = {user: os.urandom(16).hex() for user in USERS}
        secret_texts.update(self._tokens.values())
        self._pki = Pki(self.folder / "pki", cn="node-ca")
        self._start_control_plane()
        self.cluster = landscape.Cluster(self.kubeconfig("admin"), self.folder / "kubectl")
        self._wait_for_api()
        self.cluster.apply(*POLICIES, KUBELET_CLIENT)
        self._start_containerd()
        self.add_program("localhost/pause", "int main(void) { for (;;) pause(); }")
        self._start_node()
        def is_ready():
            conditions = (self.cluster.get("node", NAME) or {"status": {}})["status"]["conditions"]
            return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
        wait_until(is_ready, 120, lambda: f"the node is Ready:\n{self.kubelet.tail()}", every=0.3)

    def _start(self, name, *argv):
        """With a umask that lets other users into what it makes: containers have users of their own."""
        return self._test.start(Process(name, ["sh", "-c", 'umask 022; exec "$@"', "-", *argv], env=self._env))

    def _write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return path

    def kubeconfig(self, user):
        """The path of a user's."""
        return self._write(f"{user.replace(':', '-')}.kubeconfig", {
            "apiVersion": "v1", "kind": "Config", "current-context": "node",
            "clusters": [{"name": "node", "cluster": {"server": f"https://{ADDRESS}:{PORT}", "certificate-authority-data":
                                                      landscape.encoded(self._pki.ca.read_bytes())}}],
            "users": [{"name": user, "user": {"token": self._tokens[user]}}],
            "contexts": [{"name": "node", "context": {"cluster": "node", "user": user, "namespace": "default"}}]})

    def _start_control_plane(self):
        self._start("etcd", self._assets / "etcd", "--unsafe-no-fsync", "--data-dir", self.folder / "etcd", "--logger", "zap",
                    "--log-level", "error")
        certificate, key = self._pki.issue("server", "kube-apiserver", san=",".join([
            "dns:kubernetes", "dns:kubernetes.default", "dns:kubernetes.default.svc", f"ip:{ADDRESS}", "ip:127.0.0.1",
            f"ip:{ipaddress.ip_network(SERVICES)[1]}"]))
        kubelet_client = self._pki.issue("client", "kubelet-client", san=None)
        self._account_key = self.folder / "sa.key"
        run("openssl", "genrsa", "-out", self._account_key, "2048")
        run("openssl", "rsa", "-in", self._account_key, "-pubout", "-out", self.folder / "sa.pub")
        tokens = self._write("tokens.csv", "".join(
            f'{self._tokens[user]},{user},{user},"{",".join(groups)}"\n' for user, groups in USERS.items()))
        self.apiserver = self._start(
            "kube-apiserver", self._assets / "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--secure-port={PORT}",
            f"--advertise-address={ADDRESS}", f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}",
            f"--client-ca-file={self._pki.ca}", f"--token-auth-file={tokens}", "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction,PodSecurityPolicy", "--allow-privileged=true",
            f"--service-cluster-ip-range={SERVICES}", f"--kubelet-client-certificate={kubelet_client[0]}",
            f"--kubelet-client-key={kubelet_client[1]}", f"--kubelet-certificate-authority={self._pki.ca}",
            "--kubelet-preferred-address-types=InternalIP", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.folder}/sa.pub", f"--service-account-signing-key-file={self._account_key}")

    def _wait_for_api(self):
        def is_ready():
            if not self.apiserver.running():
                raise AssertionError(f"kube-apiserver ended:\n{self.apiserver.tail()}")
            return self.cluster.attempt("get", "--raw", "/readyz").returncode == 0 and self.cluster.get("namespace", "kube-system")
        wait_until(is_ready, 60, lambda: f"kube-apiserver is ready:\n{self.apiserver.tail()}", every=0.2)

    def _start_containerd(self):
        network = {"cniVersion": "0.4.0", "name": "pods", "plugins": [
            {"type": "bridge", "bridge": "pods", "isGateway": True, "hairpinMode": True, "ipMasq": False,
             "ipam": {"type": "host-local", "ranges": [[{"subnet": PODS_OF_NODE}]], "routes": [{"dst": "0.0.0.0/0"}]}},
            {"type": "portmap", "capabilities": {"portMappings": True}}]}
        (self.folder / "net.d").mkdir()
        self._write("net.d/10-pods.conflist", network)
        configuration = self._write("containerd.toml", f"""version = 2
root = "{self.folder}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{self._assets}/cni"
    conf_dir = "{self.folder}/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
      BinaryName = "{self._assets}/runc"
""")
        self._containerd = self._start("containerd", self._assets / "containerd", "--config", configuration, "--log-level", "warn")
        wait_until(lambda: subprocess.run([self._assets / "ctr", "version"], capture_output=True).returncode == 0, 30,
                   lambda: f"containerd responds:\n{self._containerd.tail()}", every=0.1)

    def _start_node(self):
        certificate, key = self._pki.issue("server", "kubelet", san=f"dns:{NAME},ip:{ADDRESS}")
        kubelet = self._write("kubelet.json", {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": ADDRESS,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {"clientCAFile": str(self._pki.ca)}},
            "authorization": {"mode": "Webhook"}, "tlsCertFile": str(certificate), "tlsPrivateKeyFile": str(key),
            "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{CGROUP}", "failSwapOn": False, "enableControllerAttachDetach": True,
            "clusterDNS": [ADDRESS], "clusterDomain": "cluster.local", "resolvConf": str(self._write("resolv.conf", "")),
            "evictionHard": {"memory.available": "10Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99, "volumePluginDir": f"{self.folder}/plugins"})
        self.kubelet = self._start(
            "kubelet", self._assets / "kubelet", "--config", kubelet, "--kubeconfig", self.kubeconfig(f"system:node:{NAME}"),
            "--container-runtime=remote", "--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
            f"--hostname-override={NAME}", f"--node-ip={ADDRESS}", f"--root-dir={self.folder}/kubelet")
        proxy = self._write("kube-proxy.json", {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables", "clusterCIDR": PODS,
            "hostnameOverride": NAME, "clientConnection": {"kubeconfig": str(self.kubeconfig("system:kube-proxy"))},
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}})
        self._start("kube-proxy", self._assets / "kube-proxy", "--config", proxy)
        self._start("kube-controller-manager", self._assets / "kube-controller-manager", "--use-service-account-credentials",
                    "--kubeconfig", self.kubeconfig("system:kube-controller-manager"), "--allocate-node-cidrs", f"--cluster-cidr={PODS}",
                    f"--root-ca-file={self._pki.ca}", f"--service-account-private-key-file={self._account_key}", "--leader-elect=false",
                    "--port=0", "--bind-address=127.0.0.1", f"--cert-dir={self.folder}/controller-manager")
        self._start("kube-scheduler", self._assets / "kube-scheduler", "--kubeconfig", self.kubeconfig("system:kube-scheduler"),
                    "--leader-elect=false", "--port=0", "--bind-address=127.0.0.1", f"--cert-dir={self.folder}/scheduler")

    def add_image(self, layout, name):
        """Gives an OCI image layout to containerd; its tags are those of `name`."""
        archive = self.folder / "image.tar"
        run("tar", "-C", layout, "-cf", archive, ".")
        run(self._assets / "ctr", "--namespace", "k8s.io", "images", "import", "--base-name", name, archive)
        archive.unlink()

    def add_program(self, name, source):
        """Gives containerd an image NAME:1 that runs this C program, and nothing else."""
        work = self.folder / "program"
        work.mkdir()
        try:
            (work / "program.c").write_text(f"#include <unistd.h>\n{source}\n")
            run(compiler(), "-static", "-Os", "-o", work / "program", work / "program.c")
            (work / "program").chmod(0o755)
            run("umoci", "init", "--layout", work / "layout")
            run("umoci", "new", "--image", f"{work}/layout:1")
            run("umoci", "insert", "--image", f"{work}/layout:1", work / "program", "/program")
            run("umoci", "config", "--image", f"{work}/layout:1", "--config.entrypoint", "/program")
            self.add_image(work / "layout", name)
        finally:
            shutil.rmtree(work)

    def processes_of(self, pod):
        """Folders of /proc of the processes in a pod's containers, without that of its sandbox."""
        found = []
        for folder in pathlib.Path("/proc").iterdir():
            try:
                if folder.name.isdigit() and pod["metadata"]["uid"] in (folder / "cgroup").read_text() and \
                        os.readlink(folder / "exe") != "/program":
                    found.append(folder)
            except OSError:
                continue  # it has ended meanwhile
        return found

    def kill_container(self, pod):
        """SIGKILL to the processes of a pod's containers."""
        found = self.processes_of(pod)
        assert found, f"{pod['metadata']['name']} has no process"
        for folder in found:
            os.kill(int(folder.name), signal.SIGKILL)


# What the Pod Security Standard "restricted" forbids, for clusters before 1.23. No setting has a default here, so that a pod
# without it is rejected, where PodSecurityPolicies allow that: a capability that is to be dropped is dropped by the policy.
POLICIES = (
    {"apiVersion": "policy/v1beta1", "kind": "PodSecurityPolicy",
     "metadata": {"name": "restricted", "annotations": {"seccomp.security.alpha.kubernetes.io/allowedProfileNames": "runtime/default"}},
     "spec": {"privileged": False, "allowPrivilegeEscalation": False, "requiredDropCapabilities": ["ALL"],
              "volumes": ["configMap", "emptyDir", "projected", "secret", "downwardAPI", "persistentVolumeClaim"],
              "hostNetwork": False, "hostIPC": False, "hostPID": False, "runAsUser": {"rule": "MustRunAsNonRoot"},
              "seLinux": {"rule": "RunAsAny"}, "supplementalGroups": {"rule": "MustRunAs", "ranges": [{"min": 1, "max": 65535}]},
              "fsGroup": {"rule": "MustRunAs", "ranges": [{"min": 1, "max": 65535}]}}},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "restricted"},
     "rules": [{"apiGroups": ["policy"], "resources": ["podsecuritypolicies"], "resourceNames": ["restricted"], "verbs": ["use"]}]},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "restricted"},
     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "restricted"},
     "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts"}]},
)
# kubelet asks the API server who may read its logs: the API server itself.
KUBELET_CLIENT = {
    "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "kubelet-client"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "kubelet-client"}]}
