"""`runtime-watcher-dev dev` as a process, with its clusters and its events."""

import json
import pathlib
import urllib.request

from api import Api, collection, kymas
from harness import DEV_BINARY, Process, metric_sum, wait_until

WATCHER = collection("watchers", "kcp-system", "operator.kyma-project.io", "v1beta2") + "/kyma"
SERVICE = collection("virtualservices", "kcp-system", "networking.istio.io", "v1beta1") + "/kyma"
DEPLOYMENT = collection("deployments", "kyma-system", "apps") + "/skr-webhook"
SECRET = collection("secrets", "kyma-system") + "/skr-webhook-tls"
ROLLOUT = collection("runtimerollouts", "kcp-system", "operator.kyma-project.io", "v1alpha1") + "/watcher"
CONFIGURATION = collection("validatingwebhookconfigurations", group="admissionregistration.k8s.io") + "/skr-webhook"
PULL_SECRET = collection("secrets", "kcp-system") + "/registry-credentials"
WATCHED = kymas("kyma-system") + "/default"


class Dev(Process):
    """Its events are in `events`, each with its arrival, and what came of KCP's configuration to runtimes is in
    `rollout`; options are those of the command line."""

    def __init__(self, folder, runtimes, *options):
        self.folder = pathlib.Path(folder)
        self.events = []  # (monotonic arrival, object); only ever grows
        self.rollout = []  # objects with source, runtime, arrivedAfterMs, have, of; only ever grows
        self.phases = []  # of roll-outs of the bootstrapper: objects with rollout, phase, reason, updated, ready, failed, total; only ever grows
        super().__init__("dev", [DEV_BINARY, "dev", "--dir", self.folder, "--runtimes", runtimes, "--events", "json", *options],
                         on_line=self._take)
        self._pages = {}
        self._apis = []

    def _take(self, arrival, line):
        told = json.loads(line)
        if "rollout" in told:
            if told["rollout"] == "bootstrapper":
                self.phases.append(told)
        elif "source" in told:
            self.rollout.append(told)
        else:
            self.events.append((arrival, told))

    def kill(self):
        for each in self._apis:
            each.close()
        super().kill()

    def wait_up(self, timeout=60):
        def look():
            if not self.running():
                raise AssertionError(f"dev ended with {self.popen.returncode}:\n{self.tail()}")
            return self.records(msg="the system is up")
        wait_until(look, timeout, lambda: f"dev is up:\n{self.tail()}")
        return self

    def kcp(self):
        """A connection to KCP, closed with the process."""
        return self._api("kcp")

    def skr(self, runtime):
        return self._api(f"skr-{runtime}")

    def _api(self, name):
        self._apis.append(Api(self.folder / f"{name}.yaml"))
        return self._apis[-1]

    def manifest(self, name):
        return (self.folder / f"{name}.yaml").read_text()

    def add_kyma(self, kcp, runtime):
        """As a person would: access to the runtime, then its Kyma."""
        kcp.apply(f"{collection('secrets', 'kcp-system')}/kubeconfig-{runtime}", self.manifest(f"access-{runtime}"))
        kcp.apply(f"{kymas('kcp-system')}/{runtime}", self.manifest(f"kyma-{runtime}"))

    def metric(self, name, page="manager", **labels):
        """Of the manager, or of all else (page "dev")."""
        server = {"manager": "admin", "dev": "dev-admin"}[page]
        if server not in self._pages:
            self._pages[server] = self.wait_listening(server)
        with urllib.request.urlopen(f"http://127.0.0.1:{self._pages[server]}/metrics", timeout=10) as answer:
            return metric_sum(answer.read().decode(), name, **labels) or 0

    def installed(self):
        """How many runtimes the manager knows the watcher to be installed on."""
        return self.metric("rw_watcher_installer_runtimes", state="installed")

    def have(self, source, start=0):
        """The runtimes that got a source's content of KCP, since `start` in `rollout`."""
        return {told["runtime"] for told in self.rollout[start:] if told["source"] == source}

    def reconciled(self, runtime, start=0):
        """The events of a runtime that led to a reconcile."""
        return [e for _, e in self.events[start:] if e["runtime"] == runtime and e["reconciled"]]


def rotate_pull_secret(kcp, password):
    """In KCP, to one with this password."""
    config = {"auths": {"registry.example.com": {"username": "kyma", "password": password}}}
    kcp.patch(PULL_SECRET, {"stringData": {".dockerconfigjson": json.dumps(config)}})


def webhooks_of(skr):
    """The names of the Watchers that the runtime's configuration has a webhook for."""
    found = skr.get(CONFIGURATION)
    names = [w["name"].split(".")[1] for w in found.get("webhooks") or []] if found else None
    return names if names is None else sorted(name for name in names if name != "watcher-probe")
