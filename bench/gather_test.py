#!/usr/bin/env python3
"""Holds gather.py: what it makes of lines that were recorded, and that it knows each benchmark of this folder. Measures nothing."""

import contextlib
import io
import json
import pathlib
import re
import shutil
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import gather  # noqa: E402
from gather import BENCHES, ROOT, Bench  # noqa: E402

# Prints lines as bench_clusters and pipeline.sh did, and others that a round differs in.
RECORDED = r"""
import pathlib, sys
rounds = pathlib.Path(sys.argv[1])
number = rounds.stat().st_size if rounds.exists() else 0
rounds.write_text("x" * (number + 1))
size = int(sys.argv[2])
print("a text that is no figure")
print('{"name":"curve/server_resident","value":%d,"unit":"KiB","limit":64}' % (size / 10 + 10 * number))
print('{"name":"curve/review","value":%f,"unit":"us of CPU","peer":"nginx, constant","peer_value":10,"ratio":%f,"ratio_limit":1.1}'
      % (11 + number, 1.1 + number / 10))
sys.exit(1 if number else 0)
"""


class Gather(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rw-gather-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.out = self.folder / "out"

    def script(self, text):
        path = self.folder / f"{len(list(self.folder.iterdir()))}.py"
        path.write_text(text)
        return str(path)

    def run_all(self, benches, *arguments):
        """Exit code, standard output, standard error and results by benchmark."""
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as log:
            code = gather.main(benches, [*arguments, "--out", str(self.out)])
        results = json.loads((self.out / "results.json").read_text())["benchmarks"]
        return code, out.getvalue(), log.getvalue(), {each["name"]: each for each in results}

    def test_rounds_become_medians_table_and_plot(self):
        bench = Bench("curve", f"{self.script(RECORDED)} {self.folder / 'rounds-{}'} {{}}", 20, "clusters", (100, 200))
        code, text, log, results = self.run_all((bench,), "--rounds", "3")
        figures = results["curve"]["figures"]
        self.assertEqual([(each["name"], each["size"]) for each in figures],
                         [("server_resident", 100), ("review", 100), ("server_resident", 200), ("review", 200)])
        resident, review = figures[:2]
        self.assertEqual((resident["median"], resident["minimum"], resident["maximum"], resident["rounds"]), (20, 10, 30, 3))
        self.assertEqual(resident["limits"], [{"of": "value", "at_most": 64, "met": True}])
        self.assertEqual((review["ratio"], review["ratio_minimum"], review["peer"], review["peer_median"]), (1.2, 1.1, "nginx, constant", 10))
        self.assertEqual(review["limits"], [{"of": "ratio", "at_most": 1.1, "met": False}])
        self.assertEqual(code, 1)
        self.assertIn("bench: curve missed a limit: review, 100 clusters: at most 1.1 ×", log)
        row = "| review, 200 clusters | 12 us of CPU | 11 to 13 | 3 | 1.2 (1.1 to 1.3) | nginx, constant: 10 | at most 1.1 × **missed** |"
        self.assertIn(row, text)
        self.assertIn(row, (self.out / "results.md").read_text())
        self.assertEqual({"cpu", "cores", "kernel", "built_with"}, set(results["curve"]["machine"]))
        self.assertIn(f"{results['curve']['date']}, revision {results['curve']['revision']}: {results['curve']['machine']['cpu']}", text)
        plots = sorted(path.name for path in (self.out / "plots").iterdir()) if shutil.which("gnuplot") else []
        if plots:
            self.assertEqual(plots, ["curve_kib.svg", "curve_us_of_cpu.svg"])
            self.assertIn("<svg", (self.out / "plots" / plots[0]).read_text())
            self.assertIn("server_resident", (self.out / "plots" / plots[0]).read_text())
            self.assertIn("](plots/curve_kib.svg)", (self.out / "results.md").read_text())
        else:
            self.assertIn("no gnuplot", log)

    def test_benchmark_that_fails_does_not_stop_the_others(self):
        good = "print('{\"name\":\"a\",\"value\":1,\"unit\":\"s\"}')\n"
        benches = (Bench("broken", self.script("import sys; sys.exit('it broke')"), 20),
                   Bench("raising", self.script("print('{\"name\":\"a\",\"value\":2,\"unit\":\"s\",\"limit\":1}')\n1 / 0"), 20),
                   Bench("silent", self.script("pass"), 20),
                   Bench("garbled", self.script("print('{\"name\":\"a\",\"value\":NaN,\"unit\":\"s\"}')"), 20),
                   Bench("unlimited", self.script("print('{\"name\":\"a\",\"value\":1,\"unit\":\"s\",\"ratio_limit\":1}')"), 20),
                   Bench("slow", self.script("import time; time.sleep(60)"), 0.3),
                   Bench("absent", "build/there-is-none", 20),
                   Bench("toolless", "false", 20, tools=("no-such-tool",)),
                   Bench("unable", self.script("import sys; print('no valgrind', file=sys.stderr); sys.exit(77)"), 20),
                   Bench("good", self.script(good), 20))
        code, text, log, results = self.run_all(benches, "--quick")
        self.assertEqual(code, 1)
        failed = {name: each["failed"] for name, each in results.items() if "failed" in each}
        self.assertEqual(set(failed), {"broken", "raising", "silent", "garbled", "unlimited", "slow", "absent"})
        self.assertIn("it broke", failed["broken"])
        self.assertIn("not through after 0.3 s", failed["slow"])
        skipped = {name: each["skipped"] for name, each in results.items() if "skipped" in each}
        self.assertEqual(skipped, {"toolless": "no no-such-tool", "unable": "no valgrind"})
        self.assertEqual([name for name, each in results.items() if each["figures"]], ["good"])
        self.assertIn("bench: broken failed: ", log)
        self.assertIn("bench: unable was skipped: no valgrind", log)

    def test_size_that_is_too_much_here_is_skipped_alone(self):
        script = self.script("import sys\nif sys.argv[1] == '2':\n    print('too many', file=sys.stderr)\n    sys.exit(77)\n"
                             "print('{\"name\":\"a\",\"value\":1,\"unit\":\"s\"}')\n")
        code, text, log, results = self.run_all((Bench("curve", f"{script} {{}}", 20, "clusters", (1, 2, 3)),), "--rounds", "1")
        self.assertEqual(code, 0)
        self.assertEqual([each["size"] for each in results["curve"]["figures"]], [1, 3])
        self.assertEqual(results["curve"]["skipped"], "2 clusters: too many")
        self.assertIn("Skipped: 2 clusters: too many.", text)
        self.assertIn("bench: curve was skipped: 2 clusters: too many", log)

    def test_revision_is_dirty_by_sources_and_not_by_results(self):
        (self.folder / "bench" / "plots").mkdir(parents=True)
        files = [self.folder / name for name in ("main.cpp", "bench/results.md", "bench/results.json", "bench/plots/a.svg")]
        with mock.patch.object(gather, "ROOT", self.folder):
            gather.git("init")
            for path in files:
                path.write_text("first")
            gather.git("add", ".")
            gather.git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-m", "first")
            clean = gather.revision()
            self.assertRegex(clean, "^[0-9a-f]{12}$")
            for path in files[1:]:
                path.write_text("second")
            self.assertEqual(gather.revision(), clean)
            files[0].write_text("second")
            self.assertEqual(gather.revision(), clean + "-dirty")

    def test_results_of_an_earlier_run_stay_with_their_revision(self):
        benches = [Bench(name, self.script(f"print('{{\"name\":\"{name}\",\"value\":1,\"unit\":\"s\"}}')"), 20) for name in "abc"]
        def shown(*arguments):
            _, text, _, results = self.run_all(benches, *arguments)
            for each in results.values():
                self.assertIn(f"revision {each['revision']}: ", text)
            return [(name, each["revision"], each["figures"][0]["rounds"]) for name, each in results.items()]
        with mock.patch.object(gather, "revision", lambda: "first"):
            self.assertEqual(shown("--rounds", "1"), [("a", "first", 1), ("b", "first", 1), ("c", "first", 1)])
        with mock.patch.object(gather, "revision", lambda: "second"):
            self.assertEqual(shown("--only", "b", "--rounds", "2"), [("a", "first", 1), ("b", "second", 2), ("c", "first", 1)])
            self.assertEqual(shown("--only", "b", "--quick"), [("b", "second", 1)])

    def test_each_benchmark_is_known_and_has_the_options_that_it_is_given(self):
        here = ROOT / "bench"
        scripts = {path.name for path in (*here.glob("*.py"), *here.glob("*.sh"))}
        programs = set(re.findall(r"add_executable\((\w+)", (here / "CMakeLists.txt").read_text()))
        commands = [bench.command.split()[0] for bench in BENCHES]
        self.assertEqual({name.removeprefix("bench/") for name in commands if name.startswith("bench/")},
                         scripts - {"run.sh", "gather.py", "gather_test.py", "figures.py"})
        self.assertEqual({name.removeprefix("build/bench/") for name in commands if name.startswith("build/")},
                         programs - {"bench_instructions", "bench_open_loop"})  # which scripts start
        for bench, command in zip(BENCHES, commands):
            for option in re.findall(r"--(?!benchmark_)[a-z-]+", f"{bench.command} {bench.quick}"):
                self.assertIn(option, (ROOT / command).read_text(), bench.name)


if __name__ == "__main__":
    unittest.main()
