"""More Watchers than fit on a runtime: those in force stay, the one too many is refused by itself, and comes in when there is
room."""

import json

import harness
import landscape
from harness import wait_until
from landscape import PATIENCE

MOST = 200
KCP = "kcp-system"
WATCHERS = "watchers.operator.kyma-project.io"


def watcher(number):
    return {"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Watcher", "metadata": {"name": f"w{number}", "namespace": KCP},
            "spec": {"resourceToWatch": {"group": "operator.kyma-project.io", "version": "*", "resource": "kymas"}, "field": "spec",
                     "manager": f"m{number}", "serviceInfo": {"name": "events", "port": 8082, "namespace": KCP},
                     "gateway": {"selector": {"matchLabels": {"operator.kyma-project.io/watcher-gateway": "default"}}}}}


class Limit(landscape.Embedded, harness.TestCase):
    def states(self):
        found = {}
        for each in self.kcp.get(WATCHERS, None, KCP)["items"]:
            found.setdefault(each.get("status", {}).get("state", ""), set()).add(each["metadata"]["name"])
        return found

    def until_states(self, **wanted):
        wait_until(lambda: self.states() == wanted, PATIENCE, lambda: f"{wanted}: {self.states()}\n{self.manager.tail()}", every=0.5)

    def test_watcher_over_the_limit_is_rejected_alone(self):
        self.kcp.kubectl("apply", "-f", "-", stdin="\n".join(json.dumps(watcher(i)) for i in range(MOST)))
        names = {f"w{i}" for i in range(MOST)}
        self.until_states(Ready=names)
        self.add_kyma()
        self.issue()
        self.installed(names)
        self.kcp.apply(watcher(MOST))
        self.until_states(Ready=names, Error={f"w{MOST}"})
        condition = self.kcp.get(WATCHERS, f"w{MOST}", KCP)["status"]["conditions"][0]
        self.assertEqual(condition["reason"], "LimitExceeded")
        wait_until(lambda: "WatcherLimitExceeded" in self.kcp.events_of(f"w{MOST}", KCP), PATIENCE, "an event tells of it", every=0.1)
        self.assertIsNone(self.kcp.get("virtualservices.networking.istio.io", f"w{MOST}", KCP))
        # The others are repaired, and the next leader decides alike.
        self.skr.kubectl("delete", "validatingwebhookconfigurations", "skr-webhook")
        self.installed(names)
        self.assertEqual(self.manager.terminate(), 0, self.manager.tail())
        self.manager = self.start_manager()
        self.skr.kubectl("delete", "validatingwebhookconfigurations", "skr-webhook")
        self.installed(names)
        self.kcp.kubectl("delete", WATCHERS, "w7", "-n", KCP)
        names = names - {"w7"} | {f"w{MOST}"}
        self.until_states(Ready=names)
        self.installed(names)


if __name__ == "__main__":
    harness.main()
