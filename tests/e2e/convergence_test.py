"""What a settled landscape does: an event costs the runtime nothing, a resync is a full pass, Secrets that are lost in KCP come back as they were, and a
Watcher may name a resource of any group."""

import base64
import re
import urllib.parse
import urllib.request

import harness
from api import collection
from dev import CONFIGURATION, WATCHED, WATCHER, Dev
from harness import wait_until

PATIENCE = 30
SETTLED = 150  # seconds: the last step of a new runtime's trust waits for a minute
RUNTIMES = ("runtime-1", "runtime-2")
GATEWAY_SECRET = collection("secrets", "istio-system") + "/klm-istio-gateway"
ROOT_SECRET = collection("secrets", "istio-system") + "/klm-watcher"


class Convergence(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.dev = self.start(Dev(self.folder / "dev", len(RUNTIMES))).wait_up()
        self.kcp = self.dev.kcp()
        self.until(lambda: self.dev.installed() == len(RUNTIMES), "the watcher is installed everywhere")

    def until(self, condition, what):
        return wait_until(condition, PATIENCE, lambda: f"{what}:\n{self.dev.tail()}", every=0.05)

    def change(self, value, runtime="runtime-1"):
        """Until its event has led to a reconcile of the Kyma, or would have."""
        start = len(self.dev.events)
        self.skr.patch(WATCHED, {"spec": {"channel": value}})
        return self.until(lambda: self.dev.reconciled(runtime, start), f"{value} is told")[0]

    def resync(self, runtime):
        """Sends one as the gateway forwards it; returns what the manager says to it."""
        secret = self.kcp.get(f"{collection('secrets', 'istio-system')}/{runtime}-webhook-tls")
        certificate = urllib.parse.quote(base64.b64decode(secret["data"]["tls.crt"]), safe="")
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.dev.wait_listening('listener')}/v2/lifecycle-manager/events", b"[]",
            {"x-forwarded-client-cert": "Cert=" + certificate, "watch-resync": "dropped"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.headers["watch-resync"]

    def passes(self):
        return self.dev.metric("controller_runtime_reconcile_total", controller="watcher-installer")

    def test_event_of_a_settled_runtime_causes_no_reconcile_there(self):
        self.skr = self.dev.skr("runtime-1")
        def settled():
            before = self.dev.metric("rw_watcher_installer_skipped_events_total")
            self.change(f"at-{before}-{self.passes()}")
            return self.dev.metric("rw_watcher_installer_skipped_events_total") > before
        wait_until(settled, SETTLED, lambda: f"an event is skipped:\n{self.dev.tail()}", every=2)
        before, passes = self.dev.metric("rw_watcher_installer_skipped_events_total"), self.passes()
        for i in range(10):
            self.change(f"channel-{i}")
        self.assertEqual(self.dev.metric("rw_watcher_installer_skipped_events_total"), before + 10)
        self.assertEqual(self.passes(), passes)
        self.assertEqual(self.resync("runtime-1"), "taken")
        # The listener hands over one a minute of each runtime, and had one when the runtime's webhook started.
        wait_until(lambda: self.passes() > passes, 75, lambda: f"a resync is a full pass:\n{self.dev.tail()}")
        self.assertEqual(self.dev.metric("rw_watcher_installer_skipped_events_total"), before + 10)

    @staticmethod
    def authorities(secret):
        text = base64.b64decode(secret["data"]["ca.crt"]).decode()
        return set(re.findall("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", text, re.DOTALL))

    def test_gateway_secret_comes_back_whole_when_the_root_is_gone_too(self):
        before = self.kcp.get(GATEWAY_SECRET)
        self.kcp.delete(ROOT_SECRET)
        self.kcp.delete(GATEWAY_SECRET)
        after = self.until(lambda: self.kcp.get(GATEWAY_SECRET), "it is back")
        self.assertLessEqual(self.authorities(before), self.authorities(after), "nobody loses trust")
        self.assertEqual(after["data"]["tls.crt"], before["data"]["tls.crt"], "what runtimes trust is served on")
        self.skr = self.dev.skr("runtime-2")
        self.change("told", "runtime-2")

    def test_watcher_of_a_resource_of_any_group_hears_of_it_by_reviews(self):
        self.skr = self.dev.skr("runtime-1")
        self.kcp.patch(WATCHER, {"spec": {"resourceToWatch": {"group": "*", "version": "*", "resource": "kymas"}}})
        def has_rule():
            hooks = self.skr.get(CONFIGURATION).get("webhooks", [])
            return any(rule["apiGroups"] == ["*"] and rule["resources"] == ["kymas"] for hook in hooks for rule in hook.get("rules", []))
        self.until(has_rule, "the webhook is called for all groups")
        self.change("any-group")
        conditions = self.kcp.get(WATCHER)["status"]["conditions"]
        self.assertTrue(any("review" in condition.get("message", "") for condition in conditions), conditions)


if __name__ == "__main__":
    harness.main()
