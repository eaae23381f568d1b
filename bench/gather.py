#!/usr/bin/env python3
"""Runs the benchmarks one after another, each for some rounds, and writes the medians with the least and the greatest value, and
with what they are compared with in the same run: results.json, results.md and, with gnuplot, a plot of each curve in plots/.

    bench/run.sh [--quick] [--only NAME,...] [--rounds N] [--out DIR] [--no-build] [--list]

All of it takes some hours. --quick takes one round of smaller sizes, in which figures say little and limits may be missed: it shows
that all benchmarks work. With --only, the others' results that are in DIR stay; each has its date, revision and machine. DIR is bench,
or build/bench/quick for a quick run. The tables are on the standard output too, progress on the standard error. A benchmark without its
tools is skipped, and so is a size that is too much for the machine. Ends with 1 if a limit is missed, or a benchmark fails.
"""

import argparse
import collections
import dataclasses
import datetime
import json
import math
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import figures
import instructions

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROUNDS = 5
SKIPPED = 77  # a benchmark's exit code where it cannot run


@dataclasses.dataclass(frozen=True)
class Bench:
    name: str
    command: str  # from the root of the tree; {} is the size
    limit: int  # seconds for one round
    of: str = ""  # what the size is of
    sizes: tuple = ()
    quick_sizes: tuple = ()
    quick: str = ""  # arguments that are added to the command of a quick run
    tools: tuple = ()
    rounds: int = ROUNDS

    def commands(self, quick):
        """Each size, None if it has none, and its command."""
        for size in (self.quick_sizes if quick else self.sizes) or (None,):
            argv = [part.replace("{}", str(size)) for part in self.command.split() + (self.quick.split() if quick else [])]
            yield size, ([sys.executable, "-B"] if argv[0].endswith(".py") else []) + argv


# A program takes the last of an option that is there twice.
BENCHES = (
    Bench("pipeline", "bench/pipeline.sh --rounds 1 --connections {}", 300, "connections", (8, 32, 128), (32,), "--seconds 1",
          ("nginx", "wrk", "h2load", "curl")),
    Bench("open_loop", "bench/open_loop.py --rate {}", 300, "requests a second", (1000, 5000, 10000, 20000), (1000,), "--seconds 1",
          ("nginx",)),
    Bench("observation", "bench/observation.py --rounds 1", 900, quick="--writes 500"),
    Bench("api_server", "bench/api_server.py --rounds 1", 600, quick="--writes 500"),
    Bench("review", "build/bench/bench_review", 120, quick="--benchmark_min_time=0.05"),
    # A count is the same each time.
    Bench("instructions", "bench/instructions.py", 600, tools=("valgrind",), rounds=1),
    Bench("informer", "build/bench/bench_informer {}", 120, "bytes of an object", (1024, 4096, 16384), (1024, 4096)),
    Bench("work_queue", "build/bench/bench_work_queue", 120),
    Bench("channel", "build/bench/bench_channel", 120),
    Bench("clusters", "build/bench/bench_clusters {}", 400, "clusters", (250, 500, 1000), (50, 100)),
    Bench("connections", "build/bench/bench_connections {}", 120, "connections", (250, 1000, 4000), (100, 400)),
    Bench("history", "build/bench/bench_history {}", 300, "runtimes", (1000, 5000, 10000), (500, 1000)),
    Bench("devserver", "bench/devserver.py --objects {}", 300, "objects", (2500, 5000, 10000), (2000, 4000)),
    Bench("listener", "build/bench/bench_listener", 120),
    Bench("bootstrapper", "build/bench/bench_bootstrapper {}", 400, "runtimes", (250, 500, 1000), (100, 200)),
    Bench("system", "bench/system.py --rounds 1", 900, quick="--runtimes 20 --changes 40 --seconds 5"),
    Bench("fleet", "bench/fleet.py --rounds 1 --runtimes {}", 900, "runtimes", (250, 500, 1000), (40,), "--ill 6"),
    Bench("rollout", "bench/rollout.py", 1200, quick="--runtimes 100 --hanging 1 --only direct,crash"),
    Bench("busy", "bench/busy.py", 900, quick="--runtimes 10 --seconds 5"),
    Bench("page", "bench/page.py", 1800, quick="--runtimes 50 --seconds 5"),
    Bench("silent", "bench/silent.py --seconds 60", 3600, quick="--runtimes 20 --seconds 5"),
    Bench("manager", "bench/manager.py --runtimes {}", 2400, "runtimes", (1000, 2500, 5000), (20,)),
    Bench("scale", "bench/scale.py --runtimes {}", 7200, "runtimes", (1250, 2500, 5000, 10000, 25000), (20,), "--seconds 5", rounds=1),
)


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def end(process):
    """Of its whole group, first as from a keyboard, so that it clears away what it made."""
    for number, patience in ((signal.SIGINT, 20), (signal.SIGKILL, 10)):
        if process.poll() is None:
            os.killpg(process.pid, number)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                continue


def lines_of(text):
    """The figures that a benchmark printed."""
    found = []
    for text_line in text.splitlines():
        if not text_line.startswith("{"):
            continue
        line = json.loads(text_line)
        if not isinstance(line["name"], str) or not isinstance(line["unit"], str) or not math.isfinite(line["value"]):
            raise ValueError(text_line)
        figures.is_kept(line)  # a limit of what the line does not have is an error
        found.append(line)
    return found


def run_round(argv, limit):
    """Runs a benchmark once; returns its figures."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+", errors="replace") as log:
        try:
            process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=log, start_new_session=True,
                                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        except OSError as error:
            raise Failed(f"{argv[0]}: {error.strerror}") from error
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            raise Failed(f"not through after {limit} s") from None
        finally:
            end(process)
        out.seek(0)
        log.seek(0)
        said = log.read()
        printed = out.read()
        last = " / ".join((said.strip() or printed.strip()).splitlines()[-3:])
        if process.returncode == SKIPPED:
            raise Skipped(last)
        try:
            lines = lines_of(printed)
        except (ValueError, KeyError, TypeError) as error:
            raise Failed(f"printed what is no figure: {error!r}") from error
        # A benchmark ends with 1 where a limit is missed, and so does Python where an exception is not caught.
        is_through = process.returncode == 0 or process.returncode == 1 and not all(map(figures.is_kept, lines))
        if not is_through or not lines or "Traceback (most recent call last)" in said:
            raise Failed(f"ended with {process.returncode}: {last}")
        return lines


def summary(bench, size, lines):
    """Of the rounds of a figure."""
    def bounds(key, prefix=""):
        values = [line[key] for line in lines]
        return {prefix + "median": statistics.median(values), prefix + "minimum": min(values), prefix + "maximum": max(values)}

    out = {"name": lines[0]["name"].removeprefix(bench.name + "/")}
    if size is not None:
        out.update(size=size, of=bench.of)
    out.update(unit=lines[0]["unit"], **bounds("value"), rounds=len(lines))
    if "peer" in lines[0]:
        out["peer"] = lines[0]["peer"]
    if all("ratio" in line for line in lines):
        out.update(peer_median=statistics.median(line["peer_value"] for line in lines), ratio=bounds("ratio")["median"],
                   **{"ratio_" + key: value for key, value in bounds("ratio").items() if key != "median"})
    # Those of the medians; a limit may depend on the round.
    medians = {key: statistics.median(line[key] for line in lines if key in line)
               for key in ("value", "ratio", *(key for key, *_ in figures.LIMITS)) if any(key in line for line in lines)}
    limits = [{"of": of, bound: limit, "met": kept} for _, of, bound, limit, kept in figures.limits_of(medians)]
    return {**out, "limits": limits} if limits else out


def run_bench(bench, options):
    """Returns its figures, and why those are not complete, if they are not: what failed, and the sizes that are too much here."""
    missing = [tool for tool in bench.tools if not shutil.which(tool)]
    if missing:
        raise Skipped(f"no {', '.join(missing)}")
    found, errors, skipped = [], [], []
    rounds = options.rounds or (1 if options.quick else bench.rounds)
    for size, argv in bench.commands(options.quick):
        of_name = collections.defaultdict(list)
        try:
            for number in range(rounds):
                what = f"{bench.name}{f', {size} {bench.of}' if size is not None else ''}, round {number + 1} of {rounds}"
                began = time.monotonic()
                print(f"bench: {what}", end="", file=sys.stderr, flush=True)
                try:
                    for line in run_round(argv, bench.limit):
                        of_name[line["name"]].append(line)
                finally:
                    print(f", {time.monotonic() - began:.0f} s", file=sys.stderr)
        except Failed as error:
            errors.append(f"{what}: {error}")
        except Skipped as error:
            if size is None:
                raise
            skipped.append(f"{size} {bench.of}: {error}")
        found += [summary(bench, size, lines) for lines in of_name.values()]
    return found, {kind: "; ".join(why) for kind, why in (("failed", errors), ("skipped", skipped)) if why}


def machine():
    """What figures depend on."""
    cpu = re.search(r"^model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(), flags=re.MULTILINE)
    binary = ROOT / "build" / "runtime-watcher"
    return {"cpu": cpu[1] if cpu else platform.machine(), "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "built_with": instructions.built_with(binary) if binary.exists() else None}


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True).stdout.strip()


def revision():
    """Results that are not committed yet do not make it another one."""
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/results.*", ":!bench/plots")
    return (git("describe", "--always", "--abbrev=12") or "unknown") + ("-dirty" if changed else "")


def short(number):
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def title_of(figure):
    return figure["name"] + (f", {figure['size']} {figure['of']}" if "size" in figure else "")


def limit_text(limit):
    bound = "at_most" if "at_most" in limit else "at_least"
    return f"{bound.replace('_', ' ')} {short(limit[bound])}{' ×' if limit['of'] == 'ratio' else ''}"


def circumstances(result):
    on = result["machine"]
    built = on["built_with"]
    return (f"{result['date']}, revision {result['revision']}: {on['cpu']}, {on['cores']} cores, Linux {on['kernel']}"
            + (f", compiler {built['compiler']}, Boost {built['boost']}" if built else "") + f", load {result['load']} before."
            + (" A quick run, whose figures say little." if result["quick"] else ""))


def table(results):
    """In markdown."""
    yield "# Figures"
    yield ""
    yield ("Medians, and the ratio to what a figure is compared with in the same round. [README.md](README.md) says what is measured, and "
           "what it means.")
    for result in results:
        yield ""
        yield f"## {result['name']}"
        yield ""
        yield circumstances(result)
        for kind in ("failed", "skipped"):
            if kind in result:
                yield ""
                yield f"{kind.capitalize()}: {result[kind]}."
        if not result["figures"]:
            continue
        yield ""
        yield "| figure | median | minimum to maximum | rounds | ratio | to | limit |"
        yield "| --- | --- | --- | --- | --- | --- | --- |"
        for figure in result["figures"]:
            ratio, to, several = "", figure.get("peer", ""), figure["rounds"] > 1
            if "ratio" in figure:
                ratio = f"{figure['ratio']:.3g}" + (
                    f" ({figure['ratio_minimum']:.3g} to {figure['ratio_maximum']:.3g})" if several else "")
                to += f": {short(figure['peer_median'])}"
            yield (f"| {title_of(figure)} | {short(figure['median'])} {figure['unit']} "
                   f"| {short(figure['minimum']) + ' to ' + short(figure['maximum']) if several else ''} | {figure['rounds']} "
                   f"| {ratio} | {to} "
                   f"| {'; '.join(limit_text(each) + ('' if each['met'] else ' **missed**') for each in figure.get('limits', []))} |")


def plot(folder, results):
    """One for each benchmark with sizes and each of its units; returns their names."""
    curves = collections.defaultdict(lambda: collections.defaultdict(list))
    for result in results:
        for figure in result["figures"]:
            if "size" in figure:
                curves[result["name"], figure["unit"], figure["of"]][figure["name"]].append(figure)
    made = []
    for (bench, unit, of), by_name in curves.items():
        by_name = {name: points for name, points in by_name.items() if len(points) > 1}
        if not by_name:
            continue
        name = re.sub(r"[^a-z0-9]+", "_", f"{bench}_{unit}".lower().replace("%", "percent")).strip("_") + ".svg"
        script = [f'set terminal svg size 720,{380 + 20 * len(by_name)} dynamic noenhanced background "white" font "sans-serif,13"',
                  f'set output "{name}"', f'set title "{bench}"', f'set xlabel "{of}"', f'set ylabel "{unit}"',
                  f"set xrange [0:{1.05 * max(each['size'] for points in by_name.values() for each in points)}]", "set yrange [0:*]",
                  "set key outside below maxcols 1 left reverse Left", "set grid", "set format x '%.0f'"]
        for number, points in enumerate(by_name.values()):
            script.append(f"$curve{number} << END")
            script += [f"{each['size']} {each['median']} {each['minimum']} {each['maximum']}" for each in points]
            script.append("END")
        script.append("plot " + ", ".join(f'$curve{number} using 1:2:3:4 with yerrorlines linewidth 2 pointtype 7 pointsize 0.5 title "{title}"'
                                          for number, title in enumerate(by_name)))
        subprocess.run(["gnuplot"], input="\n".join(script) + "\n", cwd=folder, check=True, text=True, timeout=60)
        made.append(name)
    return made


def write(out, results):
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps({"benchmarks": results}, indent=1) + "\n")
    text = "\n".join(table(results)) + "\n"
    if shutil.which("gnuplot"):
        (out / "plots").mkdir(exist_ok=True)
        names = plot(out / "plots", results)
        text += "".join(f"\n![{name.removesuffix('.svg')}](plots/{name})\n" for name in names)
    (out / "results.md").write_text(text)
    return text


def earlier_results(out, quick):
    """By benchmark, of runs of the same kind."""
    try:
        earlier = json.loads((out / "results.json").read_text())["benchmarks"]
    except (OSError, ValueError, KeyError):
        return {}
    return {result["name"]: result for result in earlier if result["quick"] == quick}


def main(benches=BENCHES, arguments=None):
    parser = argparse.ArgumentParser(prog="bench/run.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of smaller sizes")
    parser.add_argument("--only", metavar="NAME,...", help="these benchmarks")
    parser.add_argument("--rounds", type=int, help=f"in place of {ROUNDS}")
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, help="where the results are written")
    parser.add_argument("--list", action="store_true", help="prints the names of the benchmarks")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(bench.name for bench in benches))
        return 0
    names = options.only.split(",") if options.only else [bench.name for bench in benches]
    unknown = set(names) - {bench.name for bench in benches}
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; --list has all")
    out = options.out or (ROOT / "build" / "bench" / "quick" if options.quick else ROOT / "bench")
    done = {name: result for name, result in earlier_results(out, options.quick).items() if name not in names}
    on = machine()
    text, missed = "", []
    for bench in benches:
        if bench.name not in names:
            continue
        result = {"name": bench.name, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "revision": revision(),
                  "machine": on, "load": round(os.getloadavg()[0], 1), "quick": options.quick, "figures": []}
        try:
            result["figures"], incomplete = run_bench(bench, options)
            result.update(incomplete)
        except Skipped as error:
            result["skipped"] = str(error)
        done[bench.name] = result
        # What is there is not lost if the rest is not waited for.
        text = write(out, [done[each.name] for each in benches if each.name in done])
    print(text)
    if not shutil.which("gnuplot"):
        print("bench: no gnuplot, so there are no plots (deploy/install-packages.sh plot)", file=sys.stderr)
    for kind in ("skipped", "failed"):
        for name in names:
            if kind in done[name]:
                print(f"bench: {name} {'was skipped' if kind == 'skipped' else kind}: {done[name][kind]}", file=sys.stderr)
    for name in names:
        for figure in done[name]["figures"]:
            limits = "; ".join(limit_text(limit) for limit in figure.get("limits", []) if not limit["met"])
            if limits:
                missed.append(figure)
                print(f"bench: {name} missed a limit: {title_of(figure)}: {limits}", file=sys.stderr)
    return 1 if missed or any("failed" in done[name] for name in names) else 0


if __name__ == "__main__":
    sys.exit(main())
