"""What the commands print: texts that runtimes chose reach a terminal without what controls it (a stand-in for the leader answers `status`
with escape sequences, ECMA-48, which no line of the output has), output that nobody has is an error, help fits the terminal, and a user
to impersonate is named in what KCP rejects."""

import http.server
import json
import os
import pathlib
import pty
import subprocess
import sys
import termios
import threading

import harness

ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u009b\r\n\x08"
PAGE = {"states": {"failed": 1}, "runtimes": [{"name": "a" + ESCAPES, "kyma": "kcp-system/a" + ESCAPES, "runtimeId": "r" + ESCAPES,
                                               "state": "failed", "reason": "R" + ESCAPES, "message": "m" + ESCAPES,
                                               "condition": "c" + ESCAPES, "nextStep": "n" + ESCAPES}],
        "verdict": {"verdict": "degraded", "causes": [{"text": "cause" + ESCAPES, "nextStep": "step" + ESCAPES}]}}


class Leader(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps(self.server.page).encode() if self.server.page else b"too many diffs\n"
        self.send_response(200 if self.server.page else 503)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Terminal(harness.TestCase):
    def leader(self, page=PAGE):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Leader)
        server.page = page
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        return server

    def test_output_that_cannot_be_written_is_an_error(self):
        """A full disk: 74, EX_IOERR of sysexits.h, from whatever prints."""
        address = f"127.0.0.1:{self.leader().server_port}"
        nowhere = self.folder / "kubeconfig"
        nowhere.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                                       "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                                       "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
                                       "users": [{"name": "u", "user": {}}]}))
        for arguments in (["--version"], ["version"], ["--help"], ["status", "--help"], ["completion", "bash"],
                          ["status", "--address", address], ["status", "--address", address, "-o", "json"],
                          ["doctor", "--kubeconfig", nowhere], ["uninstall", "--dry-run", "--kubeconfig", nowhere]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([harness.BINARY, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.note(f"{' '.join(map(str, arguments[:2]))}: {done.returncode} {done.stderr.strip()[-80:]}")
            self.assertEqual(done.returncode, 74, (arguments, done.stderr))
        # A reader that has enough is no error.
        for arguments, code in ((["status", "--address", address], 3), (["completion", "bash"], 0)):
            gone, end = os.pipe()
            os.close(gone)
            done = subprocess.run(["bash", "-c", "trap '' PIPE; exec \"$@\"", "bash", harness.BINARY, *arguments], stdout=end,
                                  stderr=subprocess.PIPE, timeout=60)
            os.close(end)
            self.assertEqual(done.returncode, code, (arguments, done.stderr))

    def test_help_fits_the_columns_of_the_terminal(self):
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}

        def columns_of(text):
            self.assertIn("--to-revision", text)
            return max(len(line) for line in text.splitlines() if len(line.split()) > 1)

        for given, limit in (({}, 80), ({"COLUMNS": "120"}, 120), ({"COLUMNS": "10"}, 60)):
            done = harness.runtime_watcher("help", "rollout", "undo", env={**environment, **given})
            self.note(f"{given}: {columns_of(done.stdout)} columns")
            self.assertLessEqual(columns_of(done.stdout), limit)
        self.assertGreater(columns_of(harness.runtime_watcher("help", "rollout", "undo", env={**environment, "COLUMNS": "120"}).stdout), 80)
        terminal, end = pty.openpty()
        termios.tcsetwinsize(end, (24, 100))
        done = subprocess.run([harness.BINARY, "help", "rollout", "undo"], stdin=end, stdout=end, env=environment, timeout=30)
        os.close(end)
        self.assertEqual(done.returncode, 0)
        columns = columns_of(os.read(terminal, 1 << 16).decode())
        os.close(terminal)
        self.note(f"terminal of 100: {columns} columns")
        self.assertTrue(80 < columns <= 100, columns)

    def test_user_to_impersonate_is_the_user_of_all_requests(self):
        program = pathlib.Path(harness.BINARY).parent / "kube-devserver"
        server = self.start(harness.Process("kube-devserver", [program, "--address=127.0.0.1:0", "--dir", self.folder, "--authorization=rbac"]))
        server.wait_listening("api-server")
        kubeconfig = self.folder / "default.kubeconfig"
        for command in (["rollout", "history"], ["status"], ["uninstall", "--dry-run"], ["doctor", "--service-account="]):
            with self.subTest(command):
                shown = [harness.runtime_watcher(*command, "--kubeconfig", kubeconfig, *flags)
                         for flags in ([], ["--as", "jane"], ["--as=jane", "--as-group=system:masters"])]
                own, jane, admin = (done.stdout + done.stderr for done in shown)
                self.note(f"{command}: {jane.strip()[-200:]}")
                self.assertIn("jane", jane)
                self.assertNotIn("jane", own)
                self.assertNotIn('User "jane"', admin)
        done = harness.runtime_watcher("status", "--kubeconfig", kubeconfig, "--as-group", "system:masters")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--as-group needs --as", done.stderr)

    def test_status_prints_no_control_characters_of_a_runtime(self):
        server = self.leader()
        for arguments in ([], ["-o", "wide"], ["a"], ["-o", "json"], ["-o", "yaml"], ["-o", "name"]):
            done = harness.runtime_watcher("status", "--address", f"127.0.0.1:{server.server_port}", *arguments)
            shown = done.stdout + done.stderr
            self.note(f"status {' '.join(arguments)}: {len(shown)} characters")
            self.assertIn("owned", shown)
            self.assertEqual([each for each in shown if (ord(each) < 0x20 and each != "\n") or 0x7F <= ord(each) < 0xA0], [], arguments)

    def test_formats_of_status_are_those_of_kubectl(self):
        page = {"states": {"installed": 1}, "runtimes": [{"kyma": "runtime-1", "condition": "well", "since": "2026-01-01T00:00:00Z"}]}
        address = f"127.0.0.1:{self.leader(page).server_port}"
        for output, expected in (
                ("name", "kyma.operator.kyma-project.io/runtime-1\n"),
                ("yaml", 'states:\n  installed: 1\nruntimes:\n- kyma: runtime-1\n  condition: well\n  since: "2026-01-01T00:00:00Z"\n')):
            done = harness.runtime_watcher("status", "--address", address, "-o", output)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, expected, ""))
        # Without a leader no line of the standard output is a name.
        for output, stdout, stderr in (("name", "", "unknown: no leader: "), ("yaml", "verdict:\n  level: unknown\n", "")):
            done = harness.runtime_watcher("status", "--address", f"127.0.0.1:{harness.free_port()}", "-o", output)
            self.assertEqual((done.returncode, done.stdout[:len(stdout) or None], done.stderr[:len(stderr) or None]), (1, stdout, stderr))

    def test_leader_without_time_is_to_be_asked_again(self):
        address = f"127.0.0.1:{self.leader(None).server_port}"
        done = harness.runtime_watcher("diff", "runtime-1", "--address", address)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, " responds 503: .*\n  fix: run it again in 5 s\n")

    def test_version_of_another_leader_is_said_once(self):
        own = harness.runtime_watcher("--version").stdout.split()[1]
        address = f"127.0.0.1:{self.leader({**PAGE, 'version': '9.9.9'}).server_port}"
        done = harness.runtime_watcher("status", "--address", address, "-o", "json")
        self.assertEqual(done.stderr, f"warning: this program has version {own}, and the manager 9.9.9: what they say may differ\n")
        address = f"127.0.0.1:{self.leader({**PAGE, 'version': own}).server_port}"
        self.assertEqual(harness.runtime_watcher("status", "--address", address).stderr, "")


if __name__ == "__main__":
    sys.exit(harness.main())
