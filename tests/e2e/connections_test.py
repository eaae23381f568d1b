"""200 parallel writers make 8,000 writes through a real API server: fewer than 10 connections reach the webhook where
the API server offers HTTP/2 (1.30 and later, to webhooks on a loopback address), and all writes succeed where it speaks
HTTP/1.1 only and opens a connection for nearly every one beyond the 25 that it keeps."""

import multiprocessing
import threading
import time

import control_plane
import harness
from api import Api
from control_plane import ControlPlane, http2_server, rule
from harness import EventLog, Listener, Pki, Webhook

WRITERS = 200
WRITES = 8_000
PROCESSES = 4
LABELS = {"operator.kyma-project.io/watched-by": "kyma"}
PATH = "/api/v1/namespaces/default/configmaps"


def write(kubeconfig, writer, count, failures):
    client = Api(kubeconfig)
    try:
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"writer-{writer}", "labels": LABELS},
                      "data": {"write": "0"}}
        client.request("POST", PATH, config_map)
        for i in range(1, count):
            config_map["data"]["write"] = str(i)
            client.request("PUT", f"{PATH}/writer-{writer}", config_map)
    except Exception as error:  # whatever it is, the test must hear of it
        failures.append(repr(error))
    finally:
        client.close()


def write_all(kubeconfig, writers, count, outbox):
    failures = []
    threads = [threading.Thread(target=write, args=(kubeconfig, writer, count, failures)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outbox.put(failures)


class Connections(harness.TestCase):
    def write_through(self, server):
        """Returns the number of connections that the webhook saw."""
        pki = Pki(self.folder / "pki")
        events = EventLog()
        tls = pki.issue("server", "listener")
        listener = self.start(Listener(events, "lifecycle-manager", tls=tls, client_ca=pki.ca))
        webhook = self.start(Webhook(*pki.issue("webhook", "webhook", cn="runtime-1"), pki.ca,
                                     f"localhost:{listener.port}")).ready()
        plane = ControlPlane(self, server)
        plane.register_webhook("skr-webhook", webhook.port, pki.ca, "lifecycle-manager", [rule("", "v1", "configmaps")],
                               LABELS)
        client = plane.client()
        self.addCleanup(client.close)
        plane.wait_registered(lambda n: client.request("POST", PATH, {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"probe-{n}", "labels": LABELS}}),
            lambda: events.lines)
        reviews_before = webhook.metric("watcher_admission_request_total")

        context = multiprocessing.get_context("spawn")
        outbox = context.Queue()
        begun = time.monotonic()
        shares = [range(WRITERS)[i::PROCESSES] for i in range(PROCESSES)]
        processes = [context.Process(target=write_all, args=(plane.folder / "kubeconfig", share, WRITES // WRITERS, outbox), daemon=True)
                     for share in shares]
        for process in processes:
            process.start()
        failures = sum((outbox.get(timeout=180) for _ in processes), [])
        took = time.monotonic() - begun
        self.assertEqual(failures[:3], [], f"{len(failures)} writers failed")
        reviews = webhook.metric("watcher_admission_request_total") - reviews_before
        connections = webhook.metric("rw_http_connections_total", server="webhook")
        self.note(f"{WRITES} writes by {WRITERS} writers in {took:.1f} s: {reviews:.0f} reviews over "
                  f"{connections:.0f} connections")
        self.assertGreaterEqual(reviews, WRITES)
        self.assertEqual(webhook.terminate(), 0)
        return connections

    def test_parallel_writers_share_few_connections_over_http2(self):
        server = http2_server()
        if not server:
            self.skipTest("this kube-apiserver speaks only HTTP/1.1 to webhooks; unset KUBEBUILDER_ASSETS")
        self.assertLess(self.write_through(server), 10)

    def test_parallel_writers_all_succeed_over_http1(self):
        if http2_server() == "kube-apiserver":
            self.skipTest("this kube-apiserver speaks HTTP/2 to webhooks")
        self.write_through("kube-apiserver")


if __name__ == "__main__":
    control_plane.assets()
    harness.main()
