#!/usr/bin/env python3
"""The whole system in one process, `runtime-watcher-dev dev`, with 100 runtimes: how soon it is up, how soon a change is
acted upon, what that saves against polling, and what four unhealthy runtimes cost the others. Prints one line of JSON for
each figure: name, value, unit, and what it is held against. Ends with 1 if a limit is missed.

    bench/system.py [--runtimes N] [--changes N] [--seconds N] [--rounds N] [--only start,latency,polling,unhealthy]

Times are those of a client on the same machine, which takes its share of it. CPU is that of the process, all clusters,
the manager and the webhooks of all runtimes included.
"""

import argparse
import base64
import contextlib
import datetime
import json
import pathlib
import re
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from figures import missed, say  # noqa: E402  (the other scripts take them from here)

from api import collection, kymas  # noqa: E402
from dev import WATCHED, WATCHER, Dev  # noqa: E402
from harness import free_port, pause, quantile, wait_until  # noqa: E402

@contextlib.contextmanager
def dev(folder, runtimes, *options):
    folder.mkdir(parents=True)
    one = Dev(folder / "dev", runtimes, *options)
    try:
        yield one
        code = one.terminate(30)
        if code != 0:
            raise AssertionError(f"dev ended with {code}:\n{one.tail()}")
    finally:
        one.kill()
        shutil.rmtree(folder)


def wait_installed(one, count, timeout=120):
    one.wait_listening("admin")
    wait_until(lambda: one.installed() >= count, timeout,
               lambda: f"{count} runtimes are installed, {one.installed()} are:\n{one.tail()}", every=0.05)


def reconciles(one):
    return one.metric("controller_runtime_reconcile_total", controller="watcher-installer")


def wait_quiet(one, timeout=60):
    """Until nothing has been reconciled for two seconds."""
    last, since = reconciles(one), time.monotonic()
    def quiet():
        nonlocal last, since
        now = reconciles(one)
        if now != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since > 2
    wait_until(quiet, timeout, "the manager has nothing to do", every=0.2)


# --- start, and from a change to the reconcile ---------------------------------------------------------


def measure_start(one, runtimes):
    wait_installed(one, runtimes)
    say("start_to_all_installed", time.monotonic() - one.started, "s", "exec of the process", limit=20,
        runtimes=runtimes, cpu_seconds=round(one.cpu_seconds(), 2))
    say("resident_memory", one.rss() / 2**20, "MiB", runtimes=runtimes)


def when(event):
    """An event's time as seconds since 1970."""
    return datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()


def change(one, api, runtime, value):
    """Changes the watched object; returns the time until its Kyma's reconcile, as client and as process saw it."""
    start = len(one.events)
    sent = time.time()
    api.patch(WATCHED, {"spec": {"channel": value}})
    event = wait_until(lambda: one.reconciled(runtime, start), 10, f"the change on {runtime} is acted upon", every=0.0005)[0]
    return (when(event) - sent) * 1000, event["reconciledAfterMs"]


def measure_latency(one, runtimes, changes):
    names = [f"runtime-{i % runtimes + 1}" for i in range(changes)]
    apis = {name: one.skr(name) for name in set(names)}
    for name, api in apis.items():  # connections of this client are not what is measured
        api.get(WATCHED)
    began = one.cpu_seconds()
    times = []
    for i, name in enumerate(names):
        times.append(change(one, apis[name], name, f"bench-{i}"))
        pause(0.02)
    cpu = (one.cpu_seconds() - began) / changes
    first = [client for client, _ in times[:runtimes]]
    again = [client for client, _ in times[runtimes:]] or first
    client, inside = zip(*times)
    say("change_to_reconcile_median", statistics.median(client), "ms", "the client's request", limit=20, changes=changes,
        p99=round(quantile(client, 0.99), 3))
    say("change_to_reconcile_median_first", statistics.median(first), "ms", "the first change of a runtime, with all its handshakes")
    say("change_to_reconcile_median_again", statistics.median(again), "ms", "further changes")
    say("webhook_called_to_reconcile_median", statistics.median(inside), "ms", "the call of the runtime's API server",
        p99=round(quantile(inside, 0.99), 3))
    say("cpu_per_change", cpu * 1000, "ms", "all parties: API servers, webhook, gateway, manager, reconcile")


# --- reconciles, told and polled -----------------------------------------------------------------------


def measure_told(one, runtimes, seconds):
    """One change a second, on runtimes in turn."""
    wait_quiet(one)
    apis = [one.skr(f"runtime-{i % runtimes + 1}") for i in range(min(seconds, runtimes))]
    before, cpu, began = reconciles(one), one.cpu_seconds(), time.monotonic()
    for i in range(seconds):
        apis[i % len(apis)].patch(WATCHED, {"spec": {"channel": f"told-{i}"}})
        pause(max(0, began + i + 1 - time.monotonic()))
    took = time.monotonic() - began
    # Beyond what the events cause there is one look at each runtime in an hour.
    hourly = (reconciles(one) - before) / took * 3600 + runtimes
    return hourly, (one.cpu_seconds() - cpu) / took


def measure_polled(folder, runtimes, seconds):
    """Nothing changes; each runtime is looked at every 5 s."""
    with dev(folder, runtimes, "--success-interval", "5s") as one:
        wait_installed(one, runtimes)
        pause(7)  # until all are in the pace
        before, cpu, began = reconciles(one), one.cpu_seconds(), time.monotonic()
        pause(seconds)
        took = time.monotonic() - began
        return (reconciles(one) - before) / took * 3600, (one.cpu_seconds() - cpu) / took


# --- four unhealthy runtimes --------------------------------------------------------------------------------


class Unhealthy:
    """Kubeconfigs of four API servers that are of no use: one hangs, one refuses, one has an expired certificate, and
    one is garbage."""

    def __init__(self, folder):
        self._servers = []
        folder.mkdir()
        self._openssl = lambda *a: subprocess.run(["openssl", *map(str, a)], check=True, capture_output=True, timeout=60)
        self._authority(folder)
        hanging, refusing, expired = self._listen(), free_port(), self._listen()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "expired.crt", folder / "expired.key")
        threading.Thread(target=self._accept, args=(hanging, None), daemon=True).start()
        threading.Thread(target=self._accept, args=(expired, context), daemon=True).start()
        authority = (folder / "ca.crt").read_bytes()
        def config(port):
            return json.dumps({
                "apiVersion": "v1", "kind": "Config", "current-context": "c",
                "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{port}",
                                                       "certificate-authority-data": base64.b64encode(authority).decode()}}],
                "users": [{"name": "c", "user": {"token": "t"}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]})
        self.kubeconfigs = [config(hanging.getsockname()[1]), config(refusing), config(expired.getsockname()[1]), "garbage: ["]

    def _authority(self, folder):
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                      "-subj", "/CN=unhealthy", "-keyout", folder / "ca.key", "-out", folder / "ca.crt")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=unhealthy",
                      "-keyout", folder / "expired.key", "-out", folder / "expired.csr")
        (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
        self._openssl("x509", "-req", "-in", folder / "expired.csr", "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key",
                      "-CAcreateserial", "-days", "-1", "-extfile", folder / "names", "-out", folder / "expired.crt")

    def _listen(self):
        server = socket.create_server(("127.0.0.1", 0))
        self._servers.append(server)
        return server

    @staticmethod
    def _accept(server, context):
        kept = []  # a connection that hangs stays open
        while True:
            try:
                connection, _ = server.accept()
                if context is None:
                    kept.append(connection)
                else:
                    with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as stream:
                        stream.recv(1)
            except OSError:
                return


def waited_for_cpu(pid):
    """Seconds that the first thread of a process stood in a run queue (proc(5), /proc/PID/schedstat)."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def measure_installation(folder, runtimes, healthy, unhealthy):
    """Seconds from the first Kyma until `healthy` runtimes are installed, the unhealthy ones coming first; the same without
    the time that the process stood in a run queue, because others used the machine; and its CPU."""
    with dev(folder, runtimes, "--bare") as one:
        one.wait_up()
        kcp = one.kcp()
        kcp.apply(WATCHER, one.manifest("watcher"))
        wait_until(lambda: (kcp.get(WATCHER).get("status") or {}).get("state") == "Ready", 30, "the Watcher is Ready")
        objects = []
        for i in range(runtimes):
            name = f"runtime-{i + 1}"
            access = one.manifest(f"access-{name}")
            if i < len(unhealthy):
                access = re.sub(r"config: .*", f"config: {base64.b64encode(unhealthy[i].encode()).decode()}", access)
            objects.append((f"{collection('secrets', 'kcp-system')}/kubeconfig-{name}", access))
            objects.append((f"{kymas('kcp-system')}/{name}", one.manifest(f"kyma-{name}")))
        cpu, waited, began = one.cpu_seconds(), waited_for_cpu(one.popen.pid), time.monotonic()
        for path, manifest in objects:
            kcp.apply(path, manifest)
        wait_installed(one, healthy)
        took = time.monotonic() - began
        return took, took - (waited_for_cpu(one.popen.pid) - waited), one.cpu_seconds() - cpu


def measure_unhealthy(folder, runtimes, rounds):
    unhealthy = Unhealthy(folder / "unhealthy").kubeconfigs
    others = runtimes - len(unhealthy)
    times = {"healthy": [], "unhealthy": []}
    for i in range(rounds):
        for kind, configs in (("healthy", []), ("unhealthy", unhealthy)):
            times[kind].append(measure_installation(folder / f"{kind}-{i}", runtimes, others, configs))
    medians = {kind: [statistics.median(values) for values in zip(*each)] for kind, each in times.items()}
    for kind, who in (("healthy", f"{others} of {runtimes} healthy runtimes"), ("unhealthy", f"{others} healthy ones, 4 unhealthy ones first")):
        took, undisturbed, cpu = medians[kind]
        say(f"installed_among_{kind}", took, "s", who, undisturbed=round(undisturbed, 2), cpu_seconds=round(cpu, 2),
            each=[round(t, 2) for t, _, _ in times[kind]])
    say("installed_among_unhealthy_undisturbed", medians["unhealthy"][1], "s", "the healthy alone", peer_value=medians["healthy"][1],
        ratio_limit=1.1, rounds=rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtimes", type=int, default=100)
    parser.add_argument("--changes", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=30, help="of each measurement that is extrapolated to an hour")
    parser.add_argument("--rounds", type=int, default=3, help="with and without unhealthy runtimes, in turns")
    parser.add_argument("--only", default="start,latency,polling,unhealthy")
    options = parser.parse_args()
    only = options.only.split(",")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="runtime-watcher-bench-"))
    try:
        with dev(folder / "one", options.runtimes) as one:
            if "start" in only:
                measure_start(one, options.runtimes)
            else:
                wait_installed(one, options.runtimes)
            if "latency" in only:
                measure_latency(one, options.runtimes, options.changes)
            if "polling" in only:
                told, told_cpu = measure_told(one, options.runtimes, options.seconds)
        if "polling" in only:
            polled, polled_cpu = measure_polled(folder / "polled", options.runtimes, options.seconds)
            basis = f"{options.seconds} s, extrapolated"
            say("reconciles_per_hour_told", told, "1/h", "polling every 5 s; 1 change/s, success interval 1 h", peer_value=polled, basis=basis)
            say("cpu_told", 100 * told_cpu, "% of a core", "polling every 5 s", peer_value=100 * polled_cpu)
        if "unhealthy" in only:
            measure_unhealthy(folder, options.runtimes, options.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if missed:
        print("bench/system.py: limits missed: " + ", ".join(missed), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
