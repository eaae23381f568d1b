"""`dev` on a terminal: progress while it starts, then a table of the runtimes below the events. The terminal is a pty, and a
small emulator shows what a person would see."""

import base64
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading

import harness
from api import Api, ApiError, collection
from dev import SECRET, WATCHED
from harness import DEV_BINARY, wait_until

PATIENCE = 30
LEASE = collection("leases", "kcp-system", "coordination.k8s.io") + "/runtime-watcher-manager"
LEADER = collection("secrets", "runtime-watcher-system") + "/runtime-watcher-leader"


class Screen:
    """What a terminal shows of the bytes that it gets. Knows what `dev` uses, and rejects everything else."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.lines = [""]  # all that were ever shown; the last `rows` are visible
        self.wrapped = [False]  # whether a line is the rest of the one before
        self.row, self.column = 0, 0
        self.cursor = True
        self.frames = []  # the lines from the last redrawn one on, and whether each is wrapped, at the end of each drawing
        self.unknown = []
        self._rest = b""

    def visible(self):
        return self.lines[-self.rows:]

    def feed(self, data):
        text = (self._rest + data).decode("ascii", "backslashreplace")
        self._rest = b""
        while text:
            found = re.match(r"\x1b\[(\??)([0-9;]*)([A-Za-z])", text)
            if found:
                self._control(*found.groups())
                text = text[found.end():]
            elif text[0] == "\x1b" and len(text) < 8:
                self._rest = text.encode()  # the end of it has not arrived yet
                return
            else:
                self._character(text[0])
                text = text[1:]

    def _control(self, private, number, letter):
        if private and letter in "hl" and number == "25":
            self.cursor = letter == "h"
            if self.cursor:
                self.frames.append(list(zip(self.lines, self.wrapped))[-self.rows:])
        elif letter == "A" and not private:
            self.row = max(self.row - int(number or 1), len(self.lines) - self.rows, 0)
        elif letter == "J" and number == "" and not private:
            self.lines[self.row] = self.lines[self.row][:self.column]
            del self.lines[self.row + 1:], self.wrapped[self.row + 1:]
        elif letter != "m":
            self.unknown.append(private + number + letter)

    def _character(self, c):
        if c == "\r":
            self.column = 0
        elif c == "\n":
            self._down(False)
        elif " " <= c <= "~":
            if self.column == self.columns:
                self.column = 0
                self._down(True)
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[:self.column] + c + line[self.column + 1:]
            self.column += 1
        else:
            self.unknown.append(c)

    def _down(self, wrapped):
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")
            self.wrapped.append(wrapped)
        self.wrapped[self.row] = wrapped


class OnTerminal(harness.Process):
    """`dev` with its standard output on a terminal, and with `errors` also its standard error."""

    def __init__(self, folder, *options, errors=False, rows=24, columns=80, **environment):
        self.folder = folder
        self.screen = Screen(rows, columns)
        self.raw = b""
        self._apis = []
        self._master, slave = pty.openpty()
        self.resize(rows, columns)
        wrapper = ["sh", "-c", 'exec "$@" 2>&1', "sh"] if errors else []
        unset = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        super().__init__("dev", [*wrapper, DEV_BINARY, "dev", "--dir", folder, *options], stdout=slave,
                         env={**unset, "TERM": "xterm", **environment})
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the process has ended
                return
            if not data:
                return
            self.raw += data
            self.screen.feed(data)

    def resize(self, rows, columns):
        self.screen.rows, self.screen.columns = rows, columns
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def api(self, name):
        """A connection to "kcp", or to a runtime as in "skr-runtime-1"; closed with the process."""
        self._apis.append(Api(self.folder / f"{name}.yaml"))
        return self._apis[-1]

    def interrupt(self):
        """As Ctrl-C does; returns the exit code when all that was written has been read."""
        self.send(signal.SIGINT)
        code = self.wait(PATIENCE)
        self.read_all()
        return code

    def read_all(self):
        """Waits for the last output of a process that has ended."""
        self._reader.join(10)

    def table(self):
        """The rows of the table in the last complete drawing: name to its line; with the totals as \"\"."""
        frames = self.screen.frames
        lines = [line for line, _ in frames[-1]] if frames else []
        headers = [i for i, line in enumerate(lines) if line.startswith("RUNTIME ")]
        if not headers:
            return {}
        rows = lines[headers[-1] + 1:]
        return {**{line.split()[0]: line for line in rows[:-1]}, "": rows[-1]} if rows else {}

    def kill(self):
        for each in self._apis:
            each.close()
        super().kill()

    def tail(self, lines=25):
        return "\n".join(["on the terminal:", *self.screen.visible(), super().tail(lines)])


class Table(harness.TestCase):
    def start_dev(self, *options, **how):
        self.dev = self.start(OnTerminal(self.folder / "dev", *options, **how))
        return self.dev

    def until(self, condition, what):
        def look():
            if not self.dev.running():
                raise AssertionError(f"dev has ended:\n{self.dev.tail()}")
            return condition()
        return wait_until(look, PATIENCE, lambda: f"{what}:\n{self.dev.tail()}", every=0.02)

    def all_live(self, count):
        rows = self.dev.table()
        return (rows.get("", "").startswith(f"{count} live, 0 degraded, 0 silent; ")
                and sum(line.split()[1:3] == ["installed", "live"] for line in rows.values()) == count)

    def check_drawings(self, screen):
        """Each drawing is complete, and none of its lines is wrapped."""
        self.assertEqual(screen.unknown, [])
        tables = 0
        for frame in screen.frames:
            headers = [i for i, (line, _) in enumerate(frame) if line.startswith("RUNTIME ")]
            self.assertLessEqual(len(headers), 1, frame)
            tables += len(headers)
            for line, wrapped in frame[headers[0] if headers else len(frame):]:
                self.assertFalse(wrapped, line)
        self.assertGreater(tables, 0)

    def test_table_shows_the_runtimes_and_their_events_until_the_end(self):
        dev = self.start_dev("--runtimes", 3)
        self.until(lambda: self.all_live(3), "three runtimes are live")
        self.assertIn(b"starting: KCP's API server", dev.raw)
        self.assertEqual(sum(line.startswith("starting:") for line in dev.screen.lines), 0, dev.tail())
        self.assertIn("KCP and 3 runtimes are up. How they are:", dev.screen.lines)
        self.assertIn(f"  http://127.0.0.1:{dev.wait_listening('dev-admin')}/", dev.screen.lines)
        dev.api("skr-runtime-2").patch(WATCHED, {"spec": {"channel": "fast"}})
        def row():
            return self.dev.table().get("runtime-2", "").split()
        self.until(lambda: len(row()) > 6 and int(row()[3]) > 0 and row()[6] == "Kyma", "the table has the event")
        self.assertEqual(list(dev.table())[0], "runtime-2", "the latest event comes first")
        text = "".join(dev.screen.lines)
        self.assertIn("runtime-2: Kyma kyma-system/default changed -> Kyma kcp-system/runtime-2 reconciled", text)
        self.assertIn(" events/s; median ", dev.table()[""])
        self.check_drawings(dev.screen)

        dev.resize(10, 50)
        drawn = len(dev.screen.frames)
        self.until(lambda: len(dev.screen.frames) > drawn and "runtime-2" in dev.table(), "it is drawn for the new size")
        self.assertLessEqual(max(map(len, dev.table().values())), 50)
        self.assertEqual(dev.interrupt(), 0, dev.tail())
        self.assertTrue(dev.screen.cursor)
        self.assertIn(b"\x1b[?25h", dev.raw)
        self.assertNotIn("RUNTIME ", "".join(dev.screen.lines))
        self.assertTrue("".join(dev.screen.lines).endswith("stopping: no new events, delivering what was accepted"), dev.tail())
        self.assertEqual(dev.screen.lines[-1], "")

    def test_progress_is_replaced_by_a_table_that_leaves_the_cursor_visible(self):
        dev = self.start_dev("--runtimes", 60)
        self.until(lambda: dev.table().get("", "").startswith("60 live, "), "all runtimes are live")
        self.assertRegex(dev.raw, rb"starting: KCP is up; [0-9]+ of 60 runtimes prepared, [0-9]+ installed")
        self.until(lambda: dev.table().get("and") == "and 48 more, all live", "the watcher is on all that are not shown")
        self.assertEqual(len(dev.table()), 14)
        dev.kill()
        dev.read_all()
        self.check_drawings(dev.screen)
        self.assertTrue(dev.screen.cursor, "the cursor is visible although the process was killed")

    def test_warnings_appear_above_the_table_without_colours(self):
        dev = self.start_dev("--runtimes", 1, errors=True, NO_COLOR="1")
        self.until(lambda: self.all_live(1), "the runtime is live")
        dev.api("skr-runtime-1").patch(SECRET, {"data": {"tls.key": "bm8ga2V5"}})
        self.until(lambda: '"msg":"the webhook stays as it is"' in "".join(dev.screen.lines), "the warning is shown")
        self.until(lambda: "runtime-1" in dev.table(), "the table is there")
        self.check_drawings(dev.screen)
        self.assertNotIn('"level":"info"', "".join(dev.screen.lines))
        self.assertEqual(dev.interrupt(), 0, dev.tail())
        self.assertNotRegex(dev.raw, rb"\x1b\[[0-9;]*m")
        self.assertNotIn("RUNTIME ", "".join(dev.screen.lines))

    def test_table_is_erased_when_the_manager_fails(self):
        dev = self.start_dev("--runtimes", 1, errors=True)
        self.until(lambda: self.all_live(1), "the runtime is live")
        dev.api("kcp").patch(LEASE, {"spec": {"holderIdentity": "another"}})
        self.assertEqual(dev.wait(PATIENCE), 1, dev.tail())
        dev.read_all()
        self.check_drawings(dev.screen)
        self.assertTrue(dev.screen.cursor)
        self.assertNotIn("RUNTIME ", "".join(dev.screen.lines))
        self.assertIn("this replica no longer leads and ends", "".join(dev.screen.lines))

    def test_terminal_that_cannot_move_its_cursor_gets_lines(self):
        dev = self.start_dev("--runtimes", 1, TERM="dumb")
        self.until(lambda: b"runtimes are up" in dev.raw, "it is up")
        self.assertEqual(dev.interrupt(), 0, dev.tail())
        self.assertNotIn(b"\x1b", dev.raw)
        self.assertNotIn(b"starting", dev.raw)

    def test_pipe_gets_lines(self):
        lines = []
        dev = self.dev = self.start(harness.Process(
            "dev", [DEV_BINARY, "dev", "--dir", self.folder / "dev", "--runtimes", 1], env={**os.environ, "TERM": "xterm"},
            on_line=lambda _, line: lines.append(line)))
        self.until(lambda: any(b"are up" in line for line in lines), "it is up")
        skr = Api(self.folder / "dev" / "skr-runtime-1.yaml")
        self.addCleanup(skr.close)
        values = iter(range(1000))
        def heard():
            skr.patch(WATCHED, {"spec": {"channel": f"channel-{next(values)}"}})
            return any(b"reconciled" in line for line in lines)
        wait_until(heard, PATIENCE, "an event is shown", every=0.2)
        self.assertEqual(dev.terminate(), 0, dev.tail())
        self.assertEqual(lines[0], b"KCP and 1 runtimes are up. How they are:\n")
        self.assertEqual([line for line in lines if b"\x1b" in line or b"stopping" in line], [])

    def test_printed_commands_work_as_they_are(self):
        lines = []
        dev = self.dev = self.start(harness.Process("dev", [DEV_BINARY, "dev", "--dir", self.folder / "dev", "--runtimes", 2],
                                                    on_line=lambda _, line: lines.append(line.decode())))
        self.until(lambda: any("http://" in line for line in lines), "it has said what to try")
        commands = [line.strip() for line in lines if "/runtime-watcher " in line]
        self.assertEqual([line.split()[1] for line in commands], ["status", "doctor", "rollout"], lines)
        for command in commands:
            seen = []
            def works():
                seen[:] = [subprocess.run(command, shell=True, capture_output=True, text=True, timeout=PATIENCE)]
                return seen[0].returncode == 0 and "not proven  " not in seen[0].stdout
            wait_until(works, PATIENCE, lambda: f"{command} works: {seen}\n{dev.tail()}", every=0.2)
            self.assertEqual(seen[0].stderr, "", command)
        # The pages are for those with the token that is in the leader's Secret.
        kcp = Api(self.folder / "dev" / "kcp.yaml")
        self.addCleanup(kcp.close)
        port = base64.b64decode(kcp.get(LEADER)["data"]["port"]).decode()
        pod = kcp.get(LEASE)["spec"]["holderIdentity"].rpartition("_")[0]
        for name, status in ((f"{pod}:{port}", 401), ("other:1", 404)):
            with self.assertRaises(ApiError) as raised:
                kcp.request("GET", f"{collection('pods', 'kcp-system')}/{name}/proxy/runtimes?limit=1")
            self.assertEqual(raised.exception.status, status)


if __name__ == "__main__":
    harness.main()
