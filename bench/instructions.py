#!/usr/bin/env python3
"""Counts the instructions and allocations of a piece of work with callgrind: a review, an event, a watch event, a turn of the
work queue, a reconcile (bench/instructions.cpp). Only instructions of our own code count, with what its compiler inlined:
libraries and the kernel are not in it. Unlike a time, the count is the same on each machine, so that a change of 3 % shows.

    bench/instructions.py [--binary PATH] [--update] [--profile WORKLOAD]

Prints one line of JSON for each figure. Compares with bench/instructions.json, and ends with 1 if a figure is more than 3 %
above it; 3 % below asks for --update, which writes the file. The file names the compiler and the Boost that it was counted
with: with others there is nothing to compare, and it ends with 77, as it does without valgrind. --profile prints where the
instructions of one workload are.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from figures import missed, say

HERE = pathlib.Path(__file__).resolve().parent
KNOWN = HERE / "instructions.json"
BOUND = 1.03
SKIPPED = 77
WORKLOADS = ("review", "event", "batched", "watch", "queue", "reconcile")
TURNS = {"queue": 2000, "batched": 50}
BATCH_EVENTS = {"batched": "512"}
# The reader of reviews takes the processor's best implementation; the one that valgrind knows everywhere is fixed.
ENVIRONMENT = {**os.environ, "SIMDJSON_FORCE_IMPLEMENTATION": "westmere"}


def count(binary, workload):
    """The instructions of our own objects by function, and what the program says."""
    turns = TURNS.get(workload, 300)
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        # Debian 12's valgrind can't read this compiler's debug information; names of functions are in the symbol table.
        stripped = pathlib.Path(folder) / binary.name
        subprocess.run(["strip", "--strip-debug", "-o", str(stripped), str(binary)], check=True)
        # A process of its own, whose instructions nobody counts.
        gateway = subprocess.Popen([str(binary), "gateway", BATCH_EVENTS.get(workload, "0")], stdout=subprocess.PIPE, text=True)
        try:
            ran = subprocess.run(
                ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--collect-atstart=no",
                 "--toggle-collect=measured_turns", "--compress-strings=no", "--compress-pos=no", str(stripped), workload,
                 str(turns), gateway.stdout.readline().strip()], env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
        finally:
            gateway.kill()
            gateway.wait()
        if ran.returncode != 0:
            sys.exit(f"bench/instructions.py: {workload}: {ran.stderr}")
        said = json.loads(ran.stdout)
        return functions_of(out, binary.name), said


def functions_of(path, own):
    """Self cost for each function of the object with this name (format of callgrind's files: valgrind's manual)."""
    costs = collections.Counter()
    ours, name, inclusive = False, "", False
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("ob="):
            ours = pathlib.Path(line[3:]).name == own
        elif line.startswith("fn="):
            name = line[3:]
        elif line.startswith("calls="):
            inclusive = True
        elif line[:1].isdigit():
            if not inclusive and ours:
                costs[name] += int(line.split()[1])
            inclusive = False
    return costs


def built_with(binary):
    """Compiler and Boost of the build, from its CMake cache and the headers."""
    compiler = subprocess.run(["readelf", "-p", ".comment", str(binary)], capture_output=True, text=True).stdout
    clang = re.findall(r"(?:clang version|GCC: \(.*?\)) ([0-9.]+)", compiler)
    boost = pathlib.Path("/usr/include/boost/version.hpp").read_text()
    return {"compiler": " ".join(sorted(set(clang))), "boost": re.search(r'BOOST_LIB_VERSION "(\S+)"', boost).group(1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=HERE.parent / "build" / "bench" / "bench_instructions")
    parser.add_argument("--update", action="store_true", help="write bench/instructions.json")
    parser.add_argument("--profile", metavar="WORKLOAD", choices=WORKLOADS, help="print its functions")
    options = parser.parse_args()
    if not options.binary.exists():
        sys.exit(f"bench/instructions.py: no {options.binary}; build it first")
    if shutil.which("valgrind") is None:
        print("bench/instructions.py: no valgrind", file=sys.stderr)
        sys.exit(SKIPPED)
    if options.profile:
        costs, said = count(options.binary, options.profile)
        for name, cost in costs.most_common(60):
            print(f"{cost / said['pieces']:9.1f}  {name}")
        print(f"{sum(costs.values()) / said['pieces']:9.1f}  all")
        return
    known = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    here = built_with(options.binary)
    comparable = known.get("built_with") == here
    if not comparable and not options.update:
        print(f"built with {here}, but the figures are of {known.get('built_with')}: count anew with --update", file=sys.stderr)
        sys.exit(SKIPPED)
    found = {}
    for workload in WORKLOADS:
        costs, said = count(options.binary, workload)
        now = {"instructions": round(sum(costs.values()) / said["pieces"]), "allocations": round(said["allocations"], 1)}
        found[workload] = now
        was = known.get("figures", {}).get(workload)
        if not was or not comparable:
            was = {"instructions": None, "allocations": None}
        say(f"instructions/{workload}", now["instructions"], "instructions", KNOWN.name, peer_value=was["instructions"],
            **({"ratio_limit": BOUND} if was["instructions"] else {}))
        say(f"allocations/{workload}", now["allocations"], "allocations", KNOWN.name, limit=was["allocations"])
        if was["instructions"] and now["instructions"] < (2 - BOUND) * was["instructions"]:
            print(f"{workload} is better than bench/instructions.json says: --update", file=sys.stderr)
    if options.update:
        KNOWN.write_text(json.dumps({"built_with": here, "figures": found}, indent=2) + "\n")
    elif missed:
        sys.exit(f"bench/instructions.py: more than in bench/instructions.json: {', '.join(missed)}")


if __name__ == "__main__":
    main()
