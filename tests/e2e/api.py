"""A plain REST client for an API server, of a kubeconfig with a token."""

import base64
import http.client
import json
import re
import ssl
import urllib.parse

from harness import pause


class ApiError(AssertionError):
    def __init__(self, method, path, status, body):
        super().__init__(f"{method} {path}: {status} {body[:500]!r}")
        self.status = status


def collection(kind, ns=None, group=None, version="v1"):
    """The path of a kind's objects, such as collection("secrets", "default")."""
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return f"{base}/namespaces/{ns}/{kind}" if ns else f"{base}/{kind}"


def kymas(ns):
    return collection("kymas", ns, "operator.kyma-project.io", "v1beta2")


class Api:
    """One kept-alive connection to one API server. Not to be shared between threads."""

    def __init__(self, kubeconfig):
        text = kubeconfig.read_text()
        def field(name):
            return re.search(rf'"?{name}"?: *"?([^",\s}}]+)', text)[1]
        url = urllib.parse.urlsplit(field("server"))
        self._prefix = url.path.rstrip("/")
        self._token = field("token")
        context = ssl._create_unverified_context()
        if "insecure-skip-tls-verify" not in text:
            context = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())
        self._connection = http.client.HTTPSConnection(url.hostname, url.port, timeout=60, context=context)

    def close(self):
        self._connection.close()

    __del__ = close

    def request(self, method, path, body=None, content_type="application/json"):
        """Sends and returns the decoded answer; any status but 2xx raises ApiError. 429, which a server answers while the
        storage of a new CustomResourceDefinition is initializing, is tried again."""
        for attempts_left in reversed(range(50)):
            try:
                return self._send(method, path, body, content_type)
            except ApiError as error:
                if error.status != 429 or attempts_left == 0:
                    raise
                pause(0.1)

    def _send(self, method, path, body, content_type):
        try:
            return self._send_once(method, path, body, content_type)
        except ConnectionError:  # a server ends connections that are idle, and may itself have been started anew
            self.close()
            if method != "GET":
                raise
        return self._send_once(method, path, body, content_type)

    def _send_once(self, method, path, body, content_type):
        data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}
        self._connection.request(method, self._prefix + path, data, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if not 200 <= answer.status < 300:
            raise ApiError(method, path, answer.status, text)
        return json.loads(text) if text[:1] == b"{" else text

    def get(self, path):
        """The object or list; None if there is none."""
        try:
            return self.request("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def stream(self, path):
        """Begins a watch, and returns the answer, whose lines are its events; the connection, a new one, is of no other use then."""
        self._connection.timeout = None
        self._connection.request("GET", self._prefix + path, None, {"Authorization": f"Bearer {self._token}"})
        answer = self._connection.getresponse()
        if answer.status != 200:
            raise ApiError("GET", path, answer.status, answer.read())
        return answer

    def follow(self, path, ended):
        """Each object that is there, and then each as it is created or changed, until the event `ended` is set."""
        version = None
        while not ended.is_set():
            if version is None:
                listed = self.get(path)
                version = listed["metadata"]["resourceVersion"]
                yield from listed["items"]
            self._connection.request("GET", f"{self._prefix}{path}?watch=1&timeoutSeconds=20&resourceVersion={version}", None,
                                     {"Authorization": f"Bearer {self._token}"})
            answer = self._connection.getresponse()
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    version = None
                    break
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] in ("ADDED", "MODIFIED"):
                    yield event["object"]
            answer.read()

    def apply(self, path, manifest):
        """Server-side apply of one manifest, YAML or an object, to the object's path."""
        return self.request("PATCH", f"{path}?fieldManager=e2e&force=true", manifest, "application/apply-patch+yaml")

    def patch(self, path, change):
        return self.request("PATCH", path, change, "application/merge-patch+json")

    def delete(self, path):
        return self.request("DELETE", path)
