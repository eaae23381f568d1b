"""What stands around the cluster of node.py: its DNS server, the gateway in front of KCP, the recorder of events behind it, and
the client whose objects change all the time.
"""

import json
import shutil
import signal
import socket
import struct
import threading
import time

from api import Api, collection
from harness import BINARY, EventLog, Process, pause, skip, wait_until
from landscape import decoded
from node import ADDRESS, GATEWAY_ADDRESS, PATH, PODS_GATEWAY

VIRTUAL_SERVICES = collection("virtualservices", None, "networking.istio.io", "v1beta1")
TRUSTED = f"{PODS_GATEWAY}/32,{ADDRESS}/32,{GATEWAY_ADDRESS}/32"  # what connections from the gateway come from, with and without kube-proxy


class Thread:
    """Calls `step` again and again until `stop`; what it raises is raised by `check`."""

    def __init__(self, every):
        self._every = every
        self._end = threading.Event()
        self._error = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._end.is_set():
            try:
                self.step()
            except Exception as error:  # pylint: disable=broad-except
                self._error = error
                return
            self._end.wait(self._every)

    def check(self):
        if self._error:
            raise AssertionError(f"{type(self).__name__} ended: {self._error!r}") from self._error

    def stop(self):
        self._end.set()
        self._thread.join(30)
        self.check()


class DnsServer(Thread):
    """Answers pods, by UDP: the addresses of Services, and of the names that it is given."""

    def __init__(self, kubeconfig, names):
        self._api = Api(kubeconfig)
        self._names = names
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((ADDRESS, 53))
        self._socket.settimeout(0.5)
        super().__init__(0)

    def step(self):
        try:
            query, client = self._socket.recvfrom(4096)
        except TimeoutError:
            return
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
            at += 1 + query[at]
        kind = struct.unpack("!H", query[at + 1:at + 3])[0]
        address = self._names.get(".".join(labels)) or self._service(labels)
        found = address is not None and kind == 1
        header = query[:2] + struct.pack("!HHHHH", 0x8580 if address else 0x8583, 1, int(found), 0, 0)
        answer = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 5, 4) + socket.inet_aton(address) if found else b""
        self._socket.sendto(header + query[12:at + 5] + answer, client)

    def _service(self, labels):
        if labels[2:] != ["svc", "cluster", "local"]:
            return None
        found = self._api.get(f"{collection('services', labels[1])}/{labels[0]}")
        return found and found["spec"]["clusterIP"]


class ServiceGateway(Process):
    """nginx as the ingress gateway of KCP: mutual TLS with what the gateway's Secret has, routes as the VirtualServices say, kept
    connections to the ClusterIPs of Services. `follow` keeps it up to date. Each request is a line of its log."""

    LOCATION = """
    location ^~ %s {
      proxy_pass http://%s; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header X-Forwarded-Client-Cert "Cert=$ssl_client_escaped_cert";
      proxy_connect_timeout 5s; proxy_read_timeout 30s; proxy_next_upstream error timeout http_503 non_idempotent;
    }"""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.record = folder / "requests.log"
        self.record.touch()
        self._write("")
        nginx = shutil.which("nginx", path=PATH) or skip("nginx is not installed")
        super().__init__("nginx", [nginx, "-p", folder, "-e", "stderr", "-c", folder / "nginx.conf"], dies_by="TERM")

    def _write(self, servers):
        (self.folder / "nginx.conf").write_text(f"""
user root; daemon off; worker_processes 1; pid {self.folder}/nginx.pid; error_log stderr warn;
events {{ worker_connections 512; }}
http {{
  client_body_temp_path {self.folder}/body; proxy_temp_path {self.folder}/proxy;
  fastcgi_temp_path {self.folder}/fastcgi; uwsgi_temp_path {self.folder}/uwsgi; scgi_temp_path {self.folder}/scgi;
  client_max_body_size 8m; client_body_buffer_size 8m; keepalive_requests 1000000;
  log_format record escape=json '{{"at":$msec,"status":$status,"upstream":"$upstream_status","uri":"$request_uri",'
    '"connections":"$connection","took":$request_time}}';
  access_log {self.record} record;
  {servers}
}}
""")

    def configure(self, port, secret, routes):
        """`routes`: (prefix of paths, address of a Service, port)."""
        for key in ("tls.crt", "tls.key", "ca.crt"):
            (self.folder / key).write_bytes(decoded(secret, key))
        upstreams = {(address, to): f"service-{i}" for i, (address, to) in enumerate(sorted({route[1:] for route in routes}))}
        self._write("".join(f"upstream {name} {{ server {address}:{to} max_fails=0; keepalive 16; }}\n  "
                            for (address, to), name in upstreams.items()) + f"""
  server {{
    listen {GATEWAY_ADDRESS}:{port} ssl http2;
    ssl_certificate {self.folder}/tls.crt; ssl_certificate_key {self.folder}/tls.key; ssl_protocols TLSv1.3;
    ssl_verify_client on; ssl_client_certificate {self.folder}/ca.crt;
    {"".join(self.LOCATION % (prefix, upstreams[address, to]) for prefix, address, to in routes)}
    location / {{ return 404; }}
  }}""")
        self.send(signal.SIGHUP)

    def requests(self, prefix, since=0.0):
        """Those for paths with this prefix whose answers were sent after `since` (Unix seconds)."""
        lines = self.record.read_text().splitlines()
        return [request for request in map(json.loads, lines) if request["uri"].startswith(prefix) and request["at"] > since]


class GatewayController(Thread):
    """Keeps a ServiceGateway as the gateway's Secret, VirtualServices and Services are, as Istio does."""

    def __init__(self, kubeconfig, gateway, port):
        self._api = Api(kubeconfig)
        self._gateway, self._port, self._last = gateway, port, None
        super().__init__(0.3)

    def step(self):
        secret = self._api.get(f"{collection('secrets', 'istio-system')}/klm-istio-gateway")
        routes = []
        for service in (self._api.get(VIRTUAL_SERVICES) or {"items": []})["items"]:
            for route in service["spec"]["http"]:
                destination = route["route"][0]["destination"]
                name, namespace = destination["host"].split(".")[:2]
                target = self._api.get(f"{collection('services', namespace)}/{name}")
                if target:
                    routes += [(match["uri"]["prefix"], target["spec"]["clusterIP"], destination["port"]["number"])
                               for match in route["match"]]
        if secret and (secret["data"], sorted(routes)) != self._last:
            self._last = secret["data"], sorted(routes)
            self._gateway.configure(self._port, secret, sorted(routes))


class Recorder(Process):
    """An operator in KCP, by the shipped listener, on the node: its events and resyncs are in `events`. A Service without selector leads
    to it."""

    PORT = 8090

    def __init__(self, cluster):
        self.events = EventLog()
        super().__init__("recorder", [BINARY, "listen", "--address", f"{ADDRESS}:{self.PORT}", "--component", "recorder",
                                      "--resyncs", "--xfcc-trusted-proxies", TRUSTED], on_line=self.events.take)
        self.wait_listening("listener")
        where = {"name": "recorder", "namespace": "kcp-system"}
        cluster.apply(
            {"apiVersion": "v1", "kind": "Service", "metadata": where, "spec": {"ports": [{"name": "http", "port": self.PORT}]}},
            {"apiVersion": "v1", "kind": "Endpoints", "metadata": where, "subsets": [
                {"addresses": [{"ip": ADDRESS}], "ports": [{"name": "http", "port": self.PORT}]}]})

    def has(self, name, since=0.0):
        """Whether an event of an object of this name has come after `since`."""
        return any(arrival >= since and json.loads(line)["watched"]["name"] == name for arrival, line in list(self.events.lines))


class Writer(Thread):
    """Changes Kymas 20 times a second: each is created, changed twice, and one in two is deleted; then it is left alone, so that
    its last change has to be told by itself."""

    RATE = 20
    NAMESPACE = "changes"
    SET = 20  # objects that change in turns

    def __init__(self, kubeconfig):
        self._api = Api(kubeconfig)
        self._path = collection("kymas", self.NAMESPACE, "operator.kyma-project.io", "v1beta2")
        self.changes = {}  # name: when its last change began (monotonic)
        self.count = 0
        self.rate = 0  # changes a second, at the end
        self._began = time.monotonic()
        self._plan = self._writes()
        super().__init__(0)

    def stop(self):
        super().stop()
        self.rate = self.rate or self.count / (time.monotonic() - self._began)

    def _writes(self):
        first = 0
        while True:
            names = [f"change-{first + i}" for i in range(self.SET)]
            for name in names:
                yield name, lambda name=name: self._api.request("POST", self._path, {
                    "apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Kyma", "spec": {"channel": "regular"},
                    "metadata": {"name": name, "labels": {"operator.kyma-project.io/watched-by": "kyma"}}})
            for channel in ("fast", "rapid"):
                for name in names:
                    yield name, lambda name=name, channel=channel: self._api.patch(
                        f"{self._path}/{name}", {"spec": {"channel": channel}})
            for name in names[::2]:
                yield name, lambda name=name: self._api.delete(f"{self._path}/{name}")
            first += self.SET

    def step(self):
        pause(max(0, self._began + self.count / self.RATE - time.monotonic()))
        name, write = next(self._plan)
        began = time.monotonic()
        write()
        self.changes[name] = began
        self.count += 1

    def until_told(self, recorder, timeout=60):
        """Waits until the last change of each object before now has come to the recorder, or a resync after it: what is deleted while
        no container of the webhook runs, no later one has seen. Returns a text with the number of objects, and of those that a resync
        alone has told of."""
        now = time.monotonic()
        expected = {(self.NAMESPACE, name): at for name, at in list(self.changes.items()) if at < now}
        def late():
            self.check()
            return [name for _, name in recorder.events.untold(expected)]
        wait_until(lambda: not late(), timeout,
                   lambda: f"the last change of each of {len(expected)} objects comes, or a resync; not of {late()}", every=0.2)
        told = recorder.events.last_arrivals()
        by_resync = sum(told.get(key, 0) < at for key, at in expected.items())
        return f"{len(expected)} objects have come" + (f", of {by_resync} by a resync" if by_resync else "")
