#!/usr/bin/env python3
"""How late responses are while requests arrive at a constant rate, whatever the responses (open_loop.cpp): reviews with and without
an event of their own, against nginx that answers with a constant at the same rate; and single events in a listener, as behind a
gateway. Prints one line of JSON for each figure: times in ms from when a request was due, CPU of the server's process alone.

    bench/open_loop.py [--rate N] [--seconds N] [--connections N]

RW_PEER_WEBHOOK, RW_PEER_LISTENER: command lines of other implementations, which take the environment of `runtime-watcher webhook` or
`runtime-watcher listen`. They are loaded in the same way, and compared with. Ends with 1 if a request fails.
"""

import argparse
import json
import os
import pathlib
import shlex
import socket
import subprocess
import sys
import tempfile
import urllib.parse

from system import ROOT, say  # (system.py makes the tests' modules known)

from harness import BINARY, Pki, Process, free_port, wait_until  # noqa: E402

GENERATOR = pathlib.Path(BINARY).parent / "bench" / "bench_open_loop"
REVIEW = (ROOT / "bench" / "data" / "label-change.json").read_text()
EVENT = ('{"watched":{"Namespace":"kyma-system","Name":"object-@NUMBER@"},'
         '"watchedGvk":{"group":"","version":"v1","kind":"ConfigMap"}}')
NGINX = """
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  ssl_protocols TLSv1.3;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {folder}/webhook.crt;
    ssl_certificate_key {folder}/webhook.key;
    keepalive_requests 100000000;
    client_body_buffer_size 64k;
    location / {{
      default_type application/json;
      return 200 '{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{{"uid":"x","allowed":true}}}}';
    }}
  }}
}}
"""


class Bench:
    def __init__(self, folder, arguments):
        self.folder, self.arguments = folder, arguments
        self.running = []
        self.pki = Pki(folder)
        self.pki.issue("webhook", "webhook", cn="bench")
        self.pki.issue("server", "gateway")
        before, object_ = REVIEW.replace('"operation":"UPDATE"', '"operation":"CREATE"').split('"object":', 1)
        created = f'{before}"object":' + object_.replace('"name":"default"', '"name":"object-@NUMBER@"', 1)
        for name, text in (("review", REVIEW), ("review_with_event", created), ("event", EVENT)):
            (folder / f"{name}.json").write_text(text)

    def close(self):
        for process in self.running:
            process.kill()

    def start(self, name, command, port, **environment):
        """Starts a server, and waits until it takes connections."""
        process = Process(name, command, env={**os.environ, **environment})
        self.running.append(process)
        def listens():
            if not process.running():
                raise AssertionError(f"{name} ended:\n{process.tail()}")
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0
        wait_until(listens, 30, lambda: f"{name} listens:\n{process.tail()}", every=0.05)
        return process

    def listener(self, command, port, **environment):
        return self.start("listener", command, port, LISTEN_ADDRESS=f"127.0.0.1:{port}", COMPONENT="bench", **environment)

    def webhook(self, command, port):
        upstream = free_port()
        self.listener([BINARY, "listen"], upstream, TLS_CERT=str(self.folder / "gateway.crt"),
                      TLS_KEY=str(self.folder / "gateway.key"), CLIENT_CA=str(self.pki.ca))
        return self.start("webhook", command, port, WEBHOOK_PORT=str(port), METRICS_PORT=str(free_port()), BIND_ADDRESS="127.0.0.1",
                          CA_CERT=str(self.pki.ca), TLS_CERT=str(self.folder / "webhook.crt"), TLS_KEY=str(self.folder / "webhook.key"),
                          KCP_ADDR=f"127.0.0.1:{upstream}", KCP_CONTRACT="v2", SET_CAPACITY="4000000")

    def nginx(self, port):
        (self.folder / "nginx.conf").write_text(NGINX.format(folder=self.folder, port=port))
        return self.start("nginx", ["nginx", "-p", self.folder, "-c", self.folder / "nginx.conf"], port)

    def load(self, process, port, path, body, *options):
        """The times of the responses, and the server's CPU for each."""
        # nginx's master waits for its worker.
        children = pathlib.Path(f"/proc/{process.popen.pid}/task/{process.popen.pid}/children").read_text().split()
        def cpu():
            ticks = 0
            for pid in [process.popen.pid, *children]:
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
            return ticks / os.sysconf("SC_CLK_TCK")
        of = self.arguments
        before = cpu()
        done = subprocess.run(
            [GENERATOR, "--to", f"127.0.0.1:{port}", "--path", path, "--body", self.folder / f"{body}.json", "--rate", str(of.rate),
             "--seconds", str(of.seconds), "--connections", str(of.connections), "--header", "content-type: application/json", *options],
            capture_output=True, text=True, timeout=of.seconds + 120)
        if done.returncode != 0:
            raise AssertionError(f"the generator ended with {done.returncode}: {done.stderr}\n{process.tail()}")
        figures = json.loads(done.stdout)
        if figures["lost"] or figures["failed"]:
            raise AssertionError(f"{process.name}: {figures}\n{process.tail()}")
        return {**figures, "cpu": 1e6 * (cpu() - before) / figures["requests"]}


def compare(name, ours, against, theirs):
    for key, unit in (("p50", "ms"), ("p99", "ms"), ("p999", "ms"), ("cpu", "us of CPU")):
        say(f"{name}_{key}", ours[key], unit, against, peer_value=theirs and theirs[key])


def run(bench):
    def of_webhook(command):
        port = free_port()
        process = bench.webhook(command, port)
        found = {body: bench.load(process, port, "/validate/bench", body, "--tls") for body in ("review", "review_with_event")}
        process.kill()
        return found
    ours = of_webhook([BINARY, "webhook"])
    port = free_port()
    constant = bench.load(bench.nginx(port), port, "/", "review", "--tls")
    for body, figures in ours.items():
        compare(body, figures, "nginx, constant", constant)
    if peer := os.environ.get("RW_PEER_WEBHOOK"):
        for body, figures in of_webhook(shlex.split(peer)).items():
            compare(f"{body}_to_peer", ours[body], "RW_PEER_WEBHOOK", figures)

    sender = urllib.parse.quote((bench.folder / "webhook.crt").read_text(), safe="")
    def of_listener(command):
        port = free_port()
        process = bench.listener(command, port)
        found = bench.load(process, port, "/v2/bench/event", "event", "--header", f"X-Forwarded-Client-Cert: Cert={sender}")
        process.kill()
        return found
    here = of_listener([BINARY, "listen"])
    peer = os.environ.get("RW_PEER_LISTENER")
    compare("event", here, "RW_PEER_LISTENER" if peer else None, of_listener(shlex.split(peer)) if peer else None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=5000, help="requests a second")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", type=int, default=64)
    with tempfile.TemporaryDirectory() as made:
        bench = Bench(pathlib.Path(made), parser.parse_args())
        try:
            run(bench)
        except AssertionError as error:
            sys.exit(f"open_loop.py: {error}")
        finally:
            bench.close()
