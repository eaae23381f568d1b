"""The upstream is dead for 30 s under 200 reviews a second: admission does not feel it, memory stays bounded, and
everything is delivered within 5 s of recovery.

Beside it a second webhook, whose upstream lives, gets the same load: on a machine that is busy with other things both
are slow, and only what the dead upstream adds counts. RW_E2E_DEAD_SECONDS changes how long.
"""

import os
import time

import harness
import load
from harness import EventLog, Gateway, Listener, Pki, Webhook, pause, quantile, wait_until

DEAD_SECONDS = float(os.environ.get("RW_E2E_DEAD_SECONDS", "30"))
BOUND_MS = 5
CALM_SECONDS = 5
RATE = 200
CONNECTIONS = 4
OBJECTS = 4_000


class UpstreamDead(harness.TestCase):
    def dead_upstream(self, die, recover):
        """Load with a calm stretch, then die(), then recover() when the load has ended."""
        seconds = CALM_SECONDS + DEAD_SECONDS
        plans = [load.Plan(names, seconds=seconds, rate=RATE / CONNECTIONS) for names in load.names(OBJECTS, CONNECTIONS)]
        webhook, events = self.webhook, self.events
        running = load.Load(plans, webhook.port, self.pki.ca, processes=1)
        beside = load.Load(plans, self.twin.port, self.pki.ca, processes=1)
        wait_until(lambda: len(events.lines) >= RATE * CALM_SECONDS * 0.8, CALM_SECONDS + 20, "the calm stretch passes")
        calm_rss = webhook.rss()
        died = time.monotonic()
        die()
        peak = calm_rss
        while running.running():
            peak = max(peak, webhook.rss())
            pause(0.2)
        result, healthy = running.finish(timeout=30), beside.finish(timeout=30)
        dead_for = time.monotonic() - died
        recover()
        recovered = time.monotonic()
        def missing():
            arrived = events.last_arrivals()
            return [n for n, (sent, _) in result.last_sent.items() if arrived.get(("load", n), 0) < sent]
        # 3 s at most until the next probe; then the listener, with all at once, asks for some again after a second.
        wait_until(lambda: not missing(), 8, lambda: f"{len(missing())} objects' events after recovery", every=0.1)
        delivered = max(arrival for arrival, _ in events.lines) - recovered

        def latencies(of):  # ms, while the upstream was dead
            return [1000 * took for at, took in of.latencies if at > died + 0.05]
        dead, alive = latencies(result), latencies(healthy)
        p99_dead, p99_alive = quantile(dead, 0.99), quantile(alive, 0.99)
        self.note(f"dead for {dead_for:.0f} s; p99 {p99_dead:.2f} ms (p50 {quantile(dead, 0.5):.2f}, max {max(dead):.1f}), "
                  f"of the webhook beside it {p99_alive:.2f} ms (p50 {quantile(alive, 0.5):.2f}, max {max(alive):.1f}); "
                  f"memory {calm_rss / harness.MIB:.1f} MiB before, {peak / harness.MIB:.1f} MiB at most; "
                  f"{result.accepted} accepted; all delivered {delivered:.2f} s after recovery")
        self.assertEqual(result.overflowed, 0)
        self.assertLess(p99_dead, max(BOUND_MS, 2 * p99_alive))
        self.assertLess(peak - calm_rss, 16 * harness.MIB)
        self.assertEqual(webhook.terminate(), 0)

    def setUp(self):
        super().setUp()
        self.pki = Pki(self.folder / "pki")
        self.events = EventLog()
        self.listener = self.start(Listener(self.events, "lifecycle-manager"))
        self.gateway_options = dict(folder=self.folder / "nginx", upstream_port=self.listener.port, client_ca=self.pki.ca)
        self.certificate, self.key = self.pki.issue("server", "gateway")
        self.gateway = self.start_gateway()
        self.webhook = self.start(Webhook(*self.pki.issue("webhook", "webhook", cn="runtime-1"), self.pki.ca,
                                          f"localhost:{self.gateway.port}")).ready()
        listener = self.start(Listener(EventLog(), "lifecycle-manager", tls=self.pki.issue("server", "twin-listener"),
                                       client_ca=self.pki.ca))
        self.twin = self.start(Webhook(*self.pki.issue("webhook", "twin", cn="runtime-2"), self.pki.ca,
                                       f"localhost:{listener.port}")).ready()

    def start_gateway(self, port=None):
        return self.start(Gateway(certificate=self.certificate, key=self.key, port=port, **self.gateway_options))

    def test_gateway_gone_for_half_a_minute_costs_admission_nothing(self):
        self.dead_upstream(die=self.gateway.kill, recover=lambda: self.start_gateway(self.gateway.port))

    def test_full_set_costs_no_write_and_no_readiness_and_is_counted(self):
        self.gateway.kill()
        webhook = self.start(Webhook(*self.pki.issue("webhook", "small", cn="runtime-3"), self.pki.ca,
                                     f"localhost:{self.gateway.port}",
                                     env={"SET_CAPACITY": "20", "CHANNEL_CAPACITY": "4"})).ready()
        names = [f"object-{i}" for i in range(200)]
        result = load.Load([load.Plan(names, rounds=2)], webhook.port, self.pki.ca, processes=1).finish(timeout=60)
        self.assertEqual(result.accepted, 400)
        self.assertEqual(result.overflowed, 0)  # nobody is told that his event may come late because another's did
        self.assertEqual(webhook.get("/readyz")[0], 200)
        def counted(outcome):
            return webhook.metric("rw_dispatch_events_total", outcome=outcome)
        # The last events settle for a moment.
        wait_until(lambda: counted("overflow") + counted("coalesced") == 380, 10,
                   lambda: f"380 events are lost or merged, not {counted('overflow')} and {counted('coalesced')}")
        self.assertGreater(counted("coalesced"), 0)
        records = webhook.records(reason="no capacity left")
        self.assertTrue(records, webhook.tail())
        self.assertEqual(records[0]["manager"], "lifecycle-manager")
        self.assertEqual(records[0]["namespace"], "load")


if __name__ == "__main__":
    harness.main()
