"""Watchers as people write them, through the manager: what is wrong with one is told so that its author can mend it, makes
nothing, and harms no other; several of them, selectors of every kind, and Gateways that come later.

On the embedded server the definition lets everything pass; on the real one it is the true one, and what its schema refuses
is taken out of the account.
"""

import json

import harness
import landscape
from harness import ROOT, Process, wait_until
from kubectl import KUBECTL
from landscape import PATIENCE

GATEWAY = "operator.kyma-project.io/watcher-gateway"
ABSENT = object()

# Where something is wrong, what stands there, and how the sentence about it begins.
WRONG = [
    ("resourceToWatch.group", "Kyma!", 'spec.resourceToWatch.group is "Kyma!", but must be an API group'),
    ("resourceToWatch.group", ABSENT, "spec.resourceToWatch.group is missing: it must be an API group"),
    ("resourceToWatch.version", "", 'spec.resourceToWatch.version is "", but must be an API version such as v1'),
    ("resourceToWatch.version", "V1", 'spec.resourceToWatch.version is "V1"'),
    ("resourceToWatch.resource", "", 'spec.resourceToWatch.resource is ""'),
    ("resourceToWatch.resource", "Kymas", 'spec.resourceToWatch.resource is "Kymas", but must be the plural name'),
    ("resourceToWatch.resource", "kymas/status", 'spec.resourceToWatch.resource names the subresource status, so spec.field must be status'),
    ("resourceToWatch.resource", "*", 'spec.resourceToWatch.resource is "*", which needs spec.labelsToWatch'),
    ("resourceToWatch.resource", "*/*", 'spec.resourceToWatch.resource is "*/*"'),
    ("resourceToWatch", ABSENT, "spec.resourceToWatch.group is missing"),
    ("labelsToWatch", {"-": "b"}, 'spec.labelsToWatch["-"] is no label'),
    ("labelsToWatch", {"a": "b c"}, 'spec.labelsToWatch["a"] is "b c", but must be at most 63 letters'),
    ("labelsToWatch", ["a"], 'spec.labelsToWatch is ["a"], but must be labels'),
    ("field", "metadata", 'spec.field is "metadata", but must be spec or status'),
    ("field", ABSENT, "spec.field is missing: it must be spec or status"),
    ("manager", "a/b", 'spec.manager is "a/b", but must be at most 63 letters'),
    ("manager", "..", 'spec.manager is ".."'),
    ("manager", "x" * 64, 'spec.manager is "xxx'),
    ("manager", "", "spec.manager is missing, and so is the label operator.kyma-project.io/managed-by"),
    ("manager", ABSENT, "spec.manager is missing"),
    ("serviceInfo.name", "", 'spec.serviceInfo.name is "", but must be the name of a Service'),
    ("serviceInfo.name", "a.b", 'spec.serviceInfo.name is "a.b"'),
    ("serviceInfo.namespace", "", 'spec.serviceInfo.namespace is "", but must be the name of a namespace'),
    ("serviceInfo.namespace", "Kcp", 'spec.serviceInfo.namespace is "Kcp"'),
    ("serviceInfo.port", 0, "spec.serviceInfo.port is 0, but must be a port between 1 and 65535"),
    ("serviceInfo.port", 65536, "spec.serviceInfo.port is 65536"),
    ("serviceInfo.port", -1, "spec.serviceInfo.port is -1"),
    ("serviceInfo.port", "8082", 'spec.serviceInfo.port is "8082"'),
    ("serviceInfo", ABSENT, "spec.serviceInfo.name is missing"),
    ("gateway", ABSENT, "spec.gateway.selector is missing: it must be a label selector"),
    ("gateway.selector", [], "spec.gateway.selector is [], but must be a label selector"),
    ("gateway.selector", {"matchLabels": {"gw": "-"}}, 'spec.gateway.selector.matchLabels["gw"] can\'t be used'),
    ("gateway.selector", {"matchExpressions": [{"key": "a", "operator": "Like"}]},
     'spec.gateway.selector.matchExpressions[0].operator is "Like", but must be In, NotIn, Exists or DoesNotExist'),
    ("gateway.selector", {"matchExpressions": [{"key": "a", "operator": "In"}]},
     "spec.gateway.selector.matchExpressions[0] can't be used"),
    ("gateway.selector", {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
     "spec.gateway.selector.matchExpressions[0] can't be used"),
    ("gateway.selector", {"matchLabels": {GATEWAY: "nowhere"}}, "spec.gateway.selector selects no Gateway in the namespace kcp-system"),
    ("gateway.selector", {"matchLabels": {GATEWAY: "bare"}}, "the Gateway kcp-system/bare has no hosts in spec.servers"),
]


HEARTBEATS = "runtime-watcher-heartbeats"  # of the manager, without a Watcher


def watcher(name, **spec):
    return {"apiVersion": "operator.kyma-project.io/v1beta2", "kind": "Watcher",
            "metadata": {"name": name, "namespace": "kcp-system"},
            "spec": {"resourceToWatch": {"group": "operator.kyma-project.io", "version": "*", "resource": "kymas"},
                     "field": "spec", "manager": "lifecycle-manager",
                     "serviceInfo": {"name": "runtime-watcher-manager-events", "port": 8082, "namespace": "kcp-system"},
                     "gateway": {"selector": {"matchLabels": {GATEWAY: "default"}}}, **spec}}


def with_value(made, path, value):
    at, last = made["spec"], path.split(".")[-1]
    for name in path.split(".")[:-1]:
        at = at[name]
    if value is ABSENT:
        del at[last]
    else:
        at[last] = value
    return made


class Arrivals(Process):
    """When each object of a kind was first told of, by name."""

    def __init__(self, cluster, kind):
        self.at = {}
        super().__init__(f"watch of {kind}", [KUBECTL, "--kubeconfig", cluster.kubeconfig, "get", kind, "-n", "kcp-system",
                                              "--watch", "-o", "name"],
                         on_line=lambda at, line: self.at.setdefault(line.decode().strip().rpartition("/")[2], at))


class Scenarios:
    """The tests."""

    def watchers(self):
        return {one["metadata"]["name"]: one for one in self.kcp.get("watchers", ns="kcp-system")["items"]}

    def services(self):
        """The Watchers' VirtualServices by name."""
        found = self.kcp.get("virtualservices.networking.istio.io", ns="kcp-system")["items"]
        return {one["metadata"]["name"]: one for one in found if one["metadata"]["name"] != HEARTBEATS}

    def until_ready(self, *names):
        for name in names:
            self.kcp.until("watchers", name, "kcp-system", lambda w: w.get("status", {}).get("state") == "Ready", "is Ready")

    def condition(self, of):
        return next((c for c in of.get("status", {}).get("conditions", []) if c["type"] == "VirtualService"), {})

    def test_invalid_watchers_are_reported_and_make_nothing(self):
        self.make_gateway_without_hosts()
        made = [with_value(watcher(f"wrong-{i}"), path, value) for i, (path, value, _) in enumerate(WRONG)]
        for one in made:
            one["metadata"]["finalizers"] = ["example.com/kept"]  # which is not ours, and must stay
        done = self.kcp.attempt("create", "--validate=false", "-f", "-",
                                stdin={"apiVersion": "v1", "kind": "List", "items": made})
        refused = {f"wrong-{i}" for i in range(len(WRONG))} - set(self.watchers())
        self.check_refused(refused, done)

        told = lambda w: w.get("status", {}).get("state") == "Error"
        wait_until(lambda: all(map(told, self.watchers().values())), PATIENCE,
                   lambda: f"all are in Error, not {[n for n, w in self.watchers().items() if not told(w)]}", every=0.1)
        found = self.watchers()
        for i, (path, _, says) in enumerate(WRONG):
            name = f"wrong-{i}"
            if name in refused:
                continue
            with self.subTest(path, says=says):
                condition, status = self.condition(found[name]), found[name]["status"]
                self.assertEqual(condition["status"], "False")
                self.assertIn(condition["reason"], ("Invalid", "GatewayNotFound", "GatewayWithoutHosts"))
                self.assertEqual(condition["message"][:len(says)], says)
                self.assertEqual(status["observedGeneration"], found[name]["metadata"]["generation"])
                wait_until(lambda: f"Watcher{condition['reason']}" in self.kcp.events_of(name, "kcp-system"), PATIENCE,
                           f"an event tells of {name}", every=0.1)
                self.assertIn("example.com/kept", found[name]["metadata"]["finalizers"])
        self.assertEqual(self.services(), {}, "nothing is half-made")

        # A valid one among them is served, and keeps what it has when it becomes wrong.
        self.kcp.apply(watcher("right"))
        self.until_ready("right")
        before = self.services()["right"]
        self.change("right", {"manager": "a/b"})
        self.kcp.until("watchers", "right", "kcp-system", lambda w: "spec.manager" in self.condition(w)["message"], "is wrong")
        self.assertEqual(self.services(), {"right": before})

        # Who follows the message is served.
        self.change("wrong-0", {"resourceToWatch": {"group": "operator.kyma-project.io"}})
        self.until_ready("wrong-0")
        self.assertIn("wrong-0", self.services())
        self.assertTrue(self.manager.running(), self.manager.tail())

    def change(self, name, spec):
        self.kcp.kubectl("patch", "watcher", name, "-n", "kcp-system", "--type=merge", "-p", json.dumps({"spec": spec}))

    def make_gateway_without_hosts(self):
        gateway = self.gateway("bare", [], {GATEWAY: "bare"})
        done = self.kcp.attempt("create", "-f", "-", stdin=gateway)
        if done.returncode != 0:
            # Istio's schema wants the list; an empty server list is as bare.
            gateway["spec"]["servers"] = []
            self.kcp.apply(gateway)

    def test_several_watchers_selectors_of_every_kind_and_a_late_gateway(self):
        # Two for the same manager and the same resource, on KCP and on the runtime.
        self.kcp.apply(watcher("one"), watcher("two"))
        self.until_ready("one", "two")
        routes = [self.services()[name]["spec"]["http"][0] for name in ("one", "two")]
        self.assertEqual([r["name"] for r in routes], ["kcp-system/one", "kcp-system/two"])
        self.assertEqual({r["match"][0]["uri"]["prefix"] for r in routes}, {"/v2/lifecycle-manager/event"})
        self.add_kyma()
        self.issue()
        hooks = self.installed(["one", "two"])["webhooks"]
        self.assertEqual(hooks[0]["rules"], hooks[1]["rules"])
        self.assertEqual({h["clientConfig"]["service"]["path"] for h in hooks}, {"/validate/lifecycle-manager"})
        self.kcp.kubectl("delete", "watcher", "one", "-n", "kcp-system", "--timeout=30s")
        self.installed(["two"])
        self.assertEqual(set(self.services()), {"two"})
        self.assertIsNotNone(self.kcp.get("virtualservices.networking.istio.io", HEARTBEATS, "kcp-system"))

        # A resource of all groups, which lifecycle-manager passes on, too: by reviews alone.
        every = {"group": "*", "version": "*", "resource": "kymas"}
        self.kcp.apply(watcher("every", resourceToWatch=every, labelsToWatch={"watched": "yes"}))
        self.until_ready("every")
        self.assertIn("events come from reviews alone (wildcard)", self.condition(self.watchers()["every"])["message"])
        hook = next(h for h in self.installed(["every", "two"])["webhooks"] if ".every." in h["name"])
        self.assertEqual((hook["rules"][0]["apiGroups"], hook["objectSelector"]), (["*"], {"matchLabels": {"watched": "yes"}}))
        self.assertNotIn("reviews alone", self.condition(self.watchers()["two"])["message"])

        # Selectors of every kind.
        for name, tier in (("a", "gold"), ("b", "silver"), ("c", None)):
            self.kcp.apply(self.gateway(name, [f"{name}.example.com"], {"selectable": "yes", **({"tier": tier} if tier else {})}))
        both = {"key": "selectable", "operator": "Exists"}
        wanted = {
            "in": ([{"key": "tier", "operator": "In", "values": ["gold", "silver"]}], ["a", "b"]),
            "not-in": ([both, {"key": "tier", "operator": "NotIn", "values": ["gold"]}], ["b", "c"]),
            "exists": ([both, {"key": "tier", "operator": "Exists"}], ["a", "b"]),
            "exists-not": ([both, {"key": "tier", "operator": "DoesNotExist"}], ["c"]),
        }
        for name, (expressions, _) in wanted.items():
            self.kcp.apply(watcher(name, gateway={"selector": {"matchExpressions": expressions}}))
        self.until_ready(*wanted)
        services = self.services()
        for name, (_, gateways) in wanted.items():
            self.assertEqual(services[name]["spec"]["gateways"], [f"kcp-system/{g}" for g in gateways], name)
            self.assertEqual(services[name]["spec"]["hosts"], [f"{g}.example.com" for g in gateways], name)

        # A Gateway that comes later is noticed by a watch.
        self.kcp.apply(watcher("early", gateway={"selector": {"matchLabels": {GATEWAY: "late"}}}))
        self.kcp.until("watchers", "early", "kcp-system", lambda w: self.condition(w).get("reason") == "GatewayNotFound", "waits")
        gateways, services = (self.start(Arrivals(self.kcp, kind)) for kind in
                              ("gateways.networking.istio.io", "virtualservices.networking.istio.io"))
        wait_until(lambda: "a" in gateways.at and "in" in services.at, PATIENCE, "both watches run")
        self.kcp.apply(self.gateway("late", ["late.example.com"], {GATEWAY: "late"}))
        wait_until(lambda: "late" in gateways.at and "early" in services.at, PATIENCE, "the VirtualService comes")
        took = services.at["early"] - gateways.at["late"]
        self.note(f"VirtualService {took * 1000:.0f} ms after the Gateway")
        self.assertLess(took, 1)
        self.until_ready("early")


class Embedded(Scenarios, landscape.Embedded, harness.TestCase):
    def definitions(self):
        """The Watcher's without a schema of its spec, so that the manager gets to see everything."""
        file = ROOT / "deploy" / "crds" / "operator.kyma-project.io_watchers.yaml"
        crd = json.loads(self.kcp.kubectl("create", "--dry-run=client", "-f", file, "-o", "json"))
        properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        properties["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        lax = self.folder / "watchers.json"
        lax.write_text(json.dumps(crd))
        return [lax, ROOT / "deploy" / "dev"]

    def check_refused(self, refused, done):
        self.assertEqual(refused, set(), done.stderr)


class Real(Scenarios, landscape.Real, harness.TestCase):
    def check_refused(self, refused, done):
        """Each is told by the API server, and by the name of its field."""
        for name in refused:
            field = WRONG[int(name.removeprefix("wrong-"))][0]
            self.assertRegex(done.stderr, rf'Watcher\S* "{name}" is invalid.*spec\.{field}', name)
        self.assertLess(len(refused), len(WRONG) / 2)


if __name__ == "__main__":
    harness.main()
