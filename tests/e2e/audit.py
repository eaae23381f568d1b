"""What a user asked of a real API server, by the server's own audit log (audit.k8s.io/v1)."""

import json

from harness import wait_until


class Audit:
    """Give `options` to the API server. Everything is empty before the user's first request."""

    def __init__(self, folder, user):
        self.user = user
        self._log = folder / "audit.log"
        policy = folder / "audit-policy.yaml"
        policy.write_text(json.dumps({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "users": [user]}, {"level": "None"}]}))
        self.options = (f"--audit-policy-file={policy}", f"--audit-log-path={self._log}")

    def _entries(self):
        if not self._log.exists():
            return []
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.endswith("}")]

    @staticmethod
    def _wanted(entry):
        """(verbs, group, resource with subresource, namespace, name)"""
        to, verbs = entry.get("objectRef", {}), {entry["verb"]}
        if entry["verb"] == "patch" and entry.get("responseStatus", {}).get("code") == 201:
            verbs.add("create")  # server-side apply of what was not there needs both
        if "sendInitialEvents=true" in entry.get("requestURI", ""):
            verbs.add("list")  # the right that the same client needs on a server without streaming lists
        resource = "/".join(filter(None, (to.get("resource", ""), to.get("subresource"))))
        return verbs, to.get("apiGroup", ""), resource, to.get("namespace", ""), to.get("name", "")

    def refused(self):
        """What it was not allowed, a line each."""
        return sorted({f"{'/'.join(verbs)} {resource}.{group} {name} in {ns}"
                       for entry in self._entries() if entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
                       for verbs, group, resource, ns, name in [self._wanted(entry)]})

    def until_used(self, roles):
        """Waits until each right that they give was used, and the log says so: of a watch it does when that has ended."""
        wait_until(lambda: not self.unused(roles), 20, lambda: f"each right is used; these are not: {self.unused(roles)}", every=0.1)

    def unused(self, roles):
        """Which rights that Roles and ClusterRoles give were never used, a line each; a wildcard never is."""
        asked = [self._wanted(entry) for entry in self._entries()]
        def used(verb, group, resource, within, names):
            return any(verb in verbs and group == g and resource == r and within in ("", ns) and (not names or name in names)
                       for verbs, g, r, ns, name in asked)
        return sorted(f"{verb} {resource}.{group} {rule.get('resourceNames', '')} in {role['metadata'].get('namespace', 'all')}"
                      for role in roles for rule in role["rules"] for group in rule["apiGroups"]
                      for resource in rule["resources"] for verb in rule["verbs"]
                      if not used(verb, group, resource, role["metadata"].get("namespace", ""), rule.get("resourceNames")))
