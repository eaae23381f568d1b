"""Sends the same random requests to a real kube-apiserver and to kube-devserver, and compares the responses.

    tests/conformance/differential/differential.py [--operations N] [--seed S] [--all]

ends with 1 if they differ other than known.txt says, and with 77 without KUBEBUILDER_ASSETS. A difference is printed with the
requests that led to it. --all lists also those that are known, counted.
"""

import argparse
import collections
import copy
import http.client
import json
import os
import pathlib
import random
import re
import ssl
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "e2e")]

import control_plane  # noqa: E402
import harness  # noqa: E402
import objects  # noqa: E402
from harness import free_port, wait_until  # noqa: E402

DOOR = pathlib.Path(os.environ.get("RW_DOOR") or pathlib.Path(harness.BINARY).parent / "envtest") / "kube-apiserver"
PATCHES = {"merge": "application/merge-patch+json", "json": "application/json-patch+json",
           "strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml"}
OF_A_SERVER = ("uid", "resourceVersion", "creationTimestamp", "selfLink", "managedFields", "continue")


class Panic(Exception):
    """The real server ends the connection: a handler of 1.20.2 panics at some invalid patches."""


class Server:
    """One of the two, with what its objects are called there."""

    def __init__(self, name, port):
        self.name = name
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=ssl._create_unverified_context())
        self.object = {}  # the latest state of the sequence's object

    def send(self, request):
        body = request.get("body")
        data = None if body is None else self.filled(json.dumps(body))
        headers = {"Authorization": f"Bearer {control_plane.TOKEN}", "Content-Type": request.get("type", "application/json"),
                   "User-Agent": "fuzz"}
        try:
            self._connection.request(request["method"], request["path"], data, headers)
            answer = self._connection.getresponse()
            text = answer.read()
        except http.client.RemoteDisconnected as error:
            self._connection.close()
            if self.name != "kube-apiserver":  # ours is to respond to everything
                raise
            raise Panic from error
        try:
            found = json.loads(text)
        except ValueError:
            found = text.decode()
        if isinstance(found, dict) and answer.status < 300 and found.get("kind") == request.get("kind"):
            if "dryRun" not in request["path"]:
                self.object = found
        return answer.status, found

    def filled(self, text):
        """What differs between the servers, and requests refer to."""
        metadata = self.object.get("metadata", {})
        return text.replace("${uid}", metadata.get("uid", "none")).replace("${version}", metadata.get("resourceVersion", "1"))

    def with_uid(self, answer):
        """The answer without the objects' own uids, which labels have, too."""
        text = json.dumps(answer)
        for one in (self.object, answer, *(answer.get("items") or [])):
            uid = one.get("metadata", {}).get("uid")
            text = text.replace(uid, "<uid>") if uid else text
        return json.loads(text)


def normal(value, asked):
    """An object without what is each server's own: identity, times, addresses that were not asked for."""
    if isinstance(value, list):
        return [normal(one, asked) for one in value]
    if not isinstance(value, dict):
        if isinstance(value, str) and re.fullmatch(r"10\.0\.\d+\.\d+", value) and value not in asked:
            return "<address>"
        return "<time>" if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", value) else value
    made = {}
    for name, inner in value.items():
        if name in ("nodePort", "healthCheckNodePort") and str(inner) not in asked:
            made[name] = "<port>"
        elif name == "metadata" and isinstance(inner, dict):
            made[name] = {k: normal(v, asked) for k, v in inner.items() if k not in OF_A_SERVER}
            if "generateName" in inner:
                made[name]["name"] = "<name>"
            if value.get("kind") == "Namespace" and inner.get("finalizers"):  # a random order when it is deleted (namespace/storage, a map of Go)
                made[name]["finalizers"] = sorted(inner["finalizers"])
            made["managed"] = managed(inner.get("managedFields") or [])
        elif name == "details" and isinstance(inner, dict):
            made[name] = {k: v for k, v in inner.items() if k != "uid"}
        else:
            made[name] = normal(inner, asked)
    return made


def managed(entries):
    """The fields of each manager, {path: managers}, without which subresource, which is named since 1.22."""
    made = {}
    for one in entries:
        stack = [("", one.get("fieldsV1", {}))]
        while stack:
            at, fields = stack.pop()
            for name, inner in fields.items():
                path = at if name == "." else at + "." + name[2:] if name[:2] == "f:" else at + "[]"
                if not inner:
                    made.setdefault(path, set()).add(f"{one.get('manager')} {one.get('operation')}")
                stack.append((path, inner))
    return {path.lstrip("."): ", ".join(sorted(managers)) for path, managers in made.items()}


def rejection(status):
    """What a rejection says without its texts: reason and subject."""
    if not isinstance(status, dict):
        return {"body": type(status).__name__}
    details = status.get("details") or {}
    return {"reason": status.get("reason"), **{name: details.get(name) for name in ("kind", "group", "name")}}


def first_cause(status):
    """The field that a request was rejected for, without indices: that of the first cause, or named at the message's beginning."""
    if not isinstance(status, dict):
        return ""
    # Services of 1.20 complain of an update without a version, too.
    every = (status.get("details") or {}).get("causes") or [{}]
    causes = [cause for cause in every if "must be specified for an update" not in cause.get("message", "")] or every
    named = re.match(r"(?:failed to create typed patch object(?: \([^)]*\))?: )?(\.?\w[^ :]*): ", status.get("message") or "")
    field = causes[0].get("field") or (named[1] if named else "")
    return re.sub(r"\[[^]]*\]", "", field).removeprefix(".")


def applied_as_empty(value, at=""):
    """The paths of maps that an applied object has without content, as managed() names them."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        path = f"{at}.{name}" if at else name
        if inner is None or inner == {}:
            yield path
        yield from applied_as_empty(inner, path)
        for one in inner if isinstance(inner, list) else ():
            yield from applied_as_empty(one, path + "[]")


def differences(a, b, at=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for name in sorted(a.keys() | b.keys()):
            path = f"{at}.{name}" if at else name
            one, other = a.get(name), b.get(name)
            if (name not in a or name not in b) and (one or other) and isinstance(one or other, dict):
                yield from differences(one or {}, other or {}, path)
            elif name not in a or name not in b:
                yield path, a.get(name, "<absent>"), b.get(name, "<absent>")
            else:
                yield from differences(a[name], b[name], path)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for one, other in zip(a, b):
            yield from differences(one, other, at + "[]")
    elif a != b or isinstance(a, bool) != isinstance(b, bool):
        yield at, a, b


class Known:
    """The rules of known.txt, and how often each was needed."""

    MOST = 40

    def __init__(self):
        self.rules = {}
        self.empty = set()  # the paths that the sequence has applied without content
        for line in (HERE / "known.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                kind, what, _, _ = (part.strip() for part in line.split("|"))
                self.rules[kind, what] = 0
        assert len(self.rules) <= self.MOST, f"known.txt has {len(self.rules)} rules, at most {self.MOST}"

    def take(self, kind, path):
        """Returns what the rule is about that covers the difference, and counts it."""
        for of, what in self.rules:
            if of in (kind, "any") and self.covers(what, path):
                self.rules[of, what] += 1
                return what
        return None

    def covers(self, what, path):
        if what == "map empty":
            return any(self.covers("map " + one, path) for one in self.empty)
        if conflict := re.match("(ok/409|409/...?) ", path):  # with the owner in one version only, at a field without indices
            path, what = "managed " + path[conflict.end():], what.replace("[]", "")
        if not what.startswith("managed "):  # who owns it, too
            path = path.removeprefix("managed ")
        if re.match("[0-9]+ ", what):
            path = re.sub("/(ok|...) ", " ", path)
        parts = re.search("(struct|map) ", what)
        if not parts:
            return path == what
        what = what.replace(parts.group(), "")
        return path == what or path.startswith((what + ".", what + "[]"))


class Sequence:
    """Requests about one object."""

    def __init__(self, chance, number, present=dict):
        self.chance, self.present = chance, present  # the latter returns the object as it is stored
        api, self.kind, plural, self.namespaced, fields = chance.choice(objects.BASES)
        self.name = f"{plural[:8]}-{number}"
        self.path = ("/api/" if "/" not in api else "/apis/") + api + (f"/namespaces/{objects.NAMESPACE}" if self.namespaced else "") + f"/{plural}"
        self.one = f"{self.path}/{self.name}"
        self.values = objects.TEXTS_IN_WIDGETS if self.kind == "Widget" else objects.VALUES
        self.object = {"apiVersion": api, "kind": self.kind, "metadata": {"name": self.name, "labels": {"l": "1"}}, **copy.deepcopy(fields)}

    def requests(self):
        first = self.changed(1) if self.chance.random() < 0.4 else copy.deepcopy(self.object)
        if self.chance.random() < 0.1:
            yield self.request("PATCH", self.one + "?fieldManager=first", self.applied(first), PATCHES["apply"])
        else:
            yield self.request("POST", self.path, first)
            if first != self.object:  # it may have been rejected
                yield self.request("POST", self.path, self.object)
        for _ in range(self.chance.randint(3, 8)):
            yield self.chance.choice([self.update, self.patch, self.patch, self.apply, self.apply, self.read, self.metadata, self.status, self.remove_dry])()
        yield self.remove()
        yield self.request("GET", self.one)

    def request(self, method, path, body=None, type_="application/json"):
        return {"method": method, "path": path, "kind": self.kind, "body": body, "type": type_}

    def changed(self, most=2):
        object_ = copy.deepcopy(self.object)
        for _ in range(self.chance.randint(1, most)):
            objects.change(self.chance, object_, self.values)
        return objects.taken_alike(object_)

    def applied(self, object_):
        """An object of which all versions apply the same: a roleRef and a fieldRef are one value since 1.22, and who applies a Job's empty spec owns it since
        1.21, with all that it has (structured-merge-diff PR 184): both are applied in whole, and so are the Job's template and its spec. The last
        items of a list or a map of a custom resource leave null, which is invalid, in 1.20: nobody applies them away."""
        object_ = objects.with_field_paths(copy.deepcopy(object_))
        if self.kind == "RoleBinding" and isinstance(object_.get("roleRef", ""), (dict, type(None))):
            object_["roleRef"] = {**self.object["roleRef"], **(object_["roleRef"] or {})}
        if self.kind == "Job":
            objects.fill_empty(object_, self.object, ("spec", "template", "spec"))
        # An empty nodeSelector takes the place of the one that is there since 1.22, which a Pod does not allow.
        spec = object_.get("spec") if self.kind == "Pod" else None
        if isinstance(spec, dict) and not spec.get("nodeSelector", True):
            spec["nodeSelector"] = self.object["spec"].get("nodeSelector", {})
        for name in ("tags", "parts", "any") if self.kind == "Widget" else ():
            if objects.owners_of_items(self.present(), name) == 1:
                objects.fill_empty(object_, self.object, ("spec", name))
        return object_

    def dry(self, path):
        return path + ("&" if "?" in path else "?") + "dryRun=All" if self.chance.random() < 0.15 else path

    def update(self):
        object_ = self.changed()
        if self.chance.random() < 0.5:
            version = self.chance.choice(["${version}"] * 4 + ["1"])
            if version == "1" and self.kind == "Service":  # an update that is invalid, too, is that first until 1.23 (kubernetes PR 96684)
                object_ = copy.deepcopy(self.object)
            object_["metadata"]["resourceVersion"] = version
        if self.chance.random() < 0.2:
            object_["metadata"]["uid"] = self.chance.choice(["${uid}", "other"])
        return self.request("PUT", self.dry(self.one), object_)

    def patch(self):
        how = self.chance.choice(["merge", "json", "strategic"])
        object_ = self.changed()
        body = {k: v for k, v in object_.items() if k not in ("apiVersion", "kind", "metadata")}
        if how == "strategic" and self.kind == "Secret" and "" in (self.present().get("data") or {}).values():
            how = "merge"  # bytes that are empty are null after the patch, for who owns them, until 1.28 (kubernetes PR 119229)
        if how == "merge":
            body = objects.without_nulls_in_lists(body)
        if how == "strategic":
            body = objects.without_nulls_in_new_maps(body, self.present())
        if how == "json":
            path = self.chance.choice([one for one in objects.paths_in(self.object) if not objects.is_name_of_variable(one)])
            if self.kind == "Namespace" and not self.present().get("metadata", {}).get("labels"):
                path = ("metadata", "annotations")  # since 1.21 there are labels, to which others can be added (KEP 2161)
            # What is copied or replaced is there: until 1.23 it is null, where it is not (evanphx/json-patch, partialDoc.get).
            body = [{"op": self.chance.choice(["add", "remove", "replace", "test", "copy"]), "from": "/metadata/name",
                     "path": "/" + "/".join(str(part).replace("~", "~0").replace("/", "~1") for part in path),
                     "value": self.chance.choice(self.values)}]
            if body[0]["op"] == "replace":
                body.insert(0, {**body[0], "op": "add"})
        return self.request("PATCH", self.dry(self.one), body, PATCHES[how])

    def apply(self):
        object_ = self.changed() if self.chance.random() < 0.6 else copy.deepcopy(self.object)
        object_ = self.applied(object_)
        if self.chance.random() < 0.3:  # what the next apply of this manager may leave out
            object_["metadata"]["annotations"] = {self.chance.choice(["x", "y"]): self.chance.choice(["1", "2"])}
        options = f"?fieldManager={self.chance.choice('ab')}" + self.chance.choice(["", "&force=true"])
        return self.request("PATCH", self.dry(self.one + options), object_, PATCHES["apply"])

    def status(self):
        if self.kind not in objects.STATUS:
            return self.read()
        return self.request("PATCH", self.dry(self.one + "/status"), {"status": self.chance.choice(objects.STATUS[self.kind])}, PATCHES["merge"])

    def metadata(self):
        change = self.chance.choice([{"namespace": "other"}] * self.namespaced + [
            {"labels": {"l": "2", "m": "1"}}, {"labels": None}, {"labels": {"l": "not valid!"}}, {"annotations": {"a.b/c": "x"}},
            {"annotations": {"a": 1}}, {"finalizers": ["fuzz.io/hold"]}, {"finalizers": []}, {"finalizers": ["plain"]},
            {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}]}, {"ownerReferences": [{"kind": "x"}]},
            {"name": "other"}, {"generation": 7}, {"uid": "other"}, {"resourceVersion": "1"},
            {"deletionTimestamp": "2020-01-01T00:00:00Z"}, {"creationTimestamp": None}, {"unknown": 1}, {"generateName": "g-"}])
        return self.request("PATCH", self.dry(self.one), {"metadata": change}, PATCHES["merge"])

    def read(self):
        # Of cluster-scoped kinds a real server has objects of its own.
        options = "" if not self.namespaced else self.chance.choice([
            "", f"?fieldSelector=metadata.name={self.name}", "?labelSelector=l=2", "?labelSelector=l in (1,2),!m", "?limit=2",
            f"?fieldSelector=metadata.name!={self.name}&limit=1", "?fieldSelector=spec.x=1", "?labelSelector=l=&=", "?resourceVersion=x"])
        return self.request("GET", (self.path if options else self.one) + options.replace(" ", "%20"))

    def remove_dry(self):
        return self.request("DELETE", self.one + "?dryRun=All")

    def remove(self):
        body = self.chance.choice([
            None, {"propagationPolicy": "Foreground"}, {"propagationPolicy": "Orphan"}, {"propagationPolicy": "other"},
            {"preconditions": {"uid": "${uid}"}}, {"preconditions": {"uid": "other"}}, {"gracePeriodSeconds": 0}])
        if body is not None:
            body = {"kind": "DeleteOptions", "apiVersion": "v1", **body}
        return self.request("DELETE", self.one, body)


class Run:
    def __init__(self, servers, show):
        self.servers, self.known, self.show = servers, Known(), show
        self.found = collections.Counter()
        self.sent = self.panics = 0
        self.width = 100000 if show else 600

    def compare(self, request, answers, history):
        """Returns false if the servers' states are not the same any more."""
        (status, a), (other, b) = answers
        asked = json.dumps(request)
        if status != other or status >= 400:
            if status == other:
                found = differences(rejection(a), rejection(b), "rejected")
            else:
                codes = "/".join(str(code) if code >= 300 else "ok" for code in (status, other))
                path = f"{codes} {first_cause(a if status >= 300 else b) or request['method']}"
                found = [(path, f"{status} {brief(a)}", f"{other} {brief(b)}")]
            for path, left, right in found:
                if not self.known.take(request["kind"], path):
                    self.report(request, path, left, right, history)
            return (status < 300) == (other < 300)
        a, b = (normal(server.with_uid(answer), asked) for server, answer in zip(self.servers, (a, b)))
        if a.get("kind") != b.get("kind"):
            a, b = {"kind": a.get("kind")}, {"kind": b.get("kind")}
        found = []
        for path, left, right in differences(a, b):
            path = re.sub(r"^(items\[\]\.)?managed\.", "managed ", path).removeprefix("items[].")
            found.append((path, left, right, self.known.take(request["kind"], path)))
        alike = not any((known or "").startswith("map ") and not path.startswith("managed ") for path, _, _, known in found)
        for path, left, right, known in found:
            # A request that changes the map in one version only is a new generation there.
            if not known and (alike or path != "metadata.generation"):
                self.report(request, path, left, right, history)
        return alike

    def report(self, request, path, left, right, history):
        key = (request["kind"], path)
        self.found[key] += 1
        if self.found[key] > 1 and not self.show:
            return
        print(f"\n{request['kind']} {path}: {self.servers[0].name} has {json.dumps(left)[:300]}, {self.servers[1].name} {json.dumps(right)[:300]}")
        for one in history[-6:]:
            print(f"    {one['method']} {one['path']} {one['type'].split('/')[-1]} {json.dumps(one['body'])[:self.width]}")

    def play(self, sequence):
        history = []
        self.known.empty = set()
        for server in self.servers:
            server.object = {}
        for request in sequence.requests():
            history.append(request)
            if "apply" in request["type"]:
                self.known.empty.update(applied_as_empty(request["body"]))
            self.sent += 1
            try:
                answers = [server.send(request) for server in self.servers]
            except Panic:  # there is nothing to compare with
                self.panics += 1
                break
            if not self.compare(request, answers, history):
                break
        for server in self.servers:  # whatever happened, it is not in the way of others
            server.send({"method": "PATCH", "path": sequence.one, "body": {"metadata": {"finalizers": None}}, "type": PATCHES["merge"]})
            server.send({"method": "DELETE", "path": sequence.one, "body": {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}})


def brief(answer):
    return answer.get("message", "")[:300] if isinstance(answer, dict) else str(answer)[:100]


class Differential(harness.TestCase):
    options = None

    def start_servers(self):
        plane = control_plane.ControlPlane(self)
        port = free_port()
        here = self.start(harness.Process("kube-devserver", [
            DOOR, "--bind-address=127.0.0.1", f"--secure-port={port}", f"--cert-dir={self.folder}/here", "--authorization-mode=RBAC",
            f"--token-auth-file={plane.folder}/tokens.csv", "--kubernetes-version=v1.20.2"]))
        here.wait_listening("api-server")
        servers = [Server("kube-apiserver", plane.port), Server("kube-devserver", port)]
        prepared = [
            ("/api/v1/namespaces", {"metadata": {"name": objects.NAMESPACE}}),
            (f"/api/v1/namespaces/{objects.NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}}),
            ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", objects.WIDGETS)]
        for server in servers:
            for path, body in prepared:
                self.assertEqual(server.send({"method": "POST", "path": path, "body": body})[0], 201, path)
            wait_until(lambda: server.send({"method": "GET", "path": f"/apis/fuzz.io/v1/namespaces/{objects.NAMESPACE}/widgets"})[0] == 200,
                       20, "the custom resource is served")
            for number in range(3):  # what lists have beside the sequence's object
                for api, kind, plural, fields in objects.BESIDE:
                    body = {"apiVersion": api, "kind": kind, "metadata": {"name": f"beside-{number}"}, **fields}
                    path = f"/{'apis' if '/' in api else 'api'}/{api}/namespaces/{objects.NAMESPACE}/{plural}"
                    self.assertEqual(server.send({"method": "POST", "path": path, "body": body})[0], 201, path)
        return servers

    def test_servers_respond_alike(self):
        chance = random.Random(self.options.seed)
        run = Run(self.start_servers(), self.options.all)
        number = 0
        while run.sent < self.options.operations:
            number += 1
            run.play(Sequence(random.Random(chance.random()), number, lambda: run.servers[0].object))
        self.note(f"seed {self.options.seed}: {run.sent} requests in {number} sequences, {sum(run.found.values())} differences of "
                  f"{len(run.found)} kinds; {sum(1 for n in run.known.rules.values() if n)} of {len(run.known.rules)} rules needed; "
                  f"{run.panics} panics of kube-apiserver")
        if self.options.all:
            for key, count in run.known.rules.items():
                print(count, *key)
        for (kind, path), count in run.found.most_common():
            print(f"{count:5} {kind} | {path}")
        self.assertEqual(sum(run.found.values()), 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    Differential.options = parser.parse_args()
    control_plane.assets()
    harness.unittest.main(argv=sys.argv[:1], verbosity=2)
