"""What stands before an API server ends each watch at once, without an error: with an empty answer, 204, a redirect or a page. Lists work.
Changes arrive by lists, which become rare, and it is told that the watches are not live. Upstream: kubernetes/kubernetes#137089,
fabric8io/kubernetes-client#7898."""

import base64
import json
import os
import re
import shutil
import signal
import sys
import time
import urllib.request

import harness
from api import Api, collection
from control_plane import widget_crd
from dev import Dev
from harness import BINARY, DEV_BINARY, Pki, Process, Webhook, can_connect, free_port, metric_sum, skip, wait_until
from observation_test import DEFINITIONS, MANAGER, WATCHES, WIDGETS, Kcp, widget

WAYS = {"empty": "return 200;", "nothing": "return 204;", "redirect": "return 302 /login;",
        "page": "return 200 '<html>log in</html>\n';"}
PATIENCE = 150  # seconds until five watches have ended, with pauses of up to 30 s between them
WATCHERS = collection("watchers", "kcp-system", "operator.kyma-project.io", "v1beta2")


class FrontEnd(Process):
    """nginx before an API server, with a port for each way to end watches, and the kubeconfigs of them."""

    def __init__(self, folder, kubeconfig, ways, pki):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.kubeconfig = kubeconfig.read_text()
        self.server = re.search(r'"?server"?: *"?(https://[^",\s}]+)', self.kubeconfig)[1]
        self.ports = {way: free_port() for way in ways}
        self.tls, self.ca = pki.issue("server", folder.name), pki.ca
        self.write(ways)
        nginx = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin") or skip("nginx is not installed")
        super().__init__("front-end", [nginx, "-p", folder, "-e", "stderr", "-c", folder / "nginx.conf"], dies_by="TERM")
        wait_until(lambda: all(can_connect(port) for port in self.ports.values()) or not self.running(), 10, "nginx listens")
        if not self.running():
            raise AssertionError(f"nginx ended with {self.popen.returncode}:\n{self.tail()}")

    def write(self, ways):
        user = "user root;" if os.geteuid() == 0 else ""
        upstream = re.match(r"https://[^/]+", self.server)[0]
        servers = "".join(f"""
  server {{
    listen 127.0.0.1:{self.ports[way]} ssl; ssl_certificate {self.tls[0]}; ssl_certificate_key {self.tls[1]};
    location / {{
      default_type text/html;
      if ($arg_watch) {{ {ends} }}
      proxy_pass {upstream}; proxy_ssl_protocols TLSv1.3; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_read_timeout 1h;
    }}
  }}""" for way, ends in ways.items())
        (self.folder / "nginx.conf").write_text(f"""
{user} daemon off; worker_processes 1; pid {self.folder}/nginx.pid; error_log stderr crit;
events {{ worker_connections 512; }}
http {{
  client_body_temp_path {self.folder}/body; proxy_temp_path {self.folder}/proxy; access_log off;
  fastcgi_temp_path {self.folder}/fastcgi; uwsgi_temp_path {self.folder}/uwsgi; scgi_temp_path {self.folder}/scgi;{servers}
}}
""")

    def mend(self):
        """From now on all passes; a connection that is open goes on for as long as it is used."""
        self.write({way: "set $pass 1;" for way in self.ports})
        self.send(signal.SIGHUP)

    def kubeconfig_of(self, way):
        authority = base64.b64encode(self.ca.read_bytes()).decode()
        text = self.kubeconfig.replace(self.server, re.sub(r"https://[^/]+", f"https://localhost:{self.ports[way]}", self.server))
        text = re.sub(r'("?certificate-authority-data"?: *"?)[^",\s}]+', rf"\g<1>{authority}", text)
        file = self.folder / f"{way}.kubeconfig"
        file.write_text(text)
        return file


class FrontEnds(harness.TestCase):
    def test_changes_of_a_runtime_arrive_by_lists_and_watches_are_not_called_live(self):
        server = self.start(Process("api-server", [DEV_BINARY, "api-server", "--address", "127.0.0.1:0", "--dir", self.folder,
                                                   "--cluster", "skr"]))
        server.wait_listening("api-server")
        api = Api(self.folder / "skr.kubeconfig")
        self.addCleanup(api.close)
        api.request("POST", DEFINITIONS, widget_crd())
        def served():
            try:
                return api.get(WIDGETS)
            except AssertionError:
                return None
        wait_until(served, 30, "widgets are served")
        api.request("POST", WIDGETS, widget("first", 0))
        pki = Pki(self.folder / "pki")
        front = self.start(FrontEnd(self.folder / "front", self.folder / "skr.kubeconfig", WAYS, pki))
        managers = self.folder / "managers.json"
        managers.write_text(json.dumps(WATCHES))
        certificate = pki.issue("webhook", "webhook", cn="runtime-1")
        receiver = pki.issue("server", "kcp")
        kcps, webhooks = {}, {}
        for way in WAYS:
            kcps[way] = Kcp(0, receiver, pki.ca)
            self.addCleanup(kcps[way].stop)
            webhooks[way] = self.start(Webhook(*certificate, pki.ca, f"localhost:{kcps[way].port}", env={
                "MANAGERS_FILE": str(managers), "HEARTBEAT_INTERVAL": "1s",
                "KUBECONFIG": str(front.kubeconfig_of(way))}))

        def on_all(condition, patience, what):
            def bad():
                return {way for way in WAYS if not condition(way)}
            wait_until(lambda: not bad(), patience, lambda: f"{what}, but not for {bad()}:\n" + "\n".join(
                f"{kcps[way].heartbeats[-1:]}\n{webhooks[way].tail()}" for way in bad()))

        def told(way):
            return kcps[way].latest()["watches"][0] if kcps[way].heartbeats else {}
        # A redirect is an error, so that reviews alone count there. No watch holds up a resync for more than 30 s.
        on_all(lambda way: kcps[way].of(MANAGER).resyncs, 60, "a resync tells the first list")
        on_all(lambda way: told(way).get("state") == ("unobserved" if way == "redirect" else "catching-up") and told(way).get("reason"), 60,
               "the heartbeat says that the watch is not live, and why")
        on_all(lambda way: webhooks[way].metric("rw_observation_live_watches") == 0, 10, "so does the metric")
        begun = time.monotonic()
        api.request("POST", WIDGETS, widget("second", 0))
        on_all(lambda way: "second" in kcps[way].names or any(at > begun + 1 for at, _ in kcps[way].of(MANAGER).resyncs), PATIENCE,
               "a change arrives, or a resync after it")
        self.note(f"a change arrived {time.monotonic() - begun:.0f} s later at the latest; lists so far: " + ", ".join(
            f"{way} {webhooks[way].metric('rw_informer_lists_total'):.0f}" for way in WAYS))
        for way in WAYS:
            self.assertLessEqual(webhooks[way].metric("rw_informer_lists_total"), 5, way)
            self.assertTrue(webhooks[way].records(level="warning", resource="widgets"), way)
        front.mend()
        # At the latest: a pause of 30 s, the 30 s of a watch that show that it is one, and the next heartbeat.
        on_all(lambda way: told(way).get("state") == "live", 90, "the watches are live again")
        api.request("POST", WIDGETS, widget("third", 0))
        on_all(lambda way: "third" in kcps[way].names, 5, "a change arrives at once")
        on_all(lambda way: webhooks[way].metric("rw_observation_live_watches") == 1, 10, "the metric says so")

    def test_changes_in_kcp_arrive_and_status_names_the_watches(self):
        dev = self.start(Dev(self.folder / "dev", 1, "--no-manager")).wait_up()
        api = dev.kcp()
        pki = Pki(self.folder / "pki")
        front = self.start(FrontEnd(self.folder / "front", dev.folder / "kcp.yaml", {"empty": WAYS["empty"]}, pki))
        manager = self.start(Process("manager", [
            BINARY, "manager", "--kubeconfig", front.kubeconfig_of("empty"), "--listen-address", "127.0.0.1:0", "--metrics-address",
            "127.0.0.1:0", "--allow-local-runtimes"]))
        admin = manager.wait_listening("admin")

        def shown():
            return json.loads(harness.runtime_watcher("status", "--address", f"127.0.0.1:{admin}", "-o", "json").stdout)

        def conditions():
            return [each for each in shown()["conditions"] if each["type"] == "WatchNotLive"]
        wait_until(conditions, PATIENCE, lambda: f"the condition:\n{manager.tail()}")
        self.assertIn("watches end at once", conditions()[0]["message"])
        wait_until(lambda: "WatchNotLive" in shown()["verdict"]["message"], PATIENCE, lambda: f"the verdict: {shown()}\n{manager.tail()}")
        status = harness.runtime_watcher("status", "--address", f"127.0.0.1:{admin}")
        self.assertIn("WatchNotLive", status.stdout)
        watcher = next(iter(api.get(WATCHERS)["items"]))
        second = {"apiVersion": watcher["apiVersion"], "kind": "Watcher", "spec": watcher["spec"],
                  "metadata": {**{key: watcher["metadata"][key] for key in ("namespace", "labels") if key in watcher["metadata"]},
                               "name": "second"}}
        begun = time.monotonic()
        api.request("POST", WATCHERS, second)
        wait_until(lambda: api.get(f"{WATCHERS}/second").get("status", {}).get("state"), PATIENCE,
                   lambda: f"the Watcher is reconciled:\n{manager.tail()}")
        with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        lists = metric_sum(text, "rw_informer_lists_total", resource="watchers.operator.kyma-project.io")
        self.note(f"reconciled {time.monotonic() - begun:.0f} s later, after {lists} lists")
        front.mend()
        wait_until(lambda: not conditions(), 90, lambda: f"the condition goes: {conditions()}\n{manager.tail()}")


if __name__ == "__main__":
    sys.exit(harness.main())
