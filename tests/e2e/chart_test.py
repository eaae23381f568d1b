"""The Helm charts of deploy/helm: they render what deploy/manager and deploy/skr say, refuse values that cannot work, and API
servers accept what they render: the embedded one by `helm install` under strict field validation, a real one (where
KUBEBUILDER_ASSETS names it) in a dry run. chart_release_test.py upgrades, rolls back and adopts releases on a real one.

Needs helm (tests/provide-helm.sh), which RW_HELM may name, and kubectl.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import types
import unittest
import urllib.request

import control_plane
import harness
from api import Api, ApiError
from charts import (ALL_VALUES, CHART, HELM, IN_THE_OBJECTS, SKR_CHART, SKR_VALUES, VALUES, Helm, bare, documents, merged)
from harness import DEV_BINARY, ROOT, Pki, Process
from kubectl import KUBECTL
from landscape import MANAGER, Cluster
from pods import Container, Image, objects_in, own_network, pod_of

MODES = ("off", "signal", "direct", "shadow")
CERTIFICATES = ("cert-manager", "gardener")
DEFINITIONS = sorted((ROOT / "deploy" / "crds").glob("*.yaml"))
AS_THE_MANIFESTS = {"image": {"tag": "latest"}, "gateway": {"trustedProxies": ["10.0.0.0/8"]}}
# Which the manager's chart sets of other values.
OWN_FLAGS = {"--help", *(f"--{name}" for name in (
    "skr-image", "xfcc-trusted-proxies", "certificates", "bootstrapper-mode", "admin-token-file", "lease-name", "lease-namespace", "events-service",
    "events-port", "listen-address", "metrics-address", "state-namespace", "pin-san", "landscape", "skr-pull-secret", "skr-memory-limit",
    "skr-cpu-limit", "pod-ip", "log-level"))}
# Where the API has objects of the kinds that the charts render.
COLLECTIONS = {"PriorityClass": "priorityclasses", "NetworkPolicy": "networkpolicies"}


class Rendering(Helm, harness.TestCase):
    maxDiff = None

    def test_chart_and_kustomize_render_the_same_with_each_combination_of_modes(self):
        manager = ROOT / "deploy" / "manager"
        for mode, certificates in itertools.product(MODES, CERTIFICATES):
            with self.subTest(mode=mode, certificates=certificates):
                components = [manager / "gardener"] if certificates == "gardener" else []
                patches = []
                if mode != "off":
                    components.append(manager / "bootstrapper")
                    index = 5 if components[:-1] else 4
                    patches = [{"target": {"kind": "Deployment"}, "patch": json.dumps([
                        {"op": "test", "path": f"/spec/template/spec/containers/0/args/{index}", "value": "--bootstrapper-mode=signal"},
                        {"op": "replace", "path": f"/spec/template/spec/containers/0/args/{index}", "value": f"--bootstrapper-mode={mode}"}])}]
                chart = self.objects(self.rendered({**AS_THE_MANIFESTS, "bootstrapper": {"mode": mode}, "certificates": certificates}))
                self.assertEqual(bare(chart), self.objects(manager, *DEFINITIONS, components=components, patches=patches))

    def test_chart_and_kustomize_render_the_same_monitoring(self):
        on = {"serviceMonitor": True, "rules": True, "dashboards": True}
        parts = (ROOT / "deploy" / "manager", ROOT / "deploy" / "monitoring", *DEFINITIONS)
        self.assertEqual(bare(self.objects(self.rendered({**AS_THE_MANIFESTS, "monitoring": on}))), self.objects(*parts))
        self.assertNotIn("runbook_url", self.rendered({"monitoring": on}))
        labelled = self.rendered({"monitoring": {**on, "labels": {"release": "prometheus"}}})
        self.assertEqual(sum("    release: prometheus\n" in part for part in self.objects(labelled)), 3)

    @unittest.skipUnless(shutil.which("promtool"), "there is no promtool")
    def test_rules_are_valid_with_any_labels_of_landscapes(self):
        for labels in ([], ["cluster"], ["region", "landscape"]):
            text = self.rendered({"monitoring": {"rules": True, "groupBy": labels, "runbookUrl": "https://example.com/runbook"}}, CHART,
                                 "--show-only", "templates/monitoring.yaml")
            rules = self.folder / "rules.yaml"
            rules.write_text("".join(line[2:] + "\n" for line in text.split("\nspec:\n")[1].splitlines()))
            done = subprocess.run(["promtool", "check", "rules", rules], text=True, capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("rules found", done.stdout)

    def test_chart_of_a_runtime_renders_the_manifests_of_deploy_skr(self):
        manifests = [p for p in sorted((ROOT / "deploy" / "skr").glob("*.yaml")) if p.name != "secret.yaml"]
        text = self.rendered({"image": {"tag": "latest"}}, SKR_CHART)
        chart = [part for part in self.objects(text) if "kind: Secret\n" not in part]
        self.assertEqual(bare(re.sub(r"\n +caBundle: .*", "", part) for part in chart), self.objects(*manifests))

    def test_managers_file_of_a_runtime_is_what_the_webhook_reads(self):
        """And its rights and webhooks are those of the same watches."""
        watches = [{"name": "one", "manager": "m1", "group": "apps", "version": "v1", "resource": "deployments", "field": "status"},
                   {"name": "two", "manager": "m2", "group": "", "version": "*", "resource": "configmaps", "field": "spec",
                    "matchLabels": {"a": "b"}}]
        text = self.rendered({"watches": watches, "tls": {"existingSecret": "mine"}, "kcpAddress": "kcp.example.com:8443",
                              "webhookSources": {"namespace": "here", "podLabels": {"x": "y"}}}, SKR_CHART)
        file = json.loads(json.loads(re.search(r"managers.json: (\".*\")", text)[1]))
        self.assertEqual(file, {"version": 1, "watches": [{k: v for k, v in w.items() if k != "name"} for w in watches]})
        one_of = {kind: [part for part in self.objects(text) if f"kind: {kind}\n" in part] for kind in
                  ("ClusterRole", "ValidatingWebhookConfiguration", "Deployment", "NetworkPolicy", "Secret")}
        self.assertEqual(one_of["Secret"], [], "the Secret is the user's own")
        self.assertIn("resources:\n  - deployments\n", one_of["ClusterRole"][0])
        self.assertIn("    - deployments/status\n", one_of["ValidatingWebhookConfiguration"][0])
        self.assertIn("        name: mine\n", one_of["Deployment"][0])
        self.assertEqual(sum("port: 8443\n" in policy and "Egress" in policy for policy in one_of["NetworkPolicy"]), 1)
        self.assertEqual(sum("kubernetes.io/metadata.name: here" in policy for policy in one_of["NetworkPolicy"]), 1)

    def test_webhook_of_a_runtime_takes_calls_from_any_client(self):
        """As with the manager's --skr-webhook-sources=any: where API servers are on the host network, no selector names them."""
        def policy(values):
            found = objects_in(self.rendered(values, SKR_CHART))
            return found["NetworkPolicy", "kyma-project.io--seed-to-watcher"]["spec"]["ingress"]
        ports = [{"port": 8443, "protocol": "TCP"}]
        self.assertEqual(policy({"webhookSources": {"any": True}}), [{"ports": ports}])
        self.assertEqual(policy({}), [{"ports": ports, "from": [{
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchLabels": {"app": "vpn-shoot"}}}]}])
        self.assertIn("webhookSources.any", self.refused({"webhookSources": {"any": "yes"}}, SKR_CHART))

    def test_values_reach_the_deployment(self):
        digest = "sha256:" + "0" * 64
        text = self.rendered({"image": {"repository": "registry.example.com/rw", "digest": digest, "pullSecrets": ["pull"]},
                              "skr": {"image": "registry.example.com/skr:2", "pullSecrets": ["a", "b"], "memoryLimit": "100Mi"},
                              "gateway": {"namespace": "gateways", "podLabels": {"app": "gw"}, "trustedProxies": ["10.1.0.0/16", "fd00::/8"]},
                              "adminToken": {"secretName": "admin"}, "extraArgs": ["--rollout-canaries=5"], "replicas": 3,
                              "nodeSelector": {"pool": "system"}, "addresses": {"events": "::", "metrics": "0.0.0.0"}})
        deployment = next(part for part in self.objects(text) if "kind: Deployment\n" in part)
        for line in (f"image: registry.example.com/rw@{digest}", "- --skr-image=registry.example.com/skr:2", "- --skr-pull-secret=a,b",
                     "- --skr-memory-limit=100Mi", "- --xfcc-trusted-proxies=10.1.0.0/16,fd00::/8", "- --rollout-canaries=5",
                     "- --admin-token-file=/etc/runtime-watcher/admin/token", "secretName: admin", "pool: system", "replicas: 3"):
            self.assertIn(line, deployment)
        self.assertIn("kubernetes.io/metadata.name: gateways", text.replace('"', ""))
        # The manager takes these arguments: it gets as far as to look for the cluster.
        manager = self.start(Container(self, Image(self.folder), pod_of(objects_in(text)["Deployment", MANAGER]),
                                       volumes={"admin-token": {"token": "secret"}}, pod={"status.podIP": "10.245.0.9"}))
        self.assertEqual(manager.wait(20), 2, manager.tail())
        said = " ".join(line for _, line in manager.log if not line.startswith("{"))
        self.assertRegex(said, "^runtime-watcher: --kubeconfig: ")
        self.assertEqual(set(re.findall(r"--[\w-]+", said)), {"--kubeconfig"}, "no complaint about a flag")

    def test_pod_of_a_runtime_starts_from_the_image(self):
        pki = Pki(self.folder / "pki")
        certificate, key = pki.issue("webhook", "webhook", cn="runtime-1")
        tls = {"ca": pki.ca.read_text(), "cert": certificate.read_text(), "key": key.read_text()}
        found = objects_in(self.rendered({"tls": tls, "environment": {"SETTLE": "77ms"}}, SKR_CHART))
        webhook = self.start(Container(self, Image(self.folder), pod_of(found["Deployment", "skr-webhook"]), objects=found,
                                       pod={"metadata.name": "skr-webhook-1"}))
        self.assertEqual(webhook.wait_listening("webhook"), 8443)
        with urllib.request.urlopen("http://127.0.0.1:2112/readyz", timeout=10) as answer:
            self.assertEqual(answer.status, 200)
        [started] = webhook.records(msg="starting")
        self.assertLessEqual({"--settle=77ms", "--kcp-addr=kcp.example.com:443", "--pod-name=skr-webhook-1"},
                             set(started["settings"].split()))

    def test_values_that_cannot_work_are_refused_with_their_name(self):
        for values, name in (({"bootstrapper": {"mode": "on"}}, "bootstrapper.mode"), ({"certificates": "acme"}, "certificates"),
                             ({"replica": 2}, "replica"), ({"replicas": 0}, "replicas"), ({"replicas": "2"}, "replicas"),
                             ({"gateway": {"trustedProxies": []}}, "set gateway.trustedProxies"),
                             ({"gateway": {"trustedProxies": ["0.0.0.0/0"]}}, "gateway.trustedProxies.0"),
                             ({"gateway": {"trustedProxies": ["0.0.0.0/00"]}}, "gateway.trustedProxies.0"),
                             ({"gateway": {"trustedProxies": ["0.0.0.0/1", "128.0.0.0/1"]}}, "gateway.trustedProxies.0"),
                             ({"extraArgs": ["--pin-san=false"]}, "extraArgs.0"), ({"adminToken": {"key": ".."}}, "adminToken.key"),
                             ({"gateway": {"podLabels": {"istio": 1}}}, "gateway.podLabels.istio"),
                             ({"image": {"digest": "latest"}}, "image.digest"), ({"image": {"repository": "a b"}}, "image.repository"),
                             ({"skr": {"memoryLimit": "much"}}, "skr.memoryLimit"), ({"extraArgs": ["--skr-image=x"]}, "extraArgs.0"),
                             ({"extraArgs": ["rollout"]}, "extraArgs.0"), ({"adminToken": {"secretName": "A"}}, "adminToken.secretName"),
                             ({"monitoring": {"rules": "yes"}}, "monitoring.rules"), ({"image": {"tag": 1.5}}, "image.tag"),
                             ({"nameOverride": "true"}, "nameOverride"), ({"env": [{"name": "POD_IP", "value": "x"}]}, "env.0.name"),
                             ({"commonLabels": {"helm.sh/chart": "x"}}, "commonLabels"), ({"podLabels": {"app.kubernetes.io/name": "x"}}, "podLabels"),
                             ({"podSecurityContext": {"runAsUser": 0}}, "podSecurityContext.runAsUser"),
                             ({"podSecurityContext": {"runAsNonRoot": False}}, "podSecurityContext"),
                             ({"securityContext": {"privileged": True}}, "securityContext"), ({"logLevel": "trace"}, "logLevel"),
                             ({"podDisruptionBudget": {"minAvailable": "half"}}, "podDisruptionBudget.minAvailable"),
                             ({"podDisruptionBudget": {"maxUnavailable": -1}}, "podDisruptionBudget.maxUnavailable"),
                             ({"strategy": {"type": "Rolling"}}, "strategy.type"), ({"extraVolumeMounts": [{"name": "x"}]}, "extraVolumeMounts.0"),
                             ({"extraVolumes": [{"name": "admin-token", "emptyDir": {}}]}, "extraVolumes.0.name"),
                             ({"topologySpreadConstraints": [{"maxSkew": 1}]}, "topologySpreadConstraints.0")):
            with self.subTest(values):
                self.assertIn(name, self.refused(values))
        self.assertIn("--namespace kcp-system", self.refused({}, ns="default"))

    def test_values_of_a_runtime_that_cannot_work_are_refused_with_their_name(self):
        watch = {"name": "w", "manager": "m", "group": "", "version": "v1", "resource": "secrets", "field": "spec"}
        for values, name in (({"kcpAddress": ""}, "kcpAddress"), ({"kcpAddress": "https://kcp:443"}, "kcpAddress"),
                             ({"kcpAddress": "kcp:0443"}, "kcpAddress"), ({"kcpAddress": "kcp:0"}, "kcpAddress"),
                             ({"kcpAddress": "kcp:65536"}, "kcpAddress"), ({"watches": [watch, watch]}, "the name w is there twice"),
                             ({"watches": [{**watch, "name": "w" * 201}]}, "watches.0.name"),
                             ({"webhookCA": ""}, "webhookCA"), ({"webhookCA": "file.pem"}, "webhookCA"),
                             ({"tls": {**SKR_VALUES["tls"], "key": ""}}, "tls.key"), ({"watches": []}, "watches"),
                             ({"watches": [{**watch, "field": "metadata"}]}, "watches.0.field"),
                             ({"watches": [{**watch, "manager": "../x"}]}, "watches.0.manager"),
                             ({"environment": {"KCP_ADDR": "x:1"}}, "environment"),
                             ({"env": [{"name": "KCP_ADDR", "value": "x:1"}]}, "env.0.name"), ({"podLabels": {"app": "x"}}, "podLabels"),
                             ({"securityContext": {"capabilities": {"add": ["ALL"]}}}, "securityContext"), ({"environment": {"SETTLE": 1}}, "environment.SETTLE")):
            with self.subTest(values):
                self.assertIn(name, self.refused(values, SKR_CHART))
        self.assertIn("--namespace kyma-system", self.refused({}, SKR_CHART, "default"))

    def test_limits_below_the_requests_are_refused(self):
        for values, name in (({"skr": {"memoryLimit": "8Mi"}}, "skr.memoryLimit: 8Mi is below the request, 20Mi"),
                             ({"skr": {"memoryLimit": "20M"}}, "skr.memoryLimit"), ({"skr": {"cpuLimit": "9m"}}, "skr.cpuLimit"),
                             ({"skr": {"cpuLimit": ".009"}}, "skr.cpuLimit"), ({"skr": {"memoryLimit": "0Mi"}}, "skr.memoryLimit"),
                             ({"skr": {"memoryLimit": "200ki"}}, "skr.memoryLimit"), ({"skr": {"memoryLimit": "1.2.3Gi"}}, "skr.memoryLimit"),
                             ({"resources": {"limits": {"memory": "255Mi"}}}, "resources.limits.memory: 255Mi is below the request, 256Mi"),
                             ({"resources": {"limits": {"cpu": 0.05}}}, "resources.limits.cpu"),
                             ({"resources": {"limits": {"memory": "much"}}}, "resources.limits.memory"),
                             ({"resources": {"requests": {"cpu": -1}}}, "resources.requests.cpu")):
            with self.subTest(values):
                self.assertIn(name, self.refused(values))
        for values, name in (({"resources": {"limits": {"memory": "19Mi"}}}, "resources.limits.memory"),
                             ({"resources": {"requests": {"cpu": 1}}}, "resources.limits.cpu: 100m is below the request, 1")):
            with self.subTest(values):
                self.assertIn(name, self.refused(values, SKR_CHART))
        for values in ({"skr": {"memoryLimit": "20Mi", "cpuLimit": "0.01"}}, {"skr": {"memoryLimit": "1Gi", "cpuLimit": "2"}},
                       {"skr": {"memoryLimit": "8Mi"}, "extraArgs": ["--skr-manifests=/manifests"]},
                       {"resources": {"limits": {"memory": 1073741824, "cpu": 1}}}, {"resources": {"limits": None}},
                       {"resources": {"requests": None, "limits": {"memory": "1e9"}}}):
            with self.subTest(values):
                self.rendered(values)

    def test_networks_of_proxies_are_checked(self):
        for value in ("10.1.0.0/33", "10.256.0.0/16", "10.1.0/16", "10.1.0.0", "10.1.0.0/-1", "10.1.0.0/08", "fd00::/129", "fd00::g/64",
                      "1:2:3/64", "1:2:3:4:5:6:7:8:9/64", "fd00::1::/64", "::/0", "::/1", "0.0.0.0/6", "::ffff:0:0/96", "10.1.0.0/16,10.2.0.0/16"):
            with self.subTest(value):
                self.assertIn("gateway.trustedProxies.0", self.refused({"gateway": {"trustedProxies": [value]}}))
        self.rendered({"gateway": {"trustedProxies": ["10.0.0.0/7", "10.1.2.3/32", "fd00::/8", "fc00::/7", "2001:db8:1:2:3:4:5:6/128", "::1/128"]}})

    def test_flags_and_variables_of_the_manager_are_checked(self):
        for flag in ("--nonexistent", "--help", "--rollout-canary", "--lease-duration", "--lease-duration=", "--lease-duration=15", "--lease-duration=1d",
                     "--concurrent=0", "--concurrent=1025", "--concurrent=many", "--certificate-key=rsa", "--take-over=maybe", "--only",
                     "--ca-excuse-percent=101", "--signal-by=mark", "--rollout-max-unavailable=-1", "--log-level=debug", "--listen-address=0.0.0.0:1"):
            with self.subTest(flag):
                self.assertIn("extraArgs.0", self.refused({"extraArgs": [flag]}))
        for name, value, field in (("RW_NONEXISTENT", "1", "env.0.name"), ("RW_SKR_IMAGE", "x", "env.0.name"), ("RW_LEASE_DURATION", "2hours", "env.0.value"),
                                   ("RW_CONCURRENT", "0", "env.0.value"), ("LOG_LEVEL", "debug", "env.0.name"), ("RW_CERTIFICATE_KEY", "rsa", "env.0.value")):
            with self.subTest(name):
                self.assertIn(field, self.refused({"env": [{"name": name, "value": value}]}))
        self.rendered({"extraArgs": ["--lease-duration=1m30s", "--retry-period=.5s", "--heartbeat-timeout=0", "--concurrent=1024", "--take-over",
                                     "--no-leader-elect", "--watch-runtimes=false", "--only=canary in (a, b)", "--pull-secret-name=",
                                     "--rollout-canaries=stage=canary", "--rollout-max-unavailable=5%", "--kcp-port=65535"],
                       "env": [{"name": "RW_LEASE_DURATION", "value": "1m"}, {"name": "HTTPS_PROXY", "value": "http://proxy"},
                               {"name": "RW_CONCURRENT", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]})

    def test_settings_of_a_runtime_are_checked(self):
        for name, value in (("SETTLE", "2hours"), ("SETTLE", "2"), ("SETTLE", ""), ("SETTLE", "-1s"), ("SETTLE", "1..5s"),
                            ("SET_CAPACITY", "0"), ("SET_CAPACITY", "16777217"), ("MAX_REVIEW_BYTES", "65535"), ("OBSERVE_OBJECTS", "1e3"),
                            ("SOURCE", "watches"), ("LOG_LEVEL", "debug"), ("NONEXISTENT", "1"), ("CONFIRM_WAIT", "0"), ("EVENT_MAX_AGE", "1h"),
                            ("ADMISSION_WAIT", "30s1ms"), ("HEARTBEAT_INTERVAL", "999ms"), ("HEARTBEAT_INTERVAL", "61m"), ("DRAIN_TIMEOUT", "26s")):
            with self.subTest(name=name, value=value):
                self.assertRegex(self.refused({"environment": {name: value}}, SKR_CHART), rf"environment.*{name}")
        self.rendered({"environment": {"SETTLE": "0", "CONFIRM_WAIT": "1m.5s", "SET_CAPACITY": "16777216", "HEARTBEAT_INTERVAL": "0",
                                       "MAX_REVIEW_BYTES": "65536", "SOURCE": "webhook", "DRAIN_TIMEOUT": "25s"}}, SKR_CHART)

    def test_settings_of_both_charts_are_those_of_the_help(self):
        """Flags, variables and the form of their values: deploy/helm/settings.py writes them into the schemas."""
        done = subprocess.run([sys.executable, "-B", ROOT / "deploy" / "helm" / "settings.py", harness.BINARY, "--check"], text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        flags = json.loads((CHART / "values.schema.json").read_text())["definitions"]["flag"]["allOf"][0]["pattern"]
        text = subprocess.run([harness.BINARY, "manager", "--help"], text=True, capture_output=True, timeout=60).stdout
        for flag in re.findall(r"--([\w-]+)", "\n".join(re.findall(r"^  (?:-h,)?--\S+", text, flags=re.MULTILINE))):
            with self.subTest(flag):
                said = self.refused({"extraArgs": [f"--{flag}={{}}"]}) if f"--{flag}" in OWN_FLAGS else None
                self.assertTrue(said is None or "extraArgs.0" in said)
                self.assertEqual(bool(re.match(flags, f"--{flag}=")), f"--{flag}" not in OWN_FLAGS)

    def test_values_that_are_null_are_refused(self):
        """Null takes a default away, which no rule of a schema sees but that the value is required."""
        for chart in (CHART, SKR_CHART):
            nulls, parent = [], None
            for indent, name in re.findall(r"^(  )?(\w+):", (chart / "values.yaml").read_text(), flags=re.MULTILINE):
                if not indent:
                    parent = name
                    nulls.append(({name: None}, name))
                elif parent not in ("resources", "podSecurityContext"):
                    nulls.append(({parent: {name: None}}, name))
            self.assertGreater(len(nulls), 30)
            for values, name in nulls:
                with self.subTest(values):
                    self.assertIn(f"{name} is required", self.refused(values, chart))

    def test_null_takes_a_limit_away(self):
        for chart in (CHART, SKR_CHART):
            text = self.rendered({"resources": {"limits": {"cpu": None, "memory": None}, "requests": {"cpu": None}}}, chart)
            container = pod_of(next(each for (kind, _), each in objects_in(text).items() if kind == "Deployment"))["containers"][0]
            self.assertEqual((container["resources"].get("limits") or {}, set(container["resources"]["requests"])), ({}, {"memory"}))

    def test_null_leaves_user_and_groups_to_the_cluster(self):
        """OpenShift refuses a Pod with ids outside of its project's ranges, and sets ids of its own where there are none."""
        for chart, fixed in ((CHART, {"runAsUser": 10001, "runAsGroup": 30001, "fsGroup": 30001}),
                             (SKR_CHART, {"runAsUser": 10001, "runAsGroup": 30001})):
            def contexts(values):
                found = objects_in(self.rendered({"podSecurityContext": values}, chart, "--skip-tests=false"))
                return [{name: value for name, value in pod_of(each)["securityContext"].items() if value is not None}
                        for (kind, _), each in found.items() if kind in ("Deployment", "Pod")]
            others = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
            self.assertEqual(contexts({}), 2 * [{**others, **fixed}])
            self.assertEqual(contexts({"runAsUser": None, "runAsGroup": None, "fsGroup": None}), 2 * [others])

    def test_disruption_budget_is_removable_and_sized(self):
        def budget(values, chart):
            found = [each for (kind, _), each in objects_in(self.rendered(values, chart)).items() if kind == "PodDisruptionBudget"]
            return {key: each for key, each in found[0]["spec"].items() if key != "selector"} if found else None
        for chart, default in ((CHART, {"minAvailable": 1}), (SKR_CHART, None)):
            self.assertEqual(budget({}, chart), default)
            for values, size in (({"enabled": False}, None), ({"enabled": True, "minAvailable": "50%"}, {"minAvailable": "50%"}),
                                 ({"enabled": True, "maxUnavailable": 0}, {"maxUnavailable": 0})):
                self.assertEqual(budget({"podDisruptionBudget": values}, chart), size)

    def test_packaged_charts_have_no_symbolic_links(self):
        """Helm prints a line for each; operators see it as a warning."""
        subprocess.run([ROOT / "deploy" / "helm" / "package.sh", self.folder / "charts"], check=True, timeout=60)
        for chart, required in ((CHART, VALUES), (SKR_CHART, SKR_VALUES)):
            packaged = self.folder / "charts" / chart.name
            self.assertEqual(self.rendered({}, packaged), self.rendered({}, chart))
            (self.folder / "values.json").write_text(json.dumps(required))
            done = subprocess.run([HELM, "lint", "--strict", packaged, "--values", self.folder / "values.json", "--namespace",
                                   "kyma-system" if chart is SKR_CHART else "kcp-system"], text=True, capture_output=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        own = subprocess.run([ROOT / "deploy" / "helm" / "package.sh", ROOT / "deploy" / "helm"], text=True, capture_output=True, timeout=60)
        self.assertEqual(own.returncode, 2, "it would replace the charts by themselves")
        self.assertTrue((CHART / "Chart.yaml").exists())

    def test_addresses_of_listeners_are_of_either_family(self):
        found = objects_in(self.rendered({"addresses": {"events": "::", "metrics": "0.0.0.0"}, "gateway": {"trustedProxies": ["fd00::/8"]}}))
        arguments = pod_of(found["Deployment", MANAGER])["containers"][0]["args"]
        self.assertLessEqual({"--listen-address=[::]:8082", "--metrics-address=0.0.0.0:8080", "--xfcc-trusted-proxies=fd00::/8"}, set(arguments))
        self.assertFalse([each for each in pod_of(objects_in(self.rendered())["Deployment", MANAGER])["containers"][0]["args"] if "address" in each])
        webhook = pod_of(objects_in(self.rendered({"bindAddress": "::", "kcpAddress": "[fd00::1]:7443"}, SKR_CHART))["Deployment", "skr-webhook"])
        environment = {each["name"]: each.get("value") for each in webhook["containers"][0]["env"]}
        self.assertEqual((environment["BIND_ADDRESS"], environment["KCP_ADDR"]), ("::", "[fd00::1]:7443"))
        self.assertIn("port: 7443\n", self.rendered({"kcpAddress": "[fd00::1]:7443"}, SKR_CHART))
        for name in ("events", "metrics"):
            for value in ("[::]", "127.0.0.1", "::1", "10.0.0.256", "0.0.0.0:8082", "localhost", "fd00:::1"):
                with self.subTest(value):
                    self.assertIn(f"addresses.{name}", self.refused({"addresses": {name: value}}))
                    self.assertIn("bindAddress", self.refused({"bindAddress": value}, SKR_CHART))
        for value in ("fd00::1:443", "[fd00::1]", "[fd00::1]:0", "[10.0.0.1]:443", "[fd00::g]:443", "[::1:443", "kcp,example:443"):
            with self.subTest(value):
                self.assertIn("kcpAddress", self.refused({"kcpAddress": value}, SKR_CHART))
        self.assertIn("env.0.name", self.refused({"env": [{"name": "BIND_ADDRESS", "value": "::"}]}, SKR_CHART))

    def test_values_reach_the_objects(self):
        text = ""
        for chart, values in ALL_VALUES.items():
            schema = json.loads((chart / "values.schema.json").read_text())
            self.assertEqual(set(values), set(schema["required"]), "a value has no case here")
            for name, value in values.items():
                if "required" in schema["properties"][name]:
                    self.assertEqual(set(value), set(schema["properties"][name]["properties"]), name)
            part = self.rendered(values, chart, "--include-crds")
            for marker in set(re.findall(r"\bt-[a-z-]+", json.dumps(values))):
                self.assertIn(marker, part)
            text += part
        in_one_line = " ".join(text.split())
        for marker in IN_THE_OBJECTS:
            self.assertIn(marker, in_one_line)
        self.assertNotIn("resource-policy: keep", re.sub(r"kind: Namespace\n(.*\n)*?---", "", text), "crds.keep is false")
        self.assertNotIn("cluster, namespace", text)
        self.assertNotIn("runtime-watcher-manager", re.sub(r"description: .*|managed-by: \S+", "", text), "nameOverride")
        off = self.rendered({"crds": {"enabled": False}, "serviceAccount": {"create": False, "name": "t-own"}})
        self.assertNotIn("kind: CustomResourceDefinition", off)
        self.assertNotIn("kind: ServiceAccount\nmetadata", off)
        self.assertEqual(off.count("name: t-own\n"), 5)
        self.assertIn('serviceAccountName: "t-own"', off)

    def test_names_stay_texts_and_one_replica_may_be_evicted(self):
        text = self.rendered({"image": {"pullSecrets": ["123", "true"]}, "priorityClassName": "1e6", "replicas": 1})
        for line in ('- name: "123"', '- name: "true"', 'priorityClassName: "1e6"'):
            self.assertIn(line, text)
        self.assertNotIn("PodDisruptionBudget", text)
        version = re.search(r"^appVersion: (.*)$", (CHART / "Chart.yaml").read_text(), flags=re.MULTILINE)[1]
        for chart in (CHART, SKR_CHART):
            for tag, image in (("", f":{version}"), (1, ":1"), (20261125, ":20261125"), ("1.10", ":1.10")):
                self.assertIn(f'image: "runtime-watcher{image}"\n', self.rendered({"image": {"tag": tag}}, chart))
        self.assertIn('- name: "123"', self.rendered({"image": {"pullSecrets": ["123"]}}, SKR_CHART))

    def test_packaged_charts_are_complete(self):
        for chart, ns, values in ((CHART, "kcp-system", VALUES), (SKR_CHART, "kyma-system", SKR_VALUES)):
            self.assertIn("0 chart(s) failed", self.helm("lint", "--strict", chart, "--namespace", ns, values=values))
            packaged = subprocess.run([HELM, "package", chart, "--destination", self.folder], text=True, capture_output=True, timeout=60)
            self.assertEqual(packaged.returncode, 0, packaged.stderr)
            [archive] = self.folder.glob(f"{chart.name}-[0-9]*.tgz")
            self.assertEqual(self.rendered({}, archive), self.rendered({}, chart))
        listed = subprocess.run(["tar", "-tzf", next(self.folder.glob("runtime-watcher-[0-9]*.tgz"))], text=True, capture_output=True)
        for name in ("operator.kyma-project.io_watchers.yaml", "values.schema.json"):
            self.assertIn(name, listed.stdout)
        self.assertEqual(re.findall(r".*\.md$", listed.stdout, flags=re.MULTILINE), ["runtime-watcher/README.md"])


class Clusters(Helm):
    """To be mixed into a TestCase that starts `self.cluster`."""

    def accepted(self, text):
        """Each object, applied in a dry run under strict validation. Returns the kinds that the server does not have."""
        api = Api(self.cluster.kubeconfig)
        self.addCleanup(api.close)
        served, unknown = self.cluster.kubectl("api-versions").split(), set()
        for part in documents(text):
            group_version, kind, name = (re.search(rf"^ *{field}: \"?([\w./-]+)", part, flags=re.MULTILINE)[1]
                                         for field in ("apiVersion", "kind", "name"))
            if group_version not in served:
                unknown.add(kind)
                continue
            ns = re.search(r"^metadata:\n(?:  .*\n)*?  namespace: (\S+)", part, flags=re.MULTILINE)
            path = (f"/{'apis' if '/' in group_version else 'api'}/{group_version}" + (f"/namespaces/{ns[1]}" if ns else "") +
                    f"/{COLLECTIONS.get(kind, kind.lower() + 's')}/{name}?fieldManager=test&force=true&dryRun=All&fieldValidation=Strict")
            api.request("PATCH", path, part, content_type="application/apply-patch+yaml")
        return unknown

    def test_api_server_accepts_each_object_of_both_charts(self):
        for ns in ("kcp-system", "istio-system", "kyma-system", "runtime-watcher-system"):
            self.cluster.kubectl("create", "namespace", ns)
        unknown = set()
        for mode, certificates in (("off", "cert-manager"), ("direct", "gardener")):
            text = self.objects(self.rendered({"bootstrapper": {"mode": mode}, "certificates": certificates}))
            unknown |= self.accepted("\n---\n".join(text))
        unknown |= self.accepted("\n---\n".join(self.objects(self.rendered({}, SKR_CHART))))
        for chart, values in ALL_VALUES.items():
            unknown |= self.accepted("\n---\n".join(self.objects(self.rendered(values, chart, "--skip-tests=false"))))
        self.assertEqual(unknown, self.UNKNOWN)
        if self.KNOWS_FIELDS:
            with self.assertRaises(ApiError) as error:
                self.accepted("\n---\n".join(text).replace("terminationGracePeriodSeconds:", "terminationGrace:"))
            self.assertIn("terminationGrace", str(error.exception))


class Embedded(Clusters, harness.TestCase):
    UNKNOWN = {"PrometheusRule", "ServiceMonitor"}
    KNOWS_FIELDS = False  # it has schemas of CustomResourceDefinitions, not of Deployments and the like

    def setUp(self):
        super().setUp()
        server = self.start(Process("api-server", [DEV_BINARY, "api-server", "--address", "127.0.0.1:0", "--dir", self.folder,
                                                   "--cluster", "kcp"]))
        server.wait_listening("api-server")
        self.cluster = Cluster(self.folder / "kcp.kubeconfig", self.folder / "cache")

    def test_helm_installs_changes_and_removes_a_release(self):
        for ns in ("kcp-system", "istio-system", "kyma-system"):
            self.cluster.kubectl("create", "namespace", ns)
        to = ("--kubeconfig", self.cluster.kubeconfig, "--timeout", "60s")
        self.helm("install", "test", CHART, "--namespace", "kcp-system", *to, values=VALUES)
        self.assertEqual(self.cluster.get("deployment", MANAGER, "kcp-system")["spec"]["replicas"], 2)
        self.assertIsNotNone(self.cluster.get("crd", "watchers.operator.kyma-project.io"))
        self.assertIsNone(self.cluster.get("role", f"{MANAGER}-direct", "kcp-system"))
        self.helm("upgrade", "test", CHART, "--namespace", "kcp-system", *to, values=merged(VALUES, {"bootstrapper": {"mode": "direct"}, "replicas": 3}))
        self.assertEqual(self.cluster.get("deployment", MANAGER, "kcp-system")["spec"]["replicas"], 3)
        self.assertIsNotNone(self.cluster.get("role", f"{MANAGER}-direct", "kcp-system"))
        self.helm("install", "skr", SKR_CHART, "--namespace", "kyma-system", *to, values=SKR_VALUES)
        self.assertEqual(len(self.cluster.get("validatingwebhookconfigurations", "skr-webhook")["webhooks"]), 1)
        for release, ns in (("test", "kcp-system"), ("skr", "kyma-system")):
            done = subprocess.run([HELM, "uninstall", release, "--namespace", ns, *map(str, to)], text=True, capture_output=True, timeout=90)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIsNone(self.cluster.get("deployment", MANAGER, "kcp-system"))
        self.assertIsNone(self.cluster.get("validatingwebhookconfigurations", "skr-webhook"))
        self.assertIsNotNone(self.cluster.get("crd", "watchers.operator.kyma-project.io"), "the Watchers outlive the release")


@unittest.skipUnless(os.environ.get("KUBEBUILDER_ASSETS"), "KUBEBUILDER_ASSETS names no real API server")
class Real(Clusters, harness.TestCase):
    UNKNOWN = {"PrometheusRule", "ServiceMonitor", "PodDisruptionBudget"}  # policy/v1 came with Kubernetes 1.21
    KNOWS_FIELDS = True

    def setUp(self):
        super().setUp()
        owner = types.SimpleNamespace(folder=self.folder, start=self.start)
        plane = control_plane.ControlPlane(owner)
        self.cluster = Cluster(plane.kubeconfig_with_authority(self.folder / "kubeconfig"), self.folder / "cache")


if __name__ == "__main__":
    if not HELM or not KUBECTL:
        harness.skip("there is no helm (RW_HELM) or no kubectl")
    own_network()
    harness.main()
