#!/usr/bin/env python3
"""What kube-devserver needs for Deployments in JSON and in protobuf: CPU of its process alone for each object that is created,
listed (in pages of 500) and watched, and memory. Prints one line of JSON for each figure. Ends with 1 if one is over its limit.

    bench/devserver.py [--objects N]

Objects are stored as JSON: what is read in protobuf is converted each time, and what is read in JSON is copied. Each format has a server of its own. The bodies have the same content: that of a Deployment which a server has defaulted.
"""

import argparse
import http.client
import json
import pathlib
import ssl
import sys
import tempfile

from system import missed, say

from harness import BINARY, Process  # noqa: E402  (system.py says where they are)
from wire import MAGIC, PROTOBUF, fields, message  # noqa: E402

PROGRAM = pathlib.Path(BINARY).parent / "kube-devserver"
PATH = "/apis/apps/v1/namespaces/default/deployments"
JSON = "application/json"
PAGE = 500
# Name, unit, and what protobuf may be as a multiple of JSON, of which reading is copying.
FIGURES = (("create", "us", 1.3), ("list", "us", 8), ("watch", "us", 12), ("rss", "MiB", 1.05), ("event", "bytes", 0.8))


def deployment():
    labels = {"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop"}
    probe = {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web-00000", "labels": labels}, "spec": {
        "replicas": 2, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "containers": [{"name": "web", "image": "registry.example.com/shop/web:1.2.3", "args": ["--port=8080", "--log=json"],
                            "ports": [{"name": "http", "containerPort": 8080}],
                            "env": [{"name": f"SETTING_{i}", "value": f"value {i}"} for i in range(5)],
                            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
                            "readinessProbe": probe, "livenessProbe": probe,
                            "volumeMounts": [{"name": "config", "mountPath": "/etc/web"}]}],
            "volumes": [{"name": "config", "configMap": {"name": "web"}}]}}}}


class Server:
    """A server and a kept-alive connection to it."""

    def __init__(self, folder, content_type):
        self.content_type = content_type
        self.process = Process("kube-devserver", [PROGRAM, "--address=127.0.0.1:0", "--dir", folder])
        port = self.process.wait_listening("api-server")
        self.token = (folder / "default.kubeconfig").read_text().partition("token: ")[2].split()[0]
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60,
                                                      context=ssl.create_default_context(cafile=folder / "ca.crt"))

    def begin(self, method, path, body=None, accept=None):
        self.connection.request(method, path, body, {"Authorization": f"Bearer {self.token}", "Content-Type": self.content_type,
                                                     "Accept": accept or self.content_type})
        answer = self.connection.getresponse()
        assert answer.status < 300, (method, path, answer.status, answer.read(500))
        return answer

    def send(self, *arguments, **named):
        return self.begin(*arguments, **named).read()

    def bodies(self):
        """Makes a body for a name of the same length as that of `deployment`."""
        self.connection.request("POST", PATH, json.dumps(deployment()), {"Authorization": f"Bearer {self.token}", "Content-Type": JSON})
        assert self.connection.getresponse().read()
        whole = self.send("GET", f"{PATH}/web-00000")
        self.send("DELETE", f"{PATH}/web-00000")
        if self.content_type == JSON:
            whole = json.loads(whole)
            body = json.dumps({**deployment(), "spec": whole["spec"]}).encode()
        else:
            parts = dict(fields(whole[len(MAGIC):]))
            of = dict(fields(parts[2]))
            metadata = message(*((number, value) for number, value in fields(of[1]) if number in (1, 11)))
            body = MAGIC + message((1, parts[1]), (2, message((1, metadata), (2, of[2]))), (3, ""), (4, ""))
        assert body.count(b"web-00000") == 1
        return lambda name: body.replace(b"web-00000", name.encode())

    def list_all(self):
        """Lists in pages; their last field of metadata, or `continue`, leads to the next."""
        token, pages = "", 0
        while pages == 0 or token:
            whole = self.send("GET", f"{PATH}?limit={PAGE}" + (f"&continue={token}" if token else ""))
            pages += 1
            if self.content_type == JSON:
                token = json.loads(whole)["metadata"].get("continue", "")
            else:
                metadata = dict(fields(dict(fields(dict(fields(whole[len(MAGIC):]))[2]))[1]))
                token = metadata.get(3, b"").decode()
        return pages

    def watch_all(self, objects):
        """Reads an event for each object that is there. The connection is of no further use."""
        accept = JSON if self.content_type == JSON else PROTOBUF + ";stream=watch"
        answer, data, at, seen = self.begin("GET", PATH + "?watch=1&timeoutSeconds=60", accept=accept), bytearray(), 0, 0
        while seen < objects:
            data += answer.read1(1 << 20)
            while True:
                end = data.find(b"\n", at) + 1 if self.content_type == JSON else \
                    at + 4 + int.from_bytes(data[at:at + 4], "big") if len(data) >= at + 4 else 0
                if not at < end <= len(data):
                    break
                at, seen = end, seen + 1
        return len(data)


def measure(servers, objects):
    """Figures of each server by name: microseconds of CPU for an object, MiB, and bytes of an event. What the machine does
    beside is the same for both, since they work in turns."""
    found = [{} for _ in servers]
    used = [server.process.cpu_seconds() for server in servers]
    bodies = [server.bodies() for server in servers]

    def note(name):
        for i, server in enumerate(servers):
            before, used[i] = used[i], server.process.cpu_seconds()
            found[i][name] = (used[i] - before) * 1e6 / objects

    note("first")
    for i in range(objects):
        for server, body in zip(servers, bodies):
            server.send("POST", PATH, body(f"web-{i:05}"))
    note("create")
    for i, server in enumerate(servers):
        found[i]["rss"] = server.process.rss() / 2**20
        assert server.list_all() == -(-objects // PAGE)
    note("list")
    for i, server in enumerate(servers):
        found[i]["event"] = server.watch_all(objects) / objects
    note("watch")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=10000)
    asked = parser.parse_args()
    servers = []
    with tempfile.TemporaryDirectory(prefix="rw-bench-") as folder:
        try:
            for name, content_type in (("json", JSON), ("protobuf", PROTOBUF)):
                own = pathlib.Path(folder) / name
                own.mkdir()
                servers.append(Server(own, content_type))
            figures = dict(zip(("json", "protobuf"), measure(servers, asked.objects)))
        finally:
            for server in servers:
                server.connection.close()
                server.process.terminate()
    for name, unit, limit in FIGURES:
        say(f"{name}_json", figures["json"][name], unit, objects=asked.objects)
        say(f"{name}_protobuf", figures["protobuf"][name], unit, "JSON", peer_value=figures["json"][name], ratio_limit=limit,
            objects=asked.objects)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
