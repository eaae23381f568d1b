"""What a user asked of a real API server, by the server's own audit log (audit.k8s.io/v1)."""

import collections
import json

from api import Api, collection
from harness import wait_until

# The verbs (more than one for server-side apply, for example), where, and the object's name.
Request = collections.namedtuple("Request", "verbs group resource namespace name")


class Audit:
    """Of one ServiceAccount. Give `options` to the API server. Everything is empty before the first request."""

    def __init__(self, folder, namespace, account):
        self.user = f"system:serviceaccount:{namespace}:{account}"
        self._groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        self._log = folder / "audit.log"
        self._read = 0  # bytes
        self._entries = []
        policy = folder / "audit-policy.yaml"
        policy.write_text(json.dumps({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "users": [self.user]}, {"level": "None"}]}))
        self.options = (f"--audit-policy-file={policy}", f"--audit-log-path={self._log}")

    def _requests(self):
        """Each Request, and whether it was refused."""
        if self._log.exists():
            with open(self._log, "rb") as log:
                log.seek(self._read)
                for line in log:
                    if not line.endswith(b"\n"):
                        break  # the rest is being written
                    self._read += len(line)
                    self._entries.append(self._entry(json.loads(line)))
        return self._entries

    @staticmethod
    def _entry(entry):
        to, verbs = entry.get("objectRef", {}), {entry["verb"]}
        if entry["verb"] == "patch" and entry.get("responseStatus", {}).get("code") == 201:
            verbs.add("create")  # server-side apply of what was not there needs both
        if "sendInitialEvents=true" in entry.get("requestURI", ""):
            verbs.add("list")  # the right that the same client needs on a server without streaming lists
        resource = "/".join(filter(None, (to.get("resource", ""), to.get("subresource"))))
        return (Request(frozenset(verbs), to.get("apiGroup", ""), resource, to.get("namespace", ""), to.get("name", "")),
                entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid")

    def verbs_of(self, resource, namespace, name):
        """What was asked for one object, whether or not it was allowed."""
        return {verb for request, _ in self._requests() if request[2:] == (resource, namespace, name) for verb in request.verbs}

    def check_none_refused(self):
        refused = sorted({f"{'/'.join(request.verbs)} {request.resource}.{request.group} {request.name} in {request.namespace}"
                          for request, forbidden in self._requests() if forbidden})
        if refused:
            raise AssertionError(f"{self.user} may not: {refused}")

    def check(self, cluster, *roles):
        """The roles give what the user needs, and no more: nothing was refused, each right was used (of a watch the log says so
        when that has ended), and without any single one a request of those that were made is refused. So a role that lacks a
        rule fails the test."""
        self.check_none_refused()
        rights = [(role, right) for role in roles for right in self._rights(role)]
        unused = lambda: [right for role, right in rights if not self._users_of(role, right)]
        wait_until(lambda: not unused(), 20, lambda: f"each right is used; these are not: {unused()}", every=0.1)
        api = Api(cluster.kubeconfig)
        for role in roles:
            path = collection(f"{role['kind'].lower()}s", role["metadata"].get("namespace"), "rbac.authorization.k8s.io")
            path += f"/{role['metadata']['name']}"
            rights = self._rights(role)
            for right in rights:
                api.patch(path, {"rules": [each for each in rights if each is not right]})
                wait_until(lambda: any(not self._allowed(api, right["verbs"][0], request) for request in self._users_of(role, right)), 10,
                           lambda: f"a request is refused without this right of {path}: {right}")
            api.patch(path, {"rules": role["rules"]})
        api.close()

    @staticmethod
    def _rights(role):
        """Its rules, each split into rules of one verb and one resource."""
        return [{**rule, "apiGroups": [group], "resources": [resource], "verbs": [verb]} for rule in role["rules"]
                for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]]

    def _users_of(self, role, right):
        """The requests that it allows; a wildcard allows none."""
        namespace, names = role["metadata"].get("namespace", ""), right.get("resourceNames")
        return {request for request, _ in self._requests()
                if right["verbs"][0] in request.verbs and (right["apiGroups"][0], right["resources"][0]) == (request.group, request.resource)
                and namespace in ("", request.namespace) and (not names or request.name in names)}

    def _allowed(self, api, verb, request):
        resource, _, subresource = request.resource.partition("/")
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": self.user, "groups": self._groups, "resourceAttributes": {
                "verb": verb, "group": request.group, "resource": resource, "subresource": subresource,
                "namespace": request.namespace, "name": request.name}}}
        return api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]
