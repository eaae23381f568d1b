#!/usr/bin/env python3
"""`runtime-watcher explain`: it knows each reason and alert that the product can say, and the runbook is made of it."""

import json
import re
import subprocess
import sys
import unittest

import harness
from harness import BINARY, ROOT, runtime_watcher

RULES = ROOT / "deploy" / "monitoring" / "prometheus-rule.yaml"
# What the sources have in quotes in the form of a reason, and which is none: kinds, condition types and words of others.
NO_REASONS = {
    "AdmissionReview", "ClusterRole", "ClusterTrustBundle", "ConfigMap", "CustomResourceDefinition", "DoesNotExist",
    "EndpointSlice", "EndpointSlices", "ManuallyTriggered", "MutatingWebhookConfiguration", "NetworkPolicy",
    "NotIn", "PodScheduled", "ReplicaFailure", "ReplicaSet", "RuntimeBootstrapper", "RuntimeDefault",
    "RuntimeRollout", "SelfSubjectAccessReview", "SelfSubjectReview", "ValidatingWebhookConfiguration"}


class Explain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = json.loads(runtime_watcher("explain", "-o", "json").stdout)

    def named(self, kind):
        return {each["name"] for each in self.all if each["kind"] == kind}

    def test_alerts_are_those_of_the_rules(self):
        self.assertEqual(self.named("alert"), set(re.findall(r"^ +- alert: (\w+)$", RULES.read_text(), flags=re.MULTILINE)))

    def test_entries_are_explained_with_commands_and_a_link(self):
        runbook = (ROOT / "deploy" / "runbook.md").read_text()
        for each in self.all:
            with self.subTest(each["name"]):
                done = runtime_watcher("explain", each["name"])
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                commands = [command.replace("`", "") for command in each["commands"]]
                for text in (each["meaning"], *commands, each["runbook"]):
                    self.assertIn(text, done.stdout)
                for command in commands:
                    self.assertRegex(command, "^(kubectl |runtime-watcher |[A-Z])")
                self.assertIn(f'<a id="{each["runbook"].partition("#")[2]}"></a>{each["name"]}', runbook)
                self.assertTrue(all(each["commands"]))

    def test_runbook_is_made_of_the_table(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "deploy" / "runbook.py", BINARY, "--check"], text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_reasons_in_the_sources_have_an_entry(self):
        known = self.named("reason") | self.named("alert")
        found = set()
        for path in (ROOT / "reactors").rglob("*.?pp"):
            if {"dev", "kube_devserver"} & set(path.parts) or path.name.startswith("expla"):
                continue
            found |= set(re.findall(r'"((?:[A-Z]+[a-z]+){2,})"', path.read_text()))
        unknown = {each for each in found - NO_REASONS if not {each, each.removeprefix("Rollout")} & known}
        self.assertEqual(unknown, set())
        self.assertEqual(NO_REASONS - found, set(), "these are no longer in the sources")

    def test_unknown_reason_is_an_error_with_the_nearest(self):
        done = runtime_watcher("explain", "EventWait")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("there is no reason or alert EventWait; did you mean EventsWait?", done.stderr)


if __name__ == "__main__":
    harness.main()
