"""100,000 accepted reviews over 20,000 objects through 32 connections, while the gateway is reloaded and the listener
restarted at random: for every object an event is delivered that was sent after its last accepted change. (The resync of the
start is taken before.)

RW_E2E_ROUNDS and RW_E2E_SEED change the size and the disturbances.
"""

import os
import random
import time

import harness
import load
from harness import EventLog, Gateway, Listener, Pki, Webhook, pause, wait_until

OBJECTS = 20_000
CONNECTIONS = 32
ROUNDS = int(os.environ.get("RW_E2E_ROUNDS", "5"))


class NothingIsLost(harness.TestCase):
    def test_last_changes_are_all_followed_by_an_event(self):
        seed = int(os.environ.get("RW_E2E_SEED") or random.SystemRandom().randrange(1_000_000))
        dice = random.Random(seed)
        self.note(f"RW_E2E_SEED={seed}")
        pki = Pki(self.folder / "pki")
        events = EventLog()
        listener = self.start(Listener(events, "lifecycle-manager"))
        gateway = self.start(Gateway(self.folder / "nginx", *pki.issue("server", "gateway"), pki.ca, listener.port,
                                     record=True))
        webhook = self.start(Webhook(*pki.issue("webhook", "webhook", cn="runtime-1"), pki.ca,
                                     f"localhost:{gateway.port}")).ready()
        # Which the webhook sends once an event is accepted by a receiver that takes resyncs.
        load.Load([load.Plan(["first"], rounds=1)], webhook.port, pki.ca).finish(timeout=20)
        wait_until(lambda: events.resyncs, 10, lambda: f"the resync of the start is taken:\n{webhook.tail()}")
        begun = time.monotonic()
        plans = [load.Plan(names, rounds=ROUNDS) for names in load.names(OBJECTS, CONNECTIONS)]
        running = load.Load(plans, webhook.port, pki.ca)
        reloads = restarts = 0
        while running.running():
            pause(dice.uniform(0.1, 0.8))
            if dice.random() < 0.5:
                gateway.reload()
                reloads += 1
            else:
                listener = self.start(listener.restarted())
                restarts += 1
        result = running.finish(timeout=120)
        ended = time.monotonic()
        self.note(f"{result.accepted} accepted, {result.overflowed} overflowed in {ended - begun:.1f} s, "
                  f"with {reloads} reloads and {restarts} restarts")
        self.assertEqual(result.accepted, ROUNDS * OBJECTS)

        arrived = {}
        def missing():
            arrived.update(events.last_arrivals())
            return [name for name, (sent, _) in result.last_sent.items() if arrived.get(("load", name), 0) < sent]
        wait_until(lambda: not missing(), 30, lambda: f"events of {len(missing())} objects, such as {missing()[:5]}",
                   every=0.5)
        self.note(f"all delivered {max(arrived.values()) - ended:.1f} s after the last answer, "
                  f"by {len(events.lines)} events")

        wait_until(lambda: webhook.metric("rw_dispatch_undelivered_events", state="known") == 0, 30, "nothing waits any more")
        self.assertEqual(webhook.metric("rw_dispatch_events_total", outcome="overflow"), 0)
        self.assertEqual((len(events.resyncs), webhook.metric("rw_event_losses_total")), (1, 0))

        # Arriving after the change is not yet having been sent after it: the gateway knows when a request began.
        delivered = gateway.delivered()
        # nginx reads the clock once in each turn of its loop, in milliseconds, and may be held up between that and a
        # request; an event of the object's change before that would be seconds early.
        stale = [name for name, (_, sent) in result.last_sent.items() if delivered.get(("load", name), 0) < sent - 0.1]
        worst = max((sent - delivered.get(("load", name), 0) for name, (_, sent) in result.last_sent.items()))
        self.note(f"worst lead of a delivery over its change: {1000 * worst:.1f} ms")
        self.assertEqual(stale[:5], [], f"{len(stale)} objects have no event that was sent after their last change")
        self.assertEqual(webhook.terminate(), 0)
        self.assertEqual(listener.terminate(), 0)


if __name__ == "__main__":
    harness.main()
