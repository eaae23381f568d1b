"""SIGTERM or SIGHUP under load: intake stops, everything accepted is delivered, and the process ends with 0 in time; a
second signal ends it at once."""

import signal
import time

import harness
import load
from harness import EventLog, Gateway, Listener, Pki, Webhook, can_connect, free_port, pause, wait_until

DRAIN_SECONDS = 10


class Shutdown(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.pki = Pki(self.folder / "pki")
        self.certificate, self.key = self.pki.issue("webhook", "webhook", cn="runtime-1")

    def webhook(self, kcp):
        return self.start(Webhook(self.certificate, self.key, self.pki.ca, kcp,
                                  options=["--drain-timeout", f"{DRAIN_SECONDS}s"])).ready()

    def stop_under_load(self, kcp, listener, events, number=signal.SIGTERM):
        webhook = self.webhook(kcp)
        plans = [load.Plan(names, seconds=60, stops=True) for names in load.names(4_000, 16)]
        running = load.Load(plans, webhook.port, self.pki.ca)
        wait_until(lambda: len(events.lines) > 500, 20, "load is under way")
        asked = time.monotonic()
        webhook.send(number)
        wait_until(lambda: not can_connect(webhook.port), 2, "new connections are refused")
        refused = time.monotonic() - asked
        code = webhook.wait(DRAIN_SECONDS + 5)
        ended = time.monotonic() - asked
        result = running.finish(timeout=20)
        changes = {("load", name): sent for name, (sent, _) in result.last_sent.items()}
        def missing():
            return events.untold(changes)
        def left():
            late = sorted(changes[key] - asked for key in missing())
            resyncs = [f"{reason} {arrival - asked:+.3f} s" for arrival, reason in events.resyncs]
            return (f"{len(late)} of {len(changes)} objects are told by neither events nor a resync; reviews of them were sent from "
                    f"{late[0]:+.3f} to {late[-1]:+.3f} s after the signal, resyncs came at {resyncs}, the last event at "
                    f"{events.lines[-1][0] - asked:+.3f} s, the end at {ended:+.3f} s\n{webhook.tail()}") if late else "none is left"
        # A second resync within a minute is handed over at the minute's end, or at the listener's.
        self.assertEqual(listener.terminate(), 0, listener.tail())
        wait_until(lambda: not missing(), 5, left)
        self.note(f"{result.accepted} accepted and delivered; intake closed after {1000 * refused:.0f} ms, ended with "
                  f"{code} after {1000 * ended:.0f} ms")
        self.assertEqual(code, 0, webhook.tail())
        self.assertLess(ended, DRAIN_SECONDS)

    def test_webhook_delivers_what_it_accepted_through_a_gateway(self):
        events = EventLog()
        listener = self.start(Listener(events, "lifecycle-manager"))
        gateway = self.start(Gateway(self.folder / "nginx", *self.pki.issue("server", "gateway"), self.pki.ca,
                                     listener.port))
        self.stop_under_load(f"localhost:{gateway.port}", listener, events)

    def test_webhook_delivers_what_it_accepted_to_a_terminating_listener(self):
        events = EventLog()
        listener = self.start(Listener(events, "lifecycle-manager", tls=self.pki.issue("server", "listener"),
                                       client_ca=self.pki.ca))
        self.stop_under_load(f"localhost:{listener.port}", listener, events)

    def test_hangup_delivers_what_was_accepted(self):
        events = EventLog()
        listener = self.start(Listener(events, "lifecycle-manager", tls=self.pki.issue("server", "listener"),
                                       client_ca=self.pki.ca))
        self.stop_under_load(f"localhost:{listener.port}", listener, events, signal.SIGHUP)

    def test_ignored_hangup_stays_ignored(self):
        usual = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does, for the child
        try:
            webhook = self.webhook(f"localhost:{free_port()}")
        finally:
            signal.signal(signal.SIGHUP, usual)
        webhook.send(signal.SIGHUP)
        pause(0.5)
        self.assertTrue(webhook.running() and can_connect(webhook.port), webhook.tail())

    def test_reviews_are_still_taken_until_api_servers_know(self):
        events = EventLog()
        listener = self.start(Listener(events, "lifecycle-manager", tls=self.pki.issue("server", "listener"),
                                       client_ca=self.pki.ca))
        unset = {"SHUTDOWN_DELAY": ""}  # the default, as in a Deployment of the existing image
        webhook = self.start(Webhook(self.certificate, self.key, self.pki.ca, f"localhost:{listener.port}",
                                     env=unset)).ready()
        asked = time.monotonic()
        webhook.send(signal.SIGTERM)
        wait_until(lambda: webhook.get("/readyz")[0] == 503, 1, "it is not ready any more")
        result = load.Load([load.Plan(["late-0", "late-1"], rounds=1)], webhook.port, self.pki.ca).finish(timeout=20)
        self.assertEqual(result.accepted, 2)
        pause(max(0, asked + 4 - time.monotonic()))
        self.assertTrue(can_connect(webhook.port))
        self.assertEqual(webhook.wait(10), 0, webhook.tail())
        took = time.monotonic() - asked
        self.assertGreater(took, 4.9)
        self.assertLess(took, 8)
        self.assertEqual({e["watched"]["name"] for e in events.events()}, {"late-0", "late-1"})

    def pending_towards_nobody(self):
        """A webhook that holds events for an upstream that is not there."""
        webhook = self.webhook(f"localhost:{free_port()}")
        plan = load.Plan(["object-0", "object-1"], rounds=1)
        load.Load([plan], webhook.port, self.pki.ca).finish(timeout=20)
        return webhook

    def test_second_signal_ends_the_process_at_once(self):
        webhook = self.pending_towards_nobody()
        webhook.send(signal.SIGTERM)
        wait_until(lambda: not can_connect(webhook.port), 2, "new connections are refused")
        pause(0.2)
        self.assertTrue(webhook.running(), "it waits for its events to be delivered")
        asked = time.monotonic()
        webhook.send(signal.SIGTERM)
        webhook.wait(5)
        ended = time.monotonic() - asked
        self.note(f"ended {1000 * ended:.0f} ms after the second signal")
        self.assertLess(ended, 0.5)

    def test_drain_without_an_upstream_ends_at_its_timeout_and_says_what_is_lost(self):
        webhook = self.pending_towards_nobody()
        asked = time.monotonic()
        webhook.send(signal.SIGTERM)
        code = webhook.wait(DRAIN_SECONDS + 5)
        ended = time.monotonic() - asked
        self.assertEqual((code, [r["undelivered"] for r in webhook.records(msg="stopped")]), (1, [2]), webhook.tail())
        self.note(f"ended after {ended:.1f} s of --drain-timeout {DRAIN_SECONDS}s")
        self.assertLess(ended, DRAIN_SECONDS + 1)


if __name__ == "__main__":
    harness.main()
